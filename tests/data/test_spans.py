"""SpanBERT's blocks and spans: equal to its code's, and drawn alike while training."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import data, recipes
from bert_tf.data import masking
from bert_tf.data.instances.pretraining import create_instances
from bert_tf.data.records import tfrecord
from bert_tf.data.text import corpus
from bert_tf.data.text.corpus import Documents
from bert_tf.errors import InputError
from bert_tf.models.spanbert.masks import DynamicSpans
from bert_tf.recipes.recipe import Segments, load
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.vocabulary import Vocabulary
from data_prep import create_pretraining_data

# What differs in each run of the golden file from the recipe.
RUNS = {"span_512": {}, "span_128": {}, "span_24": {},
        "uniform_128": {"geometric_p": 1e-9, "max_pair_targets": 4},
        "word_piece_128": {"replacement_method": "word_piece"},
        "internal_128": {"endpoints": "internal"}, "random_128": {"schemes": ("random",)},
        "ner_128": {"schemes": ("ner_span",)}, "mixed_128": {"schemes": ("random", "pair_span")}}
PROB = 0.15


def recipe_of(**corruption):
    return recipes.find("spanbert").vary({}, {"dynamic": False, **corruption})


def instances(documents, vocabulary, size, seed=1, dupe_factor=1, **corruption):
    recipe = recipe_of(**corruption)
    return create_instances(documents, vocabulary, seed, recipe, types.SimpleNamespace(
        max_seq_length=size, dupe_factor=dupe_factor, short_seq_prob=0.0, masked_lm_prob=PROB,
        max_predictions_per_seq=masking.find(recipe.corruption).most_predictions(size, PROB)))


@pytest.fixture(name="vocab_path", scope="module")
def fixture_vocab_path(test_data):
    return str(test_data / "vocabs/bert-base-cased/vocab.txt")


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    with np.load(test_data / "golden/spanbert/masks_seed1.npz") as file:
        return dict(file)


@pytest.fixture(name="text", scope="module")
def fixture_text(golden, vocab_path):
    vocabulary = Vocabulary.from_file(vocab_path)
    sizes, tokens = golden["sentence_sizes"], golden["tokens"].astype(np.int32)
    lengths = sizes[sizes > 0]
    number = np.cumsum(sizes == 0)[sizes > 0]
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
    continues = np.array([token.startswith("##") for token in vocabulary.tokens])[tokens]
    return vocabulary, Documents(
        tokens, [0, *np.cumsum(lengths).tolist()], list(zip(edges, edges[1:])),
        continues.astype(np.uint8), is_open=bool(sizes[-1]),
        entities=np.unpackbits(golden["entity_bits"])[:len(tokens)])


def targets(found):
    """The tokens to predict by position, [B, S]."""
    target, used = np.zeros_like(found["input_ids"]), found["masked_lm_weights"] > 0
    target[np.nonzero(used)[0], found["masked_lm_positions"][used]] = found["masked_lm_ids"][used]
    return target


def pairs(found, most):
    """A row for each span that is predicted from its boundary: block, the two positions, tokens;
    one of zeros for a block without any."""
    rows: dict = {}
    for block, weights in enumerate(found["span_weights"]):
        for slot in np.flatnonzero(weights):
            place = block, *(found[name][block, slot] for name in ("span_left", "span_right"))
            tokens = rows.setdefault(place, [0] * most)
            tokens[found["span_offset"][block, slot]] = found["masked_lm_ids"][block, slot]
        if not weights.any():
            rows[block, 0, 0] = [0] * most
    return np.array([[*place, *tokens] for place, tokens in rows.items()])


@pytest.mark.parametrize("run", RUNS)
def test_masks_are_those_of_the_original(run, golden, text):
    vocabulary, documents = text
    size = int(run.rpartition("_")[2])
    made = instances(documents, vocabulary, size, **RUNS[run])
    blocks, lengths = golden[f"blocks_{size}"], golden[f"{run}_lengths"]
    assert np.array_equal(made.slices[:, :2], np.stack([blocks[:, 0], np.diff(blocks)[:, 0]], 1))
    found = made.features(np.arange(len(lengths)), size, vocabulary)
    shown = found["input_mask"]
    assert np.array_equal(shown.sum(1), lengths)
    assert np.array_equal(found["input_ids"][shown], golden[f"{run}_source"])
    assert np.array_equal(targets(found)[shown], golden[f"{run}_target"])
    most = masking.find(recipe_of(**RUNS[run]).corruption).max_pair_targets
    assert np.array_equal(pairs(found, most), golden[f"{run}_pairs"])


@pytest.mark.parametrize("size, times", [(512, 4), (128, 2)])
def test_figures_are_those_of_the_original(size, times, text, test_data):
    vocabulary, documents = text
    made = instances(documents, vocabulary, size, dupe_factor=times)
    found = made.features(np.arange(len(made.slices)), size, vocabulary)
    shown, target = found["input_mask"], targets(found)
    chosen = target > 0
    begins = chosen & ~np.pad(chosen, ((0, 0), (1, 0)))[:, :-1]
    spans = (np.cumsum(begins).reshape(begins.shape) * chosen).ravel()

    def wholly(which):
        """How many spans are such at each of their tokens."""
        return int((np.bincount(spans, (which & chosen).ravel()) == np.bincount(spans))[1:].sum())

    wanted = json.loads((test_data / "golden/spanbert/mask_figures_seed1.json").read_text())
    wanted = wanted[str(size)]
    counts = {"tokens": int(shown.sum()) - 2 * len(shown), "chosen": int(chosen.sum()),
              "budget": int(chosen.sum()), "spans": int(begins.sum()),
              "masked spans": wholly(found["input_ids"] == vocabulary.mask_id),
              "kept spans": wholly(found["input_ids"] == target),
              "pairs": int((pairs(found, 15)[:, 3:] > 0).any(1).sum())}
    assert counts == {name: wanted[name] for name in counts}


def test_the_command_writes_them(golden, vocab_path, test_data, tmp_path):
    with open(test_data / "text/books_sent.txt", encoding="utf-8") as file:
        (tmp_path / "text.txt").write_text("".join(file.readline() for _ in range(3000)),
                                           encoding="utf-8")
    path = tmp_path / "r.tfrecord"
    create_pretraining_data.main(recipes.fill(
        create_pretraining_data.PretrainingDataFlags, "spanbert", masking="static",
        input_file=[str(tmp_path / "text.txt")], output_file=[str(path)], vocab_file=vocab_path,
        max_seq_length=24, max_predictions_per_seq=4, random_seed=1, num_workers=1))
    found = set()
    for message in tfrecord.read_records(str(path)):
        example = tfrecord.parse_example(message)
        found.add(tuple(example["input_ids"][:example["input_mask"].sum()].tolist()))
    ends = np.cumsum(golden["span_24_lengths"])[:-1]
    assert {tuple(ids.tolist()) for ids in np.split(golden["span_24_source"], ends)} <= found


# Blocks

@pytest.mark.parametrize("lengths, expected", [
    ([[3, 2, 4], [2]], [(0, 5), (5, 9), (9, 11)]),
    ([[3], [9, 2, 2], [5]], [(0, 3), (12, 16), (16, 21)])])
def test_sentences_of_one_document_without_ends(lengths, expected):
    """No block of 5 tokens has sentences of two documents; longer sentences are left out."""
    sizes, ends = np.concatenate(lengths), np.cumsum([len(document) for document in lengths])
    documents = Documents(np.arange(sizes.sum()), [0, *np.cumsum(sizes).tolist()],
                          list(zip([0, *ends], ends)), np.zeros(sizes.sum(), np.uint8))
    draw = load(data.PAIRINGS["doc_sentences"].draw)
    options = types.SimpleNamespace(dupe_factor=2)
    found = draw(documents, None, 5, options, Segments("doc_sentences"))
    assert [(first, first + length) for first, length, *_ in found] == 2 * expected


@pytest.mark.parametrize("text, is_open", [("a\n", True), ("a\n\n", False), ("a", True),
                                           ("a\n\nb\n", True), ("a\n \n", False), ("\n", False)])
def test_an_empty_line_ends_a_document(tmp_path, text, is_open):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    tokenizer = open_tokenizer(str(tmp_path / "vocab.txt"))
    for blanks in (True, False):
        documents = corpus.tokenize_documents(text.split("\n"), tokenizer, blanks)
        assert documents.is_open == (is_open and blanks)


# Dynamic masks

SIZE, WORDS, SUFFIXES = 64, 150, 100
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                         *(f"w{i}" for i in range(WORDS)), *(f"##{i}" for i in range(SUFFIXES))])


@pytest.fixture(name="written", scope="module")
def fixture_written():
    """Documents of random words of one to several tokens, some tokens far more often."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(4, 40, 400)
    tokens = (5 + (WORDS + SUFFIXES) * rng.random(sizes.sum())**2).astype(np.int32)
    starts = [0, *np.cumsum(sizes).tolist()]
    return Documents(tokens, starts, [(i, i + 20) for i in range(0, 400, 20)],
                     (tokens >= 5 + WORDS).astype(np.uint8),
                     entities=(rng.random(len(tokens)) < 0.3).astype(np.uint8))


