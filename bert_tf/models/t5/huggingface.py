"""Hugging Face's files of T5 (transformers, `T5ForConditionalGeneration`)."""

from bert_tf.checkpoints import huggingface_tokenizer, rules, safetensors_files
from bert_tf.checkpoints.huggingface_models import DENSE
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import T5Config
from bert_tf.errors import InputError, naming
from bert_tf.models.t5.weights import parts

TYPE = "t5"
_KEYS = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads",
         "relative_attention_num_buckets", "relative_attention_max_distance", "dropout_rate",
         "layer_norm_epsilon", "initializer_factor", "feed_forward_proj", "tie_word_embeddings")
# The ids that generation begins with, pads with and ends with, here as in T5.
_FIXED = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}


def _hf_table():
    rows: list[tuple] = [("embeddings/word_embeddings", "shared.weight", SELF),
                         ("logits", "lm_head", DENSE)]
    for stack in ("encoder", "decoder"):
        rows += [(f"{stack}/relative_attention_bias/weight", f"{stack}.block.0.layer.0."
                  "SelfAttention.relative_attention_bias.weight", (("", "", "transpose"),)),
                 (f"{stack}/layer_norm/scale", f"{stack}.final_layer_norm.weight", SELF)]
        for number, (part, kind, matrices) in enumerate(parts(stack)):
            ours, layer = f"{stack}/layer_{{i}}/{part}", f"{stack}.block.{{i}}.layer.{number}"
            rows += [(f"{ours}/layer_norm/scale", f"{layer}.layer_norm.weight", SELF),
                     *((f"{ours}/{own}", f"{layer}.{kind}.{name}", DENSE)
                       for own, name in matrices.items())]
    return Format(tuple(rows), (
        safetensors_files.COPIES,
        (r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
         "not used by any version of the network"),
        (r"(classification_head|qa_outputs)\..*",
         "of a head of a task; here T5 answers tasks in words, see bert-finetune")))


def read(file: str, values: dict, tensors: dict[str, Tensor]) -> Source:
    path = rules.beside(file, "config.json")
    for key, only in _FIXED.items():
        if values.get(key) not in (None, only):
            raise InputError(f"{path}: {key} must be {only}, as in T5, not {values[key]!r}.")
    ours = {key: values[key] for key in _KEYS if key in values}
    keys = {}
    # transformers 5 always writes that they are tied.
    if "scale_decoder_outputs" in values:
        keys = {"tie_word_embeddings": "scale_decoder_outputs"}
        ours |= {key: values[theirs] for key, theirs in keys.items()}
    with naming(path, keys):
        config = T5Config.from_dict(ours)
    if config.num_decoder_layers == config.num_layers:
        config = T5Config.from_dict({**config.to_dict(), "num_decoder_layers": None})
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    stacks = {name.split(".")[0] for name in tensors}
    if "encoder" in stacks and "decoder" not in stacks:
        raise InputError(f"{file} holds T5's encoder without a decoder, and here T5 has both; "
                         "give the folder of a T5ForConditionalGeneration.")
    copies = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
    if config.tie_word_embeddings:
        copies.append("lm_head.weight")
    for copy in copies:
        if copy in tensors and "shared.weight" in tensors:
            safetensors_files.set_copy_aside(tensors, copy, "shared.weight", file)
        elif copy in tensors:
            tensors["shared.weight"] = tensors.pop(copy)
    notes: tuple[str, ...] = ()
    if not config.tie_word_embeddings and (
            "lm_head.weight" not in tensors and "shared.weight" in tensors):
        tensors["lm_head.weight"] = tensors["shared.weight"]
        notes = ("lm_head.weight, which the file does not hold, is shared.weight.",)
    return Source(file, config, tensors, _hf_table(), rules.vocabulary_beside(file), notes=notes)


def table_for(weights: Weights) -> Format:
    if not weights.config.has_encoder:
        raise InputError(f"{weights.source}: architecture is {weights.config.architecture}, but "
                         "Hugging Face's T5 is an encoder_decoder; choose another format.")
    if weights.config.fixed_heads:
        raise InputError(f"{weights.source}: Hugging Face's T5 has no fixed_heads; choose another "
                         "format.")
    return _hf_table()


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    config = weights.config
    safetensors_files.write(folder, {name: tensor.read() for name, tensor in tensors.items()}, {
        "architectures": ["T5ForConditionalGeneration"], "model_type": TYPE,
        **{key: getattr(config, key) for key in _KEYS},
        "num_decoder_layers": config.decoder_layers, "is_encoder_decoder": True,
        **_FIXED})
    huggingface_tokenizer.write(folder, weights.tokenizer, has_segments=False)
