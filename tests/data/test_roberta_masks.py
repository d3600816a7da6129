"""RoBERTa's blocks and masks: fairseq's own, and the distributions that they are drawn from."""

import functools
import json

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data import masking
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.masking.dynamic import draw_uniforms
from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.models.roberta.masks import (
    BlockMasksInTraining,
    block_seed,
    drawable,
    mask_block,
)
from bert_tf.models.roberta.segments import cut_blocks
from bert_tf.tokenization import open_tokenizer
from data_prep.create_pretraining_data import PretrainingDataFlags

RECIPE = recipes.find("roberta")
BOS, PAD, EOS, UNK = range(4)


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return functools.cache(
        lambda name: dict(np.load(test_data / "golden" / "roberta" / f"{name}_seed1.npz")))


@pytest.fixture(name="tokenizer", scope="module")
def fixture_tokenizer(test_data):
    return open_tokenizer(test_data / "vocabs" / "roberta-base")


@pytest.fixture(name="documents", scope="module")
def fixture_documents(test_data, tokenizer):
    """The first 3,000 lines of the books."""
    with open(test_data / "text" / "books_sent.txt", encoding="utf-8") as file:
        lines = [next(file).removesuffix("\n") for _ in range(3000)]
    return corpus.tokenize_sentences([*lines, ""], tokenizer)


def options(**changes):
    return PretrainingDataFlags(**{
        "input_file": [], "output_file": [], "vocab_file": "", "recipe": "roberta",
        "max_seq_length": 128, "dupe_factor": 1, "random_seed": 1, **changes})


def make(documents, tokenizer, recipe, **changes):
    """The instances in the order of the text."""
    found = create_instances(documents, tokenizer.vocabulary, 1, recipe, options(**changes))
    return found, found.features(np.arange(len(found.slices)), changes.get("max_seq_length", 128),
                                 tokenizer.vocabulary)


def split(values, lengths):
    return np.split(values.astype(np.int64), np.cumsum(lengths)[:-1])


@pytest.mark.parametrize("mode", ["complete", "complete_doc", "none", "eos"])
def test_blocks_are_cut_as_fairseq_cuts_them(golden, mode):
    slices = golden("slices")
    for case in range(60):
        found = cut_blocks(slices[f"{case}_sizes"].tolist(), int(slices[f"{case}_block_size"]),
                           mode)
        assert list(found) == list(map(tuple, slices[f"{case}_{mode}"])), case
    packing = golden("packing")
    for size in (64, 128, 512):
        found = list(cut_blocks(packing["sentence_sizes"].tolist(), size - 1, mode))
        assert [1 + end - start for start, end in found] == packing[
            f"{mode}_{size}_lengths"].tolist()
        # Without <s>, whose id is 0.
        sums = [packing["sentence_tokens"][start:end].astype(int) @ np.arange(2, end - start + 2)
                for start, end in found]
        assert sums == packing[f"{mode}_{size}_checksum"].tolist()


def test_sentences_are_those_of_fairseq(golden, documents):
    packing = golden("packing")
    assert np.array_equal(documents.tokens, packing["sentence_tokens"])
    assert np.array_equal(np.diff(documents.sentence_starts), packing["sentence_sizes"])


@pytest.mark.parametrize("segments, mode", [("full_sentences", "complete"),
                                            ("doc_sentences", "complete_doc")])
def test_records_are_fairseqs_blocks(golden, documents, tokenizer, segments, mode):
    packing = golden("packing")
    lengths = packing[f"{mode}_128_lengths"]
    blocks = [block for block in split(packing[f"{mode}_128_tokens"], lengths) if len(block) <= 128]
    found, features = make(documents, tokenizer, RECIPE.vary({"pairing": segments}))
    assert found.left_out == (lengths > 128).sum() > 0
    assert [row[:count].tolist() for row, count in zip(
        features["input_ids"], features["input_mask"].sum(1))] == [
            block.tolist() for block in blocks]
    assert not features["segment_ids"].any() and sorted(found.order) == list(range(len(blocks)))


KINDS = {"subwords": {}, "whole_words": {"units": "words"}, "all_mask": {"shares": (1.0, 0.0)},
         "mask30": {"masked_lm_prob": 0.3, "shares": (0.85, 0.05)}}


