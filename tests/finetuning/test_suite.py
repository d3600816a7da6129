"""A suite of small files: every cell against scikit-learn, the choice, a run that is stopped, and
the archive."""

import collections
import contextlib
import dataclasses
import json
import pathlib
import re
import shutil
import statistics
import string
import sys
import types
import zipfile

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, matthews_corrcoef

import bert_tf
from bert_tf import kept
from bert_tf.errors import InputError
from bert_tf.files import Held, locked
from bert_tf.finetuning import suite, suite_flags, suite_run
from bert_tf.tasks import libraries
from bert_tf.tasks.kinds.labelled import write_submission
from bert_tf.tasks.named import TASKS, XNLI_LANGUAGES
from bert_tf.tasks.suites import SUITES
from bert_tf.training.learners.learner import Learner
from run_scripts import finetune
from tests.finetuning.test_jobs import TOKENS
from tests.tasks.library_sets import hide_official_files
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
MNLI = ("contradiction", "entailment", "neutral")
# gluebenchmark.com: the files of a submission and their numbers of predictions.
OFFICIAL = {"AX.tsv": 1104, "CoLA.tsv": 1063, "MNLI-m.tsv": 9796, "MNLI-mm.tsv": 9847,
            "MRPC.tsv": 1725, "QNLI.tsv": 5463, "QQP.tsv": 390965, "RTE.tsv": 3000,
            "SST-2.tsv": 1821, "STS-B.tsv": 1379, "WNLI.tsv": 146}


def write(path, header, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join("\t".join(map(str, row)) for row in [*header, *rows]) + "\n")


def write_glue(folder, text, cola, mnli, wnli, ax):
    """CoLA, MNLI, WNLI and AX, of texts that a function returns: the lines, or labels, by file."""
    for name, count in zip(("train", "dev"), cola):
        write(folder / "CoLA" / f"{name}.tsv", [], [("x", i % 2, "", text()) for i in range(count)])
    write(folder / "CoLA" / "test.tsv", [("index", "sentence")], [
        (i, text()) for i in range(cola[-1])])
    for name, count in zip(("train", "dev_matched", "dev_mismatched"), mnli):
        write(folder / "MNLI" / f"{name}.tsv", [("sentence1", "sentence2", "gold_label")], [
            (text(), text(), MNLI[i % 3]) for i in range(count)])
    for name, labels in zip(("train", "dev"), wnli):
        write(folder / "WNLI" / f"{name}.tsv", [("sentence1", "sentence2", "label")], [
            (text(), text(), label) for label in labels])
    write(folder / "AX" / "diagnostic-full.tsv", [("Premise", "Hypothesis", "Label")], [
        (text(), text(), MNLI[i % 3]) for i in range(ax)])


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """CoLA, MNLI, WNLI and AX of a few lines, and a model to begin with."""
    folder, rng = tmp_path_factory.mktemp("suite"), np.random.default_rng(0)

    def text():
        return " ".join(map(str, rng.integers(0, 90, 4)))

    write_glue(folder, text, (16, 9, 5), (12, 9, 6), ("00101", "010"), 8)
    tiny.save_encoder(folder / "model", TOKENS)
    return folder


def flags(folder, output, **others):
    return suite_flags.SuiteFlags(**{
        "suite": "glue", "data_dir": str(folder), "output_dir": str(output),
        "init_checkpoint": str(folder / "model"), "tasks": ["CoLA", "mnli", "wnli", "ax"],
        "num_trials": 2, "random_seed": 1, "grid_learning_rate": ["3e-2", "1e-2"],
        "grid_train_batch_size": ["4"], "num_train_steps": 2, "max_seq_length": 16,
        "num_workers": 1, **others})


@pytest.fixture(name="whole", scope="module")
def fixture_whole(folder, tmp_path_factory):
    """The output of a run that nothing stops."""
    output = tmp_path_factory.mktemp("whole")
    finetune.main(flags(folder, output))
    return output


