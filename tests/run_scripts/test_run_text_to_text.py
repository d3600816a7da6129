"""Fine-tuning of T5 from files to scores and answers."""

import contextlib
import dataclasses
import functools
import io
import json
import random
import re
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf import flags
from bert_tf.checkpoints import checksummed
from bert_tf.config import EncoderConfig, T5Config
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.models.t5.finetuning import TextModelFlags
from bert_tf.models.t5.task_files import TextFlags
from bert_tf.networks import attentions
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training import resume
from bert_tf.training.settings import StepSettings
from run_scripts import finetune, prune
from run_scripts.analysis import heads
from tests import sentencepieces
from tests.rounding import assert_same

pytestmark = pytest.mark.usefixtures("all_eagerly")
PAIRS = {"color: the sky": "blue", "color: the grass": "green", "color: a rose": "deep red"}


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text_to_text")
    rng, words = random.Random(1), " ".join([*PAIRS, *PAIRS.values()]).split()
    (folder / "spiece.model").write_bytes(sentencepieces.train(
        [" ".join(rng.choices(words, k=9)) for _ in range(200)], 60, **sentencepieces.T5))
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS.items()))
    (folder / "inputs.tsv").write_text("".join(f"{text}\n" for text in PAIRS))
    T5Config(vocab_size=256, d_model=16, d_kv=8, d_ff=32, num_layers=1,
             num_heads=2).to_json_file(folder / "config.json")
    return folder


@pytest.fixture(name="run_into", scope="module")
def fixture_run_into(folder):
    """Function that runs the command with an output folder, which it returns."""
    def run(output, files=("train", "dev", "test"), **changes):
        given = {f"{split}_file": str(folder / ("inputs.tsv" if split == "test" else "pairs.tsv"))
                 for split in files}
        job = {"do_train": True, "do_eval": True, "bert_config_file": str(folder / "config.json"),
               "vocab_file": str(folder / "spiece.model"), "dropout_rate": 0.0,
               "max_seq_length": 16}
        settings = {"output_dir": str(output), "train_batch_size": 4,
                    "num_train_steps": 24, "iterations_per_loop": 12, "optimizer": "adafactor",
                    "save_checkpoints_steps": 20, "keep_checkpoint_max": 2, "learning_rate": 0.1,
                    "learning_rate_schedule": "rsqrt", "num_warmup_steps": 100,
                    "random_seed": 1}
        for name, value in changes.items():
            (given if hasattr(TextFlags, name) or name == "tasks" else
             settings if hasattr(StepSettings, name) else job)[name] = value
        finetune.main(TextFlags(**given), TextModelFlags(**job), StepSettings(**settings))
        return output
    return run


@pytest.fixture(name="run")
def fixture_run(run_into, tmp_path):
    """The same with a name of the folder in the test's own."""
    return lambda output="out", **changes: run_into(tmp_path / output, **changes)


