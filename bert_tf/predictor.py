"""A fine-tuned model that is kept warm and takes raw texts."""

import collections
import functools
import os
from collections.abc import Callable

import tensorflow as tf

from bert_tf.checkpoints import names, weights_at
from bert_tf.errors import InputError, check_least, check_process, counted, opened_again
from bert_tf.export.ids_model import answers
from bert_tf.files import absolute, fetched, is_folder
from bert_tf.fill_mask import FillMask, open_masked_lm
from bert_tf.opening import TASK_HEADS, open_model
from bert_tf.tasks import annotations, forms
from bert_tf.tasks.named import layout_of
from bert_tf.tasks.reading import without_breaks
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.tokenization import check_fits
from bert_tf.tokenization.base import as_tuple, listed
from bert_tf.tokenization.coverage import Coverage
from bert_tf.training.batches import answer_rows
from bert_tf.training.distribution import check_backend, compiled, counted_heads
from bert_tf.training.learners.learner import Learner

check_backend()
_PIECE = 1 << 12    # examples that are made into ids, and sorted by length, at a time


class Predictor:
    """Predicts labels, tags or answers for texts with a fine-tuned model.

        predictor = bert_tf.Predictor("output_dir")
        predictor("A text.")                            # one example: a dict
        predictor(("A text.", "Another."))              # one example that has two texts: a tuple
        predictor(["A text.", "A text more."])          # examples: a list, of dicts in their order

    The form of an example, and the keys of its dict, depend on the kind of the task:

    - classification: a text, or a tuple of two, as in training; `label`, and `probabilities` by
      label. For GLUE's numbered labels also the label's `name`, such as "equivalent". With several
      labels an example, `labels`, each of a probability above 0.5, and `probabilities`.
    - regression: the same texts; `value`.
    - tagging: a tuple of words, or a text, which is split at white space, or as in training if
      texts were annotated there; `words`, `tags`, and `entities`, each with its `type`, its `text`
      and its `first` and `last` word, from 0; of a text also its characters, from `start` to before
      `end`. A long text is seen in windows, as in training; none of it is left out.
    - multiple_choice, ranking: a tuple of the context and the choices, or of a question and its
      candidates; `choice`, from 0, and `probabilities`.
    - span: a tuple of a question and a passage, long or short; `answer`, its `probability`, and
      `n_best`, each with `text`, `probability`, `start_logit` and `end_logit`. A model of SQuAD 2.0
      may answer "", by the threshold in its task.json, and gives `null_odds`. As in the original's
      files, the answer is "empty" where none of the likeliest starts and ends go together.
    - text_to_text: a text that begins with its task's name, as in training; `text`.

    The output of pre-training, before any fine-tuning, answers texts with "[MASK]" as `FillMask`
    does: `masks`.

    Beyond rounding, a prediction does not depend on the other texts in the list. Two models are
    exceptions: MobileBERT, whose padding keeps some weight, and a quantised model whose inputs have
    the range of the batch (`--activation_ranges=dynamic`, or never trained). Texts of a pair or a
    choice that are too long together are cut to fit, as in training.
    """

    _opened: tuple | None = None    # the arguments; None: the model is in memory
    _fill: FillMask | None = None   # of a model that was pre-trained alone

    def __init__(self, path: str | os.PathLike, batch_size: int = 32, dtype: str | None = None,
                 task: str | None = None):
        """Opens the model in a folder.

        Args:
            path: an output folder of fine-tuning, or of pre-training with a masked LM.
            batch_size: most examples, or windows of them, that the model reads at a time; it reads
                fewer long ones.
            dtype: Keras's name of the policy, such as "bfloat16"; its default if None.
            task: the task to predict for, if the model has several.
        """
        check_process()
        folder = fetched(path)
        self._opened = (absolute(folder), batch_size, dtype, task)
        if task is not None:
            folder = names.known_task_folder(folder, task)
        if task is None and _is_pretrained(folder):
            self._fill = FillMask(folder, batch_size, dtype)
            return
        model = open_model(folder, finetuned=True)
        self._take(model.learner(dtype), model.tokenizer, model.saved, batch_size)

    @classmethod
    def from_learner(cls, learner: Learner, tokenizer, saved_task: SavedTask,
                     batch_size: int = 32) -> "Predictor":
        """Returns a Predictor of a model in memory. The Learner has one objective."""
        predictor = cls.__new__(cls)
        predictor._take(learner, tokenizer, saved_task, batch_size)
        return predictor

    def _take(self, learner, tokenizer, saved_task, batch_size):
        check_least("batch_size", batch_size)
        check_fits(tokenizer.vocabulary, learner.encoder.config.vocab_size)
        task, (objective,) = saved_task.task, learner.objectives
        count = getattr(objective, "num_labels", 0)
        if task.labels and task.kind.labels_are_classes and count != len(task.labels):
            raise InputError(f"the model has {count} labels, but {TASK_FILE} has "
                             f"{len(task.labels)}: {', '.join(task.labels)}; use the {TASK_FILE} "
                             "from the model's training.")
        self._saved, self._kind = saved_task, task.kind
        self._tokenizer, self._batch_size, self._coverage = tokenizer, batch_size, Coverage()
        self._length = saved_task.max_seq_length
        self._positional, self._fixed = objective.positional, objective.inputs
        # Sizes are unknown, so that the model is traced once and not for every length.
        self._choices = any(feature.axis == "C*S" for feature in self._kind.features)
        self._heads = counted_heads(learner.encoder.config)
        self._reads = self._kind.reads or (*learner.reads, *self._fixed)
        answer = functools.partial(answers, learner)
        if self._kind.reads:
            arguments = self._kind.generation(saved_task.options)

            def answer(batch):
                return {"tokens": learner.encoder.generate(*batch.values(), **arguments)}

        axes = {name: 2 + (self._choices and name not in self._fixed) for name in self._reads}
        self._forward = compiled(
            lambda *ids: answer(dict(zip(self._reads, ids))),
            input_signature=[tf.TensorSpec([None] * count, tf.int32, name)
                             for name, count in axes.items()])

    def __reduce__(self):
        # A copy, as for another process, opens the folder again.
        if self._opened is None:
            raise InputError("this Predictor's model is in memory alone and can't be copied; save "
                             "the model, and open its folder where you need it.")
        return opened_again, (type(self), *self._opened)

    def __repr__(self) -> str:
        if self._fill:
            return f"Predictor({self._fill!r})"
        labels = ", ".join(self._saved.task.label_names or self._saved.task.labels)
        title = f"{self._kind.title} into {labels}" if labels else self._kind.title
        return f"Predictor({title}; texts of up to {self._length} tokens)"

    @property
    def saved_task(self) -> SavedTask | None:
        return None if self._fill else self._saved

    def __call__(self, examples: str | tuple | list) -> dict | list[dict]:
        """Returns the predictions: a dict, or for a list of examples a list of dicts in their
        order. A list may also be an iterator, another sequence, an array, or a column or a table
        of pandas: a row an example. InputError, which names the index, if the model can't take an
        example."""
        examples = listed(examples)
        if not isinstance(examples, list):
            return self.predict([examples], lambda _: "the example")[0]
        return self.predict(examples)

    def predict(self, examples: list, where: Callable[[int], str] = "example {}".format
                ) -> list[dict]:
        """Returns the predictions for a list; `where` names an example in errors by its index."""
        check_process()
        if self._fill:
            return list(self._fill.stream(examples, where=where))
        parsed = [self._example(example, index, where(index))
                 for index, example in enumerate(examples)]
        texts = [text for example in parsed for text in example.texts]
        if self._kind.name == "tagging":
            texts = [" ".join(example.texts) for example in parsed]
        if texts:
            self._coverage.add(self._tokenizer, texts, *self._tokenizer.encode_lines(texts))
            self._coverage.warn_once()
        # Pairs and single texts, or more and fewer choices, do not share a batch.
        alike = collections.defaultdict(list)
        for index, example in enumerate(parsed):
            alike[self._kind.batch_key(example)].append(index)
        predictions: list[dict] = [{}] * len(parsed)
        for indices in alike.values():
            for first in range(0, len(indices), _PIECE):
                piece = indices[first:first + _PIECE]
                predicted = self._kind.answer(
                    self._saved.task, [parsed[i] for i in piece], self._run, self._tokenizer,
                    self._length, self._saved.options)
                for index, answer in zip(piece, predicted):
                    predictions[index] = self._kind.placed(examples[index], answer)
        return predictions

    @property
    def coverage(self) -> Coverage:
        """What the vocabulary knows of all examples so far; a warning came with the first ones of
        which it knows too little."""
        return self._fill.coverage if self._fill else self._coverage

    def _example(self, raw, number, where):
        least, most, form = self._kind.texts
        for text in as_tuple(raw):
            if not isinstance(text, str):
                raise InputError(f"{where}: found a value of type {type(text).__name__} in place "
                                 f"of a text; give {form}, or a list of such examples.")
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(f"{where}: character {error.start} of a text, "
                                 f"{text[error.start]!r}, is half of a surrogate pair; decode the "
                                 "text correctly.") from None
        if isinstance(raw, str) and self._saved.columns.get("format") == forms.ANNOTATIONS:
            raw = tuple(word for word, *_ in annotations.split_words(raw))
        layout = layout_of(self._saved.task.name)
        if layout and isinstance(raw, tuple):       # texts are cleaned as in training
            raw = tuple(without_breaks(text, layout) for text in raw)
        elif layout:
            raw = without_breaks(raw, layout)
        example = self._kind.example(raw, number)
        count = len(example.texts)
        if count < least or most and count > most:
            raise InputError(f"{where} has {counted(count, 'text')}; give {form}.")
        self._saved.check_texts(count, where)
        self._kind.check_example(example.texts, self._tokenizer, where)
        return example

    def _run(self, features):
        """Returns the model's answers to rows of features, a dict of float32 arrays [N, ...]. A
        feature is [N, S], or [N, C * S] with C choices, unless the head alone reads it."""
        return answer_rows(self._forward, features, self._reads, self._length, self._batch_size,
                           self._positional, self._choices, self._fixed, self._heads)


def _is_pretrained(folder):
    """Returns whether a folder holds a model with a masked LM that no task was trained with."""
    if SavedTask.read(folder) or names.tasks_beside(folder) or not is_folder(folder):
        return False
    try:
        heads = open_masked_lm(folder).weights.heads
    except InputError:
        return False
    return "huggingface" not in weights_at(folder) or TASK_HEADS.keys().isdisjoint(heads)
