"""First weights with which heads look at neighbouring tokens."""

import keras
import numpy as np
import pytest

from bert_tf import networks, recipes, training
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks.first_weights import (
    frequencies,
    give_learner,
    look_at_neighbours,
    shift,
    word_vectors,
)
from bert_tf.recipes import find

VOCAB, LENGTH = 300, 40
SIZES = {"tiny": {}, "four layers": {"num_hidden_layers": 4, "hidden_size": 256,
                                     "num_attention_heads": 4},
         "narrow embeddings": {"hidden_size": 256, "num_attention_heads": 4, "embedding_size": 128},
         "left to right": {"directionality": "left_to_right"},
         "shared layers": {"num_hidden_layers": 3, "num_hidden_groups": 1, "model_type": "albert",
                           "embedding_size": 64},
         "shared attention": {"num_hidden_layers": 4, "num_hidden_groups": 2,
                              "model_type": "albert", "shared_parts": "attention"}}


def encoder_of(sizes, seed=3):
    keras.utils.set_random_seed(seed)
    return networks.build(EncoderConfig.preset("tiny", vocab_size=VOCAB, **sizes))


def attention_of(encoder, rng):
    ids = rng.integers(1, VOCAB, (4, LENGTH))
    return encoder({"input_ids": ids}, return_attention=True)["attention_probs"]


def is_even(maps):
    """Whether the entropy of all rows is nearly the one of equal shares."""
    return (-(maps * np.log(maps)).sum(-1) > 0.95 * np.log(maps.shape[-1])).all()


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_heads_of_the_two_lowest_layers_look_at_their_neighbour(sizes):
    encoder = encoder_of(sizes)
    look_at_neighbours(encoder, 0)
    maps = attention_of(encoder, np.random.default_rng(0))
    for layer, found in enumerate(map(np.asarray, maps[:2])):
        for head in range(found.shape[1]):
            first, own = (encoder.layers_[i].attention for i in (0, layer))
            number = 0 if own is first else layer
            distance = shift(head, found.shape[1], number, encoder.config.is_causal)
            if distance is None:
                assert is_even(found[:, head])
                continue
            places = list(range(4, LENGTH - 4))
            mean = found[:, head, places].mean(0)       # [places, S]
            hit = np.mean([row.argmax() == place + distance for place, row in zip(places, mean)])
            share = np.mean([row[place + distance] for place, row in zip(places, mean)])
            assert hit == 1 and share > (0.5, 0.1)[min(layer, 1)]


def test_layers_whose_heads_were_all_cut_stay_without():
    for cut, seeing in ((0, 1), (1, 0)):
        encoder = encoder_of({"pruned_heads": {cut: [0, 1]}})
        look_at_neighbours(encoder, 1)
        maps = np.asarray(attention_of(encoder, np.random.default_rng(0))[seeing])
        places = np.arange(4, LENGTH - 4)
        found = maps[:, 0, places].mean(0)
        assert (found.argmax(1) == places + shift(0, 2, seeing)).all()


@pytest.mark.parametrize("sizes", [{"embedding_size": 3}, {"hidden_size": 2},
                                   {"hidden_size": 8, "num_attention_heads": 8}])
def test_networks_too_narrow_for_codes_are_refused(sizes):
    with pytest.raises(InputError, match="--first_weights=neighbours needs .* leave the flag out"):
        look_at_neighbours(encoder_of(sizes), 1)


def test_distances_and_sides_take_turns():
    assert [[shift(head, 4, layer) for head in range(4)] for layer in range(2)] == [
        [-1, 1, -2, 2], [-2, 2, None, None]]
    assert [shift(head, 12, 0) for head in range(12)] == [-1, 1, -2, 2, -3, 3, -4, 4, -1, 1, -2, 2]
    assert {shift(head, 4, 0, is_causal=True) for head in range(4)} == {-1, -2, -3, -4}


