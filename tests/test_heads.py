"""Tables and their rows: heads, recipes, classes that Keras finds."""

import dataclasses
import functools
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys

import keras
import pytest

import bert_tf
from bert_tf import bert, models, objectives, recipes
from bert_tf.config import ElmoConfig, EncoderConfig, UniversalConfig
from bert_tf.data import masking
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.errors import InputError
from bert_tf.finetuning.model import ClassifierFlags
from bert_tf.flags.options import fields_of
from bert_tf.heads import CAUSAL, CHOICES, FURTHER, HEADS, OBJECTIVES, OF_LEARNERS, TAUGHT
from bert_tf.objectives.base import Objective
from bert_tf.training.optimizers import OPTIMIZERS, make_optimizer
from bert_tf.training.settings import TrainSettings
from data_prep.create_pretraining_data import PretrainingDataFlags, StreamFlags

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


# Recipes

ROWS = recipes.RECIPES.values()


@pytest.mark.parametrize("recipe", ROWS, ids=recipes.RECIPES)
def test_the_names_of_a_row_are_in_their_tables(recipe):
    assert recipe.segments.pairing in PAIRINGS
    assert masking.find(recipe.corruption).masking == recipe.corruption.masking
    assert recipe.corruption.units in ("subwords", "words")
    assert {term.objective for term in recipe.terms} <= OBJECTIVES.keys() | TAUGHT.keys()
    kinds = [recipes.load(name) for name in recipe.settings]
    flags = {field.name for kind in (PretrainingDataFlags, StreamFlags, TrainSettings, *kinds)
             for field in dataclasses.fields(kind)}
    assert set(recipe.defaults) <= flags


@pytest.mark.parametrize("recipe", ROWS, ids=recipes.RECIPES)
def test_a_description_survives_json(recipe):
    for varied in (recipe, recipe.vary({"pairing": "doc_sentences"},
                                       {"shares": (0.5, 0.25), "dynamic": True})):
        assert recipes.from_description(json.loads(json.dumps(varied.describe()))) == varied


def test_an_unknown_recipe_is_refused_with_the_names():
    assert recipes.from_description(None) == recipes.find("bert")
    with pytest.raises(InputError, match="'brt'.*bert, bert_wwm"):
        recipes.find("brt")


@pytest.mark.parametrize("keys, value, problem", [
    (["segments", "order"], "reversed", "segments has order"), (["task"], "x", "task is .x."),
    (["segments", "random_share"], -1, "segments.random_share is -1"),
    (["segments", "bare"], 1, "segments.bare is 1"), (["corruption"], [], "corruption is not a"),
    (["corruption", "shares"], [0.5, "a"], "corruption.shares.1. is a"),
    (["denoising"], {}, "denoising is {}"), (["tokenizer_settings"], None, "tokenizer_settings")])
def test_a_description_of_another_form_is_refused(keys, value, problem):
    *outer, last = keys
    described = recipes.find("bert").describe()
    functools.reduce(dict.__getitem__, outer, described)[last] = value
    with pytest.raises(InputError, match=f"does not describe recipe bert .{problem}"):
        recipes.from_description(described)


# Classes that Keras finds

# A small substitute, so that no backend is loaded.
KERAS = """
registry = {}
class saving:
    get_custom_objects = staticmethod(lambda: registry)
"""


@pytest.mark.parametrize("code", [
    "import keras, bert_tf",
    "import bert_tf, keras",
    "import bert_tf, importlib.util; importlib.util.find_spec('keras'); import keras",
    "import bert_tf, lazy_loader; keras = lazy_loader.load('keras')",
], ids=["keras first", "bert_tf first", "keras only looked for", "keras lazily"])
def test_keras_knows_the_classes_of_the_package(code, tmp_path):
    (tmp_path / "keras.py").write_text(KERAS)
    folders = os.pathsep.join([str(tmp_path), os.path.dirname(os.path.dirname(bert_tf.__file__))])
    done = subprocess.run([sys.executable, "-c", f"{code}\nprint(*keras.registry)"],
                          env={**os.environ, "PYTHONPATH": folders},
                          capture_output=True, text=True, check=True)
    assert {"bert_tf>Learner", "bert_tf>MaskedLM", "bert_tf>BertEncoder"} <= set(
        done.stdout.split())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_optimizer_of_a_compiled_model_is_found_wherever_its_class_was(name):
    optimizer = make_optimizer(name, 1e-3)
    saved = keras.saving.serialize_keras_object(optimizer)
    saved["module"] = "bert_tf.training.a_module_of_an_earlier_version"
    again = keras.saving.deserialize_keras_object(saved)
    assert type(again) is type(optimizer) and again.get_config() == optimizer.get_config()


def test_every_optimizer_of_the_table_can_be_found_before_its_class_is_imported():
    homes = bert_tf._homes(bert_tf._CLASSES | bert_tf._SAVED)
    for row in OPTIMIZERS.values():
        module, name = row.kind.split(".")
        assert homes[name] == f"bert_tf.training.optimizers.{module}"


def test_registered_classes_are_where_they_are_said_to_be():
    for name, module in {**bert_tf._HOMES, **bert_tf._homes(bert_tf._SAVED)}.items():
        assert hasattr(importlib.import_module(module), name)
