"""A fine-tuned model that is kept warm and takes raw texts."""

import collections
import dataclasses
import os

import tensorflow as tf

from bert_tf import checkpoints, networks, pretrained
from bert_tf.checkpoints import keras_file, rules
from bert_tf.data.bucketing import padded_length, sorted_batches
from bert_tf.errors import InputError
from bert_tf.export.ids_model import answers
from bert_tf.tasks import decoding, predictions, squad
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.encoding import encode
from bert_tf.tasks.reading import Example
from bert_tf.tasks.saved import TASK_FILE, SavedTask
from bert_tf.tasks.squad_answers import AnswerOptions, predict_answers
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from bert_tf.training.learner import Learner
from bert_tf.training.batches import put

_PIECE = 1 << 12    # examples that are made into ids, and sorted by length, at a time
# Least and most texts of an example, and how an error says it.
_SENTENCES = (1, 2, "a text, or a tuple of two")
_TEXTS = {"classification": _SENTENCES, "regression": _SENTENCES,
          "tagging": (0, None, "a text, or a tuple of its words"),
          "multiple_choice": (3, None, "a tuple of the context and two choices or more"),
          "span": (2, 2, "a tuple of a question and a passage")}


class Predictor:
    """Says of texts what a fine-tuned model was trained to say.

        predictor = bert_tf.Predictor("output_dir")
        predictor("A text.")                            # one example: a dict
        predictor(("A text.", "Another."))              # one example that has two texts: a tuple
        predictor(["A text.", "A text more."])          # examples: a list, of dicts in their order

    An example is, and its dict has, by the kind of the task:

    - classification: a text, or a tuple of two; `label`, and `probabilities` by label. With several
      labels an example, `labels`, those of a probability above 0.5, and `probabilities`.
    - regression: the same; `value`.
    - tagging: a text, which is split at white space, or a tuple of words; `words`, `tags`, and
      `entities`, each with its `type`, its `text` and its `first` and `last` word, from 0. A long
      text is seen in windows, as in training; none of it is left out.
    - multiple_choice: a tuple of the context and the choices; `choice`, from 0, and
      `probabilities`.
    - span: a tuple of a question and a passage, long or short; `answer`, its `probability`, and
      `n_best`, each with `text`, `probability`, `start_logit` and `end_logit`. A model of SQuAD 2.0
      may answer "", by the threshold in its task.json, and says `null_odds`. As in the original's
      files, "empty" is said where none of the likeliest starts and ends go together.

    What is said does not depend, beyond rounding, on what else is in the list. Texts of a pair or
    a choice that are too long together are cut to fit, as in training.
    """

    def __init__(self, path, batch_size=32, dtype=None):
        """
        Args:
            path: the output folder of run_classifier, run_tagger, run_multiple_choice or run_squad.
            batch_size: examples, or windows of them, that the model reads at a time.
            dtype: Keras's name of the policy, such as "mixed_bfloat16"; its default if None.

        Raises:
            InputError: the folder holds no fine-tuned model, or its files do not fit together.
        """
        self._take(*_read(os.fspath(path), dtype), batch_size)

    @classmethod
    def from_learner(cls, learner, tokenizer, saved_task, batch_size=32):
        """A Predictor of a model in memory.

        Args:
            learner: `Learner` of one objective.
            tokenizer: `WordpieceTokenizer`.
            saved_task: `SavedTask`.
            batch_size: see `Predictor`.

        Raises:
            InputError: they do not fit together.
        """
        predictor = cls.__new__(cls)
        predictor._take(learner, tokenizer, saved_task, batch_size)
        return predictor

    def _take(self, learner, tokenizer, saved_task, batch_size):
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; it must be at least 1.")
        task, rows = saved_task.task, learner.encoder.config.vocab_size
        if tokenizer.vocabulary.size != rows:
            raise InputError(f"the vocabulary has {tokenizer.vocabulary.size:,} tokens, the model "
                             f"{rows:,}; take the vocab.txt that it was trained with.")
        objective, = learner.objectives
        count = getattr(objective, "num_labels", 0)
        if task.labels and count != len(task.labels):
            raise InputError(f"the model has {count} labels, its task "
                             f"{len(task.labels)}: {', '.join(task.labels)}; take the "
                             f"{TASK_FILE} that it was trained with.")
        self._task, self._tokenizer, self._batch_size = task, tokenizer, batch_size
        self._length, self._options = saved_task.max_seq_length, saved_task.options
        self._along = objective.source == "sequence_output"
        # Of unknown sizes, so that it is traced once and not for every length.
        sizes = [None] * (3 if task.kind == "multiple_choice" else 2)
        self._reads = learner.encoder.reads
        self._forward = tf.function(
            lambda *ids: answers(learner, dict(zip(self._reads, ids))), autograph=False,
            input_signature=[tf.TensorSpec(sizes, tf.int32, name) for name in self._reads])

    def __call__(self, examples):
        """What the model says: a dict, or of a list of examples a list of dicts in their order.

        Raises:
            InputError: an example is not what the model takes; names its index.
        """
        if not isinstance(examples, list):
            return self._predict([self._example(examples, "the example")])[0]
        given = [self._example(example, f"example {index}")
                 for index, example in enumerate(examples)]
        # Pairs and single texts, or more and fewer choices, do not share a batch.
        alike = collections.defaultdict(list)
        for index, example in enumerate(given):
            alike[0 if self._task.kind == "tagging" else len(example.texts)].append(index)
        said = [None] * len(given)
        for indices in alike.values():
            for first in range(0, len(indices), _PIECE):
                piece = indices[first:first + _PIECE]
                for index, answer in zip(piece, self._predict([given[i] for i in piece])):
                    said[index] = answer
        return said

    def _example(self, given, where):
        """The `Example` that a string or a tuple stands for."""
        kind = self._task.kind
        texts = list(given) if isinstance(given, tuple) else [given]
        least, most, wanted = _TEXTS[kind]
        for text in texts:
            if not isinstance(text, str):
                raise InputError(f"{where}: found a value of type {type(text).__name__} where text "
                                 f"must stand; give {wanted}, or a list of such examples.")
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(f"{where}: character {error.start} of a text, "
                                 f"{text[error.start]!r}, is half of a surrogate pair; mend how "
                                 "the text was decoded.") from None
        if kind == "tagging" and not isinstance(given, tuple):
            texts = given.split()
        if len(texts) < least or most and len(texts) > most:
            raise InputError(f"{where} has {len(texts)} text(s); give {wanted}.")
        if kind == "span" and not self._tokenizer.encode(texts[1]):
            raise InputError(f"{where} has an empty passage; give one with a word in it.")
        return Example(texts, [0] * len(texts) if kind == "tagging" else 0)

    def _predict(self, examples):
        """The dicts of examples that have equally many texts."""
        task = self._task
        if task.kind == "span":
            return self._find_answers(examples)
        if not any(example.texts for example in examples):      # no words to tag
            return list(predictions.describe_all(task, examples, [[] for _ in examples], {}))
        features, _ = encode(task, examples, self._tokenizer, self._length)
        found = self._run(features)
        predicted = decoding.decode(task, found, examples, features.get("label_weights"))
        return list(predictions.describe_all(task, examples, predicted, found))

    def _find_answers(self, examples):
        """The dicts of questions and passages."""
        options = {**self._options, "max_seq_length": self._length}
        span_options, answer_options = (
            kind(**{field.name: options[field.name] for field in dataclasses.fields(kind)
                    if field.name in options}) for kind in (SpanOptions, AnswerOptions))
        paragraphs = []
        for index, example in enumerate(examples):
            question, passage = example.texts
            paragraphs.append(squad.Paragraph(
                squad.passage_words(passage), [squad.Question(str(index), question)], []))
        spans = cut_spans(paragraphs, self._tokenizer, span_options)
        found = self._run(spans.features(0, len(spans.start), span_options,
                                         self._tokenizer.vocabulary))
        answered = predict_answers(spans, found["start_logits"], found["end_logits"],
                                   self._tokenizer, answer_options)
        threshold = options.get("null_score_diff_threshold", 0.0)
        return [prediction.describe(threshold) for prediction in answered]

    def _run(self, features):
        """What the model answers to rows of features, each [N, S] or, of C choices, [N, C * S]:
        a dict of float32 arrays [N, ...].
        """
        inputs = {name: features[name].astype("int32") for name in self._reads}
        if self._task.kind == "multiple_choice":
            inputs = {name: rows.reshape(len(rows), -1, self._length)
                      for name, rows in inputs.items()}
        lengths = inputs["input_mask"].sum(-1).reshape(len(inputs["input_mask"]), -1).max(1)
        found = {}
        for rows in sorted_batches(lengths, self._batch_size):
            length = padded_length(lengths[rows], self._length)
            values = self._forward(*(inputs[name][rows, ..., :length] for name in self._reads))
            put(found, rows, {name: value.numpy() for name, value in values.items()}, lengths,
                self._length if self._along else None)
        return found


def _read(path, dtype):
    """The Learner, the tokenizer and the `SavedTask` in a folder."""
    file = os.path.join(path, keras_file.NAME)
    if not os.path.isfile(file):
        raise InputError(f"there is no {keras_file.NAME} in {path}; name the --output_dir of a "
                         "model that was fine-tuned.")
    saved_task = SavedTask.read(path)
    if not saved_task:
        raise InputError(f"there is no {TASK_FILE} in {path}, so that what the model was trained "
                         "for is not known; fine-tune it, or use Predictor.from_learner.")
    vocabulary = Vocabulary.from_file(os.path.join(path, rules.VOCABULARY))
    config = checkpoints.read_config(file)
    learner = Learner(networks.build(config, dtype=dtype), [
        getattr(pretrained, name).from_config({**options, "dtype": dtype})
        for name, options in keras_file.read_objectives(file)])
    account = checkpoints.load(file, learner)
    if account.missing:
        raise InputError(f"{file} has no {', '.join(account.missing)}; fine-tune the model again.")
    return learner, WordpieceTokenizer(vocabulary, saved_task.do_lower_case), saved_task
