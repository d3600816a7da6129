"""MT-DNN: its optimizers, its stochastic answer network and its training are those of
namisan/mt-dnn (golden/mtdnn)."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.models.mtdnn.learner import MultiTaskLearner
from bert_tf.models.mtdnn.objective import StochasticAnswer
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.classification import Classification, MultipleChoice, Regression
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from tests.goldens import at_hand

# Gates of torch's GRU, r z n, in the order of Keras's, z r h.
GATES = {"kernel": "weight_ih", "recurrent_kernel": "weight_hh"}
PARTS = {"query_wsum.att.linear": "query", "attn.score_func.linear": "attention",
         "classifier.proj": "dense"}


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return lambda name: np.load(test_data / "golden" / "mtdnn" / f"{name}_seed1.npz")


def config(width, **sizes):
    return EncoderConfig.preset(
        "tiny", hidden_size=width, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        hidden_act="gelu_erf", **sizes)


def gates(value):
    r, z, n = np.split(value, 3)
    return np.concatenate([z, r, n]).T


def answer_weights(tensors):
    """The weights of a stochastic answer network by our names, from the original's."""
    found = {f"gru/{ours}": gates(tensors[f"rnn.{theirs}"]) for ours, theirs in GATES.items()}
    found["gru/bias"] = np.stack([gates(tensors[f"rnn.bias_{end}"]) for end in ("ih", "hh")])
    for theirs, ours in PARTS.items():
        found |= {f"{ours}/kernel": tensors[f"{theirs}.weight"].T,
                  f"{ours}/bias": tensors[f"{theirs}.bias"]}
    return found


def below(tensors, prefix):
    return {name[len(prefix):]: tensors[name] for name in getattr(tensors, "files", tensors)
            if name.startswith(prefix)}


@pytest.mark.parametrize("turns, classes", [
    (int(name[1]), int(name[4])) for name in at_hand(
        "golden/mtdnn/san_head_{}_seed1.npz", ["k5_c3", "k2_c2"])])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_answers_and_gradients_are_the_originals(turns, classes, mode, golden):
    tensors = golden(f"san_head_k{turns}_c{classes}")
    head = StochasticAnswer(config(12), classes, turns, dropout_rate=0.0)
    named = {v.path.split("/", 1)[1]: v for v in head.weights}
    for name, value in answer_weights(below(tensors, "weight/")).items():
        named[name].assign(value)
    head.kept_turns = lambda rows, seed: tensors["prediction_dropout_mask"]
    second = ~tensors["memory_mask"]
    first = np.zeros_like(second)
    first[:, :tensors["query_mask"].shape[1]] = ~tensors["query_mask"]
    batch = {"segment_ids": second.astype("int32"), "input_mask": (first | second).astype("int32"),
             "label_ids": tensors["labels"]}
    x = tf.constant(tensors["sequence_output"])
    with tf.GradientTape() as tape:
        tape.watch(x)
        logits = head({"sequence_output": x}, batch,
                      dropout_seed=tf.constant([1, 2]) if mode == "train" else None)
        loss = head.loss(logits, *head.targets(batch))[0] / 4
    assert np.allclose(logits, tensors[f"{mode}/scores"], atol=1e-6)
    assert float(loss) == pytest.approx(float(tensors[f"{mode}/loss"]), rel=1e-6, abs=1e-6)
    found = dict(zip(["x", *named], tape.gradient(loss, [x, *(v.value for v in named.values())])))
    wanted = below(tensors, f"{mode}/grad/")
    assert np.allclose(found.pop("x"), wanted["sequence_output"], atol=1e-6)
    for name, value in answer_weights(wanted).items():
        assert np.allclose(found[name], value, atol=1e-6), name


def test_padding_does_not_answer_for_an_empty_second_text():
    """Whatever the network says of padding, which depends on the longest text of a batch."""
    head, mask = StochasticAnswer(config(12), 3), np.array([[1, 1, 1, 0, 0]], "int32")
    x = np.random.default_rng(1).normal(size=(1, 5, 12)).astype("float32")
    found = [head({"sequence_output": tf.constant(x[:, :size])}, {
        "input_mask": tf.constant(mask[:, :size]), "segment_ids": tf.zeros([1, size], tf.int32)})
        for size in (3, 5)]
    assert np.allclose(*found, atol=1e-6)


def test_turns_are_left_out_at_their_rate():
    head = StochasticAnswer(config(12), 2, 5, turn_dropout=0.4)
    kept = np.array(head.kept_turns(20_000, tf.constant([3, 4]))) * 0.6
    assert set(np.unique(kept.round(6))) == {0, 1} and kept.sum(1).min() >= 1
    # One turn in five is kept for sure.
    assert np.allclose(kept.mean(0), 0.2 + 0.8 * 0.6, atol=0.015)
    again = StochasticAnswer.from_config(head.get_config())
    assert (again.turns, again.turn_dropout) == (5, 0.4)
    with pytest.raises(InputError, match="softmax over one label is constant"):
        StochasticAnswer(config(12), 1)


def our_name(theirs):
    """Our name of a weight of the encoder, and whether it is transposed."""
    name = theirs.removeprefix("bert.").replace(".", "/").replace("layer/", "layer_")
    if name.startswith("embeddings") and "LayerNorm" not in name:
        return name.removesuffix("/weight"), False
    if "LayerNorm" in name:
        return name.replace("weight", "gamma").replace("bias", "beta"), False
    return name.replace("weight", "kernel"), name.endswith("weight")


