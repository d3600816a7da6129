"""Every network and every objective with the same weights and inputs on any backend of Keras.

    KERAS_BACKEND=jax python -m tests.backend_cases jax.npz     # writes the results of all cases
"""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from bert_tf import config, networks, objectives
from bert_tf.config import EncoderConfig
from bert_tf.data.batches.row_layout import packed_features
from bert_tf.heads import OBJECTIVES, TAUGHT
from bert_tf.models.electra.learner import Electra
from bert_tf.spelling import pack_spelling, spelling_names
from bert_tf.training.learners.distiller import Distiller
from bert_tf.training.learners.gated import GatedLearner
from bert_tf.training.learners.learner import Learner
from tests.networks.forms import FORMS, SIZES

BACKEND = keras.config.backend()
B, S, P = 3, 6, 3


@dataclasses.dataclass
class Case:
    make: Callable[[], keras.Model]
    features: dict[str, Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


class Many(Learner):
    """A learner whose batch has, under the names of objectives, their own features, and which
    returns the network's outputs too."""

    def batch_for(self, objective, batch):
        return {**batch, **batch.get(objective.name, {})}

    def seen_by(self, objective, outputs, batch):
        outputs = {"embedding_table": self.encoder.embedding_table, **outputs}
        return outputs, self.batch_for(objective, batch)

    def read_outputs(self, outputs, batch, seeds):
        return {**super().read_outputs(outputs, batch, seeds), "network": outputs}


def draw(*shape, low=0, high=8):
    """Integers, the same at each call with equal arguments."""
    return np.random.default_rng([*shape, low, high]).integers(low, high, shape).astype("int32")


def reals(*shape):
    return np.random.default_rng(shape).normal(size=shape).astype("float32")


MASK = (np.arange(S) < np.array([[6], [2], [4]])).astype("int32")
TEXT = {"input_ids": draw(B, S, low=1) * MASK, "input_mask": MASK,
        "segment_ids": (np.arange(S) >= 3).astype("int32") * MASK}
POSITIONS = {"masked_lm_positions": np.array([[1, 3, 0], [1, 0, 0], [2, 1, 3]], "int32"),
             "masked_lm_ids": draw(B, P),
             "masked_lm_weights": np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], "float32")}
PACKING = dict(zip(("packed_from", "packed_at", "predictions"), packed_features(
    MASK, POSITIONS["masked_lm_weights"] > 0, (0, 0), 1)))
LABELS = {
    "next_sentence_labels": draw(B, high=2), "label_ids": draw(B, high=2),
    "is_real_example": np.array([1, 1, 0], "float32"), "task_ids": np.array([[1], [2], [3]]),
    "token_label_ids": draw(B, S, high=2), "token_label_weights": MASK.astype("float32"),
    "label_weights": MASK, "span_left": draw(B, P, high=3), "span_right": draw(B, P, high=4) + 1,
    "span_offset": draw(B, P, high=5), "span_weights": POSITIONS["masked_lm_weights"],
    "original_ids": draw(B, S), "start_positions": np.array([3, 0, 3]),
    "end_positions": np.array([4, 0, 3]), "is_impossible": np.array([0, 1, 0]),
    "span_starts": np.array([[0, 3], [0, 1], [1, 2]]),
    "span_ends": np.array([[1, 4], [0, 1], [1, 3]]), "next_token_ids": draw(B, S),
    "next_token_weights": MASK.astype("float32"), "next_token_boundary": draw(B, S, high=2),
    "reverse_input_ids": TEXT["input_ids"][:, ::-1].copy(),
    "reverse_next_token_ids": draw(B, S, high=7)}
ALL = {**TEXT, **POSITIONS, **LABELS,
       **{name: {"label_ids": draw(B, S, high=3)} for name in ("tagging", "feature_tagging")},
       "multi_label": {"label_ids": draw(B, 3, high=2)}, "regression": {"label_ids": reals(B, 2)}}
CHOICES = {name: np.stack([value, value[::-1]], axis=1)
           for name, value in {**TEXT, **POSITIONS}.items()}
MASKS = {"head_mask": np.array([[1, 0] * 4, [0.5] * 8], "float32"),
         "unit_mask": np.linspace(0, 1, 16).reshape(2, 1, 1, 8).astype("float32")}