def answers(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def right(folder, task, split):
    rows = [line.split("\t") for line in (folder / task / split).read_text().splitlines()]
    return [row[1] for row in rows] if task == "CoLA" else [row[-1] for row in rows[1:]]


def test_every_cell_equals_scikit_learn_on_its_predictions(folder, whole):
    results = json.loads((whole / "results.json").read_text())
    for task, name, metric, score in (
            ("CoLA", "dev", "matthews", matthews_corrcoef),
            ("MNLI", "dev_matched", "accuracy", accuracy_score),
            ("MNLI", "dev_mismatched", "accuracy", accuracy_score)):
        found, gold = results["tasks"][task.lower()], right(folder, task, f"{name}.tsv")
        medians = {}
        for point, of in found["points"].items():
            cells = {seed: score(gold, [row["label"] for row in answers(
                whole / "tasks" / task.lower() / point / f"seed{seed}" /
                f"{name}_predictions.jsonl")]) for seed in ("1", "2")}
            cell = of[f"{name}/{metric}"]
            assert cell["values"] == pytest.approx(cells)
            assert cell["mean"] == pytest.approx(np.mean(list(cells.values())))
            assert cell["stdev"] == pytest.approx(np.std(list(cells.values()), ddof=1))
            medians[point] = statistics.median(cells.values())
            assert cell["median"] == pytest.approx(medians[point])
        if name != "dev_mismatched":        # the first split decides
            assert found["chosen"] == max(medians, key=medians.get)
            assert (whole / found["folder"] / "model.keras").exists()
        assert len(list((whole / "tasks" / task.lower()).rglob("model.keras"))) == 1
    gold = right(folder, "WNLI", "dev.tsv")
    assert results["tasks"]["wnli"]["points"]["most_frequent_label"]["dev/accuracy"][
        "mean"] == pytest.approx(accuracy_score(gold, ["0"] * len(gold)))
    assert results["missing"] == ["sst-2", "mrpc", "sts-b", "qqp", "qnli", "rte"]


def test_runs_that_give_one_answer_are_named(whole):
    said, count = (whole / "table.md").read_text(), 0
    for path in whole.glob("tasks/cola/*/seed*/dev_predictions.jsonl"):
        point, seed = path.parts[-3], path.parts[-2].removeprefix("seed")
        is_one = len({row["label"] for row in answers(path)}) == 1
        assert (f"cola, {point}, seed {seed} is DEGENERATE: one answer" in said) == is_one
        count += is_one
    assert count        # of four runs of two steps


def test_runs_that_diverge_are_not_counted(folder, tmp_path, capsys):
    job = flags(folder, tmp_path, tasks=["CoLA"], grid_learning_rate=["1e30", "1e-2"])
    finetune.main(job)
    said = capsys.readouterr().out
    found = json.loads((tmp_path / "results.json").read_text())["tasks"]["cola"]
    wild, calm = found["points"]
    assert wild.startswith("rate1e+30") and not found["points"][wild] and found["chosen"] == calm
    assert len(found["points"][calm]["dev/matthews"]["values"]) == 2
    for seed in (1, 2):
        assert f"cola, {wild}, seed {seed}: DIVERGED" in said
        assert f"cola, {wild}, seed {seed} diverged, and is not counted." in said
    left = tmp_path / "tasks" / "cola" / calm / f"seed{3 - found['seed']}" / "model.keras"
    left.touch()           # by a kill after the last result
    finetune.main(job)     # which trains none of them again
    assert ": DIVERGED" not in capsys.readouterr().out and not left.exists()
    # One of two runs may be all that a task has.
    for point, seed in ((wild, 1), (wild, 2), (calm, 1)):
        path = tmp_path / "tasks" / "cola" / point / f"seed{seed}" / "cell.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "result": {
            "metrics": {}, "diverged": True}}))
    finetune.main(job)
    found = json.loads((tmp_path / "results.json").read_text())["tasks"]["cola"]
    assert (found["chosen"], found["seed"]) == (calm, 2)


def test_a_task_whose_runs_diverge_leaves_the_others(folder, tmp_path, capsys):
    """Nor does what begins with its model hold them up."""
    job = flags(folder, tmp_path, tasks=["cola", "mnli", "ax", "wnli"],
                grid_learning_rate=["1e30"], num_trials=1)
    for _ in range(2):
        with pytest.raises(InputError, match="every run of cola and mnli diverged; give a lower"):
            finetune.main(job)
        found = json.loads((tmp_path / "results.json").read_text())
        assert "chosen" in found["tasks"]["wnli"] and {"cola", "mnli"} <= {*found["missing"]}
        assert "chosen" not in found["tasks"]["ax"]


