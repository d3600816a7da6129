"""Multiple choice from the command line: SWAG's layout, own files, scores and predictions."""

import csv
import json
import pathlib
import random

import numpy as np
import pytest
from tensorflow.python.framework import config as tf_config

from bert_tf.errors import InputError
from bert_tf.finetuning.model import ModelFlags
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts import finetune
from tests.programs import share_out
from tests.run_scripts.test_run_classifier import read_lines
from tests.run_scripts.test_run_tagger import read_scores
from tests.training import tiny

WORDS = ("red", "green", "blue", "black", "white", "is", "not", "likes")
OFFICIAL = {"task": "SWAG", "data_dir": "swag"}
OWN = {"train_file": "quiz.jsonl", "dev_file": "quiz.jsonl", "text_a_column": "q",
       "choice_columns": ["a*"], "label_column": "right"}


def swag_rows(rng, count):
    """Rows of SWAG: the right ending is the one with the first word."""
    for index in range(count):
        colors = rng.sample(WORDS[1:5], 4)
        right = rng.randrange(4)
        colors[right] = WORDS[0]
        yield {"": index, "sent1": f"{rng.choice(WORDS)} is not", "sent2": "likes",
               **{f"ending{i}": color for i, color in enumerate(colors)}, "label": right}


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def write_quiz(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(name="data", scope="module")
def fixture_data(tmp_path_factory):
    """A configuration without dropout, a vocabulary, swag/ with the official names, quiz.jsonl of
    three choices."""
    folder, rng = tmp_path_factory.mktemp("choices"), random.Random(2)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    tiny.config(vocab_size=len(tokens), num_hidden_layers=1).to_json_file(folder / "config.json")
    (folder / "swag").mkdir()
    train = list(swag_rows(rng, 16))
    test = [{name: cell for name, cell in row.items() if name != "label"} for row in train[:7]]
    for name, rows in (("train", train), ("val", train[:9]), ("test", test)):
        write_csv(folder / "swag" / f"{name}.csv", rows)
    write_quiz(folder / "quiz.jsonl", [
        {"q": color, "a0": "is", "a1": color, "a2": "not", "right": 1} for color in WORDS[:5]])
    return folder


@pytest.fixture(name="choose", scope="module")
def fixture_choose(data):
    """function(out, **flags): runs the script; returns the folder `out`."""
    def choose(out, **changes):
        values = {"max_seq_length": 16, "output_dir": str(out), "num_workers": 1,
                  "train_batch_size": 8, "num_train_steps": 80, "iterations_per_loop": 40,
                  "learning_rate": 1e-2, **changes}
        values["data_dir"] = str(data / values.get("data_dir", ""))
        if changes.get("do_train"):
            values = {"bert_config_file": str(data / "config.json"),
                      "vocab_file": str(data / "vocab.txt"), **values}
        finetune.main(*share_out(values, TaskFlags, ModelFlags, FineTuneSettings))
        return pathlib.Path(out)
    return choose


@pytest.fixture(name="trained", scope="module")
def fixture_trained(data, choose):
    """The folder of a model of SWAG."""
    folder = choose(data / "trained", do_train=True, do_eval=True, do_predict=True, **OFFICIAL)
    tf_config.disable_op_determinism()
    return folder


def test_learns_official_files(trained):
    assert read_scores(trained)["dev/accuracy"] == 1
    dev, test = (read_lines(trained / f"{split}_predictions.jsonl") for split in ("dev", "test"))
    assert [line["index"] for line in dev] == list(range(9)) and len(test) == 7
    for line in dev + test:
        assert len(line["probabilities"]) == 4
        assert np.argmax(line["probabilities"]) == line["choice"]
        assert sum(line["probabilities"]) == pytest.approx(1, rel=1e-5, abs=1e-5)
    # The sentences to test are the first ones to choose on.
    assert [line["choice"] for line in test] == [line["choice"] for line in dev[:7]]
    for found, line in zip(np.loadtxt(trained / "test_results.tsv"), test):
        np.testing.assert_allclose(found, line["probabilities"], rtol=1e-6, atol=1e-6)


def test_another_number_of_choices(eagerly, trained, choose, tmp_path):
    """The head is one vector, whatever it chooses from."""
    out = choose(tmp_path / "out", do_eval=True, init_checkpoint=str(trained), **OWN)
    lines = read_lines(out / "dev_predictions.jsonl")
    assert len(lines) == 5 and all(len(line["probabilities"]) == 3 for line in lines)
    accuracy = np.mean([line["choice"] == 1 for line in lines])
    assert read_scores(out)["dev/accuracy"] == pytest.approx(accuracy)


@pytest.mark.parametrize("row, message", [
    ({"q": "red", "a0": "is", "a1": "not", "right": 0}, "quiz.jsonl, line 2 has no 'a2'"),
    ({"q": "red", "a0": "is", "a1": "not", "a2": "", "right": 0},
     "line 2 does not have 3 choices, as line 1 has"),
    ({"q": "red", "a0": "is", "a1": "not", "a2": "is", "right": 3},
     "line 2: label '3' must be the number of the right choice, from 0 to 2"),
])
def test_rows_that_are_refused(choose, tmp_path, row, message):
    write_quiz(tmp_path / "quiz.jsonl", [
        {"q": "red", "a0": "is", "a1": "red", "a2": "not", "right": 1}, row])
    with pytest.raises(InputError, match=message):
        choose(tmp_path / "out", do_train=True, do_eval=True, data_dir=str(tmp_path), **OWN)
    assert not list(tmp_path.rglob("*.tfrecord*"))


@pytest.mark.parametrize("flags, message", [
    ({**OWN, "task_kind": "tagging"}, "--choice_columns must be given for multiple choice"),
    ({**OWN, "choice_columns": [], "task_kind": "multiple_choice"},
     "--choice_columns must be given for multiple choice"),
    ({**OWN, "choice_columns": ["b*"]}, r"there is no column 'b\*'; its columns are q, a0"),
    ({**OWN, "label_column": ""}, "--label_column must be given"),
    ({**OWN, "label_column": "l"}, "there is no column 'l'; its columns are q, a0"),
    ({**OFFICIAL, "data_dir": "nowhere"}, "there is no train.csv in"),
    ({**OFFICIAL, "class_weights": ["balanced"]},
     "--class_weights is for labels, and the task swag"),
])
def test_refused(choose, tmp_path, flags, message):
    with pytest.raises(InputError, match=message) as error:
        choose(tmp_path / "out", do_train=True, do_eval=True, **flags)
    assert "\n" not in str(error.value)
