"""DistilBERT and TinyBERT learn as in their own code (golden/distillation of
$BERT_TF_TEST_DATA)."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from bert_tf import checkpoints, networks, objectives
from bert_tf.compression import SoftTargets, Student
from bert_tf.training import Distiller, Learner, make_optimizer
from bert_tf.training.learners.distiller import internals_of
from bert_tf.training.optimizers.schedules import WarmupLinearDecay
from bert_tf.training.trainer import Trainer
from tests.rounding import ROUNDED, off, off_steps

pytestmark = pytest.mark.usefixtures("eagerly")
# Keys of config.json.
BERT = {"model_type": "bert", "hidden_act": "gelu", "num_attention_heads": 4, "type_vocab_size": 2,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
DISTIL = {"model_type": "distilbert", "vocab_size": 97, "dim": 32, "n_layers": 2, "n_heads": 4,
          "hidden_dim": 48, "activation": "gelu", "dropout": 0.0, "attention_dropout": 0.0,
          "max_position_embeddings": 24}


def bert(vocabulary, width, layers, hidden, positions):
    return {**BERT, "vocab_size": vocabulary, "hidden_size": width, "num_hidden_layers": layers,
            "intermediate_size": hidden, "max_position_embeddings": positions}


def read(tensors, values, folder, head, **changes):
    """A Learner with tensors under Hugging Face's names, which are put into a new folder."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(values))
    save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()
               if "fit_dense" not in name}, folder / "model.safetensors")
    keras.utils.set_random_seed(1)
    config = dataclasses.replace(checkpoints.read_config(str(folder)), **changes)
    learner = Learner(networks.build(config), [head(config)])
    checkpoints.load(str(folder), learner)
    return learner


def below(golden, prefix):
    return {name.removeprefix(prefix): value for name, value in golden.items()
            if name.startswith(prefix)}


def assert_changed_to(expected, before, learner):
    """That weights which differ in two models are those of `expected` in a third."""
    changed = 0
    for one, other, mine in zip(expected.weights, before.weights, learner.weights):
        if not np.array_equal(one, other):
            assert off(mine, one) < off_steps(1e-3, 3), mine.path
            changed += 1
    return changed


def steps(golden, prefix):
    """The batches of a golden file, by their features' names there."""
    for number in range(3):
        found = {name.split("/")[-1]: tf.constant(value) for name, value in golden.items()
                 if name.startswith(f"{prefix}step{number}/")}
        if found:
            yield found


def features(batch):
    return {name: value for name, value in batch.items() if len(value.shape)}


def with_positions(batch):
    labels = batch["lm_labels"].numpy()
    rows, places = np.nonzero(labels >= 0)
    slots = [np.arange(np.sum(rows == row)) for row in range(len(labels))]
    found = {name: np.zeros((len(labels), max(map(len, slots))), kind) for name, kind in (
        ("masked_lm_positions", "int32"), ("masked_lm_ids", "int32"),
        ("masked_lm_weights", "float32"))}
    for name, values in zip(found, (places, labels[rows, places], 1)):
        found[name][rows, np.concatenate(slots)] = values
    return {"input_ids": batch["input_ids"], "input_mask": batch["attention_mask"],
            **{name: tf.constant(value) for name, value in found.items()}}


def test_distilbert(test_data, tmp_path):
    golden = dict(np.load(test_data / "golden/distillation/distilbert_steps_seed1.npz"))
    teacher = read(below(golden, "teacher/"), bert(97, 32, 4, 48, 24), tmp_path / "teacher",
                   objectives.MaskedLM)
    tensors = below(golden, "student/")
    after = tensors | below(golden, "after3/")
    after["vocab_projector.weight"] = after["distilbert.embeddings.word_embeddings.weight"]
    student, before, after = (
        read(values, DISTIL, tmp_path / name,
             lambda config: objectives.MaskedLM(config, loss_weight=2.0))
        for name, values in (("student", tensors), ("before", tensors),
                             ("after", after)))
    config = student.encoder.config
    learner = Distiller(student.encoder, [
        *student.objectives, objectives.TokenDistillation(config, loss_weight=5.0),
        objectives.HiddenCosine(config)], teacher=teacher)
    first = with_positions(next(steps(golden, "")))
    real = first["input_mask"].numpy() > 0
    for name, model in (("student", learner), ("teacher", teacher)):
        outputs = model.run_network(first)
        found = [internals_of(model, outputs, first, ["token_logits"])["token_logits"],
                 outputs["embedding_output"], *outputs["layer_outputs"]]
        names = ["logits", *(f"hidden_{i}" for i in range(len(found) - 1))]
        for value, key in zip(found, names):
            expected = golden[f"out/{name}/{key}"]
            assert off(np.array(value)[real], expected[real]) < ROUNDED
    rate = WarmupLinearDecay(5e-4, 101, 6, "roberta")
    trainer = Trainer(learner, make_optimizer("distilbert_adam", rate, weight_decay=0.0),
                      tf.distribute.get_strategy())
    for batch in steps(golden, ""):
        found = trainer.train(iter([with_positions(batch)]), 1)
        for ours, theirs in (("loss", "loss"), ("masked_lm/loss", "loss_mlm"),
                             ("token_distillation/loss", "loss_ce"),
                             ("hidden_cosine/loss", "loss_cos"),
                             ("learning_rate", "next_learning_rate")):
            np.testing.assert_allclose(found[ours], batch[theirs], rtol=ROUNDED, atol=1e-9)
    assert assert_changed_to(after, before, student) >= 8


