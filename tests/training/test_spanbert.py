"""The networks, losses, gradients and steps of SpanBERT's and StructBERT's own code."""

import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints import huggingface
from bert_tf.checkpoints.conversion import convert
from bert_tf.checkpoints.huggingface_models import MODELS
from bert_tf.checkpoints.weights import variables
from bert_tf.errors import InputError
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from bert_tf.training.trainer import Trainer
from tests.goldens import part
from tests.rounding import ROUNDED, off, off_steps

pytestmark = pytest.mark.usefixtures("eagerly")


class Golden:
    """A golden file, its weights in a folder of Hugging Face's format."""

    def __init__(self, path, folder, kind):
        self.file, self.folder = np.load(path), str(folder)
        values = json.loads(str(self["config"]))
        (folder / "config.json").write_text(json.dumps({**values, "kind_of_bert": kind}))
        save_file(part(self.file, "weight/"), folder / "model.safetensors")
        self.config = checkpoints.read_config(self.folder)
        self.rules = {rule.ours: rule for rule in huggingface._table(
            MODELS["bert"], "classification", "bert.").rules(self.config)}

    def __getitem__(self, name):
        return self.file[name]

    def __contains__(self, name):
        return name in self.file.files

    def largest_difference(self, group, arrays):
        """Of arrays by our names and those of the group, each of which there must be here."""
        theirs = {huggingface._standard_name(name.removeprefix(f"{group}/"), MODELS["bert"]):
                  self[name] for name in self.file.files if name.startswith(f"{group}/")}
        found = []
        for ours, value in arrays.items():
            rule = self.rules.get(ours)
            if rule and rule.theirs in theirs:
                wanted = theirs[rule.theirs]
                wanted = wanted.T if rule.layout == "transpose" else wanted
                found.append(off(value, wanted))
        assert len(found) == len(theirs.keys() & {rule.theirs for rule in self.rules.values()}) > 0
        return max(found)


@pytest.fixture(name="golden")
def fixture_golden(test_data, tmp_path):
    return Golden(test_data / "golden/spanbert/forward_seed1.npz", tmp_path, "spanbert")


@pytest.fixture(name="learner")
def fixture_learner(golden):
    config = golden.config
    learner = bert_tf.Learner(bert_tf.BertEncoder(config),
                              [bert_tf.MaskedLM(config), bert_tf.SpanBoundary(config)])
    account = checkpoints.load(golden.folder, learner)
    assert account.missing == ["pooler/dense/kernel", "pooler/dense/bias"]
    assert len(account.ignored) == 2 and set(account.ignored.values()) == {
        "a copy of a tied tensor"}
    return learner


@pytest.fixture(name="batch")
def fixture_batch(golden):
    """The records that hold the golden batch, and (row, slot) of what each pair predicts."""
    ids, target = golden["src_tokens"].astype(np.int32), golden["lm_target"]
    shape = len(ids), int((target > 0).sum(1).max())
    batch = {name: np.zeros(shape, np.int32) for name in (
        "masked_lm_positions", "masked_lm_ids", "span_left", "span_right", "span_offset")}
    batch |= {name: np.zeros(shape, np.float32) for name in ("masked_lm_weights", "span_weights")}
    places = {}
    for row in range(len(ids)):
        positions = np.flatnonzero(target[row])
        used = slice(0, len(positions))
        for name, values in (("masked_lm_positions", positions), ("masked_lm_weights", 1),
                             ("masked_lm_ids", target[row, positions])):
            batch[name][row, used] = values
        for pair, (left, right) in enumerate(golden["pairs"][row]):
            for offset in np.flatnonzero(golden["pair_targets"][row, pair]):
                slot = int(np.flatnonzero(positions == left + 1 + offset)[0])
                places[row, slot] = row * golden["pairs"].shape[1] + pair, offset
                for name, value in (("left", left), ("right", right), ("offset", offset),
                                    ("weights", 1)):
                    batch[f"span_{name}"][row, slot] = value
    batch |= {"input_ids": ids, "input_mask": (ids > 0).astype(np.int32)}
    return {name: tf.constant(value) for name, value in batch.items()}, places