def test_what_begins_with_a_model_that_never_began_is_not_waited_for(tmp_path, monkeypatch):
    """AX-b needs RTE's model, which needs MNLI's, of which there is none."""
    known = SUITES["superglue"]
    cells = [suite.Cell(known.row(task), point, 0, str(tmp_path / task), first, {})
             for task, point, first in (("mnli", "defaults", ""),
                                        ("superglue-rte", "defaults", "mnli"),
                                        ("ax-b", "superglue-rte", "superglue-rte"))]
    run = suite.SuiteRun(known, [cell.row for cell in cells], "", str(tmp_path), {}, [{}], [0])
    monkeypatch.setattr(suite.SuiteRun, "cells", cells)

    def wait(_):
        raise AssertionError("it waits for ever")
    monkeypatch.setattr(kept.time, "sleep", wait)
    (tmp_path / "mnli").mkdir()
    (tmp_path / "mnli" / "cell.json").write_text(json.dumps({
        "settings": {}, "result": {"metrics": {}, "diverged": True}}))
    run.carry_out()
    assert [run.is_lost(cell.row.task) for cell in cells] == [True, False, False]


def test_another_task_is_answered_by_the_chosen_model(folder, whole):
    results = json.loads((whole / "results.json").read_text())["tasks"]
    predictor = bert_tf.Predictor(whole / results["mnli"]["folder"])
    rows = [line.split("\t") for line in (
        folder / "AX" / "diagnostic-full.tsv").read_text().splitlines()[1:]]
    found = [row["label"] for row in answers(whole / "tasks/ax/mnli/dev_predictions.jsonl")]
    assert found == [predictor((row[0], row[1]))["label"] for row in rows]
    assert results["ax"]["points"]["mnli"]["dev/matthews"]["mean"] == pytest.approx(
        matthews_corrcoef([row[2] for row in rows], found))


def test_a_run_that_is_stopped_and_shared_ends_with_the_same_bytes(
        folder, whole, tmp_path, monkeypatch, capsys):
    measure, left = suite.SuiteRun._measure, [2]
    job = flags(folder, tmp_path, tasks=["cola", "wnli"], grid_learning_rate=["3e-2"])

    def stopped(run, cell, model):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return measure(run, cell, model)

    monkeypatch.setattr(suite.SuiteRun, "_measure", stopped)
    with pytest.raises(KeyboardInterrupt):
        finetune.main(job)
    monkeypatch.undo()
    held = collections.Counter()
    def busy(path):      # another process is at work on each cell when it is first tried
        held[path] += 1
        return kept.turn(path) if held[path] > 1 else contextlib.nullcontext(False)

    monkeypatch.setattr(suite, "turn", busy)
    monkeypatch.setattr(kept, "_WAIT_SECONDS", 0.0)
    finetune.main(job)
    first, second = (json.loads((output / "results.json").read_text())["tasks"]
                     for output in (whole, tmp_path))
    point = "rate0.03-batch4"
    assert second["cola"]["points"][point] == first["cola"]["points"][point]
    assert second["wnli"] == first["wnli"]
    paths = [path for place in (f"cola/{point}", "wnli")
             for path in (whole / "tasks" / place).rglob("*")
             if path.name in ("metrics.json", "cell.json") or path.name.endswith(
                 "predictions.jsonl")]
    assert len(paths) == 2 * 4 + 3
    for path in paths:
        assert (tmp_path / path.relative_to(whole)).read_bytes() == path.read_bytes(), path
    assert "estimated from 1 finished run" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"a run with another --max_seq_length .16, now 12.; name"):
        finetune.main(flags(folder, tmp_path, tasks=["cola"], max_seq_length=12))


