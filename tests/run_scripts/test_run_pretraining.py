"""Pre-training from the command line: going on, phases, workers, and what is refused."""

import functools
import os
import shutil
import signal
import socket
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints
from bert_tf.checkpoints import checksummed
from bert_tf.data.records import tfrecord
from bert_tf.training import resume
from bert_tf.training.reporting import read_metrics
from bert_tf.training.settings import TrainSettings
from bert_tf.training.train import save_model
from run_scripts import run_pretraining
from tests import processes, programs
from tests.rounding import assert_same
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
SCRIPT = "run_scripts.run_pretraining"
GOOGLE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden", "google_gelu")
# Records of two lengths; the model fits both.
SHORT = {"max_seq_length": 16, "max_predictions_per_seq": 3}
LONG = {"max_seq_length": 32, "max_predictions_per_seq": 5}


def config_of(dropout=0.0, **overrides):
    """One layer; fits the longest records."""
    return tiny.config(dropout, max_position_embeddings=32, num_hidden_layers=1, **overrides)


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretraining")
    for name, dropout in (("config", 0.1), ("plain", 0.0)):
        config_of(dropout).to_json_file(folder / f"{name}.json")
    tiny.write_records(folder / "short.tfrecord", 40)
    tiny.write_records(folder / "long.tfrecord", 24, seed=3, length=32, predictions=5)
    return folder


def flags_of(folder, output_dir, **changes):
    """The flags of a run of 8 steps with a checkpoint every 2, changed by keywords. Records have
    rows of their own, which take less time to make."""
    return {"bert_config_file": str(folder / "config.json"),
            "input_file": [str(folder / "short.tfrecord")], **SHORT,
            "output_dir": str(output_dir), "train_batch_size": 8, "num_train_steps": 8,
            "num_warmup_steps": 2, "save_checkpoints_steps": 2, "iterations_per_loop": 2,
            "learning_rate": 1e-2, "random_seed": 0, "pack": False, **changes}


@pytest.fixture(name="flags")
def fixture_flags(folder, tmp_path):
    """`flags_of` the test's own output folder."""
    return functools.partial(flags_of, folder, output_dir=tmp_path / "out")


def main(flags):
    """The script, in this process."""
    run_pretraining.main(*programs.share_out(
        flags, run_pretraining.PretrainingFlags, TrainSettings))


@pytest.fixture(name="stopped_run", scope="module")
def fixture_stopped_run(folder):
    main(flags_of(folder, folder / "stopped", do_train=True, stop_at_step=4))
    return folder / "stopped"


@pytest.fixture(name="stopped")
def fixture_stopped(stopped_run, tmp_path, capsys):
    """A copy of that folder, in the place of the output folder of `flags`."""
    shutil.copytree(stopped_run, tmp_path / "out")
    capsys.readouterr()
    return tmp_path / "out"


def start(flags, before="", **options):
    return processes.start_command(SCRIPT, flags, before, **options)


def latest(folder):
    return resume.checkpoints(str(folder))[-1]


