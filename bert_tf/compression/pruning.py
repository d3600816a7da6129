"""Pruning of attention heads, feed-forward units and layers (Michel, Levy, Neubig,
arXiv:1905.10650): the importance of each head or unit is the loss's derivative by a factor of its
output; removal gives the same outputs from smaller kernels (section 4).

There are three forms of importance, which order heads differently: the paper's formula, its code's
(pmichel31415/pytorch-pretrained-BERT, branch paul, examples/classifier_eval.py), and the formula of
transformers' run_bertology.py. The configuration lists removed parts, by the heads' original
numbers.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert_tf import networks
from bert_tf.checkpoints.names import is_range
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks import attentions
from bert_tf.training.distribution import silence_compiler, silence_tracing
from bert_tf.training.learners.learner import Learner
from bert_tf.training.transfer import renumbered

FORMS = ("paper", "code", "bertology")
_LAYER = re.compile(r"encoder/layer_(\d+)/(.*)")


def mask_gradients(learner: Learner, kind: str, by_token: bool = False) -> Callable:
    """Compiles a function from a batch to the derivatives of each example's loss by factors that
    are 1: from features [B, S], or [B, C, S] for C choices, to a list of L float32 [B, N or F], or
    with a factor for each position [B, N or F, S or C * S]. The network takes `head_mask`, and for
    the `kind` "unit" `unit_mask`. T5, whose sequences differ in length, has neither `unit_mask` nor
    factors by token."""
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
    """Returns the importance of each "head" or "unit", without dropout: a list of L float64 [N or
    F], in the order of `networks.attentions`. `batches` are dicts of features [B, S] with labels.

    "paper": the mean over examples of |d loss / d factor|. "code": the sum over tokens of the same,
    with a factor for each token, for a batch's mean loss; divided by the number of examples in the
    last layer, and of real tokens in the others. It depends on the batch size. "bertology": the
    derivatives of the batches' mean losses are added up, and the absolute value of that sum is
    added after each batch; divided by the number of real tokens. By mistake, the script never
    resets the sum, so earlier batches count more."""
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


def to_unit_range(scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Scales the scores of all layers together to numbers from 0 to 1, as run_bertology.py does
    after `normalised`; equal scores to 0."""
    every = np.concatenate(scores)
    low, high = every.min(), every.max()
    return [(layer - low) / ((high - low) or 1.0) for layer in scores]


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


def cut(learner: Learner, heads: Collection[tuple[int, int]] = (),
        units: Collection[tuple[int, int]] = (), layers: Collection[int] = ()) -> Learner:
    """Returns a new model without some parts, with the outputs of the old one with these switched
    off. InputError if a part is absent, layers share their weights, or nothing would be left.

    Args:
        heads: pairs (number of the attention, original number of the head), from 0.
        units: pairs (number of the feed-forward network, unit), from 0, by the present numbers.
        layers: numbers of layers to remove; the others are renumbered.
    """
    encoder = learner.encoder
    config = encoder.config
    if type(config) is not EncoderConfig:
        raise InputError(f"a network of the type {config.model_type} can't be pruned; take BERT's "
                         "encoder.")
    if layers and config.shares_layers:
        raise InputError("the layers share their weights, so no layer can be removed; take a "
                         "network whose layers have separate weights.")
    kept_layers = [i for i in range(config.depth) if i not in layers]
    if not kept_layers or any(not 0 <= layer < config.depth for layer in layers):
        raise InputError(f"the network has layers 1 to {config.depth}; name some of them, but not "
                         "all.")
    kept_heads = {number: config.kept_heads(number) for number, _ in config.layer_weights}
    for layer, head in heads:
        if head not in kept_heads.get(layer, ()):
            raise InputError(f"layer {layer + 1} has no head {head + 1} to remove; name another "
                             "head.")
        kept_heads[layer].remove(head)
    kept_units = _kept_units(config, units)
    made = _config(config, kept_heads, kept_units, kept_layers, bool(layers))
    dtype = encoder.dtype_policy
    smaller = Learner(networks.build(made, dtype=dtype), [
        type(objective).from_config({**objective.get_config(), "config": made.to_dict()})
        for objective in learner.objectives])
    old = variables(learner)
    for name, variable in variables(smaller).items():
        source = renumbered(name, kept_layers)
        variable.assign(_slice(source, old[source].numpy(), config, kept_heads, kept_units))
    return smaller


def _kept_units(config, units) -> Mapping[int, np.ndarray]:
    sizes = {number: config.feed_forward_size(number) for _, number in config.layer_weights}
    for number, unit in units:
        if not 0 <= unit < sizes.get(number, 0):
            raise InputError(f"layer {number + 1} has no feed-forward unit {unit + 1}; name "
                             "another unit.")
    remaining = {number: np.setdiff1d(np.arange(size), [unit for of, unit in units if of == number])
            for number, size in sizes.items()}
    for number, left in remaining.items():
        if not len(left):
            raise InputError(f"layer {number + 1} must keep at least one feed-forward unit.")
    return remaining


def _config(config, kept_heads, kept_units, kept_layers, renumbers):
    every = range(config.num_attention_heads)
    heads = {number: [head for head in every if head not in remaining]
             for number, remaining in kept_heads.items()}
    sizes = [len(remaining) for _, remaining in sorted(kept_units.items())]
    num_layers, quantisation = config.num_hidden_layers, config.quantisation
    if renumbers:
        num_layers = len(kept_layers)
        heads = {new: heads[old] for new, old in enumerate(kept_layers)}
        sizes = [sizes[old] for old in kept_layers]
        quantisation = quantisation and quantisation.of_layers(kept_layers)
    return dataclasses.replace(
        config, quantisation=quantisation, num_hidden_layers=num_layers,
        pruned_heads=tuple((number, tuple(gone)) for number, gone in heads.items()),
        intermediate_sizes=tuple(sizes))


def _slice(name, values, config, kept_heads, kept_units):
    match = _LAYER.match(name)
    if not match or is_range(name):
        return values
    number, part = int(match[1]), match[2]
    axis = 0 if re.match(r"(attention/)?output/dense/kernel", part) else -1
    if part.startswith(("attention/self/", "attention/output/dense/kernel")):
        present, size = config.kept_heads(number), config.head_size
        columns = [present.index(head) * size + i for head in kept_heads[number]
                   for i in range(size)]
    elif part.startswith(("intermediate/dense/", "output/dense/kernel")):
        columns = kept_units[number]
    else:
        return values
    return np.take(values, np.array(columns, int), axis)


def dead_heads(encoder) -> list[tuple[int, int]]:
    """Returns the (number of the attention, head) whose values, and so outputs, are 0."""
    dead, size = [], encoder.config.head_size
    for layer, (number, _) in zip(encoder.layers_, encoder.config.layer_weights):
        value = layer.attention.value
        for place, head in enumerate(encoder.config.kept_heads(number)):
            columns = np.s_[..., place * size:(place + 1) * size]
            if not value.kernel.numpy()[columns].any() and not value.bias.numpy()[columns].any():
                dead.append((number, head))
    return list(dict.fromkeys(dead))