@pytest.mark.parametrize("data_dir", ["tfds:glue", "hf://datasets/nyu-mll/glue"])
def test_a_suite_of_a_library_gives_the_scores_of_files(
        folder, whole, tmp_path, monkeypatch, data_dir):
    class Rows(list):
        features = {"sentence": object(), "label": types.SimpleNamespace(
            names=["unacceptable", "acceptable"])}

    def load(*names, split, **_):
        assert names in [("glue/cola",), ("nyu-mll/glue", "cola")]
        path = folder / "CoLA" / f"{'dev' if split == 'validation' else split}.tsv"
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        rows = [(row[1], -1) for row in rows[1:]] if split == "test" else [
            (row[3], int(row[1])) for row in rows]
        return Rows({"sentence": text.encode(), "label": label} for text, label in rows)

    monkeypatch.setitem(sys.modules, "tensorflow_datasets", types.SimpleNamespace(
        load=lambda *names, **given: (load(*names, **given), Rows), as_numpy=iter))
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load))
    monkeypatch.setattr(libraries, "dataset_commit", lambda *_: "c0ffee")
    hide_official_files(monkeypatch)
    # The run that was the best of the files is made again.
    wanted = json.loads((whole / "results.json").read_text())["tasks"]["cola"]
    point, seed = wanted["chosen"], wanted["seed"]
    finetune.main(flags(folder, tmp_path, data_dir=data_dir, tasks=["cola"], num_trials=1,
                        grid_learning_rate=[point.removeprefix("rate").partition("-")[0]],
                        random_seed=seed))
    found = json.loads((tmp_path / "results.json").read_text())["tasks"]["cola"]
    assert found["folder"] == wanted["folder"]
    assert [*found["points"][point]["dev/matthews"]["values"].items()] == [
        (str(seed), wanted["points"][point]["dev/matthews"]["values"][str(seed)])]
    found, wanted = ([row["label"] for row in answers(
        output / wanted["folder"] / "test_predictions.jsonl")] for output in (tmp_path, whole))
    assert found == wanted and len(found) == 5


def test_a_cell_of_another_process_is_left_alone(folder, whole):
    job = suite_run.open_suite(flags(folder, whole))
    cell = job.cells[0]
    with locked(cell.folder, "a test"):
        assert job.result(cell) and job.chosen("mnli")
    assert {one.row.task for one in job.cells[:4]} == {"mnli"}      # AX needs it
    assert job.cells[-1].row.task == "ax" and job.cells[-1].settings["num_workers"] == 1


def test_tasks_begin_with_the_model_of_another(folder, tmp_path, capsys):
    (folder / "RTE").mkdir(exist_ok=True)
    for name in ("train", "dev"):
        write(folder / "RTE" / f"{name}.tsv", [("sentence1", "sentence2", "label")], [
            ("1 2", "3", label) for label in ("entailment", "not_entailment") * 3])
    given = {"tasks": ["rte", "mnli"], "intermediate": True}
    run = suite_run.open_suite(flags(folder, tmp_path, **given))
    assert [(cell.row.task, cell.begins_with) for cell in run.cells[::4]] == [
        ("mnli", ""), ("rte", "mnli")]
    finetune.main(flags(folder, tmp_path, dry_run=True, **given))
    said = capsys.readouterr().out
    assert "the model of mnli" in said and "together about" in said
    assert not (tmp_path / "tasks").exists()
    with pytest.raises(InputError, match="rte needs the model of mnli, which is not among"):
        suite_run.open_suite(flags(folder, tmp_path, tasks=["rte"], intermediate=True))


@pytest.mark.parametrize("given, problem", [
    ({"suite": "xnli", "tasks": [], "intermediate": True}, "none of the tasks starts from the mod"),
    ({"suite": "race", "tasks": [], "intermediate": True}, "none of the tasks starts from the mod"),
    ({"tasks": ["cola", "mnli"], "intermediate": True}, "none of the tasks starts from the model"),
    ({"suite": "race", "tasks": [], "rank_pronouns": True}, "none of the tasks is WNLI or WSC"),
    ({"train_majority": ["cola"]}, "--train_majority: cola is trained in any case"),
    ({"tasks": ["wnli"], "train_majority": ["wnli"], "rank_pronouns": True}, "two ways to do WNLI"),
    ({"suite": "superglue", "tasks": ["mrpc"]}, "the suite has no task 'mrpc'"),
    ({"tasks": ["odd"]}, "the suite has no task 'odd'"),
    ({"tasks": ["qqp"]}, "has no folder qqp for the task qqp; .*leave the task out of --tasks"),
    ({"tasks": ["ax"]}, "ax needs the model of mnli"),
    ({"suite": "odd"}, "--suite is odd"),
    ({"distribution_strategy": "multi_worker"}, "--distribution_strategy is multi_worker"),
    ({"grid_learning_rate": ["x"]}, "--grid_learning_rate is x"),
    ({"grid_num_train_epochs": ["1"]}, "--num_train_steps replaces the epochs")])