def step_of(path):
    return int(checksummed.read(path)[0]["trainer/step"])


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def listing(folder):
    return {path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


# Going on

# What a process does first that gets a signal in the second writing of a checkpoint.
SIGNALLED = """
import os
from bert_tf.checkpoints import checksummed
write, count = checksummed.write, iter(range(1000))
def write_and_signal(*args):
    if next(count) == 1:
        os.kill(os.getpid(), {})
    write(*args)
checksummed.write = write_and_signal
"""


def test_a_killed_and_stopped_run_ends_with_the_same_bytes(as_in_programs, flags, tmp_path, capsys):
    names = "whole", "broken"
    command = {name: flags(do_train=True, output_dir=str(tmp_path / name), num_train_steps=140,
                           save_checkpoints_steps=20, iterations_per_loop=5, pack=True)
               for name in names}
    # The number of threads changes no bit either; 0 is TensorFlow's own choice.
    options = {"optimized": True, "TF_NUM_INTRAOP_THREADS": "0", "TF_NUM_INTEROP_THREADS": "0"}
    start(command["broken"], SIGNALLED.format(9), **options).finish(-signal.SIGKILL)
    before = step_of(latest(tmp_path / "broken"))
    # Within one call of TensorFlow, which would take all steps to the next checkpoint.
    long = {**command["broken"], "iterations_per_loop": 100_000}
    said = start(long, SIGNALLED.format(15), **options).finish(143)
    step = step_of(latest(tmp_path / "broken"))
    assert 20 <= before < step < 140
    assert f"stopped by a signal at step {step}, which is saved" in said and "\nerror:" not in said
    main(command["broken"])
    assert f"resuming at step {step}" in capsys.readouterr().out
    main(command["whole"])
    assert {"--do_train", "--num_train_steps=140", f"--output_dir={tmp_path}/broken"} <= set(
        (tmp_path / "broken/flags.txt").read_text(encoding="utf-8").splitlines())
    assert read_bytes(latest(tmp_path / "broken")) == read_bytes(latest(tmp_path / "whole"))
    lines = {name: read_metrics(tmp_path / name, "train") for name in names}
    steps = [line["step"] for line in lines["broken"]]
    assert len(set(steps)) == len(steps) and steps[-1] == 140
    # The same numbers, but for the clock's.
    kept = ("step", "loss", "grad_norm", "learning_rate", "masked_lm/accuracy")
    # But for means over the steps up to the signal, and over those after it.
    others = {at for at in steps if at % 5 or step <= at < step + 5 or before < at <= step}
    broken, expected = ([{key: line[key] for key in kept} for line in lines[name]
                         if line["step"] not in others] for name in ("broken", "whole"))
    assert broken == [line for line in expected if line["step"] in steps] and len(broken) > 10


def test_a_finished_run_writes_its_results_again_and_no_more(flags, tmp_path, capsys):
    command = flags(do_train=True, do_eval=True, num_train_steps=2)
    main(command)
    before = listing(tmp_path / "out")
    capsys.readouterr()
    main(command)
    after = listing(tmp_path / "out")
    assert "step 2 is reached already" in capsys.readouterr().out
    written = {path.name for path in after if before.get(path) != after[path]}
    assert {name for name in written if "tfevents" not in name} <= {"model.keras"}
    assert [line["step"] for line in read_metrics(tmp_path / "out", "eval")] == [2]


@pytest.mark.parametrize("changes, phrases", [
    ({"learning_rate": 1e-3, "random_seed": 5, "optimizer": "bert_adamw", "weight_decay": 0.1,
      "train_batch_size": 4, "num_train_steps": 6, "bert_config_file": "plain.json"},
     ["learning_rate (0.01, now 0.001)", "random_seed (0, now 5)",
      "optimizer (adamw, now bert_adamw)", "weight_decay (default, now 0.1)",
      "train_batch_size (8, now 4)", "num_train_steps (8, now 6)",
      "bert_config_file (hidden_dropout_prob 0.1, now 0.0"]),
    # What changes no weight is nobody's business.
    ({"eval_steps": 2, "keep_checkpoint_max": 2, "eval_batch_size": 4}, [])])
def test_another_recipe_is_reported_and_goes_on(flags, folder, stopped, capsys, changes, phrases):
    if "bert_config_file" in changes:
        changes = {**changes, "bert_config_file": str(folder / changes["bert_config_file"])}
    main(flags(do_train=True, stop_at_step=6, **changes))
    said = [line for line in capsys.readouterr().out.splitlines() if "with another" in line]
    assert len(said) == bool(phrases) and all(f"--{phrase}" in said[0] for phrase in phrases), said
    assert int(checksummed.read(latest(stopped))[0]["trainer/step"]) == 6


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"layer_norm_eps": 1e-5}])
def test_another_network_is_refused(flags, stopped, tmp_path, change):
    other = str(tmp_path / "other.json")
    config_of(0.1, **change).to_json_file(other)
    before = listing(tmp_path)
    (name,) = change
    parts = latest(tmp_path / "out"), "another network", f"--bert_config_file ({name} "
    refusal(flags(do_train=True, bert_config_file=other), *parts)
    assert listing(tmp_path) == before
    refusal(flags(do_train=True, bert_config_file=other, output_dir=str(tmp_path / "new"),
                  init_checkpoint=str(tmp_path / "out")), *parts)


