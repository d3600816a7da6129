"""Fine-tuning of T5, whose answers are texts."""

import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable
from typing import Any

from bert_tf import training
from bert_tf.config import T5Config
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_aside, write_json
from bert_tf.finetuning import archive
from bert_tf.finetuning.model import open_beginning
from bert_tf.flags import check, option
from bert_tf.options import settle
from bert_tf.recipes import Term
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.suites import SUITES
from bert_tf.tasks.task import Task
from bert_tf.tasks.text_files import Sources, longest_target
from bert_tf.tasks.text_scores import score
from bert_tf.tasks.text_submissions import write_submission
from bert_tf.tokenization import check_sentinels
from bert_tf.training.settings import TrainSettings

_KIND = KINDS["text_to_text"]
LONGEST_INPUT = 512     # tokens, if no flag says otherwise
_MOST_TARGETS = 128     # tokens that are written for files without targets


@dataclasses.dataclass
class TextModelFlags:
    """Model, and what to do with it."""

    do_train: bool = option(False, "Fine-tune, on the training files.")
    do_eval: bool = option(
        False, "Score the model on the dev files; during training too, every --eval_steps.")
    do_predict: bool = option(False, "Predict the test files.")
    init_checkpoint: str = option(
        "", "The initial checkpoint, a folder or file of any format. Without --do_train: the "
        "fine-tuned model (default: the model in --output_dir).")
    bert_config_file: str = option(
        "", "The configuration of the model; default: the file beside --init_checkpoint. Without "
        "--init_checkpoint, training starts from random weights.")
    vocab_file: str = option(
        "", "The vocabulary of the tokenizer; default: the file beside --init_checkpoint.",
        alias="tokenizer_file")
    max_seq_length: int | None = option(
        None, "Maximum tokens of an input, with its end token; longer inputs are cut. Default: as "
        "in the fine-tuned model, else 512.", least=2)
    max_target_length: int | None = option(
        None, "Maximum tokens of a target and of a generated text. Default: as in the fine-tuned "
        "model, else the longest target of the files, at most 512. The original uses "
        "84 for GLUE.", least=2)
    dropout_rate: float = option(
        0.1, "Dropout in training. T5 1.1 was pre-trained without dropout, but is fine-tuned with "
        "dropout.", least=0, below=1)
    pad_to_max_length: bool = option(
        False, "Pad every batch to --max_seq_length and --max_target_length, as the original does; "
        "by default a batch is only as long as its longest input and target need.")
    early_stopping: int = option(
        0, "Stop after this many evaluations (--do_eval, --eval_steps) in which the tasks' mean "
        "score did not improve, and keep the best weights; 0: train to the end.", least=0)
    beams: int | None = option(
        None, "Number of beams in beam search (default: 1, greedy search). The original uses 4 for "
        "translation and summaries.", least=1)
    alpha: float | None = option(
        None, "Length penalty of beam search; a larger value prefers longer texts (default: 0.6).")

    def check(self, settings: TrainSettings) -> None:
        """Raises InputError if there is nothing to do, or a value can't be."""
        if self.early_stopping and not (self.do_eval and settings.eval_steps):
            raise InputError("--early_stopping chooses by the score; give --do_eval and "
                             "--eval_steps too.")
        if not (self.do_train or self.do_eval or self.do_predict):
            raise InputError("give --do_train, --do_eval, --do_predict or several of them.")
        check(self)


def open_writer(job, settings, sources) -> Any:
    """The `bert_tf.models.Model` that the flags name, with the `SavedTask` to be.

    Raises:
        InputError: there is no model, or it writes no texts.
    """
    model = open_beginning(job, settings.output_dir)
    if not isinstance(model.config, T5Config):
        raise InputError(f"{model.path or job.bert_config_file} has no decoder, which writes the "
                         "texts; give a T5 model.")
    saved, model.do_lower_case = None if job.do_train else model.saved, False
    tokenizer = model.tokenizer
    if not hasattr(tokenizer, "has_sentinels"):
        raise InputError(f"--vocab_file={job.vocab_file or model.weights.vocab_file} is a "
                         f"vocabulary of {tokenizer.name}, which can't turn tokens into text; give "
                         "a spiece.model of SentencePiece.")
    check_sentinels(tokenizer, f"--vocab_file={job.vocab_file or model.weights.vocab_file}")
    options = settle(
        {name: getattr(job, name) for name in ("max_target_length", "beams", "alpha")},
        saved.options if saved else {},
        {"max_target_length": longest_target(sources, tokenizer) or _MOST_TARGETS, "beams": 1,
         "alpha": 0.6})
    length = job.max_seq_length or (saved.max_seq_length if saved else LONGEST_INPUT)
    if job.do_train:
        model.config = dataclasses.replace(model.config, dropout_rate=job.dropout_rate)
    task = Task("+".join(source.task.name for source in sources.tasks), _KIND, {})
    model.saved = SavedTask(task, length, False, options)
    return model


