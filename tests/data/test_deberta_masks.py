"""DeBERTa's masks: the original's draws, and a slow reference of those of training."""

import json
import types

import numpy as np
import pytest

from bert_tf.data import masking
from bert_tf.data.masking.base import MASK, quotas
from bert_tf.data.text.corpus import Documents
from bert_tf.data.text.python_random import PythonRandom
from bert_tf.models.deberta.masks import NgramMasksInTraining
from bert_tf.recipes import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary

SPECIAL, SIZE, PROB = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], 64, 0.15


def masks_of(ngram=3, units="words", shares=(0.8, 0.1)):
    return masking.find(MaskTokens("deberta", units, shares=shares, settings={"ngram": ngram}))


def test_the_original_draws_the_same(test_data):
    """NGramMaskGenerator with random.Random(seed). Tokens of a last word beyond the bound, which
    records have no room for, stay in the text here."""
    golden = json.loads((test_data / "golden" / "deberta" / "ngram_masking.json").read_text())
    vocabulary, cut = Vocabulary(golden["vocabulary"]), 0
    for row in golden["rows"]:
        settings, tokens = row["settings"], row["tokens"]
        ids = np.array([vocabulary.ids[token] for token in tokens], np.int32)
        inner, ngram = ids[1:-1], settings.get("max_gram", 1)
        # part_of_whole_word of its SentencePiece tokenizer.
        goes_on = [not token.startswith("\u2581") and token not in (".", ",", *SPECIAL)
                   for token in tokens[1:-1]]
        documents = Documents(inner, [0, len(inner)], [(0, 1)], np.array(goes_on, np.uint8))
        masked = settings.get("mask_prob", 0.8)
        options = types.SimpleNamespace(
            max_seq_length=len(ids), masked_lm_prob=settings.get("mask_lm_prob", PROB),
            max_predictions_per_seq=settings.get("max_preds_per_seq", 80))
        masks = masks_of(ngram, "words" if ngram > 1 else "subwords", (
            masked, round(1 - masked - settings.get("keep_prob", 0.1), 12))).static_masks(
                documents, vocabulary, PythonRandom(row["seed"]), options, len(inner))
        masks.draw(0, len(inner), 0, 0)
        found, places = ids[None].copy(), np.flatnonzero(row["labels"])
        features = masks.place().hide(found, vocabulary.mask_id)
        used = features["masked_lm_weights"][0] > 0
        room = options.max_predictions_per_seq
        assert features["masked_lm_positions"][0][used].tolist() == places[:room].tolist()
        assert (features["masked_lm_ids"][0][used] == np.array(row["labels"])[places[:room]]).all()
        wanted = np.array([vocabulary.ids[token] for token in row["masked"]])
        wanted[places[room:]] = ids[places[room:]]
        assert found[0].tolist() == wanted.tolist()
        assert masks.cut == max(0, len(places) - room)
        cut += masks.cut
    assert cut


def reference(ids, length, boundary, uniforms, ngram, quota, special):
    """The places that one record hides, one window at a time."""
    units = []
    for place in range(length):
        if ids[place] not in special:
            if units and not boundary[place]:
                units[-1].append(place)
            else:
                units.append([place])
    limits = np.cumsum(1 / np.arange(1, ngram + 1)) / sum(1 / np.arange(1, ngram + 1))
    chosen, offset, window = [], 0, 0
    while offset < len(units):
        size = 1 + int((uniforms[2 * window] >= limits[:-1].astype(np.float32)).sum())
        width = min(6 * size, len(units) - offset)
        first = offset + min(int(uniforms[2 * window + 1] * np.float32(width)), width - 1)
        chosen += units[first:first + size]
        offset, window = max(offset + width, first + size), window + 1
    places = []
    for unit in chosen:
        places += unit
        if len(places) >= quota:
            break
    return places


@pytest.mark.parametrize("ngram", [1, 3, 9])
@pytest.mark.parametrize("units", ["words", "subwords"])
def test_masks_that_training_draws(ngram, units):
    rng, slots, vocab_size = np.random.default_rng(ngram), 10, 60
    lengths = rng.integers(2, SIZE + 1, 40)
    mask = (np.arange(SIZE) < lengths[:, None]).astype(np.int32)
    ids = (rng.integers(3, vocab_size, mask.shape) * mask).astype(np.int32)
    ids[:, 0], ids[np.arange(40), lengths - 1] = 1, 2
    boundary = (rng.random(mask.shape) < (0.7 if units == "words" else 1)).astype(np.int32)
    masks = NgramMasksInTraining(masks_of(ngram, units), SIZE, slots, PROB, vocab_size, 4,
                                 (0, 1, 2, 3))
    uniforms = rng.random((40, masks.columns), np.float32)
    after = {name: np.asarray(value) for name, value in masks.hide(
        ids, mask, uniforms, boundary if units == "words" else None).items()}
    most = quotas(SIZE, PROB, slots)
    for row, length in enumerate(lengths):
        wanted = reference(ids[row], length, boundary[row], uniforms[row], ngram, most[length],
                           range(5))[:slots]
        used = after["masked_lm_weights"][row] > 0
        assert after["masked_lm_positions"][row][used].tolist() == wanted
        assert after["masked_lm_ids"][row][used].tolist() == ids[row][wanted].tolist()
        others = np.setdiff1d(np.arange(SIZE), wanted)
        assert (after["input_ids"][row][others] == ids[row][others]).all()


def test_replacements_without_random_tokens_and_without_text():
    documents = Documents(np.full(6, 3, np.int32), [0, 6], [(0, 1)], np.zeros(6, np.uint8))
    options = types.SimpleNamespace(max_seq_length=8, masked_lm_prob=PROB,
                                    max_predictions_per_seq=masks_of().most_predictions(512, PROB))
    assert options.max_predictions_per_seq == 80
    assert (masks_of(0).longest, masks_of(0, "subwords").longest, masks_of(5).longest) == (3, 1, 5)
    masks = masks_of(shares=(1.0, 0.0)).static_masks(
        documents, Vocabulary([*SPECIAL, "a"]), PythonRandom(1), options, 6)
    masks.draw(0, 6, 0, 0)      # unknown words alone
    documents.tokens[:] = 5
    masks.draw(0, 6, 0, 0)
    placed = masks.place()
    assert placed.counts[0] == 0 < placed.counts[1]
    assert set(placed.replacements[placed.used]) == {MASK}
