"""Teachers, which are fine-tuned models: whose answers become features of records beforehand, or
which are asked in every step, where their internals, too, are compared with the student's. Shapes:
N examples, C labels, K layers."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import checkpoints
from bert_tf.checkpoints import names
from bert_tf.compression.augmentation import MarkingTokenizer
from bert_tf.compression.student import IS_LABELLED, TEACHER_CLS, TEACHER_LOGITS
from bert_tf.config import Sizes
from bert_tf.data.records.features import Feature
from bert_tf.errors import InputError
from bert_tf.files import digest
from bert_tf.models.tinybert.objective import layer_ratio
from bert_tf.objectives.base import Objective
from bert_tf.opening import finetuned_file, open_model
from bert_tf.recipes.distillation import Distillation
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.tasks.task import Task
from bert_tf.tokenization import Tokenizer, encoding, find_vocabulary, open_tokenizer
from bert_tf.training.batches import answer_rows
from bert_tf.training.distribution import compiled, counted_heads
from bert_tf.training.learners.distiller import Distiller, make_term

_BATCH_SIZE = 32                # examples that a teacher reads at a time
_BY_LABEL = ("logits", "probabilities")      # answers with a number for each label


class Teacher:
    """A fine-tuned model that labels examples, loaded when first used; with its `SavedTask` and its
    network's `config`. InputError if the folder holds no such model, or one without one [CLS]
    vector for each example, although those of some `layers`, from 0, are wanted. With `has_marks`,
    "[MASK]" in texts is the mask token."""

    def __init__(self, folder: str, layers: Sequence[int] = (), has_marks: bool = False):
        self.folder, self.layers, self._has_marks = folder, tuple(layers), has_marks
        self.saved = SavedTask.require(folder, "teacher")
        self._file, _ = finetuned_file(folder)
        self.config: Any = checkpoints.read_config(self._file)
        self._choices = any(feature.axis == "C*S" for feature in self.saved.task.kind.features)
        if layers and (self._choices or _answers_tokens(self.saved.task)
                       or encoding.is_cut_in_windows(self.saved.options)):
            raise InputError(f"--teacher: {folder} has several [CLS] vectors per example, but the "
                             "recipe compares one; give another --recipe.")

    def digest(self) -> str:
        """The digest of the files that its answers depend on."""
        return digest(names.resolve(self._file)[1], os.path.join(self.folder, TASK_FILE))

    @property
    def head(self) -> str:
        task = self.saved.task
        return task.kind.head(task, self.saved.options)[0]

    def check_length(self, max_seq_length: int) -> None:
        if max_seq_length > self.config.max_position_embeddings:
            raise InputError(f"--max_seq_length is {max_seq_length}, but --teacher={self.folder} "
                             f"has only {self.config.max_position_embeddings} positions; give "
                             "fewer.")

    @functools.cached_property
    def _model(self):
        """The Learner, its tokenizer, the names of a batch's features, and their function."""
        model = open_model(self.folder, finetuned=True)
        learner, tokenizer = model.learner(), model.tokenizer
        if self._has_marks:
            tokenizer = MarkingTokenizer(tokenizer)
        ranks = {**dict.fromkeys(learner.reads, 3 if self._choices else 2),
                 **dict.fromkeys(learner.objectives[0].inputs, 2)}
        forward = compiled(
            lambda *ids: self._answers(learner, dict(zip(ranks, ids))),
            input_signature=[tf.TensorSpec([None] * rank, tf.int32, name)
                             for name, rank in ranks.items()])
        return learner, tokenizer, tuple(ranks), forward

    def _answers(self, learner, batch):
        objective, = learner.objectives
        outputs = learner.run_network(batch)
        logits = objective(outputs, batch, learner.encoder.embedding_table)
        answers = objective.answers(logits)
        if self.layers:
            answers[TEACHER_CLS] = tf.cast(tf.stack(
                [outputs["layer_outputs"][layer][:, 0] for layer in self.layers], 1), tf.float32)
        return answers

    def answer(self, task: Task, examples: list) -> dict[str, np.ndarray]:
        """Its answers to examples, with a row for each labelled unit; see `LabelledKind.units`.
        Scores are in the order of the task's labels. Sentences of a document must be together."""
        saved, kind = self.saved, self.saved.task.kind
        _, tokenizer, *_ = self._model
        features, _ = kind.encode(task, examples, tokenizer, saved.max_seq_length, saved.options)
        units = kind.units(self.read(features, saved.max_seq_length), features)
        units = kind.join(units, examples, tokenizer, saved.max_seq_length, saved.options)
        if order := [saved.task.labels.index(label) for label in task.labels]:
            units |= {name: units[name][..., order] for name in _BY_LABEL if name in units}
        return units

    def read(self, features: Mapping[str, np.ndarray], max_seq_length: int
             ) -> dict[str, np.ndarray]:
        """Returns its answers to features of its own tokenizer's records, `max_seq_length` long."""
        learner, _, reads, forward = self._model
        head, = learner.objectives
        return answer_rows(forward, features, reads, max_seq_length, _BATCH_SIZE,
                           head.positional, self._choices, head.inputs,
                           counted_heads(learner.encoder.config))


