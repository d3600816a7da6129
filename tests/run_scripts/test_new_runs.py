"""What a new pre-training run begins with: --pack and --first_weights."""

import shutil

import numpy as np
import pytest

from bert_tf.checkpoints import checksummed
from bert_tf.errors import InputError
from bert_tf.training.settings import TrainSettings
from run_scripts import run_pretraining
from run_scripts.pretraining import records
from tests.programs import share_out
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")


@pytest.fixture(name="train", scope="module")
def fixture_train(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packing")
    tiny.config(0.1, num_hidden_layers=1).to_json_file(folder / "config.json")
    features = tiny.write_records(folder / "long.tfrecord", 40)
    features["input_mask"][:] = 1
    tiny.write_features(folder / "long.tfrecord", features)
    for name in ("input_ids", "input_mask", "segment_ids"):
        features[name][::2, 7:] = 0
    features["masked_lm_positions"] %= 7
    tiny.write_features(folder / "short.tfrecord", features)

    def run(output, records="short", **changes):
        flags = {"bert_config_file": str(folder / "config.json"),
                 "input_file": [str(folder / f"{records}.tfrecord")], "max_seq_length": tiny.LENGTH,
                 "max_predictions_per_seq": tiny.PREDICTIONS, "do_train": True,
                 "output_dir": str(folder / output), "train_batch_size": 8, "num_train_steps": 2,
                 "num_warmup_steps": 1, "save_checkpoints_steps": 1, "iterations_per_loop": 1,
                 "learning_rate": 1e-2, **changes}
        run_pretraining.main(*share_out(flags, run_pretraining.PretrainingFlags, TrainSettings))
        last = max((folder / output).glob("checkpoint-*"))
        return checksummed.read(str(last))
    run.folder = folder
    return run


def kill(train, output):
    """Leaves a run's first checkpoint alone, as a kill does; returns the name of the folder."""
    killed = train.folder / f"{output} killed"
    killed.mkdir()
    shutil.copy(min((train.folder / output).glob("checkpoint-*")), killed)
    return killed.name


def equal(one, other):
    return all((one[0][name] == other[0][name]).all() for name in one[0] | other[0])


def test_a_new_run_packs_records_where_it_pays(train, capsys, monkeypatch):
    asked = train("asked", pack=True)
    assert asked[1]["run"]["pack"] and "records share rows, so only " in capsys.readouterr().out
    values, extra = train("open")
    assert extra["run"]["pack"] and equal(asked, (values, extra))
    once = {"stop_at_step": 1}
    assert not train("refused", pack=False, **once)[1]["run"]["pack"]
    assert not train("long records", "long", **once)[1]["run"]["pack"]
    monkeypatch.setattr(records.training, "needs_static_shapes", lambda strategy: True)
    assert not train("as on a TPU", **once)[1]["run"]["pack"]
    for name in values:
        assert np.isfinite(values[name]).all()


def test_a_run_goes_on_as_it_began(train, capsys):
    for kind, packs in (("long", True), ("short", False)):      # a new run would not
        wanted = train(f"whole {kind}", kind, pack=packs)
        killed = kill(train, f"whole {kind}")
        shutil.copytree(train.folder / killed, train.folder / f"changed {kind}")
        capsys.readouterr()
        found = train(killed, kind)
        assert equal(wanted, found) and found[1]["run"]["pack"] == packs
        assert "resuming at step 1" in capsys.readouterr().out
    train("changed short", pack=True)
    assert "another --pack (False, now True)" in capsys.readouterr().out


def test_networks_that_need_a_row_for_each_record_say_so(train, monkeypatch):
    monkeypatch.setattr(run_pretraining.training.Learner, "packs", False)
    with pytest.raises(InputError, match="--pack: this network .* leave it out"):
        train("impossible", pack=True)
    assert not train("possible", stop_at_step=1)[1]["run"]["pack"]


def test_first_weights_are_a_setting_of_a_new_run(train, capsys, tmp_path):
    values, extra = train("neighbours", first_weights="neighbours")
    assert extra["run"]["first_weights"] == "neighbours"
    assert "heads look at neighbouring tokens" in capsys.readouterr().out
    assert equal((values, extra), train(kill(train, "neighbours"), first_weights="neighbours"))
    assert "resuming at step 1" in capsys.readouterr().out
    with pytest.raises(InputError, match="--first_weights=neighbours and --init_checkpoint="):
        train("both", first_weights="neighbours", init_checkpoint=str(tmp_path))
