"""A suite of small files for T5, which writes its answers: every cell against its written texts, a
run that is stopped, and the archive."""

import contextlib
import json
import random
import zipfile
import zlib

import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from bert_tf import networks
from bert_tf.config import T5Config
from bert_tf.errors import InputError
from bert_tf.finetuning import suite_flags, suite_run
from bert_tf.models.t5.finetuning import TextTuning
from bert_tf.models.t5.tasks import text_task
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.suites import SUITES
from bert_tf.training import resume
from run_scripts import finetune
from tests import sentencepieces
from tests.finetuning.test_suite import MNLI, write_glue

pytestmark = pytest.mark.usefixtures("all_eagerly")
# Words that a model writes in place of the tokens it would take long to learn.
LABELS = ("unacceptable", "acceptable", "contradiction", "entailment", "neutral")
WORDS = ("unacceptable acceptable contradiction entailment neutral sentence premise hypothesis "
         "mnli cola rte not_entailment red green blue").split()


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """CoLA, MNLI, WNLI, AX, CB, RTE and AX-b of a few lines, and a T5 to begin with."""
    folder, rng = tmp_path_factory.mktemp("texts"), random.Random(0)

    def text():
        return " ".join(rng.choices(("red", "green", "blue"), k=3))

    write_glue(folder, text, (8, 6, 1063), (9, 6, 3), ("001", "001"), 5)
    for name, file, labels in (
            ("CB", "train", MNLI), ("CB", "val", MNLI * 2), ("CB", "test", MNLI),
            ("RTE", "train", MNLI[1:2] * 3), ("RTE", "val", ("entailment", "not_entailment")),
            ("AX-b", "AX-b", ("entailment", "not_entailment"))):
        columns = ("sentence1", "sentence2") if name == "AX-b" else ("premise", "hypothesis")
        (folder / name).mkdir(exist_ok=True)
        (folder / name / f"{file}.jsonl").write_text("".join(
            json.dumps({columns[0]: text(), columns[1]: text(), "label": label, "idx": i}) + "\n"
            for i, label in enumerate(labels)))
    config = T5Config(vocab_size=256, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    (folder / "t5").mkdir()
    (folder / "t5" / "spiece.model").write_bytes(sentencepieces.train(
        [" ".join(rng.choices(WORDS, k=9)) for _ in range(200)], 120, **sentencepieces.T5))
    networks.build(config).save(folder / "t5" / "model.keras")
    return folder


def flags(folder, output, **others):
    return suite_flags.SuiteFlags(**{
        "suite": "glue", "data_dir": str(folder), "output_dir": str(output),
        "init_checkpoint": str(folder / "t5"), "tasks": ["cola", "mnli", "wnli", "ax"],
        "num_trials": 2, "random_seed": 1, "grid_learning_rate": ["1e-1"],
        "grid_train_batch_size": ["4"], "num_train_steps": 2, "save_checkpoints_steps": 1,
        "max_seq_length": 12, **others})


def write_labels(tuning, trainer, file, measures):
    """A label for each text, which depends on it and on the weights."""
    del tuning, measures
    weights = b"".join(weight.tobytes() for weight in trainer.learner.get_weights())
    return {"texts": [LABELS[zlib.crc32(example.input.encode(), zlib.crc32(weights)) % len(LABELS)]
                      for example in file.examples]}, {}


@pytest.fixture(name="whole", scope="module")
def fixture_whole(folder, tmp_path_factory):
    """The output of a run that nothing stops."""
    output = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextTuning, "predict", write_labels)
        finetune.main(flags(folder, output))
    return output


def test_every_cell_equals_scikit_learn_on_its_texts(folder, whole):
    found = json.loads((whole / "results.json").read_text())["tasks"]
    assert [list(found[task]["points"]) for task in ("cola", "wnli", "ax")] == [
        ["rate0.1-batch4"], ["most_frequent_label"], ["mnli"]]
    for task, place, gold, names, score in (
            ("cola", "dev/matthews", [i % 2 for i in range(6)],
             ("unacceptable", "acceptable"), matthews_corrcoef),
            ("mnli", "dev_matched/accuracy", [0, 1, 2] * 2, MNLI, accuracy_score),
            ("mnli", "dev_mismatched/accuracy", [0, 1, 2], MNLI, accuracy_score)):
        split = place.partition("/")[0].replace("dev", task, 1) + "_dev"
        cells, [(point, of)] = {}, found[task]["points"].items()
        for seed in ("1", "2"):
            path = whole / "tasks" / task / point / f"seed{seed}" / f"{split}_predictions.tsv"
            cells[seed] = score(gold, [names.index(text) if text in names else -1
                                       for text in path.read_text().splitlines()])
        assert of[place]["values"] == pytest.approx(cells)
        if place != "dev_mismatched/accuracy":
            assert cells[str(found[task]["seed"])] == max(cells.values())
            assert (whole / found[task]["folder"] / "model.keras").exists()
        assert len(list((whole / "tasks" / task).rglob("model.keras"))) == 1
    assert not list(whole.rglob("checkpoint-*"))
    assert "wnli" in found and (whole / "tasks/ax/mnli/ax_dev_predictions.tsv").exists()


