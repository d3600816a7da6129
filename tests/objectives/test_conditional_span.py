"""Heads of fine-tuning against what google-research/albert and google-research/electra compute."""

import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints
from bert_tf.checkpoints import tensor_bundle
from bert_tf.config import EncoderConfig
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives import (
    AnswerSpan,
    Classification,
    ConditionalSpan,
    Regression,
    Tagging,
)
from bert_tf.objectives.conditional_span import FORMS
from bert_tf.training import transfer
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from bert_tf.training.trainer import Trainer
from tests.goldens import at_hand, part
from tests.rounding import ROUNDED, assert_same, off

ALBERT_ENCODER = (("encoder/embedding_hidden_mapping_in", "embeddings_project"),
                  ("encoder/transformer/group_0/inner_group_0/", "encoder/layer_0/"),
                  ("attention_1/", "attention/"),
                  ("layer_0/LayerNorm/", "layer_0/attention/output/LayerNorm/"),
                  ("layer_0/LayerNorm_1", "layer_0/output/LayerNorm"),
                  ("ffn_1/intermediate/output", "output"), ("ffn_1/intermediate", "intermediate"))
ALBERT_HEAD = (("start_logits/dense", "start"), ("end_logits/dense_0", "end/hidden"),
               ("end_logits/LayerNorm", "end/LayerNorm"), ("end_logits/dense_1", "end/dense"),
               ("answer_class/dense_0", "answerable/hidden"),
               ("answer_class/dense_1", "answerable/dense"))
DENSE = (("output_weights", "dense/kernel"), ("output_bias", "dense/bias"), ("dense", "dense"))
ELECTRA_HEAD = (("qa_hidden", "end/hidden"), ("dense_1/", "end/dense/"),
                ("dense_2", "answerable/hidden"), ("dense_3", "answerable/dense"),
                ("dense/", "start/"))
ELECTRA_FREE = (("dense_1/", "end/dense/"), ("dense_2", "answerable/dense"), ("dense/", "start/"))


def give(learner, file, head=DENSE):
    """Gives a Learner the stored weights, each of which has a place."""
    objective, = learner.objectives
    named = {v.path.split("/", 1)[1]: v for v in learner.encoder.weights}
    named |= {v.path: v for v in objective.weights}
    values = {}
    for name, value in part(file, "weights/").items():
        if name.startswith(("bert/", "electra/")):
            name = name.split("/", 1)[1]
            for theirs, ours in ALBERT_ENCODER:
                name = name.replace(theirs, ours)
        else:
            name = re.sub("task_specific/[a-z]+/|cls/squad/", "", name)
            theirs, ours = next(pair for pair in head if name.startswith(pair[0]))
            value = value.T if "output_weights" in name else value
            name = f"{objective.name}/{ours}{name.removeprefix(theirs)}"
        named[name].assign(value)
        values[name] = value
    assert {name for name in named if not name.startswith("pooler/")} <= set(values)
    return learner


def albert(file, make):
    config = EncoderConfig.from_dict(json.loads(str(file["config"])))
    return Learner(BertEncoder(config), [make(config)])


def electra(file, make):
    options = json.loads(str(file["options"]))
    sizes = options["model_hparam_overrides"]
    config = EncoderConfig(
        vocab_size=96, type_vocab_size=2, hidden_act="gelu_erf", model_type="electra",
        pooler_type="first_token", embedding_size=options["embedding_size"], **sizes)
    return Learner(BertEncoder(config), [make(config)])


def steps(learner, batch, optimizer, count):
    """The mean losses before each of some steps."""
    losses = []
    for _ in range(count):
        with tf.GradientTape() as tape:
            loss = learner.total_loss(learner.measure(batch, training=True))
        losses.append(float(loss))
        variables = learner.trainable_variables
        grads = tape.gradient(loss, [v.value for v in variables], unconnected_gradients="zero")
        optimizer.apply([tf.convert_to_tensor(grad) for grad in grads], variables)
    return losses


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return lambda system, name: np.load(test_data / "golden" / system / f"{name}.npz")


