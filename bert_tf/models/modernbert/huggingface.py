"""Hugging Face's files of ModernBERT (transformers, `ModernBertModel` and the classes on top of
it)."""

from bert_tf.checkpoints import huggingface_tokenizer, names, rules, safetensors_files
from bert_tf.checkpoints.huggingface_config import (
    PROBLEMS,
    TASK_CLASSES,
    THEIR_ACTIVATIONS,
    describe_labels,
    named_classifier,
    our_activation,
)
from bert_tf.checkpoints.huggingface_models import DENSE, NORM, TABLE
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights, only_head
from bert_tf.config import ModernBertConfig
from bert_tf.errors import InputError, naming
from bert_tf.files import read_json
from bert_tf.models.modernbert.config import GLOBAL, KINDS, LOCAL
from bert_tf.tokenization.library_settings import settings_beside

TYPE = "modernbert"
_SAME = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
         "intermediate_size", "max_position_embeddings", "initializer_range",
         "global_attn_every_n_layers", "layer_types", "local_attention", "norm_bias",
         "attention_bias", "mlp_bias", "classifier_pooling", "classifier_bias", "decoder_bias")
_RENAMED = {"norm_eps": "layer_norm_eps", "embedding_dropout": "embedding_dropout_prob",
            "mlp_dropout": "hidden_dropout_prob",
            "attention_dropout": "attention_probs_dropout_prob"}
_KEYS = {**dict(zip(_SAME, _SAME)), **_RENAMED}
_ACTIVATIONS = {"hidden_activation": "hidden_act", "classifier_activation": "classifier_activation"}
# The keys of the two bases in files of transformers 4; those of transformers 5 have them by kind.
_THETAS = {GLOBAL: "global_rope_theta", LOCAL: "local_rope_theta"}
_CLASSES = "ModernBert"
# The heads of a class that all have the same layers.
_TASKS = (*names.CLASSIFIERS, "answer_span")
_PREFIX, _WORDS, _HEAD = "model.", "embeddings.tok_embeddings.weight", "head."
# The head of the language model serves as the pooler of a task's model, as in transformers.
_POOLER = "pooler."
_TIES = "tie_word_embeddings"
_NOTES = {"multiple_choice": "The pooling cls of transformers' choices takes the first token that "
                             "is not padding."}


def _table(prefix, task=None, notes=()):
    layer = "encoder/layer_{i}"
    block = f"{prefix}layers.{{i}}"
    rows = [
        ("embeddings/word_embeddings", f"{prefix}{_WORDS}", SELF),
        ("embeddings/LayerNorm", f"{prefix}embeddings.norm", NORM),
        (f"{layer}/attention/LayerNorm", f"{block}.attn_norm", NORM),
        (f"{layer}/attention/self/qkv", f"{block}.attn.Wqkv", DENSE),
        (f"{layer}/attention/output/dense", f"{block}.attn.Wo", DENSE),
        (f"{layer}/LayerNorm", f"{block}.mlp_norm", NORM),
        (f"{layer}/intermediate/dense", f"{block}.mlp.Wi", DENSE),
        (f"{layer}/output/dense", f"{block}.mlp.Wo", DENSE),
        ("encoder/final_norm", f"{prefix}final_norm", NORM),
        ("masked_lm/transform/dense", f"{_HEAD}dense", DENSE),
        ("masked_lm/transform/LayerNorm", f"{_HEAD}norm", NORM),
        ("masked_lm/output_bias", "decoder.bias", SELF),
        ("masked_lm/output_weights", "decoder", TABLE),
        ("pooler/dense", f"{_POOLER}{_HEAD}dense", DENSE),
        ("pooler/LayerNorm", f"{_POOLER}{_HEAD}norm", NORM)]
    if task:
        rows.append((f"{task}/dense", "classifier", DENSE))
    return Format(tuple(rows), (safetensors_files.COPIES,), notes=notes)


def _theta(values, kind):
    """The base of the rotary angles of a kind of layer."""
    key, by_kind = _THETAS[kind], values.get("rope_parameters") or {}
    settings = isinstance(by_kind, dict) and (by_kind.get(kind) or {})
    if not isinstance(settings, dict) or by_kind.keys() - set(KINDS):
        raise InputError(f"rope_parameters must have settings for {' and '.join(KINDS)}, not "
                         f"{by_kind!r}")
    if values.get("rope_scaling"):
        raise InputError(f"rope_scaling must be null, not {values['rope_scaling']!r}")
    if settings.get("rope_type", "default") != "default":
        raise InputError(f"rope_type must be 'default', not {settings['rope_type']!r}")
    theta = values.get(key, getattr(ModernBertConfig, key))
    if "rope_theta" in settings:
        key, theta = f"rope_theta of {kind}", settings["rope_theta"]
    elif theta is None and kind == LOCAL:       # transformers 4: as in global layers
        return _theta(values, GLOBAL)
    if not isinstance(theta, (int, float)) or isinstance(theta, bool):
        raise InputError(f"{key} must be a number, not {theta!r}")
    return theta