def test_the_first_token_looks_at_all_alike():
    encoder = encoder_of({})
    look_at_neighbours(encoder, 1)
    for found in map(np.asarray, attention_of(encoder, np.random.default_rng(0))[:2]):
        assert is_even(found[:, :, 0])


def test_codes_of_positions_pass_all_layers_unchanged():
    encoder = encoder_of({"num_hidden_layers": 4})
    look_at_neighbours(encoder, 1)
    ids = np.random.default_rng(0).integers(1, VOCAB, (2, LENGTH))
    codes = 2 * len(frequencies(encoder.config.embedding_width))
    table = np.asarray(encoder.embeddings.position_embeddings)[:LENGTH, :codes]
    for output in encoder({"input_ids": ids})["layer_outputs"]:
        found = np.asarray(output)[0, :, :codes]
        # A norm shifts all dimensions of a token by their mean, and scales them.
        for one, other in zip(found[1:], table[1:]):
            assert np.corrcoef(one, other)[0, 1] > 0.999


def test_what_is_not_named_stays_and_seeds_decide():
    plain, same, other = (encoder_of({}) for _ in range(3))
    look_at_neighbours(same, 1)
    look_at_neighbours(other, 2)
    again = encoder_of({}, seed=9)
    look_at_neighbours(again, 1)
    changed = {v.path for v, w in zip(plain.weights, same.weights)
               if (v.numpy() != w.numpy()).any()}
    assert all(part not in path for path in changed for part in ("bias", "gamma", "pooler"))
    assert [v.shape for v in plain.weights] == [v.shape for v in same.weights]
    words = [np.asarray(e.embeddings.word_embeddings) for e in (same, other, again)]
    assert (words[0] != words[1]).any() and (words[0] == words[2]).all()


def test_a_generator_with_shared_embeddings_looks_too():
    keras.utils.set_random_seed(1)
    config = EncoderConfig.preset("tiny", vocab_size=VOCAB, model_type="electra", hidden_size=256,
                                  num_attention_heads=4, embedding_size=128)
    learner = recipes.load(find("electra").learner).of_terms(config, find("electra").terms)
    look_at_neighbours(learner.encoder, 1)
    table = np.array(learner.encoder.embedding_table)
    look_at_neighbours(learner.generator, 1, has_own_embeddings=False)
    assert (np.array(learner.generator.embedding_table) == table).all()
    found = np.asarray(attention_of(learner.generator, np.random.default_rng(0))[0])
    ahead = [found[:, 0, place, place - 1].mean() for place in range(5, LENGTH)]
    assert np.mean(ahead) > 0.5


def test_vectors_of_words_factorise_what_stands_near_them():
    """Beside the formula, on dense matrices and by another decomposition."""
    ids = np.random.default_rng(3).zipf(1.3, (50, 30)) % 40 + 1      # 0 is not in the text
    counts = np.zeros((50, 50))
    for row in ids:
        for i, word in enumerate(row):
            for j in (*range(max(i - 5, 0), i), *range(i + 1, min(i + 6, len(row)))):
                counts[word, row[j]] += 1 / abs(i - j)
    context = counts.sum(0) ** 0.75
    with np.errstate(all="ignore"):
        gains = np.log(counts / counts.sum(1, keepdims=True) / (context / context.sum()))
    gains = np.nan_to_num(np.maximum(gains, 0), nan=0, posinf=0)
    vectors, values, _ = np.linalg.svd(gains)
    expected = vectors[:, :40] * np.sqrt(values[:40])
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    made, seen = word_vectors(ids, 50, 40, 0), np.unique(ids)
    assert word_vectors(ids, 50, 64, 0).shape == (50, 64)       # has more columns than words
    np.testing.assert_allclose((made @ made.T)[np.ix_(seen, seen)],
                               (expected @ expected.T)[np.ix_(seen, seen)], atol=1e-9)
    assert not np.delete(made, seen, 0).any()