def check_layers(outputs, golden, tokens):
    """At real tokens; the last layer, and what else the file has."""
    depth = len(outputs["layer_outputs"])
    assert f"layer_{depth}" in golden
    found = {"embedding_output": outputs["embedding_output"], **{
        f"layer_{layer}": value for layer, value in enumerate(outputs["layer_outputs"], 1)}}
    for name in found:
        if name in golden:
            assert off(found[name].numpy()[tokens], golden[name][tokens]) < ROUNDED, name


def test_forward_losses_and_gradients(golden, learner, batch):
    batch, places = batch
    tokens = batch["input_mask"].numpy() > 0
    outputs = learner.encoder(batch)
    check_layers(outputs, golden, tokens)
    with tf.GradientTape() as tape:
        logits = learner(batch)
        measures = learner.measure_logits(logits, batch)
        loss = learner.total_loss(measures)
    assert len(places) == golden["sbo_count"] - 1
    if "sbo_logits" in golden:
        wanted = np.array([golden["sbo_logits"][place] for place in places.values()])
        found = np.array([logits["span_boundary"][row, slot] for row, slot in places])
        assert off(found, wanted) < ROUNDED
    for name, short, extra in (("masked_lm", "lm", 0), ("span_boundary", "sbo", 1)):
        total, count = measures[name]["loss"]
        assert float(total) == pytest.approx(float(golden[f"{short}_loss_sum"]), rel=ROUNDED)
        assert int(count) + extra == golden[f"{short}_count"]
    assert float(loss) == pytest.approx(float(golden["loss"]), rel=ROUNDED)
    named = variables(learner)
    grads = tape.gradient(loss, [v.value for v in named.values()], unconnected_gradients="zero")
    grads = dict(zip(named, map(tf.convert_to_tensor, grads)))
    assert golden.largest_difference("gradient", grads) < ROUNDED


def test_five_steps(golden, learner, batch):
    """The first at the peak; gradients are divided by the number of predictions."""
    trainer = Trainer(learner, make_optimizer(
        "spanbert_adam", WarmupLinearDecay(0.01, 6, 2, "spanbert")), tf.distribute.get_strategy())
    iterator = iter(tf.data.Dataset.from_tensors(batch[0]).repeat())
    for step in range(5):
        assert float(trainer.optimizer.learning_rate) == pytest.approx(golden["step_rates"][step])
        metrics = trainer.train(iterator, 1)
        assert metrics["loss"] == pytest.approx(golden["step_losses"][step], rel=ROUNDED)
        assert metrics["grad_norm"] == pytest.approx(golden["step_norms"][step], rel=2 * ROUNDED)
        if step in (0, 4):
            group = f"after_step_{step + 1}"
            assert golden.largest_difference(group, variables(learner)) < off_steps(0.01, step + 1)


def test_weights_go_out_and_in_again(golden, tmp_path):
    output = tmp_path / "out"
    account = convert(golden.folder, str(output), "huggingface")
    assert len(account.mapped) == 68
    written = load_file(output / "model.safetensors")
    for name, value in written.items():
        theirs = name if "weight/" + name in golden.file.files else re_old(name)
        assert np.array_equal(value, golden[f"weight/{theirs}"]), name
    assert len(written) == 68
    described = json.loads((output / "config.json").read_text())
    assert (described["model_type"], described["kind_of_bert"], described["architectures"]) == (
        "bert", "spanbert", ["BertForMaskedLM"])
    assert checkpoints.read_config(str(output)) == golden.config
    # By way of Keras's format.
    convert(golden.folder, str(tmp_path / "keras"), "keras")
    convert(str(tmp_path / "keras"), str(tmp_path / "again"), "huggingface")
    again = load_file(tmp_path / "again" / "model.safetensors")
    assert again.keys() == written.keys()
    assert all(np.array_equal(again[name], written[name]) for name in written)
    with pytest.raises(InputError, match="the model_type is spanbert.*choose another"):
        convert(golden.folder, str(tmp_path / "google"), "google")