@dataclasses.dataclass(frozen=True)
class Teachers:
    """One teacher or several, whose "probabilities" or "logits" are averaged; InputError if their
    tasks differ, or several are to give [CLS] vectors."""

    members: tuple[Teacher, ...]
    average: str = "probabilities"

    def __post_init__(self):
        first = self.members[0]
        for other in self.members[1:]:
            task, other_task = first.saved.task, other.saved.task
            if (task.kind, set(task.labels)) != (other_task.kind, set(other_task.labels)):
                raise InputError(f"--teacher: {first.folder} and {other.folder} have different "
                                 "tasks or labels; name models of one task.")
        if first.layers and len(self.members) > 1:
            raise InputError("--teacher names several models, but the recipe compares layers with "
                             "the layers of one model; name one teacher, or another --recipe.")

    def check(self, task: Task) -> None:
        saved = self.members[0].saved.task
        if saved.kind != task.kind or task.labels and set(task.labels) != set(saved.labels):
            raise InputError(f"--teacher: {self.members[0].folder} was trained for "
                             f"{saved.kind.title}{', with the labels ' if saved.labels else ''}"
                             f"{', '.join(saved.labels)}, not for {task.name}; name a model of "
                             "this task.")
        for teacher in self.members:
            teacher.saved.check_texts(task.kind.num_texts(task),
                                      f"--teacher={teacher.folder}: {task.name}")

    @property
    def read_documents(self) -> bool:
        """Whether a teacher reads a sentence with the text around it."""
        return any(teacher.saved.options.get("document_context") for teacher in self.members)

    def describe(self) -> dict[str, Any]:
        """The JSON value of all that the answers depend on."""
        return {"teachers": [teacher.digest() for teacher in self.members],
                "average": self.average if len(self.members) > 1 else None,
                "layers": list(self.members[0].layers)}

    def features(self, task: Task, num_choices: int = 1) -> tuple[Feature, ...]:
        """The `Feature`s that they add to records of a task with `num_choices` sequences each."""
        axes: tuple = 1, len(task.labels) or num_choices
        if _answers_tokens(task):
            axes = "S", "L*S"
        features = [Feature(IS_LABELLED, "int64", axes[0]),
                    Feature(TEACHER_LOGITS, "float32", axes[1])]
        if layers := self.members[0].layers:
            features.append(Feature(TEACHER_CLS, "float32",
                                 len(layers) * self.members[0].config.hidden_size))
        return tuple(features)

    def answer(self, task: Task, examples: list, student: dict[str, np.ndarray],
               counts: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the teachers' features of a student's records, whose other features are
        `student`. All records of an example, int [N] `counts`, have the answer to the whole
        example; records of a sentence to tag, the answers to their words."""
        kind = task.kind
        units = [teacher.answer(task, examples) for teacher in self.members]
        vectors = units[0].pop(TEACHER_CLS, None)
        if "values" in units[0] or len(units) > 1 and self.average == "probabilities":
            average = kind.average(units)
            logits = average.get("logits", average.get("values"))
        else:
            logits = np.mean([answers["logits"] for answers in units], 0)
        labelled = np.array([getattr(example, IS_LABELLED, True) for example in examples])
        if _answers_tokens(task):       # every word of a sentence to tag has its own label
            labelled = np.repeat(labelled, [len(example.texts) for example in examples])
        features = kind.spread({TEACHER_LOGITS: logits.astype(np.float32),
                             IS_LABELLED: labelled.astype(np.int64)[:, None]}, student)
        features = {name: np.moveaxis(values, -1, 1) for name, values in features.items()}
        if vectors is not None:
            features[TEACHER_CLS] = vectors.astype(np.float32)
        features = {name: values.reshape(len(values), -1) for name, values in features.items()}
        if _answers_tokens(task):       # tags were spread over the records already
            return features
        return {name: np.repeat(values, counts, axis=0) for name, values in features.items()}


def _answers_tokens(task):
    return any(feature.name == "label_weights" for feature in task.kind.features)


class InStep(Teacher):
    """A fine-tuned model that teaches in every step, by the row of a recipe."""

    def __init__(self, folder: str, row: Distillation):
        super().__init__(folder)
        self._row = row

    def check(self, config: Sizes, tokenizer: Tokenizer, max_seq_length: int) -> None:
        own, teacher = find_vocabulary(self.folder), f"--teacher={self.folder}"
        compares = f"--recipe={self._row.name} compares"
        if own and open_tokenizer(own).vocabulary.tokens != tokenizer.vocabulary.tokens:
            raise InputError(f"{compares} each token's vectors, but the student and {teacher} have "
                             "different vocabularies; give the teacher's vocabulary as "
                             "--vocab_file, or take another recipe.")
        self.check_length(max_seq_length)
        layer_ratio(config.depth, self.config.depth)    # type: ignore[attr-defined]
        heads = config.num_attention_heads, self.config.num_attention_heads  # type: ignore
        if heads[0] != heads[1]:
            raise InputError(f"{compares} attention head by head, but the student has {heads[0]} "
                             f"heads and {teacher} has {heads[1]}; set the student's "
                             "num_attention_heads to the teacher's.")
        for name, sizes in (("the student", config), (teacher, self.config)):
            if sizes.pruned_heads:
                raise InputError(f"{compares} attention head by head, but {name} has pruned heads; "
                                 "take a model with all heads, or another recipe.")
            if sizes.has_local_layers:
                raise InputError(f"{compares} attention head by head, but in local layers of "
                                 f"{name} a token sees near tokens only; give a recipe that "
                                 "compares answers, such as soft_labels.")
        widths = config.hidden_size, self.config.hidden_size
        if widths[0] != widths[1] and any(
                term.objective == "InternalCosine" for term in self._row.terms):
            raise InputError(f"{compares} vectors by their cosine, but the student is {widths[0]} "
                             f"wide and {teacher} is {widths[1]} wide; set the student's "
                             "hidden_size to the teacher's.")

    def objectives(self, config: Sizes, head: Objective, dtype: str | None = None
                   ) -> list[Objective]:
        return [make_term(term, config, self.config, dtype) for term in self._row.terms]

    def learner(self, network, objectives: list[Objective]) -> Distiller:
        teacher = open_model(self.folder, finetuned=True).learner(network.dtype_policy.name)
        return Distiller(network, objectives, teacher=teacher)
