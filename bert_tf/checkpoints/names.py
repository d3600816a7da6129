"""Names and shapes of a network's weights, to which the tables of all formats refer, and names of
the files of a model.

A name is a variable's path relative to the network, as in Google's files. The names of a head's
weights begin with the head's name. "{i}" is the number of a layer; layers that share weights have
the numbers of `EncoderConfig.layer_weights`. A shape has one letter per axis; a digit is itself.

The configuration gives the sizes of V tokens of the vocabulary, T segments, M tasks, P positions,
E width of the embeddings, H width of the layers (the hidden size), I width of the feed-forward
layer, N attention heads, D width of an attention head, A width of all heads with queries and keys
(and inner width of MobileBERT's layers), Z width of all heads, J = 2 H, L steps of a Universal
Transformer's layer, O buckets of relative positions, X width of the vectors that predict hidden
tokens, Y = X - E, S width of the input of the dense layer of MobileBERT's embeddings, and, where
matrices are joined, q of queries, keys and values, and g = 2 I of a gate and its input.

The weights give the sizes of C labels, Q width of a head's hidden layer, F width of the features
that a head reads, U width of an LSTM, G gates of a recurrent layer (4 U of an LSTM, 3 H of a GRU),
K layers of a weighted sum, R places in a span, W width of the embedding of a place, B = 2 H + W.
Recurrent networks use these letters for other sizes.
"""

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from bert_tf import heads
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.files import absolute, exists, is_file, is_folder, list_folder

# The file with the model that a training run writes into its folder.
MODEL_FILE = "model.keras"
# The best weights so far of a run that stops early; the model that the run saves has them.
BEST_FILE = "best.safetensors"

# The embeddings, and the parts of a layer, with their kinds. "split" and "join" are dense layers
# into and out of the heads of attention; some formats give the heads an axis of their own.
EMBEDDINGS = {"word_embeddings": "table", "token_type_embeddings": "table",
              "position_embeddings": "table", "LayerNorm": "norm"}
LAYER = {"attention/self/query": "split", "attention/self/key": "split",
         "attention/self/value": "split", "attention/output/dense": "join",
         "attention/output/LayerNorm": "norm", "intermediate/dense": "dense",
         "output/dense": "dense", "output/LayerNorm": "norm"}

# The ranges that a layer trained with rounding has besides its weights (layers/quantisation.py).
RANGES = ("steps", "input_threshold", "output_threshold")

# The tensors with ranges where all tensors of a layer are rounded (models/mobilebert/affine.py),
# by the end of the name of a weight of the same layer.
MOVING_RANGES = {"/kernel": ("input",), "/gamma": ("input", "beta", "gamma", "product"),
                 "/query/kernel": ("scores", "masked", "summed", "context")}
MOVING_PARTS = ("steps", "low", "high")

# How the names of the encoder proper begin.
NETWORK = ("embeddings", "embeddings_project", "encoder", "decoder", "logits")
# The parts that are not of the encoder proper, and may be absent.
HEADS = ("pooler", *heads.HEADS)
# The heads that share one name in Google's and Hugging Face's files.
CLASSIFIERS = tuple(head.name for head in heads.HEADS.values() if head.is_classifier)
# A model of several tasks: next to its `model.keras`, a folder `tasks` has a folder for each task,
# with `task.json` and the vocabulary. As the path of a checkpoint, it is the model with this head.
TASKS = "tasks"


def _heads(named):
    """(name, `Head`) of the rows of `HEADS`, then of the heads with names of their own."""
    return [*heads.HEADS.items(), *((name, heads.HEADS[row]) for name, row in named.items())]


def optional(named: Mapping[str, str] = MappingProxyType({})) -> set[str]:
    """The weights that a file may lack: some of heads (for `named` see `shapes`), the table of
    tasks, and the vector of masked tokens, which the original's XLNet has in pre-training alone."""
    return {"embeddings/task_type_embeddings", "embeddings/mask_emb"} | {
        f"{name}/{part}" for name, head in _heads(named) for part in head.optional}


def shapes(config: EncoderConfig, named: Mapping[str, str] = MappingProxyType({})
           ) -> dict[str, str]:
    """The shapes, in letters, of all weights that a network and its heads have, by names with "{i}"
    for the number of a layer. `named`: the rows in `heads.HEADS` of heads with own names."""
    by_name = {}
    for name, shape in config.weights().items():
        kind, _, letters = shape.rpartition(" ")
        if kind == "dense":
            by_name |= {f"{name}/kernel": letters, f"{name}/bias": letters[1:]}
        elif kind == "norm":
            by_name |= {f"{name}/gamma": letters, f"{name}/beta": letters}
        else:
            by_name[name] = letters
    by_name |= {weight: shape for name, head in _heads(named) for part, shape in head.shapes.items()
                if (weight := f"{name}/{part}") not in config.absent_weights}
    how = config.quantisation
    if how and how.scheme == "affine":
        by_name |= dict.fromkeys(_moving_ranges(by_name), "")
    elif how and how.keeps_ranges:
        layers = ["embeddings", *(name.removesuffix("/kernel") for name in by_name
                                  if name.endswith("/kernel"))]
        by_name |= {f"{layer}/ranges/{name}": "" for layer in layers for name in RANGES}
    return by_name


