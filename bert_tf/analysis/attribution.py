"""Hidden Token Attribution: each input token's contribution to each hidden token (Brunner et al.,
arXiv:1908.04211, section 5).

The contribution of token j to token i in a layer is the Frobenius norm of the Jacobian of hidden
vector i by input vector j, as a share of the sum over all j.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.analysis.reading import first_states

READINGS = ("jacobian", "sum")


def token_attribution(encoder, features: dict[str, np.ndarray], reading: str = "jacobian",
                      by: str = "embeddings", projections: int | None = None,
                      progress: Callable[[], None] = lambda: None) -> np.ndarray:
    """Returns the contributions in every layer: float32 [L, n, n], rows hidden and columns input
    tokens.

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
    inputs, run = _input_and_layers(encoder, features, by, len(directions))
    copies = tf.repeat(inputs, len(directions), 0)                      # [K, n, H or E]

    @tf.function(autograph=False)
    def squared_norms(position):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(copies)
            layers = run(copies)
            sums = [tf.reduce_sum(x[:, position] * directions) for x in layers]
        return tf.stack([tf.reduce_sum(tf.square(tape.gradient(total, copies)), [0, 2])
                         for total in sums])                            # [L, n]

    rows = []
    for position in range(inputs.shape[1]):
        rows.append(squared_norms(tf.constant(position)).numpy())
        progress()
    norms = np.sqrt(np.stack(rows, 1))                                  # [L, n, n]
    return norms / np.maximum(norms.sum(-1, keepdims=True), 1e-30)


def _input_and_layers(encoder, features, by, count):
    """Returns a text's input vectors [1, n, H or E], and the function from `count` copies of them
    to all outputs."""
    bias = encoder.make_bias({name: tf.repeat(tf.constant(rows), count, 0)
                              for name, rows in features.items()}, None)
    ids, segments = (tf.constant(features[name]) for name in ("input_ids", "segment_ids"))
    segments *= int(encoder.config.has_segments)
    embeddings = encoder.embeddings

    def layers(x):
        outputs = []
        for layer in encoder.layers_:
            x, _ = layer(x, bias)
            outputs.append(x)
        return outputs

    if by == "embeddings":
        return tf.convert_to_tensor(first_states(encoder, embeddings(ids, segments))), layers
    words = tf.gather(tf.convert_to_tensor(embeddings.word_embeddings), ids)
    rest = tf.convert_to_tensor(embeddings.position_embeddings)[:ids.shape[1]]
    if embeddings.segment_embeddings is not None:
        rest += tf.gather(tf.convert_to_tensor(embeddings.segment_embeddings), segments)
    if encoder.config.use_task_id:
        rest += tf.convert_to_tensor(embeddings.task_embeddings)[0]
    return words, lambda x: layers(first_states(encoder, embeddings.norm(x + rest)))
