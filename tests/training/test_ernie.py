"""ERNIE's losses, gradients' steps and rates against Paddle's own numbers; what its tasks learn."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import checkpoints, objectives, recipes
from bert_tf.checkpoints.weights import variables
from bert_tf.models.ernie import weights as paddle
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from tests.goldens import at_hand
from tests.rounding import ROUNDED, off
from tests.training import tiny

TASKS = ("Capitalization", "TokenDocument", "SentenceReordering", "SentenceDistance",
         "DiscourseRelation", "IrRelevance")


@pytest.mark.parametrize("version", at_hand("golden/ernie/forward_v{}_seed1.npz", (1, 2)))
def test_steps_are_those_of_paddle(test_data, version):
    folder = test_data / "golden" / "ernie"
    golden = np.load(folder / f"forward_v{version}_seed1.npz")
    path = folder / f"hf_ernie_v{version}_seed1"
    config = checkpoints.read_config(path)
    labels = golden["labels"].reshape(-1, 1).astype("int32")
    count, length = len(labels), golden["src_ids"].size // len(labels)
    sentence = (bert_tf.SentencePrediction(config, 2) if version == 1 else
                bert_tf.SentencePrediction(config, 3, name="sentence_order"))
    learner = bert_tf.Learner(bert_tf.BertEncoder(config), [bert_tf.MaskedLM(config), sentence])
    learner.epsilon = 0.0
    checkpoints.load(path, learner)
    if version == 2:
        for end, variable in zip(("w_0", "b_0"), sentence.weights):
            variable.assign(golden[f"weight/sentence_order_fc.{end}"])
    rows = {ours: golden[theirs].reshape(count, length).astype("int32") for ours, theirs in (
        ("input_ids", "src_ids"), ("segment_ids", "sent_ids"), ("input_mask", "input_mask"))}
    if version == 2:
        rows["task_ids"] = golden["task_ids"].reshape(count, length).astype("int32")
    places = golden["mask_pos"].ravel()
    slot = np.arange(len(places)) - np.searchsorted(places // length, places // length)
    masks = np.zeros((3, count, slot.max() + 1), "int32")
    masks[:, places // length, slot] = (places % length, golden["mask_label"].ravel(),
                                        np.ones_like(places))
    batch = {**rows, "masked_lm_positions": masks[0], "masked_lm_ids": masks[1],
             "masked_lm_weights": masks[2].astype("float32"), "next_sentence_labels": labels}
    batch = {name: tf.constant(value) for name, value in batch.items()}
    check_layers_and_gradients(learner, batch, golden, sentence.name)
    optimizer = make_optimizer("ernie_adam", WarmupLinearDecay(0.01, 6, 2))
    optimizer.build(learner.trainable_variables)
    for step, (loss, rate) in enumerate(zip(golden["step_losses"], golden["step_rates"])):
        with tf.GradientTape() as tape:
            mine = learner.total_loss(learner.measure(batch))
        assert float(mine) == pytest.approx(float(np.ravel(loss)[0]), rel=ROUNDED), step
        assert float(optimizer.learning_rate) == pytest.approx(rate, rel=1e-6)
        optimizer.apply(tape.gradient(
            mine, [v.value for v in learner.trainable_variables], unconnected_gradients="zero"),
            learner.trainable_variables)


def check_layers_and_gradients(learner, batch, golden, task):
    """At real tokens; of all weights that the file has gradients of."""
    tokens = batch["input_mask"].numpy() > 0
    outputs = learner.encoder(batch)
    found = {"embedding_output": outputs["embedding_output"], **{
        f"layer_{i}": layer for i, layer in enumerate(outputs["layer_outputs"], 1)}}
    for name in found.keys() & golden:
        wanted = golden[name].reshape(found[name].shape)
        assert off(found[name].numpy()[tokens], wanted[tokens]) < ROUNDED, name
    with tf.GradientTape() as tape:
        loss = learner.total_loss(learner.measure(batch))
    named = variables(learner)
    grads = dict(zip(named, tape.gradient(loss, [v.value for v in named.values()],
                                          unconnected_gradients="zero")))
    compared = 0
    heads = [] if task == "next_sentence" else [task]
    for rule in paddle._table("", heads).rules(learner.encoder.config):
        if f"gradient/{rule.theirs}" in golden and rule.ours in grads:
            mine = tf.convert_to_tensor(grads[rule.ours])
            wanted = golden[f"gradient/{rule.theirs}"].reshape(mine.shape)
            assert off(mine, wanted) < ROUNDED, rule.ours
            compared += 1
    assert compared == (len(named) if "gradient/word_embedding" in golden else 0)


def test_a_task_learns_from_its_own_records():
    config = tiny.config(num_hidden_layers=1, hidden_dropout_prob=0)
    heads = [getattr(objectives, name)(config) for name in TASKS]
    learner = bert_tf.Learner(bert_tf.BertEncoder(config), heads)
    rng = np.random.default_rng(1)
    size = (11, 6)
    batch = {"input_ids": rng.integers(0, config.vocab_size, size),
             "task_ids": np.array([[1], [2], [3], [4], [4], [3], [1], [0], [5], [6], [6]]),
             "next_sentence_labels": np.array([[0], [0], [8], [2], [1], [4], [0], [7], [1],
                                          [2], [0]]),
             "token_label_ids": rng.integers(0, 2, size),
             "token_label_weights": rng.integers(0, 2, size)}
    logits = learner(batch)
    for objective in heads:
        found, count = objective.loss(logits[objective.name], *objective.targets(batch))
        total = weight = 0.0
        for row in np.flatnonzero(batch["task_ids"] == objective.task_id):
            scores = np.atleast_2d(np.asarray(logits[objective.name][row], "float64"))
            labels = (batch["token_label_ids"][row] if len(scores) > 1
                      else batch["next_sentence_labels"][row])
            weights = batch["token_label_weights"][row] if len(scores) > 1 else np.ones(1)
            losses = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(scores)), labels]
            total, weight = total + (losses * weights).sum(), weight + weights.sum()
        assert float(found) == pytest.approx(total, rel=1e-5)
        assert float(count) == weight
    names = list(recipes.find("ernie2").tasks)
    assert [objective.name for objective in heads] == names[1:]
    assert [objective.task_id for objective in heads] == list(map(names.index, names[1:]))
    copy = bert_tf.Learner.from_config(learner.get_config())
    assert [objective.task_id for objective in copy.objectives] == [1, 2, 3, 4, 5, 6]
