"""ERNIE's masks and reader: numbers of PaddlePaddle/ERNIE, a slow account, and distributions."""

import gzip
import json
import types

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.masking import find
from bert_tf.data.masking.base import KEEP, MASK
from bert_tf.data.text.corpus import Documents
from bert_tf.errors import InputError
from bert_tf.models.ernie import masks as ernie
from bert_tf.models.ernie import samples as ernie_samples
from bert_tf.recipes.recipe import MaskTokens
from bert_tf.tokenization.vocabulary import Vocabulary

VOCAB_SIZE, MASK_ID = 30522, 103
RUNS = {"plain": (False, 128), "negatives": (True, 128), "short": (True, 48)}
FILES = (("phrase", 1.1), ("entity", 0.5), ("word", 0.0))


@pytest.fixture(name="folder", scope="module")
def fixture_folder(test_data):
    return test_data / "golden" / "ernie"


def seen(ids, shown, mask_id=MASK_ID):
    return np.where(shown == MASK, mask_id, np.where(shown == KEEP, ids, shown))


def flat_places(chosen, lengths):
    """sample * longest + position of the chosen tokens."""
    places = np.flatnonzero(chosen)
    starts = np.cumsum(lengths) - lengths
    rows = np.searchsorted(starts, places, "right") - 1
    return rows * lengths.max() + places - starts[rows]


@pytest.mark.parametrize("level, kind", [
    ("word", "units"), ("word", "tokens"), ("phrase", "units"), ("entity", "units")])
def test_masks_are_those_of_the_original(folder, level, kind):
    golden = np.load(folder / "masks_seed1.npz")
    figures = json.loads((folder / "mask_figures_seed1.json").read_text())[f"{level}_{kind}"]
    lengths, ids = golden[f"{level}_lengths"], golden[f"{level}_ids"]
    labels = golden[f"{level}_seg_labels"].astype(int)
    first = np.zeros(len(ids), bool)
    first[np.cumsum(lengths) - lengths] = True
    counts = {"tokens": figures["draws"] * int((labels >= 0).sum()), "chosen": 0, "mask": 0,
              "kept": 0}
    for seed in range(1, figures["draws"] + 1):
        chosen, shown = ernie.draw_coins(
            np.random.RandomState(seed), labels, first, np.full(len(ids), kind == "units"),
            VOCAB_SIZE)
        after = seen(ids, shown)
        for name, values in (("chosen", chosen), ("mask", chosen & (after == MASK_ID)),
                             ("kept", chosen & (after == ids))):
            counts[name] += int(values.sum())
        if seed > 2:
            continue
        name = f"{level}_{kind}_seed{seed}"
        assert np.array_equal(seen(ids, shown), golden[f"{name}_masked_ids"])
        assert np.array_equal(ids[chosen], golden[f"{name}_mask_label"])
        assert np.array_equal(flat_places(chosen, lengths), golden[f"{name}_mask_pos"])
    assert counts == {name: figures[name] for name in counts}


@pytest.mark.parametrize("run", RUNS)
def test_batches_are_those_of_the_original(folder, run):
    golden = np.load(folder / "reader_seed1.npz")
    negatives, size = RUNS[run]
    rng, left_out = np.random.RandomState(1), []
    files = [(str(folder / f"reader_input_{level}_seed1.txt.gz"), p) for level, p in FILES]
    samples = ernie_samples.read_samples(files, rng, size, negatives, left_out.append)
    count = 0
    for count, batch in enumerate(ernie_samples.batches(samples, 1024), 1):
        chosen, shown = ernie_samples.mask_batch(batch, rng, VOCAB_SIZE)
        if count > 12:
            continue
        wanted = {key: golden[f"{run}_{count - 1}_{key}"] for key in (
            "src_ids", "sent_ids", "mask_label", "mask_pos", "labels", "input_mask", "pos_ids")}
        lengths = np.array([len(sample.ids) for sample in batch])
        ids = np.concatenate([sample.ids for sample in batch])
        is_token = np.arange(lengths.max()) < lengths[:, None]
        for key, values in (("src_ids", seen(ids, shown)), ("sent_ids", np.concatenate(
                [sample.segments for sample in batch]))):
            padded = np.zeros(is_token.shape, int)
            padded[is_token] = values
            assert np.array_equal(padded, wanted[key].reshape(padded.shape)), (count, key)
        assert np.array_equal(is_token, wanted["input_mask"].reshape(is_token.shape) > 0)
        assert np.array_equal(ids[chosen], wanted["mask_label"].ravel())
        assert np.array_equal(flat_places(chosen, lengths), wanted["mask_pos"].ravel())
        assert [sample.label for sample in batch] == wanted["labels"].ravel().tolist()
    assert count == int(golden[f"{run}_batches"])
    assert bool(left_out) == (run == "short")


