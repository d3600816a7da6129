"""Answers in paragraphs, as in SQuAD (google-research/bert run_squad.py), scores and files."""

import dataclasses
import itertools
import operator
import os

import numpy as np

from bert_tf.data.records import features
from bert_tf.errors import InputError
from bert_tf.tasks import squad, squad_answers, squad_scorer
from bert_tf.tasks.answer_spans import SpanOptions, SquadRecords, cut_spans
from bert_tf.tasks.kinds.labelled import SplitPredictions, is_flat
from bert_tf.tasks.question_files import form_of
from bert_tf.tasks.squad_answers import AnswerOptions
from bert_tf.tasks.task import Kind, settle, warn_of_cut

THRESHOLD = "null_score_diff_threshold"
_NEGATIVE = "version_2_with_negative"
_SAMPLES = 4        # answers that are shown
# Beam widths of the styles whose head has beams.
_BEAMS = {"albert": 5, "electra": 20, "xlnet": 5}


class Span(Kind):
    """The part of a paragraph that answers a question. An example's texts are the two.

    Options are the fields of `SpanOptions` and `AnswerOptions`; in SQuAD v2.0 the threshold
    `null_score_diff_threshold`, if one was given or found; and the beam width of heads with beams.
    """

    name, title, job = "span", "answers in paragraphs", "squad"
    features = features.ANSWER_SPAN + features.ANSWER_SPAN_LABELS
    smooths = measures = False
    head_options = ("bilstm_size", "squad_style", "version_2_with_negative")
    texts = (2, 2, "a tuple of a question and a passage")

    def is_percent(self, score):
        return not score.endswith(("_thresh", THRESHOLD))

    def options(self, given, saved, is_training, path):
        """See `Kind.options`; defaults are the original's. Training drops the model's threshold."""
        if given.get(_NEGATIVE) and saved and not (is_training or saved.get(_NEGATIVE)):
            raise InputError(f"{path} was trained without questions that have no answer; leave out "
                             "--version_2_with_negative.")
        if saved and given.get("squad_style") not in (None, _style(saved)):
            raise InputError(f"{path} was trained with --squad_style={_style(saved)}; leave the "
                             "flag out.")
        if is_training:
            saved = {name: value for name, value in saved.items() if name != THRESHOLD}
        options = settle(given, saved, {**vars(SpanOptions()), **vars(AnswerOptions())})
        if options.get(_NEGATIVE) and not given.get("scorer"):
            options["scorer"] = None        # of a model that learned that all have an answer
        return {name: value for name, value in options.items() if value is not None}

    def check_options(self, options, max_seq_length, tokenizer):
        if (options.get("scorer") or "squad") != "squad" and options[_NEGATIVE]:
            raise InputError(f"--scorer={options['scorer']} is for questions that all have an "
                             "answer; leave out --scorer, or --version_2_with_negative.")
        _span_options(options, max_seq_length).check(tokenizer.vocabulary.layout)

    def fixed_options(self, options):
        """Returns the style, if it is not BERT's, the scorer, if it is not SQuAD's, and the head's
        LSTM, if any; records and scores show where other options differ."""
        fixed = {name: options.get(name) for name in ("squad_style", "scorer", "bilstm_size")}
        return {name: value for name, value in fixed.items()
                if value and value not in (SpanOptions.squad_style, "squad")}

    def _head(self, task, options):
        style = _style(options)
        if (style not in _BEAMS or style == "albert" and not options.get(_NEGATIVE)
                or options.get("start_n_top") == 0):        # of transformers' XLNet
            return "answer_span", {}
        starts = options.get("start_n_top") or _BEAMS[style]
        return "conditional_span", {"form": style, "num_starts": starts,
                                    "num_ends": options.get("end_n_top") or starts}

    def records(self, source, tokenizer, max_seq_length, options, output_dir):
        path = os.path.join(output_dir, f"{source.split}.tfrecord")
        return SquadRecords(source.path, path, tokenizer, source.split == "train",
                            options[_NEGATIVE], _span_options(options, max_seq_length))

    def predictions(self, source, tokenizer, max_seq_length, options, is_scored):
        return SquadPredictions(source.path, tokenizer, max_seq_length, options, is_scored)

    def headline(self, task, eval_splits):
        return f"{SquadPredictions.prefix}/{task.headline}"

    def scored_on(self, identities, options):
        if not identities:
            return None
        return [*identities, options.get(THRESHOLD, 0.0), options["n_best_size"],
                options["max_answer_length"]]

    def check_example(self, texts, tokenizer, where):
        if not tokenizer.encode(texts[1]):
            raise InputError(f"{where} has an empty passage; give a passage with at "
                             "least one word.")

    def answer(self, task, examples, run, tokenizer, max_seq_length, options):
        paragraphs = []
        for index, example in enumerate(examples):
            question, passage = example.texts
            paragraphs.append(squad.Paragraph(
                squad.passage_words(passage, _style(options)),
                [squad.Question(str(index), question)], [], passage))
        span_options = _span_options(options, max_seq_length)
        spans = cut_spans(paragraphs, tokenizer, span_options)
        warn_of_cut(bool(spans.query_cut.any()), "questions", span_options.max_query_length,
                    "--max_query_length")
        outputs = run(spans.features(0, len(spans.start), span_options, tokenizer.vocabulary))
        predictions = squad_answers.find_answers(spans, outputs, tokenizer,
                                                 _taken(AnswerOptions, options))
        return [prediction.describe(options.get(THRESHOLD, 0.0)) for prediction in predictions]