def test_another_type_of_computation_has_its_own_loss_scale(flags, tmp_path):
    def loss_scale():
        return float(checksummed.read(latest(tmp_path / "out"))[0]["trainer/loss_scale"])

    for step, dtype, scale in ((1, "float16", 2.0**15), (2, "float32", 1.0),
                               (3, "float16", 2.0**15)):
        main(flags(do_train=True, dtype=dtype, stop_at_step=step))
        assert loss_scale() == scale


def test_a_second_command_at_once_is_refused(flags, hold, tmp_path):
    (tmp_path / "out").mkdir()
    first = hold(tmp_path / "out")
    refusal(flags(do_train=True),
            f"--output_dir: process {first.pid} on {socket.gethostname()} is at work")
    first.communicate()
    assert not os.listdir(tmp_path / "out")


def test_a_folder_with_the_name_of_a_checkpoint_is_refused(flags, tmp_path):
    path = tmp_path / "out" / "checkpoint-000000002.safetensors"
    path.mkdir(parents=True)
    refusal(flags(do_train=True), path, "not a file")


def test_a_run_may_go_on_from_its_own_checkpoint(flags, stopped):
    main(flags(do_train=True, stop_at_step=6, init_checkpoint=latest(stopped)))
    assert [line["step"] for line in read_metrics(stopped, "train")][-1] == 6


def test_damaged_curves_do_not_stop_a_run(flags, stopped, capsys):
    path = stopped / "metrics.jsonl"
    path.write_bytes(path.read_bytes().replace(b"loss", b"lo\xffs", 1))
    main(flags(do_train=True, stop_at_step=6))
    assert f"warning: {path}, line 1 is damaged" in capsys.readouterr().out
    assert [line["step"] for line in read_metrics(stopped, "train")] == [4, 6]


# Phases and initial weights

def test_two_phases_in_one_folder_or_two(flags, folder, tmp_path):
    second = {**LONG, "input_file": [str(folder / "long.tfrecord")], "train_batch_size": 4}
    flags = functools.partial(flags, num_train_steps=4)
    main(flags(do_train=True, stop_at_step=2))
    tensors, extra = checksummed.read(latest(tmp_path / "out"))
    assert (int(tensors["trainer/step"]), extra["taken"]) == (2, 16)
    main(flags(do_train=True, init_checkpoint=str(tmp_path / "out"), carry_optimizer=True,
               output_dir=str(tmp_path / "other"), **second))
    main(flags(do_train=True, **second))
    tensors, extra = checksummed.read(latest(tmp_path / "out"))
    assert (int(tensors["trainer/step"]), extra["taken"]) == (4, 8)
    assert int(tensors["optimizer/adamw/iteration"]) == 4
    others, of_other = checksummed.read(latest(tmp_path / "other"))
    assert_same(others, tensors)
    assert {**of_other, "init_checkpoint": ""} == extra


def test_a_run_at_a_stable_rate_can_be_made_longer(flags, tmp_path, capsys):
    """Without a trace of the end that it had before, also in the state of the optimizer."""
    flags = functools.partial(flags, do_train=True, learning_rate_schedule="warmup_stable_decay",
                              num_decay_steps=1, optimizer="stable_adamw", weight_decay=1e-2)
    main(flags(num_train_steps=3, stop_at_step=2))
    capsys.readouterr()
    main(flags(num_train_steps=4))
    assert "resuming with another --num_train_steps (3, now 4)" in capsys.readouterr().out
    main(flags(num_train_steps=4, output_dir=str(tmp_path / "other")))
    assert read_bytes(latest(tmp_path / "out")) == read_bytes(latest(tmp_path / "other"))


