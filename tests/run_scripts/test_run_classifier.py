"""Classification from the command line: own files, named tasks, going on, what is refused."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy import stats
from sklearn.metrics import mean_absolute_error
from sklearn.utils.class_weight import compute_class_weight

import bert_tf
from bert_tf import checkpoints, metrics
from bert_tf.errors import InputError
from bert_tf.finetuning import member, one_task
from bert_tf.finetuning.model import ModelFlags
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Example
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import open_tokenizer
from bert_tf.training.settings import FineTuneSettings
from run_scripts import finetune
from tests import processes, programs
from tests.rounding import assert_same
from tests.training import tiny

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
GOOD, BAD, PLAIN = ("good", "fine"), ("bad", "poor"), ("a", "film", "was", "the", "seen")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", *GOOD, *BAD, *PLAIN]
VOCAB = 101         # as the golden checkpoints have


def sentences(seed, count):
    """Yields (text, whether it is good); the texts are of many lengths."""
    rng = random.Random(seed)
    for _ in range(count):
        is_good = rng.random() < 0.5
        words = rng.choices(PLAIN, k=rng.randint(0, 12))
        words += rng.choices(GOOD if is_good else BAD, k=3)
        rng.shuffle(words)
        yield " ".join(words), is_good


def test_one_answer_to_unknown_text_names_the_vocabulary():
    """Not another training."""
    def advice(hidden, do_train=True, early_stopping=0):
        known = {"tokens": 100, "unknown_tokens": hidden, "characters": 100,
                 "hidden_characters": hidden}
        sets = {"train": types.SimpleNamespace(manifest={"coverage": known}),
                "dev": types.SimpleNamespace(manifest={})}
        return " ".join(member.Member.advice(types.SimpleNamespace(
            sets=sets, flags=types.SimpleNamespace(do_train=do_train),
            settings=types.SimpleNamespace(early_stopping=early_stopping))))
    assert "use a model whose vocabulary" in advice(40) and "epochs" not in advice(40)
    assert "epochs" in advice(1) and advice(1, do_train=False) == ""
    assert "A larger --early_stopping" in advice(1, early_stopping=2)
    assert "--early_stopping" not in advice(1)


def test_a_label_that_is_no_answer_is_named(capsys):
    examples = [Example(["a"], label) for label in (0, 1, 0, 1, 1)]
    one = types.SimpleNamespace(
        task=Task("own", KINDS["classification"], {}, ("rare", "often", "absent")),
        predictions={"dev": types.SimpleNamespace(examples=examples)})
    rare, advice = "dev: no answer is rare (2 examples)", "; --class_weights=balanced gives rare"
    for predicted, weights, said in (
            (np.array([1, 1, 1, 2, 1]), None, rare + advice), (np.array([1, 0, 0, 1, 1]), None, ""),
            (np.array([1, 1, 1, 2, 1]), "balanced", rare + "."), ([["O"], ["O", "O"]], None, "")):
        one.class_weights = weights
        member.Member.tell_missed(one, {"dev": ({}, {}, predicted)})
        found = capsys.readouterr().out
        assert found.startswith(said) and bool(found) == bool(said)
    one.task = Task("own", KINDS["classification"], {}, tuple(f"intent{i}" for i in range(9)))
    examples[:] = [Example(["a"], label) for label in range(9)]
    member.Member.tell_missed(one, {"dev": ({}, {}, np.zeros(9, int))})
    assert "is intent1 (1 example), " in (found := capsys.readouterr().out)
    assert "intent5 (1 example) and 3 more;" in found and "intent6" not in found


def write_lines(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_csv(path, seed, count):
    """CSV with commas within the texts."""
    write_lines(path, ["folder,body", *(f'{"spam" if good else "ham"},"{text}, seen"'
                                        for text, good in sentences(seed, count))])


@pytest.fixture(name="data", scope="module")
def fixture_data(tmp_path_factory):
    """Vocabularies, a configuration without dropout and files of every kind."""
    folder = tmp_path_factory.mktemp("classifier")
    tokens = TOKENS + [f"[unused{i}]" for i in range(VOCAB - len(TOKENS))]
    write_lines(folder / "vocab.txt", tokens)
    write_lines(folder / "other_vocab.txt", reversed(tokens))
    write_lines(folder / "long_vocab.txt", [*tokens, "more"])
    write_lines(folder / "cased_vocab.txt", ["The", "A", *tokens[:-2]])
    tiny.config(vocab_size=VOCAB, num_hidden_layers=1, max_position_embeddings=24).to_json_file(
        folder / "config.json")
    write_csv(folder / "train.csv", 1, 60)
    write_csv(folder / "dev.csv", 2, 21)
    write_lines(folder / "test.csv", ["body", *(text for text, _ in sentences(3, 7))])
    write_lines(folder / "empty.csv", ["folder,body"])
    write_lines(folder / "strange.csv", ["folder,body", "ham,a film", "eggs,bad"])
    for split, seed, count in (("train", 4, 60), ("dev", 5, 24)):
        write_lines(folder / f"{split}.jsonl", (json.dumps(
            {"text": text, "tags": ["text", "good" if good else "bad"]})
            for text, good in sentences(seed, count)))
        write_lines(folder / f"{split}.tsv", ["one\ttwo\tscore", *(
            f"{text}\ta \"film\t{2.5 if good else -1}" for text, good in sentences(seed, count))])
    mnli = {name: f"index\tsentence1\tsentence2{label}" for name, label in (
        ("train", "\tgold_label"), ("dev_matched", "\tgold_label"),
        ("dev_mismatched", "\tgold_label"), ("test_matched", ""))}
    for name, header in mnli.items():
        write_lines(folder / "mnli" / f"{name}.tsv", [header, *(
            f"{i}\t{text}\tthe film" + f"\t{'neutral' if good else 'entailment'}" * (
                name != "test_matched") for i, (text, good) in enumerate(sentences(6, 9)))])
    write_lines(folder / "ax" / "diagnostic.tsv", ["index\tsentence1\tsentence2", *(
        f"{i}\t{text}\tthe film" for i, (text, _) in enumerate(sentences(7, 1104)))])
    return folder


@pytest.fixture(name="flags")
def fixture_flags(data, tmp_path):
    """Gives the flags of a run on the CSV files, changed by keywords; None leaves one out."""
    def flags(**changes):
        given = {"data_dir": str(data), "train_file": "train.csv", "dev_file": "dev.csv",
                 "text_a_column": "body", "label_column": "folder", "do_train": True,
                 "vocab_file": str(data / "vocab.txt"), "max_seq_length": 24, "num_workers": 1,
                 "bert_config_file": str(data / "config.json"), "train_batch_size": 8,
                 "num_train_epochs": 3.0, "learning_rate": 1e-2,
                 "output_dir": str(tmp_path / "out"), **changes}
        return {name: value for name, value in given.items() if value is not None}
    return flags


def main(flags):
    """The script, in this process."""
    finetune.main(*programs.share_out(flags, TaskFlags, ModelFlags, FineTuneSettings))


OWN = {"train_file": None, "dev_file": None, "text_a_column": None, "label_column": None}
APPLIED = {"do_train": None, "vocab_file": None, "bert_config_file": None, "max_seq_length": None}


@pytest.fixture(name="model", scope="module")
def fixture_model(data, tmp_path_factory):
    """The output folder of a run on the CSV files, with its scores."""
    folder = tmp_path_factory.mktemp("model")
    main({"data_dir": str(data), "train_file": "train.csv", "dev_file": "dev.csv",
          "text_a_column": "body", "label_column": "folder", "do_train": True, "do_eval": True,
          "vocab_file": str(data / "vocab.txt"), "bert_config_file": str(data / "config.json"),
          "max_seq_length": 24, "num_workers": 1, "train_batch_size": 8, "num_train_epochs": 8.0,
          "learning_rate": 1e-2, "output_dir": str(folder)})
    return folder


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def listing(folder):
    return {path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


# What it writes

def test_own_csv_is_learned_and_scored(data, model):
    scores = read_json(model / "metrics.json")
    assert scores["task"] == "own" and scores["headline"] == "dev/accuracy"
    assert scores["metrics"]["dev/accuracy"] > 0.9
    found = read_lines(model / "dev_predictions.jsonl")
    gold = [line.split(",")[0] for line in (data / "dev.csv").read_text().splitlines()[1:]]
    names = [line["label"] for line in found]
    assert [line["index"] for line in found] == list(range(21))
    assert metrics.compute(("accuracy", "matthews"), gold, names) == pytest.approx(
        {name: scores["metrics"][f"dev/{name}"] for name in ("accuracy", "matthews")})
    for line in found:
        assert list(line["probabilities"]) == ["ham", "spam"]
        assert sum(line["probabilities"].values()) == pytest.approx(1, rel=1e-5, abs=1e-5)
        assert line["probabilities"][line["label"]] >= 0.5
    assert set(read_json(model / "results.json")["trials"]) == {"seed12345"}
    said = (model / "eval_results.txt").read_text().splitlines()
    assert f"dev_accuracy = {scores['metrics']['dev/accuracy']}" in said
    assert {path.name for path in model.iterdir()} == {
        "README.md", "bert_config.json", "dev_labels.tsv", "dev_predictions.jsonl",
        "eval_results.txt", "metrics.json", "metrics.jsonl", "model.keras", "records",
        "results.json", "task.json", "tokenizer_config.json", "trials", "vocab.txt"}
    assert not list(model.rglob("checkpoint-*"))


def test_a_finished_command_trains_nothing_again(data, model, flags, capsys):
    before = listing(model)
    main(flags(output_dir=str(model), num_train_epochs=8.0, do_eval=True))
    after = listing(model)
    assert {name.name for name in after if before.get(name) != after[name]} <= {"results.json"}
    said = capsys.readouterr().out
    assert "there already" in said and "step " not in said
    assert read_json(model / "results.json")["best"] == "seed12345"


def test_prediction_in_a_later_command(eagerly, data, model, flags, tmp_path):
    common = flags(**OWN, **APPLIED, do_predict=True, test_file="test.csv", num_train_epochs=None)
    common |= {"text_a_column": "body", "init_checkpoint": str(model)}
    main(common)
    found = read_lines(tmp_path / "out" / "test_predictions.jsonl")
    assert [line["label"] == "spam" for line in found] == [good for _, good in sentences(3, 7)]
    table = np.loadtxt(tmp_path / "out" / "test_results.tsv", delimiter="\t")
    likely = np.array([list(line["probabilities"].values()) for line in found])
    assert table == pytest.approx(likely, rel=1e-6, abs=1e-6)
    assert "model.keras" not in os.listdir(tmp_path / "out")
    # With other batches, lengths and padding they are the same. The model knows the column.
    del common["text_a_column"]
    main(common | {"max_seq_length": 20, "eval_batch_size": 3, "pad_to_max_length": True,
                   "init_checkpoint": str(model / "model.keras")})
    again = np.loadtxt(tmp_path / "out" / "test_results.tsv", delimiter="\t")
    assert again == pytest.approx(table, rel=1e-5, abs=1e-5)


def test_several_labels(eagerly, data, flags, tmp_path, capsys):
    main(flags(train_file="train.jsonl", dev_file="dev.jsonl", text_a_column="text",
               label_column="tags", multi_label=True, do_eval=True, num_train_steps=8,
               num_train_epochs=None, class_weights=["1", "1.5", "1"]))
    scores = read_json(tmp_path / "out" / "metrics.json")
    gold = read_lines(data / "dev.jsonl")
    found = read_lines(tmp_path / "out" / "dev_predictions.jsonl")
    assert scores["headline"] == "dev/micro_f1" and scores["metrics"]["dev/micro_f1"] > 0.6
    right = [set(line["labels"]) == set(row["tags"]) for line, row in zip(found, gold, strict=True)]
    assert scores["metrics"]["dev/exact_match"] == pytest.approx(np.mean(right))
    for line in found:
        assert line["labels"] == [name for name, p in line["probabilities"].items() if p > 0.5]
    assert "weights of labels in the loss: {} 1, {} 1.5, {} 1\n".format(
        *found[0]["probabilities"]) in capsys.readouterr().out


def test_balanced_weights_are_those_of_scikit_learn():
    labels = np.random.default_rng(1).choice(4, 200, p=[0.5, 0.3, 0.15, 0.05])
    expected = compute_class_weight("balanced", classes=np.arange(4), y=labels)
    counts = {"labels": dict(enumerate(np.bincount(labels).tolist())), "examples": 200}
    assert KINDS["classification"].balanced_weights(counts) == pytest.approx(expected)
    # Where there may be several labels, each counts as much as its absence.
    counts = {"labels": {"a": 50, "b": 10, "c": 0}, "examples": 100}
    assert KINDS["multi_label"].balanced_weights(counts) == pytest.approx([1, 9, 99])


def test_numbers_far_from_a_new_head_start_at_their_mean(eagerly, data, flags, tmp_path, capsys):
    for split in ("train", "dev"):
        rows = [line.split("\t") for line in (data / f"{split}.tsv").read_text().splitlines()[1:]]
        write_lines(tmp_path / f"{split}.tsv", ["one\ttwo\tscore", *(
            f"{text}\t{two}\t{1e6 if score == '2.5' else 4e6}" for text, two, score in rows)])
    job = {**{f"{split}_file": f"{split}.tsv" for split in ("train", "dev")}, "num_train_steps": 2,
           "data_dir": str(tmp_path), "text_a_column": "one", "text_b_column": "two",
           "label_column": "score", "task_kind": "regression", "do_eval": True,
           "num_train_epochs": None, "learning_rate": 1e-4}
    main(flags(**job))
    gold = [float(line.split("\t")[2]) for line in (tmp_path / "train.tsv").read_text().splitlines(
        )[1:]]
    options = read_json(tmp_path / "out" / "task.json")["options"]
    assert options["label_mean"] == pytest.approx(np.mean(gold))
    assert options["label_scale"] == pytest.approx(np.std(gold))
    assert f"--label_mean={np.mean(gold):.6g}" in capsys.readouterr().out
    summary = read_json(tmp_path / "out" / "metrics.json")
    scores = summary["metrics"]
    found = [line["value"] for line in read_lines(tmp_path / "out" / "dev_predictions.jsonl")]
    gold = [float(line.split("\t")[2]) for line in (tmp_path / "dev.tsv").read_text().splitlines(
        )[1:]]
    assert summary["headline"] == "dev/pearson"
    for name, correlation in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        assert scores[f"dev/{name}"] == pytest.approx(correlation(gold, found).statistic, rel=1e-5)
    error = mean_absolute_error(gold, found)
    assert scores["dev/mae"] == pytest.approx(error, rel=1e-6)
    assert scores["dev/mae_of_mean"] == pytest.approx(
        mean_absolute_error(gold, np.full(len(gold), np.mean(gold))), rel=1e-6)
    assert error < 1.2 * scores["dev/mae_of_mean"]
    pair = tuple((tmp_path / "dev.tsv").read_text().splitlines()[1].split("\t")[:2])
    assert bert_tf.Predictor(tmp_path / "out")(pair)["value"] == pytest.approx(found[0], rel=1e-6)
    # A run that stops continues with its numbers, to the same weights.
    other = {**job, "output_dir": str(tmp_path / "other")}
    main(flags(**other, stop_at_step=1, save_checkpoints_steps=1))
    main(flags(**other, save_checkpoints_steps=1))
    assert_same(*(tiny.weights_at(tmp_path / name) for name in ("other", "out")))
    # A new head for other numbers does not inherit them; the same head does.
    main(flags(**{**job, "train_file": str(data / "train.tsv"), "dev_file": str(data / "dev.tsv")},
               init_checkpoint=str(tmp_path / "out"), bert_config_file=None, vocab_file=None,
               keep_head=False, output_dir=str(tmp_path / "new")))
    assert "label_mean" not in read_json(tmp_path / "new" / "task.json")["options"]
    main(flags(**job, init_checkpoint=str(tmp_path / "out"), keep_head=True, bert_config_file=None,
               vocab_file=None, output_dir=str(tmp_path / "again")))
    assert read_json(tmp_path / "again" / "task.json")["options"] == options


def test_a_named_task_and_what_its_model_answers_too(eagerly, data, flags, tmp_path, capsys):
    main(flags(**OWN | {"task": "MNLI"}, data_dir=str(data / "mnli"), do_eval=True,
               do_predict=True, num_train_steps=1))
    out = tmp_path / "out"
    scores = read_json(out / "metrics.json")
    assert (scores["task"], scores["headline"]) == ("mnli", "dev_matched/accuracy")
    assert set(scores["metrics"]) == {"loss", "dev_matched/accuracy", "dev_mismatched/accuracy"}
    # The server takes all predictions of the official file alone.
    assert ("no MNLI-m.tsv: the server takes 9,796 predictions of mnli, and "
            f"{data / 'mnli' / 'test_matched.tsv'} has 9 examples") in capsys.readouterr().out
    assert not list(out.glob("*.tsv.tmp*")) and not (out / "MNLI-m.tsv").exists()
    main(flags(**OWN | APPLIED | {"task": "AX"}, data_dir=str(data / "ax"), do_predict=True,
               init_checkpoint=str(out), output_dir=str(tmp_path / "ax"), eval_batch_size=276))
    lines = (tmp_path / "ax" / "AX.tsv").read_text().splitlines()
    found = read_lines(tmp_path / "ax" / "test_predictions.jsonl")
    assert lines[0] == "index\tprediction" and len(lines) == 1105
    assert lines[1:] == [f"{line['index']}\t{line['label']}" for line in found]
    assert set(found[0]["probabilities"]) == set(TASKS["mnli"].labels)


def test_two_workers_write_once_what_one_does(flags, tmp_path):
    command = flags(do_eval=True, num_train_epochs=None, train_batch_size=None,
                    learning_rate=None, early_stopping=1, eval_steps=1, grid=True,
                    grid_train_batch_size=["8"], grid_learning_rate=["1e38", "1e-2"],
                    grid_num_train_epochs=["0.3"], deterministic=False)
    said = processes.finish_workers(processes.start_workers(
        "run_scripts.finetune", [command] * 2, eagerly=True))
    assert ["wrote " in text for text in said] == [True, False]     # the chief alone
    wild, trial = read_json(tmp_path / "out" / "results.json")["trials"].values()
    assert wild["diverged"] and wild["step"] == 2       # ends no search, as of one
    assert read_json(tmp_path / "out" / "metrics.json")["metrics"] == pytest.approx(
        trial["metrics"], rel=1e-5)


# Initial weights

def test_initial_weights_of_other_formats(eagerly, data, flags, tmp_path, capsys):
    shape = {"bert_config_file": None, "init_checkpoint": str(GOLDEN / "google_gelu"),
             "num_train_steps": 1}
    main(flags(**shape))
    said = capsys.readouterr().out
    assert "tensors read" in said and "wrote" in said
    # What is not fine-tuned is told so.
    refusal(flags(**shape | {"do_train": None}, do_eval=True, output_dir=str(tmp_path / "2")),
            "google_gelu", "classification/", "--do_train")


def test_records_are_those_of_the_tokenizers_settings(eagerly, data, flags, tmp_path):
    shutil.copy(data / "vocab.txt", tmp_path / "vocab.txt")
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text('{"tokenize_chinese_chars": false}')
    command = flags(do_eval=True, records_dir=str(tmp_path / "records"), num_train_steps=2,
                    vocab_file=str(tmp_path / "vocab.txt"))
    main(command | {"stop_at_step": 1})
    manifests = [tmp_path / "records" / f"{split}.manifest.json" for split in ("train", "dev")]
    known = [read_json(path) for path in manifests]
    assert [one["fingerprint"]["options"]["tokenizer"] for one in known] == 2 * [
        {"tokenize_chinese_chars": False}]
    settings.unlink()
    refusal(command | {"output_dir": str(tmp_path / "new")}, "train.manifest", "another tokenizer")
    main(command)       # the run that was begun keeps its tokenizer
    assert [read_json(path) for path in manifests] == known


def test_the_case_is_that_of_hugging_face_but_for_a_run_that_was_begun(
        eagerly, data, flags, tmp_path):
    folder, config = tmp_path / "hf", tmp_path / "hf" / "tokenizer_config.json"
    shutil.copytree(GOLDEN / "hf_gelu", folder)
    # The tokens do not show the case.
    write_lines(folder / "vocab.txt", (data / "vocab.txt").read_text().replace(
        "the\n", "den\n").splitlines()[:-1])
    command = flags(init_checkpoint=str(folder), vocab_file=None, bert_config_file=None,
                    dev_file=None, num_train_steps=2)
    main(command | {"stop_at_step": 1})
    config.write_text('{"do_lower_case": false, "tokenize_chinese_chars": false}')
    (folder / "added_tokens.json").write_text(json.dumps({"seen film": VOCAB - 1}))
    new = command | {"output_dir": str(tmp_path / "new")}
    main(command)
    main(new)
    for name, lower in (("out", True), ("new", False)):
        assert read_json(tmp_path / name / "task.json")["do_lower_case"] == lower
        kept = open_tokenizer(tmp_path / name)
        assert (kept.encode("a seen film")[1:] == [VOCAB - 1]) != lower
        assert kept.describe() == {
            "name": "wordpiece", "do_lower_case": lower, **({} if lower else {
                "tokenize_chinese_chars": False, "added_tokens_decoder": {str(VOCAB - 1): {
                    "content": "seen film", "special": True, "normalized": True}}})}
    # Without the trial nothing was begun.
    shutil.rmtree(tmp_path / "out" / "trials")
    refusal(command, "task.json has another --do_lower_case (True, now False)")


def test_a_head_is_kept_with_its_labels_or_refused(eagerly, data, flags, model, tmp_path, capsys):
    kept = {"init_checkpoint": str(model / "model.keras"), "keep_head": True,
            "bert_config_file": None, "vocab_file": None}
    main(flags(**kept, num_train_steps=1, learning_rate=1e-9, do_eval=True))
    scores = [read_json(folder / "metrics.json")["metrics"] for folder in (tmp_path / "out", model)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4, abs=1e-4)
    write_lines(tmp_path / "other.csv", ["folder,body", "x,a", "y,b"])
    write_lines(tmp_path / "plain" / "vocab.txt", (data / "vocab.txt").read_text().splitlines())
    refusal(flags(**kept, data_dir=str(tmp_path), train_file="other.csv", dev_file=None,
                  output_dir=str(tmp_path / "2")), "other.csv, line 2", "'x'", "ham, spam")
    refusal(flags(**kept | {"init_checkpoint": str(GOLDEN / "hf_gelu"), "vocab_file": str(
        data / "vocab.txt")}, output_dir=str(tmp_path / "2")), "hf_gelu", "--keep_head")


def swapped(model, folder, labels=None):
    """Makes a Hugging Face copy of a model with the rows of its head in the reverse order."""
    checkpoints.convert(model, folder, "huggingface")
    weights = load_file(folder / "model.safetensors")
    save_file({name: value[::-1].copy() if name.startswith("classifier.") else value
               for name, value in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    config = read_json(folder / "config.json")
    config["id2label"] = dict(enumerate(labels or [*config["id2label"].values()][::-1]))
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def test_labels_have_the_order_of_config_json(eagerly, data, flags, model, tmp_path):
    own = flags(**APPLIED | {"train_file": None, "do_eval": True, "max_seq_length": 24,
                             "init_checkpoint": swapped(model, tmp_path / "hf")})
    main(own)
    scores = [read_json(folder / "metrics.json")["metrics"] for folder in (tmp_path / "out", model)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4, abs=1e-4)
    # --labels tells only what config.json does not.
    main({**own, "labels": ["ham", "spam"], "output_dir": str(tmp_path / "2")})
    assert read_json(tmp_path / "2" / "metrics.json")["metrics"] == scores[0]
    write_lines(tmp_path / "new.csv", ["folder,body", "x,a film", "y,bad"])
    refusal({**own, "data_dir": str(tmp_path), "dev_file": "new.csv"}, "new.csv, line 2",
            "'x' is none of spam, ham", "--labels")


@pytest.mark.parametrize("name, labels, wanted", [
    ("sst-2", ["POSITIVE", "NEGATIVE"], ("1", "0")),
    ("sst-2", ["LABEL_0", "LABEL_1"], ("0", "1")),
    ("mnli", ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"],
     ("contradiction", "neutral", "entailment")),
    ("mrpc", ["not_equivalent", "equivalent"], ("0", "1")),
    ("mrpc", ["1", "0"], "the order 1, 0, but the F1 of mrpc needs 0, 1"),
    ("rte", ["yes", "no"], "knows the labels yes, no, but rte has entailment, not_entailment"),
])
def test_named_tasks_and_the_labels_of_config_json(name, labels, wanted):
    model = types.SimpleNamespace(path="hf", weights=types.SimpleNamespace(labels=tuple(labels)))
    if isinstance(wanted, str):
        with pytest.raises(InputError, match=wanted):
            one_task._as_named(TASKS[name], model)
    else:
        assert one_task._as_named(TASKS[name], model).labels == wanted


# Refusals

def refusal(flags, *parts):
    with programs.refused(*parts):
        main(flags)


@pytest.mark.parametrize("changes, parts", [
    ({"do_train": False}, ["--do_train", "--do_eval", "--do_predict"]),
    ({"do_train": False, "do_eval": True}, ["no model.keras in", "out:", "--init_checkpoint"]),
    ({"dev_file": "strange.csv", "do_eval": True}, ["strange.csv, line 3", "'eggs'", "ham, spam"]),
    ({"labels": ["ham", "eggs"]}, ["train.csv, line", "'spam'", "ham, eggs"]),
    ({"text_a_column": "text"}, ["train.csv, line 1", "'text'", "folder, body"]),
    ({"label_column": "9"}, ["train.csv, line 1", "'9'"]),
    ({"train_file": "empty.csv"}, ["empty.csv", "is empty"]),
    ({"train_file": "absent.csv"}, ["absent.csv"]),
    ({"dev_file": "absent.csv"}, ["absent.csv"]),
    ({"train_file": None}, ["--train_file"]),
    ({"dev_file": None, "do_eval": True}, ["--do_eval", "--dev_file"]),
    ({"do_predict": True}, ["--do_predict", "--test_file"]),
    ({"vocab_file": "long_vocab.txt"}, ["long_vocab.txt", "102", "101"]),
    ({"vocab_file": "cased_vocab.txt", "do_lower_case": True},
     ["cased_vocab.txt", "--do_lower_case=False"]),
    ({"vocab_file": None}, ["--vocab_file"]),
    ({"bert_config_file": None}, ["--init_checkpoint", "--bert_config_file"]),
    ({"bert_config_file": "absent.json"}, ["absent.json"]),
    ({"init_checkpoint": "absent"}, ["there is no absent"]),
    ({"init_checkpoint": "absent", "bert_config_file": None}, ["there is no absent"]),
    ({"init_checkpoint": str(GOLDEN / "hf_gelu")}, ["hf_gelu", "hidden_act"]),
    ({"max_seq_length": 25}, ["--max_seq_length is 25", "24"]),
    ({"num_trials": 2}, ["--num_trials", "--do_eval"]),
    ({"early_stopping": 1}, ["--early_stopping", "--do_eval"]),
    ({"class_weights": ["1", "2", "3"]}, ["--class_weights=1,2,3", "ham, spam"]),
    ({"class_weights": ["1", "x"]}, ["--class_weights=1,x", "ham, spam"]),
    ({"class_weights": ["0", "0"]}, ["--class_weights=0,0"]),
    ({"keep_head": True}, ["--keep_head", "--init_checkpoint"]),
    ({"gradient_accumulation_steps": 3}, ["--train_batch_size", "(3)"]),
    ({"task_kind": "tagging"}, ["train.csv", "tagger"]),
    ({"task": "mrpc"}, ["there is no --train_file with --task"]),
    ({"output_dir": "vocab.txt"}, ["--output_dir", "vocab.txt"]),
    ({"records_dir": "vocab.txt"}, ["--records_dir", "vocab.txt"]),
    ({"distribution_strategy": "multi_worker"}, ["TF_CONFIG"]),
    ({"do_train": False, "do_predict": True, "test_file": "dev.csv", "train_file": None,
      "dev_file": None, "label_column": None, "init_checkpoint": str(GOLDEN / "hf_gelu"),
      "bert_config_file": None}, ["no task.json", "hf_gelu", "--labels"]),
])
def test_bad_input_is_refused_before_work_starts(
        data, flags, tmp_path, monkeypatch, changes, parts):
    monkeypatch.chdir(data)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    before = listing(data)
    refusal(flags(**changes), *parts)
    assert listing(data) == before and not listing(tmp_path)


def test_a_model_is_not_mixed_up_with_others(data, flags, model, tmp_path):
    (tmp_path / "copy").mkdir()
    for name in ("model.keras", "bert_config.json"):
        (tmp_path / "copy" / name).write_bytes((model / name).read_bytes())
    again = {"output_dir": str(model), "num_train_epochs": 8.0}
    before = listing(model)
    for changes, parts in (
            # Its weights would be overwritten while others begin with them.
            (again | {"init_checkpoint": str(model)}, ["--output_dir", "--init_checkpoint"]),
            (again | {"init_checkpoint": str(model / "model.keras")}, ["--output_dir"]),
            ({"output_dir": str(tmp_path / "copy")}, ["--output_dir", "not a fine-tuned model"]),
            # Another task, length, or text; another seed beside the best one.
            (again | {"train_file": "train.jsonl", "text_a_column": "text", "dev_file": None,
                      "label_column": "tags", "multi_label": True},
             ["task.json", "another task or other labels"]),
            (again | {"headline": "macro_f1"}, ["another --headline (accuracy, now macro_f1)"]),
            (again | {"max_seq_length": 20}, ["task.json", "--max_seq_length"]),
            (again | {"learning_rate": 2e-2}, ["seed12345", "--learning_rate"]),
            (again | {"random_seed": 4, "train_file": "dev.csv"}, ["seed12345", "other seeds"]),
            (again | {"dev_file": "strange.csv", "do_eval": True, "labels": ["ham", "spam"]},
             ["strange.csv, line 3"]),
            # Its labels and its vocabulary.
            ({"do_train": None, "do_eval": True, "init_checkpoint": str(model),
              "labels": ["spam", "ham"]}, ["ham, spam", "spam, ham"]),
            ({"do_train": None, "do_eval": True, "init_checkpoint": str(model),
              "label_column": "1", "text_a_column": "0"}, ["dev.csv, line 2", "ham, spam"]),
            ({"do_train": None, "do_eval": True, "init_checkpoint": str(model),
              "task_kind": "regression"}, ["is a model for classification"]),
            ({"vocab_file": str(data / "other_vocab.txt"), "init_checkpoint": str(model)},
             ["other_vocab.txt", "not the model's vocabulary"]),
            # It was trained on single texts.
            ({"do_train": None, "do_eval": True, "init_checkpoint": str(model),
              "text_b_column": "folder"}, ["dev.csv has 2 texts", "trained on examples of 1"])):
        refusal(flags(**changes), *parts)
    assert listing(model) == before


def test_another_training_file_is_another_run(eagerly, data, flags, model, tmp_path):
    """The records of a folder are its own; what was trained on others is not taken for this."""
    (tmp_path / "own").mkdir()
    for name in ("train.csv", "dev.csv"):
        (tmp_path / "own" / name).write_bytes((data / name).read_bytes())
    out = tmp_path / "out"
    command = flags(data_dir=str(tmp_path / "own"), num_train_steps=1, do_eval=True)
    main(command)
    results = (out / "trials" / "seed12345" / "trial.json").read_bytes()
    for name, *parts in (("train.csv", "out/records/train.manifest.json", "made from another text"),
                         ("dev.csv", "seed12345", "scored on other examples")):
        path = tmp_path / "own" / name
        good = path.read_bytes()
        path.write_bytes(good + b"ham,a bad film\n")
        refusal(command, *parts)
        path.write_bytes(good)
    main(command)
    assert (out / "trials" / "seed12345" / "trial.json").read_bytes() == results


def test_a_resumed_run_keeps_the_padding_of_its_batches(eagerly, data, flags, tmp_path):
    """Dropout depends on it."""
    settings = tmp_path / "out" / "trials" / "seed12345" / "trial.json"
    command = flags(num_train_steps=2, dev_file=None)

    def weights():
        learner = keras.saving.load_model(tmp_path / "out" / "model.keras", compile=False)
        shutil.rmtree(tmp_path / "out")
        return [values.numpy() for values in learner.weights]

    ends = {}
    for name, changes in (("longest", {}), ("buckets", {"jit_compile": "true"})):
        main({**command, **changes})
        assert read_json(settings)["settings"]["padding"] == name
        ends[name] = weights()
    main({**command, **changes, "stop_at_step": 1})
    main(command)
    assert read_json(settings)["settings"]["padding"] == name
    assert all(map(np.array_equal, weights(), ends[name]))
    assert not all(map(np.array_equal, ends["longest"], ends["buckets"]))


def test_records_of_a_run_at_work_are_not_replaced(eagerly, data, flags, hold, tmp_path):
    """Not before its first trial has begun, either."""
    main(flags(num_train_steps=1, dev_file=None))
    shutil.rmtree(tmp_path / "out" / "trials")
    before = listing(tmp_path / "out")
    holder = hold(tmp_path / "out")
    refusal(flags(train_file="dev.csv", num_train_steps=1, dev_file=None),
            f"--output_dir: process {holder.pid}", "is at work on")
    holder.communicate()
    assert listing(tmp_path / "out") == before


@pytest.mark.parametrize("arguments, message", [
    ([], "--output_dir must be given"), (["--output_dir=x"], "--task must be given"),
    (["--output_dir=x", "--task=MRPC"], "give --do_train, --do_eval, --do_predict"),
    (["--output_dir=x", "--task=SQuAD", "--do_train"], "--init_checkpoint must be given")])
def test_arguments_that_cannot_be(arguments, message):
    assert message in programs.refusal("bert-finetune", *arguments)


def test_googles_script_says_one_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "run_scripts.run_classifier", "--output_dir=x", "--task=nothing"],
        capture_output=True, text=True, check=False, cwd=pathlib.Path(__file__).parents[2])
    assert done.returncode == 1 and done.stderr.startswith("error: there is no task 'nothing'")
    assert done.stderr.count("\n") == 1 and not done.stdout