def _style(options):
    return options.get("squad_style", SpanOptions.squad_style)


def _taken(kind, options):
    return kind(**{field.name: options[field.name] for field in dataclasses.fields(kind)
                   if field.name in options})


def _span_options(options, max_seq_length):
    return _taken(SpanOptions, {**options, "max_seq_length": max_seq_length})


class SquadPredictions(SplitPredictions):
    """The answers to a SQuAD file's questions, also to parts of passages, which `decode` brings
    together. `options`: see `Span`; `choose` adds to them. `is_scored`: requires the file to hold
    the correct answers."""

    prefix = "squad"

    def __init__(self, path, tokenizer, max_seq_length, options, is_scored):
        self._path, self._tokenizer, self._options = path, tokenizer, options
        self._span_options = _span_options(options, max_seq_length)
        self._official = squad.read_official_ids(path)
        # Files of TriviaQA are known by their form.
        self._scorer = squad_scorer.SCORERS.get(
            options.get("scorer") or form_of(path) or "", squad_scorer.SCORERS["squad"])
        self._answers, self._unscored = None, "holds no answers"
        if squad.holds_answers(path):
            self._answers = squad.read_answers(path)
            self._scorer.f1("", "")     # raises where a package is missing
            if not (options[_NEGATIVE] or all(self._answers.values())):
                if is_scored:
                    squad_scorer.score_v1(self._answers, {})    # raises
                self._answers = None
                self._unscored = "has questions without an answer, which the model does not expect"
        elif is_scored:
            raise InputError(f"--do_eval: {path} holds no answers to score against; give only "
                             "--do_predict, or a file with answers.")

    def is_scored(self, is_wanted):
        """Whether there are correct answers, which are used even without --do_eval."""
        if self._answers is None:
            print(f"no scores: {self._path} {self._unscored}", flush=True)
        return self._answers is not None

    @property
    def size(self):
        return len(set(self._official.values()))

    @property
    def _threshold(self):
        return self._options.get(THRESHOLD, 0.0)

    def decode(self, answers, records):
        """Returns a `Prediction` for each official id, in the order of the file."""
        return squad_answers.join_documents(squad_answers.find_file_answers(
            self._path, answers, self._tokenizer, self._span_options,
            _taken(AnswerOptions, self._options)), self._official, self._options["n_best_size"])

    def combine(self, members):
        """See `SplitPredictions.combine`. Predictions are `squad_answers.combine_predictions`;
        there are no common answers. The threshold is the mean of the members'."""
        decoded = [one.decode(answers, records) for one, answers, records in members]
        known = [one._threshold for one, _, _ in members]
        if any(known):
            self._options[THRESHOLD] = sum(known) / len(known)
        return {}, squad_answers.combine_predictions(decoded, self._options["n_best_size"])

    def _texts_and_odds(self, predicted):
        return ({one.id: one.text for one in predicted},
                {one.id: one.null_odds for one in predicted})

    def score(self, predicted):
        """Returns the scores in percent, the headline first."""
        texts, odds = self._texts_and_odds(predicted)
        if self._options[_NEGATIVE]:
            scores = squad_scorer.score_v2(self._answers, texts, odds, self._threshold)
        else:
            scores = squad_scorer.score_v1(self._answers, texts, self._scorer)
        names = ["f1", *(name for name in scores if name != "f1" and not name.endswith("total"))]
        return {name: scores[name] for name in names}

    def against_ties(self, answers, predicted):
        """The answers as they are, so that official scripts compute the same scores."""
        return predicted

    def is_degenerate(self, answers, predicted):
        """Whether all questions get one answer although their correct answers differ, or all
        positions of each window, or all beams, have one score."""
        scores = [values for name, values in answers.items()
                  if name.endswith(("start_logits", "end_logits", "top_log_probs"))]
        if scores and all(is_flat(values.max(axes), values.min(axes)) for values in scores
                          for axes in [tuple(range(1, values.ndim))]):
            return True
        texts = {prediction.answer(self._threshold) for prediction in predicted}
        return len(texts) == 1 < len(set(map(tuple, self._answers.values())))

    def choose(self, predicted):
        """In v2.0, returns the threshold of the best F1, unless a flag or the model names one."""
        if not self._options[_NEGATIVE] or THRESHOLD in self._options:
            return {}
        texts, odds = self._texts_and_odds(predicted)
        f1 = {name: pair[1] for name, pair in squad_scorer.question_scores(
            self._answers, texts).items()}
        threshold = squad_scorer.reachable_threshold(self._answers, texts, odds, f1)
        if predicted[0].is_strict:      # the question with these odds is to be answered too
            threshold = float(np.nextafter(threshold, np.inf))
        self._options[THRESHOLD] = threshold
        print(f"--{THRESHOLD}={threshold} gives the best F1 on {self._path}; it is saved with the "
              "model and used from now on", flush=True)
        return {THRESHOLD: threshold}

    def describe_scores(self):
        described = {"predict_file": self._path}
        if self._options[_NEGATIVE]:
            described[THRESHOLD] = self._threshold
        return described

    def _samples(self, predicted):
        firsts = (next(group)[1] for _, group in itertools.groupby(
            zip(self._official.values(), squad.read_references(self._path)),
            key=operator.itemgetter(0)))
        both, same = zip(predicted, firsts), self._scorer.normalized
        for one, (question, _, right) in itertools.islice(
                both, 0, None, -(-len(predicted) // _SAMPLES)):
            answer, known = one.answer(self._threshold), ""
            if self._answers is not None:
                known = f"  (in the file: {(right or ['no answer'])[0]})"
                if same(answer) in map(same, right or [""]):
                    known = "  (right)"
            yield f"  {question} -> {answer or 'no answer'}{known}"

    def write(self, folder, answers, predicted, is_test):
        """Writes predictions.json, nbest_predictions.json and, in v2.0, null_odds.json."""
        squad_answers.write_predictions(folder, predicted, self._threshold)
        print("\n".join(self._samples(predicted)), flush=True)
        names = ["predictions", "nbest_predictions", *["null_odds"] * self._options[_NEGATIVE]]
        return [os.path.join(folder, f"{name}.json") for name in names]