def test_a_run_that_is_resumed_says_what_it_began_with(flags, stopped, tmp_path, capsys):
    card = stopped / "README.md"
    main(flags(do_train=True, init_checkpoint="elsewhere", stop_at_step=5))
    said = "--init_checkpoint=elsewhere is not used: this run began with "
    assert said + "random weights" in capsys.readouterr().out
    assert "It began with" not in card.read_text()
    # One that began with a checkpoint; the next checkpoints keep its name.
    first = flags(do_train=True, output_dir=str(tmp_path / "next"), num_train_steps=3,
                  save_checkpoints_steps=1)
    main({**first, "init_checkpoint": str(stopped), "stop_at_step": 1})
    for step, given in ((2, "elsewhere"), (3, os.path.relpath(stopped))):
        capsys.readouterr()
        main({**first, "init_checkpoint": given, "stop_at_step": step})
        out = capsys.readouterr().out
        assert (said + str(stopped) in out) == ("is not used" in out) == (given == "elsewhere")
        assert f"weights of `{stopped.name}`" in (tmp_path / "next" / "README.md").read_text()


def test_initial_weights_of_google(flags, tmp_path, capsys):
    config = checkpoints.read_config(GOOGLE)
    records = tmp_path / "google.tfrecord"
    tiny.write_records(records, 16, vocab=config.vocab_size)
    still = flags(do_train=True, input_file=[str(records)], num_train_steps=2, learning_rate=0.0,
                  bert_config_file=os.path.join(GOOGLE, "bert_config.json"))
    main({**still, "init_checkpoint": GOOGLE})
    found = checksummed.read(latest(tmp_path / "out"))[0]
    reader = tf.train.load_checkpoint(os.path.join(GOOGLE, "bert_model.ckpt"))
    for name in ("bert/embeddings/word_embeddings", "bert/pooler/dense/kernel"):
        assert np.array_equal(found[f"learner/{name}"], reader.get_tensor(name))
    main({**still, "init_checkpoint": GOOGLE, "output_dir": str(tmp_path / "evaluated"),
          "do_train": False, "do_eval": True})
    assert "global_step = 0\n" in (tmp_path / "evaluated" / "eval_results.txt").read_text()
    assert "\nrecords at step 0: loss" in capsys.readouterr().out     # nothing is trained on them


# Evaluation and reports

def test_evaluation_alone_is_of_the_latest_checkpoint(flags, folder, tmp_path):
    curves = flags(do_train=True, do_eval=True, num_train_steps=2, eval_steps=1,
                   save_checkpoints_steps=1,
                   eval_input_file=[str(folder / "short.tfrecord")])
    main(curves)
    lines = read_metrics(tmp_path / "out", "eval")
    assert [line["step"] for line in lines] == [1, 2]
    results = tmp_path / "out" / "eval_results.txt"
    expected = results.read_text()
    assert "global_step = 2\n" in expected and f"loss = {lines[1]['loss']}\n" in expected
    results.unlink()
    main({**curves, "do_train": False})
    assert results.read_text() == expected
    assert read_metrics(tmp_path / "out", "eval") == lines
    train = read_metrics(tmp_path / "out", "train")
    assert [line["step"] for line in train] == [1, 2]
    assert {"loss", "masked_lm/loss", "masked_lm/accuracy", "next_sentence/loss", "step",
            "next_sentence/accuracy", "learning_rate", "grad_norm", "sequences_per_second",
            "seconds_left", "kind"} == set(train[0])
    for kind, wanted in (("train", train), ("eval", lines)):
        events = tmp_path / "out" / "tensorboard" / kind
        found = {(event.step, value.tag): tf.make_ndarray(value.tensor).item()
                 for path in events.iterdir()
                 for event in tf.compat.v1.train.summary_iterator(str(path))
                 for value in event.summary.value}
        assert found == pytest.approx({(line["step"], tag): value for line in wanted
                                       for tag, value in line.items()
                                       if tag not in ("kind", "step")})


# Workers

