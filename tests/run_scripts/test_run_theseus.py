"""BERT-of-Theseus: the model with which a successor begins, and runs that were killed."""

import dataclasses
import functools
import os
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.compression import theseus
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.tasks.named import SQUAD, find_task
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from bert_tf.training.train import save_model
from run_scripts import quantise_model, run_theseus
from tests.run_scripts.test_analysis import TOKENS, write_task

pytestmark = pytest.mark.usefixtures("eagerly")


def write_model(folder, layers=4):
    """Writes a fine-tuned model of so many layers, beside its task's files."""
    write_task(folder, "sts-b", EncoderConfig.preset(
        "tiny", vocab_size=len(TOKENS), hidden_size=16, intermediate_size=16,
        num_hidden_layers=layers, max_position_embeddings=24), [0.0, 1.5, 3.0, 4.5, 5.0, 2.0])
    shutil.copy(folder / "dev.tsv", folder / "train.tsv")
    dataclasses.replace(SavedTask.read(folder), options={
        "label_scale": 5.0, "hypothesis_first": True}).write(folder)
    return folder


@pytest.fixture(name="model")
def fixture_model(tmp_path):
    return write_model(tmp_path / "model")


def train(model, output, layers=0, **settings):
    run_theseus.main(run_theseus.TheseusFlags(predecessor=str(model), successor_layers=layers),
                     TaskFlags(task="sts-b", data_dir=str(model)),
                     FineTuneSettings(output_dir=str(output), train_batch_size=4,
                                      num_train_epochs=1.0, **settings))
    return bert_tf.open_model(output, finetuned=True).learner().get_weights()


@pytest.fixture(name="whole", scope="module")
def fixture_whole(tmp_path_factory):
    """Function that gives a model, the folder of a run from it, and the weights that it made."""
    @functools.cache
    def run():
        folder = tmp_path_factory.mktemp("theseus")
        model = write_model(folder / "model", layers=2)
        return model, folder / "whole", train(model, folder / "whole")
    return run


# What is written last tells whether all was.
@pytest.mark.parametrize("missing", [
    (), ("made_of.json", "vocab.txt", "task.json", "model.keras")])
def test_a_killed_run_ends_with_the_same_bits(missing, whole, tmp_path):
    model, folder, weights = whole()
    shutil.copytree(folder / "successor", tmp_path / "killed" / "successor")
    for name in missing:
        os.remove(tmp_path / "killed" / "successor" / name)
    again = train(model, tmp_path / "killed")
    assert all(np.array_equal(old, new) for old, new in zip(weights, again, strict=True))


def test_nothing_is_written_where_another_run_is_at_work(model, hold, tmp_path):
    (tmp_path / "out").mkdir()
    holder = hold(tmp_path / "out")
    with pytest.raises(InputError, match=f"--output_dir: process {holder.pid} .* is at work on"):
        train(model, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == [".lock"]


def test_the_successor_keeps_the_options_of_the_predecessor(whole):
    model, folder, _ = whole()
    assert SavedTask.read(folder).options == SavedTask.read(model).options
    assert bert_tf.open_model(folder, finetuned=True).learner().objectives[0].scale == 5


def test_the_predecessor_may_be_of_integers(tmp_path):
    model, folder = write_model(tmp_path / "model", layers=2), tmp_path / "int8"
    quantise_model.main(quantise_model.QuantiseFlags(
        init_checkpoint=str(model), output=str(folder), quantisation="q8bert"))
    for name in ("train.tsv", "dev.tsv"):
        shutil.copy(model / name, folder)
    train(folder, tmp_path / "out")
    successor, predecessor = (bert_tf.open_model(path, finetuned=True).learner().encoder
                              for path in (tmp_path / "out", folder))
    assert successor.config.quantisation and successor.config.depth == 1
    assert np.array_equal(successor.embedding_table, predecessor.embedding_table)


def test_long_texts_are_read_as_the_predecessor_does(model, tmp_path):
    with pytest.raises(InputError, match="--long_text is not for successors"):
        run_theseus.main(run_theseus.TheseusFlags(predecessor=str(model)),
                         TaskFlags(task="sts-b", data_dir=str(model), long_text="mean"),
                         FineTuneSettings(output_dir=str(tmp_path / "out")))


def test_smoothness_of_changing_networks_is_refused(model, tmp_path):
    with pytest.raises(InputError, match="each pass of this network draws again which"):
        train(model, tmp_path / "out", adv_train="smart")
    assert not (tmp_path / "out").exists()


def test_a_predecessor_that_answers_questions_is_refused(tmp_path):
    SavedTask(SQUAD[False], 24, True, {}).write(tmp_path)
    with pytest.raises(InputError, match="--predecessor: .* is a model for SQuAD, whose layers"):
        run_theseus.main(
            run_theseus.TheseusFlags(predecessor=str(tmp_path)),
            TaskFlags(data_dir=str(tmp_path), train_file="a.json", dev_file="a.json"),
            FineTuneSettings(output_dir=str(tmp_path / "out")))


@pytest.mark.parametrize("name, message", [
    ("mrpc", "^{0} is a model for regression, not for classification; name another --predecessor"),
    ("cola", "^{0} knows the labels 1, 0, but cola has 0, 1, the same in another order; "
             "name another --predecessor"),
    ("ax", "^ax has no training set; train with --task=mnli")])
def test_other_tasks_are_refused_before_a_successor_is_written(name, message, model, tmp_path):
    if name == "cola":
        saved = SavedTask.read(model)
        dataclasses.replace(saved, task=dataclasses.replace(
            find_task("cola"), labels=("1", "0"))).write(model)
    with pytest.raises(InputError, match=message.format(model)):
        run_theseus.main(run_theseus.TheseusFlags(predecessor=str(model)),
                         TaskFlags(task=name, data_dir=str(model)),
                         FineTuneSettings(output_dir=str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


def test_a_predecessor_that_would_be_overwritten_is_refused(model):
    with pytest.raises(InputError, match="--output_dir is the folder of --predecessor="):
        train(model, model)


def test_another_predecessor_or_size_is_refused(model, tmp_path):
    folder = str(tmp_path / "successor")
    assert theseus.open_successor(str(model), 2, folder) == folder
    assert checkpoints.read_config(os.path.join(folder, "model.keras")).depth == 2
    with pytest.raises(InputError, match="another --successor_layers .2, now 1.; name another"):
        theseus.open_successor(str(model), 1, folder)
    learner = bert_tf.open_model(model, finetuned=True).learner()
    learner.encoder.pooler.kernel.assign(learner.encoder.pooler.kernel + 1)
    save_model(str(model), learner)
    with pytest.raises(InputError, match="holds a run with another --predecessor"):
        theseus.open_successor(str(model), 2, folder)