def test_what_cannot_be_done_is_said_before_work(folder, tmp_path, given, problem):
    with pytest.raises(InputError, match=problem):
        suite_run.open_suite(flags(folder, tmp_path, **given))


def test_tasks_have_their_servers_names_too():
    for name, typed, task in (
            ("superglue", "RTE", "superglue-rte"), ("superglue", "superglue-rte", "superglue-rte"),
            ("superglue", "AX_b", "ax-b"), ("squad", "squad-v2", "squad_v2"),
            ("glue", "sts_b", "sts-b")):
        assert [row.task for row in suite.find_rows(SUITES[name], [typed], [])] == [task]


def test_a_result_holds_for_the_model_it_began_with_alone(folder, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "out")
    run = suite_run.open_suite(flags(folder, tmp_path / "out"))
    place, chosen = pathlib.Path(run.cells[-1].folder) / "cell.json", run.chosen("mnli")
    found = json.loads(place.read_text())
    assert found["settings"]["chosen"] == [chosen.point, chosen.seed]
    found["settings"]["chosen"] = [chosen.point, chosen.seed + 1]
    place.write_text(json.dumps(found))
    with pytest.raises(InputError, match="started from a model of mnli that is no longer the best"):
        run.carry_out()
    place.unlink()
    (pathlib.Path(chosen.folder) / "model.keras").unlink()
    with pytest.raises(InputError, match="its model was removed .* remove the folder"):
        run.carry_out()


def test_a_suite_waits_for_processes_alone(folder, whole, monkeypatch):
    run = suite_run.open_suite(flags(folder, whole))

    def fails(path, what):
        raise InputError("can't be locked") if not held else Held("is at work")

    monkeypatch.setattr(kept, "locked", fails)
    for held in (True, False):
        with (contextlib.nullcontext() if held else pytest.raises(InputError, match="be locked")):
            assert run._work(run.cells[0]) is False


def test_a_masked_lm_ranks_pronouns(tmp_path):
    """The whole of a run on WNLI, whose model begins with the head of pre-training."""
    folder = tmp_path / "glue"
    folder.mkdir()
    write(folder / "WNLI" / "test.tsv", [("index", "sentence1", "sentence2")], [
        (0, "1 2 3 it 4 5", "7 4 5")])
    for name in ("train", "dev"):
        write(folder / "WNLI" / f"{name}.tsv", [("sentence1", "sentence2", "label")], [
            ("1 2 it 3", "1 2 7 3", 1), ("8 it 3 4", "9 3 4", 0), ("8 it 3 4", "5 6 3 4", 1)])
    given = {"tasks": ["wnli"], "rank_pronouns": True, "max_seq_length": 48}
    job = flags(folder, tmp_path / "out", init_checkpoint=str(tmp_path / "lm"), num_trials=1,
                grid_learning_rate=["1e-2"], **given)
    network = tiny.save_encoder(tmp_path / "lm", TOKENS, 48)
    with pytest.raises(InputError, match="has no masked LM, which this task starts from"):
        finetune.main(job)
    Learner(network, [bert_tf.MaskedLM(network.config)]).save(tmp_path / "lm" / "model.keras")
    finetune.main(job)
    [cell] = suite_run.open_suite(job).cells
    rows = answers(pathlib.Path(cell.folder) / "dev_predictions.jsonl")
    labels = {row["line"]: row["label"] for row in rows}
    metrics = json.loads((pathlib.Path(cell.folder) / "metrics.json").read_text())["metrics"]
    assert metrics["dev/accuracy"] == pytest.approx(
        accuracy_score(["1", "0", "1"], [labels[line] for line in range(3)]))
    found = bert_tf.Predictor(cell.folder)(("1 2 ", " 3", *rows[0]["candidates"]))
    assert found["probabilities"] == pytest.approx(rows[0]["probabilities"], abs=1e-5)


