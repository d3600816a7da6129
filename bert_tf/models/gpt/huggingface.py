"""Hugging Face's `openai-gpt`: `model.safetensors` with a `config.json`."""

from bert_tf.checkpoints import huggingface_tokenizer, rules, safetensors_files
from bert_tf.checkpoints.huggingface_config import our_activation
from bert_tf.checkpoints.rules import Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import GPTConfig
from bert_tf.errors import InputError, naming
from bert_tf.models.gpt import weights as openai_gpt

TYPE = "openai-gpt"
_PREFIX = "transformer."
_KEYS = {"vocab_size": "vocab_size", "n_embd": "hidden_size", "n_layer": "num_hidden_layers",
         "n_head": "num_attention_heads", "n_positions": "max_position_embeddings",
         "resid_pdrop": "hidden_dropout_prob", "attn_pdrop": "attention_probs_dropout_prob",
         "embd_pdrop": "embedding_dropout_prob", "layer_norm_epsilon": "layer_norm_eps",
         "initializer_range": "initializer_range"}
# transformers' names of our activations: its "gelu" of this type is the tanh form.
_ACTIVATIONS = {"gelu": "gelu", "relu": "relu"}
_NOTE = ("transformers' language model predicts words only; the original's softmax, and ours, runs "
         "over positions too.")
# The only values with which transformers computes the head of choices as the original does.
_SUMMARY = {"summary_type": "cls_index", "summary_activation": None}


def read(file: str, values: dict, tensors: dict[str, Tensor]) -> Source:
    path = rules.beside(file, "config.json")
    prefix = _PREFIX * any(name.startswith(_PREFIX) for name in tensors)
    ours = {name: values[key] for key, name in _KEYS.items() if key in values}
    width = ours.get("hidden_size", GPTConfig.hidden_size)
    ours["intermediate_size"] = 4 * width if isinstance(width, int) else width
    notes: tuple[str, ...] = ()
    words = f"{prefix}tokens_embed.weight"
    tensors = dict(tensors)
    if {"lm_head.weight", words} <= tensors.keys():
        safetensors_files.set_copy_aside(tensors, "lm_head.weight", words, file)
    elif "lm_head.weight" in tensors:       # as transformers 5 saves two heads
        tensors[words] = tensors.pop("lm_head.weight")
    if "multiple_choice_head.summary.weight" in tensors:
        for key, only in _SUMMARY.items():
            if (values.get(key, only) or None) != only:
                raise InputError(f"{path}: {key} must be {only!r}, not {values[key]!r}.")
    if values.get("n_special") != openai_gpt.SPECIAL and words in tensors:
        tensors[words] = openai_gpt.add_special(tensors[words])
        ours["vocab_size"] = tensors[words].shape[0]
        notes = (openai_gpt.SPECIAL_NOTE,)
    with naming(path, {name: key for key, name in _KEYS.items()}):
        config = GPTConfig.from_dict({**ours, "hidden_act": our_activation(
            "afn", values.get("afn", "gelu"), _ACTIVATIONS)})
    return Source(file, config, openai_gpt.split(tensors), openai_gpt.table(prefix),
                  rules.vocabulary_beside(file), notes=notes)


def table_for(weights: Weights) -> Format:
    openai_gpt.check(weights, "huggingface", frozenset(["multiple_choice"]))
    return openai_gpt.table(_PREFIX * bool(weights.heads), (_NOTE,))


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    config = weights.config
    safetensors_files.write(folder, openai_gpt.join(tensors), {
        "architectures": [f"OpenAIGPT{'DoubleHeads' if weights.heads else ''}Model"],
        "model_type": TYPE, **{key: getattr(config, ours) for key, ours in _KEYS.items()},
        "afn": config.hidden_act, "n_special": openai_gpt.SPECIAL,
        "summary_type": "cls_index", "summary_use_proj": True})
    huggingface_tokenizer.write(folder, weights.tokenizer, False, config.max_position_embeddings)
