"""BERT-of-Theseus: modules of a fine-tuned network are replaced by smaller ones while these learn
(Xu et al., arXiv:2002.02925; JetRunner/BERT-of-Theseus). Shapes: K layers of the successor."""

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from bert_tf import checkpoints, files, networks
from bert_tf.checkpoints import names
from bert_tf.compression.pruning import cut
from bert_tf.compression.replacing import Replacing
from bert_tf.errors import InputError
from bert_tf.files import exists
from bert_tf.kept import Kept
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import seed_of_pass, shared_seed, split_seed, uniform
from bert_tf.layers.quantisation import Ranges
from bert_tf.objectives.base import Batch, Objective
from bert_tf.opening import finetuned_file, open_model
from bert_tf.training.learners.distiller import Untracked
from bert_tf.training.learners.learner import Learner, digest
from bert_tf.training.train import save_model

# The origin of a successor's initial model; its last file.
_MADE_OF = "made_of.json"


def replacing_rate(replacing: Replacing, step: Tensor) -> Tensor:
    """Returns the probability of replacing at a step, from 0, float32."""
    rate, step = replacing.replacing_rate, ops.cast(step, "float32")
    if replacing.scheduler_type == "linear":
        return ops.minimum(rate + replacing.scheduler_linear_k * step, 1.0)
    if replacing.scheduler_type == "none":
        return ops.zeros_like(step) + rate
    begins = ops.logical_or(step < 1, step < replacing.steps_for_replacing)
    return ops.where(begins, rate, 1.0)


def _module(successor, predecessors, coin):
    """A function as `TransformerLayer.call`: a successor's layer or its predecessors, by a coin."""
    def run(x, bias=None, dropout_seed=None):
        def succeed():
            return successor(x, bias, dropout_seed)[0]

        def precede():
            y, seeds = x, split_seed(dropout_seed, len(predecessors))
            for layer, seed in zip(predecessors, seeds):
                y, _ = layer(y, bias, seed)
            return y

        return ops.cond(coin, succeed, precede), {}

    return run


@register
class Theseus(Learner):
    """A network of K layers that learns in the place of modules of a larger one.

    In training, each layer runs with its step's probability for the whole batch, otherwise its
    layers of the `predecessor`, a `BertEncoder` of a multiple of K layers. A step's coins are a
    function of its dropout seed, the same on all replicas. Only the layers learn. In evaluation the
    network runs alone, and it alone is saved. A batch may have `coins`, integer [K], 1 for the
    successor's layer; and `step`, from 0. If it `clips_all`, the norm for clipping includes the
    gradients of frozen weights and of the predecessor, as in the original."""

    epsilon = 0.0
    draws = "which of its layers are replaced"

    def __init__(self, encoder: keras.Model, objectives: Iterable[Objective],
                 predecessor: keras.Model | None = None, replacing: Replacing | None = None,
                 clips_all: bool = False, **kwargs: Any):
        super().__init__(encoder, objectives, **kwargs)
        if predecessor is None:
            raise InputError("this learner needs its predecessor, but no file saves that; build "
                             "the learner from the predecessor again.")
        check_layers(predecessor.config.depth, encoder.config.depth)
        self.replacing, self.clips_all = replacing or Replacing(), clips_all
        self._held = Untracked(predecessor)
        for part in (encoder.embeddings, getattr(encoder, "embeddings_project", None),
                     encoder.pooler, *self.objectives):
            if part is not None and not clips_all:
                part.trainable = False

    @property
    def predecessor(self) -> keras.Model:
        return self._held.model

    @property
    def trainable_variables(self) -> list:
        """The variables whose gradients are taken."""
        own = super().trainable_variables
        return [*own, *self.predecessor.trainable_variables] if self.clips_all else own

    @property
    def optimizer_options(self) -> dict[str, Any]:
        if not self.clips_all:
            return {}
        return {"rate_factors": ((f"^(?!.*{self.encoder.name}/encoder/layer_)", 0.0),)}

    def call(self, batch: Batch, training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Tensor]:
        """See `Learner`."""
        dropout_seed = seed_of_pass(dropout_seed, training, self.encoder.seed_generator)
        if training and "coins" not in batch:
            batch = {**batch, "coins": self.throw(dropout_seed, batch.get("step", 0))}
        return super().call(batch, training, dropout_seed)

    def throw(self, dropout_seed: Tensor, step: Tensor) -> Tensor:
        """Returns a step's coins, bool [K], from its dropout seed, integer [2]."""
        draws = uniform((len(self.encoder.layers_),), shared_seed(dropout_seed))
        return draws < replacing_rate(self.replacing, step)

    def run_network(self, batch: Batch, training: bool = False, dropout_seed: Tensor | None = None,
                    options: Any = None) -> dict[str, Any]:
        if training:
            ours, predecessors = self.encoder.layers_, self.predecessor.layers_
            every, coins = len(predecessors) // len(ours), ops.cast(batch["coins"], "bool")
            options = {**(options or {}), "layers": [
                _module(layer, predecessors[i * every:(i + 1) * every], coins[i])
                for i, layer in enumerate(ours)]}
        return super().run_network(batch, training, dropout_seed, options)

    def parts(self) -> dict[str, Learner]:
        return {"model": Learner(self.encoder, self.objectives)}

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "replacing": dataclasses.asdict(self.replacing),
                "clips_all": self.clips_all, "predecessor": digest(self.predecessor.weights)}


def check_layers(layers: int, kept: int) -> None:
    if not 0 < kept < layers or layers % kept:
        raise InputError(f"--successor_layers is {kept}, but the predecessor has {layers} layers; "
                         f"give a smaller number that divides {layers}.")


def read_predecessor(folder: str, dtype: str | None = None) -> keras.Model:
    """Returns the network of a fine-tuned model, under a name of its own. If its numbers are
    rounded, their ranges stay: a run that is resumed reads them again."""
    weights = checkpoints.read(finetuned_file(folder)[0])
    network = networks.build(weights.config, name="predecessor", dtype=dtype)
    checkpoints.load(weights, network)
    for layer in network._flatten_layers():
        if isinstance(layer, Ranges):
            layer.is_fixed = True
    return network


def open_successor(path: str, layers: int, folder: str) -> str:
    """Returns the folder of a successor's initial model, and writes the model if it is absent or
    incomplete: the lowest `layers` of the fine-tuned model in `path`, its embeddings, pooler and
    head. InputError if the model is absent or can't be divided so, or the folder holds others."""
    weights = names.resolve(finetuned_file(path)[0])[1]
    made_of = Kept(os.path.join(folder, _MADE_OF), {
        "predecessor": files.digest(weights), "successor_layers": layers}, os.path.dirname(folder))
    if exists(made_of.path):        # written last
        return folder
    model = open_model(path, finetuned=True)
    learner = model.learner()
    check_layers(learner.encoder.config.depth, layers)
    successor = cut(learner, layers=range(layers, learner.encoder.config.depth))
    files.make_folder(folder, "output_dir")
    save_model(folder, successor)
    model.saved.write(folder)
    model.tokenizer.save(folder)
    made_of.begin()
    return folder