def slow_units(labels):
    """The units of one sequence, token by token: lists of positions, and whether each is closed."""
    found, unit = [], None
    for place, label in enumerate(labels):
        if label == ernie.GOES_ON:
            if unit:
                unit.append(place)
            continue
        if unit:
            found.append((unit, True))
        unit = [place] if label == ernie.BEGINS else None
    return found + ([(unit, False)] if unit else [])


def test_a_unit_has_one_coin_and_each_token_its_throw():
    rng = np.random.default_rng(1)
    lengths = rng.integers(2, 12, 400)
    labels = rng.choice([-1, 0, 1], lengths.sum(), p=[0.1, 0.5, 0.4])
    starts = np.cumsum(lengths) - lengths
    first = np.zeros(len(labels), bool)
    first[starts] = True
    uniforms, ids = rng.random(len(labels)), np.arange(len(labels))
    chosen, shown = ernie.throw_coins(labels, first, np.ones(len(labels), bool), uniforms, ids,
                                           masked_lm_prob=0.3)
    wanted = np.zeros(len(labels), bool)
    for start, length in zip(starts, lengths):
        for unit, is_closed in slow_units(labels[start:start + length]):
            unit = np.array(unit) + start
            if uniforms[unit[0]] > 0.3 or not is_closed or unit[0] == start:
                continue
            wanted[unit] = True
            for place in unit:
                scaled = uniforms[place] / (0.3 if place == unit[0] else 1)
                kind = MASK if scaled > 0.2 else place if scaled > 0.1 else KEEP
                assert shown[place] == kind
    assert np.array_equal(chosen, wanted) and wanted.sum() > 100
    assert (shown[~chosen] == KEEP).all()


# The same in records, static and dynamic

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = Vocabulary([*SPECIAL, *(f"w{i}" for i in range(400))])
SIZE, SLOTS = 64, 45


def instances(dynamic, slots=SLOTS, dupe_factor=40):
    rng = np.random.default_rng(2)
    tokens = rng.integers(len(SPECIAL), VOCABULARY.size, 3000).astype(np.int32)
    units = (rng.random(3000) < 0.5).astype(np.uint8)
    starts = list(range(0, 3001, 10))
    documents = Documents(tokens, starts, [(i, i + 30) for i in range(0, 300, 30)],
                          np.zeros_like(units), units=units)
    recipe = recipes.find("ernie").vary(corruption={"dynamic": dynamic, "units": "tags"})
    options = types.SimpleNamespace(max_seq_length=SIZE, max_predictions_per_seq=slots,
                                    dupe_factor=dupe_factor, short_seq_prob=0.1,
                                    masked_lm_prob=0.15)
    return create_instances(documents, VOCABULARY, 5, recipe, options)


def features(made):
    return made.features(np.arange(len(made.slices)), SIZE, VOCABULARY)


@pytest.fixture(name="static", scope="module")
def fixture_static():
    return features(instances(dynamic=False))


