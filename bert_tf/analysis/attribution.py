"""Hidden Token Attribution: each input token's contribution to each hidden token (Brunner et al.,
arXiv:1908.04211, section 5).

The contribution of token j to token i in a layer is the Frobenius norm of the Jacobian of hidden
vector i by input vector j, as a share of the sum over all j.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.networks import first_state


def token_attribution(encoder, features: dict[str, np.ndarray], reading: str = "jacobian",
                      by: str = "embeddings", projections: int | None = None,
                      progress: Callable[[], None] = lambda: None) -> np.ndarray:
    """The contributions in every layer: float32 [L, n, n], rows hidden and columns input tokens.

    Args:
        features: integer [1, n] of one text without padding.
        reading: "jacobian", as above; "sum": the norm of the gradient of the sum of a hidden
            vector's elements, which is cheaper, and nearly 0 after a normalisation.
        by: the input: "embeddings" is the first layer's input, "words" the word embeddings.
        projections: number of random vectors that multiply the Jacobian, which estimates its
            squared norm without bias. None: exact, at the cost of H passes a token.
        progress: called after each hidden token.
    """
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
