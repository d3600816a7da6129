"""The defaults of fine-tuning that a model's type decides."""

import dataclasses

import pytest

from bert_tf import flags
from bert_tf.config import CONFIGS, EncoderConfig, XLNetConfig
from bert_tf.finetuning import jobs, paper_defaults
from bert_tf.finetuning.model import ClassifierFlags, ModelFlags
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags
from bert_tf.training.settings import FineTuneSettings


def config(kind, layers=2, width=128, positions=512):
    return EncoderConfig(vocab_size=9, model_type=kind, num_hidden_layers=layers,
                         hidden_size=width, num_attention_heads=2,
                         max_position_embeddings=positions)


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    def make(kind):
        config(kind).to_json_file(tmp_path / f"{kind}.json")
        return {"do_train": True, "bert_config_file": str(tmp_path / f"{kind}.json")}
    return make


def test_rows_name_flags_tasks_and_sizes():
    flags = {field.name: field for kind in (SquadFlags, TaskFlags, ModelFlags, ClassifierFlags,
                                            FineTuneSettings)
             for field in dataclasses.fields(kind)}
    for kind, rows in paper_defaults.DEFAULTS.items():
        assert kind in CONFIGS and kind != "bert"
        assert set(rows) <= {"", "large", "squad", "squad_v2", *TASKS}
        for name, value in (pair for row in rows.values() for pair in row.items()):
            choices = flags[name].metadata["choices"]
            assert choices is None or value in choices, name


@pytest.mark.parametrize("kind, layers, width, task, expected", [
    ("bert", 24, 1024, "mrpc", {}),
    ("roberta", 12, 768, "rte", {"learning_rate": 2e-5, "train_batch_size": 16}),
    ("albert", 12, 768, "mrpc", {"num_train_steps": 800, "num_warmup_steps": 200}),
    ("electra", 12, 256, "rte", {"learning_rate": 1e-4, "layer_decay": 0.8,
                                 "num_train_epochs": 10.0}),
    ("electra", 24, 1024, "", {"learning_rate": 5e-5, "layer_decay": 0.9, "layer_decay_top": 2})])
def test_a_task_comes_before_a_size_and_that_before_all(kind, layers, width, task, expected):
    """tests/test_paper_settings.py has all values."""
    found = paper_defaults.find(config(kind, layers, width), task)
    assert expected.items() <= found.items() and bool(found) == bool(expected)


def test_sequences_are_no_longer_than_the_model_takes():
    assert paper_defaults.find(config("roberta", positions=64), "")["max_seq_length"] == 64


@pytest.mark.parametrize("task", ["", "mnli", "squad"])
def test_transformer_xl_does_not_learn_as_xlnet(task):
    assert paper_defaults.find(XLNetConfig(directionality="left_to_right"), task) == {}
    assert paper_defaults.find(XLNetConfig(), task)["optimizer"] == "xlnet_adam"


def test_only_training_takes_them_and_flags_come_first(folder):
    defaults = jobs.named_defaults
    source, values = defaults({**folder("albert"), "task": "MRPC"})
    assert source == "fine-tuning of albert" and values["num_train_steps"] == 800
    for given in ({"num_train_epochs": 1.0}, {"grid": True}, {"train_batch_size": 8}):
        _, values = defaults({**folder("albert"), "task": "MRPC", **given})
        assert not {"num_train_steps", "num_warmup_steps"} & set(values)
    _, values = defaults({**folder("albert"), "task": "MRPC", "warmup_proportion": 0.0,
                          "num_warmup_steps": 1})
    assert "num_warmup_steps" not in values and values["num_train_steps"] == 800
    for name in ("warmup_proportion", "num_warmup_steps"):
        _, values = defaults({**folder("albert"), "task": "MRPC", name: 0})
        assert "num_warmup_steps" not in values
    _, values = defaults({**folder("electra"), "task": "STS-B", "keep_head": True})
    assert "label_scale" not in values and values["layer_decay"] == 0.8
    assert defaults({**folder("bert"), "task": "MRPC"}) == ("", {})
    assert defaults({**folder("electra"), "do_train": False}) == ("", {})
    assert defaults({**folder("electra"), "feature_layers": "last"}) == ("", {})
    assert defaults({"do_train": True, "init_checkpoint": "/nowhere"}) == ("", {})


def test_defaults_that_change_nothing_are_left_out(folder):
    """Else flags that nobody gave would be refused."""
    defaults = jobs.named_defaults
    for kind, name, given, is_taken in (
            ("electra", "layer_decay_top", {"layer_decay": 1.0}, False),
            ("electra", "layer_decay_top", {"layer_decay": 0.5}, True),
            ("electra", "layer_decay_top", {}, True),
            ("roberta", "weight_decay", {"optimizer": "adadelta"}, False),
            ("roberta", "weight_decay", {"optimizer": "lamb"}, True)):
        values = defaults({**folder(kind), **given})[1]
        values |= given
        names = {*given, *flags.applicable([FineTuneSettings], values)}
        found = {one: value for one, value in values.items() if one in names}
        assert (name in found) == is_taken and "learning_rate" in found
        names = {field.name for field in dataclasses.fields(FineTuneSettings)}
        FineTuneSettings(output_dir="out", **{
            one: value for one, value in found.items() if one in names})


def test_the_version_of_squad_decides(folder):
    defaults = jobs.squad_defaults
    for given, rate in (({}, 5e-5), ({"version_2_with_negative": True}, 3e-5)):
        assert defaults({**folder("albert"), **given})[1]["learning_rate"] == rate
