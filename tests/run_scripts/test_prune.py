"""bert-prune and bert-benchmark model-cost on a tiny model: what they measure and write."""

import contextlib
import dataclasses
import json
import re
import shutil
import types

import numpy as np
import pytest

import bert_tf
from benchmarks import model_cost, runtimes
from bert_tf import checkpoints, networks
from bert_tf.analysis import switch_off
from bert_tf.compression import steps_of
from bert_tf.config import BiLstmConfig, EncoderConfig, T5Config, config_from_dict
from bert_tf.config.quantisation import Quantisation
from bert_tf.errors import InputError
from bert_tf.finetuning.model import mask, masked_heads
from bert_tf.tasks.kinds.span import SquadPredictions
from bert_tf.tasks.named import SQUAD, TASKS
from bert_tf.tasks.reading import Example
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.learners.learner import Learner
from bert_tf.training.train import save_model
from run_scripts import measure_sensitivity, prune
from run_scripts.analysis import heads
from run_scripts.finetuning.pruning import Curve
from run_scripts.finetuning.scoring import (
    ScoredSplit,
    contents_of,
    open_scored,
    weights_files,
)
from tests.run_scripts.test_analysis import TOKENS, write_task


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory):
    """A fine-tuned model of 2 layers with 2 heads, beside its task's file."""
    folder = tmp_path_factory.mktemp("prune") / "model"
    config = EncoderConfig.preset("tiny", vocab_size=len(TOKENS), hidden_size=32,
                                  intermediate_size=32, max_position_embeddings=24,
                                  initializer_range=0.5)
    write_task(folder, "sts-b", config, [0.0, 1.5, 3.0, 4.5, 5.0, 2.0])
    (folder / "train.tsv").write_bytes((folder / "dev.tsv").read_bytes())
    return folder


def shapes(folder):
    return {name: tensor.shape for name, tensor in checkpoints.read(str(folder)).tensors.items()}


def flags(model, output, **change):
    return TaskFlags(task="sts-b", data_dir=str(model)), prune.PruneFlags(
        model_dir=str(model), output_dir=str(output), **change)


def test_the_flags_of_a_training_stay(model, tmp_path, eagerly, as_program):
    (tmp_path / "flags.txt").write_text("# bert-finetune --flagfile=THIS_FILE\n--do_train\n")
    task, job = flags(model, tmp_path, prune_heads=["1:1"])
    prune.main(task, as_program(job))
    assert (tmp_path / "flags.txt").read_text().endswith("\n--do_train\n")