@pytest.fixture(name="drawn", scope="module")
def fixture_drawn():
    found = {name: np.asarray(value).astype(np.int32)
             for name, value in features(instances(dynamic=True)).items()}
    masks = ernie.CoinMasksInTraining(
        find(MaskTokens("ernie", "tags", replace_from="tokens", dynamic=True)), SIZE, SLOTS, 0.15,
        VOCABULARY.size, VOCABULARY.mask_id, (VOCABULARY.cls_id, VOCABULARY.sep_id))
    hidden = masks(found, 3, np.arange(len(found["input_ids"])))
    return {name: np.asarray(value) for name, value in hidden.items()}


@pytest.mark.parametrize("way", ("static", "drawn"))
def test_shares_are_those_of_coins(way, request):
    found = request.getfixturevalue(way)
    used = found["masked_lm_weights"] > 0
    ids, labels = found["input_ids"], found["masked_lm_ids"]
    now = np.take_along_axis(ids, found["masked_lm_positions"], 1)[used]
    was = labels[used]
    tokens = (found["input_mask"] > 0).sum() - 3 * len(ids)
    # A unit has two tokens on average, which are predicted together.
    spread = 3 * np.sqrt(0.15 * 0.85 * 3 / tokens)
    assert abs(used.sum() / tokens - 0.15) < spread
    for share, rate in ((0.8, (now == VOCABULARY.mask_id).mean()), (0.1, (now == was).mean())):
        assert abs(share - rate) < 3 * np.sqrt(share * (1 - share) / len(now)) + 1e-3
    assert now.min() > 0        # never padding
    others = now[(now != was) & (now != VOCABULARY.mask_id)]
    assert len(np.unique(others)) > 300 and (others < len(SPECIAL)).any()
    assert used.sum(1).min() == 0 < used.sum(1).max() < SLOTS


def test_static_and_dynamic_masks_are_other_draws_of_one_text(static, drawn):
    assert np.array_equal(static["next_sentence_labels"], drawn["next_sentence_labels"])
    for found in (static, drawn):
        ids = found["input_ids"].copy()
        used = found["masked_lm_weights"] > 0
        rows = np.nonzero(used)[0]
        ids[rows, found["masked_lm_positions"][used]] = found["masked_lm_ids"][used]
        found["whole"] = ids
    assert np.array_equal(static["whole"], drawn["whole"])
    assert not np.array_equal(static["input_ids"], drawn["input_ids"])


def test_labels_are_the_opposite_of_berts_and_what_has_no_room_is_counted():
    ours, many = instances(False, slots=4, dupe_factor=4), instances(False, dupe_factor=4)
    bert = create_instances(ours.documents, VOCABULARY, 5, recipes.find("bert"),
                            types.SimpleNamespace(max_seq_length=SIZE, max_predictions_per_seq=4,
                                                  dupe_factor=4, short_seq_prob=0.1,
                                                  masked_lm_prob=0.15))
    assert ours.slices[:, 4].any() and bert.slices[:, 4].any()
    found = features(ours)
    assert np.array_equal(found["next_sentence_labels"][:, 0], 1 - ours.slices[:, 4])
    cut = many.masks.counts.astype(int)
    assert ours.cut == np.maximum(cut - 4, 0).sum() > 0 == many.cut
    assert instances(True, slots=4, dupe_factor=4).cut == ours.cut


@pytest.mark.parametrize("line, problem", [
    (b"1 2;0 0;0 1;-1 -1", "has 4 fields"), (b"1 2;0;0 1;-1 -1;1", "different lengths"),
    (b"1 2;0 0;1 2;-1 -1;1", "positions"), (b"1 2;0 2;0 1;-1 -1;1", "a segment or a label"),
    (b"1 2;0 0;0 1;-1 5;1", "seg_labels"), (b"1 x;0 0;0 1;-1 -1;1", "x")])
def test_a_line_that_is_no_sample_is_named(tmp_path, line, problem):
    path = tmp_path / "samples.gz"
    path.write_bytes(gzip.compress(b"1 2;0 0;0 1;-1 -1;1\n" + line + b"\n"))
    with pytest.raises(InputError, match=f"samples.gz, line 2: .*{problem}"):
        list(ernie_samples.read_file(str(path), 8, print))