def _read_config(values):
    """The configuration in a config.json."""
    ours = {mine: values[theirs] for theirs, mine in _KEYS.items()
            if theirs in values and (values[theirs] is not None or theirs != "layer_types")}
    if isinstance(ours.get("layer_types"), list) and "num_hidden_layers" not in ours:
        ours["num_hidden_layers"] = ModernBertConfig.num_hidden_layers
    ours["attention_output_dropout_prob"] = values.get("attention_dropout", 0.0)
    ours |= {mine: our_activation(theirs, values.get(theirs, "gelu"))
             for theirs, mine in _ACTIVATIONS.items()}
    return ModernBertConfig.from_dict(
        {**ours, **{key: _theta(values, kind) for kind, key in _THETAS.items()}})


def read(file: str, values: dict, found: dict[str, Tensor]) -> Source:
    """The `Source` of Hugging Face's files.

    Raises:
        InputError: the configuration describes another network, or a copy differs from its tensor.
    """
    with naming(rules.beside(file, "config.json")):
        config = _read_config(values)
    prefix = _PREFIX if any(name.startswith(_PREFIX) for name in found) else ""
    found, words = dict(found), f"{prefix}{_WORDS}"
    if values.get(_TIES, True) and {"decoder.weight", words} <= found.keys():
        safetensors_files.set_copy_aside(found, "decoder.weight", words, file)
    # The pooler's, and the language model's too unless there is a task's classifier.
    for name in [name for name in found if name.startswith(_HEAD)]:
        found[f"{_POOLER}{name}"] = found[name]
        if "classifier.bias" in found:
            del found[name]

    def table_of(task=None):
        bias = found.get("classifier.bias")
        return _table(prefix, None if bias is None else named_classifier(
            values, _CLASSES, _TASKS, bias.shape == (1,), task))

    return Source(file, config, found, table_of(), rules.vocabulary_beside(file),
                  settings_beside(file).get("do_lower_case"),
                  safetensors_files.labels(values, file), table_of=table_of)


def table_for(weights: Weights) -> Format:
    """The table to write `weights` with, as Hugging Face's files.

    Raises:
        InputError: Hugging Face has no model with all of its heads.
    """
    task = only_head(weights, _TASKS, "Hugging Face's checkpoints call each of them classifier")
    if task and "masked_lm" in weights.heads:
        raise InputError(f"{weights.source} has the heads masked_lm and {task}, but a Hugging "
                         f"Face class has one head; give --leave_out=masked_lm.")
    return _table(_PREFIX if task or "masked_lm" in weights.heads else "", task,
                  (_NOTES[task],) if task in _NOTES else ())


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    """Writes `model.safetensors`, `config.json` and the tokenizer's files into `folder`."""
    config, heads = weights.config, set(weights.heads)
    task = next((head for head in _TASKS if head in heads), None)
    end = next((end for end, needed in TASK_CLASSES if needed <= heads),
               "ForMaskedLM" if "masked_lm" in heads else "Model")
    problem = next((theirs for theirs, ours in PROBLEMS.items()
                    if ours == task != "classification"), None)
    # Only a model with a task's head has the pooler's tensors, as `head`.
    values = {name.removeprefix(_POOLER): tensor.read() for name, tensor in tensors.items()
              if task or not name.startswith(_POOLER)}
    described = {
        "architectures": [_CLASSES + end],
        "model_type": TYPE,
        **{theirs: getattr(config, ours) for theirs, ours in _KEYS.items()},
        "layer_types": list(config.kinds),
        **{theirs: THEIR_ACTIVATIONS[getattr(config, ours)]
           for theirs, ours in _ACTIVATIONS.items()},
        **{key: getattr(config, key) for key in _THETAS.values()},
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": getattr(config, key)}
                            for kind, key in _THETAS.items()},
        "classifier_dropout": 0.0, _TIES: "decoder.weight" not in values,
        **_special_tokens(weights), **describe_labels(weights, names.CLASSIFIERS),
        **({"problem_type": problem} if problem else {})}
    safetensors_files.write(folder, values, described)
    huggingface_tokenizer.write(folder, weights.tokenizer, False, config.max_position_embeddings)


def _special_tokens(weights):
    """The ids of the special tokens, of the tokenizer, else of the file that was read; else None,
    since transformers' own ids may lie outside of the table."""
    roles = {"pad": "pad", "cls": "cls", "sep": "sep", "bos": "cls", "eos": "sep"}
    path = rules.beside(weights.origin.file, "config.json") if weights.origin else None
    known = read_json(path) if path else {}
    vocabulary = weights.tokenizer and weights.tokenizer.vocabulary
    return {f"{theirs}_token_id": getattr(vocabulary, f"{ours}_id") if vocabulary
            else known.get(f"{theirs}_token_id") for theirs, ours in roles.items()}