def test_tinybert(test_data, tmp_path):
    golden = dict(np.load(test_data / "golden/distillation/tinybert_steps_seed1.npz"))
    relu = {"pooler_type": "first_token_tanh_relu"}

    def head(config):
        return objectives.Classification(config, 3, loss_weight=0.0, dropout_rate=0.0)

    teacher = read(below(golden, "teacher/"), bert(61, 32, 4, 40, 20), tmp_path / "teacher", head,
                   **relu)
    tensors = below(golden, "student/")
    half = tensors | below(golden, "intermediate/after2/")
    student, before, between, after = (
        read(values, bert(61, 16, 2, 24, 20), tmp_path / name, head, **relu)
        for name, values in (("student", tensors), ("before", tensors), ("between", half),
                             ("after", half | below(golden, "prediction/after2/"))))
    config = student.encoder.config
    hidden = objectives.HiddenTransfer(config, 32)
    hidden.fit_dense.kernel.assign(tensors["fit_dense.weight"].T)
    hidden.fit_dense.bias.assign(tensors["fit_dense.bias"])
    learner = Distiller(student.encoder, [
        *student.objectives, objectives.AttentionTransfer(config), hidden], teacher=teacher)
    trainer = Trainer(learner, make_optimizer("pytorch_bert_adam", 1e-3),
                      tf.distribute.get_strategy())
    batches = list(steps(golden, "intermediate/"))
    outputs = learner.run_network(batches[0], options={"return_attention": True})
    for i, scores in enumerate(outputs["attention_scores"]):
        assert off(scores, golden[f"out/student/scores_{i}"]) < ROUNDED
    for name, model in (("student", learner), ("teacher", teacher)):
        assert off(model(batches[0])["classification"], golden[f"out/{name}/logits"]) < ROUNDED
    for batch in batches:
        found = trainer.train(iter([features(batch)]), 1)
        for ours, theirs in (("loss", "loss"), ("attention_transfer/loss", "att_loss"),
                             ("hidden_transfer/loss", "rep_loss")):
            np.testing.assert_allclose(found[ours], batch[theirs], rtol=ROUNDED)
    assert off(hidden.fit_dense.kernel,
               golden["intermediate/after2/fit_dense.weight"].T) < off_steps(1e-3, 2)
    assert assert_changed_to(between, before, student) >= 8
    for one in ("classification", "pooler"):        # which no loss reaches
        for mine, other in zip(student.weights, before.weights):
            assert one not in mine.path or np.array_equal(mine, other)

    soft = SoftTargets(config, "classification", "cross_entropy", scales_gradient=False,
                       mean_over="classes")
    learner = Student(student.encoder, [*student.objectives, soft])
    for frozen in (student.encoder.pooler, student.objectives[0]):
        frozen.trainable = True
    trainer = Trainer(learner, make_optimizer(
        "pytorch_bert_adam", WarmupLinearDecay(1e-3, 2, 0.2)), tf.distribute.get_strategy())
    for batch in steps(golden, "prediction/"):
        taught = teacher(batch)["classification"]
        found = trainer.train(iter([{**features(batch), "teacher_logits": taught}]), 1)
        np.testing.assert_allclose(found["loss"], batch["loss"], rtol=ROUNDED)
    assert assert_changed_to(after, between, student) >= 8
