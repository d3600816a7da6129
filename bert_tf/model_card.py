"""Model cards: a README.md in the folder of a model, from the files in this folder."""

import json
import os
import re
import shlex
import textwrap
from typing import Any

from bert_tf import files
from bert_tf.checkpoints.names import MODEL_FILE, TASKS, resolve, task_folder, tasks_beside
from bert_tf.files import FLAGFILE, is_file, is_folder, open_file, read_json
from bert_tf.heads import HEADS
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask

NAME = "README.md"
_MARK = "<!-- A model card of bert_tf, which is written again with the model. -->"
_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
_SETTINGS = ("learning_rate", "train_batch_size", "num_train_epochs", "num_train_steps",
             "max_seq_length", "long_text", "seed", "step", "recipe", "teacher", "predecessor")
_EXAMPLES = {"tagging": '"John Smith lives in New York City."',
             "span": '("Who wrote it?", "Jane Austen wrote Emma.")',
             "text_to_text": '"cola sentence: The door is open."',
             "word_in_context": '("They sat by the ", "bank", ".", "Ask the ", "bank", ".")',
             "coreference": '("", "Anna", " left when she had won.", '
                            '"Anna left when ", "she", " had won.")',
             "pronoun_ranking": '("Anna met Mary when ", " had won.", "Anna", "Mary")'}

# The counts in manifests of fine-tuning.
_COUNTED = ("examples", "questions")
# The Hub's names of tasks, by the end of the name of transformers' class.
_PIPELINES = {"SequenceClassification": "text-classification", "Model": "feature-extraction",
              "TokenClassification": "token-classification", "MultipleChoice": "multiple-choice",
              "QuestionAnswering": "question-answering", "MaskedLM": "fill-mask",
              "QuestionAnsweringSimple": "question-answering"}
# The Hub's names of the data of named tasks, and of scores.
_DATASETS = {"nyu-mll/glue": ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte",
                              "wnli", "ax"),
             "aps/super_glue": ("boolq", "cb", "copa", "multirc", "record", "wic", "wsc",
                                "superglue-rte", "ax-b", "ax-g"),
             "stanfordnlp/snli": ("snli",), "facebook/xnli": ("xnli",),
             "eriktks/conll2003": ("conll2003",), "rajpurkar/squad": ("squad",),
             "rajpurkar/squad_v2": ("squad_v2",)}
_METRICS = {**{name: name for name in ("accuracy", "f1", "precision", "recall", "exact_match")},
            "matthews": "matthews_correlation", "pearson": "pearsonr", "spearman": "spearmanr",
            "exact": "exact_match", "em": "exact_match", "macro_f1": "f1", "micro_f1": "f1",
            "mae": "mae", **{f"entity_{name}": name for name in ("f1", "precision", "recall")}}
# A path to another folder of this disk: the value of a flag, or one of several.
_LOCAL = re.compile(r"""(?<=[=,'"])(?:~|\.\.)?/[^,'"\n\\]*""")


def write_card(folder: str | os.PathLike, base: str | None = "", command: str = "",
               source: str = "", name: str = "", note: str = "", snippet: str | None = None,
               file: str = NAME, temporary: str = "", saved: SavedTask | None = None,
               scored: str | None = "") -> str | None:
    """Writes README.md next to a model: its description, base, data, settings, scores, labels and
    licence, the code that uses it, and the command that made it.

    Returns the path, or None if a README.md that someone else wrote is there, which stays, or, with
    a warning, if none could be written.

    Args:
        base: the model that training began with, or that was converted; "": as the folder says;
            None: random weights.
        command: the command that made the model; "": the command in flags.txt.
        source: the folder that all but the configuration is read from; "": the folder itself.
        name: the title; "": the name of the folder.
        note: a sentence on how the base was changed.
        snippet: code that uses the model; None: code with `Predictor`.
        file: the name of the card.
        temporary: a folder that will be removed; the card names no file in it.
        saved: the task, lengths and labels; None: as in the task.json of `source`.
        scored: a sentence on how the scores were measured; None: the card has no scores.
    """
    folder = os.fspath(folder)
    path = os.path.join(folder, file)
    try:
        if files.exists(path) and _MARK not in _read(path):
            return None
        text = card(folder, base, command, source, name, note, snippet, temporary, saved, scored)
        with files.write_aside(path) as written:
            written.write(text)
    except Exception as error:      # damaged files, a network that is gone
        print(f"warning: {path} is not written ({type(error).__name__}: {error})", flush=True)
        return None
    return path


