"""ModernBERT's first weights and training steps are those of its code and of transformers
(golden/modernbert of $BERT_TF_TEST_DATA)."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import MaskedLM, checkpoints, networks, open_model
from bert_tf.checkpoints.weights import variables
from bert_tf.config import ModernBertConfig
from bert_tf.models.modernbert import huggingface
from bert_tf.training import Learner
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer

HEADS = {"masked_lm"}


def by_their_names(learner, folder):
    """Functions that return the values of variables, as transformers has them, by its names."""
    table = huggingface.table_for(checkpoints.read(folder))
    rules = {rule.ours: rule for rule in table.rules(learner.encoder.config)}
    named = {rules[name].theirs: (variable, rules[name].layout == "transpose")
             for name, variable in variables(learner, HEADS).items() if name in rules}
    return {name: (lambda variable=variable, turned=turned:
                   np.array(variable).T if turned else np.array(variable))
            for name, (variable, turned) in named.items()}


def test_six_steps(test_data):
    folder = test_data / "golden" / "modernbert" / "mlm_windowed"
    golden = np.load(test_data / "golden" / "modernbert" / "training_steps.npz")
    settings, names = json.loads(str(golden["settings"])), json.loads(str(golden["names"]))
    learner = open_model(folder).learner(heads=[("MaskedLM", {})])
    rate = WarmupLinearDecay(settings["lr"], settings["steps"], settings["warmup"],
                             "warmup_stable_decay", start=1e-10 * settings["lr"],
                             decay_steps=settings["decay"])
    optimizer = make_optimizer("stable_adamw", rate, weight_decay=settings["weight_decay"])
    optimizer.build(learner.trainable_variables)

    def loss_of(ids, labels):
        chosen = labels != -100
        places = np.argsort(~chosen, axis=1, kind="stable")[:, :chosen.sum(1).max()]
        used = np.take_along_axis(chosen, places, 1)
        batch = {"input_ids": ids, "input_mask": golden["attention_mask"],
                 "masked_lm_positions": places, "masked_lm_weights": used.astype("float32"),
                 "masked_lm_ids": np.where(used, np.take_along_axis(labels, places, 1), 0)}
        total, count = learner.measure({
            name: tf.constant(value if name == "masked_lm_weights" else value.astype("int32"))
            for name, value in batch.items()})["masked_lm"]["loss"]
        return total / count

    values = by_their_names(learner, folder)
    for step in range(settings["steps"]):
        batch = golden[f"step/{step}/input_ids"], golden[f"step/{step}/labels"]
        assert float(optimizer.learning_rate) == pytest.approx(
            settings["lr"] * golden["multiplier"][step], rel=1e-6)
        with tf.GradientTape() as tape:
            loss = loss_of(*batch)
        assert float(loss) == pytest.approx(golden["losses"][step], abs=5e-6)
        trained = learner.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in trained], unconnected_gradients="zero")
        optimizer.apply([tf.convert_to_tensor(gradient) for gradient in gradients], trained)
        norms = [np.linalg.norm(values[name]()) for name in names]
        assert norms == pytest.approx(golden["norms"][step], rel=2e-6)
    assert float(loss_of(*batch)) == pytest.approx(golden["loss_after"], abs=5e-6)
    for key in golden.files:
        if key.startswith("after/"):
            name, expected = key.removeprefix("after/"), golden[key]
            if name == "embeddings_first_12_rows":
                found = values["model.embeddings.tok_embeddings.weight"]()[:12]
            else:
                found = values[name]()
            assert np.linalg.norm(found - expected) < 1e-5 * np.linalg.norm(expected), name


def test_first_weights_have_the_spread_of_transformers(test_data):
    measured = json.loads((test_data / "golden/modernbert/first_weights.json").read_text())
    config = ModernBertConfig(vocab_size=3000, hidden_size=128, num_hidden_layers=4,
                              num_attention_heads=4, intermediate_size=192)
    keras.utils.set_random_seed(3)
    learner = Learner(networks.build(config), [MaskedLM(config)])
    names = {rule.ours: rule.theirs for rule in huggingface._table("model.").rules(config)}
    compared = 0
    for name, variable in variables(learner, HEADS).items():
        expected = measured.get(f"ModernBertForMaskedLM: {names.get(name)}")
        if expected:
            value = np.array(variable)
            assert value.std() == pytest.approx(expected["std"], rel=0.03, abs=1e-9), name
            assert np.abs(value).max() == pytest.approx(expected["max_abs"], rel=0.03), name
            compared += 1
    assert compared == 12
