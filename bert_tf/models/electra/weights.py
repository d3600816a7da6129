"""The two networks in a checkpoint of ELECTRA's pre-training, which share their embeddings. In our
own checkpoints the generator's weights begin with `generator/`, and its head is `masked_lm`.
google-research/electra releases no configuration."""

import dataclasses
import re

from bert_tf.checkpoints import names
from bert_tf.checkpoints.rules import DENSE, KINDS, NORM, SELF, Source, Tensor, encoder_rows
from bert_tf.config import EncoderConfig

_GENERATOR = "generator/"
_LAYER = "encoder/layer_0/"
# Defaults of ELECTRA's configurations.
DEFAULTS = {"model_type": "electra", "pooler_type": "first_token", "type_vocab_size": 2}

# Google's names, with the generator's as `split` makes them.
GOOGLE_ROWS = (
    *encoder_rows(KINDS, (f"electra/embeddings/{name}" for name in names.EMBEDDINGS),
                  "electra/encoder/layer_{i}/", names.LAYER),
    ("embeddings_project", "electra/embeddings_project", DENSE),
    ("masked_lm/transform/dense", "generator_predictions/dense", DENSE),
    ("masked_lm/transform/LayerNorm", "generator_predictions/LayerNorm", NORM),
    ("masked_lm/output_bias", "generator_predictions/output_bias", SELF),
    ("replaced_token/dense", "discriminator_predictions/dense", DENSE),
    ("replaced_token/dense_1", "discriminator_predictions/dense_1", DENSE),
    # finetune/qa: layers without a name are numbered in the order of their creation.
    ("conditional_span/start", "task_specific/squad/dense", DENSE),
    ("conditional_span/end/hidden", "task_specific/squad/qa_hidden", DENSE),
    ("conditional_span/end/dense", "task_specific/squad/dense_1", DENSE),
    ("conditional_span/answerable/hidden", "task_specific/squad/dense_2", DENSE),
    ("conditional_span/answerable/dense", "task_specific/squad/dense_3", DENSE),
)


def split(source: Source, network: str, head: str, config: EncoderConfig | None = None) -> Source:
    """The product network's `Source`, with the generator's in it if there is one. Names of the
    generator's tensors begin with `generator/`, of its head with `head`, and of the networks with
    `network`. `config` is the generator's; None: as the shapes show."""
    tensors = source.tensors
    if not any(name.startswith(_GENERATOR) for name in tensors):
        return source
    own, its = {}, {}
    for name, tensor in tensors.items():
        if name.startswith(_GENERATOR):
            its[network + name.removeprefix(_GENERATOR)] = tensor
        elif name.startswith(head):
            its[name] = tensor
        else:
            own[name] = tensor
    embeddings = {name: tensor for name, tensor in own.items()
                  if name.startswith(f"{network}embeddings/")}
    its = {**embeddings, **its}     # its own embeddings come before the shared ones
    generator = dataclasses.replace(
        _beside(source, its, {name: own[name] for name in own.keys() - embeddings.keys()},
                "not of the generator"),
        config=config or config_of(its, network, source.config))
    return dataclasses.replace(
        _beside(source, own, {name: tensors[name] for name in tensors.keys() - own.keys()},
                "the generator, which --generator converts"), generator=generator)


def _beside(source, tensors, others, reason):
    """A `Source` of some tensors; the others are ignored for a reason."""
    table = source.table
    table = dataclasses.replace(table, ignored=((r"beside: .*", reason), *table.ignored))
    return dataclasses.replace(source, table=table, tensors={
        **tensors, **{f"beside: {name}": others[name] for name in sorted(others)}})


def config_of(tensors: dict[str, Tensor], network: str,
              like: EncoderConfig | None = None) -> EncoderConfig | None:
    """The configuration that the shapes of tensors show, with heads 64 wide, or None if a needed
    tensor is missing. Names begin with `network`. Values that shapes don't show are those of
    `like`; None: ELECTRA's own."""
    def shape(name):
        return tensors[f"{network}{name}"].shape

    try:
        (words, width), (hidden, _) = shape("embeddings/word_embeddings"), shape(
            f"{_LAYER}attention/self/query/kernel")
        sizes = {"vocab_size": words, "embedding_size": width, "hidden_size": hidden,
                 "num_attention_heads": max(1, hidden // 64),
                 "num_hidden_layers": len({name for name in tensors if re.fullmatch(
                     rf"{network}encoder/layer_\d+/intermediate/dense/bias", name)}),
                 "intermediate_size": shape(f"{_LAYER}intermediate/dense/bias")[0],
                 "max_position_embeddings": shape("embeddings/position_embeddings")[0],
                 "type_vocab_size": shape("embeddings/token_type_embeddings")[0]}
    except (KeyError, ValueError):
        return None
    if like is not None:
        return dataclasses.replace(like, **sizes)
    return EncoderConfig.from_dict({**DEFAULTS, "hidden_act": "gelu_erf", **sizes})
