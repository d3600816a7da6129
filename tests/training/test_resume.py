"""Checkpoints: nothing is lost, nothing damaged is accepted."""

import errno
import io
import os
import random
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from bert_tf import checkpoints
from bert_tf.checkpoints import checksummed
from bert_tf.config import XLNetConfig
from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.errors import DivergedError, InputError
from bert_tf.files import ASIDE, writing
from bert_tf.files.reading import upload_place
from bert_tf.models.xlnet.network import XLNet
from bert_tf.models.xlnet.objective import StreamLM
from bert_tf.recipes.distillation import find_distillation
from bert_tf.signals import FirstSignal
from bert_tf.training import resume
from bert_tf.training import train as train_module
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import make_optimizer
from bert_tf.training.settings import FineTuneSettings, TrainSettings
from bert_tf.training.train import Run
from bert_tf.training.trainer import Trainer
from tests.processes import full_disk
from tests.rounding import assert_same
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
BATCH = 8
# JSON that the checkpoints carry.
EXTRA = {"taken": 7}


@pytest.fixture(name="trained", scope="module")
def fixture_trained(records):
    """A trainer after two steps, in float16, so that all of its state has moved."""
    trainer = tiny.trainer(dtype="mixed_float16")
    trainer.train(iter(trainer.distribute(lambda *_: records.training_batches(3, 0, BATCH, 1))), 2)
    trainer.loss_scale.assign(2.0**10)
    return trainer


def state(trainer):
    """Every variable's value, by a name."""
    return {name: v.numpy() for name, v in resume.variables(trainer).items()}


@pytest.fixture(name="path", scope="module")
def fixture_path(trained, tmp_path_factory):
    return tiny.save_checkpoint(tmp_path_factory.mktemp("run"), trained, EXTRA, 5)


def test_all_state_comes_back_to_the_last_bit(trained, path):
    fresh = tiny.trainer(dtype="mixed_float16")
    with pytest.raises(AssertionError):
        assert_same(state(fresh), state(trained))
    assert len(state(fresh)) == 4 + len(fresh.learner.weights) + len(fresh.optimizer.variables)
    assert resume.restore(path, fresh) == EXTRA
    assert_same(state(fresh), state(trained))
    assert (int(fresh.step), float(fresh.loss_scale), int(fresh.finite_steps)) == (2, 2.0**10, 2)
    assert int(fresh.optimizer.iterations.numpy()) == 2


def test_weights_alone(trained, path):
    fresh = tiny.trainer()
    resume.restore(path, fresh, weights_only=True)
    assert_same(tiny.weights(fresh), tiny.weights(trained))
    assert int(fresh.step) == int(fresh.optimizer.iterations.numpy()) == 0
    assert not any(np.any(v.numpy()) for v in fresh.optimizer._momentums)


@pytest.mark.parametrize("optimizer, options", [
    ("averaged_adam", {}), ("adamw", {"average": "ema"})])
def test_averages_in_place_of_weights(optimizer, options, records, tmp_path):
    plain = tiny.trainer()
    trained = Trainer(plain.learner, make_optimizer(optimizer, 0.1, **options), plain.strategy,
                      batch_size=BATCH)
    begun = tiny.save_checkpoint(tmp_path, trained, EXTRA, 5)
    before = tiny.weights(trained)
    trained.train(iter(trained.distribute(lambda *_: records.training_batches(3, 0, BATCH, 1))), 2)
    path, raw = tiny.save_checkpoint(tmp_path, trained, EXTRA, 5), tiny.weights(trained)
    with trained.averaged():
        wanted = tiny.weights(trained)
    with pytest.raises(AssertionError):
        assert_same(wanted, raw)
    fresh = tiny.trainer()
    for file, averaged, expected in ((path, True, wanted), (path, False, raw),
                                     (begun, True, before)):        # no step, no averages
        resume.restore(file, fresh, weights_only=True, averaged=averaged)
        assert_same(tiny.weights(fresh), expected)
    for file, expected in ((path, wanted), (begun, before)):    # of other commands
        checkpoints.load(file, fresh.learner)
        assert_same(tiny.weights(fresh), expected)


def test_weights_are_for_any_memory_but_a_run_keeps_its_own(tmp_path):
    def trainer(**memory):
        sizes = XLNetConfig(vocab_size=9, d_model=4, n_layer=1, n_head=1, d_head=4, d_inner=4,
                            **memory)
        return Trainer(Learner(XLNet(sizes), [StreamLM(sizes)]), make_optimizer("adamw", 0.1),
                       tf.distribute.get_strategy(), batch_size=1)

    trained = trainer(mem_len=4)
    path = tiny.save_checkpoint(tmp_path, trained, {"run": trained.learner.describe()}, 1)
    for memory in ({"mem_len": 8}, {"mem_len": 0}, {"mem_len": 4, "clamp_len": 3, "reuse_len": 2}):
        other = trainer(**memory)
        resume.restore(path, other, weights_only=True)
        assert_same(tiny.weights(other), tiny.weights(trained))
        with pytest.raises(InputError, match="another network, with another --bert_config_file"):
            resume.restore(path, other)
    with pytest.raises(InputError, match="untie_r True, now False"):
        resume.restore(path, trainer(mem_len=8, untie_r=False), weights_only=True)


