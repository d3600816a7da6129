"""The tables of a checkpoint of DeBERTa 3's pre-training, which holds differences."""

from bert_tf.checkpoints.rules import Tensor
from bert_tf.models.deberta.config import DIFFERENCE


def with_sums(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors, by our names, with the network's tables in place of their differences
    from the tables of the generator, whose names begin with `generator/`."""
    def table(name, tensor):
        if not name.endswith(DIFFERENCE):
            return tensor
        others = tensors[f"generator/{name.removesuffix(DIFFERENCE)}"]
        return tensor.changed(lambda values: others.read() + values)

    return {name.removesuffix(DIFFERENCE): table(name, tensor) for name, tensor in tensors.items()}
