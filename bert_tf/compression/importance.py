"""How much a model needs each attention head, or each unit of its feed-forward networks: the
derivative of the loss by a factor of what the head gives (Michel, Levy, Neubig, arXiv:1905.10650).

Two forms are the paper's formula and what its code computes (pmichel31415/pytorch-pretrained-BERT,
branch paul, examples/classifier_eval.py); they order heads differently.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.training.learners.learner import Learner

FORMS = ("paper", "code")


def mask_gradients(learner: Learner, kind: str, by_token: bool = False) -> Callable:
    """The compiled function from a batch of features to the derivatives of each example's loss by
    factors that are 1.

    Args:
        learner: the model; its network takes `head_mask` and `unit_mask`, as `BertEncoder` does.
        kind: "head" or "unit", of which the factors are.
        by_token: whether each position has a factor of its own.

    Returns:
        A function of a dict of features [B, S], or [B, C, S] for C choices. It returns a list of L
        float32 [B, N or F], or [B, N or F, S or C * S] by token.
    """
    encoder = learner.encoder

    @tf.function(autograph=False, reduce_retracing=True)
    def run(batch):
        shape = tf.shape(batch["input_ids"])
        rows, length = tf.reduce_prod(shape[:-1]), shape[-1] if by_token else 1
        sizes = [layer.attention.num_heads if kind == "head" else layer.output_.input_size
                 for layer in encoder.layers_]
        masks = [tf.ones((rows, size, length, 1) if kind == "head" else (rows, length, size))
                 for size in sizes]
        with tf.GradientTape() as tape:
            tape.watch(masks)
            measures = learner.measure({**batch, f"{kind}_mask": masks})
            loss = tf.add_n([objective.loss_weight * measures[objective.name]["loss"][0]
                             for objective in learner.objectives])
        found = []
        for gradient, size in zip(tape.gradient(loss, masks), sizes):
            gradient = (gradient[..., 0] if kind == "head"
                        else tf.transpose(gradient, (0, 2, 1)))         # [B * C, N or F, S]
            gradient = tf.reshape(gradient, (shape[0], -1, size, length))
            gradient = tf.reshape(tf.transpose(gradient, (0, 2, 1, 3)), (shape[0], size, -1))
            found.append(gradient if by_token else tf.reduce_sum(gradient, -1))
        return found

    return run


def importance(learner: Learner, batches: Iterable[Mapping[str, np.ndarray]], kind: str = "head",
               form: str = "paper") -> list[np.ndarray]:
    """The importance of each head or unit, without dropout.

    "paper": the mean over examples of |d loss / d factor|. "code": the sum over tokens of the same
    with a factor for each token, of the mean loss of a batch; divided by the number of examples in
    the last layer, and by that of real tokens in the others. It depends on the size of batches.

    Args:
        learner: the model.
        batches: dicts of features [B, S] with labels.
        kind: "head" or "unit".
        form: one of `FORMS`.

    Returns:
        A list of L float64 [N or F].
    """
    gradients = mask_gradients(learner, kind, by_token=form == "code")
    totals: list = [0.0] * len(learner.encoder.layers_)
    examples, tokens = 0, 0
    for batch in batches:
        size = len(batch["input_ids"])
        examples, tokens = examples + size, tokens + int(np.sum(batch["input_mask"]))
        found = gradients({name: tf.constant(values) for name, values in batch.items()})
        for number, gradient in enumerate(found):
            values = np.abs(gradient.numpy().astype(np.float64))
            if form == "code":
                values = values.sum(-1) / size
            totals[number] = totals[number] + values.sum(0)
    if form == "paper":
        return [total / examples for total in totals]
    return [*(total / tokens for total in totals[:-1]), totals[-1] / examples]


def normalised(scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The scores of each layer, scaled to the length 1 (--normalize_pruning_by_layer)."""
    return [layer / (np.linalg.norm(layer) + 1e-20) for layer in scores]


def steps_of(percents: Sequence[float], layers: int, of_layer: int, at_least: int = 0
             ) -> list[int]:
    """How many are gone after each step, in increasing order.

    Args:
        percents: shares of all that are to be gone.
        layers, of_layer: L, and how many there are in each.
        at_least: how many of each layer stay; the last step is the one that leaves no others.
    """
    total, most = layers * of_layer, layers * max(of_layer - at_least, 0)
    found = []
    for percent in sorted(percents):
        wanted = int(total * percent / 100)
        found.append(min(wanted, most))
        if wanted > most:
            break
    return found


def order_of(scores: Sequence[np.ndarray], pruned: Iterable[tuple[int, int]] = (),
             at_least: int = 0) -> list[tuple[int, int]]:
    """The (layer, head) that are there, the least important first; of equals, those of lower
    layers and numbers.

    Args:
        scores: L arrays [N].
        pruned: those that are gone.
        at_least: how many of the best of each layer are left out.
    """
    flat = sorted(((layer, head) for layer, of_layer in enumerate(scores)
                   for head in range(len(of_layer))), key=lambda pair: scores[pair[0]][pair[1]])
    kept: dict[int, int] = {}
    found = []
    for layer, head in reversed(flat):
        if kept.get(layer, 0) < at_least:
            kept[layer] = kept.get(layer, 0) + 1
        else:
            found.append((layer, head))
    gone = set(pruned)
    return [pair for pair in reversed(found) if pair not in gone]