def test_who_may_read_other_files_may_read_checkpoints(tmp_path):
    (tmp_path / "other").write_text("")
    checksummed.write(str(tmp_path / "new"), {"a": np.zeros(3)}, None)
    assert os.stat(tmp_path / "new").st_mode == os.stat(tmp_path / "other").st_mode


def test_the_last_ones_are_kept(tmp_path):
    trainer = tiny.trainer()
    for step in (8, 9, 10, 11):
        trainer.step.assign(step)
        tiny.save_checkpoint(tmp_path, trainer, EXTRA, 3)
    (tmp_path / "checkpoint-old.safetensors").write_bytes(b"")
    assert resume.checkpoints(tmp_path) == [
        str(tmp_path / f"checkpoint-{step:09d}.safetensors") for step in (9, 10, 11)]
    assert sorted(os.listdir(tmp_path))[-1] == "checkpoint-old.safetensors"


def test_a_new_checkpoint_outlives_damaged_ones_of_later_steps(tmp_path):
    trainer = tiny.trainer()
    for step in (4, 7, 5):      # the run resumes from 4, since 7 is damaged
        trainer.step.assign(step)
        tiny.save_checkpoint(tmp_path, trainer, EXTRA, 1)
        if step == 7:
            tiny.save_checkpoint(tmp_path, trainer, EXTRA, 1)
            damage(tmp_path / "checkpoint-000000007.safetensors")
    assert [path[-21:-12] for path in resume.checkpoints(tmp_path)] == ["000000005", "000000007"]


@pytest.mark.parametrize("store", ["", "memory://resume"])
def test_what_a_kill_left_of_a_step_that_is_not_saved_again_goes(store, tmp_path, monkeypatch):
    """A signal came at step 5, and the machine stopped the process while that step was written."""
    monkeypatch.setenv("BERT_TF_STAGE_FOLDER", str(tmp_path))
    folder, begun = store or str(tmp_path), []
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for step, process in ((5, ended.pid), (6, os.getppid())):
        place = upload_place(os.path.join(folder, f"checkpoint-{step:09d}.safetensors"))
        begun.append(f"{place}{ASIDE}{process}-{writing._machine()}-12")
        os.mkdir(begun[-1])
    trainer = tiny.trainer()
    trainer.step.assign(8)
    tiny.save_checkpoint(folder, trainer, EXTRA, 3)
    assert [os.path.exists(each) for each in begun] == [False, True]


def test_no_flipped_byte_is_accepted(path, tmp_path):
    with open(path, "rb") as file:
        data = file.read()
    header = 8 + int.from_bytes(data[:8], "little")
    rng = random.Random(1)
    changed = str(tmp_path / os.path.basename(path))
    positions = [*range(100), *range(header - 12, header + 4), len(data) - 1,
                 *rng.sample(range(100, header), 150), *rng.sample(range(header, len(data)), 100)]
    with open(changed, "wb") as file:
        file.write(data)
    checksummed.read(changed)
    for position in positions:
        for byte in (data[position] ^ (1 << rng.randrange(8)), ord("\n"), rng.randrange(256)):
            if byte == data[position]:
                continue
            with open(changed, "r+b") as file:
                file.seek(position)
                file.write(bytes([byte]))
            with pytest.raises(checksummed.DamagedError, match=changed):
                checksummed.read(changed)
        with open(changed, "r+b") as file:
            file.seek(position)
            file.write(data[position:position + 1])
    checksummed.read(changed)


