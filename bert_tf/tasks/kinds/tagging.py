"""A tag for each word of a sentence. A sentence longer than a sequence is read in windows, which
together answer for each of its tokens once."""

import collections
import dataclasses
import itertools
import os
from collections.abc import Iterator

import numpy as np

from bert_tf.data.records.features import FINETUNING, pack_pairs
from bert_tf.errors import InputError
from bert_tf.files import is_library_name, write_aside
from bert_tf.metrics import entities, is_entity_tag
from bert_tf.tasks.kinds.labelled import LabelledKind, label_id, says_nothing
from bert_tf.tasks.reading import Example
from bert_tf.tasks.tag_schemes import bio_name, from_bioes, labels_in, scheme_of, to_bioes

_NO_BREAK = "\N{NO-BREAK SPACE}"
_OUTSIDE = "O"      # of entities
_KEPT = "document_context"      # may differ from the value in training


class Tagging(LabelledKind):
    """The tags of words. An example's texts are a sentence's words; labels and predictions are
    lists of sentences, each a list of tags, in the scheme `bio` whatever the scheme of the task's
    labels is. Answers and features have a row for each window: logits [W, S, L] for W windows. In
    files to score, an example has a tag's name in place of its id if the model doesn't know it."""

    name, title, job = "tagging", "tagging", "tagger"
    features = FINETUNING["tagging"]
    head_options = ("bilstm_size", "feature_layers", "lstm_size", "lstm_layers")
    own_metrics = ("entity_f1", "entity_precision", "entity_recall", "tag_accuracy")
    has_labels = True
    takes_ties = True       # of equally likely tags the first, which is O for entities
    default_columns, format = ("0", "-1"), "words"
    texts = (0, None, "a text, or a tuple of its words")

    def label(self, task, ids, texts, raw, where):
        if raw is None:
            return [0] * len(texts)
        if scheme_of(task.labels) == "bioes":
            raw = to_bioes(raw)
        return [ids.get(tag, tag) for tag in raw]

    def check_taught(self, label, ids, where):
        for tag in label:
            if isinstance(tag, str):
                label_id(tag, ids, where)

    def check_counted(self, task, counts, path):
        """A note on tags that the model doesn't know; InputError if it knows none but O."""
        unknown: collections.Counter = collections.Counter()
        for tag, count in counts.items():
            if isinstance(tag, str):
                unknown[bio_name(tag) if scheme_of(task.labels) == "bioes" else tag] += count
        if not unknown:
            return []
        names = ", ".join(f"{tag} ({count:,})" for tag, count in sorted(unknown.items()))
        inside = [label for label in task.labels if label != _OUTSIDE]
        if not any(task.labels[tag] in inside for tag in counts if not isinstance(tag, str)):
            raise InputError(f"{path} has no tag of {', '.join(inside)}, but {names}; give the "
                             "right --label_column, or another model.")
        return [f"{path} has tags that the model doesn't know, which are scored as wrong: {names}."]

    def with_labels(self, task, labels):
        """Returns the task with labels; tags that name no entities are scored word by word."""
        task = super().with_labels(task, labels)
        if labels and not any(map(is_entity_tag, labels)):
            task = dataclasses.replace(task, metrics=("tag_accuracy",))
        return task

    def records(self, source, tokenizer, max_seq_length, options, output_dir):
        if options.get(_KEPT) and is_library_name(source.path):
            raise InputError(f"--document_context: the rows of {source.path} do not say where a "
                             "document begins; give official files, or leave the flag out.")
        return super().records(source, tokenizer, max_seq_length, options, output_dir)

    def fits_labels(self, labels, trained):
        if scheme_of(labels) == scheme_of(trained) or not any(map(is_entity_tag, labels)):
            return set(labels) == set(trained)      # no score depends on their order
        return set(labels_in("bioes", labels)) == set(labels_in("bioes", trained))

    def counted(self, label):
        return label

    def options(self, given, saved, is_training, path):
        """Refuses values that differ from training, except for --document_context."""
        for name, value in given.items():
            known = saved.get(name)
            if name != _KEPT and None not in (value, known) and value != known:
                raise InputError(f"{path} was trained with --{name}={known}, not {value}; leave "
                                 "the flag out.")
        options = super().options(given, saved, is_training, path)
        layers = options.get("feature_layers")
        if is_training and layers != given.get("feature_layers"):
            raise InputError(f"--init_checkpoint was trained with --feature_layers={layers}; give "
                             "the same flag, or leave out --keep_head.")
        return options

    def _head(self, task, options):
        arguments = {"num_labels": len(task.labels)}
        if not options.get("feature_layers"):
            return "tagging", arguments
        sizes = {name: options[name] for name in ("lstm_size", "lstm_layers")
                 if options[name] is not None}
        return "feature_tagging", {**arguments, "layers": options["feature_layers"], **sizes}

    def encode(self, task, examples, tokenizer, max_seq_length, options=None):
        """Makes a row per window. Read row by row, the positions whose `label_weights` is 1 are the
        first tokens of the sentences' words in order. Nothing is cut. All tokens are in segment 0,
        and Chinese words are split into characters; google-research/electra has segment 1, and
        doesn't split them."""
        words = [word for example in examples for word in example.texts]
        tokens, pieces = tokenizer.encode_words(words)
        # A word without a token, such as a lone control character, still has a label. Its token is
        # the unknown one or, if absent, the one that ends a text.
        gaps, unknown = np.cumsum(pieces)[pieces == 0], tokenizer.vocabulary.unk_id
        tokens = np.insert(tokens, gaps,
                           tokenizer.vocabulary.sep_id if unknown is None else unknown)
        pieces = np.maximum(pieces, 1)

        word_starts = np.cumsum(pieces) - pieces
        labels, is_first = np.zeros([2, len(tokens)], np.int64)
        labels[word_starts] = [0 if isinstance(tag, str) else tag
                               for example in examples for tag in example.label]
        is_first[word_starts] = 1

        ends = np.append(word_starts, len(tokens))[np.cumsum([len(e.texts) for e in examples])]
        sentences = list(zip([0, *ends.tolist()], ends.tolist()))
        bounds = sentences
        if (options or {}).get("document_context"):
            bounds = _documents(examples, sentences)
        layout = tokenizer.vocabulary.layout
        room = layout.room(max_seq_length, pair=False)
        windows = [window for sentence, bound in zip(sentences, bounds)
                   for window in cut_windows(*sentence, *bound, room)]
        start, end, first, last = np.array(windows, np.int64).reshape(-1, 4).T
        none = np.zeros_like(start)
        features = pack_pairs(tokens, start, end - start, none, none, max_seq_length,
                              tokenizer.vocabulary)
        # Each position's place in `tokens`; special tokens and padding answer for nothing.
        source = start[:, None] - layout.before + np.arange(max_seq_length)
        answers = (source >= first[:, None]) & (source < last[:, None])
        source = np.where(answers, source, 0)
        return {**features,
                "label_ids": np.where(answers, labels[source], 0),
                "label_weights": answers & (is_first[source] == 1),
                "is_real_example": np.ones([len(start), 1], np.int64)}, 0

    def count_records(self, examples, tokenizer, max_seq_length, options):
        _, pieces = tokenizer.encode_words([word for example in examples for word in example.texts])
        ends = np.cumsum([0, *(len(example.texts) for example in examples)])
        lengths = np.diff(np.append(0, np.cumsum(np.maximum(pieces, 1)))[ends])
        room = tokenizer.vocabulary.layout.room(max_seq_length, pair=False)
        return np.array([sum(1 for _ in cut_windows(0, length, 0, length, room))
                         for length in lengths.tolist()], int)

    def example(self, given, number):
        words = list(given) if isinstance(given, tuple) else given.split()
        return Example(words, [0] * len(words), number)

    def batch_key(self, example):
        return 0

    def units(self, answers, features):     # words
        is_word = features["label_weights"].astype(bool)
        return {name: values[is_word] for name, values in answers.items()}

    def spread(self, units, features):
        is_word = features["label_weights"].astype(bool)
        answers = {}
        for name, values in units.items():
            answers[name] = np.zeros((*is_word.shape, values.shape[-1]), values.dtype)
            answers[name][is_word] = values
        return answers

    def decode(self, task, answers, examples, features):
        """Returns sentences, each a list of tags."""
        best = _by_sentence("logits", answers, features, examples, np.argmax)
        return [_in_bio(task, (task.labels[tag] for tag in tags)) for tags in best]

    def probabilities(self, answers, features, examples):
        """Returns the probabilities of the tags, a list of floats for each sentence."""
        return _by_sentence("probabilities", answers, features, examples, np.max)

    def targets(self, task, examples):
        return [_in_bio(task, (tag if isinstance(tag, str) else task.labels[tag]
                               for tag in example.label)) for example in examples]

    def is_degenerate(self, task, answers, examples, predicted):
        """Whether the scores say nothing; that of entities shows a model that finds none."""
        return says_nothing(answers)

    def describe(self, task, example, prediction, probabilities):
        return {"words": example.texts, "tags": prediction,
                "entities": _described(example.texts, prediction, probabilities)}

    def placed(self, given, answer):
        return answer if isinstance(given, tuple) else _with_characters(given, answer)

    def write_more(self, folder, source, examples, predicted, answers, is_test):
        """Writes conlleval's input: word, gold tag (where known) and predicted tag, a blank line
        after each sentence and one more between documents. Blanks in words, as CoNLL-U has them,
        and in the names of spans are no-break spaces there."""
        columns = [[example.texts for example in examples], predicted]
        if source.task.split(source.split).label is not None:
            columns.insert(1, self.targets(source.task, examples))
        path = os.path.join(folder, f"{source.split}_predictions.txt")
        with write_aside(path) as file:
            for example, last, *sentence in zip(examples, examples[:1] + examples, *columns):
                file.write("" if example.document == last.document else "\n")
                lines = (" ".join(cell.replace(" ", _NO_BREAK) for cell in line)
                         for line in zip(*sentence, strict=True))
                print(*lines, sep="\n", end="\n\n", file=file)
        return [path]