def test_two_workers_equal_one_device_and_go_on(flags, folder, tmp_path):
    """On one machine, too, where each worker has read its own share of the files."""
    paths = [tmp_path / f"{seed}.tfrecord" for seed in range(4)]
    for seed, path in enumerate(paths):
        tiny.write_records(path, 20, seed)
    command = flags(do_train=True, do_eval=True, num_train_steps=3, input_file=[*map(str, paths)],
                    bert_config_file=str(folder / "plain.json"), save_checkpoints_steps=1,
                    num_warmup_steps=0)
    shared = {**command, "output_dir": str(tmp_path / "workers")}
    main({**shared, "file_shares": 2, "stop_at_step": 1})
    said = processes.finish_workers(processes.start_workers(
        SCRIPT, [{**shared, "stop_at_step": 2}] * 2))
    assert all("resuming at step 1" in text for text in said)
    assert ["wrote " in text for text in said] == [True, False]     # the chief alone
    assert checksummed.read(latest(tmp_path / "workers"))[1]["order"]["shares"] == 2
    main(shared)
    main({**command, "file_shares": 2})
    one, two = (checksummed.read(latest(tmp_path / name))[0] for name in ("out", "workers"))
    assert one.keys() == two.keys()
    assert tiny.largest_difference(one, two) < 1e-6
    for kind in ("train", "eval"):
        assert [line["step"] for line in read_metrics(tmp_path / "workers", kind)] == [1, 2, 3]


def test_when_a_worker_is_told_to_stop_all_do(flags, tmp_path):
    command = flags(do_train=True, num_train_steps=100_000, iterations_per_loop=1)
    workers = processes.start_workers(SCRIPT, [command] * 2, eagerly=True)
    # After its second checkpoint has begun, of one every other report, the first one is written.
    workers[1].wait_for("step ", 5).send(signal.SIGTERM)
    for said in processes.finish_workers(workers, 143):
        assert "stopped by a signal at step" in said and "\nerror:" not in said
    checksummed.read(latest(tmp_path / "out"))


# Refusals

def refusal(flags, *parts):
    with programs.refused(*parts):
        main(flags)


def test_a_loss_that_is_not_finite_keeps_the_last_good_checkpoint(flags, stopped):
    good = read_bytes(latest(stopped))
    refusal(flags(do_train=True, learning_rate=1e36, save_checkpoints_steps=100,
                  iterations_per_loop=100), "step 6 is not a finite number", "--learning_rate")
    assert read_bytes(latest(stopped)) == good
    assert [line["step"] for line in read_metrics(stopped, "train")] == [2, 4]
    main(flags(do_train=True, stop_at_step=6))


def spoil(path, changed, at):
    """Copies a file with one bit flipped."""
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    changed.write_bytes(data)


@pytest.mark.parametrize("is_readable", [False, True])
def test_a_bad_record_met_while_training_is_named(flags, tmp_path, is_readable):
    path = tmp_path / "bad.tfrecord"
    features = tiny.write_records(path, 40)
    if is_readable:
        features["masked_lm_positions"][33, 0] = 99     # outside the sequence
    frames = list(map(tfrecord.frame, tfrecord.serialize_examples(features)))
    path.write_bytes(b"".join(frames))
    if not is_readable:
        spoil(path, path, sum(map(len, frames[:33])) + 60)
    refusal(flags(do_train=True, input_file=[str(path)], num_train_steps=50), f"{path}: record 33 ")
    for checkpoint in resume.checkpoints(str(tmp_path / "out")):
        checksummed.read(checkpoint)


