"""RoBERTa's network, loss, optimizer and schedule against fairseq's own numbers."""

import re

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.weights import variables
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from tests.rounding import ROUNDED, off, off_steps

# Our names by fairseq's, without "encoder." and "sentence_encoder." before them.
NAMES = {"embed_tokens": "embeddings/word_embeddings",
         "embed_positions": "embeddings/position_embeddings",
         "layernorm_embedding": "embeddings/LayerNorm",
         "self_attn.q_proj": "attention/self/query", "self_attn.k_proj": "attention/self/key",
         "self_attn.v_proj": "attention/self/value",
         "self_attn.out_proj": "attention/output/dense",
         "self_attn_layer_norm": "attention/output/LayerNorm", "fc1": "intermediate/dense",
         "fc2": "output/dense", "final_layer_norm": "output/LayerNorm",
         "lm_head.dense": "masked_lm/transform/dense",
         "lm_head.layer_norm": "masked_lm/transform/LayerNorm",
         "lm_head": "masked_lm/output_bias",
         "classification_heads.head.dense": "pooler/dense",
         "classification_heads.head.out_proj": "classification/dense"}


def ours(golden, group):
    """The arrays of fairseq's golden file whose names begin with `group`, under our names."""
    found = {}
    for key in golden.files:
        if not key.startswith(f"{group}/") or key.endswith(("version", "lm_head.weight")):
            continue
        name = re.sub(r"(encoder\.|sentence_encoder\.)", "", key.removeprefix(f"{group}/"))
        layer, name = re.match(r"(?:layers\.(\d+)\.)?(.*)", name).groups()
        base, end = name.rsplit(".", 1)
        base = NAMES[base] if layer is None else f"encoder/layer_{layer}/{NAMES[base]}"
        value = golden[key]
        if "embed_positions" in name:
            value = value[2:]           # no token has the first two
        elif not base.endswith(("embeddings", "bias")):
            ends = {"weight": "gamma", "bias": "beta"} if "LayerNorm" in base else {
                "weight": "kernel", "bias": "bias"}
            base, value = f"{base}/{ends[end]}", value.T if "dense" in base or "self" in base \
                else value
        found[base] = value
    return found


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return np.load(test_data / "golden" / "roberta" / "forward_seed1.npz")


@pytest.fixture(name="batch", scope="module")
def fixture_batch(golden):
    chosen = golden["target"] != 1
    most = chosen.sum(1).max()
    positions = np.argsort(~chosen, axis=1, kind="stable")[:, :most].astype("int32")
    used = np.take_along_axis(chosen, positions, 1)
    return {"input_ids": golden["src_tokens"].astype("int32"),
            "input_mask": golden["input_mask"].astype("int32"),
            "masked_lm_positions": positions, "masked_lm_weights": used.astype("float32"),
            "masked_lm_ids": np.take_along_axis(golden["target"], positions, 1).astype("int32")}


@pytest.fixture(name="learner")
def fixture_learner(golden):
    config = bert_tf.EncoderConfig(301, 32, 2, 4, 64, "gelu_erf", 0.0, 0.0, 40, 1,
                                   layer_norm_eps=1e-5, model_type="roberta")
    learner = bert_tf.Learner(bert_tf.BertEncoder(config), [bert_tf.MaskedLM(config)])
    weights = ours(golden, "weight")
    found = variables(learner)
    assert found.keys() - weights == {"embeddings/token_type_embeddings"}
    assert weights.keys() - found == {"classification/dense/kernel", "classification/dense/bias"}
    for name, variable in found.items():
        if name in weights:
            variable.assign(weights[name])
    assert not np.any(found["embeddings/token_type_embeddings"])
    return learner


def test_forward(golden, batch, learner):
    tokens = batch["input_mask"] == 1       # outputs at padding mean nothing
    outputs = learner.encoder(batch)
    everywhere = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    found = {"embedding_output": outputs["embedding_output"],
             "layer_1": outputs["layer_outputs"][0], "layer_2": outputs["layer_outputs"][1],
             "logits": learner({**batch, "masked_lm_positions": everywhere})["masked_lm"]}
    for name in found.keys() & golden:
        assert off(np.asarray(found[name])[tokens], golden[name][tokens]) < ROUNDED, name
    head = ours(golden, "weight")
    logits = (np.asarray(outputs["pooled_output"]) @ head["classification/dense/kernel"]
              + head["classification/dense/bias"])
    assert off(logits, golden["classification_logits"]) < ROUNDED


def test_six_steps(golden, batch, learner):
    batch = {name: tf.constant(value) for name, value in batch.items()}
    named = variables(learner)
    optimizer = make_optimizer("fairseq_adam", WarmupLinearDecay(0.05, 6, 2, "roberta"))
    optimizer.build(learner.trainable_variables)

    @tf.function(autograph=False)
    def differentiate():
        with tf.GradientTape() as tape:
            total, count = learner.measure(batch)["masked_lm"]["loss"]
            loss = total / count
        grads = tape.gradient(loss, [v.value for v in learner.trainable_variables],
                              unconnected_gradients="zero")
        return total, count, [tf.convert_to_tensor(grad) for grad in grads]

    for step in range(6):
        assert float(optimizer.learning_rate) == pytest.approx(golden["step_rates"][step])
        total, count, grads = differentiate()
        assert float(total / count) == pytest.approx(golden["step_losses"][step], rel=ROUNDED)
        if step == 0:
            assert float(total) == pytest.approx(float(golden["loss_sum"]), rel=ROUNDED)
            assert int(count) == golden["sample_size"]
            by_name = {id(v): grad for v, grad in zip(learner.trainable_variables, grads)}
            for name, wanted in ours(golden, "gradient").items():
                assert off(by_name[id(named[name])], wanted) < ROUNDED, name
        optimizer.apply(grads, learner.trainable_variables)
        if step in (1, 5):
            for name, wanted in ours(golden, f"after_step_{step + 1}").items():
                assert off(named[name].numpy(), wanted) < off_steps(0.05, step + 1), name
    assert not np.any(named["embeddings/token_type_embeddings"])
