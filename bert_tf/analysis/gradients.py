"""Derivatives of the loss by attention weights (Clark et al., arXiv:1906.04341, section 3.2), small
where a head does nothing. The original's code for this is not public."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from keras import ops

from bert_tf.analysis.reading import head_values
from bert_tf.tokenization.vocabulary import Vocabulary


def mask_tokens(features: Mapping[str, np.ndarray], vocabulary: Vocabulary, share: float,
                rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Returns a masked LM's batch: features [B, S] with a share of each text's ordinary tokens, at
    least one if there are any, replaced by [MASK]."""
    ids = features["input_ids"].copy()
    special = [vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id]
    ordinary = ~np.isin(ids, special) & (features["input_mask"] > 0)
    counts = np.maximum((share * ordinary.sum(1)).astype(int), 1)
    # The smallest random numbers of each row; tokens that are not chosen have weight 0.
    order = np.argsort(np.where(ordinary, rng.random(ids.shape), 2.0), 1)[:, :counts.max()]
    is_chosen = np.arange(order.shape[1]) < counts[:, None]
    weights = np.take_along_axis(ordinary, order, 1) & is_chosen
    labels = np.take_along_axis(ids, order, 1)
    hidden = np.where(weights, vocabulary.mask_id, labels)
    np.put_along_axis(ids, order, hidden, 1)
    return {**features, "input_ids": ids, "masked_lm_positions": order.astype(np.int32),
            "masked_lm_ids": labels.astype(np.int32),
            "masked_lm_weights": weights.astype(np.float32)}


def attention_gradients(encoder, objective, batch: Mapping[str, np.ndarray]
                        ) -> tuple[np.ndarray, np.ndarray]:
    """Returns the attention weights, and the derivatives of the mean loss by them: float32
    [L, B, N, S, S], 0 in rows and columns of padding, and where a token doesn't see another.

    The derivative by token i's weight of token j is the derivative by the head's output at i, times
    j's value vector. The softmax is not part of it: the weights count as free. `objective` reads
    `sequence_output`, as `MaskedLM`; `batch` has features [B, S] and its labels."""
    heads, size = encoder.config.num_attention_heads, encoder.config.head_size
    mask = tf.constant(batch["input_mask"])
    bias = encoder.make_bias(batch, None)
    contexts, probabilities, values = [], [], []
    with tf.GradientTape() as tape:
        x = encoder.first_state(encoder.embed(batch, None))
        for layer in encoder.layers_:
            values.append(head_values(layer.attention, x))              # [B, N, S, D]
            context, maps = layer.attention(x, bias)
            tape.watch(context)
            contexts.append(context)
            probabilities.append(maps["attention_probs"])
            x = layer.attention_output(context, x)
            x = layer.output_(layer.intermediate(x), x)
        logits = objective({"sequence_output": x}, batch, encoder.embedding_table)
        loss, count = objective.loss(logits, *objective.targets(batch)[:2])
        loss = loss / ops.where(count > 0, count, 1.0)      # 0 if no token is masked
    derivatives = []
    for gradient, value in zip(tape.gradient(loss, contexts), values):
        gradient = ops.reshape(gradient, (*gradient.shape[:2], heads, size))
        derivatives.append(ops.einsum("bind,bnjd->bnij", gradient, value))
    real = ops.cast(mask[:, None, :, None] * mask[:, None, None, :], "float32")
    if encoder.config.is_causal:
        real = ops.tril(real)
    return tuple((ops.stack(tensors) * real).numpy() for tensors in (probabilities, derivatives))
