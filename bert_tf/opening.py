"""A model of any format, opened: configuration, tokenizer, task, heads and weights. The header is
read once, values when a network takes them."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

from bert_tf import checkpoints, networks, objectives, recipes, training
from bert_tf.checkpoints import keras_file, names, quantised
from bert_tf.errors import InputError, warn
from bert_tf.files import fetched, is_folder, real_path
from bert_tf.heads import HEADS
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.tasks.task import OWN, Task
from bert_tf.tokenization import Tokenizer, check_fits, open_tokenizer
from bert_tf.tokenization.library_settings import told_length

# Heads that Hugging Face's classes have for tasks, and the kinds of tasks that they answer.
TASK_HEADS = {**dict(zip(names.CLASSIFIERS, names.CLASSIFIERS)), "answer_span": "span",
              "conditional_span": "span"}
_LONGEST = 512      # tokens of a text, where the network knows no limit


@dataclasses.dataclass(repr=False)
class Model:
    """A model before it is built.

    Attributes:
        path: folder or file of its weights, in any format; "" for random ones.
        weights: `checkpoints.Weights`, or None for random ones.
        saved: the `SavedTask` next to the weights, or None.
        vocab_file: the vocabulary's file; "": the one next to the weights.
        do_lower_case: whether the tokenizer lower-cases; None: as the files show.
        max_seq_length: S of the texts to read; 0: not decided yet.
    """

    path: str
    config: Any
    weights: "checkpoints.Weights | None" = None
    saved: SavedTask | None = None
    vocab_file: str = ""
    do_lower_case: bool | None = None
    max_seq_length: int = 0

    def __repr__(self) -> str:
        task = self.saved and self.saved.task
        what = f"fine-tuned for {task.name}, {task.kind.title}" if task else "no task"
        return f"Model({self.path!r}: {self.config.model_type}, {what})"

    @property
    def folder(self) -> str:
        return folder_of(self.path)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, whose vocabulary fits the network; InputError if there is no such."""
        own = self.weights and self.weights.vocab_file
        path = self.vocab_file or own
        if not path:
            where = f"beside {self.weights.source}" if self.weights else "without --init_checkpoint"
            raise InputError(f"--vocab_file must be given: there is no vocabulary {where}.")
        lower = next((known for known in (
            self.do_lower_case, self.saved and self.saved.do_lower_case,
            self.weights and self.weights.do_lower_case) if known is not None), None)
        recipe, settings = recipes.RECIPES.get(self.config.model_type), {}
        if recipe and not self.saved and path.endswith(".txt"):
            settings = recipe.tokenizer_settings
        tokenizer = open_tokenizer(path, lower, self.config.vocab_size, **settings)
        check_fits(tokenizer.vocabulary, self.config.vocab_size, f"--vocab_file={path}")
        if not self.config.has_segments:        # heads that compare two texts find them by segments
            vocabulary = tokenizer.vocabulary
            vocabulary.layout = dataclasses.replace(vocabulary.layout, one_segment=False)
        if own and path != own and not open_tokenizer(
                own, rows=self.config.vocab_size).vocabulary.agrees(tokenizer.vocabulary):
            raise InputError(f"--vocab_file={path} is not the model's vocabulary, which is {own}; "
                             "leave the flag out.")
        return tokenizer

    @property
    def heads(self) -> tuple[tuple[str, dict], ...]:
        """The class and the arguments of each head that our file describes, else of `saved`'s."""
        if self.weights and self.weights.origin and self.weights.origin.objectives:
            return self.weights.origin.objectives
        if not self.saved:
            return ()
        name, options = self.saved.task.kind.head(self.saved.task, self.saved.options)
        return ((HEADS[name].objective, options),)

    def take_weights(self) -> "checkpoints.Weights | None":
        """Gives the weights away, which for some formats are whole in memory."""
        taken, self.weights = self.weights, None
        return taken

    def load(self, model) -> "checkpoints.Account":
        """Gives an encoder or a Learner the weights; see `checkpoints.load`."""
        return checkpoints.load(self.weights or self.path, model)

    def network(self, dtype: str | None = None):
        network = networks.build(self.config, dtype=dtype)
        self.load(network)
        return network

    def learner(self, dtype: str | None = None,
                heads: Sequence[tuple[str, dict]] | None = None) -> "training.Learner":
        """Builds the Learner with all its weights. `heads`: class and arguments of each objective;
        None: those of the model."""
        learner = training.Learner(networks.build(self.config, dtype=dtype), [
            getattr(objectives, name).from_config(
                {**options, "config": self.config.to_dict(), "dtype": dtype})
            for name, options in (self.heads if heads is None else heads)])
        account = self.load(learner)
        missing = account.missing
        if all(head.reads_masked or getattr(head, "source", "") == "sequence_output"
               for head in learner.objectives):
            missing = [name for name in missing if names.head(name) != "pooler"]
        advice = "; give a model that was trained for this task."
        if {*map(names.head, missing)} == {"pooler"}:
            advice = ", which its head reads; use a complete checkpoint."
        if missing:
            raise InputError(f"{account.source} has no {', '.join(missing)}{advice}")
        return learner


def folder_of(path: str) -> str:
    """The folder of the checkpoint at `path`, which is that folder or a file in it."""
    return path if is_folder(path) else os.path.dirname(path)


def check_apart(flag: str, path: str, output_dir: str) -> None:
    """Raises InputError if training would overwrite the model of a flag."""
    if real_path(folder_of(path) or ".") == real_path(output_dir):
        raise InputError(f"--output_dir is the folder of --{flag}={path}, and the model would be "
                         "overwritten; name another folder.")


