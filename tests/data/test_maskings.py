"""Maskings: their names on disk, and which of their forms flags take."""

import dataclasses
import sys
import types

import pytest

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.masking import base
from bert_tf.errors import InputError
from bert_tf.recipes import MaskTokens

_TOKENS = {"units": "subwords", "shares": [0.8, 0.1], "replace_from": "vocabulary",
           "dynamic": False, "settings": {}}
_WORDS = {**_TOKENS, "units": "words"}
WRITTEN = {
    "bert": {**_TOKENS, "masking": "bert"},
    "bert_wwm": {**_WORDS, "masking": "bert"},
    "roberta": {**_TOKENS, "masking": "roberta", "replace_from": "words", "dynamic": True},
    "electra": {**_TOKENS, "masking": "electra", "shares": [0.85, 0.0], "dynamic": True},
    "albert": {**_WORDS, "masking": "albert"},
    "spanbert": {**_WORDS, "masking": "spanbert", "replace_from": "corpus", "dynamic": True},
    "structbert": {**_TOKENS, "masking": "structbert"},
    "xlnet": {**_TOKENS, "masking": "xlnet", "dynamic": True},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_manifests_have_all_fields_of_a_masking(name):
    corruption = recipes.find(name).corruption
    assert corruption.describe() == WRITTEN[name]
    assert MaskTokens.from_description(WRITTEN[name]) == corruption


def test_settings_of_one_masking_are_written():
    varied = recipes.find("spanbert").corruption.vary(
        {"schemes": ("random", "ner_span"), "span_upper": 5, "dynamic": False})
    written = {**WRITTEN["spanbert"], "dynamic": False, "settings": {
        "schemes": ["random", "ner_span"], "span_upper": 5}}
    assert varied.describe() == written and MaskTokens.from_description(written) == varied
    assert masking.find(varied).schemes == ("random", "ner_span")
    with pytest.raises(InputError, match="bert has no setting span_upper.*later version"):
        masking.find(MaskTokens.from_description({"settings": {"span_upper": 5}}))


@pytest.mark.parametrize("name", ["lamb", "os.path", "..bert"])
def test_a_masking_of_a_later_version_is_refused(name):
    with pytest.raises(InputError, match="no masking .*later version"):
        masking.find(MaskTokens.from_description({"masking": name}))


@pytest.fixture(name="last_words")
def fixture_last_words(monkeypatch):
    """A masking in a file of its own, which only records can hold."""
    @dataclasses.dataclass(frozen=True)
    class Masking(base.Masking):
        called = "last words"

        def static_masks(self, documents, vocabulary, stream, options, room):
            raise NotImplementedError

    module = types.ModuleType("bert_tf.last_words")
    module.Masking = Masking
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(masking.MASKINGS, "last_words", "last_words.Masking")
    return MaskTokens("last_words")


def test_masks_that_training_cannot_draw_are_refused(last_words):
    found = masking.find(last_words)
    found.check(recipes.Segments())
    assert not found.can_be_dynamic and last_words.describe()["masking"] == "last_words"
    assert MaskTokens.from_description(last_words.describe()) == last_words
    with pytest.raises(InputError, match="--masking=dynamic: the recipe masks last words"):
        masking.find(last_words.vary({"dynamic": True})).check(recipes.Segments())


def test_only_these_masks_are_drawn_while_training():
    drawn = {name for name, recipe in recipes.RECIPES.items()
             if masking.find(recipe.corruption).can_be_dynamic}
    assert drawn.isdisjoint({"structbert", "ltr", "t5"})
    assert drawn >= {"bert", "albert", "roberta", "electra", "spanbert", "ernie", "distilbert",
                     "xlnet"}