BERT = EncoderConfig(**SIZES)
CAUSAL = dataclasses.replace(BERT, directionality="left_to_right")
XLNET = config.XLNetConfig.from_dict({**FORMS["XLNetConfig"][0], "mem_len": 4, "clamp_len": 3})
MEMORY = {"memory": reals(B, 2, 4, 8)}
# Of the objectives for other networks than BERT's encoder, or for other features: the form of the
# configuration, or the configuration, and the features that differ.
ELSEWHERE: dict[str, tuple] = {
    "PonderTime": (("UniversalConfig", 1), {}), "TiedLM": (("GPTConfig", 0), {}),
    "NextTokenLM": (CAUSAL, {}), "MultipleChoice": (BERT, CHOICES),
    "WordOrderLM": (BERT, {"word_order_weights": np.array([[1, 0, 0], [0, 0, 0], [0, 1, 1]])}),
    "CandidateLM": (BERT, {**CHOICES, "label_ids": np.array([0, 1, 0])}),
    "SequenceLM": (("T5Config", 0), {
        "encoder_input_tokens": TEXT["input_ids"], "decoder_target_tokens": draw(B, 5),
        "decoder_input_tokens": draw(B, 5, low=2) * (np.arange(5) > 0)}),
    "PermutationLM": (XLNET, {"query_order": draw(B, S), "key_order": draw(B, S),
                              "is_backward": np.array([[0], [1], [0]]), "carried": MEMORY}),
    "StreamLM": (dataclasses.replace(XLNET, directionality="left_to_right"), {
        "is_start": np.array([[0], [0], [1]]),
        "carried": {**MEMORY, "remembered": np.array([[4], [2], [0]], "float32")}}),
    "BidirectionalLM": (("ElmoConfig", 2), {}), "RecurrentLM": (("SequenceLstmConfig", 0), {
        "is_start": np.array([[0], [1], [0]]),
        "carried": {f"lstm_{i}": reals(B, 12) for i in range(2)}})}
# ALBERT and a BiLSTM have no dropout, and a step in integers moves their ranges; other networks are
# among other cases, too.
WITHOUT_DROPOUT = {"EncoderConfig 1", "BiLstmConfig 1", "MobileBertConfig 5", "ElmoConfig 0",
                   "BERT", "NextTokenLM", "WordOrderLM", "CandidateLM",
                   "MultipleChoice", "StreamLM", "DualMaskedLM", "taught", "Electra", "HeadGates"}
OPTIONS = {"StepClassification": {"label_gain": True},
           "ConditionalSpan": {"num_starts": 1, "num_ends": 1},     # others are equally unlikely
           "Classification": {"reader_size": 2, "label_smoothing": 0.1, "class_weights": [1, 2]},
           "FeatureTagging": {"layers": "elmo", "do_layer_norm": True, "l2_coef": 0.1,
                              "lstm_layers": 1},
           "AttentiveClassification": {"pairs": True, "hidden_size": 5, "lstm_layers": 1},
           "StochasticAnswer": {"turns": 2},
           "SpanComparison": {"reads_cls": True}, "MaskedLM": {"tied": False},
           "BidirectionalLM": {"n_negative_samples_batch": 3},
           "RecurrentLM": {"n_negative_samples_batch": 3}}


def objective(name, sizes):
    head = OBJECTIVES[name]
    return getattr(objectives, name)(
        sizes, **{"num_labels": 3 if name in ("MultiLabel", "Tagging", "FeatureTagging") else 2}
        if head.is_labelled else {}, **{"lstm_size": 2} if "features/scale" in head.shapes else {},
        **OPTIONS.get(name, {}))


def form(name, number=0):
    return getattr(config, name).from_dict(FORMS[name][number])


def learner_of(names, sizes):
    return Many(networks.build(sizes), [objective(name, sizes) for name in names])


def objective_cases():
    """Yields all objectives with their networks: those of BERT's encoder in one learner."""
    yield "BERT", Case(lambda: learner_of([name for name in OBJECTIVES if name not in ELSEWHERE],
                                          BERT), ALL)
    for name, (sizes, features) in ELSEWHERE.items():
        yield name, Case(lambda name=name, sizes=sizes: learner_of(
            [name], sizes if isinstance(sizes, config.Sizes) else form(*sizes)),
            {**({} if name == "SequenceLM" else {**TEXT, **POSITIONS, **LABELS}), **features})
    yield "taught", Case(_distiller, {**ALL, "step": np.array(3)})
    yield "DualMaskedLM", Case(lambda: Many(networks.build(BERT), [
        objectives.DualMaskedLM(BERT, 3)]), ALL)
    yield "HeadGates", Case(lambda: GatedLearner(networks.build(BERT), [
        objectives.Classification(BERT, 2), objectives.HeadGates(BERT)]), ALL)
    yield "Electra", Case(lambda: Electra(
        networks.build(BERT), [objectives.MaskedLM(BERT), objectives.ReplacedToken(BERT)],
        networks.build(BERT, name="generator")), {
            **ALL, **PACKING, "draws": (draw(B, P) / 8).astype("float32")})


def _distiller():
    kinds = [getattr(objectives, name) for name in TAUGHT if name != "DualMaskedLM"]
    return Distiller(
        networks.build(BERT), [objectives.MaskedLM(BERT), *(
            kind(BERT, **dict.fromkeys(kind.sizes, 8)) for kind in kinds)],
        Learner(networks.build(BERT, name="teacher"), [objectives.MaskedLM(BERT)]))


