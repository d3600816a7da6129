"""All kinds by name."""

from bert_tf.errors import InputError
from bert_tf.tasks import kinds
from bert_tf.tasks.task import Kind

KINDS: dict[str, Kind] = {kind.name: kind for kind in (
    getattr(kinds, name)() for names in kinds.CLASSES.values() for name in names)}


def kind_on_disk(described: dict) -> Kind:
    on_disk = {name: described[name] for name in ("kind", "multi_label")}
    for kind in KINDS.values():
        if kind.on_disk == on_disk:
            return kind
    raise InputError(f"this version has no task of the kind {described['kind']!r}; use the version "
                     "of bert_tf that wrote the model.")