def open_model(path: str | os.PathLike, config_file: str | None = None,
               vocab_file: str | None = None, do_lower_case: bool | None = None,
               finetuned: bool = False) -> Model:
    """Opens the model at `path`, whose tensors must fit its configuration.

    Args:
        path: a folder or file of any format that `checkpoints.load` reads; "" for random weights.
        config_file: its configuration; None: the one next to the weights.
        finetuned: whether it must be a folder of a model that was fine-tuned for one task; its
            `model.keras` is read then, not the checkpoints of the training. Without one, it may be
            in Hugging Face's format, whose config.json describes the task.
    """
    path = fetched(path)
    if finetuned and (model := _described_by_labels(path)):
        return model
    file, saved, weights = path, None, None
    if finetuned:
        file, saved = finetuned_file(path)
    elif path:
        saved = SavedTask.read(folder_of(path))
    config: Any = config_file and checkpoints.read_config_file(config_file)
    if path:
        weights = checkpoints.read_for(file, config) if config else checkpoints.read(file)
        config = weights.config
    elif not config:
        raise InputError("--init_checkpoint must be given, or --bert_config_file to start from "
                         "random weights.")
    model = Model(path, config, weights, saved, vocab_file or "", do_lower_case)
    if finetuned and len(model.heads) > 1:
        raise InputError(f"{file} is not the fine-tuned model of the {TASK_FILE} beside it, but a "
                         f"pre-trained one with {', '.join(name for name, _ in model.heads)}; put "
                         "the fine-tuned model back.")
    return model


def _options_of_spans(model, head):
    """Returns the options of a question answering model as transformers reads its examples."""
    if model.tokenizer.vocabulary.layout.cls_last:
        # The passage comes first, in transformers too; only one of the two heads has beams.
        if head == "answer_span":
            return {"squad_style": "xlnet", "start_n_top": 0}
        return {"squad_style": "xlnet", **model.weights.origin.options}
    if model.tokenizer.word_prefix or model.tokenizer.name == "tokenizer_json":
        return {"squad_style": "transformers"}
    return {}


def task_of_labels(path: str) -> SavedTask | None:
    """Returns the task that the config.json of a folder in Hugging Face's format describes, if it
    has the head of a task; None for other folders, and for a head that is none of ours."""
    with contextlib.suppress(InputError):
        if path and (model := _described_by_labels(path)):
            return model.saved
    return None


def _described_by_labels(path):
    """The `Model` of a folder in Hugging Face's format with a head of a task; None of others."""
    if SavedTask.read(path) or "huggingface" not in checkpoints.weights_at(path):
        return None
    weights = checkpoints.read(path)
    head = next((head for head in weights.heads if head in TASK_HEADS), None)
    if not head:
        if unused := next((name for name in weights.ignored if "classifier" in name), None):
            raise InputError(f"{weights.source}: {unused} is not used: it is "
                             f"{weights.ignored[unused]}.")
        return None
    if not weights.vocab_file:
        raise InputError(f"there is no vocabulary beside {weights.source} that can be read; put "
                         "its tokenizer.json, vocab.txt, vocab.json and merges.txt, or the file "
                         "that ends in .model there.")
    model = Model(path, weights.config, weights)
    kind = KINDS[TASK_HEADS[head]]
    labels = _labels(weights, head, kind)
    options = kind.options({}, {}, False, path)
    if kind.name == "span":
        options = options | _options_of_spans(model, head)
    longest = weights.config.max_position_embeddings
    if "max_position_embeddings" in weights.config.absent_names:
        longest = _LONGEST
    model.saved = SavedTask(Task(OWN, kind, {}, labels, kind.own_metrics), told_length(
        model.folder, longest), model.tokenizer.do_lower_case, options)
    return model


def check_regression(weights: Any) -> None:
    """Raises InputError if `weights` have a regression of several numbers."""
    bias = weights.tensors.get("regression/dense/bias")
    if bias and bias.shape != (1,):
        raise InputError(f"{weights.source} gives {bias.shape[0]} numbers for a text, but a "
                         "regression here gives one: train a new head with bert-finetune "
                         "--keep_head=False, or open this model with transformers.")


def _labels(weights, head, kind):
    """The labels of a head, with the names that transformers gives where config.json has none."""
    count = 0
    if head in names.CLASSIFIERS:
        count = weights.tensors[f"{head}/dense/bias"].shape[0]
    check_regression(weights)
    count *= kind.has_labels
    if count and len(weights.labels) not in (0, count):
        warn(f"{weights.source} has {count} labels, but id2label in the config.json beside it "
             f"names {len(weights.labels)}: {', '.join(weights.labels)}; so they are called "
             "LABEL_0 and so on")
    if len(weights.labels) == count:
        return weights.labels
    return tuple(f"LABEL_{number}" for number in range(count))


def finetuned_file(path: str) -> tuple[str, SavedTask]:
    """The file of the weights of a fine-tuned model, floats or integers, and its `SavedTask`;
    InputError if there is no such model at `path`."""
    file: str | None = os.path.join(path, keras_file.NAME)
    if not keras_file.find(str(file)):
        file = quantised.find(path)
    if not file:
        if not checkpoints.weights_at(path):
            checkpoints.read_source(path)       # says why there is no model at all
        raise InputError(f"there is no {keras_file.NAME} in {path}; name the --output_dir of a "
                         "fine-tuning run, or a folder of Hugging Face with the head of a task.")
    saved = SavedTask.read(path)
    if not saved:
        names.check_one_task(path)
        raise InputError(f"there is no {TASK_FILE} in {path}, so the task of the model is not "
                         f"known; fine-tune it with bert-finetune --init_checkpoint={path}, or use "
                         "Predictor.from_learner.")
    return file, saved
