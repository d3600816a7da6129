"""Hugging Face's `config.json` of a BERT, read and written."""

import dataclasses

from bert_tf.checkpoints import names
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.heads import HEADS

_ACTIVATIONS = {"gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu",
                "gelu_pytorch_tanh": "gelu", "relu": "relu", "tanh": "tanh", "linear": "linear"}
# Settings that would make another network of the same tensors.
_FIXED = {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False,
          "add_cross_attention": False}
_TASKS = [head for head in HEADS.values() if head.task and head.huggingface]
# Which classes have which heads; the first whose heads are all there is the one that is written.
_CLASSES = (
    *((f"BertFor{head.huggingface}", {head.name})
      for head in sorted(_TASKS, key=lambda head: head.is_classifier)),
    ("BertForPreTraining", {"masked_lm", "next_sentence"}),
    *((f"BertFor{head.huggingface}", {head.name}) for head in HEADS.values() if not head.task),
    ("BertModel", set()),
)
# What a BertForSequenceClassification is for; files may leave it open.
_PROBLEMS = {head.problem_type: head.name for head in HEADS.values() if head.problem_type}


def read(values, path):
    """The `EncoderConfig` that the `values` of a Hugging Face `config.json` describe.

    Raises:
        InputError: they describe another network than BERT's encoder; names `path`.
    """
    for key, only in _FIXED.items():
        if values.get(key, only) != only:
            raise InputError(f"{path}: {key} must be {only!r}, not {values[key]!r}.")
    keys = [field.name for field in dataclasses.fields(EncoderConfig)]
    ours = {"type_vocab_size": 2, **{key: values[key] for key in keys if key in values}}
    activation = values.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise InputError(f"{path}: hidden_act must be one of {', '.join(_ACTIVATIONS)}, "
                         f"not {activation!r}.")
    try:
        return EncoderConfig.from_dict({**ours, "hidden_act": _ACTIVATIONS[activation]})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def labels(values):
    """The names of the classes, in the order of their numbers."""
    numbered = values.get("id2label")
    numbers = list(map(str, range(len(numbered)))) if isinstance(numbered, dict) else []
    found = tuple(numbered.get(number) for number in numbers)
    return found if all(isinstance(label, str) for label in found) else ()


def task(values, hint, single):
    """The head that `classifier` is.

    Args:
        values: those of `config.json`.
        hint: the name of a head, which counts where the values leave a choice.
        single: whether it has one output, as for a number.
    """
    classes = values.get("architectures")
    told = [head for name, heads in _CLASSES for head in names.CLASSIFIERS
            if head in heads and isinstance(classes, list) and name in classes]
    problem = values.get("problem_type")
    if isinstance(problem, str) and _PROBLEMS.get(problem) in told:
        return _PROBLEMS[problem]
    if hint in (told or names.CLASSIFIERS):
        return hint
    return "regression" if single and "regression" in told else (*told, *names.CLASSIFIERS)[0]


def describe(weights):
    """The values of `config.json` for some `Weights`."""
    heads, config = set(weights.heads), weights.config
    back = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    count = next((tensor.shape[0] for name, tensor in weights.tensors.items()
                  if name in [f"{head}/dense/bias" for head in names.CLASSIFIERS]), 0)
    called = weights.labels if len(weights.labels) == count else [
        f"LABEL_{i}" for i in range(count)]
    dtypes = {tensor.dtype for tensor in weights.tensors.values()}
    return {
        "architectures": [next(name for name, needed in _CLASSES if needed <= heads)],
        "model_type": "bert",
        **dataclasses.asdict(config),
        "hidden_act": back[config.hidden_act],
        "pad_token_id": 0,
        "tie_word_embeddings": "masked_lm/output_weights" not in weights.tensors,
        **({"torch_dtype": dtypes.pop()} if len(dtypes) == 1 else {}),
        **({"id2label": {str(i): label for i, label in enumerate(called)},
            "label2id": {label: i for i, label in enumerate(called)}} if count else {}),
        **next(({"problem_type": theirs} for theirs, ours in _PROBLEMS.items()
                if ours in heads - {"classification"}), {}),
    }
