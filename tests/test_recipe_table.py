"""Recipes: rows that are complete, described in JSON and read back."""

import dataclasses
import functools
import json

import pytest

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.segments.pairing import PAIRINGS
from bert_tf.errors import InputError
from bert_tf.heads import OBJECTIVES, TAUGHT
from bert_tf.training.settings import TrainSettings
from data_prep.create_pretraining_data import PretrainingDataFlags, StreamFlags

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
