"""The comparisons of MT-DNN, with scripts that train nothing and write scores that are known."""

import json

import pytest

from benchmarks import adaptation, task_trials
from benchmarks import multitask as comparison
from benchmarks.adaptation import AdaptationFlags
from benchmarks.multitask import MultitaskComparisonFlags
from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.task_flags import TaskFlags

LABELS = ("contradiction", "entailment", "neutral")


@pytest.fixture(name="data")
def fixture_data(tmp_path):
    """Official files of CoLA, SNLI and SciTail, made up."""
    columns = "gold_label\tsentence1\tsentence2"
    for folder, name, rows in (
            ("CoLA", "{}.tsv", [f"x\t{i % 2}\t*\ttext {i}" for i in range(9)]),
            ("SNLI", "snli_1.0_{}.txt", [columns, *(
                f"{LABELS[i % 3]}\ta {i}\tb {i}" for i in range(40)), "-\ta\tb"]),
            ("scitail", "scitail_1.0_{}.tsv", [
                f"a {i}\tb {i}\t{('entails', 'neutral')[i % 2]}" for i in range(30)])):
        (tmp_path / "data" / folder).mkdir(parents=True)
        for split in ("train", "dev"):
            (tmp_path / "data" / folder / name.format(split)).write_text(
                "".join(f"{row}\n" for row in rows))
    return tmp_path / "data"


def scores(path, metrics):
    path.mkdir(parents=True, exist_ok=True)
    (path / "metrics.json").write_text(json.dumps({"metrics": metrics}))


@pytest.fixture(name="runs")
def fixture_runs(monkeypatch, tmp_path):
    """The runs of the scripts as (output folder, start, seed)."""
    runs = []

    def multitask(mixture, job, settings):
        folder = tmp_path / settings.output_dir
        runs.append((folder.name, job.init_checkpoint, settings.random_seed))
        if mixture.tasks == ["scitail"]:
            assert mixture.answer_opt == 0
            row = TaskFlags(task="scitail", **mixture.rows()["scitail"])
            source = next(source for source in row.find_sources(row.read_task(), [])
                          if source.split == "train")
            scores(folder, {"scitail_dev_accuracy": len(list(source.examples())) / 100
                            + 0.1 * (job.init_checkpoint == "several")})
            return
        value = {"mtdnn": 0.3, "mt-dnn-cola": 0.4, "st-dnn-cola": 0.2}[folder.name]
        scores(folder, {f"{name}_dev_{metric}": value + settings.random_seed / 100
                        for name in mixture.tasks for metric in ("matthews", "accuracy")})
        assert job.keep_head == (folder.name == "mt-dnn-cola")

    def classifier(task, job, settings):
        folder = tmp_path / settings.output_dir
        runs.append((folder.name, job.init_checkpoint, settings.random_seed))
        assert task.task == "cola"
        scores(folder, {"dev/matthews": 0.1, "dev/accuracy": 0.6})

    monkeypatch.setattr(comparison.finetune, "main", lambda task, *others: (
        classifier if isinstance(task, TaskFlags) else multitask)(task, *others))
    return runs


def test_files_are_cut_at_random_but_alike(data, tmp_path):
    task = find_task("snli")
    for folder, most in (("one", 7), ("two", 7), ("all", 0)):
        task_trials.cut_files(task, str(data), str(tmp_path / folder), {"train": most, "dev": 4})
    one, two, whole = ((tmp_path / folder / "snli_1.0_train.txt").read_text().splitlines()
                       for folder in ("one", "two", "all"))
    assert one == two and len(one) == 8 and one[0] == whole[0] and len(whole) == 42
    assert [line for line in whole if line in one] == one
    assert len((tmp_path / "one" / "snli_1.0_dev.txt").read_text().splitlines()) == 5
    # Two lines that are ranked stay together.
    (data / "QNLI").mkdir()
    (data / "QNLI" / "train.tsv").write_text("index\tquestion\tsentence\tlabel\n" + "".join(
        f"{i}\tq{i // 2}\ts{i}\t{('', 'not_')[i % 2]}entailment\n" for i in range(12)))
    ranking = find_task("qnnli")
    task_trials.cut_files(ranking, str(data), str(tmp_path / "q"), {"train": 3, "dev": 0})
    assert len(list(read_examples(ranking, "train", str(tmp_path / "q" / "train.tsv")))) == 3


