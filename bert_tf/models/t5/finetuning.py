"""Fine-tuning of T5, whose answers are texts."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

from bert_tf import training
from bert_tf.config import T5Config
from bert_tf.data.batches import bucketing
from bert_tf.errors import InputError, counted
from bert_tf.finetuning.member import Member
from bert_tf.finetuning.model import JobFlags, open_beginning
from bert_tf.finetuning.run import FineTuneRun, padding_of
from bert_tf.flags import option
from bert_tf.kept import check_same, differences
from bert_tf.models.t5.scores import TextPredictions
from bert_tf.models.t5.task_files import TextFile, TextFlags, check_labels, longest_target
from bert_tf.recipes import Term
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.kinds.text_to_text import GENERATION
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task, settle
from bert_tf.tasks.task_flags import RunSplits
from bert_tf.tokenization import check_sentinels
from bert_tf.training.settings import StepSettings

_KIND = KINDS["text_to_text"]
LONGEST_INPUT = 512     # tokens, if no flag says otherwise


@dataclasses.dataclass
class TextModelFlags(JobFlags):
    """How T5 reads and writes texts."""

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
        "by default a batch has examples of similar length, and is only as long as they need.")
    early_stopping: int = option(
        0, "Stop after this many evaluations (--do_eval, --eval_steps) in which the tasks' mean "
        "score did not improve, and keep the best weights; 0: train to the end.", least=0)
    beams: int | None = option(
        None, "Number of beams in beam search (default: 1, greedy search). The original uses 4 for "
        "translation and summaries.", least=1)
    alpha: float | None = option(
        None, "Length penalty of beam search; a larger value prefers longer texts (default: 0.6).")

    attention_mask_heads, reverse_head_mask = (), False     # flags for encoders alone

    def check(self, settings: StepSettings) -> None:
        if self.early_stopping and not (self.do_eval and settings.eval_steps):
            raise InputError("--early_stopping chooses by the score; give --do_eval and "
                             "--eval_steps too.")
        super().check(settings)


def open_texts(text_flags: TextFlags, job: TextModelFlags, settings: StepSettings) -> FineTuneRun:
    """Checks the flags of a run of T5, opens devices, and reads the files. Raises InputError if
    anything is wrong with them, or devices or folders cannot be used."""
    job.check(settings)
    sources = text_flags.open(job.do_train, job.do_eval, job.do_predict)
    member = _plan(job, settings, sources)
    strategy = training.open_strategy(settings, evaluates=False, others=(job,))
    run = FineTuneRun([member], job, settings, is_chief=training.is_chief(strategy))
    run.tuning = TextTuning(member, settings, strategy, run.evaluate if job.do_eval else None)
    if job.do_train:
        padding = padding_of(job.pad_to_max_length, settings, strategy)
        run.train_set = run.tuning.in_order(sources.mixture(
            member.model.tokenizer, member.model.max_seq_length,
            member.options["max_target_length"], padding))
    return run


def _open_model(job, output_dir):
    """The `bert_tf.opening.Model` that the flags name, which writes texts."""
    model = open_beginning(job, output_dir)
    if not isinstance(model.config, T5Config):
        raise InputError(f"{model.path or job.bert_config_file} has no decoder, which writes the "
                         "texts; give a T5 model.")
    model.do_lower_case = False
    tokenizer = model.tokenizer     # there is none without a vocabulary
    flag = f"--vocab_file={job.vocab_file or model.weights.vocab_file}"
    if not hasattr(tokenizer, "has_sentinels"):
        raise InputError(f"{flag} is a vocabulary of {tokenizer.name}, which can't turn tokens "
                         "into text; give a spiece.model of SentencePiece.")
    check_sentinels(tokenizer, flag)
    return model


def _plan(job, settings, sources):
    """The `Member` of all tasks together, whose splits are the files to score and to predict."""
    model = _open_model(job, settings.output_dir)
    options, max_seq_length = {}, LONGEST_INPUT
    if model.saved and not job.do_train:
        options, max_seq_length = model.saved.options, model.saved.max_seq_length
    check_labels(sources, model.tokenizer, job.max_target_length)
    longest = longest_target(sources, model.tokenizer)
    options = settle(
        {name: getattr(job, name) for name in GENERATION}, options,
        {**GENERATION, "max_target_length": longest or GENERATION["max_target_length"]})
    if options["beams"] == 1 and job.alpha not in (None, GENERATION["alpha"]):
        raise InputError(f"--alpha={job.alpha} is for beam search; give --beams too, or leave the "
                         "flag out.")
    model.max_seq_length = job.max_seq_length or max_seq_length
    if job.do_train:
        model.config = dataclasses.replace(model.config, dropout_rate=job.dropout_rate)
    dev, test = ({f"{file.name}_{split}": file for file in sources.of(split)}
                 for split in ("dev", "test"))
    files = {**dev, **test}
    return Member(Task("+".join(sources.names), _KIND, {}), model, options,
                  RunSplits(files, [*dev], [*test]), job, settings, sets=files,
                  predictions={name: TextPredictions(file) for name, file in files.items()})


@dataclasses.dataclass
class TextTuning:
    """Trains and predicts under an output folder, as `FineTuning` does, but without trials: the
    folder has the checkpoints of one run of a number of steps. `member` has the tasks, the model
    and its options."""

    member: Member
    settings: StepSettings
    strategy: Any
    evaluate: Callable | None
    _trainer: Any = None
    _predictor: Any = None

    init_checkpoint = property(lambda self: self.member.model.path)     # "" for random weights

    def sole_writer(self) -> contextlib.AbstractContextManager:
        """Holds the lock of the output folder; see `run.sole_writer`."""
        return training.sole_writer(self.settings.output_dir, self.strategy)

    def in_order(self, mixture: Any) -> Any:
        """The mixture with the padding of the folder's run, which another device may have begun.
        Raises InputError if the folder holds another model, or a run with other examples."""
        folder = self.settings.output_dir
        present = SavedTask.read(folder)
        if present and present.task.kind is not _KIND:
            raise InputError(f"{folder} holds another model, for {present.task.kind.title}; name "
                             "another --output_dir.")
        order = training.resume.newest(folder).get("order")
        if not order:
            return mixture
        padding = order["records"].get("padding")
        if mixture.padding != bucketing.MAX_LENGTH and padding in bucketing.PADDINGS[1:]:
            mixture = dataclasses.replace(mixture, padding=padding)
        check_same(folder, differences(
            {**mixture.identity(), "random_seed": self.settings.random_seed},
            {**order["records"], "random_seed": order["seed"]}))
        return mixture

    def train(self, mixture: Any) -> bool:
        """Trains and saves the model; returns whether training is over."""
        mixture = self.in_order(mixture)    # another process may have trained until now
        settings, patience = self.settings, self.member.flags.early_stopping
        trainer = self._trainer = self._make_trainer()
        best = None
        if patience:
            best = training.BestWeights(trainer, settings.output_dir, "average", patience,
                                        settings.eval_steps)
        run = training.Run(trainer, settings, mixture, self.evaluate and self._measure, best,
                           {"early_stopping": patience})
        run.init_checkpoint = self.init_checkpoint
        if not run.resume() and self.init_checkpoint:
            print(self.member.model.load(trainer.learner.encoder), flush=True)
        run.train()
        is_over = settings.last_step == settings.num_train_steps
        if best and best.is_known:
            is_over |= best.is_over(run.step)
            training.wait_for_workers(self.strategy)    # the chief has written the last ones
            best.restore(run.step, settings.num_train_steps)
        run.save_model()
        if not is_over:
            print(f"stopped at --stop_at_step={settings.last_step}; to resume, run the same "
                  "command without the flag.", flush=True)
        return is_over

    def load(self, path: str) -> "training.Trainer":
        """The Trainer that trained the model, or a new one with its weights."""
        if not self._trainer:
            self._trainer = self._make_trainer()
            print(self.member.model.load(self._trainer.learner), flush=True)
        return self._trainer

    def predict(self, trainer: "training.Trainer", file: TextFile, measures: bool = False
                ) -> tuple[dict[str, list[str]], dict]:
        """The "texts" that the model writes for the examples of a file."""
        from bert_tf.predictor import Predictor  # which loads TensorFlow

        start, member = time.monotonic(), self.member
        self._predictor = self._predictor or Predictor.from_learner(
            trainer.learner, member.model.tokenizer, SavedTask(
                member.task, member.model.max_seq_length, False, member.options),
            self.settings.eval_batch_size)
        with trainer.averaged():
            texts = [answer["text"] for answer in self._predictor(
                [example.input for example in file.examples])]
        print(f"{file.name}: {counted(len(texts), 'text')} written in "
              f"{time.monotonic() - start:.0f} s", flush=True)
        return {"texts": texts}, {}

    def _make_trainer(self):
        return training.make_trainer(
            self.strategy, self.settings, lambda dtype: training.Learner.of_terms(
                self.member.model.config, (Term("SequenceLM"),), dtype))

    def _measure(self):
        scores = self.evaluate(functools.partial(self.predict, self._trainer))
        return {name: value for name, value in scores.items() if name != "degenerate"}
