"""A label, several or a number for a text or a pair; the choice among several texts, as in SWAG."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bert_tf import metrics
from bert_tf.data.records.features import FINETUNING
from bert_tf.errors import InputError, warn
from bert_tf.heads import CHOICES
from bert_tf.tasks.kinds.labelled import LabelledKind, label_id, rounded, says_nothing
from bert_tf.tasks.label_cells import Flags
from bert_tf.tokenization.encoding import pack_parts

_BOOLEANS = {"False": "false", "True": "true"}      # as SuperGLUE's server reads BoolQ and WiC
_GREATEST = float(np.finfo(np.float32).max)
_LEAST_PROBABILITY = 0.5        # of a label, where an example may have several
# The labels of STS-B, from 0 to 5, are learned as they are in BERT's paper and in all that follow.
_REACH = 5.0
_LEAST_DEVIATION = 0.1
_FEW = 5            # labels that do not show where others lie
_MOST_APART = 2     # scales between the means of two trainings
_FAR_OUT = 10       # interquartile ranges from the median


class Classification(LabelledKind):
    """One label of a text or of a pair of texts."""

    name, title, job = "classification", "classification", "classifier"
    features = FINETUNING["classification"]
    head_options = ("bilstm_size", "head", "head_size", "label_gain", "feature_layers",
                    "lstm_size", "lstm_layers", "label_scale")
    own_metrics: tuple = ("accuracy", "macro_f1", "matthews")
    input_options: tuple = ("label_scale", "label_mean", "long_text")
    has_labels = True
    texts = (1, 2, "a text, or a tuple of two")
    labels_may_be_far = may_turn_pairs = True

    def options(self, given, saved, is_training, path):
        options = super().options(given, saved, is_training, path)
        return {name: value for name, value in options.items() if value is not None}

    def _head(self, task, options):
        if options.get("answer_turns"):
            return "stochastic_answer", {"num_labels": len(task.labels),
                                         "turns": options["answer_turns"]}
        if self.name != "classification":
            return super()._head(task, options)
        head = CHOICES[options.get("head", "linear")]
        arguments = {"num_labels": len(task.labels), **{
            argument: options[flag] for flag, argument in head.choice.flags.items()
            if flag in options}}
        if head.choice.compares:
            arguments["pairs"] = self.num_texts(task) == 2
        return head.name, arguments

    def num_texts(self, task, split="train"):
        return len(task.splits[split].texts) if split in task.splits else None

    def score(self, task, path, examples, predicted):
        """Returns the metrics of the task. In the macro F1 of a task that a server scores, every
        label counts, as in the scorers of CB (nyu-mll/jiant, CommitmentBankEvaluationScheme)."""
        scores = super().score(task, path, examples, predicted)
        if "macro_f1" in scores and any(layout.submission for layout in task.splits.values()):
            score = metrics.mean_f1(len(task.labels))
            scores["macro_f1"] = float(score(self.targets(task, examples), predicted))
        return scores

    def describe(self, task, example, prediction, probabilities):
        named = {"name": task.label_names[prediction]} if task.label_names else {}
        return {"label": task.answers[prediction], **named,
                "probabilities": dict(zip(task.answers, rounded(probabilities)))}

    def submission(self, task, predictions):
        words = [_BOOLEANS.get(label, label) for label in task.labels]
        return [words[index] for index in predictions]


class MultiLabel(Classification):
    """Any number of labels of a text or of a pair. Labels and predictions are 0 or 1, [N, L]."""

    name, title = "multi_label", "classification of several labels"
    features = FINETUNING["multi_label"]
    own_metrics = ("micro_f1", "macro_f1", "exact_match")
    least_labels = 1
    has_several_labels = True
    labels_exclude = False

    @property
    def on_disk(self):
        return {"kind": "classification", "multi_label": True}

    def label(self, task, ids, texts, raw, where):
        """See `LabelledKind.label`. `raw` is a list of names, or `Flags`."""
        if isinstance(raw, Flags):
            raw = [name for name, has in zip(*raw) if has]
        present = {label_id(name, ids, where) for name in raw or ()}
        return [int(index in present) for index in range(len(ids))]

    def counted(self, label):
        return [index for index, has in enumerate(label) if has]

    def label_limit(self, described):
        return 2

    def balanced_weights(self, counts):
        """Weights that make each label count as its absence: (N - its examples) / its examples."""
        sizes = [max(count, 1) for count in counts["labels"].values()]
        return [max(counts["examples"] - count, 1) / count for count in sizes]

    def logits(self, probabilities):
        return super().logits(probabilities) - super().logits(1 - probabilities)

    def decode(self, task, answers, examples, features):
        return (answers["probabilities"] > _LEAST_PROBABILITY).astype(np.int64)

    def describe(self, task, example, prediction, probabilities):
        return {"labels": [label for label, has in zip(task.answers, prediction) if has],
                "probabilities": dict(zip(task.answers, rounded(probabilities)))}


class Regression(Classification):
    """A number for a text or for a pair of texts; predictions are float [N]."""

    name, title = "regression", "regression"
    features = FINETUNING["regression"]
    own_metrics = ("pearson", "spearman")
    has_labels = smooths = False
    label_dtype = np.float32

    def _head(self, task, options):
        known = {"scale": options.get("label_scale"), "mean": options.get("label_mean")}
        return self.name, {name: value for name, value in known.items() if value is not None}

    def fitted(self, options, source):
        return with_range(options, (example.label for example in source.examples()))

    def label_of(self, task, ids, texts, raw, where):
        least, most = task.bounds or (-np.inf, np.inf)
        try:
            value = float(raw)
        except ValueError:
            value = np.nan
        if not (abs(value) <= _GREATEST and least <= value <= most):
            bounds = f" from {least} to {most}" if task.bounds else ""
            remedy = "write decimals behind a point" if "," in str(raw) else "correct the line"
            raise InputError(f"{where}: {raw!r} is not a number{bounds}; {remedy}, or name the "
                             "right column with --label_column.")
        return value

    def label_limit(self, described):
        return None

    def decode(self, task, answers, examples, features):
        return answers["values"][:, 0]

    def describe(self, task, example, prediction, probabilities):
        value = float(prediction)
        if not 0 < abs(value) < 1:
            return {"value": round(value, 4)}
        # Four digits of a small number.
        return {"value": round(value, 3 - math.floor(math.log10(abs(value))))}

    def score(self, task, path, examples, predicted):
        """Returns the metrics of the task, the mean absolute error, and the error of an answer that
        is always the mean label of the file."""
        labels = self.targets(task, examples)
        return {**super().score(task, path, examples, predicted),
                "mae": float(np.mean(np.abs(predicted - labels))),
                "mae_of_mean": float(np.mean(np.abs(labels.mean() - labels)))}

    def submission(self, task, predictions):
        return [f"{value:.3f}" for value in np.clip(predictions, *task.bounds)]


class Similarity(Classification):
    """One label of two texts without order, which a left-to-right model reads in both orders
    (Radford et al. 2018, section 3.3). A record holds a sequence for each order; the head reads the
    sum of both outputs."""

    name, title = "similarity", "classification of pairs in both orders"
    features = FINETUNING["multiple_choice"]
    texts = (2, 2, "a tuple of two texts")
    may_turn_pairs = False      # both orders are there

    def _head(self, task, options):
        return "classification", {"num_labels": len(task.labels), "orders": 2}

    def sequences(self, examples):
        return [[tuple(e.texts), tuple(e.texts[::-1])] for e in examples]

    def num_choices(self, example):
        return 2


class MultipleChoice(LabelledKind):
    """The number of the right choice, from 0. An example's texts are the context and the choices;
    its record holds a sequence for each choice. With the option `max_qa_length` choices keep their
    last tokens and contexts are shortened, see `encode_choices`."""

    name, title, job = "multiple_choice", "multiple choice", "multiple_choice"
    features = FINETUNING["multiple_choice"]
    own_metrics: tuple = ("accuracy",)
    input_options = ("max_qa_length", "carry_choices", "long_text")
    needs_choices = True
    texts: tuple = (3, None, "a tuple of the context and two choices or more")
    labels_may_be_far = True

    def sequences(self, examples):
        return [[(e.texts[0], choice) for choice in e.texts[1:]] for e in examples]

    def label_of(self, task, ids, texts, raw, where):
        numbers = {str(index): index for index in range(len(texts) - 1)}
        if raw not in numbers:
            raise InputError(f"{where}: label {raw!r} must be the number of the right choice, from "
                             f"0 to {len(numbers) - 1}; correct the line or the --label_column.")
        return numbers[raw]

    def options(self, given, saved, is_training, path):
        options = super().options(given, saved, is_training, path)
        if options.get("carry_choices") and not options.get("max_qa_length"):
            raise InputError("--carry_choices is for choices that --max_qa_length shortens; give "
                             "--max_qa_length too, or leave --carry_choices out.")
        return {name: value for name, value in options.items() if value is not None}

    def check_options(self, options, max_seq_length, tokenizer):
        super().check_options(options, max_seq_length, tokenizer)
        most = options.get("max_qa_length")
        room = tokenizer.vocabulary.layout.room(max_seq_length, True)
        if most is not None and not 1 <= most < room:
            raise InputError(f"--max_qa_length is {most}; it must be at least 1 and below {room}, "
                             "the room for a context and a choice.")

    def _encode_sequences(self, examples, tokenizer, max_seq_length, options):
        if not options.get("max_qa_length"):
            return super()._encode_sequences(examples, tokenizer, max_seq_length, options)
        return encode_choices(
            [e.texts[0] for e in examples], [e.texts[1:] for e in examples], tokenizer,
            max_seq_length, options["max_qa_length"], bool(options.get("carry_choices")))

    def num_choices(self, example):
        return len(example.texts) - 1

    def submission(self, task, predictions):
        return [int(index) for index in predictions]

    def label_limit(self, described):
        return described["num_choices"]

    def is_degenerate(self, task, answers, examples, predicted):
        """Whether no example has a preferred choice: a number means another text in every example.
        """
        return says_nothing(answers)

    def describe(self, task, example, prediction, probabilities):
        return {"choice": int(prediction), "probabilities": rounded(probabilities)}


def mean_and_deviation(labels: Iterable[float]) -> tuple[float, float] | None:
    """The mean and the standard deviation of labels that a new head does not reach; else None.

    A new head says numbers around 0, and training moves them by a few units. It reaches labels from
    -5 to 5 whose deviation is at least 0.1. A label more than 10 interquartile ranges from the
    median counts in neither, so that a few wrong numbers do not decide about all others. The
    deviation of equal labels is given as 1."""
    values = np.fromiter(labels, np.float64)
    values = values[~_is_far_out(values)]
    mean, deviation = float(values.mean()), float(values.std())
    if np.abs(values).max() <= _REACH and deviation >= _LEAST_DEVIATION:
        return None
    if deviation <= 1e-7 * abs(mean):       # which may be the rounding of equal numbers
        deviation = 1.0
    return mean, deviation


def _is_far_out(values):
    low, median, high = np.percentile(values, [25, 50, 75])
    return (high > low) & (np.abs(values - median) > _FAR_OUT * (high - low))


def is_reached(options: Mapping[str, Any], labels: Iterable[float]) -> bool:
    """Whether a head with `label_mean` and `label_scale` says numbers like these labels: at most 5
    scales from the mean. Five labels or more must also have a deviation of at least 0.1 scales and,
    where training began at a mean, a mean at most 2 scales from it."""
    mean, scale = options.get("label_mean") or 0, options.get("label_scale") or 1
    values = (np.fromiter(labels, np.float64) - mean) / scale
    values = values[~_is_far_out(values)]
    if np.abs(values).max() > _REACH:
        return False
    is_near = not mean or abs(values.mean()) <= _MOST_APART
    return len(values) < _FEW or bool(is_near and values.std() >= _LEAST_DEVIATION)


def with_range(options: Mapping[str, Any], labels: Iterable[float]) -> dict[str, Any]:
    """Returns the options of a regression with `label_mean` and `label_scale` for labels that a new
    head does not reach, unless they are given; says so. Warns of labels that are far from most."""
    labels = list(labels)
    values = np.array(labels, np.float64)
    far = values[_is_far_out(values)]
    if far.size:
        warn(f"{far.size:,} of {len(labels):,} labels are more than {_FAR_OUT} interquartile "
             f"ranges from the median, such as {max(far, key=abs):.6g}; correct or remove wrong "
             "ones, since a few such errors outweigh all others.")
    fitted = {name: value for name, value in zip(("label_mean", "label_scale"),
                                                 mean_and_deviation(labels) or ())
              if options.get(name) is None}
    if fitted:
        flags = ", ".join(f"--{name}={value:.6g}" for name, value in fitted.items())
        print(f"labels from {min(labels):.6g} to {max(labels):.6g} are far from what a new head "
              f"says, so that it starts at their mean and deviation: {flags}", flush=True)
    return {**options, **fitted}


def encode_choices(contexts: list, choices: list, tokenizer, max_seq_length: int,
                   max_qa_length: int, carry_choices: bool) -> tuple[dict, np.ndarray]:
    """Encodes N contexts, each with C choices, and shortens the contexts alone (zihangdai/xlnet
    run_race.py, convert_single_example). Returns input_ids, input_mask, segment_ids [N * C, S], and
    whether each was cut, bool [N * C].

    Args:
        max_qa_length: number of a choice's last tokens that are kept.
        carry_choices: whether a context joined with a choice that fits is the context of later
            choices.
    """
    vocabulary = tokenizer.vocabulary
    layout, parts, is_cut = vocabulary.layout, [], []
    room = layout.room(max_seq_length, True)
    for text, others in zip(contexts, choices):
        ids, lengths = tokenizer.encode_lines([text, *others])
        context, *encoded = np.split(ids, np.cumsum(lengths)[:-1])
        for choice in encoded:
            tail = choice[-max_qa_length:][-room:]
            fits = len(context) + len(tail) <= room
            parts.append((context[:room - len(tail)], tail))
            is_cut.append(not fits or len(tail) < len(choice))
            if carry_choices and fits:
                one = pack_parts([(context, tail)], max_seq_length, vocabulary, all_pairs=True)
                context = one["input_ids"][one["input_mask"]]
    return pack_parts(parts, max_seq_length, vocabulary, layout.pads_left,
                      all_pairs=True), np.array(is_cut)
