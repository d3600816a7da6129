"""The table of heads and the objectives themselves agree."""

import importlib
import inspect
import pkgutil

import keras
import pytest

import bert_tf
from bert_tf import bert, models, objectives
from bert_tf.config import ElmoConfig, EncoderConfig, UniversalConfig
from bert_tf.finetuning.model import ClassifierFlags
from bert_tf.flags.options import fields_of
from bert_tf.heads import CAUSAL, CHOICES, FURTHER, HEADS, OBJECTIVES, OF_LEARNERS, TAUGHT
from bert_tf.objectives.base import Objective

CONFIG = EncoderConfig(vocab_size=7, hidden_size=4, num_hidden_layers=4, num_attention_heads=2,
                       intermediate_size=6, max_position_embeddings=5)

# Of the objectives that are for one network only.
OWN_CONFIGS = {"ponder_time": UniversalConfig(vocab_size=7), "bidirectional_lm": ElmoConfig(7, 3)}


def objective_classes():
    """Every public objective in the package, abstract bases of heads aside."""
    for module in (*pkgutil.iter_modules(objectives.__path__, "bert_tf.objectives."),
                   *pkgutil.iter_modules(bert.__path__, "bert_tf.bert."),
                   *pkgutil.walk_packages(models.__path__, "bert_tf.models.")):
        module = importlib.import_module(module.name)
        for name, value in vars(module).items():
            if (inspect.isclass(value) and issubclass(value, Objective)
                    and value.__module__ == module.__name__
                    and keras.saving.get_registered_name(value) != value.__name__):
                yield name, module.__name__


def test_every_objective_has_a_row_and_every_row_an_objective():
    rows = {*((head.objective, head.module) for head in HEADS.values()),
            *((objective, module)
              for objective, (_, module) in (CAUSAL | FURTHER | OF_LEARNERS | TAUGHT).items())}
    rows = {(objective, f"bert_tf.{module}" if "." in module else
             f"bert_tf.objectives.{module}") for objective, module in rows}
    assert set(objective_classes()) == rows


def make(objective, head):
    config = OWN_CONFIGS.get(head.name, CONFIG)
    return getattr(bert_tf, objective)(
        config, **{"num_labels": 3} if head.is_labelled else {},
        **{"lstm_size": 2} if "features/scale" in head.shapes else {})


@pytest.mark.parametrize("name", OBJECTIVES)
def test_rows_describe_their_objectives(name):
    head = OBJECTIVES[name]
    objective = make(name, head)
    assert objective.name == head.name
    sizes = {"V": 7, "E": 4, "H": 4, "C": 3, "1": 1, "2": 2}
    for variable in objective.weights:
        name = variable.path.split("/", 1)[1]
        shape = head.shapes[name]
        assert len(shape) == len(variable.shape), name
        assert all(size == sizes.get(letter, size)
                   for letter, size in zip(shape, variable.shape)), name
    held = {variable.path.split("/", 1)[1] for variable in objective.weights}
    assert set(head.shapes) - held <= set(head.optional)


@pytest.mark.parametrize("name", CHOICES)
def test_a_head_of_a_flag_has_the_flags_and_the_arguments_of_its_row(name):
    head = CHOICES[name]
    assert head.choice.flags.keys() == {
        field.name for field in fields_of(ClassifierFlags)
        if field.name != "head" and name in field.metadata["when"].values}
    arguments = inspect.signature(getattr(bert_tf, head.objective)).parameters.keys()
    assert {*head.choice.flags.values()} <= arguments
    assert head.choice.compares == ("pairs" in arguments)


def test_every_head_has_from_pretrained():
    for objective in OBJECTIVES:
        assert callable(getattr(bert_tf, objective).from_pretrained)
        assert objective in bert_tf.__all__
