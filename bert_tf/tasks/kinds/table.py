"""All kinds by name."""

from bert_tf.tasks import kinds
from bert_tf.tasks.task import Kind

KINDS: dict[str, Kind] = {kind.name: kind for kind in (
    getattr(kinds, name)() for names in kinds.CLASSES.values() for name in names)}