def test_the_archive_holds_what_a_whole_test_file_gives(folder, whole):
    with zipfile.ZipFile(whole / "submission.zip") as archive:
        assert archive.namelist() == ["CoLA.tsv"]
        assert len(archive.read("CoLA.tsv").splitlines()) == 1 + 1063


def test_a_suite_of_texts_that_is_killed_ends_with_the_same_bytes(
        folder, whole, tmp_path, monkeypatch):
    write_checkpoint, left = resume.write_checkpoint, [0]

    def killed(*given):
        path = write_checkpoint(*given)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return path

    job = flags(folder, tmp_path, tasks=["mnli", "ax"])
    monkeypatch.setattr(TextTuning, "predict", write_labels)
    monkeypatch.setattr(resume, "write_checkpoint", killed)
    for checkpoints in (3, 0):      # within the second cell, and never
        left[0] = checkpoints
        with pytest.raises(KeyboardInterrupt) if checkpoints else contextlib.nullcontext():
            finetune.main(job)
    paths = [path for task in ("mnli", "ax") for path in (whole / "tasks" / task).rglob("*")
             if path.name in ("metrics.json", "cell.json") or path.suffix == ".tsv"]
    assert len(paths) == 2 * 4 + 3
    for path in paths:
        assert (tmp_path / path.relative_to(whole)).read_bytes() == path.read_bytes(), path


def test_super_glue_as_text(folder, tmp_path, capsys):
    job = flags(folder, tmp_path, suite="superglue", tasks=["cb", "superglue-rte", "ax-b"],
                num_trials=1, grid_learning_rate=["1e-2"])
    finetune.main(job)
    found = json.loads((tmp_path / "results.json").read_text())["tasks"]
    place = tmp_path / found["cb"]["folder"]
    texts = (place / "super_glue_cb_dev_predictions.tsv").read_text().splitlines()
    [cells] = found["cb"]["points"].values()
    words = text_task("cb").words
    gold, answers = ([words.index(text) if text in words else -1 for text in side]
                     for side in (MNLI * 2, texts))
    assert cells["dev/macro_f1"]["mean"] == pytest.approx(f1_score(
        gold, answers, labels=range(3), average="macro", zero_division=0))
    assert cells["dev/accuracy"]["mean"] == pytest.approx(accuracy_score(gold, answers))
    assert {"dev/matthews", "dev/accuracy"} == set(found["ax-b"]["points"]["superglue-rte"])
    said = capsys.readouterr().out
    assert f"no CB.jsonl: the server takes 250 predictions of cb, and {folder}/CB/test.jsonl has " \
        "3 examples." in said
    assert not (tmp_path / "submission.zip").exists()


def test_metrics_of_texts_are_those_of_tasks():
    """Of each task of both suites, in the same order, whatever their names. T5 has no SWAG, with
    which COPA may begin."""
    for row in (*SUITES["glue"].rows, *SUITES["superglue"].rows):
        if row.task == "swag":
            continue
        names = [{"mean_f1_of_3": "macro_f1", "answer_f1": "f1", "referent_accuracy": "accuracy"
                  }.get(name, name) for name in text_task(row.task).metrics]
        assert names == list(TASKS[row.task].metrics)[:len(names)]
        assert set(row.metrics) <= set(names)


def test_the_plan_counts_the_tokens_of_texts(folder, tmp_path, capsys):
    finetune.main(flags(folder, tmp_path, dry_run=True, num_train_steps=None))
    said = capsys.readouterr().out
    assert "mnli  the model                      2     2     9         262,144" in said
    assert not (tmp_path / "tasks").exists()


@pytest.mark.parametrize("given, message", [
    ({"suite": "squad", "tasks": ["squad"]}, "T5 does not do squad in a suite"),
    ({"suite": "race", "tasks": []}, "T5 does not do race in a suite"),
    ({"do_lower_case": False}, "--do_lower_case is not for a suite of T5"),
    ({"rank_pronouns": True}, "--rank_pronouns is not for a suite of T5"),
    ({"warmup_proportion": 0.1}, "--warmup_proportion is not for a suite of T5"),
    ({"num_train_steps": None, "grid_num_train_epochs": ["3"]},
     "--grid_num_train_epochs is not for a suite of T5"),
    ({"early_stopping": 2}, "--early_stopping is not for a suite of T5")])
def test_what_t5_cannot_do_is_said_before_work(folder, tmp_path, given, message):
    for name in ("SQuAD", "RACE"):
        (tmp_path / name).mkdir()
    data_dir = str(tmp_path if "suite" in given else folder)
    with pytest.raises(InputError, match=message):
        suite_run.open_suite(flags(folder, tmp_path, **{"data_dir": data_dir, **given}))