def test_prune_and_compare(model, tmp_path, eagerly, monkeypatch, capsys):
    """The smaller model answers as the masked one; scores that are known are not measured again."""
    job = {"orders": ["importance", "oracle"], "prune_percent": ["50", "100"]}
    prune.main(*flags(model, tmp_path / "out", **job, actually_prune=True))
    assert re.search(r"\n  ms of CPU an example: [0-9.]+ -> [0-9.]+ \(", capsys.readouterr().out)
    found = json.loads((tmp_path / "out" / "prune.json").read_text())
    assert found["removed"]["difference"] <= 1e-6
    assert found["removed"]["parameters"][1] < found["removed"]["parameters"][0]
    assert [point["off"] for point in found["curves"]["importance"]] == [2, 4]
    known = json.loads((tmp_path / "out" / "scores.json").read_text())["scores"]
    alone = [known[f"{layer}:{head}"]["score"] for layer in (1, 2) for head in (1, 2)]
    first_off = found["curves"]["oracle"][0]["parts"]
    assert sorted(first_off) == sorted([[place // 2, place % 2]
                                        for place in np.argsort(alone, kind="stable")[::-1][:2]])
    card, (before, after) = (tmp_path / "out" / "model" / "README.md").read_text(), found[
        "removed"]["parameters"]
    assert f"of 4 heads are removed; {after:,} of {before:,} weights are left." in card
    assert "bert-prune \\\n        --task=sts-b \\\n" in card and "--actually_prune=true" in card
    assert (tmp_path / "out" / "prune.png").stat().st_size > 5_000
    monkeypatch.setattr(ScoredSplit, "chance", None)      # it would fail if it measured
    prune.main(*flags(model, tmp_path / "out", **job))
    monkeypatch.undo()
    short = shutil.copytree(model, tmp_path / "short")      # of other records than its teacher
    saved = json.loads((short / "task.json").read_text())
    (short / "task.json").write_text(json.dumps(
        {**saved, "max_seq_length": saved["max_seq_length"] - 1}))
    cost = []
    for folder in (model, short):
        model_cost.main(flags(model, "")[0], model_cost.ModelCostFlags(
            model_dir=str(folder), output_dir=str(tmp_path / folder.name), repeats=1))
        cost.append(json.loads((tmp_path / folder.name / "metrics.json").read_text())["metrics"])
    assert [one["weights"] for one in cost] == [found["removed"]["parameters"][0]] * 2
    assert cost[0]["bytes"] == cost[1]["bytes"] and cost[0]["cpu_seconds"] > 0


def test_orders_share_the_importance_of_the_whole_model(model, tmp_path, eagerly, monkeypatch):
    measured = []

    def importance(learner, batches, *args):
        measured.append(len(list(batches)))
        return [np.arange(2.0)] * 2

    monkeypatch.setattr("bert_tf.compression.importance", importance)
    prune.main(*flags(model, tmp_path / "out", orders=["importance", "reverse"],
                      prune_percent=["50", "100"], normalize_pruning_by_layer=True))
    found = json.loads((tmp_path / "out" / "prune.json").read_text())["curves"]
    assert measured == [1]
    assert found["importance"][0]["parts"] == [[0, 0], [1, 0]]
    assert found["reverse"][0]["parts"] == [[0, 1], [1, 1]]


@pytest.fixture(name="of_several", scope="module")
def fixture_of_several(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    config = EncoderConfig.from_json_file(model / "bert_config.json")
    save_model(str(folder), Learner(networks.build(config), [
        bert_tf.Regression(config, name="sts-b"), bert_tf.Classification(config, 2, name="cola")]))
    return shutil.copytree(model, folder / "tasks" / "sts-b",
                           ignore=shutil.ignore_patterns("model.keras"))


def test_a_task_of_a_model_of_several_is_pruned(of_several, tmp_path, eagerly):
    prune.main(*flags(of_several, tmp_path / "out", orders=["random"], prune_percent=["50"],
                      actually_prune=True))
    found = checkpoints.read(str(tmp_path / "out" / "model"))
    assert "regression" in found.heads and "classification" not in found.heads
    assert checkpoints.read(str(of_several)).source == str(of_several.parents[1] / "model.keras")
    assert weights_files(str(of_several)) == [str(of_several.parents[1] / "model.keras")]
    whole = json.loads((tmp_path / "out" / "prune.json").read_text())
    heads.main(flags(of_several, "")[0], heads.HeadsFlags(
        model_dir=str(of_several), output_dir=str(tmp_path / "heads")))
    found = json.loads((tmp_path / "heads" / "heads.json").read_text())
    assert found["metric"] == whole["metric"] == "pearson" and found["score"] == whole["score"]


def test_the_layers_of_a_task_of_a_model_of_several_get_bits(of_several, tmp_path, eagerly):
    measure_sensitivity.main(flags(of_several, "")[0], measure_sensitivity.SensitivityFlags(
        init_checkpoint=str(of_several), output_dir=str(tmp_path / "bits"), examples=4, samples=1,
        most_products=1))
    assert "eigenvalues" in json.loads((tmp_path / "bits" / "results.json").read_text())


def test_a_task_of_a_model_of_several_is_timed(of_several, tmp_path, eagerly):
    runtimes.main(flags(of_several, "")[0], runtimes.RuntimesFlags(
        init_checkpoint=str(of_several), output_dir=str(tmp_path), runtimes=["tensorflow"],
        repeats=1))
    row, = json.loads((tmp_path / "results.json").read_text())["rows"].values()
    assert row["bytes"] == (of_several.parents[1] / "model.keras").stat().st_size


def test_missing_weights_are_named_by_the_flag_of_the_command(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "model",
                             ignore=shutil.ignore_patterns("model.keras"))
    with pytest.raises(InputError, match=f"--init_checkpoint: there are no weights in {folder}"):
        contents_of(str(folder), None, "init_checkpoint")


@pytest.mark.parametrize("change, off", [
    ({"at_least_x_heads_per_layer": 1}, [1, 2, 2]), ({"parts": "units"}, [16, 32, 62])])
def test_parts_that_stay_in_each_layer(model, tmp_path, eagerly, change, off):
    """At 100 per cent, too."""
    task_flags, job = flags(model, tmp_path / "out", prune_percent=["25", "50", "100"], **change)
    assert [point["off"] for point in Curve(job, task_flags).points("importance")] == off


def test_a_line_is_printed_once_for_each_number_of_parts(capsys):
    """20% and 30% of 4 heads are both one head."""
    class FourHeads:
        whole, total_of = 90.0, staticmethod(lambda order: 4)

        def points(self, order):
            yield from ({"off": off, "score": 90.0 - off, "p": None} for off in (0, 1, 1, 2, 2))

    assert len(list(prune.show(FourHeads(), "importance"))) == 5
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["0", "1", "2"]


def test_curves_of_several_lengths_are_drawn(tmp_path, monkeypatch):
    """One head of each of 6 layers stays at 75%, which 80% of 24 heads are above, and 80% of the
    encoder's 8 are not."""
    class Fake(types.SimpleNamespace):
        def __init__(self, job, _):
            super().__init__(job=job, whole=90.0, metric="bleu", examples=8, name="t5",
                             save=lambda lines: None,
                             total_of={"importance": 24, "encoder": 8}.__getitem__)

        def points(self, order):
            for off in steps_of(self.job.percents, [4] * (self.total_of(order) // 4), 1):
                yield {"off": off, "score": 90.0 - off, "p": None}

    monkeypatch.setattr(prune, "Curve", Fake)
    task_flags, job = flags("model", tmp_path, orders=["importance", "encoder"],
                            at_least_x_heads_per_layer=1)
    lengths = [len(list(Fake(job, None).points(order))) for order in job.orders]
    assert lengths == [8, 9]
    prune.main(task_flags, job)
    assert (tmp_path / "prune.png").stat().st_size > 5_000


def test_scores_are_those_of_the_weights_not_of_the_path(model, tmp_path, eagerly):
    copy, job = shutil.copytree(model, tmp_path / "model"), {"prune_heads": ["1:1"]}
    path = tmp_path / "out" / "scores.json"

    def scores():
        prune.main(*flags(copy, tmp_path / "out", **job))
        kept = json.loads(path.read_text())
        return kept, kept["scores"]["1:1"]["score"]

    kept, before = scores()
    path.write_text(json.dumps({**kept, "scores": {"1:1": {"score": -3.0, "p": 1.0}}}))
    kept, again = scores()
    assert again == -3 and len(kept["settings"]["weights"]) == 64
    learner = bert_tf.open_model(copy, finetuned=True).learner()
    learner.encoder.layers_[1].attention.value.kernel.assign(
        -learner.encoder.layers_[1].attention.value.kernel)
    known = shapes(copy)
    save_model(str(copy), learner)
    assert shapes(copy) == known
    assert scores()[1] not in (-3, before)


@pytest.mark.parametrize("name, labels, right", [
    ("qnnli", [0, 1, 1, 0, 1], {"logits": [[1, 0], [0, 1], [0, 1], [1, 0], [0, 1]]}),
    ("record", [1, 0, 0, 1] * 5, {"probabilities": [[0, .9], [0, .1], [0, .1], [0, .2]] * 5}),
    ("wsc-ranking", [0] * 20, {"logits": [[1, 0]] * 20})])
def test_what_is_answered_once_counts_once(name, labels, right):
    """The sign test of 5 questions that one model has all right, the other one all wrong."""
    task, each = TASKS[name], len(labels) // 5
    examples = [Example(["a"] * 4, label, number // each) for number, label in enumerate(labels)]
    split = ScoredSplit(types.SimpleNamespace(task=task, metric=task.headline), "dev", None,
                          types.SimpleNamespace(examples=examples))
    answers = {key: np.array(values) for key, values in right.items()}
    good, bad = (task.kind.decode(task, found, examples, None) for found in (
        answers, {key: 1 - values for key, values in answers.items()}))
    assert split.chance(good, bad) == pytest.approx(2 * 0.5**5)
    assert split.chance(good, good) == 1


def test_an_example_of_several_records_counts_once(model, tmp_path):
    """Texts that are cut in windows, and sentences and passages likewise: reports count examples,
    batches have all records."""
    folder = shutil.copytree(model, tmp_path / "model")
    saved = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps(
        {**saved, "max_seq_length": 8, "options": {"long_text": "mean"}}))
    split = open_scored(str(folder), flags(folder, "")[0], str(tmp_path / "out")).split()
    assert split.size == len(split.predictions.examples) == 6 < split.records
    assert sum(len(batch["input_ids"]) for batch in split.batches(4)) == split.records
    squad = {"version": "1.1", "data": [{"title": "", "paragraphs": [{"context": "a b", "qas": [
        {"id": name, "question": "a?", "answers": [{"text": "b", "answer_start": 2}]}
        for name in "pq"]}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(squad))
    assert SquadPredictions(str(tmp_path / "dev.json"), None, 8,
                            {"version_2_with_negative": False}, True).size == 2


@pytest.mark.parametrize("given", [{"task": "mrpc"}, {"data_dir": "squad"}, {"labels": ["a"]}])
def test_flags_without_use_for_a_model_of_squad_are_refused(given, tmp_path):
    SavedTask(SQUAD[False], 24, True, {}).write(str(tmp_path))
    with pytest.raises(InputError, match=f"--{[*given][0]} is not for a model of SQuAD"):
        open_scored(str(tmp_path), TaskFlags(dev_file="dev.json", **given), str(tmp_path / "out"))


@pytest.mark.parametrize("change, is_refused", [
    ({"orders": ["importance"]}, True), ({"parts": "layers"}, True),
    ({"orders": ["random"], "actually_prune": True}, True), ({"orders": ["random"]}, False)])
def test_rounded_models_are_not_cut(change, is_refused, model, tmp_path, eagerly):
    config = EncoderConfig.from_json_file(model / "bert_config.json")
    write_task(tmp_path / "model", "sts-b",
               dataclasses.replace(config, quantisation=Quantisation()), [0.0, 1.5, 3.0])
    shutil.copy(model / "train.tsv", tmp_path / "model")
    with pytest.raises(InputError, match="is quantised, .*prune the model before quantisation"
                       ) if is_refused else contextlib.nullcontext():
        prune.main(*flags(tmp_path / "model", tmp_path / "out", prune_percent=["50"], **change))


def test_models_without_such_parts_are_refused_before_anything_is_written(model, tmp_path):
    (folder := tmp_path / "model").mkdir()
    config = BiLstmConfig(vocab_size=len(TOKENS), embedding_size=4, lstm_size=4, hidden_size=4)
    save_model(str(folder), Learner(networks.build(config), [bert_tf.Regression(config)]))
    for name in ("task.json", "vocab.txt", "dev.tsv", "train.tsv"):
        shutil.copy(model / name, folder)
    with pytest.raises(InputError, match="has the type bilstm, whose parts can't be removed"):
        prune.main(*flags(folder, tmp_path / "out", prune_percent=["50"]))
    assert not list((tmp_path / "out").iterdir())
    with pytest.raises(InputError, match="of the type bilstm, whose layers get no bits"):
        measure_sensitivity.main(flags(folder, "")[0], measure_sensitivity.SensitivityFlags(
            init_checkpoint=str(folder), output_dir=str(tmp_path / "bits"), examples=4))


def test_heads_of_other_networks_are_only_switched_off(model, tmp_path, eagerly):
    config = config_from_dict({**dict.fromkeys(("hidden_size", "intermediate_size"), 32),
                               "vocab_size": len(TOKENS), "num_hidden_layers": 2,
                               "num_attention_heads": 2, "max_position_embeddings": 24,
                               "initializer_range": 0.5, "model_type": "mpnet"})
    write_task(tmp_path / "model", "sts-b", config, [0.0, 1.5, 3.0, 4.5, 5.0, 2.0])
    shutil.copy(model / "train.tsv", tmp_path / "model")
    job = {"prune_percent": ["50"], "orders": ["importance", "oracle"]}
    prune.main(*flags(tmp_path / "model", tmp_path / "out", **job))
    curves = json.loads((tmp_path / "out" / "prune.json").read_text())["curves"]
    assert [[point["off"] for point in curves[order]] for order in job["orders"]] == [[2], [2]]
    for change in ({"actually_prune": True}, {"parts": "units"}):
        with pytest.raises(InputError, match="type mpnet, heads can only be switched off"):
            prune.main(*flags(tmp_path / "model", tmp_path / "out", **{**job, **change}))


@pytest.mark.parametrize("file, change, message", [
    ("dev_file", {"prune_heads": ["9:1"]}, "--prune_heads: '9:1' names no head; give layer:head"),
    ("dev_file", {"split": "test"}, "^--split=test: choose from dev, train"),
    ("dev_file", {"orders": ["importance"]}, "^--orders=importance needs --train_file, the file"),
    ("train_file", {}, "^name a file that has labels with --dev_file.$")])
def test_what_is_not_there_is_refused_before_records_are_made(
        model, tmp_path, file, change, message):
    _, job = flags(model, tmp_path, **change)
    with pytest.raises(InputError, match=message):
        prune.main(TaskFlags(**{file: str(model / "train.tsv")}, task_kind="regression",
                             text_a_column="sentence1", text_b_column="sentence2",
                             label_column="score"), job)
    assert not list(tmp_path.iterdir())


def test_errors_name_the_flag_of_the_command(model, tmp_path, monkeypatch):
    def refuse(*given, check):
        raise InputError("the model knows other labels; name another --init_checkpoint.")

    monkeypatch.setattr("run_scripts.finetuning.scoring.open_run", refuse)
    with pytest.raises(InputError, match="other labels; name another --model_dir[.]$"):
        prune.main(*flags(model, tmp_path / "out", prune_percent=["50"]))


def test_masks_by_flag():
    config = EncoderConfig.preset("tiny", vocab_size=9, hidden_size=16, num_attention_heads=4,
                                  pruned_heads={"1": [0]})

    def given(*heads, reverse=False):
        return types.SimpleNamespace(attention_mask_heads=list(heads), reverse_head_mask=reverse)

    assert masked_heads(given("1:2", "2:4"), config) == [(0, 1), (1, 3)]
    assert masked_heads(given("2:4", reverse=True), config) == [(1, 1), (1, 2)]
    for wrong in ("3:1", "1:5", "2:1", "1", "0:1"):
        with pytest.raises(InputError, match="names no head"):
            masked_heads(given(wrong), config)
    with pytest.raises(InputError, match="from 1:1 to 2:4, that was not pruned[.]$"):
        masked_heads(given("2:1"), config)
    mask(given(), types.SimpleNamespace(config=config))
    with pytest.raises(InputError, match="no head 1 any more"):
        from bert_tf.networks.encoder import BertEncoder
        switch_off(BertEncoder(config), [(1, 0)])


def test_a_language_model_has_one_kind_of_attention():
    job = types.SimpleNamespace(parts="heads", actually_prune=False, prune_heads=[],
                                importance="paper", model_dir="lm", orders=["decoder"])
    curve = object.__new__(Curve)
    curve.job, curve.config = job, T5Config(architecture="prefix_lm")
    curve._names = ["decoder 1", "decoder 2"]
    curve._check_texts()
    job.orders = ["cross"]
    with pytest.raises(InputError, match="--orders=cross: --model_dir=lm is a prefix_lm, which"):
        curve._check_texts()


@pytest.mark.parametrize("change, advice", [
    ({"prune_percent": ["1"]}, "give a larger --prune_percent"),
    ({"prune_percent": ["49"], "parts": "layers"}, "give a larger --prune_percent"),
    ({"prune_heads": ["dead"]}, "no gate of the model is closed; fine-tune it longer")])
def test_nothing_to_remove_is_told_before_the_model_is_scored(
        model, tmp_path, monkeypatch, change, advice):
    monkeypatch.setattr(ScoredSplit, "answer", None)
    with pytest.raises(InputError, match=f"nothing is switched off, .*; {advice}"):
        prune.main(*flags(model, tmp_path / "out", actually_prune=True, **change))


def test_flags_that_make_no_sense():
    for change, message in (({"orders": ["size"]}, "--orders=size"),
                            ({"orders": ["importance"], "parts": "layers"}, "choose from oracle"),
                            ({"prune_percent": ["120"]}, "0 to 100"),
                            ({"prune_heads": ["1:1"], "orders": ["oracle"]}, "no --orders with"),
                            ({"prune_heads": ["1:1"], "at_least_x_heads_per_layer": 1},
                             "--at_least_x_heads_per_layer is for --orders"),
                            ({"prune_heads": ["1:1"], "importance": "code"}, "no --importance")):
        with pytest.raises(InputError, match=message):
            flags("model", "out", **change)


def test_a_model_is_scored_as_it_was_trained(model, tmp_path):
    task_flags, job = flags(model, tmp_path / "out")
    for name, value in (("long_text", "mean"), ("label_scale", 2.0)):
        with pytest.raises(InputError, match=f"--{name} stays as in the training"):
            Curve(job, dataclasses.replace(task_flags, **{name: value}))
