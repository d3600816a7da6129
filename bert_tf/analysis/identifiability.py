"""The figures of Brunner et al. (arXiv:1908.04211), measured on a network and a text."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.analysis.effective_attention import correlation, effective_maps
from bert_tf.analysis.identification import MEASURES, LinearProbe, MlpProbe, identified
from bert_tf.analysis.reading import Reading
from bert_tf.analysis.statistics import attention_to, token_kinds
from bert_tf.networks import first_state
from bert_tf.tokenization.vocabulary import Layout, Vocabulary

_BERT = Layout()


def compare_maps(readings: Iterable[Reading], vocabulary: Vocabulary, causal: bool = False
                 ) -> dict[str, np.ndarray]:
    """Compares raw with effective attention, means over texts: float64 [L, N] each.

    `correlation` is Pearson's over all weights of a map, `null_space` the dimensions n - rank; with
    `sums_to_one` before the name, rows sum to 1. For each of `statistics.KINDS`, `raw KIND` and
    `effective KIND` are the weight on these tokens, mean over rows. `share KIND` is the share of
    the magnitudes of effective weights, which may be negative; 0 of a head whose values are all 0.
    With `causal`, tokens attend to no token on their right: row i has i + 1 weights, and
    `null_space` is a mean over rows."""
    sums: dict[str, np.ndarray] = {}
    count = 0
    for reading in readings:
        count += 1
        n, figures = len(reading.input_ids), {}
        by_way = [effective_maps(reading.attention, reading.values, sums_to_one, causal)
                  for sums_to_one in (False, True)]
        for prefix, (maps, ranks) in zip(("", "sums_to_one "), by_way):
            figures[f"{prefix}correlation"] = correlation(reading.attention, maps, causal)
            figures[f"{prefix}null_space"] = n - ranks
            if causal:
                figures[f"{prefix}null_space"] = (np.arange(1, n + 1) - ranks).mean(-1)
        effective = by_way[0][0]
        sizes = np.abs(effective)
        total = attention_to(sizes, np.ones(n, bool))
        total = np.where(total > 0, total, 1.0)
        for kind, columns in token_kinds(reading.input_ids, vocabulary).items():
            figures[f"raw {kind}"] = attention_to(reading.attention, columns)
            figures[f"effective {kind}"] = attention_to(effective, columns)
            figures[f"share {kind}"] = attention_to(sizes, columns) / total
        for name, value in figures.items():
            sums[name] = sums.get(name, 0) + value
    return {name: value / count for name, value in sums.items()}


@dataclasses.dataclass
class Identification:
    """The share of tokens that each reading identifies in each layer: {"cosine", "l2", "linear",
    and if asked for "mlp": float [L + 1]}, from the input itself to the last layer; the number of
    `tokens`, for a probe in its test texts; and the share that a layer's linear probe (row)
    identifies from each layer's vectors (column), float [L + 1, L + 1]."""

    shares: dict[str, np.ndarray]
    tokens: dict[str, int]
    across: np.ndarray


def identify(readings: Sequence[Reading], mlp_epochs: int = 0,
             progress: Callable[[], None] = lambda: None) -> Identification:
    """Finds nearest neighbours in all texts, and in the last 15% of them, at least 1, after probes
    trained on the first 70%. The texts between choose the epoch of the MLP; with 0 `mlp_epochs`
    there is none. `readings` have `hidden`, and are 3 or more; `progress` is called after each
    layer."""
    count = len(readings)
    learned = max(min(int(0.7 * count), count - 2), 1)
    tested = min(max(int(0.85 * count), learned + 1), count - 1)
    layers, _, width = readings[0].hidden.shape
    texts = [[(reading.hidden[layer], reading.hidden[0]) for reading in readings]
             for layer in range(layers)]
    shares = {measure: [_share(pairs, measure=measure) for pairs in texts] for measure in MEASURES}
    across, of_mlp = np.zeros((layers, layers)), []
    if mlp_epochs:
        mlp = MlpProbe(width, width, epochs=mlp_epochs)
    for layer, pairs in enumerate(texts):
        probe = LinearProbe(width, width)
        for pair in pairs[:learned]:
            probe.add(*pair)
        probe.solve()
        across[layer] = [_share(others[tested:], probe) for others in texts]
        if mlp_epochs:
            mlp.fit(pairs[:learned], pairs[learned:tested])
            of_mlp.append(_share(pairs[tested:], mlp))
        progress()
    by_reading = {**shares, "linear": np.diag(across)}
    if mlp_epochs:
        by_reading["mlp"] = of_mlp
    tokens = [len(reading.input_ids) for reading in readings]
    return Identification(
        {name: np.array(values) for name, values in by_reading.items()},
        {name: sum(tokens if name in MEASURES else tokens[tested:]) for name in by_reading}, across)


