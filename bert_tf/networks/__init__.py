"""Networks, from ids to named tensors: the table of all, and how one is made of a configuration."""

import contextlib
import os
import sys
from typing import Any

import lazy_loader

from bert_tf.config import RELATIVES, homes
from bert_tf.errors import InputError

# The network of each class of `bert_tf.config`, by name.
NETWORKS = {"BertConfig": "Bert", "EncoderConfig": "BertEncoder",
            **{name: network for _, name, network in RELATIVES.values()}}

__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "bert.network": ["Bert"],
    "networks.encoder": ["BertEncoder"],
    "layers.functions": ["pool"],
    **homes({network: folder for folder, _, network in reversed(RELATIVES.values())}, "network")})
__all__ += ["NETWORKS", "attentions", "build", "check_memory", "first_state", "network_of"]
# Sizes that two networks with shared embeddings have in common.
_SIZES_OF_EMBEDDINGS = ("vocab_size", "embedding_width", "max_position_embeddings",
                        "type_vocab_size", "task_types")
_MANY_LAYERS, _MANY_WEIGHTS = 100, 1_000_000_000


def build(config: Any, **options: Any) -> Any:
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
        for size in _SIZES_OF_EMBEDDINGS:
            if getattr(embeddings.config, size) != getattr(config, size):
                raise InputError(
                    f"the shared embeddings have {size} {getattr(embeddings.config, size)}, the "
                    f"encoder has {getattr(config, size)}; make them equal.")
    return network_of(config)(config, **options)


def machine_memory() -> int:
    """Returns the bytes of memory that this process may have."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open(
            "/sys/fs/cgroup/memory.max", encoding="utf-8") as file:
        memory = min(memory, int(file.read()))
    return memory


def check_memory(config) -> None:
    """Raises InputError if weights do not fit; announces a network that takes long to make."""
    weights, layers = config.num_weights, config.num_hidden_layers
    what = f"a network of {layers:,} layers and {weights:,} weights"
    memory = machine_memory()
    if 4 * weights > memory:
        raise InputError(f"{what} takes {4 * weights / 1e9:,.1f} GB, and this machine has "
                         f"{memory / 1e9:,.1f} GB of memory; give smaller sizes.")
    if layers > _MANY_LAYERS or weights > _MANY_WEIGHTS:
        print(f"building {what}, which takes a while", flush=True)


def network_of(config: Any) -> Any:
    """Returns the class of a configuration's network: the plain one where the configuration
    describes nothing but BERT."""
    return getattr(sys.modules[__name__], NETWORKS[
        "BertConfig" if config.is_plain else type(config).__name__])


def first_state(outputs: Any) -> Any:
    """Returns the first layer's input [B, S, H], from a network's outputs."""
    return outputs.get("projected_output", outputs["embedding_output"])


def attentions(network: Any) -> dict[str, Any]:
    """Returns a network's attention layers by name, in the order of `head_mask`: "1", "2", ..., or
    the names that its own `attentions` gives."""
    if hasattr(network, "attentions"):
        return network.attentions()
    return {str(number): layer.attention for number, layer in enumerate(network.layers_, 1)}