def dynamic(documents, **corruption):
    found = masking.find(recipe_of(dynamic=True, **corruption).corruption)
    counts = np.bincount(documents.tokens, minlength=VOCABULARY.size)
    return DynamicSpans(found, SIZE, found.most_predictions(SIZE, PROB), PROB,
                        VOCABULARY.size, VOCABULARY.mask_id,
                        (VOCABULARY.cls_id, VOCABULARY.sep_id), counts)


def plain(documents, **corruption):
    """The records without masks."""
    made = instances(documents, VOCABULARY, SIZE, dynamic=True, **corruption)
    found = made.features(np.arange(len(made.slices)), SIZE, VOCABULARY)
    return {name: value.astype(np.int32) for name, value in found.items()}


def drawer(masks, seed=5):
    traced = tf.function(lambda batch, numbers: masks(batch, seed, numbers), autograph=False)

    def run(found, first=0):
        numbers = tf.range(first, first + len(found["input_ids"]), dtype=tf.int64)
        return {name: value.numpy() for name, value in traced(found, numbers).items()}
    return run


@pytest.fixture(name="drawn", scope="module")
def fixture_drawn(written):
    """What draws the recipe's masks, the records without masks, and with them."""
    whole, draw = plain(written), drawer(dynamic(written))
    return draw, whole, draw(whole)