def test_words_of_a_text_begin_like_those_that_stand_near_the_same_words():
    rng = np.random.default_rng(0)
    ids = np.concatenate([rng.integers(first, first + 10, (200, LENGTH)) for first in (5, 15)])
    keras.utils.set_random_seed(1)
    learner = training.Learner.of_terms(EncoderConfig.preset("tiny", vocab_size=VOCAB),
                                        find("bert").terms)
    give_learner(learner, 1, [{"input_ids": half} for half in np.split(ids, 2)])
    words = np.asarray(learner.encoder.embedding_table)
    norms = np.linalg.norm(words, axis=1)
    alike = (words / norms[:, None]) @ (words / norms[:, None]).T
    assert alike[5:15, 5:15].mean() > 0.8 > 0.2 > abs(alike[5:15, 15:25]).mean()
    assert abs(alike[5:25, 25:]).mean() < 0.2       # these are not in the text
    assert 0.5 < norms.min() and norms.max() < 1.3


@pytest.mark.parametrize("sizes", [{}, {"num_attention_heads": 1}, SIZES["four layers"]])
def test_a_head_hands_a_word_on_as_it_is(sizes):
    encoder = encoder_of(sizes)
    look_at_neighbours(encoder, 1)
    codes, layer = 2 * len(frequencies(encoder.config.embedding_width)), encoder.layers_[0]
    value = np.asarray(layer.attention.value.kernel)[codes:]
    output = np.asarray(layer.attention_output.projection.kernel)[:, codes:]
    width = encoder.config.head_size
    for first in range(0, value.shape[1], width):
        both = value[:, first:first + width] @ output[first:first + width]
        shares = np.linalg.eigvalsh((both + both.T) / 2)
        np.testing.assert_allclose(both, both.T, atol=1e-6)
        np.testing.assert_allclose(shares[-min(width, len(both)):], shares[-1], rtol=1e-5)
        np.testing.assert_allclose(shares[:-min(width, len(both))], 0, atol=1e-6)


def test_a_network_learns_a_neighbour_that_it_does_not_learn_otherwise():
    """Every token decides the next one; a masked token is to be told from its neighbours."""
    rng = np.random.default_rng(0)
    follower = rng.permutation(50) + 10
    keras.utils.set_random_seed(1)
    learner = training.Learner.of_terms(EncoderConfig.preset(
        "tiny", vocab_size=60, hidden_size=64, intermediate_size=64, num_attention_heads=2,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), find("bert").terms[:1])
    learner.compile(optimizer=keras.optimizers.Adam(2e-3), jit_compile=False)
    learner.optimizer.build(learner.trainable_variables)
    variables = [*learner.variables, *learner.optimizer.variables]
    begun, losses = [np.array(variable) for variable in variables], {}
    for name in ("original", "neighbours"):
        for variable, value in zip(variables, begun):
            variable.assign(value)
        if name == "neighbours":
            look_at_neighbours(learner.encoder, 1)
        batches = np.random.default_rng(2)
        for _ in range(20):
            batch = chains(batches, follower)
            loss = learner.train_on_batch(batch)
        losses[name] = float(loss)
    assert losses["neighbours"] < 0.6 * losses["original"], losses


def chains(rng, follower):
    """Sequences in which each token follows from the one before, with two masked tokens."""
    ids = np.zeros((16, 20), np.int32)
    ids[:, 0] = rng.choice(follower, 16)
    for place in range(1, 20):
        ids[:, place] = follower[ids[:, place - 1] - 10]
    positions = np.stack([rng.permutation(np.arange(1, 19, 3))[:2] for _ in range(16)])
    labels = np.take_along_axis(ids, positions, 1)
    np.put_along_axis(ids, positions, 4, 1)
    return {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids),
            "masked_lm_positions": positions.astype(np.int32), "masked_lm_ids": labels,
            "masked_lm_weights": np.ones(labels.shape, np.float32)}
