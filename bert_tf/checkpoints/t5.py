"""T5's weights in Keras's files, and in checkpoints of the original (tensorflow/mesh)."""

import os
import re

import lazy_loader

from bert_tf.checkpoints import rules
from bert_tf.checkpoints.rules import Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import T5Config
from bert_tf.errors import InputError

tf = lazy_loader.load("tensorflow")

TYPE = "t5"
SELF = (("", ""),)
_SAVED = "encoder/"         # how names of what Keras saves begin
ATTENTION = ("query", "key", "value", "output")
HIDDEN = ("wi", "wi_0", "wi_1")
_SCALE = (("/scale", "/vars/0"),)


def parts(stack, reads_encoder=True):
    """Returns the parts of a layer of a stack, in their order."""
    return ["attention", *(["cross_attention"] if stack == "decoder" and reads_encoder else []),
            "feed_forward"]


# Keras

def keras_parts(config: T5Config) -> list[tuple[str, str]]:
    """Returns the parts in the order of the network's `layers`: (class, name in the table)."""
    stacks = [("T5Stack", f"{stack}_stack") for stack in config.stacks]
    return [("T5Embeddings", "embeddings"), *stacks, ("Dense", "logits")]


def keras_lists(config: T5Config) -> dict[str, str]:
    """Returns {Keras's group: name in the table} for the lists inside the parts."""
    return {f"{stack}_stack/layers_/t5_layer{f'_{i}' if i else ''}": f"{stack}_stack/layer_{i}"
            for stack, layers in config.stacks.items() for i in range(layers)}


def _keras_rows():
    """Returns the rows of Keras's table."""
    dense = (("/kernel", "/vars/0"),)
    rows: list[tuple] = [
        ("embeddings/word_embeddings", f"{_SAVED}embeddings/vars/0", SELF),
        ("logits", f"{_SAVED}logits", dense)]
    for stack in ("encoder", "decoder"):
        saved, layer = f"{_SAVED}{stack}_stack", f"{_SAVED}{stack}_stack/layer_{{i}}"
        rows += [(f"{stack}/relative_attention_bias/weight", f"{saved}/relative_bias/vars/0",
                  SELF), (f"{stack}/layer_norm", f"{saved}/layer_norm", _SCALE)]
        for part in parts(stack):
            ours = f"{stack}/layer_{{i}}/{part}"
            rows.append((f"{ours}/layer_norm", f"{layer}/{part}/layer_norm", _SCALE))
            names = {"wi": "hidden/dense", "wi_0": "hidden/dense", "wi_1": "hidden/dense_1",
                     "wo": "wo"} if part == "feed_forward" else {
                         name: "output_" if name == "output" else name for name in ATTENTION}
            rows += [(f"{ours}/{name}", f"{layer}/{part}/{theirs}", dense)
                     for name, theirs in names.items()]
    return tuple(rows)


KERAS = _keras_rows()


# The original

# The original's name of a norm inside a layer, and of a stack's last norm, by version of its code.
_NORMS = {False: ("rms_norm", "rms_norm"), True: ("layer_norm", "final_layer_norm")}


def _mesh_table(has_encoder, is_legacy):
    """Returns the table of the original's checkpoints, from today's code or from the first
    release's."""
    inner, last = _NORMS[is_legacy]
    rows: list[tuple] = [
        ("embeddings/word_embeddings", f"{'shared' if has_encoder else 'decoder'}/embedding",
         SELF), ("logits/kernel", "decoder/logits/kernel", SELF)]
    for stack in ("encoder", "decoder"):
        block = f"{stack}/block_{{i:03}}"
        rows += [(f"{stack}/relative_attention_bias/weight",
                  f"{stack}/block_000/layer_000/SelfAttention/relative_attention_bias", SELF),
                 (f"{stack}/layer_norm/scale", f"{stack}/{last}/scale", SELF)]
        for number, part in enumerate(parts(stack, has_encoder)):
            ours, layer = f"{stack}/layer_{{i}}/{part}", f"{block}/layer_{number:03}"
            rows.append((f"{ours}/layer_norm", f"{layer}/{inner}", (("/scale", "/scale"),)))
            if part == "feed_forward":
                rows += [(f"{ours}/{name}/kernel", f"{layer}/DenseReluDense/{name}/kernel", SELF)
                         for name in (*HIDDEN, "wo")]
            else:
                kind = "SelfAttention" if part == "attention" else "EncDecAttention"
                rows += [(f"{ours}/{name}/kernel", f"{layer}/{kind}/{name[0]}", SELF)
                         for name in ATTENTION]
    return Format(tuple(rows), ((r"global_step|.*_slot_(v|vr|vc|m)", "state of the optimizer"),))


def _mesh_config(prefix, tensors):
    """Returns the configuration that the shapes of a checkpoint show."""
    def shape(*ends):
        return next((tensor.shape for name, tensor in tensors.items()
                     if name.endswith(ends) and len(tensor.shape) == 2), (0, 0))

    def layers(stack):
        return len({name.split("/")[1] for name in tensors
                    if re.match(rf"{stack}/block_\d+/", name)})

    has_encoder = "shared/embedding" in tensors
    words, bias = shape("shared/embedding", "decoder/embedding"), shape("relative_attention_bias")
    query, hidden = shape("SelfAttention/q"), shape("wi/kernel", "wi_0/kernel")
    is_gated = any(name.endswith("wi_1/kernel") for name in tensors)
    encoder, decoder = layers("encoder"), layers("decoder")
    try:
        return T5Config(
            vocab_size=words[0], d_model=words[1], d_ff=hidden[1], num_heads=bias[0],
            d_kv=query[1] // max(bias[0], 1), relative_attention_num_buckets=bias[1],
            num_layers=encoder if has_encoder else decoder,
            num_decoder_layers=decoder if has_encoder and encoder != decoder else None,
            feed_forward_proj="gated-gelu" if is_gated else "relu",
            tie_word_embeddings="decoder/logits/kernel" not in tensors,
            architecture="encoder_decoder" if has_encoder else "language_model")
    except InputError as error:
        raise InputError(f"{prefix}: these are not the tensors of a T5 ({error})") from None


def read(prefix: str, tensors: dict[str, Tensor]) -> Source:
    """Returns the `Source` of an original checkpoint; `prefix` comes from `google.find`."""
    config = rules.config_beside(prefix)
    if config is not None and not isinstance(config, T5Config):
        raise InputError(f"{prefix}: the {rules.CONFIG} beside it is not that of a T5; remove it.")
    notes = () if config else (
        "The configuration is that of the shapes; dropout_rate is 0.1, what they do not show.",)
    config = config or _mesh_config(prefix, tensors)
    is_legacy = any("/layer_norm/" in name for name in tensors)
    return Source(prefix, config, tensors, _mesh_table(config.has_encoder, is_legacy),
                  rules.vocabulary_beside(prefix), notes=notes)


def table_for(weights: Weights) -> Format:
    """Returns the table to write `weights` with, from the code of their release."""
    return _mesh_table(weights.config.has_encoder, not weights.config.is_gated)


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `model.ckpt.*`, `bert_config.json` and the vocabulary into `folder`. `tensors` have
    the original's names."""
    tf.raw_ops.SaveV2(prefix=os.path.join(folder, "model.ckpt"), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors),
                      tensors=[tensor.read() for tensor in tensors.values()])
    weights.config.to_json_file(os.path.join(folder, rules.CONFIG))
    if weights.tokenizer:
        weights.tokenizer.save(folder)
