"""Records and losses for the student of bert-distill."""

import dataclasses
import functools
import hashlib
import os
from typing import Any

import numpy as np

import bert_tf
from bert_tf import compression, files
from bert_tf.compression.masked_words import MaskedWords, WordModel, WordVectors
from bert_tf.compression.word_vectors import vectors_of_tokens
from bert_tf.config import BiLstmConfig
from bert_tf.errors import InputError
from bert_tf.recipes.distillation import Distillation, patience_layers
from bert_tf.tasks.kinds.labelled import LabelledKind
from bert_tf.tasks.split_records import SplitRecords
from bert_tf.tasks.task import Task
from bert_tf.tokenization import encoding, open_tokenizer


@dataclasses.dataclass
class Teaching:
    """Records and losses of a run's student; see `open_run`."""

    flags: Any
    row: Distillation
    task: Task      # the teacher's
    vectors: tuple[np.ndarray, np.ndarray] | None = None    # of --word_vectors: ids and rows

    @property
    def note(self) -> str:
        """A note for the user if the student's head does not learn; else ""."""
        if self.row.trains_head:
            return ""
        return ("Only its layers learned. Its head is not trained and can't predict yet: give this "
                "folder as `--student` to a recipe that learns answers, such as `soft_labels`.")

    def compared_layers(self, config: Any, depth: int, tokenizer: Any = None) -> tuple[int, ...]:
        """The teacher's layers whose [CLS] vectors a student learns; () without such a term.
        `config`, `tokenizer`: the student's; None where the tokenizer is not known yet. `depth`:
        its number of layers. Raises InputError if the student has no vectors to compare with them.
        """
        terms = [term for term in self.row.terms if term.objective == "Patience"]
        if not terms:
            return ()
        teacher = compression.Teacher(self.flags.teacher[0])
        taught = teacher.config
        if not isinstance(teacher.saved.task.kind, LabelledKind):
            raise InputError(f"--recipe={self.row.name} compares [CLS] vectors, but answers in "
                             "paragraphs don't depend on them; give another recipe.")
        _check_first_token(self.row.name, "teacher", taught, open_tokenizer(
            teacher.folder, teacher.saved.do_lower_case))
        _check_first_token(self.row.name, "student", config, tokenizer)
        if (width := config.hidden_size) != taught.hidden_size:
            raise InputError(f"--recipe={self.row.name} compares the vectors of layers, which are "
                             f"{width} wide in the student and {taught.hidden_size} in the "
                             "teacher; take a student of the same width, or another recipe.")
        return patience_layers(terms[0].options["layers"], taught.depth, depth)

    def teachers(self, plan):
        """The `Teachers` of a plan's student. Raises InputError if they do not fit the task, or the
        student."""
        layers = self.compared_layers(plan.model.config, plan.model.config.depth,
                                      plan.model.tokenizer)
        teachers = compression.Teachers(
            tuple(compression.Teacher(folder, layers, self.augments)
                  for folder in self.flags.teacher),
            self.row.average)
        if layers and encoding.is_cut_in_windows(plan.options):
            raise InputError(f"--recipe={self.row.name} compares one [CLS] vector per example, but "
                             f"with --long_text={encoding.way_of(plan.options)} the student has "
                             "several; give --long_text=truncate, or another --recipe.")
        teachers.check(plan.task)
        return teachers

    def in_step(self, plan):
        """The `InStep` of a plan's student. Raises InputError if it does not fit the student."""
        if len(self.flags.teacher) > 1:
            raise InputError(f"--teacher names several models, but --recipe={self.row.name} "
                             "compares layers with the layers of one model; name one.")
        pair = compression.InStep(self.flags.teacher[0], self.row)
        pair.check(plan.model.config, plan.model.tokenizer, plan.model.max_seq_length)
        if any(term.objective == "InternalCosine" for term in self.row.terms):
            for flag, config in (("teacher", pair.config), ("student", plan.model.config)):
                _check_first_token(self.row.name, flag, config, plan.model.tokenizer)
        return pair

    def records(self, plan, folder: str):
        """The records that the student learns from."""
        own, kind, model = plan.splits.sources["train"], plan.task.kind, plan.model
        if path := self.flags.word_vectors:
            if not isinstance(model.config, BiLstmConfig) or model.path:
                raise InputError("--word_vectors is for a --student that is a JSON of sizes with "
                                 '"model_type": "bilstm"; leave it out.')
            self.vectors = vectors_of_tokens(path, model.tokenizer, model.config.embedding_size,
                                             "word_vectors")
        if not isinstance(kind, LabelledKind):
            if self.augments or self.flags.transfer_file or not self.flags.train_examples:
                raise InputError("a student that finds answers in paragraphs learns only from "
                                 "--train_file; leave out --transfer_file, --augmentation and "
                                 "--train_examples=False.")
            records = kind.records(own, *plan.of_input, folder)
            if self.row.teaches == "in_step":
                self.in_step(plan)
                return records
            return compression.TaughtSquadRecords.of(records, self.teachers(plan))
        source = compression.TransferSource(
            **{field.name: getattr(own, field.name) for field in dataclasses.fields(own)},
            further=tuple(self.flags.transfer_file), has_own=self.flags.train_examples,
            augment=self._augment(own, folder) if self.augments else None)
        source.check_files()
        if self.augments and (kind.needs_choices or kind.format):
            raise InputError(f"--augmentation makes texts, not examples of {kind.title}; "
                             "give --augmentation=none.")
        tokenizer = model.tokenizer
        if self.augments:
            tokenizer = compression.MarkingTokenizer(tokenizer)
        options = kind.record_options(*plan.of_input)
        if self.row.teaches == "in_step":
            self.in_step(plan)
            if self.row.gold_weight and (source.further or source.augment):
                raise InputError(f"--gold_weight is {self.row.gold_weight:g}, but in records of "
                                 f"--recipe={self.row.name} texts without labels can't be told "
                                 "from others; leave out --gold_weight, or --transfer_file and "
                                 "--augmentation.")
            return SplitRecords(source, options, tokenizer, folder)
        return compression.TaughtRecords(source, options, tokenizer, folder, self.teachers(plan))

    @property
    def augments(self) -> bool:
        """Whether texts are made from the texts of the training file."""
        return self.row.augmentation != "none"

    def _augment(self, own, folder):
        def texts():
            return (text for example in own.examples() for text in example.texts)

        job, tagger = self.flags, None
        if self.row.augmentation == "masked_words":
            if not job.masked_lm:
                raise InputError("--augmentation=masked_words needs --masked_lm, a pre-trained "
                                 "model with its masked LM.")
            model, near, vectors = WordModel(job.masked_lm), None, ""
            if job.glove_embs:
                near, vectors = WordVectors(job.glove_embs).near, files.digest(job.glove_embs)
            return MaskedWords(
                model, near, job.augmentation_copies or 30, texts=texts,
                folder=os.path.join(folder, "augmentation"),
                made_of={**model.made_of, "glove_embs": vectors})
        if job.pos_tagger:
            model = bert_tf.open_model(job.pos_tagger, finetuned=True)
            if model.saved.task.kind.name != "tagging":
                raise InputError(f"--pos_tagger: {job.pos_tagger} is a model for "
                                 f"{model.saved.task.kind.title}; name a tagger, from "
                                 "bert-finetune --task_kind=tagging.")
            predictor = bert_tf.Predictor.from_learner(model.learner(), model.tokenizer,
                                                       model.saved)

            def tagger(texts):
                return [answer["tags"] for answer in predictor(texts)]

        count = len(own.task.split(own.split).texts)
        return compression.random_words(
            texts(), tagger, copies=job.augmentation_copies or (20 if count == 1 else 10),
            ngram_prob=job.ngram_prob)

    def goal(self, goal, plan):
        """The `FineTuning` of the student, made from the `FineTuning` with gold labels alone."""
        learner, teacher, terms_of = compression.Student, {}, functools.partial(
            compression.make_terms, self.row)
        if self.row.teaches == "in_step":
            in_step = self.in_step(plan)
            learner, teacher = in_step.learner, {"teacher": in_step.digest()}
            terms_of = in_step.objectives

        def make_objectives(config, dtype):
            head = goal.make_objective(config, dtype=dtype)
            head.loss_weight = self.row.gold_weight
            return [head, *terms_of(config, head, dtype)]

        def give_vectors(learner):
            ids, rows = self.vectors
            table = learner.encoder.embedding_table
            values = table.numpy()
            values[ids] = rows
            table.assign(values)

        if self.vectors:
            content = b"".join(part.tobytes() for part in self.vectors)
            teacher["word_vectors"] = hashlib.sha256(content).hexdigest()
        return dataclasses.replace(
            goal, make_objective=make_objectives,
            change_start=give_vectors if self.vectors else None,
            learner=learner,
            options={**goal.options, **teacher, "distillation": self.row.describe()})


def _check_first_token(recipe, flag, config, tokenizer):
    if config.is_causal:
        raise InputError(f"--recipe={recipe} compares vectors of the first token, which sees no "
                         f"other in a left-to-right model such as --{flag}; give another recipe.")
    if tokenizer and tokenizer.vocabulary.layout.cls_last:
        raise InputError(f"--recipe={recipe} compares vectors of the first token, but the class "
                         f"token of --{flag} is the last; give another recipe.")
