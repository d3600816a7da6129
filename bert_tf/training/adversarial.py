"""Gradients of fine-tuning on embeddings that are moved towards a larger loss.

Shapes: B rows of a batch, S sequence, E width of the embeddings with noise.
"""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from keras import ops

from bert_tf.errors import InputError
from bert_tf.layers.functions import uniform
from bert_tf.training import distribution
from bert_tf.training.learners.gated import GatedLearner
from bert_tf.training.learners.learner import Learner, Plain, gradient
from bert_tf.training.settings import RobustnessSettings

_LEAST = 1e-8
_WIDTHS = {"word_noise": "embedding_width", "embedding_noise": "embedding_output_width"}


def _length(x, norm, axes):
    """The norm over some axes, float32, which keep the size 1."""
    if norm == "inf":
        return tf.reduce_max(tf.abs(x), axes, keepdims=True)
    return tf.sqrt(tf.reduce_sum(tf.square(x), axes, keepdims=True))


def _within(noise, norm, axes, most):
    """The noise within a bound of its norm over some axes; 0: no bound."""
    if not most:
        return noise
    if norm == "l2":
        return noise * (most / tf.maximum(_length(noise, norm, axes), most))
    return tf.clip_by_value(noise, -most, most)


class Smart(Plain):
    """SMART's smoothness (arXiv:1911.03437, section 3.1; namisan/mt-dnn, perturbation.py).

    The noise is added to the output of the embeddings. mt-dnn gives that sum to the network as word
    vectors, so that positions and segments are added twice. As there, each pass draws its own
    dropout. The noise of a token is scaled to the norm 1 after each step, as there since August
    2020; or, as in the paper, each step has the norm of its size, and the noise is kept within a
    bound. The proximal point method, the paper's other half, is not in mt-dnn.
    """

    measure_names = (("smoothness", "loss"),)

    def __init__(self, settings: RobustnessSettings):
        self._settings = settings
        self._steps, self._size, self._norm = settings.ascent

    def check(self, learner):
        check_draws(self._settings, learner)
        if not any(one.loss_weight and not one.auxiliary for one in learner.objectives):
            raise InputError("--adv_train=smart needs a head that learns from labels, but all "
                             "objectives are auxiliary or have the weight 0; leave the flag out.")

    def gradients(self, of, seed):
        first, *seeds = of.seeds(seed, 2 + self._steps)
        with tf.GradientTape() as tape:
            logits = of.logits(seed)
            measures = of.learner.measure_logits(logits, of.batch)
            with tape.stop_recording():
                noise = self._find(of, logits, seeds[:-1], self._first(of, first))
            moved = of.logits(seeds[-1], embedding_noise=noise)
            apart = self._divergences(of, logits, moved, self._settings.adv_loss, by_class=True)
            loss = of.loss(measures) + self._settings.adv_alpha * of.loss(apart)
        total = of.learner.total_loss(apart)
        return ({**measures, "smoothness": {"loss": (total, tf.ones([]))}},
                gradient(tape, loss, of.variables), logits)

    def _first(self, of, seed):
        """The first noise, float32 [B, S, E]."""
        mask = of.mask()
        shape = (*ops.shape(mask)[:2], width(of.learner, "embedding_noise"))
        normal = tf.random.stateless_normal(shape, tf.cast(seed, tf.int32))
        return normal * self._settings.adv_noise_var * mask

    def _find(self, of, logits, seeds, noise):
        for seed in seeds:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(noise)
                moved = of.logits(seed, embedding_noise=noise)
                apart = self._divergences(of, moved, logits, "ns_kl")
                total = tf.add_n([apart[one.name]["loss"][0] for one in of.learner.objectives
                                  if one.loss_weight] or [tf.zeros([])]) * of.loss_scale
            uphill = tape.gradient(total, noise, unconnected_gradients="zero") / of.loss_scale
            if self._settings.adv_norm_of == "step":
                noise = noise + self._size * self._scaled(uphill)
            else:
                noise = self._scaled(noise + self._size * uphill)
            noise = _within(noise, self._norm, -1, self._settings.adv_max_norm)
        return noise

    def _divergences(self, of, logits, other, form, by_class=False):
        """(sum, count) of the divergence of each objective's logits from others, as measures. The
        count is the sum of the weights where these are `by_class`, too."""
        measures = {}
        for objective in of.learner.objectives:
            total = tf.zeros([])
            if not objective.auxiliary:
                labels, weights = of.learner.targets(of.batch)[objective.name][:2]
                if by_class:
                    weights = objective.weights_in_loss(labels, weights)
                total = objective.divergence(logits[objective.name], other[objective.name],
                                             weights, form)
            count = objective.count(of.learner.batch_for(objective, of.batch))
            measures[objective.name] = {"loss": (total, count)}
        return measures

    def _scaled(self, x):
        """Scales each token's numbers to the norm 1; for l1, returns their signs."""
        if self._norm == "l1":
            return tf.sign(x)
        return x / (_length(x, self._norm, -1) + self._settings.adv_epsilon)


