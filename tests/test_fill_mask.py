"""Sentences with masks, as transformers answers them, from files of every format."""

import dataclasses
import json
import math
import pathlib
import pickle
import shutil

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

import bert_tf
from bert_tf import checkpoints, networks, recipes
from bert_tf.config import ElmoConfig, EncoderConfig, SequenceLstmConfig, XLNetConfig
from bert_tf.errors import InputError
from bert_tf.fill_mask import FillMask
from bert_tf.models.electra.learner import Electra
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.models.recurrent.objective import BidirectionalLM, RecurrentLM
from bert_tf.models.xlnet.objective import StreamLM
from bert_tf.objectives import NextTokenLM
from bert_tf.training import Learner
from bert_tf.training.optimizers.adam import AdamWeightDecay
from bert_tf.training.train import save_model
from bert_tf.training.trainer import Trainer
from tests.training import tiny

GOLDEN = pathlib.Path(__file__).parent / "golden" / "fill_mask"
CASES = json.loads((GOLDEN / "cases.json").read_text(encoding="utf-8"))
LETTERS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "]", "[",
           "##m", "##a", "##s", "##k"]
CONFIG = EncoderConfig(vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                       intermediate_size=16, max_position_embeddings=16, initializer_range=0.5)


def weights(shapes):
    """The tensors of a model, by name, drawn one after another."""
    rng = np.random.default_rng(1)
    return {name: (name.lower().replace("_", "").endswith("layernorm.weight")
                   + rng.normal(0, 0.3, shape)).astype("float32")
            for name, shape in sorted(shapes.items())}


@pytest.mark.parametrize("name", CASES["models"])
def test_answers_are_those_of_the_pipeline_of_transformers(name, test_data, tmp_path):
    case, wanted = CASES["models"][name], np.load(GOLDEN / f"{name}.npz")
    save_file(weights(case["shapes"]), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(case["config"]))
    for file in (test_data / "vocabs" / case["vocabulary"]).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    fill = bert_tf.FillMask(tmp_path, batch_size=64)
    masks = [mask for answer in fill(CASES["sentences"], top_k=10) for mask in answer["masks"]]
    assert len(CASES["sentences"]) == 200 and len(masks) == len(wanted["ids"])
    assert [[guess["id"] for guess in mask] for mask in masks] == wanted["ids"].tolist()
    np.testing.assert_allclose([[guess["probability"] for guess in mask] for mask in masks],
                               wanted["probabilities"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(fill.pseudo_perplexity(CASES["plain"]), wanted["perplexity"],
                               rtol=1e-5)
    if len(wanted["follows"]):
        pairs = list(zip(CASES["plain"], CASES["plain"][1:]))
        np.testing.assert_allclose(fill.next_sentence(pairs), wanted["follows"],
                                   rtol=1e-5, atol=1e-5)


def write(folder, learner):
    folder.mkdir(exist_ok=True)
    save_model(str(folder), learner)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in LETTERS))
    return folder


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """The folder of a BERT."""
    return write(tmp_path_factory.mktemp("run"), Learner(networks.build(CONFIG), [
        bert_tf.MaskedLM(CONFIG), bert_tf.SentencePrediction(CONFIG)]))


@pytest.fixture(name="fill", scope="module")
def fixture_fill(run):
    return FillMask(run, batch_size=2)


def check_same(one, other):
    """That two answers guess the same, but for the last bits of probabilities."""
    for mine, wanted in zip(one["masks"], other["masks"], strict=True):
        assert [guess["id"] for guess in mine] == [guess["id"] for guess in wanted]
        assert [guess["probability"] for guess in mine] == pytest.approx(
            [guess["probability"] for guess in wanted], rel=1e-5)


def test_a_text_that_the_vocabulary_does_not_know_is_named_once(run, capsys):
    fill = FillMask(run)
    fill("a b [MASK]")
    assert not fill.coverage.counts["unknown_tokens"] and not capsys.readouterr().err
    fill(["좋은 [MASK]", ("a", "나쁜 [MASK]")])
    said = capsys.readouterr().err
    assert said.count("in words that the vocabulary does not know; 2 of 4 texts") == 1
    fill.pseudo_perplexity("좋은")
    assert not capsys.readouterr().err
    assert fill.coverage.counts["unknown_texts"] == 3 and fill.coverage.counts["texts"] == 5


