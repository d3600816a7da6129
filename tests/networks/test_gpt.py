"""GPT computes and learns what openai/finetune-transformer-lm does."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.weights import variables
from bert_tf.config import GPTConfig
from bert_tf.errors import InputError
from bert_tf.networks.gpt import GPT
from bert_tf.objectives.classification import MultipleChoice
from bert_tf.objectives.next_token import TiedLM
from bert_tf.training.learner import Learner
from bert_tf.training.optimizer import WarmupLinearDecay, make_optimizer

pytestmark = pytest.mark.usefixtures("eagerly")
TINY = GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=32, max_position_embeddings=6)


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    with np.load(test_data / "golden" / "gpt" / "finetune_seed1.npz") as file:
        return dict(file)


def config_of(sizes):
    return GPTConfig(
        vocab_size=sizes["n_vocab"] + sizes["n_special"], hidden_size=sizes["n_embd"],
        num_hidden_layers=sizes["n_layer"], num_attention_heads=sizes["n_head"],
        intermediate_size=4 * sizes["n_embd"], max_position_embeddings=sizes["n_ctx"],
        hidden_dropout_prob=sizes["resid_pdrop"], attention_probs_dropout_prob=sizes["attn_pdrop"],
        embedding_dropout_prob=sizes["embd_pdrop"])


def our_values(golden, prefix, config):
    """The original's variables by our names."""
    def theirs(name):
        return golden[f"{prefix}/model/{name}"]

    found = {"multiple_choice/dense/kernel": theirs("clf/w"),
             "multiple_choice/dense/bias": theirs("clf/b")}
    found["embeddings/word_embeddings"], found["embeddings/position_embeddings"] = np.split(
        theirs("we"), [config.vocab_size])
    for i in range(config.num_hidden_layers):
        layer = f"encoder/layer_{i}"
        for end, name, axis in (("w", "kernel", 1), ("b", "bias", 0)):
            for part, value in zip(("query", "key", "value"), np.split(
                    theirs(f"h{i}/attn/c_attn/{end}").reshape((-1, 3 * config.hidden_size))
                    if end == "w" else theirs(f"h{i}/attn/c_attn/b"), 3, axis)):
                found[f"{layer}/attention/self/{part}/{name}"] = value
            for ours, module in (("attention/output", "attn/c_proj"),
                                 ("intermediate", "mlp/c_fc"), ("output", "mlp/c_proj")):
                value = theirs(f"h{i}/{module}/{end}")
                found[f"{layer}/{ours}/dense/{name}"] = value[0] if end == "w" else value
        for ours, norm in (("attention/output", "ln_1"), ("output", "ln_2")):
            for end, name in (("g", "gamma"), ("b", "beta")):
                found[f"{layer}/{ours}/LayerNorm/{name}"] = theirs(f"h{i}/{norm}/{end}")
    return found


def batch_of(golden, step):
    ids = golden[f"step{step}/ids"].astype("int32")
    assert (ids[..., 1] - ids[..., 1].min() == np.arange(ids.shape[2])).all()
    return {"input_ids": ids[..., 0], "input_mask": golden[f"step{step}/mask"].astype("int32"),
            "label_ids": golden[f"step{step}/labels"]}


def test_forward_losses_gradients_and_steps_are_the_originals(golden):
    sizes = json.loads(str(golden["sizes"]).replace("'", '"').replace("False", "false"))
    config = config_of(sizes)
    learner = Learner(GPT(config), [
        MultipleChoice(config, dropout_rate=sizes["clf_pdrop"]),
        TiedLM(config, by_row=True, auxiliary=True, loss_weight=sizes["lm_coef"])])
    named = variables(learner)
    start = our_values(golden, "initial", config)
    assert named.keys() == start.keys()
    for name, variable in named.items():
        variable.assign(start[name].reshape(variable.shape))
    total = sizes["n_updates_total"]
    optimizer = make_optimizer("gpt_adam", WarmupLinearDecay(
        sizes["lr"], total, sizes["lr_warmup"] * total, "gpt"), weight_decay=sizes["l2"])
    optimizer.build(learner.trainable_variables)
    learner.epsilon = 0.0
    for step in range(4):
        batch = batch_of(golden, step)
        with tf.GradientTape() as tape:
            logits = learner(batch, training=True)
            measures = learner.measure_logits(logits, batch)
            loss = learner.total_loss(measures)
        grads = [tf.convert_to_tensor(g) for g in tape.gradient(
            loss, [v.value for v in learner.trainable_variables])]
        assert np.abs(logits["multiple_choice"] - golden[f"step{step}/logits"]).max() < 1e-5
        row_means = (np.array(logits["tied_lm"])[..., 0]
                     * np.array(learner.targets(batch)["tied_lm"][1])).sum(1)
        assert np.abs(row_means - golden[f"step{step}/lm_losses"]).max() < 1e-5
        assert abs(float(loss) - golden[f"step{step}/clf_losses"].mean()
                   - sizes["lm_coef"] * golden[f"step{step}/lm_losses"].mean()) < 1e-5
        if step == 0:
            rows = {name: batch[name].reshape(-1, sizes["n_ctx"])
                    for name in ("input_ids", "input_mask")}
            for number, layer in enumerate(learner.encoder(rows)["layer_outputs"]):
                assert np.abs(layer - golden[f"layer{number}"]).max() < 1e-5
            wanted, found = our_values(golden, "grad", config), dict(zip(named, grads))
            for name, value in found.items():
                assert np.abs(value - wanted[name].reshape(value.shape)).max() < 3e-6, name
        optimizer.apply(grads, learner.trainable_variables)
        if f"after{step + 1}/model/we" in golden:
            wanted = our_values(golden, f"after{step + 1}", config)
            for name, variable in named.items():
                # These have a gradient of 0, by which Adam moves them anyhow.
                if "key/bias" not in name and name != "multiple_choice/dense/bias":
                    difference = np.abs(variable.numpy() - wanted[name].reshape(variable.shape))
                    # A gradient near epsilon is noise that Adam's first steps enlarge.
                    assert difference.max() < 1e-4, (step, name)
                    assert np.quantile(difference, 0.99) < 1e-5, (step, name)


def test_dropout_is_that_of_the_table_and_the_softmax_has_positions():
    keras.utils.set_random_seed(1)
    network = GPT(TINY)
    ids = {"input_ids": np.array([[3, 3, 4, 5]], "int32"),
           "input_mask": np.ones((1, 4), "int32")}
    outputs = network(ids, training=True)
    table = np.array(outputs["output_table"])
    assert table.shape == (17, 8) and (table == 0).any()
    assert np.allclose(outputs["embedding_output"][0], table[[3, 3, 4, 5]] + table[11:15])
    with pytest.raises(ValueError, match="longer than max_position_embeddings"):
        network({"input_ids": np.ones((1, 7), "int32")})


def test_the_released_size_is_the_published_one():
    # Words, three special tokens and positions; twelve layers.
    assert GPTConfig().num_weights > 116_000_000
    assert GPTConfig().num_weights == (40_481 + 512) * 768 + 12 * 12 * 768 * 768
    with pytest.raises(InputError, match="unknown key 'type_vocab_size'"):
        GPTConfig.from_dict({"type_vocab_size": 2})