def test_albert_finds_beams_and_learns(golden):
    file = golden("albert", "head_squad_v2")
    learner = give(albert(file, lambda config: ConditionalSpan(
        config, "albert", num_starts=3, num_ends=4, dropout_rate=0.0)), file, ALBERT_HEAD)
    batch, expected = part(file, "batch/"), part(file, "predictions/")
    objective, = learner.objectives
    assert np.array_equal(FORMS["albert"].allowed(batch), batch["p_mask"] == 0)
    logits = learner(batch)[objective.name]
    found = {name: np.array(value).reshape(4, -1)
             for name, value in objective.answers(logits).items()}
    real = expected["end_top_log_probs"] > -1e29        # the others are in any order
    for name in ("start_top_index", "start_top_log_probs", "end_top_index", "end_top_log_probs"):
        mask = real if name.startswith("end") else ...
        assert np.allclose(found[name][mask], expected[name][mask], atol=1e-5), name
    assert np.allclose(found["answerable_logits"][:, 0], expected["cls_logits"], atol=1e-5)
    optimizer = make_optimizer("bert_adamw", WarmupLinearDecay(1e-3, 10))
    assert np.allclose(steps(learner, batch, optimizer, 3), file["losses"], rtol=1e-5)


@pytest.mark.parametrize("name, make, head", [
    ("head_squad", lambda config: ConditionalSpan(config, "electra", num_starts=4, num_ends=4),
     ELECTRA_HEAD),
    ("head_squad_independent", lambda config: ConditionalSpan(
        config, "electra", joint=False, uses_starts=False), ELECTRA_FREE)])
def test_electra_answers(golden, name, make, head):
    file = golden("electra", name)
    learner = give(electra(file, make), file, head)
    features = part(file, "features/")
    batch = {name.removeprefix("squad_"): value for name, value in features.items()}
    objective, = learner.objectives
    logits = learner(batch)[objective.name]
    labels, weights = objective.targets(batch)
    losses = [float(objective.loss({name: value[row:row + 1] for name, value in logits.items()},
                                   labels[row:row + 1], weights[row:row + 1])[0])
              for row in range(len(labels))]
    assert np.allclose(losses, file["train/loss"], rtol=1e-5)
    assert np.allclose(logits["end"], file["train/end_logits"], atol=1e-4)
    assert np.allclose(logits["answerable"], file["eval/answerable_logit"], atol=1e-5)
    if objective.joint:     # of the other form the original gives no beams
        for name in ("start_top_index", "start_top_log_probs", "end_top_index",
                     "end_top_log_probs"):
            assert np.allclose(logits[name], file[f"eval/{name}"], atol=1e-5), name


def test_albert_as_bert_answers_in_version_1(golden):
    file = golden("albert", "head_squad_v1")
    learner = give(albert(file, AnswerSpan), file)
    batch = part(file, "batch/")
    found = learner.objectives[0].answers(learner(batch)["answer_span"])
    for ours, theirs in (("start_logits", "start_log_prob"), ("end_logits", "end_log_prob")):
        assert np.allclose(found[ours], file[f"predictions/{theirs}"], atol=1e-5)
    optimizer = make_optimizer("bert_adamw", WarmupLinearDecay(1e-3, 10))
    assert np.allclose(steps(learner, batch, optimizer, 3), file["losses"], rtol=1e-5)


@pytest.mark.parametrize("path, make", at_hand("golden/{}.npz", [
    ("albert/head_mnli", lambda config: Classification(config, 3, dropout_rate=0.0)),
    ("albert/head_sts-b", lambda config: Regression(config, dropout_rate=0.0)),
    ("electra/head_mrpc", lambda config: Classification(config, 2, dropout_rate=0.0)),
    ("electra/head_sts", lambda config: Regression(config, dropout_rate=0.0)),
    ("electra/head_chunk", lambda config: Tagging(config, 5, dropout_rate=0.0))]))
def test_losses_of_other_tasks_are_the_originals(golden, path, make):
    system, name = path.split("/head_")
    file = golden(system, f"head_{name}")
    learner = give((albert if system == "albert" else electra)(file, make), file)
    if system == "albert":
        batch = {**part(file, "batch/"), "label_ids": file["labels"]}
        expected = file["outputs/per_example_loss"].sum()
    else:
        batch = {key.removeprefix(f"{name}_"): value
                 for key, value in part(file, "features/").items()}
        batch["label_ids"] = batch.get("label_ids", batch.get("targets"))
        expected = file["eval/total_loss"]
    if name == "chunk":     # where the labels are stands beside them
        rows, columns = np.nonzero(batch["labels_mask"])
        places = rows, batch["labeled_positions"][rows, columns]
        batch["label_ids"] = np.zeros_like(batch["labels"])
        batch["label_weights"] = np.zeros_like(batch["labels_mask"])
        batch["label_ids"][places] = batch["labels"][rows, columns]
        batch["label_weights"][places] = 1
    objective, = learner.objectives
    total, _ = learner.measure(batch)[objective.name]["loss"]
    assert float(total) == pytest.approx(float(expected), rel=1e-5)
    # ELECTRA's head of regression has its predictions alone.
    wanted = next(file[key] for key in ("outputs/logits", "eval/logits", "eval/predictions")
                  if key in file)
    found = np.array(learner(batch)[objective.name])
    if name == "chunk":     # at the first tokens of words alone
        assert off(found[places], wanted[rows, columns]) < ROUNDED
    else:
        assert off(found.reshape(wanted.shape), wanted) < ROUNDED


