"""The schemes of tags that a model may learn for the same entities.

`bio` has B- at the first word of an entity and I- at the others. `bioes` has S- at the word of an
entity of one word; of longer ones B- at the first word, E- at the last, and I- between them
(google-research/electra, finetune/tagging).
"""

from collections.abc import Iterable, Sequence

from bert_tf.errors import InputError
from bert_tf.metrics import entities, is_entity_tag

SCHEMES = ("bio", "bioes")


def scheme_of(labels: Iterable[str]) -> str:
    """Returns the scheme of a model's labels; `bio` if they name no entities."""
    found = set(labels)
    return "bioes" if any(is_entity_tag(tag) and f"S-{tag[2:]}" in found
                          for tag in found if tag.startswith("B")) else "bio"


def labels_in(scheme: str | None, labels: Sequence[str]) -> tuple[str, ...]:
    """Returns labels of either scheme in another one. None: as they are. In `bioes` each type has
    its four tags, in the order of the alphabet after the labels that name no entities.

    Raises:
        InputError: `bioes` is wanted of labels that name no entities, or `bio` of `bioes`.
    """
    if scheme in (None, scheme_of(labels)):
        return tuple(labels)
    types = {tag[2:] for tag in labels if is_entity_tag(tag)}
    if scheme == "bio" or not types:
        raise InputError(f"--tag_scheme={scheme}: the labels are {', '.join(labels)}; leave the "
                         "flag out.")
    return (*(tag for tag in labels if not is_entity_tag(tag)),
            *sorted(f"{place}-{kind}" for place in "BIES" for kind in types))


def to_bioes(tags: Sequence[str]) -> list[str]:
    """Returns a sentence's tags of `bio` in `bioes`."""
    found = list(tags)
    for start, end, kind in entities(list(tags)):
        places = "S" if end - start == 1 else f"B{'I' * (end - start - 2)}E"
        found[start:end] = [f"{place}-{kind}" for place in places]
    return found


def bio_name(tag: str) -> str:
    """Returns the name in `bio` of a tag of `bioes`, whatever its neighbours."""
    return {"S-": "B-", "E-": "I-"}.get(tag[:2], tag[:2]) + tag[2:]


def from_bioes(tags: Sequence[str]) -> list[str]:
    """Returns a sentence's tags of `bioes` in `bio`. Tags in any order are taken, as a model
    predicts them: an entity begins at B- or S-, and at I- or E- unless the tag before is B- or I-
    of the same type."""
    found, open_type = [], None
    for tag in tags:
        place, kind = tag[:2], tag[2:]
        if place not in ("B-", "I-", "E-", "S-"):
            found.append(tag)
            open_type = None
            continue
        goes_on = place in ("I-", "E-") and kind == open_type
        found.append(f"{'I' if goes_on else 'B'}-{kind}")
        open_type = kind if place in ("B-", "I-") else None
    return found