class FreeLB(Plain):
    """FreeLB (arXiv:1909.11764; zhuchen03/FreeLB, huggingface-transformers run_glue_freelb.py).

    The noise is added to the vectors of words. All passes of a step have the same dropout. The
    measures are means over the passes.
    """

    def __init__(self, settings: RobustnessSettings):
        self._steps, self._size, self._norm = settings.ascent
        self._first_size, self._most = settings.adv_init_mag, settings.adv_max_norm

    def gradients(self, of, seed):
        mask, passes = of.mask(), []
        noise = self._first(of, mask, of.seeds(seed, 1)[0])
        for _ in range(self._steps):
            with tf.GradientTape() as tape:
                tape.watch(noise)
                logits = of.logits(seed, word_noise=noise)
                measures = of.learner.measure_logits(logits, of.batch)
                loss = of.loss(measures)
            *grads, uphill = gradient(tape, loss, [*of.variables, noise])
            passes.append((measures, [distribution.dense(g) for g in grads], logits))
            uphill = uphill * mask
            noise = noise + self._size * uphill / tf.maximum(
                _length(uphill, self._norm, [1, 2]), _LEAST)
            noise = _within(noise, self._norm, [1, 2], self._most)      # of each example
        measures, grads = tf.nest.map_structure(
            lambda *parts: tf.add_n(parts) / self._steps,
            *((measures, grads) for measures, grads, _ in passes))
        return measures, grads, passes[0][2]

    def _first(self, of, mask, seed):
        """The first noise, float32 [B, S, E]."""
        wide = width(of.learner, "word_noise")
        noise = (2 * uniform((*ops.shape(mask)[:2], wide), seed) - 1) * mask * self._first_size
        if self._norm == "l2":
            noise = noise / tf.sqrt(tf.reduce_sum(mask, 1, keepdims=True) * wide)
        return noise


_WAYS = {"none": lambda settings: Plain(), "smart": Smart, "freelb": FreeLB}


def make(settings: RobustnessSettings) -> Plain:
    return _WAYS[settings.adv_train](settings)


def width(learner: Learner, noise: str) -> int:
    return getattr(learner.encoder.config, _WIDTHS[noise])


def check(settings: RobustnessSettings, network: type, config: Any, learner: Any) -> None:
    """Raises InputError if adversarial training is not for a network or a learner."""
    reason, remedy = "", "leave the flag out"
    if not getattr(network, "takes_noise", False):
        reason = f"a {network.__name__}, to whose embeddings nothing can be added"
    elif getattr(config, "quantisation", None):
        reason = "a quantised network, which records its ranges once per step"
        remedy += ", or give --quantisation=none"
    if reason:
        raise InputError(f"--adv_train={settings.adv_train} is not for {reason}; {remedy}.")
    if getattr(settings, "concrete_coef", 0):
        learner = GatedLearner
    check_draws(settings, learner)


def check_draws(settings: RobustnessSettings, learner: Any) -> None:
    """Raises InputError if the passes to compare would be passes of different networks."""
    if settings.adv_train == "smart" and (drawn := getattr(learner, "draws", "")):
        raise InputError("--adv_train=smart compares two passes of one network, but each pass of "
                         f"this network draws again {drawn}; leave the flag out.")


def check_gold(settings: RobustnessSettings, ways: Iterable[Any]) -> None:
    """Raises InputError if no loss that SMART smooths has a weight. `ways` has for each task the
    `recipes.Distillation` with its teachers, or None."""
    ways = list(ways)
    if settings.adv_train == "smart" and all(way and not way.gold_weight for way in ways):
        names = ", ".join(dict.fromkeys(way.name for way in ways if way))
        raise InputError(f"--adv_train=smart needs gold labels, but their weight is 0 in {names}; "
                         "give --gold_weight above 0, a recipe of distillation with gold labels "
                         "such as mtdnn_kd, or leave --adv_train out.")


def describe(settings: RobustnessSettings) -> str:
    passes = settings.ascent[0] + 2 * (settings.adv_train == "smart")
    return (f"adversarial training ({settings.adv_train}): each step takes {passes} forward passes "
            f"and {passes} backward passes, about {passes} times as long")