@pytest.mark.parametrize("form", ["google", "huggingface", "model_garden", "keras"])
def test_every_format_gives_the_same(run, fill, form, tmp_path):
    checkpoints.convert(run, tmp_path / form, form)
    found = FillMask(tmp_path / form)
    check_same(found("a [MASK] c"), fill("a [MASK] c"))
    if form != "model_garden":
        pair = ("a b", "c")
        assert found.next_sentence(pair) == pytest.approx(fill.next_sentence(pair), abs=1e-6)


@pytest.mark.parametrize("form", ["training", "google", "huggingface", "beside"])
def test_of_electra_the_generator_answers(form, tmp_path):
    config = EncoderConfig(**{
        **CONFIG.to_dict(), "hidden_size": 128, "embedding_size": 8, "model_type": "electra",
        "pooler_type": "first_token", "hidden_act": "gelu_erf"})
    learner = Electra.of_terms(config, recipes.find("electra").terms,
                               settings=GeneratorSettings(generator_hidden_size=0.5))
    parts, folder = learner.parts(), tmp_path / "run"
    write(folder, parts["model"])
    if form == "beside":
        write(folder / "generator", parts["generator"])
    else:
        tiny.save_checkpoint(str(folder), Trainer(
            learner, AdamWeightDecay(), tf.distribute.get_strategy()), {}, 1)
    if form in ("google", "huggingface"):
        checkpoints.convert(folder, tmp_path / form, form,
                            checkpoints.Changes(generator=form == "huggingface"))
        folder = tmp_path / form
    ids = np.array([[2, 5, 4, 7, 3]])
    logits = np.asarray(parts["generator"]({
        "input_ids": ids, "masked_lm_positions": np.array([[2]])})["masked_lm"])[0, 0]
    assert [guess["id"] for guess in FillMask(folder)("a [MASK] c", 3)["masks"][0]] == (
        np.argsort(-logits[:len(LETTERS)])[:3].tolist())


def test_a_list_gives_each_answer_as_it_is_alone(fill):
    texts = ["a [MASK] c d e f g", "[MASK]", ("a b", "c [MASK] d"), "[MASK] b [MASK]"]
    found = fill(texts)
    assert [len(answer["masks"]) for answer in found] == [1, 1, 1, 2]
    for answer, text in zip(found, texts, strict=True):
        check_same(answer, fill(text))
    copied = pickle.loads(pickle.dumps(fill))
    check_same(copied(np.array([texts[0]]))[0], found[0])
    assert fill([]) == [] and fill.pseudo_perplexity([]) == []
    assert fill.pseudo_perplexity(np.array(["a b", "c"])) == fill.pseudo_perplexity(["a b", "c"])
    pairs = np.empty(2, object)
    pairs[:] = [("a b", "c"), ("\ud800", "d")]     # half of a surrogate pair is an unknown word
    assert fill.next_sentence(pairs) == fill.next_sentence(pairs.tolist())
    rows = np.array([("a b", "c"), ("d", "e")])
    assert fill.next_sentence(rows) == fill.next_sentence([("a b", "c"), ("d", "e")])
    # Rows that pad the table of words are no tokens.
    every = fill("[MASK]", top_k=len(LETTERS))["masks"][0]
    assert {guess["token"] for guess in every} == {*LETTERS}
    assert math.isclose(sum(guess["probability"] for guess in every), 1, abs_tol=1e-5)


def test_ernies_label_of_pairs_in_order_is_the_other_one(run, fill, tmp_path):
    folder = shutil.copytree(run, tmp_path / "ernie")
    learner = Learner(networks.build(dataclasses.replace(CONFIG, model_type="ernie")), [
        bert_tf.MaskedLM(CONFIG), bert_tf.SentencePrediction(CONFIG)])
    checkpoints.load(run, learner)
    save_model(str(folder), learner)
    pair = ("a b", "c")
    assert abs(fill.next_sentence(pair) - 0.5) > 1e-4
    assert FillMask(folder).next_sentence(pair) == pytest.approx(1 - fill.next_sentence(pair))


