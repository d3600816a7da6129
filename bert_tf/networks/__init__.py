"""Networks: from ids to named tensors."""

import sys
from typing import TYPE_CHECKING, Any

import lazy_loader

if TYPE_CHECKING:
    from bert_tf.config import Sizes

# The network of each class of `bert_tf.config`, by name.
NETWORKS = {"BertConfig": "Bert", "EncoderConfig": "BertEncoder",
            "FixedPatternConfig": "FixedPatternEncoder",
            "UniversalConfig": "UniversalTransformer", "GPTConfig": "GPT",
            "ElmoConfig": "Elmo", "SequenceLstmConfig": "SequenceLstm", "T5Config": "T5",
            "BiLstmConfig": "BiLstm", "XLNetConfig": "XLNet", "MobileBertConfig": "MobileBert",
            "ModernBertConfig": "ModernBert", "MPNetConfig": "MPNet",
            "DebertaConfig": "Deberta"}

# Sizes that two networks with shared embeddings have in common.
_SIZES_OF_EMBEDDINGS = ("vocab_size", "embedding_width", "max_position_embeddings",
                        "type_vocab_size", "task_types")

_from_files, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "bert.network": ["Bert"],
    "networks.encoder": ["BertEncoder"],
    "networks.pooling": ["pool"],
    "networks.memory": ["check_memory"],
    "models.deberta.network": ["Deberta"],
    "models.fixed_patterns.network": ["FixedPatternEncoder"],
    "models.gpt.network": ["GPT"],
    "models.mobilebert.network": ["MobileBert"],
    "models.modernbert.network": ["ModernBert"],
    "models.mpnet.network": ["MPNet"],
    "models.recurrent.bilstm": ["BiLstm"],
    "models.recurrent.elmo": ["Elmo"],
    "models.recurrent.sequence_lstm": ["SequenceLstm"],
    "models.t5.network": ["T5"],
    "models.universal.network": ["UniversalTransformer"],
    "models.xlnet.network": ["XLNet"]})
__all__ += ["NETWORKS", "attentions", "build", "first_state", "network_of"]


def __getattr__(name: str) -> Any:
    value = globals()[name] = _from_files(name)
    # lazy_loader puts it into bert_tf too, whose own classes have `from_pretrained`.
    vars(sys.modules["bert_tf"]).pop(name, None)
    return value


def build(config: "Sizes", **options: Any) -> Any:
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
    __getattr__("check_memory")(config)
    if embeddings := options.get("embeddings"):
        _check_embeddings(embeddings.config, config)
    return network_of(config)(config, **options)


def network_of(config: "Sizes") -> Any:
    """Returns the class of a configuration's network: the plain one where the configuration
    describes nothing but BERT."""
    return __getattr__(NETWORKS["BertConfig" if config.is_plain else type(config).__name__])


def _check_embeddings(shared, config):
    """Refuses shared embeddings whose sizes differ from the network's."""
    from bert_tf.errors import InputError
    for size in _SIZES_OF_EMBEDDINGS:
        if getattr(shared, size) != getattr(config, size):
            raise InputError(f"the shared embeddings have {size} {getattr(shared, size)}, the "
                             f"encoder has {getattr(config, size)}; make them equal.")


def first_state(outputs: Any) -> Any:
    """Returns the first layer's input [B, S, H], from a network's outputs."""
    return outputs.get("projected_output", outputs["embedding_output"])


def attentions(network: Any) -> dict[str, Any]:
    """Returns a network's attention layers by name, in the order of `head_mask`: "1", "2", ..., or
    T5's names (`T5.attentions`)."""
    if hasattr(network, "attentions"):
        return network.attentions()
    return {str(number): layer.attention for number, layer in enumerate(network.layers_, 1)}