def network_cases():
    """Yields the networks without an objective of their own, and what only some networks take."""
    task_ids = {"task_ids": draw(B, 1, high=3)}
    for name, number, features, options in (
            ("EncoderConfig", 1, {**PACKING, **task_ids}, {}),      # ALBERT
            ("EncoderConfig", 5, {}, {}),                           # quantised
            ("ModernBertConfig", 0, PACKING, {}),
            ("FixedPatternConfig", 0, {}, {"return_attention": True}),
            ("MobileBertConfig", 0, {}, {"head_mask": MASKS["head_mask"]}),
            ("EuroBertConfig", 0, PACKING, {}), ("NomicBertConfig", 0, PACKING, {}),
            ("MPNetConfig", 0, PACKING, {}), ("DebertaConfig", 2, {}, {}),
            ("DebertaConfig", 4, {}, {}),
            ("MobileBertConfig", 5, {}, {}),                        # in integers
            ("ElmoConfig", 0, _spelling(), {}), ("BiLstmConfig", 1, {}, {})):
        yield f"{name} {number}", Case(lambda name=name, number=number: networks.build(
            form(name, number)), {**TEXT, **features}, options)
    for again in (False, True):
        yield f"BertEncoder again={again}", Case(
            lambda again=again: _rematerialized(again),
            {**TEXT, "word_noise": reals(B, S, 8), **({} if again else PACKING)}, MASKS)


def _spelling():
    size = form("ElmoConfig").max_characters_per_token
    ids = draw(B, S, size, low=1, high=262) * MASK[:, :, None]
    return dict(zip(spelling_names(size), pack_spelling(ids)))


def _rematerialized(again):
    network = networks.build(BERT)
    network.rematerializes = again
    return network


def fill(model):
    """Draws all trained weights, and a teacher's, in the order in which they were made."""
    rng = np.random.default_rng(7)
    teacher = model.teacher.weights if isinstance(model, Distiller) else []
    for variable in [*model.trainable_variables, *teacher]:
        if "seed" not in variable.name:
            value = rng.normal(0, 0.3, variable.shape)
            variable.assign(value + (variable.name in ("gamma", "scale")))


def run(model, case, **options):
    """Returns the outputs and the loss: of a network without objectives, a sum of all outputs."""
    outputs = model(case.features, **case.options, **options)
    if isinstance(model, Learner):
        measures = model.measure_logits(outputs, case.features)
        return {"logits": outputs, "measures": measures}, model.total_loss(measures)
    return outputs, sum(ops.mean(ops.sin(i + ops.clip(x, -50, 50)))
                        for i, x in enumerate(tree.flatten(outputs)))


def outputs_and_gradients(model, case):
    variables = model.trainable_variables
    values = [variable.value for variable in variables]
    if BACKEND == "jax":
        import jax

        def loss_of(values):
            with keras.StatelessScope(state_mapping=list(zip(variables, values))):
                outputs, loss = run(model, case)
            return loss, outputs
        gradients, outputs = jax.jit(jax.grad(loss_of, has_aux=True))(values)
    elif BACKEND == "torch":
        outputs, loss = run(model, case)
        loss.backward()
        gradients = [value.grad for value in values]
    else:
        import tensorflow as tf
        with tf.GradientTape() as tape:
            outputs, loss = run(model, case)
        gradients = tape.gradient(loss, values)
    return outputs, {variable.path: gradient
                     for variable, gradient in zip(variables, gradients) if gradient is not None}


def arrays(tensors, prefix):
    """Returns all tensors of a nested dict as arrays, by their paths."""
    return {"/".join(map(str, (prefix, *path))): ops.convert_to_numpy(value)
            for path, value in tree.flatten_with_path(tensors) if value is not None}


def results(name, case):
    """Returns the arrays of a case. Before them it checks its dropout."""
    keras.utils.set_random_seed(1)
    model = case.make()
    fill(model)
    outputs, gradients = outputs_and_gradients(model, case)
    if BACKEND != "tensorflow" and name not in WITHOUT_DROPOUT:
        check_dropout(name, model, case)
    return {**arrays(outputs, f"{name}/outputs"), **arrays(gradients, f"{name}/gradients")}


def check_dropout(name, model, case):
    """Checks that dropout is a function of the seed."""
    def loss_of(seed):
        return run(model, case, training=True, dropout_seed=seed)[1]

    if BACKEND == "jax":
        import jax
        loss_of = jax.jit(loss_of)
    one, same, other, turned = (ops.convert_to_numpy(loss_of(ops.convert_to_tensor(seed, "int32")))
                                for seed in ([1, 2], [1, 2], [1, 3], [2, 1]))
    assert one == same and len({float(one), float(other), float(turned)}) == 3, name


def all_cases():
    return {**dict(network_cases()), **dict(objective_cases())}


if __name__ == "__main__":
    found = {}
    for name, case in all_cases().items():
        found |= results(name, case)
    np.savez(sys.argv[1], **found)
