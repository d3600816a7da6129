"""The tasks of ERNIE 2.0: labels recomputed by brute force, and the schedule."""

import collections
import itertools
import random
import types

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.text import corpus, units
from bert_tf.data.text.token_labels import capitals
from bert_tf.errors import InputError
from bert_tf.models.ernie.mixture import TABLES, TaskSchedule, continual
from bert_tf.models.ernie.segments import ORDERS, permutation
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

LETTERS = "abcdefgh"
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS,
                         *(f"##{letter}" for letter in LETTERS), *map(str, range(900)), "."])
TOKENIZER = WordpieceTokenizer(VOCABULARY, do_lower_case=True)
SIZE, SLOTS = 40, 5
NAMES = list(recipes.find("ernie2").tasks)[:5]      # those that a text gives


@pytest.fixture(name="lines", scope="module")
def fixture_lines():
    """Documents of 1 to 12 sentences; the first word of a sentence is its own number."""
    rng, lines, number = random.Random(1), [], 0
    for _ in range(70):
        for _ in range(rng.randint(1, 12)):
            words = ["".join(rng.choices(LETTERS, k=rng.randint(1, 3)))
                     for _ in range(rng.randint(1, 5))]
            words = [word.capitalize() if rng.random() < 0.3 else word for word in words]
            lines.append(f"{number} {' '.join(words)} .")
            number += 1
        lines.append("")
    return lines


def make(lines, task, **changes):
    """Documents, and features of the records of a task as a dict of arrays."""
    label = (lambda found, ids: capitals(found, ids, TOKENIZER)) if task == NAMES[1] else None
    documents = corpus.tokenize_documents(lines, TOKENIZER,
                                          marker=units.make_marker(None, None, label))
    recipe = recipes.find("ernie2").of_task(task)
    options = types.SimpleNamespace(**{
        "max_seq_length": SIZE, "max_predictions_per_seq": SLOTS, "dupe_factor": 20,
        "short_seq_prob": 0.1, "masked_lm_prob": 0.15, **changes})
    made = create_instances(documents, VOCABULARY, 3, recipe, options)
    return documents, made.features(np.arange(len(made.slices)), SIZE, VOCABULARY)


def texts(found):
    """The tokens of each record without [CLS] and the last [SEP]."""
    return [ids[1:mask.sum() - 1].tolist()
            for ids, mask in zip(found["input_ids"], found["input_mask"])]


def sentence_ids(documents):
    return [documents.tokens[start:end].tolist() for start, end in zip(
        documents.sentence_starts, documents.sentence_starts[1:])]


@pytest.mark.parametrize("task", NAMES)
def test_the_shortest_sequences_are_made_too(lines, task):
    _, found = make(lines, task, max_seq_length=5, short_seq_prob=1.0, dupe_factor=1)
    assert 3 <= found["input_mask"].sum(1).min() and found["input_mask"].sum(1).max() <= 5


@pytest.mark.parametrize("task", NAMES)
def test_records_of_all_tasks_have_the_same_features(lines, task):
    _, found = make(lines, task, dupe_factor=1)
    assert {name: value.shape[1] for name, value in found.items()} == {
        "input_ids": SIZE, "input_mask": SIZE, "segment_ids": SIZE, "masked_lm_positions": SLOTS,
        "masked_lm_ids": SLOTS, "masked_lm_weights": SLOTS, "next_sentence_labels": 1,
        "task_ids": 1, "token_label_ids": SIZE, "token_label_weights": SIZE}
    assert (found["task_ids"] == NAMES.index(task)).all()
    assert (found["masked_lm_weights"].sum() > 0) == (task == "knowledge_masking")
    assert (found["token_label_weights"].sum() > 0) == (task in NAMES[1:3])


def test_undoing_the_permutation_gives_the_paragraph(lines):
    documents, found = make(lines, "sentence_reordering")
    sentences = sentence_ids(documents)
    labels, numbers = found["next_sentence_labels"][:, 0], collections.Counter()
    for text, label in zip(texts(found), labels):
        parts = [list(group) for is_sep, group in itertools.groupby(
            text, lambda token: token == VOCABULARY.sep_id) if not is_sep]
        order = permutation(label)
        assert len(parts) == len(order)
        paragraph = sum((parts[order.index(place)] for place in range(len(order))), [])
        first = int(VOCABULARY.tokens[paragraph[0]])
        whole = list(itertools.accumulate(sentences[first:first + 12]))
        assert paragraph in whole       # whole sentences that follow each other
        numbers[label] += 1
    assert permutation(0) == (0,) and permutation(ORDERS - 1) == (2, 1, 0)
    for group in ((1, 2), range(3, 9)):     # each order of so many parts is as likely
        counts = np.array([numbers[label] for label in group])
        mean = counts.mean()
        assert np.abs(counts - mean).max() < 3.5 * np.sqrt(mean), counts