def official(answers, predictions, is_v2):
    """Exact match and F1 by the formulas of the official scripts of SQuAD v1.1 and v2.0."""
    def words(text):
        text = "".join(char for char in text.lower() if char not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    def overlap(wanted, found):
        if is_v2 and not (wanted and found):
            return float(wanted == found)
        common = sum((collections.Counter(wanted) & collections.Counter(found)).values())
        return 2 * common / (len(wanted) + len(found)) if common else 0.0

    pairs = [(predictions[name], texts or [""]) for name, texts in answers.items()]
    return {"f1": np.mean([max(overlap(words(text), words(found)) for text in texts)
                           for found, texts in pairs]),
            "exact": np.mean([max(words(text) == words(found) for text in texts)
                              for found, texts in pairs])}


def test_trivia_qa_and_then_squad(tmp_path):
    """arXiv:1810.04805, table 2: SQuAD begins with the model of TriviaQA and its head."""
    data, gold = tmp_path / "data", {}
    for place in ("SQuAD", "TriviaQA/qa", "TriviaQA/evidence/wikipedia"):
        (data / place).mkdir(parents=True)
    for name, text in (("p", "1 2 3 4 5 6"), ("q", "8 1 2 3 4 5 6 7")):
        (data / f"TriviaQA/evidence/wikipedia/{name}.txt").write_text(text)
    for split in ("train", "dev"):
        (data / f"TriviaQA/qa/wikipedia-{split}.json").write_text(json.dumps({
            "Domain": "Wikipedia", "Data": [{
                "QuestionId": str(i), "Question": f"{i} 9",
                "EntityPages": [{"Filename": "p.txt"}, {"Filename": "q.txt"}],
                "Answer": {"Aliases": [f"{i} {i + 1}"], "NormalizedAliases": [f"{i}_{i + 1}"]}}
                for i in range(1, 6)]}))
        for version in ("v1.1", "v2.0"):
            questions = [{"id": str(i), "question": f"{i} 8", "is_impossible": False, "answers": [
                {"text": str(i), "answer_start": 2 * i - 2}]} for i in range(1, 6)]
            if version == "v2.0":
                questions[0] |= {"is_impossible": True, "answers": []}
            gold[version] = {row["id"]: [one["text"] for one in row["answers"]]
                             for row in questions}
            (data / "SQuAD" / f"{split}-{version}.json").write_text(json.dumps({"data": [
                {"paragraphs": [{"context": "1 2 3 4 5 6", "qas": questions}]}]}))
    # Questions have up to 64 tokens.
    tiny.save_encoder(tmp_path / "model", TOKENS, 96)
    job = flags(data, tmp_path / "out", suite="squad", tasks=[], intermediate=True, num_trials=1,
                init_checkpoint=str(tmp_path / "model"), max_seq_length=96)
    job.grid_learning_rate = ["3e-2"]
    finetune.main(job)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "score" not in results and results["missing"] == []
    for task, version in (("squad", "v1.1"), ("squad_v2", "v2.0")):
        [(_, cells)] = results["tasks"][task]["points"].items()
        place = tmp_path / "out" / results["tasks"][task]["folder"]
        wanted = official(gold[version], json.loads((place / "predictions.json").read_text()),
                          version == "v2.0")
        assert cells["squad/f1"]["mean"] == pytest.approx(wanted["f1"])
        assert all(0 <= cell["mean"] <= 1 for name, cell in cells.items() if "thresh" not in name)
        exact = "squad/exact" if version == "v2.0" else "squad/exact_match"
        assert cells[exact]["mean"] == pytest.approx(wanted["exact"])
        # The encoder's tensors and the two of the head.
        assert f"triviaqa/rate0.03-batch4/seed1/model.keras: {16 + 5 + 2 + 2} tensors" in (
            place / "log.txt").read_text()
    found = results["tasks"]["triviaqa"]
    wanted = official({str(i): [f"{i} {i + 1}"] for i in range(1, 6)}, json.loads(
        (tmp_path / "out" / found["folder"] / "predictions.json").read_text()), False)
    # Its script takes 1_2 for two words, SQuAD's for one.
    assert found["points"]["rate0.03-batch4"]["squad/f1"]["mean"] == pytest.approx(wanted["f1"])
    assert wanted["f1"] > 0
    rows = suite_run.open_suite(dataclasses.replace(job, intermediate=False)).rows
    assert [row.task for row in rows] == ["squad", "squad_v2"]      # TriviaQA is not asked for


def test_three_ways_to_other_languages(folder, tmp_path):
    """Files in the layout of XNLI-1.0 and XNLI-MT-1.0, those of most translations left out."""
    rng, header = np.random.default_rng(0), ("language", "gold_label", "sentence1", "sentence2")

    def pair():
        return " ".join(map(str, rng.integers(0, 90, 4))), str(rng.integers(0, 90))

    place = tmp_path / "data" / "XNLI"
    (place / "XNLI-MT-1.0").mkdir(parents=True)
    gold = {language: [MNLI[rng.integers(3)] for _ in range(6)] for language in XNLI_LANGUAGES}
    write(place / "XNLI-1.0" / "xnli.dev.tsv", [header], [
        (language, gold[language][i], *pair()) for i in range(6) for language in XNLI_LANGUAGES])
    write(place / "XNLI-MT-1.0" / "xnli" / "xnli.dev.zh.tsv", [header], [
        ("zh", label, *pair()) for label in gold["zh"]])
    for language in ("en", "zh"):
        write(place / "XNLI-MT-1.0" / "multinli" / f"multinli.train.{language}.tsv",
              [("premise", "hypo", "label")], [
                  (*pair(), label) for label in ("contradictory", "entailment", "neutral") * 4])
    job = flags(tmp_path / "data", tmp_path / "out", suite="xnli", num_trials=1,
                init_checkpoint=str(folder / "model"), grid_learning_rate=["3e-2"],
                tasks=["zero-shot", "xnli-zh", "translate-test"])
    finetune.main(job)

    def score(task, language):
        [path] = (tmp_path / "out" / "tasks" / task).rglob(f"dev_{language}_predictions.jsonl")
        return accuracy_score(gold[language], [row["label"] for row in answers(path)])

    zero_shot = {language: score("xnli", language) for language in XNLI_LANGUAGES}
    found = json.loads((tmp_path / "out" / "results.json").read_text())["ways"]["dev"]
    assert found == {
        "zero-shot": pytest.approx(zero_shot | {"average": np.mean(list(zero_shot.values()))}),
        **{way: pytest.approx({"en": zero_shot["en"], "zh": score(task, "zh")}) for way, task in (
            ("translate-train", "xnli-zh"), ("translate-test", "xnli-translate-test"))}}
    cells = [f"{100 * found['translate-train'][language]:.1f}" if language in ("en", "zh") else "-"
             for language in XNLI_LANGUAGES]
    assert f"| translate-train | {' | '.join(cells)} | - |" in (
        tmp_path / "out" / "table.md").read_text().splitlines()
    assert not (tmp_path / "out" / "submission.zip").exists()
    with pytest.raises(InputError, match="no .*multinli.train.ar.tsv"):
        suite_run.open_suite(dataclasses.replace(job, tasks=["translate-train"]))
    run = suite_run.open_suite(dataclasses.replace(
        job, grid_learning_rate=[], grid_train_batch_size=[], num_train_steps=None))
    assert run.points == [      # google-research/bert, multilingual.md
        {"learning_rate": 5e-5, "train_batch_size": 32, "num_train_epochs": 2.0}]


def test_figures_say_which_development_set_they_lack(folder, tmp_path, capsys):
    run = suite_run.open_suite(flags(folder, tmp_path))
    scores = {"mnli": ["dev_matched", "dev_mismatched"]}
    cells = {row.task: suite.Cell(row, "p", 1, str(tmp_path), "", {}) for row in run.suite.rows}
    run = dataclasses.replace(run, rows=list(run.suite.rows))
    run.cells_of, run.chosen = lambda task: {"p": [cells[task]]}, cells.get
    run.folder = lambda row: str(tmp_path)      # without test files
    run.result = lambda cell: {"metrics": {
        f"{split}/{metric}": 0.9 if split == "dev_mismatched" else 0.3
        for split in scores.get(cell.row.task, ["dev"]) for metric in cell.row.metrics}}
    found = suite_run.report(run)
    assert "lacking" not in found and "without" not in capsys.readouterr().out
    assert found["average"] == pytest.approx((8 * 0.3 + 0.9) / 9)
    rows = {line.split(" | ")[0][2:]: line for line in (tmp_path / "table.md").read_text(
        ).splitlines() if line.startswith("|")}
    assert rows["system"].endswith("| mnli | qnli | rte | average |")
    own = rows["this run, development sets"]
    assert own.endswith("| 30.0 | 30.0/90.0 | 30.0 | 30.0 | 36.7 |")
    assert "| 84.6/83.4 | 90.5 | 66.4 | 79.6 |" in rows[
        "BERT-Base (arXiv:1810.04805, table 1), test sets"]
    scores["mnli"].pop()
    found = suite_run.report(run)
    assert found["average"] == pytest.approx(0.3)
    assert found["lacking"] == {"mnli": ["dev_mismatched"]}
    line = "They count mnli without dev_mismatched: no such file was there."
    assert line in capsys.readouterr().out and line in (tmp_path / "table.md").read_text()


def test_seeds_may_have_been_scored_on_other_files():
    """As where a development set was put into the folder between two runs, or was lost."""
    known = {1: {"dev_matched/accuracy": 0.5}, 3: {"dev_matched/accuracy": 1.0},
             2: {"dev_matched/accuracy": 0.75, "dev_mismatched/accuracy": 0.25}}
    run = types.SimpleNamespace(result=lambda cell: {"metrics": known[cell.seed]},
                                diverged=lambda cell: False)
    for seeds in ((1, 2, 3), (2, 3, 1)):
        found = suite_run._point(run, SUITES["glue"].row("mnli"), [
            types.SimpleNamespace(seed=seed) for seed in seeds])
        assert found["dev_matched/accuracy"]["mean"] == 0.75
        assert found["dev_mismatched/accuracy"]["values"] == {"2": 0.25}
        assert found["dev_mismatched/accuracy"]["stdev"] == 0.0


def test_grids_are_those_of_papers(folder, tmp_path):
    """arXiv:1810.04805, section 4.1; other models learn by their own defaults."""
    given = {"grid_learning_rate": [], "grid_train_batch_size": [], "num_train_steps": None}
    run = suite_run.open_suite(flags(folder, tmp_path, **given))
    assert run.points == [{"learning_rate": rate, "train_batch_size": 32, "num_train_epochs": 3.0}
                          for rate in (5e-5, 4e-5, 3e-5, 2e-5)]
    tiny.config(vocab_size=len(TOKENS), model_type="albert").to_json_file(tmp_path / "albert.json")
    run = suite_run.open_suite(flags(
        folder, tmp_path, bert_config_file=str(tmp_path / "albert.json"), init_checkpoint="",
        vocab_file=str(folder / "model" / "vocab.txt"), **given))
    assert run.points == [{}] and {cell.point for cell in run.cells_of("cola")["defaults"]} == {
        "defaults"}
    load = suite_run._load(run, run.cells_of("cola")["defaults"][0], suite_run.open_model(
        "", str(tmp_path / "albert.json"), str(folder / "model" / "vocab.txt")))
    assert load.steps == 5336       # ALBERT's


def test_the_archive_is_what_the_server_takes(folder, tmp_path, whole):
    """gluebenchmark.com/faq: names, a header, and a line for each official example."""
    run = suite_run.open_suite(flags(folder, whole))
    chosen = {}
    for row in run.suite.rows:
        place = tmp_path / row.task
        place.mkdir()
        task = TASKS[row.task]
        for split, layout in task.splits.items():
            if layout.submission:
                write_submission(str(place), task, split, np.zeros(layout.size, int))
        chosen[row.task] = suite.Cell(row, "p", 1, str(place), "", {})
    run = dataclasses.replace(run, rows=list(run.suite.rows), output_dir=str(tmp_path))
    run.chosen = chosen.get
    assert suite_run.write_archive(run) == (sorted(OFFICIAL), [])
    first = (tmp_path / "submission.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "submission.zip") as archive:
        assert sorted(archive.namelist()) == sorted(OFFICIAL)
        for name, count in OFFICIAL.items():
            lines = archive.read(name).decode().splitlines()
            assert lines[0] == "index\tprediction" and len(lines) == 1 + count
            assert lines[-1].startswith(f"{count - 1}\t")
    suite_run.write_archive(run)
    assert (tmp_path / "submission.zip").read_bytes() == first
    run = dataclasses.replace(run, rows=[], suite=SUITES["superglue"])
    assert set(suite_run.write_archive(run)[1]) == {        # super.gluebenchmark.com/faq
        "AX-b.jsonl", "AX-g.jsonl", "BoolQ.jsonl", "CB.jsonl", "COPA.jsonl", "MultiRC.jsonl",
        "ReCoRD.jsonl", "RTE.jsonl", "WiC.jsonl", "WSC.jsonl"}