@pytest.fixture(name="learned", scope="module")
def fixture_learned(run_into, folder):
    """The folder of a model that has learned the pairs, and what was printed."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        return run_into(folder / "learned", do_predict=True, eval_steps=12, early_stopping=2), said


def weights(folder):
    return checksummed.read(resume.checkpoints(str(folder))[-1])[0]


def test_a_task_is_learned_and_goes_on_after_a_stop(run, learned, tmp_path, capsys):
    whole, said = learned
    assert "of 24; the weights of step 24 are the best" in said.getvalue()
    metrics = json.loads((whole / "metrics.json").read_text())["metrics"]
    assert metrics == {"average": 100.0, "pairs/exact_match": 100.0}
    for split in ("dev", "test"):
        assert (whole / f"pairs_{split}_predictions.tsv").read_text().splitlines() == list(
            PAIRS.values())
    assert "fine-tuned for text to text (pairs)" in (whole / "README.md").read_text()
    predictor = bert_tf.Predictor(str(whole))
    assert predictor(list(PAIRS)) == [{"text": text} for text in PAIRS.values()]
    assert predictor("color: the sky") == {"text": "blue"}
    with pytest.raises(InputError, match="the example has 2 texts; give a text that begins"):
        predictor(("a", "b"))
    capsys.readouterr()
    (tmp_path / "parts").mkdir()        # as after a kill: the last checkpoint is gone
    shutil.copy(resume.checkpoints(str(whole))[0], tmp_path / "parts")
    parts = run("parts", do_eval=False, init_checkpoint=str(whole))
    out = capsys.readouterr().out
    assert f"--init_checkpoint={whole} is not used: this run began with random weights" in out
    assert "resuming at step 20" in out and "another --early_stopping (2, now 0)" in out
    assert_same(weights(parts), weights(whole))
    again = run("later", files=("dev",), do_train=False, init_checkpoint=str(whole),
                bert_config_file="", vocab_file="", max_seq_length=None, beams=2)
    assert json.loads((again / "metrics.json").read_text())["metrics"]["average"] == 100.0


def test_a_folder_of_another_run_is_left_as_it_is(run, folder, learned, tmp_path, monkeypatch):
    whole, _ = learned
    monkeypatch.setattr(flags, "keep", lambda _, folder, **options: write_json(
        f"{folder}/flags.txt", []))
    begun = shutil.copytree(whole, tmp_path / "begun")
    (tmp_path / "more.tsv").write_text((folder / "pairs.tsv").read_text() + "color: snow\twhite\n")
    before = files_of(begun)
    with pytest.raises(InputError, match="holds a run with another .*--examples"):
        run("begun", files=("dev",), train_file=str(tmp_path / "more.tsv"))
    assert files_of(begun) == before
    other = tmp_path / "other"
    other.mkdir()
    SavedTask(Task("own", "classification", {}, ("no", "yes")), 16, True, {}).write(str(other))
    before = files_of(other)
    with pytest.raises(InputError, match="other holds another model, for classification"):
        run("other")
    assert files_of(other) == before


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_stop_before_the_first_evaluation_is_no_error(run, capsys):
    run(eval_steps=12, early_stopping=2, stop_at_step=1)
    assert "stopped at --stop_at_step=1" in capsys.readouterr().out


def test_a_run_that_was_begun_without_early_stopping_goes_on_with_it(run, capsys):
    run(stop_at_step=2, do_eval=False)
    folder = run(stop_at_step=3, eval_steps=1, early_stopping=2)
    said = capsys.readouterr().out
    assert "resuming at step 2" in said and "another --early_stopping (0, now 2)" in said
    assert "ended at step 3 of 24; the weights of step 3 are the best" in said
    (folder / "best.safetensors").unlink()
    with pytest.raises(InputError, match="best.safetensors is not there, .* Put the file back"):
        run(stop_at_step=4, eval_steps=2, early_stopping=2)


def test_a_flag_that_changes_nothing_is_refused(run):
    with pytest.raises(InputError, match="--alpha.* is for beam search"):
        run(alpha=0.8)


def test_the_folder_gives_the_best_weights_not_the_last(run):
    """Two evaluations score 0, so the first one's weights are the best; training goes on."""
    folder = run(num_train_steps=2, iterations_per_loop=1, eval_steps=1, early_stopping=2)
    best, last = checksummed.read(str(folder / "best.safetensors"))[0], weights(folder)
    assert any((best[name] != last[f"learner/{name}"]).any() for name in best)
    network = bert_tf.T5.from_pretrained(str(folder))
    assert all(np.array_equal(best[variable.path], variable) for variable in network.weights
               if variable.path in best)


def test_the_averages_that_are_saved_write_the_texts(run, monkeypatch):
    seen = []

    def writer(learner, *_):
        return lambda texts: seen.append(learner.get_weights()) or [{"text": ""}] * len(texts)

    monkeypatch.setattr(bert_tf.Predictor, "from_learner", writer)
    folder = run(optimizer="averaged_adam", num_train_steps=2, learning_rate=0.01,
                 learning_rate_schedule="constant", num_warmup_steps=0)
    saved = bert_tf.open_model(folder, finetuned=True).learner().get_weights()
    assert seen and all(map(np.array_equal, seen[-1], saved))


