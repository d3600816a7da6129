"""The schemes of tags that a model may learn for the same entities. `bio` has B- at the first word
of an entity and I- at the others. `bioes` has S- at the word of an entity of one word; of longer
ones B- first, E- last, and I- between them (google-research/electra, finetune/tagging, where
neighbours I-A and I-B are one entity)."""

import re
import typing
from collections.abc import Iterable, Mapping, Sequence

from bert_tf.errors import InputError, warn
from bert_tf.metrics import entities, is_entity_tag

SCHEMES = ("bio", "bioes")


def scheme_of(labels: Iterable[str]) -> str:
    """Returns the scheme of a model's labels; `bio` if they name no entities."""
    labels = set(labels)
    if any(is_entity_tag(tag) and tag[0] == "B" and f"S-{tag[2:]}" in labels for tag in labels):
        return "bioes"
    return "bio"


def labels_in(scheme: str | None, labels: Sequence[str]) -> tuple[str, ...]:
    """Returns labels of either scheme in another one. None: as they are. In `bioes` each type has
    its four tags, in the order of the alphabet after the labels that name no entities. Raises
    InputError if `bioes` is wanted of labels that name no entities, or `bio` of `bioes`."""
    if scheme in (None, scheme_of(labels)):
        return tuple(labels)
    types = {tag[2:] for tag in labels if is_entity_tag(tag)}
    if scheme == "bio" or not types:
        raise InputError(f"--tag_scheme={scheme}: the labels are {', '.join(labels)}; leave the "
                         "flag out.")
    return (*(tag for tag in labels if not is_entity_tag(tag)),
            *sorted(f"{place}-{kind}" for place in "BIES" for kind in types))


def to_bioes(tags: Sequence[str]) -> list[str]:
    renamed = list(tags)
    for start, end, kind in entities(list(tags)):
        places = "S" if end - start == 1 else f"B{'I' * (end - start - 2)}E"
        renamed[start:end] = [f"{place}-{kind}" for place in places]
    return renamed


def bio_name(tag: str) -> str:
    """Returns the name in `bio` of a tag of `bioes`, whatever its neighbours."""
    return {"S-": "B-", "E-": "I-"}.get(tag[:2], tag[:2]) + tag[2:]


def from_bioes(tags: Sequence[str]) -> list[str]:
    """A sentence's tags of `bioes` in `bio`, in any order, as a model predicts them: an entity
    begins at B- or S-, and at I- or E- unless the tag before is B- or I- of the same type."""
    renamed, open_type = [], None
    for tag in tags:
        place, kind = tag[:2], tag[2:]
        if place in ("B-", "S-") or place in ("I-", "E-") and kind != open_type:
            tag = f"B-{kind}"
        elif place == "E-":
            tag = f"I-{kind}"
        renamed.append(tag)
        open_type = kind if place in ("B-", "I-") else None
    return renamed


class Seen(typing.NamedTuple):
    """How often a tag is in the files of a task, and where it is first."""

    times: int
    where: str


# How files write the tags of entities: the position before the type, B-PER, or behind it, PER-B.
_WAYS = {"before": re.compile(r"(?P<place>[BIMELSUW])[-_](?P<type>.*[^-_].*)"),
         "behind": re.compile(r"(?P<type>.*[^-_].*)[-_](?P<place>[BIMELSUW])")}
# Positions in `bioes` of those in BILOU (L, U), BMES (M) and BMEW (W).
_PLACES = {"M": "I", "L": "E", "U": "S", "W": "S"}
_OUTSIDE = "O"
_MOST_NAMED = 5


def way_of(seen: Mapping[str, Seen]) -> str:
    """Returns how all the tags of a task's files name entities, a key of `_WAYS`, or "" of tags
    that name none, such as parts of speech. Raises InputError if some tags name entities and others
    are neither O nor of the same kind."""
    inside = {tag: one for tag, one in seen.items() if tag != _OUTSIDE}
    wrong: dict[str, dict[str, Seen]] = {}
    for way, pattern in _WAYS.items():
        fits = [tag for tag in inside if pattern.fullmatch(tag)]
        named = any(map(is_entity_tag, fits))
        if not fits or not (named or _OUTSIDE in seen):
            continue
        others = {tag: one for tag, one in inside.items() if tag not in fits}
        if not others:
            return way
        most = 2 * sum(inside[tag].times for tag in fits) > sum(
            one.times for one in inside.values())
        if named or most:
            wrong[way] = others
    small = {tag[:1].upper() + tag[1:] for tag in seen}
    if not wrong and "o" in seen and all(_WAYS["before"].fullmatch(tag) for tag in small if
                                         tag != _OUTSIDE):
        wrong["before"] = inside
    if "*" in seen and any(re.fullmatch(r"\(.+[*)]", tag) for tag in seen):
        wrong["before"] = {tag: one for tag, one in inside.items() if "*" in tag}   # CoNLL-2012
    if wrong:
        others = min(wrong.values(), key=len)
        (tag, (_, where)), *_ = others.items()
        shown = [f"{name!r} ({one.times:,})" for name, one in others.items()]
        raise InputError(
            f"{where}: the tag {tag!r} is neither O nor a position, such as B- or I-, with a type, "
            "as other tags are; correct all such tags, or remove the lines that are not words: "
            f"{', '.join(shown[:_MOST_NAMED])}{', ...' if len(shown) > _MOST_NAMED else ''}.")
    if 2 * seen.get(_OUTSIDE, Seen(0, "")).times > sum(one.times for one in seen.values()):
        warn("no tag has both a position and a type, such as B-PER, so the score counts words "
             "(tag_accuracy) and not entities.")
    return ""


def is_tag_of(tag: str, labels: Iterable[str]) -> bool:
    """Returns whether a file's tag, in any scheme, may be one of a model's labels."""
    types = {label[2:] for label in labels if is_entity_tag(label)}
    matches = (pattern.fullmatch(tag) for pattern in _WAYS.values())
    return tag in labels or any(match["type"] in types for match in matches if match)


def in_bio(tags: Sequence[str], way: str) -> list[str]:
    """Returns a sentence's tags in `bio`, from any scheme that a file may have: IOB1, BIO, BIOES,
    BILOU, BMES. `way` is what `way_of` returned; "": the tags as they are."""
    if not way:
        return list(tags)
    parts = (_WAYS[way].fullmatch(tag) for tag in tags)
    return from_bioes([f"{_PLACES.get(part['place'], part['place'])}-{part['type']}" if part
                       else _OUTSIDE for part in parts])