@pytest.mark.parametrize("kind", KINDS)
def test_static_masks_are_fairseqs_bit_for_bit(golden, tokenizer, kind):
    masks = golden("masking")
    blocks = split(masks["block_tokens"], masks["block_lengths"])
    limits = drawable(tokenizer.vocabulary.size, tokenizer.vocabulary.special_ids)
    settings = dict(KINDS[kind])
    words = settings.pop("units", None)
    for epoch in (1, 2):
        assert [block_seed(1, epoch, i) for i in range(120)] == masks[
            f"rng_seeds_epoch{epoch}"].tolist()
        for prefix, generator in (("head", "default_rng"), ("v090", "random_state")):
            if f"{prefix}_{kind}_epoch{epoch}_source" not in masks:
                continue
            found = [mask_block(
                block, 1, epoch, index, limits=limits, mask_id=50264, generator=generator,
                begins=~tokenizer.continues[block] if words else None, **settings)
                for index, block in enumerate(blocks)]
            for side, values in zip(("source", "target"), zip(*found)):
                assert np.array_equal(np.concatenate(values),
                                      masks[f"{prefix}_{kind}_epoch{epoch}_{side}"])


def test_figures_of_eight_epochs_are_fairseqs(golden, test_data, tokenizer):
    vocabulary = tokenizer.vocabulary
    limits = drawable(vocabulary.size, vocabulary.special_ids)
    # fairseq draws any token but the four, <mask> too.
    assert np.flatnonzero(np.diff(limits, prepend=0) == 0).tolist() == [BOS, PAD, EOS, UNK]
    packing = golden("packing")
    counts = dict.fromkeys(("tokens", "chosen", "mask", "kept", "special", "special_chosen"), 0)
    for index, (start, end) in enumerate(cut_blocks(
            packing["sentence_sizes"].tolist(), 511, "complete")):
        block = np.concatenate([[BOS], packing["sentence_tokens"][start:end].astype(int)])
        special = np.isin(block, [BOS, EOS])
        for epoch in range(1, 9):
            source, target = mask_block(
                block, 1, epoch, index, limits=limits, mask_id=vocabulary.mask_id,
                generator="default_rng", begins=None)
            chosen = target != PAD
            for name, which in (("tokens", block >= 0), ("chosen", chosen), ("special", special),
                                ("mask", chosen & (source == 50264)),
                                ("kept", chosen & (source == block)),
                                ("special_chosen", chosen & special)):
                counts[name] += int(which.sum())
    wanted = json.loads((test_data / "golden/roberta/masking_figures_seed1.json").read_text())
    assert counts == {name: wanted[name] for name in counts}
    assert counts["chosen"] - counts["mask"] - counts["kept"] == wanted["random"]


@pytest.mark.parametrize("units", ["subwords", "words"])
def test_records_hold_the_masks_of_each_epoch(golden, documents, tokenizer, units):
    masks = golden("masking")
    kind = {"subwords": "subwords", "words": "whole_words"}[units]
    fits = masks["block_lengths"] <= 128
    _, features = make(documents, tokenizer, RECIPE.vary(
        corruption={"dynamic": False, "units": units}), dupe_factor=2, max_predictions_per_seq=60)
    copies = len(features["input_ids"]) // 2
    for epoch in (1, 2):
        sides = [split(masks[f"head_{kind}_epoch{epoch}_{side}"], masks["block_lengths"])
                 for side in ("source", "target")]
        wanted = [pair for pair, fit in zip(zip(*sides), fits) if fit]
        for row, (source, target) in enumerate(wanted, (epoch - 1) * copies):
            found = {name: features[name][row] for name in features}
            assert np.array_equal(found["input_ids"][:len(source)], source)
            positions = np.flatnonzero(target != PAD)
            used = found["masked_lm_weights"] > 0
            assert np.array_equal(found["masked_lm_positions"][used], positions)
            assert np.array_equal(found["masked_lm_ids"][used], target[positions])


def test_lines_are_read_as_python_reads_them(tokenizer):
    lines = ["a\rb", " \x1c", "", "c \r", ""]
    found = corpus.tokenize_sentences(lines, tokenizer)
    sentences = np.split(found.tokens, found.sentence_starts[1:-1])
    assert [tokenizer.tokens(ids) for ids in sentences] == [
        ["a", "</s>"], ["b", "</s>"], ["</s>"], ["</s>"], ["c", "</s>"]]
    assert found.ranges == [(0, 2), (4, 5)]
    found = corpus.tokenize_sentences(lines, tokenizer, blanks_separate_docs=False)
    assert found.sentence_starts == [0, 2, 4, 6] and found.ranges == [(0, 3)]


