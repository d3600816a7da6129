"""Fine-tunes BERT to find answers in paragraphs, SQuAD v1.1 and v2.0; scores it, and predicts.

--do_train learns from --train_file. --do_predict answers --predict_file, and scores the answers
where the file holds the correct ones. --do_eval says that --predict_file is there to choose on: it
must hold the answers; every trial is scored on it; and, of v2.0, the --null_score_diff_threshold of
the best F1 is found on it after training, kept with the model and used from then on.

Sequences are 384 tokens long unless flags say otherwise. Training is as in the paper: 3 epochs in
batches of 32; of v2.0, 2 epochs in batches of 48; at a rate of 5e-5. How a model was trained to
read and to answer is kept with it: where no flag says otherwise, it predicts in that way.

Written to --output_dir are predictions.json and nbest_predictions.json, of v2.0 null_odds.json,
and, where there are correct answers, metrics.json and eval_results.txt. Scores are in percent, as
the official scripts print them. Records are made once. The same command started again goes on where
it stopped; trials that are finished are not run again.

Example:
    bert-run-squad --train_file=train-v1.1.json --predict_file=dev-v1.1.json --do_train \\
        --do_predict --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/squad
    bert-run-squad --train_file=train-v2.0.json --predict_file=dev-v2.0.json --do_train --do_eval \\
        --version_2_with_negative --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/squad2
    bert-run-squad --predict_file=questions.json --do_predict --init_checkpoint=/tmp/squad2 \\
        --output_dir=/tmp/answers
"""

import dataclasses
import functools
import os

from bert_tf import flags
from bert_tf.checkpoints import keras_file
from bert_tf.data.manifest import SUFFIX
from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.tasks import squad
from bert_tf.tasks.answer_spans import SpanOptions
from bert_tf.tasks.saved import SavedTask
from bert_tf.tasks.squad_answers import AnswerOptions, predict_file, write_predictions
from bert_tf.tasks.squad_records import SquadRecords
from bert_tf.tasks.squad_scorer import (question_scores, reachable_threshold, score_v1,
                                        score_v2)
from bert_tf.tasks.task import Defaults, Task
from bert_tf.training.settings import FineTuneSettings
from run_scripts.model_flags import ModelFlags, check_choice, open_model
from run_scripts.opening import open_records
from run_scripts.outputs import check_task, save_task, write_scores

# By version_2_with_negative (arXiv:1810.04805, sections 4.2 and 4.3).
_TASKS = {
    False: Task("squad", "span", {}, metrics=("f1", "exact_match"),
                defaults=Defaults(384, 32, 5e-5, 3.0)),
    True: Task("squad_v2", "span", {}, metrics=("f1", "exact"),
               defaults=Defaults(384, 48, 5e-5, 2.0)),
}
_MOST_NOTES = 5         # that are printed
_THRESHOLD = "null_score_diff_threshold"


@dataclasses.dataclass
class SquadFlags:
    """Which questions, and how they are answered; None is as the model was trained."""

    train_file: str = option("", "SQuAD JSON to train on.")
    predict_file: str = option("", "SQuAD JSON to answer.")
    version_2_with_negative: bool | None = option(
        None, "Questions may have no answer, as in SQuAD v2.0.")
    doc_stride: int | None = option(
        None, "Tokens from the start of one part of a long paragraph to that of the next; 128 by "
        "default.")
    max_query_length: int | None = option(
        None, "Of a longer question, the first tokens are taken; 64 by default.")
    n_best_size: int | None = option(
        None, "Starts and ends looked at in each part, and answers kept for each question; 20 by "
        "default.")
    max_answer_length: int | None = option(None, "Most tokens of an answer; 30 by default.")
    null_score_diff_threshold: float | None = option(
        None, "By how much the score of no answer must exceed the best answer's for none to be "
        "given; by default what --do_eval has found, else 0.")

    def resolve(self, model, is_training):
        """All options but the files: a dict.

        Args:
            model: the `Model`; what no flag says is as its `SavedTask` has it.
            is_training: whether it will be trained, so that its threshold is void.

        Raises:
            InputError: the model is of another kind, or a value cannot work.
        """
        saved = {}
        if model.saved:
            if model.saved.task.kind != "span":
                raise InputError(f"{model.path} is a model for {model.saved.task.kind}, not for "
                                 "answers in paragraphs; name another --init_checkpoint.")
            saved = {**model.saved.options, **({_THRESHOLD: None} if is_training else {})}
            if self.version_2_with_negative and not (
                    is_training or saved.get("version_2_with_negative")):
                raise InputError(f"{model.path} has not learned that a question may have no "
                                 "answer: leave out --version_2_with_negative.")
        known = {**dataclasses.asdict(SpanOptions()), **dataclasses.asdict(AnswerOptions()),
                 _THRESHOLD: None, **saved}
        given = {name: known[name] if value is None else value
                 for name, value in dataclasses.asdict(self).items() if not name.endswith("_file")}
        for name in ("n_best_size", "max_answer_length"):
            if given[name] < 1:
                raise InputError(f"--{name} is {given[name]}; it must be at least 1.")
        return given


