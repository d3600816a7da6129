"""The heads of fine-tuning, against their formulas in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import EncoderConfig
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.classification import Classification, MultiLabel, MultipleChoice, Regression
from bert_tf.objectives.tagging import Tagging
from bert_tf.training.learners.learner import Learner

CONFIG = EncoderConfig.preset(
    "tiny", vocab_size=40, hidden_size=24, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
B, C, S, H = 3, 4, 6, 24
RNG = np.random.default_rng(0)
IDS = RNG.integers(1, 40, (B, S)).astype("int32")
REAL = np.array([1, 1, 0], "float32")

# Each with a batch; the last example does not count.
CASES = {
    "classification": (lambda: Classification(CONFIG, 3), {
        "label_ids": np.array([2, 0, 1]), "is_real_example": REAL}),
    "multi_label": (lambda: MultiLabel(CONFIG, 4), {
        "label_ids": np.array([[0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1]]),
        "is_real_example": REAL}),
    "regression": (lambda: Regression(CONFIG), {
        "label_ids": np.array([2.5, 0.0, 4.0], "float32"), "is_real_example": REAL}),
    "two_numbers": (lambda: Regression(CONFIG, 2), {
        "label_ids": RNG.normal(size=(B, 2)).astype("float32"), "is_real_example": REAL}),
    "answer_span": (lambda: AnswerSpan(CONFIG), {
        "start_positions": np.array([1, 0, 2]), "end_positions": np.array([5, 0, 2]),
        "is_real_example": REAL}),
    "tagging": (lambda: Tagging(CONFIG, 5), {
        "label_ids": RNG.integers(0, 5, (B, S)),
        "label_weights": RNG.integers(0, 2, (B, S)).astype("float32")}),
    "multiple_choice": (lambda: MultipleChoice(CONFIG), {
        "input_ids": RNG.integers(1, 40, (B, C, S)).astype("int32"),
        "label_ids": np.array([3, 0, 1]), "is_real_example": REAL}),
}


def make(case):
    keras.utils.set_random_seed(2)
    head, batch = CASES[case][0](), {"input_ids": IDS, **CASES[case][1]}
    for variable in head.weights:
        variable.assign(RNG.normal(size=variable.shape))
    rows = B * C if case == "multiple_choice" else B
    outputs = {"pooled_output": RNG.normal(size=(rows, H)).astype("float32"),
               "sequence_output": RNG.normal(size=(rows, S, H)).astype("float32")}
    return head, batch, outputs


def expected_loss(head, batch, outputs, case):
    """The mean loss by its formula, and the gradient of the kernel."""
    kernel, bias = head.get_weights()
    x = outputs[head.source]
    logits = x @ kernel + bias
    if "label_weights" in batch:
        weights = batch["label_weights"]
    else:
        weights = batch["is_real_example"]
    if isinstance(head, Regression):
        wrong = logits - batch["label_ids"].reshape(logits.shape)
        count = weights.sum() * logits.shape[1]
        return ((wrong**2 * weights[:, None]).sum() / count,
                x.T @ (2 * wrong * weights[:, None]) / count)
    if isinstance(head, MultiLabel):
        probs, labels, count = 1 / (1 + np.exp(-logits)), batch["label_ids"], weights.sum()
        losses = -np.log(np.where(labels, probs, 1 - probs)).mean(1)
        return ((losses * weights).sum() / count,
                x.T @ ((probs - labels) * weights[:, None]) / (4 * count))
    if case == "answer_span":
        log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        ends = np.stack([batch["start_positions"], batch["end_positions"]], 1)    # [B, 2]
        one_hot = np.arange(S)[:, None] == ends[:, None, :]                       # [B, S, 2]
        slope = (np.exp(log_probs) - one_hot) * weights[:, None, None] / 2 / weights.sum()
        start, end = (-(log_probs * one_hot)[..., i].sum(1) for i in (0, 1))
        return (((start + end) / 2 * weights).sum() / weights.sum(),
                np.einsum("bsh,bsk->hk", x, slope))
    if case == "multiple_choice":
        logits = logits.reshape(B, C)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    one_hot = np.arange(logits.shape[-1]) == batch["label_ids"][..., None]
    slope = (np.exp(log_probs) - one_hot) * weights[..., None] / weights.sum()
    return (-((log_probs * one_hot).sum(-1) * weights).sum() / weights.sum(),
            x.reshape(-1, H).T @ slope.reshape(-1, kernel.shape[1]))


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradient_are_those_of_the_formula(case):
    head, batch, outputs = make(case)
    with tf.GradientTape() as tape:
        total, count = head.loss(head(outputs, batch), *head.targets(batch))
        mean = total / count
    gradient = tape.gradient(mean, head.classifier.kernel.value)
    loss, slope = expected_loss(head, batch, outputs, case)
    assert float(mean) == pytest.approx(float(loss), rel=1e-5)
    assert np.allclose(gradient, slope, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_what_a_head_reads_is_enough_to_count(case):
    head, batch, outputs = make(case)
    read = {name: batch[name] for name in (*head.reads, "is_real_example") if name in batch}
    assert set(head.reads) <= set(read)
    _, count = head.loss(head(outputs, batch), *head.targets(read))
    assert float(head.count(read)) == float(count) > 0


@pytest.mark.parametrize("case", CASES)
def test_accuracy_counts_what_is_right(case):
    head, batch, outputs = make(case)
    logits = np.array(head(outputs, batch))
    labels, weights = (np.array(x) for x in head.targets(batch))
    if isinstance(head, Regression):
        right = np.abs(logits - labels) < 0.5
    elif isinstance(head, MultiLabel):
        right = (1 / (1 + np.exp(-logits)) > 0.5) == labels
    else:
        right = logits.argmax(-1) == labels
    name = "within_0.5" if isinstance(head, Regression) else "accuracy"
    correct, count = head.measure(logits, labels, weights)[name]
    assert float(correct) == (right * weights).sum() and float(count) == weights.sum()


def test_labels_are_decided_one_by_one():
    head = MultiLabel(CONFIG, 3)
    logits = np.array([[2.0, 1.0, -3.0], [-1.0, -2.0, -0.5]], "float32")
    found = {name: np.array(value) for name, value in head.answers(logits).items()}
    assert np.array_equal(found["logits"], logits)
    assert np.allclose(found["probabilities"], 1 / (1 + np.exp(-logits)), atol=1e-6)
    large = np.array([[1e4, -1e4, 1e4]], "float32")
    loss, _ = head.loss(large, np.array([[1.0, 0.0, 0.0]]), np.ones((1, 3), "float32"))
    assert float(loss) == pytest.approx(1e4)


def test_without_weights_every_example_counts():
    head, batch, outputs = make("classification")
    del batch["is_real_example"]
    batch["label_ids"] = batch["label_ids"][:, None]
    labels, weights = head.targets(batch)
    assert np.array_equal(labels, [2, 0, 1]) and np.array_equal(weights, [1, 1, 1])
    assert head(outputs, batch).shape == (B, 3)


def test_dropout_is_a_function_of_the_seed():
    learner = Learner(BertEncoder(CONFIG), [Classification(CONFIG, 3), Tagging(CONFIG, 3),
                                            Classification(CONFIG, 3, name="more")])
    for objective in learner.objectives:
        objective.classifier.kernel.assign(np.ones((H, 3)))

    def logits(seed=None, training=True):
        outputs = learner({"input_ids": IDS}, training=training, dropout_seed=seed)
        return {name: np.array(value) for name, value in outputs.items()}

    one, again, other = (logits(np.array(seed)) for seed in ([1, 2], [1, 2], [1, 3]))
    plain, drawn, drawn_again = logits(training=False), logits(), logits()
    for name, value in one.items():
        assert np.array_equal(value, again[name])
        for unlike in (other, plain):
            assert not np.allclose(value, unlike[name])
        assert not np.allclose(drawn[name], drawn_again[name])
    assert not np.allclose(one["classification"], one["more"])


def test_a_learner_of_all_heads_is_saved_and_loaded(tmp_path):
    batch = {"input_ids": CASES["multiple_choice"][1]["input_ids"]}
    heads = [make(case)[0] for case in CASES if case != "two_numbers"]
    learner = Learner(BertEncoder(CONFIG), [*heads, Regression(CONFIG, 2, name="two",
                                                               dropout_rate=0.3)])
    learner.save(tmp_path / "learner.keras")
    loaded = keras.models.load_model(tmp_path / "learner.keras")
    assert [o.get_config() for o in loaded.objectives] == [
        o.get_config() for o in learner.objectives]
    logits, same = learner(batch), loaded(batch)
    assert logits["multiple_choice"].shape == (B, C) and len(logits) == len(heads) + 1
    assert all(np.array_equal(logits[name], same[name]) for name in logits)