def test_four_rows_of_all_seeds_are_run_once(data, tmp_path, runs, capsys):
    job = MultitaskComparisonFlags(
        tasks=["CoLA"], data_dir=str(data), init_checkpoint="start", num_trials=1,
        output_dir=str(tmp_path / "out"), max_train_examples=["5", "cola=3"])
    comparison.main(job)
    first = str(tmp_path / "out" / "seed1" / "mtdnn")
    assert runs == [("mtdnn", "start", 1), ("bert-cola", "start", 1), ("st-dnn-cola", "start", 1),
                    ("mt-dnn-cola", first, 1)]
    assert len((tmp_path / "out" / "data" / "cola" / "train.tsv").read_text().splitlines()) == 3
    # The model of all tasks stays for the later rows, the others do not.
    assert [path.name for path in (tmp_path / "out" / "seed1").iterdir() if path.is_dir()] == [
        "mtdnn"]
    job.num_trials = 2
    comparison.main(job)
    assert {seed for *_, seed in runs[4:]} == {2} and len(runs) == 8
    lines = (tmp_path / "out" / "table.md").read_text().splitlines()
    assert lines[2] == ("| cola matthews | 10.0 ± 0.0 | 21.5 ± 0.7 | 31.5 ± 0.7 | 41.5 ± 0.7 "
                        "| 61.8, -, 63.5 |")
    assert lines[-1].startswith("| mean of the first of each | 10.0 ± 0.0 | 21.5") and (
        lines[2] in capsys.readouterr().out)


def test_starts_are_compared_over_shares_and_seeds(data, tmp_path, runs):
    job = AdaptationFlags(data_dir=str(data), init_checkpoint="plain", mtdnn_checkpoint="several",
                          task="scitail", output_dir=str(tmp_path / "out"), num_trials=2,
                          train_fractions=["1", "0.5"])
    adaptation.main(job)
    assert [run[1:] for run in runs] == [("plain", 1), ("several", 1), ("plain", 2),
                                         ("several", 2)] * 2
    lines = (tmp_path / "out" / "table.md").read_text().splitlines()
    assert lines[2:5] == ["| 15 | 15.0 ± 0.0 | 25.0 ± 0.0 | +10.0 ± 0.0 |  |  |",
                          "| 23 |  |  |  | 51.2 | 81.9 |",
                          "| 30 | 30.0 ± 0.0 | 40.0 ± 0.0 | +10.0 ± 0.0 |  |  |"]
    assert (tmp_path / "out" / "curve.png").read_bytes().startswith(b"\x89PNG")
    adaptation.main(job)
    assert len(runs) == 8


def test_shares_are_nested_and_differ_by_seed(data):
    task = find_task("snli")
    path = str(data / "SNLI" / "snli_1.0_train.txt")

    def rows(fraction, seed):
        return {tuple(example.texts) for example in Source(
            task, "train", path, fraction=fraction, seed=seed).examples()}

    assert rows(0.1, 1) < rows(0.3, 1) < rows(1, 1) and len(rows(0.1, 1)) == 4
    assert rows(0.3, 1) != rows(0.3, 2)


@pytest.mark.parametrize("changes, part", [
    ({"train_fractions": ["0"]}, "--train_fractions is 0; give shares"),
    ({"train_fractions": ["half"]}, "--train_fractions is half"),
    ({"train_fractions": []}, "--train_fractions must be given"),
    ({"num_trials": 0}, "--num_trials is 0")])
def test_flags_of_adaptation_are_checked(changes, part, data, tmp_path):
    with pytest.raises(InputError, match=part):
        adaptation.main(AdaptationFlags(**{
            "data_dir": str(data), "init_checkpoint": "plain", "mtdnn_checkpoint": "several",
            "output_dir": str(tmp_path / "out"), **changes}))


@pytest.mark.parametrize("changes, part", [
    ({"max_train_examples": ["few"]}, "'few' is neither a number, nor"),
    ({"max_train_examples": ["mrpc=3"]}, "names mrpc, which is none of the tasks"),
    ({"tasks": ["cola", "CoLA"]}, "--tasks names cola 2 times"),
    ({"tasks": ["rte"]}, "no folder rte"), ({"num_train_epochs": 0.0}, "--num_train_epochs is 0")])
def test_flags_of_the_table_are_checked(changes, part, data, tmp_path):
    with pytest.raises(InputError, match=part):
        comparison.main(MultitaskComparisonFlags(**{
            "tasks": ["cola"], "data_dir": str(data), "init_checkpoint": "start",
            "output_dir": str(tmp_path / "out"), **changes}))
