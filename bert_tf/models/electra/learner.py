"""ELECTRA's learner: a small generator replaces tokens, and the network learns from the result
(arXiv:2003.10555; google-research/electra, run_pretraining.py).

Shapes: B batch, S sequence, P predictions, V vocabulary.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert_tf import networks, objectives
from bert_tf.bert.objective import to_slots, used
from bert_tf.config import EncoderConfig, Sizes, config_from_dict
from bert_tf.errors import InputError, naming
from bert_tf.flags import changed
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.changes import PACKED
from bert_tf.layers.functions import argmax, seed_of_pass, split_seed, uniform
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.objectives.base import Batch, Objective, ratio
from bert_tf.training.learners.learner import Learner, Measures, saved_arguments

_BLOCK = 128            # tokens that `sample` sums up at a time
# The network's objective, by --discriminator: class (""; the recipe's), options and weight (None:
# the recipe's).
_DISCRIMINATORS: dict[str, tuple[str, dict, float | None]] = {
    "replaced_token": ("", {}, None),
    "replaced_token_written": ("", {"written_only": True}, None),
    "replace_mlm": ("MaskedLM", {"name": "replaced_lm"}, 1.0),
    "all_tokens_mlm": ("AllTokensLM", {}, 1.0)}


def scatter_update(ids: Tensor, updates: Tensor, positions: Tensor) -> Tensor:
    """`ids` [B, S] with `updates` written at `positions` [B, P] (pretrain_helpers.py). Nothing is
    written at position 0, where unused slots are. At a position that comes m times the original
    writes the sum of its m updates divided by m and rounded down, which for different updates is an
    unrelated id."""
    column = ops.arange(ops.shape(ids)[1], dtype="int32")
    hits = ops.equal(ops.cast(positions, "int32")[:, :, None], column)              # [B, P, S]
    count = ops.sum(ops.cast(hits, "int32"), axis=1)                                # [B, S]
    total = ops.sum(ops.where(hits, ops.cast(updates, "int32")[:, :, None], 0), axis=1)
    mean = ops.floor_divide(total, ops.maximum(count, 1))
    return ops.where(ops.logical_and(count > 0, column > 0), mean, ops.cast(ids, "int32"))


def sample(logits: Tensor, draws: Tensor, temperature: float = 1.0,
           excluded: Tensor | None = None) -> Tensor:
    """Draws a token, not `excluded`, integer [...], for each row of logits, float32 [..., V], with
    the probabilities softmax(logits / temperature): int32 [...]. `draws` are float32 in [0, 1):
    [...], where the cumulative probabilities are cut; or [..., V], the original's form, which makes
    them Gumbel noise and takes the largest sum."""
    logits = ops.stop_gradient(logits) / temperature
    if excluded is not None:
        logits = logits - 1000.0 * ops.one_hot(excluded, ops.shape(logits)[-1], dtype="float32")
    if len(draws.shape) == len(logits.shape):
        noise = -ops.log(-ops.log(draws + 1e-9) + 1e-9)
        return argmax(logits + noise)
    # In two steps, first of blocks: a cumulative sum over all tokens takes as long as a layer.
    probs, size = ops.softmax(logits), logits.shape[-1]
    padding = [(0, 0)] * (len(probs.shape) - 1) + [(0, -size % _BLOCK)]
    blocks = ops.reshape(ops.pad(probs, padding), (*ops.shape(probs)[:-1], -1, _BLOCK))
    block, rest = _cut(ops.sum(blocks, axis=-1), draws)
    tokens = ops.take_along_axis(blocks, block[..., None, None], axis=-2)[..., 0, :]
    return ops.minimum(block * _BLOCK + _cut(tokens, rest)[0], size - 1)


def _cut(shares, draws):
    """Where `draws`, float [...], from 0 to below 1, cut the cumulative shares [..., K]: int32
    [...]; and how much of that share is before the cut, from 0 to below 1."""
    ends = ops.cumsum(shares, axis=-1)
    goals = draws[..., None] * ends[..., -1:]
    places = ops.sum(ops.cast(ends <= goals, "int32"), axis=-1, keepdims=True)
    places = ops.minimum(places, ops.shape(shares)[-1] - 1)
    end, share = (ops.take_along_axis(x, places, axis=-1) for x in (ends, shares))
    rest = ops.clip(1.0 - (end - goals) / share, 0.0, 1.0 - 2.0**-24)
    return places[..., 0], rest[..., 0]


def generator_config(config: EncoderConfig, settings: GeneratorSettings) -> EncoderConfig:
    """The configuration of a network's generator (`get_generator_config`)."""
    if not settings.untied_generator:
        return config
    width = round(config.hidden_size * settings.generator_hidden_size)
    embedding_size: int | None = config.embedding_width
    if settings.untied_generator_embeddings:
        embedding_size = None
    with naming("--generator_hidden_size, --generator_layers"):
        return dataclasses.replace(
            config, hidden_size=width, num_attention_heads=max(1, width // 64),
            num_hidden_layers=round(config.num_hidden_layers * settings.generator_layers),
            intermediate_size=4 * width, embedding_size=embedding_size)


@register
class Electra(Learner):
    """A generator, the network that is the product of training, and an objective for each.

    The generator predicts masked tokens. At their positions tokens are drawn from its predictions,
    without a gradient, and the network reads the result.

    A batch holds masks, as for `MaskedLM`. It may hold `draws`, float32 [B, P] or [B, P, V] in [0,
    1), for `sample`; without them the draws are a function of the dropout seed, or fixed without
    such a seed.

    Args:
        objectives: the generator's masked LM, then the network's objective. The network's alone if
            there is no generator.
        generator: an encoder, which may share its embeddings with the network or be the network;
            None to draw all tokens with the same probability.
        temperature: temperature of the draws.
        disallow_correct: whether the original token is never drawn.
    """

    epsilon = 1e-6
    default_settings = GeneratorSettings()

    def __init__(self, encoder: keras.Model, objectives: Iterable[Objective],
                 generator: keras.Model | None = None, temperature: float = 1.0,
                 disallow_correct: bool = False, **kwargs: Any):
        super().__init__(encoder, objectives, **kwargs)
        self.generator, self.temperature = generator, temperature
        self.disallow_correct = disallow_correct

    @classmethod
    def of_terms(cls, config: EncoderConfig, terms: Sequence, dtype: str | None = None,
                 settings: GeneratorSettings | None = None) -> Learner:
        """See `Learner`; without ELECTRA's own term, the network alone learns masked tokens."""
        settings = settings or cls.default_settings
        network = networks.build(config, dtype=dtype)
        masked, own = (next((term for term in terms if (term.network == "encoder") is is_own), None)
                       for is_own in (False, True))
        weight = settings.gen_weight
        if masked and weight is None:
            weight = masked.weight

        def masked_lm(sizes):
            return objectives.MaskedLM(sizes, loss_weight=weight, dtype=dtype)

        unused = changed(settings).keys() - {"gen_weight"}
        if own is None and unused:
            raise InputError(f"--{min(unused)} changes nothing with --terms=masked_lm; leave out "
                             "one of the two flags.")
        if own is None or not settings.electra_objective:
            return Learner(network, [masked_lm(config)])
        if masked is None and not settings.uniform_generator:
            raise InputError("--terms lacks masked_lm, which trains the generator; add it, or give "
                             "--uniform_generator to have no generator.")
        name, options, default = _DISCRIMINATORS[settings.discriminator]
        weights = [settings.disc_weight, default, own.weight]
        heads = [getattr(objectives, name or own.objective)(
            config, loss_weight=next(w for w in weights if w is not None), dtype=dtype, **options)]
        generator = None
        if not settings.uniform_generator:
            sizes = cls.generator_config(config, settings)
            network, generator = cls.join(network, sizes, not settings.untied_generator_embeddings)
            heads.insert(0, masked_lm(sizes))
        return cls(network, heads, generator, settings.temperature, settings.disallow_correct)

    @classmethod
    def configs(cls, config: EncoderConfig, settings: GeneratorSettings | None = None
                ) -> list[Sizes]:
        settings = settings or cls.default_settings
        if settings.uniform_generator or not settings.electra_objective:
            return [config]
        return [config, cls.generator_config(config, settings)]

    generator_config = staticmethod(generator_config)

    @staticmethod
    def join(network: keras.Model, sizes: EncoderConfig, shares: bool
             ) -> tuple[keras.Model, keras.Model]:
        """The network and a generator of these sizes; the network itself if they are its own."""
        if sizes is network.config:
            return network, network
        return network, networks.build(sizes, name="generator", dtype=network.dtype_policy,
                                       embeddings=network.embeddings if shares else None)

    @property
    def measure_names(self) -> list[tuple[str, str]]:
        own = [] if self.generator is None else [(self.objectives[0].name, "sampled_accuracy")]
        return [*super().measure_names, *own]

    def call(self, batch: Batch, training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Tensor]:
        """Calls the Learner; the dict also holds `sampled_ids`, int32 [B, P], and `corrupted_ids`
        and `original_ids`, int32 [B, S]."""
        dropout_seed = seed_of_pass(dropout_seed, training, self.encoder.seed_generator)
        *seeds, last = split_seed(dropout_seed, 5)
        results, head = {}, self.objectives[-1]
        positions, labels = batch["masked_lm_positions"], batch["masked_lm_ids"]
        draws, excluded = batch.get("draws"), used(labels, batch)
        if draws is None:
            draws = uniform(ops.shape(positions), ops.zeros(2, "int32") if last is None else last)
        if self.generator is None:
            logits = ops.zeros((*ops.shape(excluded), self.encoder.config.vocab_size))
        else:
            masked = self.objectives[0]
            outputs = self.generator(self._rows(batch), training=training, dropout_seed=seeds[0])
            results[masked.name] = logits = masked(outputs, batch, self.generator.embedding_table,
                                                   seeds[1])
        sampled = to_slots(sample(logits, used(draws, batch), self.temperature,
                                  excluded if self.disallow_correct else None), batch)
        original = scatter_update(batch["input_ids"], labels, positions)
        corrupted = scatter_update(original, sampled, positions)
        seen = {**batch, "input_ids": corrupted, "original_ids": original}
        outputs = self.encoder(self._rows(seen), training=training, dropout_seed=seeds[2])
        results[head.name] = head(outputs, seen, self.encoder.embedding_table, seeds[3])
        return {**results, "sampled_ids": sampled, "corrupted_ids": corrupted,
                "original_ids": original}

    def _rows(self, batch):
        return {name: batch[name] for name in (*self.encoder.reads, *PACKED)
                if batch.get(name) is not None}

    def measure_logits(self, logits: Mapping[str, Tensor], batch: Batch) -> Measures:
        measures = super().measure_logits(logits, {
            **batch, "input_ids": logits["corrupted_ids"], "original_ids": logits["original_ids"]})
        if self.generator is not None:
            correct = ops.equal(logits["sampled_ids"], ops.cast(batch["masked_lm_ids"], "int32"))
            measures[self.objectives[0].name]["sampled_accuracy"] = ratio(
                ops.cast(correct, "float32"), ops.cast(batch["masked_lm_weights"], "float32"))
        return measures

    def parts(self) -> dict[str, Learner]:
        """The network and the generator, each with its objective, by their files' names."""
        models = {"model": Learner(self.encoder, self.objectives[-1:])}
        if self.generator not in (None, self.encoder):
            models["generator"] = Learner(self.generator, self.objectives[:1])
        return models

    def describe(self) -> dict[str, Any]:
        values = {**super().describe(), "generator_config": {}, "temperature": self.temperature,
                  "disallow_correct": self.disallow_correct}
        if self.generator is not None:
            values["generator_config"] = self.generator.config.to_dict()
        # The others of --discriminator are terms of other names.
        if getattr(self.objectives[-1], "written_only", False):
            values["discriminator"] = "replaced_token_written"
        return values

    def get_config(self) -> dict[str, Any]:
        generator = self.generator and "encoder"
        if self.generator not in (None, self.encoder):
            generator = {"config": self.generator.config.to_dict(), "shared": self.shares}
        return {**super().get_config(), "generator": generator,
                "temperature": self.temperature, "disallow_correct": self.disallow_correct}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Electra":
        arguments = saved_arguments(config)
        encoder, generator = arguments["encoder"], config["generator"]
        if generator == "encoder":
            generator = encoder
        elif generator:
            encoder, generator = cls.join(encoder, config_from_dict(generator["config"]),
                                          generator["shared"])
        return cls(**{**arguments, "encoder": encoder, "generator": generator})

    @property
    def shares(self) -> bool:
        """Whether the embeddings of the network depend on those of its generator."""
        return self.generator.embeddings is self.encoder.embeddings
