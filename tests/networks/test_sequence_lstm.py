"""The LSTM of arXiv:1511.01432: its authors' sequences, outputs, gradients and steps."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import SequenceLstmConfig
from bert_tf.models.recurrent import instances as sequences
from bert_tf.models.recurrent.network import SequenceLstm
from bert_tf.models.recurrent.objective import RecurrentLM, StepClassification
from bert_tf.tokenization import open_tokenizer
from bert_tf.training import Learner, WarmupLinearDecay
from bert_tf.training.distribution import dense
from bert_tf.training.optimizers.adam import make_optimizer
from tests.rounding import ROUNDED, off

pytestmark = pytest.mark.usefixtures("eagerly")
CELL = "LSTM/rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
NAMES = {"sequence_lstm/embeddings/word_embeddings": "embedding/embedding",
         "sequence_lstm/encoder/lstm_0/kernel": f"{CELL}/kernel",
         "sequence_lstm/encoder/lstm_0/bias": f"{CELL}/bias",
         "recurrent_lm/output_weights": "LM_loss/lm_lin_w",
         "recurrent_lm/output_bias": "LM_loss/lm_lin_b",
         **{f"step_classification/{ours}/{weight}": f"{theirs}/{weight}"
            for ours, theirs in (("hidden", "dense"), ("dense", "dense_1"))
            for weight in ("kernel", "bias")}}


def classification(ids, label, label_gain=False):
    """The original's steps of a text to classify: the label is predicted at the last token; with a
    gain at all, with weights that rise from 0 to 1."""
    weights = np.zeros(len(ids), np.float32)
    if label_gain:
        weights = np.linspace(0, 1, len(ids), dtype=np.float32)
    weights[-1] = 1
    labels = np.full(len(ids), label if label_gain else 0)
    labels[-1] = label
    return sequences.TokenSequence(ids, labels, weights)


def test_sequences_are_those_of_the_original(test_data, tmp_path):
    path = test_data / "golden" / "sequence2015" / "sequences_seed1.jsonl"
    first, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    vocabulary = first["vocabulary"]
    (tmp_path / "vocab.txt").write_text(
        "".join(f"{word}\n" for word in sorted(vocabulary, key=vocabulary.get)))
    tokenizer = open_tokenizer(str(tmp_path), True)
    assert tokenizer.name == "sequence_words"
    for row in rows:
        ids = np.append(tokenizer.encode(row["text"]), tokenizer.vocabulary.sep_id)
        found = {"language_model": sequences.language_model(ids),
                 "reverse_language_model": sequences.language_model(sequences.reverse(ids)),
                 "autoencoder": sequences.autoencoder(ids),
                 "classification": classification(ids, row["class"]),
                 "classification_label_gain": classification(ids, row["class"], True)}
        for name, made in found.items():
            for values, part in zip(made, ("token_id", "label", "weight")):
                np.testing.assert_array_equal(values, np.array(row[name][part], values.dtype))


def test_rows_beyond_the_vocabulary_do_not_change_the_others():
    outputs, rng = [], np.random.default_rng(1)
    table = rng.normal(size=(9, 6)).astype("float32")
    for size in (5, 9):
        network = SequenceLstm(SequenceLstmConfig(vocab_size=size, embedding_size=6))
        network.embeddings.word_embeddings.assign(table[:size])
        network.take_counts(np.arange(5))
        outputs.append(network.embeddings(np.arange(5)[None]))
    assert off(*outputs) < ROUNDED


@pytest.mark.parametrize("name", ["language_model", "autoencoder", "classification"])
def test_steps_are_those_of_the_original(test_data, name):
    file = np.load(test_data / "golden" / "sequence2015" / f"{name}_seed1.npz")
    config = SequenceLstmConfig(vocab_size=30, embedding_size=6, hidden_size=8,
                                hidden_dropout_prob=0)

    def value_of(prefix, variable, ending=""):
        value = file[f"{prefix}/{NAMES[variable.path]}{ending}"]
        return value.T if "output_weights" in variable.path else value

    batch = {"input_ids": file["token_id"].astype(np.int32),
             "input_mask": (np.arange(24) < file["length"][:, None]).astype(np.int32)}
    if name == "classification":
        objective = StepClassification(config, num_labels=2, hidden_size=5)
        batch["label_ids"] = (file["label"] * file["weight"]).max(1).astype(np.int32)
    else:
        objective = RecurrentLM(config)
        batch |= {"next_token_ids": file["label"], "next_token_weights": file["weight"]}
    learner = Learner(SequenceLstm(config), [objective])
    learner.encoder.take_counts(file["vocab_freqs"])
    variables = learner.trainable_variables
    for variable in variables:
        variable.assign(value_of("initial", variable))
    rate = WarmupLinearDecay(0.05, 100, 0, "exponential", power=math.log(0.9) / math.log(0.9999))
    optimizer = make_optimizer("averaged_adam", rate, clip_norm=0.1)
    optimizer.build(variables)

    outputs = learner.encoder(batch)
    mask = batch["input_mask"][:, :, None]
    assert off(outputs["embedding_output"], file["step0/embedded"]) < ROUNDED
    wanted = file["step0/lstm_out"].reshape(24, 3, 8).swapaxes(0, 1)
    assert off(outputs["sequence_output"] * mask, wanted * mask) < ROUNDED
    for step in range(3):
        with tf.GradientTape() as tape:
            loss = learner.total_loss(learner.measure(batch))
        np.testing.assert_allclose(loss, file[f"step{step}/loss"], rtol=ROUNDED)
        grads = list(map(dense, tape.gradient(loss, [v.value for v in variables])))
        for gradient, variable in zip(grads, variables):
            if not step:
                assert off(gradient, value_of("grad", variable)) < ROUNDED
        optimizer.apply(grads, variables)
    # Adam makes much of a gradient that is nearly nothing, such as 2.6e-7 of one embedding.
    for variable, average in zip(variables, optimizer.averages):
        np.testing.assert_allclose(variable, value_of("after3", variable), atol=2e-4)
        np.testing.assert_allclose(
            average, value_of("after3", variable, "/ExponentialMovingAverage"), atol=2e-4)


def test_label_gain_counts_later_steps_more():
    config = SequenceLstmConfig(vocab_size=9, embedding_size=4, hidden_size=4)
    objective = StepClassification(config, num_labels=3, label_gain=True)
    batch = {"input_mask": np.array([[1, 1, 1, 0], [1, 1, 1, 1]]), "label_ids": np.array([2, 0])}
    labels, weights = objective.targets(batch)
    for row, length, label in ((0, 3, 2), (1, 4, 0)):
        made = classification(np.arange(length), label, True)
        np.testing.assert_allclose(weights[row, 1:1 + length], made.weights)
        assert (np.asarray(labels)[row] == label).all()
    assert float(objective.count(batch)) == pytest.approx(1.5 + 2)
    network = SequenceLstm(config)
    logits = objective(network({**batch, "input_ids": np.ones((2, 4), int)}), batch)
    np.testing.assert_allclose(logits[0, 0], logits[0, 3], rtol=1e-6, atol=1e-6)


def test_states_go_on_but_where_a_text_begins():
    config = SequenceLstmConfig(vocab_size=9, embedding_size=4, hidden_size=4)
    network = SequenceLstm(config)
    ids = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    whole = network({"input_ids": ids})["sequence_output"]
    first = network({"input_ids": ids[:, :2]})
    second = network({"input_ids": ids[:, 2:], "carried": first["carried"],
                      "is_start": np.array([[0], [1]])})["sequence_output"]
    np.testing.assert_allclose(second[0], whole[0, 2:], rtol=1e-6, atol=1e-6)
    alone = network({"input_ids": ids[1:, 2:]})["sequence_output"]
    np.testing.assert_allclose(second[1], alone[0], rtol=1e-6, atol=1e-6)
