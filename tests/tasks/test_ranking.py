"""Relevance ranking: two lines of one question become an example, packed as namisan/mt-dnn does."""

import json

import numpy as np
import pytest

from bert_tf import metrics
from bert_tf.errors import InputError
from bert_tf.tasks.kinds.ranking import encode_candidates
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.rows import Omissions
from bert_tf.tasks.split_records import RecordOptions, Source, SplitRecords
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import open_tokenizer

TASK = TASKS["qnnli"]
HEADER = "index\tquestion\tsentence\tlabel"
YES, NO = TASK.labels


def write(path, rows, header=HEADER):
    path.write_text("\n".join([header, *("\t".join([str(i), *row]) for i, row in enumerate(rows))])
                    + "\n")
    return str(path)


def test_texts_are_packed_as_the_originals(test_data):
    tokenizer = open_tokenizer(str(test_data / "weights" / "bert-tiny-question-classifier"), True)
    lines = (test_data / "golden" / "mtdnn" / "preparation_seed1.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["task"] == "qnnli"]
    texts = [[row["premise"], *row["hypothesis"]] for row in rows]
    features, _ = encode_candidates(texts, tokenizer, rows[0]["max_seq_len"])
    features = {name: values.reshape(len(rows), 2, -1) for name, values in features.items()}
    for number, row in enumerate(rows):
        for place in range(2):
            length = features["input_mask"][number, place].sum()
            assert [features[name][number, place, :length].astype(int).tolist() for name in (
                "input_ids", "segment_ids")] == [row["token_id"][place], row["type_id"][place]]


def test_two_lines_of_a_question_are_an_example(tmp_path, tokenizer):
    path = write(tmp_path / "train.tsv", [
        ("a", "b", NO), ("a", "c", YES), ("d", "e", YES), ("d", "f", NO),
        ("g", "h", YES), ("i", "j", NO),        # of other questions
        ("k", "l", YES), ("k", "m", YES)])      # with one label
    omissions = Omissions()
    found = list(read_examples(TASK, "train", path, omissions))
    assert [(example.texts, example.label) for example in found] == [
        (["a", "b", "c"], 1), (["d", "e", "f"], 0)]
    assert omissions.unpaired == 4
    records = SplitRecords(Source(TASK, "train", path), RecordOptions(8, hypothesis_first=True),
                           tokenizer, str(tmp_path))
    made, _ = records.make(1)
    assert made["counts"]["examples"] == 2 and set(made["counts"]["labels"].values()) == {2}
    assert "4 lines" in made["notes"][-1]


@pytest.mark.parametrize("split, rows, header, part", [
    ("train", [("a", "b", YES), ("c", "d", NO)], HEADER, "has no two successive lines"),
    ("train", [("a", "b", "x"), ("a", "d", NO)], HEADER, "label 'x' is none of"),
    ("test", [("a", "b"), ("c", "d")], HEADER[:-6], "line 2: the next line"),
    ("test", [("a", "b"), ("a", "d"), ("e", "f")], HEADER[:-6], "line 4: the next line")])
def test_lines_that_cannot_be_ranked_are_named(split, rows, header, part, tmp_path):
    with pytest.raises(InputError, match=part):
        list(read_examples(TASK, split, write(tmp_path / f"{split}.tsv", rows, header)))


def test_own_files_need_the_label_of_right_candidates(tmp_path):
    path = write(tmp_path / "own.tsv", [("a", "b", "0"), ("a", "c", "1")])
    flags = {"task_kind": "ranking", "train_file": path, "text_a_column": "question",
             "text_b_column": "sentence", "label_column": "label"}
    with pytest.raises(InputError, match="give --labels: first the label of the right candidate"):
        TaskFlags(**flags).find_sources(TaskFlags(**flags).read_task(), [])
    task = TaskFlags(**flags, labels=["1", "0"]).read_task()
    assert [example.label for example in read_examples(task, "train", path)] == [1]
    with pytest.raises(InputError, match="--both_orders"):
        TaskFlags(**flags, labels=["1", "0"], both_orders=True).find_sources(task, [])


def test_ranks_are_scored_as_ranking_and_as_classification():
    kind = KINDS["ranking"]
    logits = np.array([[0.1, 0.7, 0.3], [2.0, 1.0, 0.0], [0.0, 5.0, 6.0]])
    ranks = kind.decode(TASK, {"logits": logits}, [], {})
    assert ranks.tolist() == [[2, 0, 1], [0, 1, 2], [2, 1, 0]]
    found = metrics.compute(kind.own_metrics, np.array([1, 1, 0]), ranks)
    # Of 9 candidates, four are wrong: two of the second example and two of the third.
    assert found == pytest.approx({"candidate_accuracy": 5 / 9, "precision_at_1": 1 / 3,
                                   "mrr": (1 + 1 / 2 + 1 / 3) / 3})
    assert kind.submission(TASK, ranks[1:, :2]) == [YES, NO, NO, NO]