def test_distances_are_those_of_the_text(lines):
    documents, found = make(lines, "sentence_distance")
    number_of = {}
    for number, (first, end) in enumerate(documents.ranges):
        number_of |= dict.fromkeys(range(first, end), number)
    counts = collections.Counter()
    for ids, segments, mask, (label,) in zip(found["input_ids"], found["segment_ids"],
                                             found["input_mask"], found["next_sentence_labels"]):
        sides = [[int(VOCABULARY.tokens[i]) for i in ids[mask & (segments == side)]
                  if VOCABULARY.tokens[i].isdecimal()] for side in (0, 1)]
        if not all(sides):
            continue            # cut: no sentence's number is left
        a, b = sides
        is_same = number_of[a[0]] == number_of[b[0]]
        assert is_same == (label < 2)
        if label == 1:
            assert b[0] > a[-1] + 1 or b[-1] < a[0] - 1
        if label == 0:
            assert 0 < b[0] - a[-1] <= 5        # sentences may be cut off on either side
        counts[label] += 1
    assert min(counts.values()) > 0.15 * sum(counts.values()), counts


def test_a_token_of_the_rest_of_the_document_is_found(lines):
    documents, found = make(lines, "token_document", dupe_factor=2)
    tokens = [sum(sentence_ids(documents)[first:end], []) for first, end in documents.ranges]
    checked = 0
    for text, labels, weights in zip(texts(found), found["token_label_ids"],
                                     found["token_label_weights"]):
        assert weights.sum() == len(text) and weights[1:1 + len(text)].all()
        (document,) = [every for every in tokens if text[0] in every and any(
            every[i:i + len(text)] == text for i in range(len(every)))]
        begin = next(i for i in range(len(document)) if document[i:i + len(text)] == text)
        rest = document[:begin] + document[begin + len(text):]
        assert [token in rest for token in text] == labels[1:1 + len(text)].astype(bool).tolist()
        checked += 1
    assert checked > 100


def test_capitals_are_those_of_the_text(lines):
    _, found = make(lines, "capitalization", dupe_factor=1)
    labels = {}
    for line in lines:
        rows = [(token, word[0].isupper()) for word in line.split()
                for token in TOKENIZER.encode(word)]
        if rows:
            labels[rows[0][0]] = rows
    for text, values in zip(texts(found), found["token_label_ids"]):
        at = 0
        while at < len(text):
            rows = labels[text[at]]
            assert text[at:at + len(rows)] == [token for token, _ in rows]
            assert values[1 + at:1 + at + len(rows)].tolist() == [label for _, label in rows]
            at += len(rows)
    with pytest.raises(InputError, match="needs a lower-cased vocabulary"):
        capitals(["A"], np.array([5]), WordpieceTokenizer(VOCABULARY, do_lower_case=False))


# The schedule

def test_the_table_of_the_paper():
    assert continual(4, 200) == [[20, 10, 10, 10], [0, 30, 10, 10], [0, 0, 40, 10], [0, 0, 0, 50]]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("steps", (1, 7, 203))
def test_counts_are_those_of_the_table(kind, steps):
    schedule = TaskSchedule.parse([kind], NAMES, steps)
    totals = np.sum(schedule.table, 1)
    assert totals.sum() == steps == len(schedule.tasks) and totals.max() - totals.min() <= 1
    ends = np.cumsum(np.sum(schedule.table, 0))
    for stage, end in enumerate(ends):
        assert schedule.counts(end) == np.sum(schedule.table, 1, initial=0, where=np.arange(
            len(ends)) <= stage).tolist()


def test_in_a_stage_no_task_is_a_step_behind_its_share():
    counts = [50, 30, 13, 7]
    schedule = TaskSchedule.parse([f"{name}={count}" for name, count in zip("abcd", counts)],
                                  "abcd", 100)
    for step in range(101):
        shares = np.array(counts) * step / 100
        assert np.abs(np.array(schedule.counts(step)) - shares).max() < 1.5


@pytest.mark.parametrize("values, problem", [
    (["x=1"], "'x=1' must be one of continual"), (["a=1/y"], "'a=1/y' must be one of"),
    (["a=3", "b=4"], "has 7 steps, but --num_train_steps is 10"), (["a=5", "a=5"], "must be one")])
def test_a_schedule_that_is_none_is_refused(values, problem):
    with pytest.raises(InputError, match=f"--task_schedule.*{problem}"):
        TaskSchedule.parse(values, ["a", "b"], 10)