def test_the_score_without_each_head(learned, folder, tmp_path):
    """Each score is the one that the model has whose output projection lacks the head's rows."""
    model, pairs = learned[0], str(folder / "pairs.tsv")
    files = TaskFlags(train_file=pairs, dev_file=pairs)
    heads.main(files, heads.HeadsFlags(model_dir=str(model), form="zero",
                                       output_dir=str(tmp_path / "heads")))
    found = json.loads((tmp_path / "heads" / "heads.json").read_text())
    assert found["layers"] == ["encoder 1", "cross 1", "decoder 1"]
    assert found["metric"] == "exact_match" and found["score"] == 100
    learner = bert_tf.open_model(model, finetuned=True).learner()
    predictor = bert_tf.Predictor(str(model))
    for row, layer in enumerate(attentions(learner.encoder).values()):
        whole, head = layer.output_.kernel.numpy(), row % 2
        layer.output_.kernel.assign(whole * (np.arange(16) // 8 != head)[:, None])
        texts = bert_tf.Predictor.from_learner(
            learner, predictor._tokenizer, predictor.saved_task)(list(PAIRS))
        right = np.mean([text["text"] == wanted for text, wanted in zip(texts, PAIRS.values())])
        assert found["without_head"][row][head] == pytest.approx(100 * right)
        layer.output_.kernel.assign(whole)
    job = functools.partial(prune.PruneFlags, model_dir=str(model),
                            output_dir=str(tmp_path / "prune"), prune_percent=["50", "100"])
    prune.main(files, job(orders=["importance", "cross"]))
    curves = json.loads((tmp_path / "prune" / "prune.json").read_text())["curves"]
    assert [point["off"] for point in curves["importance"]] == [3, 6]
    assert [point["parts"] for point in curves["cross"]][-1] in ([[1, 0], [1, 1]], [[1, 1], [1, 0]])
    assert curves["cross"][1]["score"] == found["without_layer"][1]
    for change, part in (({"parts": "units"}, "heads can only be switched off"),
                         ({"importance": "code"}, "--importance=code is for models with")):
        with pytest.raises(InputError, match=part):
            prune.main(files, job(**change))
    with pytest.raises(InputError, match="--header is not for a model of texts"):
        prune.main(dataclasses.replace(files, header=False), job())
    with pytest.raises(InputError, match="give --form=zero"):
        heads.main(files, heads.HeadsFlags(model_dir=str(model),
                                           output_dir=str(tmp_path / "heads")))


def test_labels_that_become_the_same_tokens_are_refused(run, tmp_path, capsys):
    for labels, changes, part in (
            (("青", "緑"), {}, "labels '緑' and '青' are the same tokens, ▁ <unk>, so no model"),
            (("blue green", "blue deep"), {"max_target_length": 2},
             "'blue deep' and 'blue green' are the same in their first tokens; raise")):
        path = tmp_path / "labels.tsv"
        path.write_text("".join(f"color: {number}\t{label}\n" for number in range(40)
                                for label in labels), encoding="utf-8")
        with pytest.raises(InputError, match=re.escape(part)):
            run("refused", files=(), train_file=str(path), do_eval=False, **changes)
        said = capsys.readouterr().err
        assert ("lacks characters of '緑', '青', so no model" in said) != bool(changes)
    assert not (tmp_path / "refused").exists()


def test_what_cannot_work_is_refused(run, folder, tmp_path):
    EncoderConfig.preset("tiny", vocab_size=60).to_json_file(tmp_path / "bert.json")
    (tmp_path / "vocab.txt").write_text("\n".join(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(251))]) + "\n")
    for changes, part in (
            ({"bert_config_file": str(tmp_path / "bert.json")}, "has no decoder"),
            ({"bert_config_file": ""}, "--init_checkpoint must be given"),
            ({"vocab_file": ""}, "--vocab_file must be given"),
            ({"vocab_file": str(tmp_path / "vocab.txt")}, "wordpiece, which can't turn tokens"),
            ({"do_train": False}, "there is no model.keras"),
            ({"dropout_rate": 1.0}, "--dropout_rate is 1.0"),
            ({"beams": 0}, "--beams is 0"),
            ({"early_stopping": 2}, "--early_stopping chooses by the score"),
            ({"do_train": False, "do_eval": False}, "give --do_train, --do_eval")):
        with pytest.raises(InputError, match=part):
            run("refused", **changes)
    assert not (tmp_path / "refused").exists()