def _with_characters(text, answer):
    """The answer to a text, whose entities get its characters from `start` to before `end`."""
    places, at = [], 0
    for word in answer["words"]:
        start = text.find(word, at)
        if start < 0:       # a control character was left out
            return answer
        at = start + len(word)
        places.append((start, at))
    for entity in answer["entities"]:
        start, end = places[entity["first"]][0], places[entity["last"]][1]
        entity.update(text=text[start:end], start=start, end=end)
    return answer


def _by_sentence(name, answers, features, examples, reduce):
    """Returns a list for each sentence: of each word's row of an answer [W, S, L], reduced."""
    is_word = features["label_weights"].astype(bool)
    reduced = iter(reduce(answers[name][is_word], -1).tolist() if is_word.size else ())
    return [list(itertools.islice(reduced, len(example.texts))) for example in examples]


def _described(words, tags, probabilities):
    """The entities with their probabilities, each the mean over the words."""
    return [{"type": kind, "text": " ".join(words[start:end]), "first": start, "last": end - 1,
             "probability": round(float(np.mean(probabilities[start:end])), 6)}
            for start, end, kind in entities(tags)]


def _in_bio(task, tags):
    return from_bioes(list(tags)) if scheme_of(task.labels) == "bioes" else list(tags)


def _documents(examples, sentences):
    bounds = []
    grouped = itertools.groupby(zip(examples, sentences), lambda pair: pair[0].document)
    for _, group in grouped:
        group = [sentence for _, sentence in group]
        bounds += [(group[0][0], group[-1][1])] * len(group)
    return bounds


def cut_windows(first: int, last: int, low: int, high: int, width: int) -> Iterator[tuple]:
    """Cuts a run, from `first` to before `last`, into windows of at most `width` tokens that
    together answer for each of its tokens once. Yields (start, end, first, last) in order: the
    network reads the tokens from `start` to before `end`, and answers for `first` to before `last`.

    A run that fits is one window. In a longer run every window answers for its middle half, so that
    each token has context on both sides. The tokens around the run, from `low` to before `high`,
    fill the remaining room, equally on both sides if there are enough."""
    step = width if last - first <= width else max(1, width // 2)
    for begin in range(first, last, step):
        end = min(begin + step, last)
        start = max(low, min(begin - (width - end + begin) // 2, high - width))
        yield start, min(start + width, high), begin, end