def test_a_beam_is_wider_than_a_short_sequence_and_is_saved(tmp_path):
    config = EncoderConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                           intermediate_size=8, max_position_embeddings=16)
    learner = Learner(BertEncoder(config), [ConditionalSpan(config, "electra")])
    batch = {"input_ids": np.array([[1, 2, 3, 4]]), "input_mask": np.ones((1, 4), int),
             "segment_ids": np.array([[0, 0, 1, 1]])}
    found = learner.objectives[0].answers(learner(batch)["conditional_span"])
    assert sorted(np.array(found["start_top_index"])[0, :4].tolist()) == [0, 1, 2, 3]
    assert np.isfinite(found["end_top_log_probs"]).all()
    assert {name: value.shape for name, value in found.items()} == {
        "start_top_log_probs": (1, 5), "start_top_index": (1, 5), "end_top_log_probs": (1, 5, 5),
        "end_top_index": (1, 5, 5), "answerable_logits": (1,)}
    learner.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")(batch)["conditional_span"]
    assert np.array_equal(again["end_top_log_probs"], found["end_top_log_probs"])
    account = checkpoints.load(tmp_path / "model.keras", Learner(
        BertEncoder(config), [ConditionalSpan(config, "electra")]))
    assert not account.missing


def test_summed_losses_and_slower_layers_train_as_electra_does(golden):
    file = golden("electra", "finetuning_steps")
    learner = give(electra(file, lambda config: Classification(config, 2, dropout_rate=0.0)), file)
    features = part(file, "features/")
    batch = {name: tf.constant(features[name])
             for name in ("input_ids", "input_mask", "segment_ids")}
    batch["label_ids"] = tf.constant(features["mrpc_label_ids"])
    trainer = Trainer(learner, make_optimizer(
        "bert_adamw", WarmupLinearDecay(2e-3, 10, 2.5, "electra"),
        rate_factors=transfer.layer_decay_factors(
            learner.encoder.config, 0.8, 2)), tf.distribute.get_strategy(), sums_losses=True)
    batches = iter(trainer.distribute(lambda *_: tf.data.Dataset.from_tensors(batch).repeat()))
    for expected in file["losses"][:4]:
        assert trainer.train(batches, 1)["loss"] * 6 == pytest.approx(float(expected), rel=1e-5)
    named = {f"electra/{v.path.split('/', 1)[1]}": v for v in learner.encoder.weights}
    named |= {f"task_specific/mrpc/{v.path.split('/', 1)[1]}": v
              for v in learner.objectives[0].weights}
    for name, value in part(file, "after_4/").items():
        assert np.allclose(named[name].numpy(), value, atol=1e-5), name


@pytest.mark.parametrize("system, form, sizes", [
    ("albert", "albert", {"num_hidden_groups": 1, "embedding_size": 4}),
    ("electra", "electra", {"hidden_act": "gelu_erf", "pooler_type": "first_token"})])
def test_googles_code_of_the_system_gets_the_head_and_gives_it_back(tmp_path, system, form, sizes):
    config = EncoderConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                           intermediate_size=8, max_position_embeddings=16, model_type=system,
                           type_vocab_size=2, **sizes)
    learner, other = (Learner(BertEncoder(config), [ConditionalSpan(config, form)])
                      for _ in range(2))
    config.to_json_file(tmp_path / "bert_config.json")
    learner.save(tmp_path / "model.keras")
    account = checkpoints.convert(str(tmp_path), str(tmp_path / "google"), "google")
    assert not account.ignored
    names = tensor_bundle.tensors(tensor_bundle.find(str(tmp_path / "google")))
    assert {"albert": "answer_class/dense_1/kernel",
            "electra": "task_specific/squad/qa_hidden/kernel"}[system] in names
    checkpoints.load(tmp_path / "google", other)
    assert_same(learner.get_weights(), other.get_weights())
