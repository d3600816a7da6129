"""T5's weights in checkpoints of the original (tensorflow/mesh)."""

import re

from bert_tf.checkpoints import google, rules
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import T5Config
from bert_tf.errors import InputError

_ATTENTION = ("query", "key", "value", "output")
_DENSE = ("wi", "wi_0", "wi_1", "wo")
_KINDS = {"attention": "SelfAttention", "cross_attention": "EncDecAttention"}


def parts(stack, reads_encoder=True):
    """The parts of a layer of a stack, in their order: the name of each, the name in all files, and
    the names of its matrices, ours and the files'."""
    names = ["attention", *["cross_attention"] * (stack == "decoder" and reads_encoder)]
    return [*((name, _KINDS[name], {own: own[0] for own in _ATTENTION}) for name in names),
            ("feed_forward", "DenseReluDense", {own: own for own in _DENSE})]


# The original's name of a norm inside a layer, and of a stack's last norm, by version of its code.
_NORMS = {False: ("rms_norm", "rms_norm"), True: ("layer_norm", "final_layer_norm")}


def _mesh_table(has_encoder, is_legacy):
    inner, last = _NORMS[is_legacy]
    rows: list[tuple] = [
        ("embeddings/word_embeddings", f"{'shared' if has_encoder else 'decoder'}/embedding",
         SELF), ("logits/kernel", "decoder/logits/kernel", SELF)]
    for stack in ("encoder", "decoder"):
        block = f"{stack}/block_{{i:03}}"
        rows += [(f"{stack}/relative_attention_bias/weight",
                  f"{stack}/block_000/layer_000/SelfAttention/relative_attention_bias", SELF),
                 (f"{stack}/layer_norm/scale", f"{stack}/{last}/scale", SELF)]
        for number, (part, kind, matrices) in enumerate(parts(stack, has_encoder)):
            ours, layer = f"{stack}/layer_{{i}}/{part}", f"{block}/layer_{number:03}"
            end = "/kernel" if part == "feed_forward" else ""
            rows += [(f"{ours}/layer_norm", f"{layer}/{inner}", (("/scale", "/scale"),)),
                     *((f"{ours}/{own}/kernel", f"{layer}/{kind}/{name}{end}", SELF)
                       for own, name in matrices.items())]
    return Format(tuple(rows), ((r"global_step|.*_slot_(v|vr|vc|m)", "state of the optimizer"),))


def _mesh_config(prefix, tensors):
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
        raise InputError(f"{prefix} does not hold the tensors of a T5 ({error}); name "
                         "another checkpoint.") from None


def read(prefix: str, tensors: dict[str, Tensor]) -> Source:
    config = rules.config_beside(prefix)
    if config is not None and not isinstance(config, T5Config):
        raise InputError(f"{prefix}: the {rules.CONFIG} in the same folder is not a configuration "
                         "of T5; remove it.")
    notes: tuple[str, ...] = ()
    if config is None:
        config = _mesh_config(prefix, tensors)
        notes = ("The configuration is that of the shapes; dropout_rate is 0.1, what they do not "
                 "show.",)
    is_legacy = any("/layer_norm/" in name for name in tensors)
    return Source(prefix, config, tensors, _mesh_table(config.has_encoder, is_legacy),
                  rules.vocabulary_beside(prefix), notes=notes)


def table_for(weights: Weights) -> Format:
    """The table of the code of their release."""
    return _mesh_table(weights.config.has_encoder, not weights.config.is_gated)


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    google.save(folder, "model.ckpt", {name: tensor.read() for name, tensor in tensors.items()})
    google.write_around(folder, weights)
