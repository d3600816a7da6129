"""DeBERTa 3's learner: ELECTRA's, with gradient-disentangled embeddings (arXiv:2111.09543;
microsoft/DeBERTa, `rtd_task.py`, without its decoupled training: one step for both networks)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras

from bert_tf import networks
from bert_tf.checkpoints.weights import variables
from bert_tf.errors import InputError
from bert_tf.layers.base import register
from bert_tf.models.deberta.config import DebertaConfig
from bert_tf.models.deberta.layers import DisentangledEmbeddings
from bert_tf.models.electra.learner import Electra, generator_config
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.training.learners.learner import Learner


@register
class DisentangledElectra(Electra):
    """`Electra` whose network adds trained differences to the words of its generator, which gets
    none of the network's gradients.

    The generator predicts with the enhanced mask decoder. The models that are saved have the sums.
    """

    default_settings = GeneratorSettings(generator_hidden_size=1.0, generator_layers=0.5)

    @staticmethod
    def generator_config(config: DebertaConfig, settings: GeneratorSettings) -> DebertaConfig:
        """Returns the sizes of the generator, which has the 2 layers that the decoder needs.
        InputError if it shares words of another width."""
        if settings.untied_generator and settings.generator_hidden_size != 1 and (
                not settings.untied_generator_embeddings):
            raise InputError("--generator_hidden_size must be 1, since the networks share their "
                             "words; leave it out, or give --untied_generator_embeddings too.")
        sizes: Any = generator_config(config, settings)
        if sizes is config:
            return config
        if sizes.hidden_size == config.hidden_size:
            sizes = dataclasses.replace(config, num_hidden_layers=sizes.num_hidden_layers)
        return dataclasses.replace(
            sizes, num_hidden_layers=max(2, sizes.num_hidden_layers),
            enhanced_mask_decoder=not config.position_biased_input)

    @staticmethod
    def join(network: keras.Model, sizes: Any, shares: bool) -> tuple[keras.Model, keras.Model]:
        """See `Electra.join`; a network whose words the generator shares is made again."""
        if sizes is network.config or not shares:
            return Electra.join(network, sizes, False)
        policy, config = network.dtype_policy, network.config
        generator = networks.build(sizes, name="generator", dtype=policy)
        embeddings = DisentangledEmbeddings(config, lambda: generator.embeddings,
                                            name="embeddings", dtype=policy)
        return networks.build(config, dtype=policy, embeddings=embeddings), generator

    @property
    def shares(self) -> bool:
        return isinstance(self.encoder.embeddings, DisentangledEmbeddings)

    def parts(self) -> dict[str, Learner]:
        """See `Electra.parts`; a network with shared embeddings is copied, with the sums."""
        parts = super().parts()
        if self.shares:
            own = variables(self.encoder)
            network = networks.build(self.encoder.config, dtype=self.encoder.dtype_policy)
            for name, variable in variables(network).items():
                variable.assign(own.get(name, self.encoder.embedding_table))
            parts["model"] = Learner(network, self.objectives[-1:])
        return parts

    def take(self, parts: Mapping[str, Learner]) -> None:
        """Takes the values of a result of `parts`, into which a checkpoint was loaded."""
        if self.shares:
            network = parts["model"].encoder
            own, loaded = variables(self.encoder), variables(network)
            for name in own.keys() & loaded.keys():
                own[name].assign(loaded[name])
            self.encoder.embeddings.difference.assign(
                network.embedding_table - self.generator.embedding_table)
