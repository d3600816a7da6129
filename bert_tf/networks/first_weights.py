"""First weights that make an encoder's heads look at neighbouring tokens from the first step.

A small BERT that begins with small random weights needs its first thousand steps to find out where
neighbours are. Related are mimetic initialisation (arXiv:2305.09828) and heads of fixed positions
(arXiv:2002.10260). These parts make it work, in deep networks too:

- The embedding of position p is cos(w p) and sin(w p) for frequencies w spread evenly over (0, pi).
  These codes are nearly orthogonal for different positions. Queries turn them by a shift d, keys
  take them as they are, so a head attends from position i to position i + d.
- Codes and words share no dimension, and neither values nor feed-forward layers write into the
  codes' dimensions. So all layers find the codes unchanged.
- Words that stand near the same words begin with similar embeddings, see `word_vectors`. Values and
  outputs carry a neighbour's word as it is, so the sum of a token and its neighbours is most like
  the words that often stand there.
- The first position, which [CLS] takes, has no code. Its heads look at all tokens alike, and so do
  half of the heads of the second layer. Without these heads a network learns neighbours, but hardly
  the topic of a text, and fine-tuning needs the topic.
- In the two lowest layers values and outputs are large enough to carry a neighbour's word. In
  higher layers all weights are small, as in the original: a layer norm follows each sum, so many
  layers with large weights would wash the words out.

Shapes: V vocabulary, E width of the embeddings, H hidden, N heads, D = H / N width of a head, F
frequencies of a table.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from bert_tf.bert.network import Bert
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder

# The standard deviation of a word's embedding, times the square root of E.
_WORDS = 1.25
# The score of the token that a head looks at; other tokens' scores are near 0.
_PEAK = 8.0
# The gain of values and outputs, and the number of the lowest layers that have it.
_GAIN, _STRONG = 1.2, 2
_MOST_DISTANT = 4
# Words up to so many tokens apart count as near, and frequent words count as if they were rarer.
_WINDOW, _SMOOTHING = 5, 0.75


def word_vectors(ids: np.ndarray, vocab_size: int, width: int, seed: int) -> np.ndarray:
    """Vectors of words, alike for words that stand near the same words.

    Positive pointwise mutual information of the words near each other, a pair counted as one over
    its distance, factorised into vectors of the roots of the singular values (Levy, Goldberg and
    Dagan, TACL 2015, section 3).

    Args:
        ids: int [B, S], of any text; with few masks.
        width: X, the size of a vector.
        seed: of the random start of the factorisation.

    Returns:
        float64 [V, X], each row of the length 1; zeros for ids that `ids` lacks.
    """
    shape = vocab_size, vocab_size
    counts = sparse.csr_array(shape)
    for distance in range(1, _WINDOW + 1):
        pairs = ids[:, :-distance].ravel(), ids[:, distance:].ravel()
        counts += sparse.coo_array((np.full(pairs[0].size, 1 / distance), pairs), shape).tocsr()
    counts = (counts + counts.T).tocoo()
    times = counts.sum(0)
    near = times ** _SMOOTHING
    near /= near.sum()
    rows, columns = counts.coords
    gains = np.maximum(np.log(counts.data / (times[rows] * near[columns])), 0)
    parts, values, _ = randomized_svd(sparse.csr_array((gains, (rows, columns)), shape), width,
                                      n_iter=4, random_state=seed)
    vectors = np.zeros((vocab_size, width))     # a small vocabulary has fewer parts
    vectors[:, :len(values)] = parts * np.sqrt(values)
    vectors[times == 0] = 0
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def look_at_neighbours(encoder: Bert, seed: int, has_own_embeddings: bool = True,
                       ids: np.ndarray | None = None) -> None:
    """Gives an encoder first weights that make its heads look at neighbours.

    Args:
        encoder: a new one; it keeps the weights that this function does not name, such as biases.
        seed: of the random numbers.
        has_own_embeddings: whether the embeddings are this encoder's; a generator that shares the
            embeddings of an encoder with these first weights leaves them as they are.
        ids: int [B, S], text that embeddings of words are made from; without it they are random.

    Raises:
        InputError: the network is too narrow; names the flag --first_weights.
    """
    config = encoder.config
    if min(config.embedding_width, config.hidden_size) < 4 or config.head_size < 2:
        raise InputError("--first_weights=neighbours needs embeddings and layers at least 4 wide "
                         "and heads at least 2 wide; leave the flag out.")
    rng = np.random.default_rng([seed, config.hidden_size, not has_own_embeddings])
    table = frequencies(config.embedding_width)
    if has_own_embeddings:
        _embed(encoder.embeddings, table, config.is_causal, rng, ids)
    # The frequencies that the layers use, by their places in the table.
    chosen = _spread(len(table), min(len(table), config.hidden_size // 4))
    if config.projects:
        _project(encoder.embeddings_project, len(table), chosen, rng)
    codes = 2 * len(chosen)
    for layer in encoder.layers_:       # no value reads the codes, no result changes them
        if layer.attention.num_heads:
            _clear(layer.attention.value.kernel, rows=codes)
            _clear(layer.attention_output.projection.kernel, columns=codes)
        _clear(layer.output_.projection.kernel, columns=codes)
    # Layers may share their attention alone.
    owners = list({id(layer.attention): layer for layer in encoder.layers_}.values())
    for number, layer in enumerate(owners[:_STRONG]):
        if layer.attention.num_heads:
            times = sum(one.attention is layer.attention for one in encoder.layers_)
            _look(layer, number, table[chosen], config.is_causal, times, rng)


def give_learner(learner: Any, seed: int, batches: Iterable[Mapping[str, Any]] = ()) -> None:
    """Gives a `training.Learner`'s encoder, and a generator, first weights that see neighbours;
    InputError if the network is not BERT's encoder. The `input_ids` [B, S] of batches of records,
    if there are any, make the embeddings of words."""
    if type(learner.encoder) not in (Bert, BertEncoder):
        raise InputError("--first_weights=neighbours is for BERT's encoder, not for a "
                         f"{type(learner.encoder).__name__}; leave the flag out.")
    ids = [np.asarray(batch["input_ids"]) for batch in batches]
    text = np.concatenate(ids) if ids else None
    look_at_neighbours(learner.encoder, seed, ids=text)
    generator = getattr(learner, "generator", None)
    if generator not in (None, learner.encoder):
        look_at_neighbours(generator, seed, generator.embeddings is not learner.encoder.embeddings,
                           text)


def frequencies(width: int) -> np.ndarray:
    """Frequencies of the codes of positions in embeddings of this width, in radians a position:
    float64 [F], with F a fourth of the width, so that codes take half of the dimensions."""
    count = width // 4
    return np.pi * (np.arange(count) + 0.5) / count


def shift(head: int, heads: int, layer: int, is_causal: bool = False) -> int | None:
    """Returns how many tokens further a head looks; negative: to tokens before; None: it looks at
    all tokens alike. Heads take turns in the distances and, unless a token sees only those before
    it, in the two sides."""
    if layer and head >= heads // 2 and not is_causal:
        return None
    farthest = max(2, min(heads if is_causal else heads // 2, _MOST_DISTANT))
    place = head + layer * heads
    if is_causal:
        return -1 - place % farthest
    return (-1, 1)[place % 2] * (1 + (head // 2 + layer) % farthest)


def _spread(most, count):
    """Integers below `most`, `count` of them, spread evenly."""
    return np.linspace(0, most - 1, count).round().astype(int)


def _embed(embeddings, table, is_causal, rng, ids):
    """Words in one half of the dimensions, codes of positions in the other."""
    codes = 2 * len(table)
    words = np.array(embeddings.word_embeddings)
    scale = _WORDS / np.sqrt(words.shape[1])
    words = rng.normal(0, scale, words.shape)
    words[:, :codes] = 0
    if ids is not None:
        width = words.shape[1] - codes
        vectors = word_vectors(ids, len(words), width, int(rng.integers(1 << 31)))
        is_seen = vectors.any(1)
        words[is_seen, codes:] = scale * np.sqrt(width) * vectors[is_seen]
    embeddings.word_embeddings.assign(words)
    places = np.zeros(embeddings.position_embeddings.shape)
    angles = np.arange(len(places))[:, None] * table
    places[:, :codes] = np.sqrt(2) * scale * np.concatenate([np.sin(angles), np.cos(angles)], 1)
    if not is_causal:
        places[0] = 0
    embeddings.position_embeddings.assign(places)
    for variable in (embeddings.segment_embeddings, getattr(embeddings, "task_embeddings", None)):
        if variable is not None:
            _clear(variable, columns=codes)


def _clear(variable, rows=0, columns=0):
    """Sets the first rows and the first columns of a matrix to 0."""
    values = np.array(variable)
    values[:rows] = 0
    values[:, :columns] = 0
    variable.assign(values)


def _project(dense, count, chosen, rng):
    """Carries the codes of the chosen ones of `count` frequencies over, and mixes the words."""
    kernel = np.zeros(dense.kernel.shape)
    codes, width = 2 * count, 2 * len(chosen)
    kernel[[*chosen, *(count + chosen)], np.arange(width)] = 1
    kernel[codes:, width:] = rng.normal(0, 1 / np.sqrt(max(len(kernel) - codes, 1)),
                                        kernel[codes:, width:].shape)
    dense.kernel.assign(kernel)


def _look(layer, number, table, is_causal, times, rng):
    """Makes the heads look at neighbours, and values and outputs carry their words. A layer that
    comes several `times` carries less each time."""
    attention = layer.attention
    heads, count = attention.num_heads, len(table)
    query, key = np.array(attention.query.kernel), np.array(attention.key.kernel)
    width = query.shape[1] // heads
    used = _spread(count, min(width // 2, count))
    # After the norm of the embeddings sines and cosines have the amplitude sqrt(2).
    gain = np.sqrt(_PEAK * np.sqrt(width) / (2 * len(used)))
    for head in range(heads):
        distance = shift(head, heads, number, is_causal)
        if distance is None:
            continue
        turn = table[used] * distance
        sine, cosine = gain * np.sin(turn), gain * np.cos(turn)
        even = head * width + 2 * np.arange(len(used))
        query[used, even] += cosine
        query[count + used, even] += sine
        query[used, even + 1] -= sine
        query[count + used, even + 1] += cosine
        key[used, even] += gain
        key[count + used, even + 1] += gain
    attention.query.kernel.assign(query)
    attention.key.kernel.assign(key)
    # A head's outputs undo its values, so a neighbour's word arrives as it is.
    value, output = (np.zeros(kernel.shape) for kernel in (
        attention.value.kernel, layer.attention_output.projection.kernel))
    for first in range(0, heads * width, width):
        part = value[2 * count:, first:first + width]
        turned, _ = np.linalg.qr(rng.normal(size=part.shape))
        part[:, :turned.shape[1]] = _GAIN * turned
        output[first:first + width, 2 * count:] = part.T / (_GAIN * np.sqrt(times * heads))
    attention.value.kernel.assign(value)
    layer.attention_output.projection.kernel.assign(output)