def test_no_other_length_is_accepted(path, tmp_path):
    with open(path, "rb") as file:
        data = file.read()
    changed = tmp_path / os.path.basename(path)
    for size in (0, 1, 7, 8, 30, 43, 44, 500, len(data) // 2, len(data) - 1):
        changed.write_bytes(data[:size])
        with pytest.raises(checksummed.DamagedError, match=str(changed)):
            checksummed.read(changed)
    changed.write_bytes(data + b"\0")
    with pytest.raises(checksummed.DamagedError, match=str(changed)):
        checksummed.read(changed)


def test_other_files_are_no_checkpoints(tmp_path):
    path = tmp_path / "checkpoint-000000001.safetensors"
    save_file({"weight": np.ones(3, np.float32)}, path)
    for wanted in (path, tmp_path / "absent", tmp_path):
        with pytest.raises(InputError, match=str(wanted)):
            checksummed.read(wanted)


@pytest.mark.parametrize("change, wanted", [
    (lambda tensors: tensors.pop("learner/bert/pooler/dense/kernel"),
     "has no learner/bert/pooler/dense/kernel"),
    (lambda tensors: tensors.update({"learner/bert/pooler/dense/bias": np.zeros(7)}),
     r"learner/bert/pooler/dense/bias has shape \(7,\).*\(32,\)"),
    (lambda tensors: tensors.update({"optimizer/more": np.zeros(7)}), "holds optimizer/more"),
])
def test_all_or_nothing(path, monkeypatch, change, wanted):
    tensors, extra = checksummed.read(path)
    change(tensors)
    monkeypatch.setattr(checksummed, "read", lambda _: (tensors, extra))
    fresh = tiny.trainer(dtype="mixed_float16")
    before = state(fresh)
    with pytest.raises(InputError, match=wanted):
        resume.restore(path, fresh)
    assert_same(state(fresh), before)


def test_what_is_not_finite_is_not_saved(tmp_path):
    trainer = tiny.trainer()
    variable = trainer.learner.trainable_variables[3]
    variable.assign(np.full(variable.shape, np.inf))
    with pytest.raises(InputError, match=f"learner/{variable.path} is not finite after step 0"):
        tiny.save_checkpoint(tmp_path, trainer, EXTRA, 1)
    assert not os.listdir(tmp_path)


# Going on

def run(records, folder, rate=1e-2, **settings):
    return Run(tiny.trainer(rate=rate, dropout=0.1), TrainSettings(**{
        "output_dir": str(folder), "train_batch_size": BATCH, "num_train_steps": 6,
        "num_warmup_steps": 0, "save_checkpoints_steps": 2, "iterations_per_loop": 2,
        "random_seed": 1, **settings}), records)


@pytest.fixture(name="finished", scope="module")
def fixture_finished(records, tmp_path_factory):
    """A folder with the checkpoints of a run of 6 steps."""
    folder = tmp_path_factory.mktemp("finished")
    run(records, folder).train()
    return folder


def last_bytes(folder):
    with open(resume.checkpoints(folder)[-1], "rb") as file:
        return file.read()


def copy(finished, folder, steps):
    for step in steps:
        name = f"checkpoint-{step:09d}.safetensors"
        (folder / name).write_bytes((finished / name).read_bytes())


def damage(path):
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)


def test_a_damaged_checkpoint_is_passed_over_and_the_end_is_the_same(
        records, finished, tmp_path, capsys):
    copy(finished, tmp_path, (2, 4))
    damage(tmp_path / "checkpoint-000000004.safetensors")
    again = run(records, tmp_path)
    assert again.resume() and again.step == 2
    said = capsys.readouterr().out
    assert "warning: " in said and "checkpoint-000000004.safetensors is damaged" in said
    assert "resuming at step 2" in said
    again.train()
    assert last_bytes(tmp_path) == last_bytes(finished)


def test_nothing_but_damage_is_refused(records, finished, tmp_path):
    assert not run(records, tmp_path).resume()
    copy(finished, tmp_path, (2, 4))
    for step in (2, 4):
        damage(tmp_path / f"checkpoint-{step:09d}.safetensors")
    with pytest.raises(InputError, match="no checkpoint in .* is intact"):
        run(records, tmp_path).resume()


def test_a_checkpoint_of_another_model_is_refused_not_passed_over(records, finished, tmp_path):
    copy(finished, tmp_path, (2, 4))
    other = run(records, tmp_path)
    other._trainer = tiny.trainer(optimizer="lamb")
    with pytest.raises(InputError, match="4.safetensors has no optimizer/lamb"):
        other.resume()


@pytest.mark.parametrize("steps, said", [
    ((), "No checkpoint was saved yet"), ((2,), "last checkpoint is .*000000002.safetensors")])
def test_a_run_that_diverges_names_what_is_kept(records, finished, tmp_path, steps, said):
    copy(finished, tmp_path, steps)
    spoilt = run(records, tmp_path)
    spoilt.resume()
    spoilt._trainer.learner.trainable_variables[0].assign(
        np.full(spoilt._trainer.learner.trainable_variables[0].shape, np.inf))
    with pytest.raises(DivergedError, match=f"is not a finite number; .* start again. .*{said}"):
        spoilt.train()