def _moving_ranges(weights):
    """The names of the ranges where all tensors of the encoder's layers are rounded."""
    for name in weights:
        for end, tensors in MOVING_RANGES.items():
            if name.startswith("encoder/") and name.endswith(end):
                place = name.removesuffix(end)
                yield from (f"{place}/ranges/{tensor}_{part}" for tensor in tensors
                            for part in MOVING_PARTS)


def is_range(name: str) -> bool:
    """Returns whether a weight is a range of `RANGES`; a model that was never rounded has none."""
    return "/ranges/" in name


def head(name: str) -> str:
    """The head, or the part of the encoder, that a name belongs to."""
    return name.split("/")[0]


def numbered(name: str, number: int, config: EncoderConfig) -> str:
    """`name` with the number of a layer for "{i}", or in three digits for "{i:03}"; "{g}" is the
    layer's group, and "{j}" its number in that group."""
    group, inner = divmod(number, config.inner_group_num)
    return name.format(i=number, g=group, j=inner)


def averages(names: Iterable[str]) -> dict[str, str]:
    """Returns the names of the averages in a training checkpoint of these names, by the names of
    their weights; {} if the run's optimizer keeps none."""
    slots = {name.rpartition("/")[2]: name for name in names if name.startswith("optimizer/")}
    averaged = {name: f"{name.removeprefix('learner/').replace('/', '_')}_average"
                for name in names if name.startswith("learner/")}
    return {name: slots[average] for name, average in averaged.items() if average in slots}


def task_folder(folder: str, task: str) -> str:
    return os.path.join(folder, TASKS, task)


def tasks_beside(folder: str) -> list[str]:
    """Returns the tasks of the model in `folder`; [] for a model of one task."""
    path = os.path.join(folder, TASKS)
    return sorted(list_folder(path)) if is_folder(path) else []


def known_task_folder(path: str, task: str) -> str:
    """The folder of a task of the model in the folder `path`; InputError if it has no such task."""
    known = tasks_beside(path)
    if task not in known:
        raise InputError(f"{path} has no task {task!r}; it has "
                         f"{', '.join(known) or 'one task alone: leave it out'}.")
    return task_folder(path, task)


def check_one_task(path: str) -> None:
    """Raises InputError if the model in the folder `path` has several tasks."""
    if tasks := tasks_beside(path):
        raise InputError(f"{path} holds a model of several tasks, {', '.join(tasks)}; name one of "
                         f"them with task= (--task), or its folder, such as "
                         f"{task_folder(path, tasks[0])}.")


def with_head_of(path: str, task: str) -> str:
    """Returns a model's path (or ""), for a model of several tasks with the head of `task`."""
    known = path and tasks_beside(path)
    if not known:
        return path
    if task not in known:
        raise InputError(f"{path} has no head for the task {task}; it has heads for "
                         f"{', '.join(known)}: name the folder of one task, such as "
                         f"{task_folder(path, known[0])}.")
    return task_folder(path, task)


def resolve(file: str) -> tuple[str | None, str]:
    """(task, path of the weights). A real file has no task and holds its own weights."""
    folder = os.path.dirname(absolute(file))
    tasks, task = os.path.split(folder)
    shared = os.path.join(os.path.dirname(tasks), MODEL_FILE)
    if os.path.basename(tasks) == TASKS and not exists(file) and is_file(shared):
        return task, shared
    return None, file


def of_task(task: str, tensors: dict, rows: dict, objectives: list, file: str) -> tuple[dict, dict]:
    """A file's tensors and heads without the heads of other tasks; the task's head has the name of
    its row. `rows` are {head's name: `heads.Head`} in the order of the `objectives`."""
    names = [options.get("name") for _, options in objectives]
    if task not in names:
        raise InputError(f"{resolve(file)[1]} has no head for the task {task}; it has heads for "
                         f"{', '.join(map(str, names))}.")
    head = list(rows)[names.index(task)]
    selected = {}
    for name, tensor in tensors.items():
        first, _, rest = name.partition("/")
        if first == head:
            selected[f"{rows[head].name}/{rest}"] = tensor
        elif first not in rows:
            selected[name] = tensor
    return selected, {rows[head].name: rows[head]}