def _share(pairs, probe=np.asarray, measure="cosine"):
    """The share of tokens that are nearest to a probe's output for their hidden vectors."""
    return np.concatenate([identified(probe(hidden), inputs, measure)
                           for hidden, inputs in pairs]).mean()


def token_attribution(encoder, features: dict[str, np.ndarray], reading: str = "jacobian",
                      by: str = "embeddings", projections: int | None = None,
                      progress: Callable[[], None] = lambda: None) -> np.ndarray:
    """Returns each input token's contribution to each hidden token in every layer (section 5),
    float32 [L, n, n]: the Frobenius norm of the Jacobian of the hidden vector (row) by the first
    layer's input (column), as a share of the sum over all input tokens.

    `features` are integer [1, n] of one text without padding. `projections` random vectors multiply
    the Jacobian, which estimates its squared norm without bias; None: exact, at the cost of H
    passes a token. `progress` is called after each hidden token. The `reading` "sum" is the norm of
    the gradient of the sum of a hidden vector's elements, which is cheaper, and nearly 0 after a
    normalisation. The input `by` "words" is the word embeddings."""
    width = encoder.config.hidden_size
    directions = np.eye(width, dtype="float32")
    if reading == "sum":
        directions = np.ones((1, width), "float32")
    elif projections:
        rng = np.random.default_rng(0)
        directions = rng.standard_normal((projections, width)).astype("float32")
    copies = {name: tf.repeat(tf.constant(values), len(directions), 0)
              for name, values in features.items()}                     # [K, n]
    # If embeddings do not include positions, they are word embeddings already.
    noised = by == "words" and getattr(encoder, "takes_noise", False)

    @tf.function(autograph=False)
    def squared_norms(position):
        with tf.GradientTape(persistent=True) as tape:
            noise = tf.zeros((*copies["input_ids"].shape, encoder.config.embedding_width))
            tape.watch(noise)
            outputs = encoder({**copies, "word_noise": noise} if noised else copies)
            inputs = noise if noised else first_state(outputs)          # [K, n, E or H]
            sums = [tf.reduce_sum(x[:, position] * directions) for x in outputs["layer_outputs"]]
        return tf.stack([tf.reduce_sum(tf.square(tape.gradient(total, inputs)), [0, 2])
                         for total in sums])                            # [L, n]

    rows = []
    for position in range(features["input_ids"].shape[1]):
        rows.append(squared_norms(tf.constant(position)).numpy())
        progress()
    norms = np.sqrt(np.stack(rows, 1))                                  # [L, n, n]
    return norms / np.maximum(norms.sum(-1, keepdims=True), 1e-30)


def summarize_attribution(contributions: Sequence[np.ndarray], reach: int = 10,
                          layout: Layout = _BERT) -> dict[str, np.ndarray]:
    """Returns means over tokens without the special ones of each text, such as [CLS] and [SEP]:
    `own` [L], a token's contribution to itself; `own_largest` [L], the share of tokens whose
    largest contribution is their own; `by_distance` [L, 2 * reach + 1], the contribution of the
    token at a distance from -reach to reach, mean over tokens that have one there. `contributions`
    are [L, n, n] of each text, from `token_attribution`; `layout` is the vocabulary's."""
    own, largest = [], []
    layers = len(contributions[0])
    sums, counts = np.zeros((layers, 2 * reach + 1)), np.zeros(2 * reach + 1)
    for shares in contributions:
        start, end = layout.before, shares.shape[-1] - layout.after
        inner = np.arange(start, end)
        own.append(shares[:, inner, inner])
        largest.append(shares[:, inner].argmax(-1) == inner)
        for i in inner:
            j = np.arange(max(start, i - reach), min(end, i + reach + 1))
            sums[:, j - i + reach] += shares[:, i, j]
            counts[j - i + reach] += 1
    return {"own": np.concatenate(own, 1).mean(1),
            "own_largest": np.concatenate(largest, 1).mean(1),
            "by_distance": sums / np.maximum(counts, 1)}