def test_workers_that_write_nothing_meet_weights_that_diverge_too(
        records, tmp_path, monkeypatch):
    """Else the chief alone would end the run, or the trial."""
    monkeypatch.setattr(train_module, "count_workers", lambda _: 2)
    monkeypatch.setattr(train_module, "is_chief", lambda _: False)
    with pytest.raises(DivergedError, match="is not finite after step 1, so this step is not"):
        run(records, tmp_path, rate=np.inf, num_train_steps=1).train()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [tf.errors.UnavailableError, tf.errors.AbortedError])
def test_a_worker_that_is_gone_is_said(records, tmp_path, monkeypatch, error):
    def fail(*_):
        raise error(None, None, "Connection reset by peer")

    alone = run(records, tmp_path)
    monkeypatch.setattr(alone._trainer, "train", fail)
    with pytest.raises(InputError, match="another worker is gone"):
        alone.train()


def test_workers_must_begin_at_one_step(records, tmp_path, monkeypatch):
    monkeypatch.setattr("bert_tf.training.train.mean_over_workers", lambda *_: 2.5)
    with pytest.raises(InputError, match=f"at different steps: --output_dir .*{tmp_path}"):
        run(records, tmp_path).train()
    assert not os.listdir(tmp_path)


def test_place_in_the_records(records, finished, tmp_path, capsys):
    """It is kept through another batch size, and lost with other records or another seed."""
    copy(finished, tmp_path, (4,))
    other = tmp_path / "b.tfrecord"
    tiny.write_records(other, 24)
    for options, taken in (({}, 4 * BATCH), ({"train_batch_size": 2}, 4 * BATCH),
                           ({"random_seed": 2}, 0)):
        again = run(records, tmp_path, **options)
        assert again.resume() and again._place.taken == taken
        assert ("the records or their order changed" in capsys.readouterr().out) == (not taken)
    again = run(RecordSet.open(str(other), "input_file"), tmp_path)
    assert again.resume() and (again.step, again._place.taken) == (4, 0)


def test_a_signal_that_interrupts_a_line_of_progress_is_noted(monkeypatch):
    class Interrupted(io.RawIOBase):
        """A terminal or file in whose first writing a signal comes."""

        left = [signal.SIGTERM]

        def writable(self):
            return True

        def write(self, line):
            if self.left:
                signal.raise_signal(self.left.pop())
            return len(line)

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Interrupted())))
    with FirstSignal() as signals:
        print("step 2/8", flush=True)
    assert signals.noted == signal.SIGTERM


def test_a_full_disk_is_an_os_error(tmp_path):
    """As every other writer's; programs end with one sentence on it."""
    with full_disk(), pytest.raises(OSError, match=f"'{tmp_path}/a.safetensors'") as error:
        checksummed.write(str(tmp_path / "a.safetensors"), {"a": np.zeros(10_000)}, {})
    assert error.value.errno == errno.EFBIG and not list(tmp_path.iterdir())


def test_a_value_that_was_read_stays_as_it_was():
    variable = keras.Variable(np.arange(1000, dtype="float32"))
    counter = tf.Variable(7, dtype="int64")
    held, count = resume.read_value(variable), resume.read_value(counter)

    @tf.function
    def step():
        variable.assign(variable.value * 2.0 + 1)
        counter.assign_add(1)

    for _ in range(3):
        step()
        variable.value.assign_add(tf.ones(1000))
    assert held.tolist() == list(range(1000)) and count == 7
    assert variable.numpy()[0] == 14 and int(counter) == 10


def test_an_update_in_place_leaves_values_that_were_read():
    variable = keras.Variable(np.ones((600, 500), "float32"), name="kernel")
    optimizer = make_optimizer("adamw", 0.1)
    optimizer.build([variable])
    step = tf.function(lambda grad: optimizer.apply([grad], [variable]), autograph=False)
    step(tf.ones((600, 500)))
    state = [variable, *(other for other in optimizer.variables if other.shape == variable.shape)]
    held = [resume.read_value(one) for one in state]
    copies = [value.copy() for value in held]
    step(tf.ones((600, 500)))
    assert len(state) == 3 and all(map(np.array_equal, held, copies))
    assert not any(np.array_equal(one.numpy(), copy) for one, copy in zip(state, copies))


@pytest.mark.parametrize("old, new, phrase", [
    (find_distillation("pkd"), find_distillation("tinybert"), "--recipe (name pkd, now tinybert)"),
    (find_distillation("pkd"), find_distillation("pkd").with_soft(temperature=2.0),
     "--recipe (temperature 5.0, now 2.0)"),
    (find_distillation("pkd"), find_distillation("pkd").with_soft(gold=0.5),
     "--recipe (gold_weight 0.3, now 0.5)")])
def test_the_value_that_differs_between_two_distillations_is_named(old, new, phrase):
    theirs, mine = ({"distillation": row.describe()} for row in (old, new))
    assert resume.compare(mine, theirs, FineTuneSettings("out")) == ([], [phrase])