def test_sentence_pairs(documents, tokenizer):
    plain = corpus.Documents(np.arange(60), list(range(0, 61, 3)), [(0, 1), (1, 8), (8, 20)],
                             np.zeros(60, np.uint8))
    document = np.repeat([0, 1, 2], [1, 7, 12])
    recipe = RECIPE.vary({"pairing": "sentence_pairs", "sentence_ends": False})
    found = create_instances(plain, tokenizer.vocabulary, 5, recipe, options(dupe_factor=40))
    a, b, is_random = found.slices[:, 0] // 3, found.slices[:, 2] // 3, found.slices[:, 4]
    assert (found.slices[:, [1, 3]] == 3).all() and "next_sentence_labels" in found.names
    assert (b == a + 1)[is_random == 0].all() and (document[a] == document[b])[is_random == 0].all()
    assert (document[a] != document[b])[is_random == 1].all()
    assert (is_random[np.isin(a, [0, 7, 19])] == 1).all()       # no sentence follows
    assert set(a) == set(range(20)) and 0.4 < is_random.mean() < 0.75


@pytest.mark.parametrize("flags, said", [
    ({"max_predictions_per_seq": 19},
     "--max_predictions_per_seq is 19, .* can have 20 predictions"),
    ({"recipe": "bert", "segments": "full_sentences", "max_predictions_per_seq": 20},
     "--segments=full_sentences puts separators .*--masking=dynamic")])
def test_refusals(flags, said):
    job = options(**flags)
    with pytest.raises(InputError, match=said):
        masking.find(job.resolve().corruption).check_slots(job.max_predictions_per_seq, 128, 0.15)


SIZE, VOCAB, MASK = 64, 300, 7


def dynamic(**changes):
    return BlockMasksInTraining(masking.find(RECIPE.corruption.vary(changes)), SIZE, SIZE, 0.15,
                                VOCAB, MASK, (BOS, PAD, EOS, UNK))


def batch(rows, seed=0):
    """Sequences of 30 to 64 tokens with separators in them, and where their words begin."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(30, SIZE + 1, rows)
    ids = rng.integers(8, VOCAB, (rows, SIZE))
    ids[rng.random(ids.shape) < 0.05] = EOS
    ids[:, 0], ids[np.arange(rows), lengths - 1] = BOS, EOS
    mask = np.arange(SIZE) < lengths[:, None]
    begins = (rng.random(ids.shape) < 0.7) | (ids < 4)
    return {"input_ids": np.where(mask, ids, PAD).astype("int32"),
            "input_mask": mask.astype("int32"), "token_boundary": (begins & mask).astype("int32")}


def reference(ids, begins, uniforms):
    """One record masked: hidden ids, chosen positions and labels."""
    starts = np.flatnonzero(begins)
    units = np.split(np.arange(len(ids)), starts[1:])
    keys, die, drawn, rounding = np.split(uniforms, [SIZE, 2 * SIZE, 3 * SIZE])
    count = int(np.float32(0.15) * np.float32(len(units)) + rounding[0])
    chosen = sorted(place for unit in np.argsort(keys[:len(units)], kind="stable")[:count]
                    for place in units[unit])
    unit_of = {place: number for number, unit in enumerate(units) for place in unit}
    hidden = ids.copy()
    for slot, place in enumerate(chosen):
        throw = die[unit_of[place]]
        if throw < np.float32(0.8):
            hidden[place] = MASK
        elif throw < np.float32(0.9):
            hidden[place] = 4 + int(drawn[slot] * np.float32(VOCAB - 4))
    return hidden, chosen


@pytest.mark.parametrize("units", ["subwords", "words"])
def test_dynamic_masks_against_a_slow_reference(units):
    found, numbers = batch(50), np.arange(50) * 7
    if units == "subwords":
        found["token_boundary"] = found["input_mask"]
    given = {name: value for name, value in found.items()
             if units == "words" or name != "token_boundary"}
    after = {name: np.asarray(value)
             for name, value in dynamic(units=units)(given, 3, numbers).items()}
    uniforms = draw_uniforms(3, numbers, 3 * SIZE + 1).numpy()
    for row in range(50):
        length = found["input_mask"][row].sum()
        hidden, chosen = reference(found["input_ids"][row, :length],
                                   found["token_boundary"][row, :length], uniforms[row])
        used = after["masked_lm_weights"][row] > 0
        assert np.array_equal(after["input_ids"][row, :length], hidden)
        assert after["masked_lm_positions"][row][used].tolist() == chosen
        assert np.array_equal(after["masked_lm_ids"][row][used], found["input_ids"][row][chosen])
        assert not after["masked_lm_positions"][row][~used].any()
    part = dynamic(units=units)({name: value[20:30] for name, value in given.items()}, 3,
                                numbers[20:30])
    assert all(np.array_equal(part[name], after[name][20:30]) for name in after)