def figures(found, whole, length):
    """What is compared: shares of predictions by kind, and of spans by length and place."""
    used = found["masked_lm_weights"] > 0
    row = np.nonzero(used)[0]
    position, label = found["masked_lm_positions"][used], found["masked_lm_ids"][used]
    shown = found["input_ids"][row, position]
    is_masked, is_kept = shown == VOCABULARY.mask_id, shown == label
    chosen = np.zeros(found["input_ids"].shape, bool)
    chosen[row, position] = True
    edges = np.diff(np.pad(chosen, [(0, 0), (1, 1)]).astype(int), axis=1)
    first, end = np.nonzero(edges == 1)[1], np.nonzero(edges == -1)[1]
    drawn = shown[~is_masked & ~is_kept]
    return np.array([
        is_masked.mean(), is_kept.mean(), (whole[row, position] >= 5 + WORDS).mean(),
        *np.bincount(np.minimum(end - first, 12), minlength=13)[1:] / len(first),
        *np.bincount(first * 6 // length[np.nonzero(edges == 1)[0]], minlength=6) / len(first),
        found["span_weights"].sum() / used.sum(), found["span_offset"].mean(),
        (drawn < 60).mean(), (drawn < 120).mean()])


@pytest.mark.parametrize("corruption", [
    {}, {"schemes": ("random", "pair_span", "ner_span"), "units": "subwords",
         "endpoints": "internal", "replacement_method": "word_piece", "max_pair_targets": 3}])
def test_dynamic_spans_are_distributed_as_static_ones(corruption, written, drawn):
    """Over 12 draws of each, within three standard errors of the difference."""
    draw, whole, _ = drawn
    if corruption:
        whole, draw = plain(written, **corruption), drawer(dynamic(written, **corruption))
    length = whole["input_mask"].sum(1)
    seeds, static, others = range(12), [], []
    for seed in seeds:
        made = instances(written, VOCABULARY, SIZE, seed, **corruption)
        found = made.features(np.arange(len(made.slices)), SIZE, VOCABULARY)
        static.append(figures(found, whole["input_ids"], length))
        others.append(figures(draw(whole, seed * len(length)), whole["input_ids"], length))
    one, two = np.array(static), np.array(others)
    error = np.sqrt((one.var(0, ddof=1) + two.var(0, ddof=1)) / len(seeds))
    assert (np.abs(one.mean(0) - two.mean(0)) <= 3 * error + 1e-12).all(), (
        (one.mean(0) - two.mean(0)) / error)


def test_the_features_of_dynamic_spans_agree(drawn):
    _, whole, found = drawn
    used = found["masked_lm_weights"] > 0
    length = whole["input_mask"].sum(1)
    assert np.array_equal(used.sum(1), np.ceil(PROB * (length - 2)))
    restored = np.where(targets(found) > 0, targets(found), found["input_ids"])
    assert np.array_equal(restored, whole["input_ids"])
    is_span = targets(found) > 0
    for row in np.flatnonzero(length > 12)[:40]:
        for slot in np.flatnonzero(used[row]):
            first = end = found["masked_lm_positions"][row, slot]
            while is_span[row, first - 1]:
                first -= 1
            while is_span[row, end]:
                end += 1
            offset = found["masked_lm_positions"][row, slot] - first
            expected = (first - 1, end, offset, 1)
            if first == 1 or end == length[row] - 1 or offset >= 15:
                expected = (0, 0, 0, 0)
            assert expected == tuple(found[name][row, slot] for name in (
                "span_left", "span_right", "span_offset", "span_weights"))


def test_a_record_has_its_spans_in_any_batch(drawn, written):
    draw, whole, all_rows = drawn
    part = draw({name: value[9:14] for name, value in whole.items()}, 9)
    assert all(np.array_equal(part[name], all_rows[name][9:14]) for name in part)
    other = drawer(dynamic(written), seed=6)(whole)
    assert (other["masked_lm_positions"] != all_rows["masked_lm_positions"]).mean() > 0.5


def test_a_manifest_without_counts_is_refused():
    for counts in ({}, {"token_counts": "1 2"}, {"token_counts": "0 0 0"}, {"token_counts": 3}):
        with pytest.raises(InputError, match="token_counts for some tokens.*make the records"):
            data.manifest.token_counts({"vocabulary": {"size": 3}, **counts})
    assert data.manifest.token_counts({"vocabulary": {"size": 3}, "token_counts": "1 0 2"}
                                      ).tolist() == [1, 0, 2]
