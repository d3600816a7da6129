"""Entities of tagged sentences, as conlleval reads them (CoNLL-2003, bin/conlleval).

A tag is "O", "B-" with a type, which begins an entity, or "I-" with a type, which goes on with one
of that type or else begins one too. So IOB1, where "B-" stands only between neighbours of one type,
and BIO, where it begins every entity, are read alike.
"""

from bert_tf.errors import InputError


def is_entity_tag(tag):
    """Whether a tag is of this form, O apart."""
    return tag[:2] in ("B-", "I-")


def entities(tags):
    """The entities of one sentence: list of (first word, last word + 1, type)."""
    found, start, kind = [], 0, None
    for position, tag in enumerate([*tags, "O"]):
        new = tag[2:] if is_entity_tag(tag) else None
        if kind is not None and (new != kind or tag[0] == "B"):
            found.append((start, position, kind))
            kind = None
        if kind is None and new is not None:
            start, kind = position, new
    return found


def to_bio(tags, where="a tag"):
    """The same entities with "B-" at the first word of each (list of str).

    Tags of other kinds, such as parts of speech, stay what they are.

    Raises:
        InputError: a tag of another scheme, such as S-PER, stands beside those of entities.
    """
    kinds = {tag[:2] for tag in tags}
    if kinds & {"B-", "I-"}:
        for tag in tags:
            if tag != "O" and not is_entity_tag(tag):
                raise InputError(f"{where}: {tag!r} is neither O nor B- or I- with a type; convert "
                                 "the file to IOB1 or BIO.")
    bio = list(tags)
    for start, _, kind in entities(tags):
        bio[start] = f"B-{kind}"
    return bio
