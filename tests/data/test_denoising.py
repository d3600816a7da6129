"""T5's noise, its pipelines and its rows, against the original's."""

import dataclasses
import gzip
import json

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.models.t5 import records as text_pairs
from bert_tf.models.t5 import segments as denoising
from bert_tf.models.t5.corruption import OBJECTIVES, spans_lengths
from tests.goldens import Material

GOLDEN = Material("golden/t5")
V, EOS = 32100, 1


def read(name):
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt") as file:
        return list(map(json.loads, file))


def test_masks_and_functions_equal_the_original():
    for row in read("noise_masks_seed1"):
        seeds, kind = np.array([row["seeds"]], np.int32), row["kind"]
        if kind == "regular" or row["random_roll"]:     # which no objective of T5 has
            continue
        mask = denoising.NOISE_MASKS["random_prefix" if kind == "prefix" else kind](
            seeds, row["length"], row["noise_density"], row["mean_noise_span_length"])
        assert "".join("01"[int(noise)] for noise in mask[0]) == row["mask"], row
    for row in read("noise_functions_seed1"):
        given = (np.array([row["tokens"]]), np.array([[c == "1" for c in row["mask"]]]),
                 np.array([row["seeds"]], np.int32))
        for name in denoising.NOISE_FUNCTIONS.keys() & row.keys():
            tokens, kept = denoising.NOISE_FUNCTIONS[name](*given, V)
            assert tokens[kept].tolist() == row[name], name
    for row in read("single_denoise_seed1"):
        objective = OBJECTIVES["span_corruption"].vary(
            row["noise_density"], row["mean_noise_span_length"])
        [pair] = denoising.corrupt(np.array([row["tokens"]]), objective,
                                   np.array([row["seed"]], np.int32), V)
        assert [side.tolist() for side in pair] == [row["inputs"], row["targets"]]
    for row in read("random_spans_helper"):
        assert list(spans_lengths(*(row[name] for name in (
            "inputs_length", "noise_density", "mean_noise_span_length")))) == (
                row["tokens_and_targets_length"])


@pytest.mark.parametrize("length, density, span, noise, spans", [
    (3, 0.5, 1, 2, 1), (7, 0.5, 1, 4, 3), (10, 0.9, 3, 9, 1), (10, 1, 1, 9, 1), (10, 0.4, 1, 4, 4)])
def test_no_more_spans_than_the_other_tokens_can_part(length, density, span, noise, spans):
    mask = denoising.random_spans(np.array([[[1, 2], [3, 4]]], np.int32), length, density, span)
    assert (mask.sum(), (np.diff(mask.astype(int)) == 1).sum()) == (noise, spans)


def vary(name, **values):
    return dataclasses.replace(OBJECTIVES[name], **values)


SHORT = {"most_tokens": 256}
FEW = {**SHORT, "concatenated": 4}
# The golden pipelines, and the lengths of their targets.
PIPELINES = {
    **{f"span_{span}_15_u_u": (vary("span_corruption", mean_noise_span_length=span), 64)
       for span in (2, 3, 5, 10)},
    "span_3_50_u_u": (vary("span_corruption", noise_density=0.5), 64),
    "span_3_15_no_merge": (vary("span_corruption", concatenated=0), 64),
    "iid_15_u_u": (OBJECTIVES["iid_u_u"], 64), "iid_15_m_f": (vary("iid_m_f", **FEW), 64),
    "iid_15_d_d": (vary("iid_d_d", **FEW), 64),
    "iid_15_r10s90_f": (vary("iid_r10s90_f", **FEW), 64),
    "all_permute": (vary("all_permute", **SHORT), 64), "prefix_lm": (OBJECTIVES["prefix_lm"], 64),
    "lm": (vary("lm", **FEW), 32), "full_lm": (OBJECTIVES["full_lm"], 32),
    "random_length": (vary("random_length", **SHORT), 64),
    "concat_fixed": (OBJECTIVES["fixed_length"], 32)}


def test_pipelines_equal_the_original():
    documents = [np.array(tokens, np.int32) for tokens in json.loads(
        (GOLDEN / "objectives_documents.json").read_text())]
    rows = read("objectives_seed1")
    assert {row["objective"] for row in rows} == PIPELINES.keys()
    for row in rows:
        objective, length = PIPELINES[row["objective"]]
        inputs, targets, _ = denoising.make_pairs(
            documents, objective, denoising.MapSeeds(row["map_seed"]), 64, length, V, EOS)
        # The original leaves final tokens to the task there.
        bare = row["objective"] in ("random_length", "concat_fixed")
        assert len(targets) == row["number_of_examples"]
        for example, source, target in zip(row["examples"], inputs, targets):
            assert (example.get("inputs", []), example["targets"]) == (
                source.tolist(), target[:len(target) - bare].tolist()), row["objective"]


def test_rows_equal_the_original():
    for row in read("features_packed_seed1"):
        inputs, targets = (denoising.Runs.join(np.array(pair[side], np.int32)
                                               for pair in row["source"])
                           for side in ("inputs", "targets"))
        pairs = text_pairs.TextPairs(inputs, targets, *row["sequence_length"].values(),
                                     pack=row["pack"])
        found = pairs.features(pairs.order)
        assert len(pairs.order) == len(row["examples"])
        for name in row["examples"][0].keys() | found.keys():
            assert np.array_equal(found[name], [row_[name] for row_ in row["examples"]]), name


def test_rows_of_a_prefix_lm():
    inputs, targets = (denoising.Runs.join(np.array(run) for run in side) for side in (
        ([5, 6, 1], [7, 1]), ([8, 1], [9, 10, 1])))
    pairs = text_pairs.TextPairs(inputs, targets, 8, 12, "prefix_lm", pack=True)
    found = {name: values.tolist() for name, values in pairs.features(pairs.order).items()}
    assert found == {
        "decoder_target_tokens": [[5, 6, 1, 8, 1, 7, 1, 9, 10, 1, 0, 0]],
        "decoder_input_tokens": [[0, 5, 6, 1, 8, 0, 7, 1, 9, 10, 0, 0]],
        "decoder_loss_weights": [[0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0]],
        "decoder_causal_attention": [[1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0]],
        "decoder_segment_ids": [[1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0]],
        "decoder_positions": [[0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 0]]}


@pytest.mark.parametrize("name, values, part", [
    ("lm", {"noise_density": 0.1}, "--noise_density has no effect"),
    ("iid_u_u", {"mean_noise_span_length": 2.0}, "--mean_noise_span_length has no effect")])
def test_noise_without_effect_is_refused(name, values, part):
    with pytest.raises(InputError, match=part):
        OBJECTIVES[name].vary(**values)