def our_weights(tensors, names):
    """The weights of a whole model by our names; `names` are those of its tasks."""
    found = {}
    for theirs, value in tensors.items():
        if theirs.startswith("bert."):
            ours, turned = our_name(theirs)
            found[ours] = value.T if turned else value
    for number, name in enumerate(names):
        mine = below(tensors, f"scoring_list.{number}.")
        if "alpha" in mine:
            found |= {f"{name}/{ours}": value for ours, value in answer_weights(mine).items()}
        else:
            found |= {f"{name}/dense/kernel": mine["weight"].T, f"{name}/dense/bias": mine["bias"]}
    return found


HEADS = {
    "train_san": lambda sizes: [
        StochasticAnswer(sizes, 3, name="mnli", dropout_rate=0.0),
        StochasticAnswer(sizes, 2, name="rte", dropout_rate=0.0),
        Regression(sizes, name="stsb", dropout_rate=0.0),
        Classification(sizes, 2, name="cola", dropout_rate=0.0)],
    "train_linear_ranking": lambda sizes: [
        Classification(sizes, 3, name="mnli", dropout_rate=0.0),
        MultipleChoice(sizes, name="qnnli", dropout_rate=0.0),
        Regression(sizes, name="stsb", dropout_rate=0.0)],
}


# Of the longest training the first steps, in which each task comes.
FIRST_STEPS = {"train_san": 6}


def batch_of(tensors, step, heads):
    """A batch of the original's as ours, without what turns are left out."""
    given = below(tensors, f"step{step}/")
    task, rows = int(given["task"]), len(given["input_ids"])
    count = 2 if isinstance(heads[task], MultipleChoice) else 1
    batch = {name: tf.constant(given[name].reshape(-1, count, given[name].shape[1]))
             for name in ("input_ids", "input_mask", "segment_ids")}
    column = (rows // count, 1)
    labels = given["labels"].reshape(-1, count)[:, :1].astype("float32")
    return given, {**batch, "label_ids": tf.constant(labels),
                   "task_number": tf.fill(column, task), "is_real_example": tf.ones(column)}


@pytest.mark.parametrize("case", at_hand("golden/mtdnn/{}_seed1.npz", HEADS))
def test_a_training_is_the_originals(case, golden, monkeypatch):
    tensors = dict(golden(case))
    table = tensors["initial/bert.embeddings.word_embeddings.weight"]
    sizes = config(16, vocab_size=len(table), num_attention_heads=2, intermediate_size=24,
                   max_position_embeddings=24)
    heads = HEADS[case](sizes)
    monkeypatch.setattr(StochasticAnswer, "kept_turns",
                        lambda self, rows, seed: tf.ones((rows, self.turns)))
    learner = MultiTaskLearner(BertEncoder(sizes), heads)
    names = [head.name for head in heads]
    named = variables(learner)
    for name, value in our_weights(below(tensors, "initial/"), names).items():
        named[name].assign(value)
    steps = len({name.split("/")[0] for name in tensors if re.match(r"step\d", name)})
    optimizer = make_optimizer("adamax", WarmupLinearDecay(0.02, steps, 0.1 * steps))
    optimizer.build(learner.trainable_variables)
    for step in range(FIRST_STEPS.get(case, steps)):
        given, batch = batch_of(tensors, step, heads)
        with tf.GradientTape() as tape:
            logits = learner(batch, training=True, dropout_seed=tf.constant([1, 2]))
            loss = learner.total_loss(learner.measure_logits(logits, batch))
        assert float(loss) == pytest.approx(float(given["loss"]), abs=1e-5, rel=1e-5), step
        grads = tape.gradient(loss, [v.value for v in learner.trainable_variables],
                              unconnected_gradients="zero")
        norm = optimizer.apply([tf.convert_to_tensor(grad) for grad in grads])
        assert float(norm) == pytest.approx(float(given["grad_norm"]), rel=1e-5), step
        after = below(tensors, f"after{step + 1}/")
        if after:
            compare(named, our_weights(after, names), 1e-5)
    if case not in FIRST_STEPS:
        compare(named, our_weights(below(tensors, "final/"), names), 5e-4)


def compare(named, wanted, most):
    for name, value in wanted.items():
        # Gradients that are 0 but for rounding, of which Adamax makes full steps.
        if not re.search(r"self/key/bias|qnnli/dense/bias|query/bias", name):
            assert np.abs(named[name].numpy() - value).max() < most, name


@pytest.mark.parametrize("count", [2, 4])
def test_the_loss_of_ranking_is_that_of_the_later_code(count, golden):
    tensors = below(golden("losses"), f"rank{count}/")
    scores = tf.constant(tensors["scores"])
    labels = tensors["labels"].reshape(-1, count)[:, :1]
    head = MultipleChoice(config(12))
    with tf.GradientTape() as tape:
        tape.watch(scores)
        total, weight = head.loss(tf.reshape(scores, (-1, count)), *head.targets(
            {"label_ids": labels, "is_real_example": np.ones_like(labels)}))
        loss = total / weight
    assert float(loss) == pytest.approx(float(tensors["loss"]), rel=1e-6, abs=1e-6)
    assert np.allclose(tape.gradient(loss, scores), tensors["grad"], atol=1e-6)


def test_the_later_optimizer_is_the_originals(golden):
    tensors = golden("adamaxw_later")
    weights = [keras.Variable(tensors[f"initial/{i}"], name=name)
               for i, name in enumerate(("kernel", "bias"))]
    optimizer = make_optimizer("adamaxw", 0.02, clip_norm=0.0)
    optimizer.build(weights)
    for step in range(3):
        optimizer.apply([tf.constant(tensors[f"step{step}/grad/{i}"]) for i in range(2)], weights)
        for i, weight in enumerate(weights):
            assert np.allclose(weight.numpy(), tensors[f"step{step}/after/{i}"], atol=1e-6)
