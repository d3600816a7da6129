"""Builds the network of a configuration."""

from typing import Any

from bert_tf import networks
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.networks.memory import check_memory

# Sizes that two networks with shared embeddings have in common.
_SIZES_OF_EMBEDDINGS = ("vocab_size", "embedding_width", "max_position_embeddings",
                        "type_vocab_size", "task_types")


def build(config: Sizes, **options: Any) -> Any:
    """Builds a configuration's network, with initial weights.

    Every network has the attributes `config`, `reads` (names of its features), `embedding_table`
    (variable [V, E]) and `seed_generator`. Its `call(features, training, dropout_seed)` returns a
    dict of tensors, with `sequence_output` [B, S, H] and, for objectives of whole sequences,
    `pooled_output` [B, H]. A network with states from step to step has `carries` (see
    `bert_tf/training/memory.py`). `options` are keyword arguments of the network, such as `name`
    and `dtype`.

    A network that takes long to make is announced in one line; one that does not fit into this
    machine's memory is refused.
    """
    check_memory(config)
    if embeddings := options.get("embeddings"):
        _check_embeddings(embeddings.config, config)
    return network_of(config)(config, **options)


def network_of(config: Sizes) -> Any:
    """Returns the class of a configuration's network: the plain one where the configuration
    describes nothing but BERT."""
    return getattr(networks, networks.NETWORKS[
        "BertConfig" if config.is_plain else type(config).__name__])


def _check_embeddings(shared, config):
    """Refuses shared embeddings whose sizes differ from the network's."""
    for size in _SIZES_OF_EMBEDDINGS:
        if getattr(shared, size) != getattr(config, size):
            raise InputError(f"the shared embeddings have {size} {getattr(shared, size)}, the "
                             f"encoder has {getattr(config, size)}; make them equal.")


def first_state(outputs: Any) -> Any:
    """Returns the first layer's input [B, S, H], from a network's outputs."""
    return outputs.get("projected_output", outputs["embedding_output"])


def attentions(network: Any) -> dict[str, Any]:
    """Returns a network's attention layers by name, in the order of `head_mask`: "1", "2", ..., or
    the names that its own `attentions` gives."""
    if hasattr(network, "attentions"):
        return network.attentions()
    return {str(number): layer.attention for number, layer in enumerate(network.layers_, 1)}