def re_old(name):
    """The old name of a weight of a normalisation."""
    base, _, end = name.rpartition(".")
    return f"{base}.{'gamma' if end == 'weight' else 'beta'}"


def test_more_places_are_a_larger_table(golden):
    head = bert_tf.SpanBoundary(golden.config, max_targets=20)
    assert head.position_embeddings.shape == (20, 200)
    assert bert_tf.SpanBoundary.from_config(head.get_config()).max_targets == 20
    with pytest.raises(InputError, match="position_embeddings.* has the shape"):
        checkpoints.load(golden.folder, bert_tf.Learner(bert_tf.BertEncoder(golden.config), [head]))


# StructBERT

@pytest.fixture(name="struct")
def fixture_struct(test_data, tmp_path):
    return Golden(test_data / "golden/structbert/forward_seed1.npz", tmp_path, "structbert")


def test_structbert_of_two_tasks(struct):
    batch = {name: tf.constant(struct[name], tf.int32)
             for name in ("input_ids", "segment_ids", "input_mask")}
    config = struct.config
    encoder, tokens = bert_tf.BertEncoder(config), struct["input_mask"] > 0
    account = checkpoints.load(struct.folder, encoder)
    assert list(account.ignored.values()) == [
        "of several tasks' classifiers; keep one task's in the file to use it"] * 4
    heads = [bert_tf.Classification(config, 3, dropout_rate=0.0),
             bert_tf.Regression(config, dropout_rate=0.0)]
    for number, head in enumerate(heads):
        for variable, end in zip(head.weights, ("weight", "bias")):
            variable.assign(struct[f"weight/classifier.{number}.{end}"].T)
    labels, task = tf.constant(struct["labels"]), struct["task_index"]
    with tf.GradientTape() as tape:
        outputs = encoder(batch)
        logits = [head(outputs, batch) for head in heads]
        weights = [tf.constant(task == number, tf.float32) for number in range(2)]
        losses = [heads[0].loss(logits[0], tf.cast(labels[:, 0], tf.int32), weights[0])[0],
                  heads[1].loss(logits[1], labels[:, 1:], weights[1][:, None])[0]]
        loss = sum(losses) / len(task)
    check_layers(outputs, struct, tokens)
    for name, found in (("pooled_output", outputs["pooled_output"]), ("order_logits", logits[0]),
                        ("score", logits[1])):
        assert off(found.numpy(), struct[name]) < ROUNDED, name
    assert float(loss) == pytest.approx(float(struct["loss"]), rel=ROUNDED)
    named = variables(encoder)
    grads = tape.gradient(loss, [v.value for v in named.values()])
    grads = dict(zip(named, map(tf.convert_to_tensor, grads)))
    assert struct.largest_difference("gradient", grads) < ROUNDED


def test_the_only_task_of_a_file_is_its_classifier(struct, tmp_path):
    path = tmp_path / "model.safetensors"
    kept = {name: value for name, value in load_file(path).items() if "classifier.1" not in name}
    save_file(kept, path)
    learner = bert_tf.Classification.from_pretrained(struct.folder, num_labels=3)
    assert np.array_equal(variables(learner)["classification/dense/kernel"].numpy(),
                          struct["weight/classifier.0.weight"].T)


@pytest.mark.parametrize("key", ["roberta_style", "pre_ln"])
def test_other_forms_of_structbert_are_refused(struct, key):
    path = f"{struct.folder}/config.json"
    with open(path, encoding="utf-8") as file:
        values = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**values, key: True}, file)
    with pytest.raises(InputError, match=f"{key} must be False"):
        checkpoints.read_config(struct.folder)