def _head(folder, base, saved, flags, scores, **known):
    """The lines that the Hub reads; values that are empty are left out."""
    from huggingface_hub import ModelCardData  # when a model is there; commands start without it

    named = re.fullmatch("hf://(.+)@.+", base)
    classes = read_json(os.path.join(folder, "config.json"), {}).get("architectures")
    library, made_for = "", ""
    if classes and is_file(os.path.join(folder, "model.safetensors")):
        library, made_for = "transformers", classes[0]
    elif is_file(os.path.join(folder, MODEL_FILE)):
        library = "bert_tf"
    of_hub = re.findall(r"hf://datasets/([\w.-]+/[\w.-]+)", "\n".join(flags))
    data = [name for name, tasks in _DATASETS.items() if saved and saved.task.name in tasks]
    metrics = [_METRICS[name] for score in scores
               if (name := score.rpartition("/")[2].removeprefix("eval_")) in _METRICS]
    values = {"base_model": named[1] if named else _in_card(base, "base_model"),
              "library_name": library, "pipeline_tag": _pipeline(made_for, saved),
              "datasets": list(dict.fromkeys([*data, *of_hub])),
              "metrics": list(dict.fromkeys(metrics)), **known}
    values = {key: value for key, value in values.items() if value}
    return f"---\n{ModelCardData(**values).to_yaml()}\n---\n{_MARK}"


def _pipeline(name, saved):
    """The Hub's name of the task of transformers' class, else of a `SavedTask`, or ""."""
    if name.endswith("ForPreTraining"):     # with a masked LM, or a head that the Hub can't name
        from bert_tf.checkpoints.huggingface_models import MODELS
        fills = any(name == f"{model.classes}{end}" and "masked_lm" in heads
                    for model in MODELS.values() for end, heads in model.pretraining)
        return "fill-mask" if fills else ""
    if not name and saved:
        head, _ = saved.task.kind.head(saved.task, saved.options)
        return _PIPELINES.get(getattr(HEADS.get(head), "huggingface", ""), "")
    return next((task for end, task in _PIPELINES.items()
                 if name.endswith("For" + end) or end == "Model" and name.endswith(end)), "")


def _shown(text):
    """A text without other folders of this disk: of a path to them, only the name stays."""
    def name(match):
        path = match[0].rstrip()
        return os.path.basename(path.rstrip("/")) + match[0][len(path):]
    return _LOCAL.sub(name, text)


def card(folder: str, base: str | None = "", command: str = "", source: str = "", name: str = "",
         note: str = "", snippet: str | None = None, temporary: str = "",
         saved: SavedTask | None = None, scored: str | None = "") -> str:
    """Returns the text of the card of a folder; see `write_card`."""
    name = name or os.path.basename(files.absolute(folder))
    if snippet is None:
        snippet = _snippet(folder, _saved(folder), name)
    source = source or folder
    config = _config(folder) or _config(source)
    saved, flags, trial = saved or _saved(source), _flags(source), _best_trial(source)
    if base == "":
        base = trial.get("init_checkpoint") or next((
            line.partition("=")[2] for line in flags if line.startswith("--init_checkpoint=")), "")
    base = base or ""
    if base and (snapshot := files.snapshot_of(files.fetched(base))):
        base, licence = f"hf://{snapshot.name}@{snapshot.commit}", snapshot.licence
    else:
        licence = _in_card(base, "license")
    scores = {} if scored is None else _read_scores(source)
    kind = config.get("model_type", "bert")
    head = _head(folder, base, saved, flags, scores, license=licence, tags=[kind])
    rows = _table("score", [(name, f"{value:.4f}") for name, value in scores.items()])
    licensed = "That of the base and of the data; the files do not name one."
    if licence:
        licensed = f"{licence}, as its base."
    sections = {
        "Data": _data(source, flags, temporary),
        "Settings": _table("setting", _settings(saved, flags, trial)),
        "Scores": f"{scored}\n\n{rows}" if scored and rows else rows,
        "Labels": _labels(saved) or "\n".join(      # of a model of several tasks
            f"- {task}: {_labels(each) or 'no labels'}" for task, each in _saved_tasks(source)),
        "Use": snippet and f"```python\n{snippet}\n```",
        "Made by": textwrap.indent(_shown(files.name_of_copies(command or " \\\n    ".join(
            map(shlex.quote, filter(None, flags))))), "    "),
        "Licence": licensed}
    what = _what(kind, config, saved, _shown(f"={base}")[1:])
    return "\n\n".join((head, f"# {name}", f"{what} {note}".rstrip(), *(
        f"## {title}\n\n{text}" for title, text in sections.items() if text))) + "\n"


def _config(folder) -> dict[str, Any]:
    """The configuration of the model in a folder, or of the model of several tasks that a task's
    folder belongs to; {} without one."""
    for name in ("bert_config.json", "config.json"):
        if config := read_json(os.path.join(folder, name), {}):
            return config
    task, shared = resolve(os.path.join(folder, MODEL_FILE))
    return _config(os.path.dirname(shared)) if task else {}


def _saved(folder):
    """The task of a fine-tuned model, else None."""
    return SavedTask.read(folder) if is_file(os.path.join(folder, TASK_FILE)) else None


def _what(kind, config, saved, base):
    sizes = ", ".join(f"`{name}` {config[name]:,}" for name in _SIZES
                      if isinstance(config.get(name), int))
    text = f"A model of type {kind}"
    if saved:
        text += f", fine-tuned for {saved.task.kind.title}"
        if saved.task.name != "own":
            text += f" ({saved.task.name})"
    text += f": {sizes}." if sizes else "."
    if base:
        text += f" It began with the weights of `{base}`."
    return text


