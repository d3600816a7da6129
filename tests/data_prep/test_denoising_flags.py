"""Records of inputs and targets, from flags to shards, and what is refused."""

import dataclasses

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.records.features import RecordFormat, known
from bert_tf.data.records.manifest import load_manifest
from bert_tf.data.text.corpus import tokenize_documents
from bert_tf.errors import InputError
from bert_tf.models.t5 import records as text_pairs
from bert_tf.models.t5 import segments as denoising
from bert_tf.models.t5.corruption import OBJECTIVES
from bert_tf.tokenization.base import open_tokenizer
from data_prep import create_pretraining_data, verify_records
from data_prep.create_pretraining_data import PretrainingDataFlags
from data_prep.recipe_flags import DenoisingFlags
from tests.data_prep.conftest import TOKENS, WORDS, columns
from tests.rounding import assert_same


@pytest.fixture(name="make")
def fixture_make(tmp_path):
    """Function that makes records of a text; returns their features and their manifest."""
    rng = np.random.default_rng(1)
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("\n".join(
        "".join(" ".join(rng.choice(WORDS, 6)) + ".\n" for _ in range(5)) for _ in range(20)),
        encoding="utf-8")

    def make(name="r", job=None, recipe="t5", **flags):
        path = tmp_path / name / "r.tfrecord"
        create_pretraining_data.main(recipes.fill(PretrainingDataFlags, recipe, **{
            "input_file": [str(tmp_path / "text.txt")], "output_file": [str(path)],
            "vocab_file": str(tmp_path / "vocab.txt"), "max_seq_length": 16, "num_workers": 1,
            "random_seed": 7, **(job or {})}), None, DenoisingFlags(**flags))
        manifest = load_manifest(str(path.with_name("r.manifest.json")))
        verify_records.main(verify_records.VerifyRecordsFlags(
            input_file=[str(path.with_name("r.manifest.json"))]))
        return columns(*(path.with_name(shard["name"]) for shard in manifest["shards"])), manifest
    return make


@pytest.mark.parametrize("name", ["span_corruption", "iid_m_f", "lm"])
def test_records_are_the_rows_of_a_pipeline(make, tmp_path, name, capsys):
    found, manifest = make(objective=name, pack=True, job={"dupe_factor": 2})
    assert "wordpiece, whose last tokens are taken for sentinels" in capsys.readouterr().err
    objective = dataclasses.replace(OBJECTIVES[name], pack=True)
    tokenizer = open_tokenizer(str(tmp_path / "vocab.txt"), False)
    documents = tokenize_documents((tmp_path / "text.txt").read_text().split("\n"), tokenizer)
    starts, seeds = documents.sentence_starts, denoising.MapSeeds(7)
    texts = [documents.tokens[starts[first]:starts[end]] for first, end in documents.ranges]
    copies = [denoising.make_pairs(texts, objective, seeds, 16, objective.target_length(16),
                                   len(TOKENS), tokenizer.vocabulary.sep_id) for _ in range(2)]
    inputs, targets = (denoising.Runs.join(run for copy in copies for run in copy[side])
                       for side in (0, 1))
    pairs = text_pairs.TextPairs(inputs, targets, 16, objective.target_length(16),
                                 objective.converter, True)
    expected = pairs.features(pairs.order)
    assert found.keys() == set(manifest["features"])
    assert_same(found, expected)
    assert recipes.of_manifest(manifest).denoising == objective
    assert manifest["options"]["max_target_length"] == objective.target_length(16)


def test_workers_change_nothing(make):
    pieces = {"piece_bytes": 500}
    one, manifest = make(job=pieces)
    two, _ = make("two", job={**pieces, "num_workers": 2})
    assert len(manifest["shards"]) > 2
    assert_same(two, one)


@pytest.mark.parametrize("job, flags, part", [
    ({}, {"recipe": "bert", "pack": True}, "DenoisingFlags has no flags of recipe bert"),
    ({}, {"feature_converter": "lm"}, "this --objective has inputs; give encoder_decoder"),
    ({}, {"objective": "lm", "feature_converter": "prefix_lm"}, "has no inputs; give lm"),
    ({}, {"max_target_length": 1}, "--max_target_length is 1")])
def test_what_has_no_effect_is_refused(make, job, flags, part):
    with pytest.raises(InputError, match=part):
        make("refused", job, **flags)


def test_damage_is_found():
    targets = np.array([[5, 6, 1, 0], [5, 0, 6, 1]])
    features = {"decoder_target_tokens": targets, "decoder_loss_weights": targets > 0,
                "decoder_input_tokens": np.pad(targets[:, :-1], ((0, 0), (1, 0)))}
    form = RecordFormat(known(*features), {"max_target_length": 4}, 6)
    problems = verify_records.find_problems(features, form, {})
    assert {text: wrong.tolist() for text, wrong in problems.items() if wrong.any()} == {
        "decoder_input_tokens is not below 6.": [True, True],
        "decoder_target_tokens is not below 6.": [True, True],
        "decoder_target_tokens has padding before a token.": [False, True]}