@pytest.mark.parametrize("changes, parts", [
    ({"do_train": False}, ["--do_train", "--do_eval"]),
    ({"do_train": False, "do_eval": True}, ["--output_dir holds no checkpoint"]),
    ({"input_file": ["absent*"]}, ["--input_file", "no file matches 'absent*'"]),
    ({"do_eval": True, "eval_input_file": ["absent*"]}, ["--eval_input_file", "no file matches"]),
    ({"input_file": ["empty"]}, ["--input_file", "no records", "empty"]),
    ({"input_file": ["cut"]}, ["cut: record 39 is truncated"]),
    ({"input_file": ["flipped"]}, ["flipped: record 0 is damaged"]),
    ({"bert_config_file": "absent.json"}, ["absent.json"]),
    ({"bert_config_file": "small_vocab.json"}, ["short.tfrecord: record 0 has", "below 20"]),
    ({"max_seq_length": 64}, ["--max_seq_length (64)", "max_position_embeddings (32)"]),
    ({"max_seq_length": 20}, ["--max_seq_length is 20", "16", "short.tfrecord"]),
    ({"max_predictions_per_seq": 4}, ["--max_predictions_per_seq is 4", "short.tfrecord"]),
    ({"output_dir": "short.tfrecord"}, ["--output_dir", "short.tfrecord"]),
    ({"output_dir": "short.tfrecord/out"}, ["--output_dir", "short.tfrecord/out"]),
    ({"gradient_accumulation_steps": 3}, ["--train_batch_size (8)", "(3)"]),
    ({"init_checkpoint": "absent"}, ["absent"]),
    ({"init_checkpoint": "out/model.keras"}, ["--output_dir is the folder of --init_checkpoint"]),
    ({"input_file": ["bad*"]}, ["--input_file", r"bad\udcff", "is not UTF-8"]),
    ({"init_checkpoint": GOOGLE}, [GOOGLE, "num_attention_heads"]),
    ({"carry_optimizer": True}, ["--carry_optimizer", "not none"]),
    ({"carry_optimizer": True, "init_checkpoint": GOOGLE}, ["--carry_optimizer", GOOGLE]),
    ({"distribution_strategy": "multi_worker"}, ["TF_CONFIG"]),
    ({"num_train_steps": 0}, ["--num_train_steps is 0"]),
    ({"learning_rate": float("inf")}, ["--learning_rate is inf; it must be a finite number"]),
    ({"num_warmup_steps": 9}, ["--num_warmup_steps (9)"]),
    ({"learning_rate_schedule": "one_minus_sqrt", "num_decay_steps": 7},
     ["--num_warmup_steps (2) and --num_decay_steps (7) are together more than the steps"]),
    ({"random_seed": 2**31}, ["from 0 to 2147483647"])])
def test_bad_input_is_refused_before_work_starts(
        flags, folder, tmp_path, monkeypatch, changes, parts):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    records = tmp_path / "short.tfrecord"
    records.write_bytes((folder / "short.tfrecord").read_bytes())
    (tmp_path / "cut").write_bytes(records.read_bytes()[:-5])
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / os.fsdecode(b"bad\xff")).write_bytes(records.read_bytes())
    spoil(records, tmp_path / "flipped", 40)
    config_of(vocab_size=20).to_json_file("small_vocab.json")
    before = listing(tmp_path)
    refusal(flags(**{"do_train": True, "input_file": ["short.tfrecord"], **changes}), *parts)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("arguments, message", [
    (["--input_file=x", "--output_dir=x", "--do_train"],
     "give either --bert_config_file (a configuration) or --model_size"),
    ([f"--input_file={__file__}", "--output_dir=x", "--do_train", "--model_size=tiny"],
     "is text, which is read with the tokenizer of --init_checkpoint"),
    (["--input_file=x", "--output_dir=x", "--model_size=base", "--mem_len=9"],
     "--input_file: no file matches 'x'; name a file, a folder that holds files, or a glob.")])
def test_arguments_that_cannot_be(arguments, message):
    assert message in programs.refusal("bert-run-pretraining", *arguments)


def test_a_run_begins_with_the_best_weights_of_one_that_stopped_early(tmp_path):
    """Not with those of its last checkpoint, whose optimizer alone can be carried on."""
    folder, trainer = str(tmp_path), tiny.trainer(layers=1)
    best = tiny.weights(trainer)
    save_model(folder, trainer.learner)
    checksummed.write(os.path.join(folder, checkpoints.names.BEST_FILE), best, {})
    for variable in trainer.learner.trainable_variables:
        variable.assign(variable + 1)
    last = tiny.weights(trainer)
    tiny.save_checkpoint(folder, trainer, {}, 5)
    for variable in trainer.learner.trainable_variables:
        variable.assign(variable + 1)
    run = types.SimpleNamespace(step=0, restore=lambda path: resume.restore(path, trainer))
    for carries, wanted in ((False, best), (True, last)):
        run_pretraining.initialize(run, trainer, run_pretraining.PretrainingFlags(
            do_train=True, init_checkpoint=folder, carry_optimizer=carries, input_file=["-"]),
            records=None)
        found = tiny.weights(trainer)
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