def _table(heading, rows):
    """A table in Markdown of (name, value); "" without rows."""
    lines = [f"| {name} | {value} |" for name, value in rows]
    return "\n".join([f"| {heading} | value |", "|---|---|", *lines]) if lines else ""


def _settings(saved, flags, trial):
    given = {line.partition("=")[0][2:]: line.partition("=")[2] for line in flags[1:]}
    known = {**given, **trial}
    if saved:
        known |= {"max_seq_length": saved.max_seq_length, **saved.options}
    if given.get("num_train_steps", "0") != "0":    # of several tasks there are both
        known.pop("num_train_epochs", None)
    return [(f"`{key}`", _shown(f"={known[key]}")[1:]) for key in _SETTINGS
            if known.get(key) not in (None, "")]


def _labels(saved):
    task = saved and saved.task
    return task and ", ".join(
        f"`{label}`" if label == shown else f"`{label}` ({shown})"
        for label, shown in zip(task.labels, task.label_names or task.labels))


def _saved_tasks(folder):
    if not is_folder(os.path.join(folder, TASKS)):
        return []
    tasks = [(name, SavedTask.read(task_folder(folder, name))) for name in tasks_beside(folder)]
    return [(name, saved) for name, saved in tasks if saved]


def _read(path):
    with open_file(path, errors="replace") as file:
        return file.read()


def _flags(folder):
    """The name of the command in flags.txt ("" if a file does not say it) and the lines of its
    flags; [] without the file."""
    path = os.path.join(folder, FLAGFILE)
    if not is_file(path):
        return []
    lines = [line.strip() for line in _read(path).splitlines() if line.strip()]
    said = lines and re.match(r"#\s*(\S+)", lines[0])
    return [said[1] if said else "", *(line for line in lines if not line.startswith("#"))]


def _best_trial(folder):
    path = os.path.join(folder, "results.json")
    if not is_file(path):
        return {}
    results = read_json(path)
    best = results["best"]
    trial = read_json(os.path.join(folder, "trials", best, "trial.json"), {"settings": {}})
    return {**trial["settings"], **results["trials"].get(best, {})}


def _data(folder, flags, temporary):
    """Lines on the records next to the model, or on the files that the flags name."""
    lines = []
    for split in ("train", "dev", "test"):
        if manifest := read_json(os.path.join(folder, "records", f"{split}.manifest.json"), {}):
            names = [each["name"] for each in manifest.get("inputs", ())
                     if not temporary or os.path.dirname(each["name"]) != temporary]
            sources = ", ".join(f"`{_shown(f'={name}')[1:]}`" for name in names)
            number = ", ".join(f"{manifest['counts'][name]:,} {name}" for name in _COUNTED
                               if name in manifest.get("counts", {}))
            lines.append(f"- {split}: " + " of ".join(filter(None, (number, sources))))
    return "\n".join(lines) or "\n".join(
        f"- `{_shown(line.removeprefix('--'))}`" for line in flags if "input_file=" in line)


def _read_scores(folder):
    path, text = (os.path.join(folder, name) for name in ("metrics.json", "eval_results.txt"))
    if is_file(path):
        return {key: value for key, value in read_json(path)["metrics"].items()
                if isinstance(value, (int, float))}
    if not is_file(text):
        return {}
    pairs = (line.strip().split(" = ") for line in _read(text).splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs
            if len(pair) == 2 and pair[0] != "global_step"}


def _snippet(folder, saved, name):
    """Python that uses the model; "" for formats that other libraries open."""
    if not saved and not is_file(os.path.join(folder, "model.keras")):
        return ""
    opened, note = json.dumps(name), ""
    if tasks := _saved_tasks(folder):
        (first, saved), *others = tasks
        opened += f", task={json.dumps(first)}"
        if others:
            note = "    # or " + ", ".join(other for other, _ in others)
    if not saved:
        return (f"import bert_tf\n\nencoder = bert_tf.open_model({json.dumps(name)}).network()\n"
                "# of a model with a masked LM:\n"
                f"# bert_tf.FillMask({json.dumps(name)})(\"The [MASK] is open.\")")
    kind = saved.task.kind
    count = saved.num_texts or max(kind.texts[0], 1)
    texts = ", ".join(['"A text."', '"Another."', *['"A third."'] * (count - 2)][:count])
    example = _EXAMPLES.get(kind.name) or (f"({texts})" if count > 1 else texts)
    return (f"import bert_tf\n\npredictor = bert_tf.Predictor({opened}){note}\n"
            f"print(predictor({example}))")


def _in_card(base, key):
    """The value of a key in the card of the base, "" if it has none."""
    folder = base if is_folder(base) else os.path.dirname(base)
    path = os.path.join(folder, NAME)
    if not base or not is_file(path):
        return ""
    return files.in_card(path, key)