class SquadRun:
    """SQuAD files, a model and records that were found good, ready to train and to predict.

    Args:
        squad_flags: `SquadFlags`.
        model_flags: `ModelFlags`.
        settings: `FineTuneSettings`.

    Raises:
        InputError: anything is wrong with them.
    """

    def __init__(self, squad_flags, model_flags, settings):
        self._flags, self._settings, self._folder = model_flags, settings, settings.output_dir
        self._predict_file = squad_flags.predict_file
        self._predicts = model_flags.do_eval or model_flags.do_predict
        self._check(squad_flags)
        self.model = open_model(model_flags, self._folder, _TASKS[False].defaults.max_seq_length)
        self._options = squad_flags.resolve(self.model, model_flags.do_train)
        self._negative = self._options["version_2_with_negative"]
        self.task = _TASKS[self._negative]
        if model_flags.do_train:
            check_task(self._folder, self.task, self.model)
        self._span_options = SpanOptions(self.model.max_seq_length, self._options["doc_stride"],
                                         self._options["max_query_length"])
        self._span_options.check(self.model.tokenizer.vocabulary.layout)
        self._answers = self._read_answers() if self._predicts else None
        self._open(squad_flags)

    def _check(self, squad_flags):
        settings = self._settings
        check_choice(self._flags, settings)
        if settings.label_smoothing or settings.class_weights:
            raise InputError("--label_smoothing and --class_weights are for labels, which answers "
                             "in paragraphs have not; leave them out.")
        for name, what, is_wanted in (
                ("train_file", "--do_train", self._flags.do_train),
                ("predict_file", "--do_eval and --do_predict", self._predicts)):
            path = getattr(squad_flags, name)
            if is_wanted and not os.path.isfile(path):
                raise InputError(f"--{name}: there is no file {path!r}." if path else
                                 f"--{name} must be given for {what}.")

    def _read_answers(self):
        """The correct answers of the file to predict, or None."""
        if not squad.holds_answers(self._predict_file):
            if self._flags.do_eval:
                raise InputError(f"--do_eval: {self._predict_file} holds no answers to score by; "
                                 "give --do_predict alone, or a file that does.")
            return None
        answers = squad.read_answers(self._predict_file)
        if not self._negative:
            score_v1(answers, {})       # raises where a question has none
        return answers

    def _open(self, squad_flags):
        """Devices, and records into memory: all that needs TensorFlow."""
        from bert_tf.objectives.answer_span import AnswerSpan   # pylint: disable=C0415
        from bert_tf.training.distribution import is_chief      # pylint: disable=C0415
        from bert_tf.training.finetuning import FineTuning, Goal    # pylint: disable=C0415
        settings, flags_, defaults = self._settings, self._flags, self.task.defaults
        files = {"predict": squad_flags.predict_file if self._predicts else "",
                 "train": squad_flags.train_file if flags_.do_train else ""}
        files = {name: path for name, path in files.items() if path}
        strategy, self.sets = open_records(flags_, settings, defaults, files,
                                           functools.partial(self._make_records, files))
        self._chief = is_chief(strategy)
        self._headline = f"squad/{self.task.headline}"
        goal = Goal(AnswerSpan, self.evaluate if flags_.do_eval else None, self._headline, defaults,
                    scored_on=self._describe_scores() if flags_.do_eval else None)
        self.tuning = FineTuning(settings, strategy, self.model.config, goal,
                                 self.model.path, flags_.keep_head)
        if flags_.do_train:
            self.tuning.check(self.sets["train"])

    def _make_records(self, files, folder, num_workers, may_replace):
        """Makes the records of files by name, and says what is in them."""
        for name, path in files.items():
            records = SquadRecords(path, os.path.join(folder, f"{name}.tfrecord"),
                                   self.model.tokenizer, name == "train", self._negative,
                                   self._span_options)
            report(name, *records.make(num_workers, may_replace))

    def _describe_scores(self):
        """All that the scores of a trial depend on: a JSON value."""
        return [self.sets["predict"].identity(), self._threshold, *(
            self._options[name] for name in ("n_best_size", "max_answer_length"))]

    @property
    def _threshold(self):
        return self._options[_THRESHOLD] or 0.0

    def _find_answers(self, predict):
        """The `Prediction`s of the file to predict; see `Goal`."""
        logits, _ = predict(self.sets["predict"], measures=False)
        options = AnswerOptions(self._options["n_best_size"], self._options["max_answer_length"],
                                self._negative)
        return list(predict_file(self._predict_file, logits["start_logits"], logits["end_logits"],
                                 self.model.tokenizer, self._span_options, options))

    def _score(self, predictions):
        """The scores of predictions, the headline first."""
        texts = {prediction.id: prediction.text for prediction in predictions}
        if self._negative:
            odds = {prediction.id: prediction.null_odds for prediction in predictions}
            scores = score_v2(self._answers, texts, odds, self._threshold)
        else:
            scores = score_v1(self._answers, texts)
        names = [self.task.headline, *(name for name in scores if name != self.task.headline)]
        return {f"squad/{name}": scores[name] for name in names if not name.endswith("total")}

    def evaluate(self, predict):
        """The metrics of the file to predict; see `Goal`."""
        predictions = self._find_answers(predict)
        return {**self._score(predictions), "degenerate": float(self._is_degenerate(predictions))}

    def _is_degenerate(self, predictions):
        """Whether all questions are given one answer, though not all have the same."""
        given = {prediction.answer(self._threshold) for prediction in predictions}
        return len(given) == 1 < len(set(map(tuple, self._answers.values())))

    def run(self):
        """Trains, scores and predicts as the flags ask for."""
        with self.tuning.sole_writer():
            self._run()

    def _run(self):
        flags_ = self._flags
        if flags_.do_train:
            if self._chief:
                save_task(self._folder, self.task, self.model, **{
                    name: value for name, value in self._options.items() if value is not None})
            if not self.tuning.train(self.sets["train"]):
                return
        if not self._predicts:
            return
        own = os.path.join(self._folder, keras_file.NAME)
        path = own if flags_.do_train else self.model.path
        predictions = self._find_answers(
            functools.partial(self.tuning.predict, self.tuning.load(path)))
        if not self._chief:
            return
        if flags_.do_eval and self._negative and self._options[_THRESHOLD] is None and (
                path == own and SavedTask.read(self._folder)):
            self._choose_threshold(predictions)
        self._write(predictions)

    def _write(self, predictions):
        """Writes predictions, and their scores if there are correct answers."""
        write_predictions(self._folder, predictions, self._threshold)
        names = ["predictions", "nbest_predictions", *["null_odds"] * self._negative]
        print("wrote " + ", ".join(os.path.join(self._folder, f"{name}.json") for name in names),
              flush=True)
        if self._answers is None:
            print(f"no scores: {self._predict_file} holds no answers", flush=True)
            return
        if self._is_degenerate(predictions):
            print("DEGENERATE: the model gives all questions one answer", flush=True)
        applied = {_THRESHOLD: self._threshold} if self._negative else {}
        write_scores(self._folder, self._score(predictions), task=self.task.name,
                     headline=self._headline, predict_file=self._predict_file, **applied)

    def _choose_threshold(self, predictions):
        """Finds the threshold of the best F1, and keeps it with the model."""
        texts = {prediction.id: prediction.text for prediction in predictions}
        odds = {prediction.id: prediction.null_odds for prediction in predictions}
        f1 = {name: pair[1] for name, pair in question_scores(self._answers, texts).items()}
        self._options[_THRESHOLD] = reachable_threshold(self._answers, texts, odds, f1)
        saved = SavedTask.read(self._folder)
        dataclasses.replace(saved, options={
            **saved.options, _THRESHOLD: self._threshold}).write(self._folder)
        print(f"--{_THRESHOLD}={self._threshold} makes the F1 of {self._predict_file} best; it is "
              "kept with the model and used from now on", flush=True)


def report(name, record, was_there):
    """Prints what a manifest says, the first of its notes in full."""
    counts, notes = record["counts"], record["notes"]
    print(f"{name}: {counts['questions']:,} questions, {counts['records']:,} records, "
          f"{counts['skipped']:,} questions left out, {counts['cut']:,} cut to fit"
          f"{', there already' * was_there}", flush=True)
    for note in notes[:_MOST_NOTES]:
        print(f"  note: {note}")
    if len(notes) > _MOST_NOTES:
        print(f"  and {len(notes) - _MOST_NOTES:,} notes more, in {name}{SUFFIX}", flush=True)


def main(squad_flags, model_flags, settings):
    """Checks everything, then trains, scores and predicts."""
    SquadRun(squad_flags, model_flags, settings).run()


def run():
    """The console entry point."""
    flags.run(main, SquadFlags, ModelFlags, FineTuneSettings)


if __name__ == "__main__":
    run()