def test_the_mask_is_text_where_it_is_not_asked_for(run, fill):
    other = FillMask(run, mask="___")
    assert len(other("a [MASK] ___")["masks"]) == 1
    with pytest.raises(InputError, match=r"the text has no ___; write"):
        other("a [MASK]")
    # Plain text is [, m, ##a, ##s, ##k, ].
    assert fill.pseudo_perplexity("[MASK]") == pytest.approx(fill.pseudo_perplexity("[ mask ]"))
    assert fill.next_sentence(("[MASK]", "a")) == fill.next_sentence(("[ mask ]", "a"))


@pytest.mark.parametrize("ask, part", [
    (lambda fill: fill("a b"), r"the text has no \[MASK\]; write"),
    (lambda fill: fill(["[MASK]", "a"]), r"text 1 has no \[MASK\]"),
    (lambda fill: fill("[MASK] " * 15), "the text has 17 tokens, but the model reads at most 16"),
    (lambda fill: fill(("a", "b", "[MASK]")), "has 3 parts; give a text, or a tuple of two"),
    (lambda fill: fill([3]), "text 0: found a value of type int in place of"),
    (lambda fill: fill("[MASK]", top_k=0), "top_k is 0; it must be a whole number from 1 to the"),
    (lambda fill: fill("[MASK]", top_k=2.0), "top_k is 2.0; it must be a whole number"),
    (lambda fill: fill("[MASK]", top_k=None), "top_k is None; it must be a whole number"),
    (lambda fill: fill.next_sentence(np.array(["a", "b"])), "pair 0 must be a tuple"),
    (lambda fill: fill.next_sentence("a"), "pair 0 must be a tuple of two texts"),
    (lambda fill: fill.pseudo_perplexity(["a", " "]), "text 1 has no token"),
    (lambda fill: fill.pseudo_perplexity([("a", "b")]), "text 0 has 2 parts; give one text"),
])
def test_what_cannot_be_asked_is_named(fill, ask, part):
    with pytest.raises(InputError, match=part):
        ask(fill)


@pytest.mark.parametrize("head, config, part", [
    (bert_tf.Regression, CONFIG, "has no masked LM, which predicts masked words; give"),
    (NextTokenLM, EncoderConfig(**{**CONFIG.to_dict(), "directionality": "left_to_right"}),
     "reads from left to right and predicts next words"),
    (RecurrentLM, SequenceLstmConfig(vocab_size=40, embedding_size=4, hidden_size=4),
     "reads from left to right and predicts next words"),
    (StreamLM, XLNetConfig(vocab_size=40, d_model=8, n_layer=1, n_head=2, d_head=4, d_inner=8,
                           directionality="left_to_right"),
     "reads from left to right and predicts next words"),
    (BidirectionalLM, ElmoConfig(vocab_size=40, projection_dim=4, dim=4, n_layers=1, filters=[]),
     "reads in both directions and predicts next words")])
def test_models_that_know_no_masks_are_named(head, config, part, tmp_path):
    folder = write(tmp_path, Learner(networks.build(config), [head(config)]))
    with pytest.raises(InputError, match=part):
        FillMask(folder)


def test_a_copy_opens_the_files_from_anywhere(tmp_path, monkeypatch):
    write(tmp_path / "run", Learner(networks.build(CONFIG), [bert_tf.MaskedLM(CONFIG)]))
    monkeypatch.chdir(tmp_path)
    kept = pickle.dumps(FillMask("run", vocab_file="run/vocab.txt"))
    monkeypatch.chdir("/")
    assert pickle.loads(kept).tokenizer.tokenize("a b") == ["a", "b"]


def test_what_opens_no_model_is_named(run):
    for given, part in (({"batch_size": 2.5}, "batch_size is 2.5; it must be a whole number"),
                        ({"dtype": "spam"}, "dtype is 'spam'; give"), ({"path": None}, "is None")):
        with pytest.raises(InputError, match=part):
            FillMask(**{"path": run, **given})


def test_a_model_without_next_sentences_says_so(tmp_path):
    folder = write(tmp_path, Learner(networks.build(CONFIG), [bert_tf.MaskedLM(CONFIG)]))
    with pytest.raises(InputError, match="was not trained to predict the next sentence"):
        FillMask(folder).next_sentence(("a", "b"))