class TextRun:
    """Trains, scores and predicts under an output folder."""

    def __init__(self, model: Any, sources: Sources, job: TextModelFlags,
                 settings: TrainSettings) -> None:
        self._model, self._sources, self.flags, self.settings = model, sources, job, settings
        self._predictor: Any = None
        self._strategy = training.open_strategy(settings, evaluates=False, others=(job,))
        make_folder(settings.output_dir, "output_dir")
        self.is_chief = training.is_chief(self._strategy)

    def files(self, split: str) -> list[tuple[str, str, str]]:
        """The files of a split: (the name in reports, the path, the official split)."""
        return [file for source in self._sources.tasks for file in source.files.get(split, ())]

    def carry_out(self, begin: Callable[[], None] = lambda: None) -> None:
        """Trains, scores and predicts, as the flags say, while no other run writes to the output
        folder. The writing process calls `begin` when it knows that the folder is this run's."""
        settings, job = self.settings, self.flags
        strategy = self._strategy
        with training.sole_writer(settings.output_dir, strategy):
            trainer = training.make_trainer(strategy, settings, self._make_learner)
            saved = self._model.saved
            records = self._sources.mixture(
                self._model.tokenizer, saved.max_seq_length, saved.options["max_target_length"],
                job.pad_to_max_length) if job.do_train else None
            evaluate = functools.partial(self.evaluate, trainer) if job.do_eval else None
            best = training.BestWeights(
                trainer, settings.output_dir, "average", job.early_stopping,
                settings.eval_steps) if job.do_train and job.early_stopping else None
            run = training.Run(trainer, settings, records, evaluate, best,
                               {"early_stopping": job.early_stopping} if best else {})
            if job.do_train:
                if not self._train(run, trainer, best, begin):
                    print(f"stopped at --stop_at_step={settings.last_step}; to resume, run "
                          "the same command without the flag.", flush=True)
                    return
            else:
                print(self._model.load(trainer.learner), flush=True)
                if self.is_chief:
                    begin()
            if self.is_chief:
                self._write(trainer)

    def _make_learner(self, dtype):
        return training.Learner.of_terms(self._model.config, (Term("SequenceLM"),), dtype)

    def _train(self, run, trainer, best, begin):
        """Trains and saves the model; returns whether that was all."""
        settings, folder = self.settings, self.settings.output_dir
        present = SavedTask.read(folder)
        if present and present.task.kind is not _KIND:
            raise InputError(f"{folder} holds another model, for {present.task.kind.title}; name "
                             "another --output_dir.")
        run.init_checkpoint = self._model.path
        if not run.resume() and self._model.path:
            print(self._model.load(trainer.learner.encoder), flush=True)
        if not run.is_in_order:
            raise InputError(f"{folder} holds a run with other training files, lengths or "
                             "--random_seed; name another --output_dir.")
        if self.is_chief:
            begin()
            self._model.saved.write(folder)
            self._model.tokenizer.save(folder)
        print(self._sources.describe(), flush=True)
        run.train()
        is_over = settings.last_step == settings.num_train_steps
        if best and best.is_known:
            is_over |= best.is_over(run.step)
            step, _ = best.restore()
            print(f"ended at step {run.step:,} of {settings.num_train_steps:,}; the weights of "
                  f"step {step:,} are the best", flush=True)
        run.save_model()
        return is_over

    def write(self, trainer: "training.Trainer", texts: list[str]) -> list[str]:
        """The texts that the model writes for texts."""
        from bert_tf.predictor import Predictor  # which needs TensorFlow

        self._predictor = self._predictor or Predictor.from_learner(
            trainer.learner, self._model.tokenizer, self._model.saved,
            self.settings.eval_batch_size)
        with trainer.averaged():
            return [answer["text"] for answer in self._predictor(texts)]

    def evaluate(self, trainer: "training.Trainer") -> dict[str, float]:
        """The scores of all files to score on: "task/metric", and the mean of their headlines."""
        return self._answer(trainer, "dev")[0]

    def _answer(self, trainer, split):
        """The scores, and the texts by task, of the files of a split."""
        scores, found, headlines = {}, {}, []
        for name, (task, examples) in self._sources.of(split).items():
            start = time.monotonic()
            texts = found[name] = self.write(trainer, [example.input for example in examples])
            print(f"{name}: {len(texts):,} texts written in {time.monotonic() - start:.0f} s",
                  flush=True)
            if split == "dev":
                values = score(task, examples, texts)
                headlines.append(next(iter(values.values())))
                scores |= {f"{name}/{metric}": value for metric, value in values.items()}
        return {**({"average": sum(headlines) / len(headlines)} if headlines else {}),
                **scores}, found

    def _submit(self, found):
        """Writes the files that the servers of GLUE and SuperGLUE take of texts by task, and the
        archives of all such files in the output folder."""
        folder, suites = self.settings.output_dir, set()
        for name, texts in found.items():
            task, examples = self._sources.of("test")[name]
            official = self._sources.official(name, "test")
            if path := official and write_submission(folder, task, *official, examples, texts):
                print(f"wrote {path}", flush=True)
                suites.add("superglue" if task.submitted else "glue")
        for suite in (SUITES[name] for name in sorted(suites)):
            print(archive.describe(folder, *archive.write_archive(
                folder, suite, {row.task: folder for row in suite.rows})), flush=True)

    def _write(self, trainer):
        """Writes predictions and their scores."""
        folder = self.settings.output_dir
        for split, wanted in (("dev", self.flags.do_eval), ("test", self.flags.do_predict)):
            if not wanted:
                continue
            scores, found = self._answer(trainer, split)
            for name, texts in found.items():
                path = os.path.join(folder, f"{name}_{split}_predictions.tsv")
                with write_aside(path, "w", encoding="utf-8", newline="\n") as file:
                    file.writelines(" ".join(text.split("\t")) + "\n" for text in texts)
                print(f"wrote {path}", flush=True)
            if split == "test":
                self._submit(found)
            for name, value in scores.items():
                print(f"{name} = {value:.4f}", flush=True)
            if scores:
                write_json(os.path.join(folder, "metrics.json"), {
                    "task": self._model.saved.task.name, "headline": "average",
                    "metrics": json.loads(json.dumps(scores))})
                training.write_eval_results(folder, scores)
