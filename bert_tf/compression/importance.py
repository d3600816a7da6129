"""Importance of each attention head, or feed-forward unit: the loss's derivative by a factor of its
output (Michel, Levy, Neubig, arXiv:1905.10650).

There are three forms: the paper's formula, its code's (pmichel31415/pytorch-pretrained-BERT, branch
paul, examples/classifier_eval.py), and the formula of transformers' run_bertology.py. They order
heads differently.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.networks import attentions
from bert_tf.training.distribution import silence_compiler, silence_tracing
from bert_tf.training.learners.learner import Learner

FORMS = ("paper", "code", "bertology")


def mask_gradients(learner: Learner, kind: str, by_token: bool = False) -> Callable:
    """Compiles a function from a batch to the derivatives of each example's loss by factors that
    are 1: from features [B, S], or [B, C, S] for C choices, to a list of L float32 [B, N or F], or
    with a factor for each position [B, N or F, S or C * S].

    The network takes `head_mask`, and for the `kind` "unit" `unit_mask`. T5, whose sequences differ
    in length, has neither `unit_mask` nor factors by token."""
    encoder = learner.encoder
    silence_compiler()
    silence_tracing()

    @tf.function(autograph=False, reduce_retracing=True)
    def run(batch):
        shape = tf.shape(batch[encoder.reads[0]])
        rows, length = tf.reduce_prod(shape[:-1]), shape[-1] if by_token else 1
        if kind == "head":
            sizes = [layer.num_heads for layer in attentions(encoder).values()]
            masks = [tf.ones((rows, size, length, 1)) for size in sizes]
        else:
            sizes = [layer.output_.input_size for layer in encoder.layers_]
            masks = [tf.ones((rows, length, size)) for size in sizes]
        with tf.GradientTape() as tape:
            tape.watch(masks)
            measures = learner.measure({**batch, f"{kind}_mask": masks})
            loss = tf.add_n([objective.loss_weight * measures[objective.name]["loss"][0]
                             for objective in learner.objectives])
        derivatives = []
        choices = rows // shape[0]
        # A layer may have lost all its heads.
        gradients = tape.gradient(loss, masks, unconnected_gradients="zero")
        for gradient, size in zip(gradients, sizes):
            if kind != "head":
                gradient = tf.transpose(gradient, (0, 2, 1))            # [B * C, F, S]
            gradient = tf.reshape(gradient, (shape[0], choices, size, length))
            gradient = tf.reshape(tf.transpose(gradient, (0, 2, 1, 3)),
                                  (shape[0], size, choices * length))
            derivatives.append(gradient if by_token else tf.reduce_sum(gradient, -1))
        return derivatives

    return run


def importance(learner: Learner, batches: Iterable[Mapping[str, np.ndarray]], kind: str = "head",
               form: str = "paper") -> list[np.ndarray]:
    """Returns the importance of each head or unit, without dropout: a list of L float64 [N or F],
    in the order of `networks.attentions`.

    "paper": the mean over examples of |d loss / d factor|. "code": the sum over tokens of the same,
    with a factor for each token, for a batch's mean loss; divided by the number of examples in the
    last layer, and of real tokens in the others. It depends on the batch size. "bertology": the
    derivatives of the batches' mean losses are added up, and the absolute value of that sum is
    added after each batch; divided by the number of real tokens. By mistake, the script never
    resets the sum, so earlier batches count more.

    Args:
        batches: dicts of features [B, S] with labels.
        kind: "head" or "unit".
    """
    gradients = mask_gradients(learner, kind, by_token=form == "code")
    count = len(attentions(learner.encoder))
    if kind == "unit":
        count = len(learner.encoder.layers_)
    totals: list = [0.0] * count
    running = list(totals)
    examples, tokens = 0, 0
    for batch in batches:
        size = len(batch[learner.encoder.reads[0]])
        examples, tokens = examples + size, tokens + int(np.sum(batch.get("input_mask", 0)))
        by_layer = gradients({name: tf.constant(values) for name, values in batch.items()})
        for number, gradient in enumerate(by_layer):
            values = gradient.numpy().astype(np.float64)
            if form == "bertology":
                running[number] = running[number] + values.sum(0) / size
                values = running[number][None]
            values = np.abs(values)
            if form == "code":
                values = values.sum(-1) / size
            totals[number] = totals[number] + values.sum(0)
    if form == "paper":
        return [total / examples for total in totals]
    if form == "bertology":
        return [total / tokens for total in totals]
    return [*(total / tokens for total in totals[:-1]), totals[-1] / examples]


def normalised(scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Scales each layer's scores to length 1 (--normalize_pruning_by_layer)."""
    return [layer / (np.linalg.norm(layer) + 1e-20) for layer in scores]


def attention_entropy(learner: Learner, batches: Iterable[Mapping[str, np.ndarray]]
                      ) -> list[np.ndarray]:
    """Returns the entropy of each head in nats, a list of L float64 [N]: the mean over real tokens
    of -sum p log p, where p is a token's attention to each other, as in run_bertology.py. Batches
    have features [B, S], or [B, C, S] for C choices."""
    totals: list = [0.0] * len(learner.encoder.layers_)
    tokens = 0
    for batch in batches:
        mask = np.asarray(batch["input_mask"])
        mask = mask.reshape(-1, mask.shape[-1])
        tokens += int(mask.sum())
        for number, maps in enumerate(learner.run_network(
                {name: tf.constant(values) for name, values in batch.items()},
                options={"return_attention": True})["attention_probs"]):
            p = maps.numpy().astype(np.float64)                             # [B * C, N, S, S]
            addends = p * np.log(np.where(p > 0, p, 1.0))
            totals[number] = totals[number] - (addends.sum(-1) * mask[:, None]).sum((0, 2))
    return [total / tokens for total in totals]


def steps_of(percents: Sequence[float], sizes: Sequence[int], at_least: int = 0) -> list[int]:
    """How many parts are gone after each step, in increasing order, for shares of all parts in per
    cent. `sizes` has the parts of each layer, of which `at_least` stay; the last step leaves no
    others."""
    total, most = sum(sizes), sum(max(size - at_least, 0) for size in sizes)
    steps = []
    for percent in sorted(percents):
        number = int(total * percent / 100)
        steps.append(min(number, most))
        if number > most:
            break
    return steps


def order_of(scores: Sequence[np.ndarray], pruned: Iterable[tuple[int, int]] = (),
             at_least: int = 0) -> list[tuple[int, int]]:
    """Returns the present (layer, head), the least important first; equals by layer and number.
    `scores` are L arrays [N], `pruned` the heads that are gone. Of each layer, the `at_least` best
    present heads are left out."""
    gone = set(pruned)
    flat = sorted(((layer, head) for layer, of_layer in enumerate(scores)
                   for head in range(len(of_layer)) if (layer, head) not in gone),
                  key=lambda pair: scores[pair[0]][pair[1]])
    counts: dict[int, int] = {}
    order = []
    for layer, head in reversed(flat):
        if counts.get(layer, 0) < at_least:
            counts[layer] = counts.get(layer, 0) + 1
        else:
            order.append((layer, head))
    return order[::-1]
