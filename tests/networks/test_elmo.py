"""ELMo: allenai/bilm-tf's outputs with states carried and without, and its training."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config import ElmoConfig
from bert_tf.layers.characters import unpack_spelling
from bert_tf.networks.elmo import Elmo
from bert_tf.objectives.recurrent_lm import BidirectionalLM
from bert_tf.objectives.sampled_softmax import draw_candidates, log_uniform, sampled_losses
from bert_tf.spelling import pack_spelling
from bert_tf.tokenization import open_tokenizer
from bert_tf.training import Learner
from bert_tf.training.optimizer import make_optimizer

pytestmark = pytest.mark.usefixtures("eagerly")
LSTMS = {f"{way}_{i}": (d, i) for d, way in enumerate(("forward", "backward")) for i in range(2)}


def assign(model, values):
    """Gives a model all its weights, by their names below the network's."""
    for variable in model.weights:
        variable.assign(values.pop(variable.path.removeprefix("elmo/")))
    assert not values


def of_hdf5(file):
    """Our names of the weights of an hdf5 file."""
    found = {"token_embedder/char_embeddings": file["weight/char_embed"]}
    for i in range(3):
        name = f"token_embedder/convolution_{i}"
        found[f"{name}/kernel"] = file[f"weight/CNN/W_cnn_{i}"][0]
        found[f"{name}/bias"] = file[f"weight/CNN/b_cnn_{i}"]
    dense = {f"highway_{i}_{gate}": (f"CNN_high_{i}", gate)
             for i in range(2) for gate in ("carry", "transform")} | {
        "projection": ("CNN_proj", "proj")}
    for ours, (group, theirs) in dense.items():
        found[f"token_embedder/{ours}/kernel"] = file[f"weight/{group}/W_{theirs}"]
        found[f"token_embedder/{ours}/bias"] = file[f"weight/{group}/b_{theirs}"]
    for name, (way, i) in LSTMS.items():
        cell = f"weight/RNN_{way}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
        for ours, theirs in (("kernel", "W_0"), ("bias", "B"), ("projection_kernel", "W_P_0")):
            found[f"{name}/{ours}"] = file[f"{cell}/{theirs}"]
    return found


@pytest.fixture(scope="module")
def forward(test_data):
    return dict(np.load(test_data / "golden" / "elmo" / "bilm_forward_seed1.npz"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("elmo") / "vocab.txt"
    path.write_text("<S>\n</S>\n<UNK>\nthe\n!!!MAXTERMID\n")
    return open_tokenizer(str(path), max_characters=12)


def test_outputs_are_those_of_the_original(forward, tokenizer):
    sizes = json.loads(str(forward["options"]))
    lstm, cnn = sizes["lstm"], sizes["char_cnn"]
    network = Elmo(ElmoConfig(
        vocab_size=3, filters=cnn["filters"], char_embedding_dim=4, max_characters_per_token=12,
        **{key: lstm[key] for key in ("projection_dim", "dim", "cell_clip", "proj_clip")}))
    assign(network, of_hdf5(forward))
    carried = {}
    for number in range(3):
        batch = f"batch{number}"
        char_ids = forward[f"{batch}/char_ids"].astype(np.int32)
        is_token = char_ids.any(-1)
        sentences = [tokenizer.encode(" ".join(json.loads(line)))
                     for line in forward[f"{batch}/tokens"]]
        ids = np.zeros(is_token.shape, np.int64)
        for row, sentence in zip(ids, sentences):
            row[:len(sentence) + 2] = [0, *sentence, 1]
        features = tokenizer.vocabulary.features(ids, is_token)
        assert features["input_ids"].max() < tokenizer.vocabulary.size == 4
        spelled = unpack_spelling([features[name] for name in network.reads[2:]], 12)
        np.testing.assert_array_equal(spelled, char_ids)
        inputs = {**features, "input_mask": is_token.astype(np.int32)}
        for mode, more in (("stateless", {}), ("stateful", {"carried": carried})):
            outputs = network({**inputs, **more})
            found = np.stack([outputs["embedding_output"], *outputs["layer_outputs"]], 1)
            for row, sentence in enumerate(sentences):
                wanted = forward[f"{batch}/{mode}/lm_embeddings"][row][:, :len(sentence)]
                np.testing.assert_allclose(found[row][:, 1:1 + len(sentence)], wanted, atol=3e-6)
        carried = outputs["carried"]


def test_training_is_that_of_the_original(test_data):
    file = np.load(test_data / "golden" / "elmo" / "bilm_training_seed1.npz")

    def weights(prefix):
        found = {"word_embeddings": file[f"{prefix}/lm/embedding"],
                 "bidirectional_lm/output_weights": file[f"{prefix}/lm/softmax/W"],
                 "bidirectional_lm/output_bias": file[f"{prefix}/lm/softmax/b"]}
        for name, (way, i) in LSTMS.items():
            cell = f"{prefix}/lm/RNN_{way}/rnn/multi_rnn_cell/cell_{i}/lstm_cell"
            for ours, theirs in (("kernel", "kernel"), ("bias", "bias"),
                                 ("projection_kernel", "projection/kernel")):
                found[f"{name}/{ours}"] = file[f"{cell}/{theirs}"]
        return found

    config = ElmoConfig(vocab_size=43, projection_dim=5, dim=8, cell_clip=0.8, proj_clip=0.5,
                        filters=(), hidden_dropout_prob=0)
    network, objective = Elmo(config), BidirectionalLM(config, n_negative_samples_batch=0)
    learner = Learner(network, [objective])
    assign(learner, weights("initial"))
    optimizer = make_optimizer("elmo_adagrad", 0.2, clip_norm=1.0)
    optimizer.build(learner.trainable_variables)
    names = {"input_ids": "token_ids", "next_token_ids": "next_token_id",
             "reverse_input_ids": "token_ids_reverse",
             "reverse_next_token_ids": "next_token_id_reverse"}
    carried = {}
    for step in range(3):
        batch = {ours: file[f"step{step}/{theirs}"] for ours, theirs in names.items()}
        with tf.GradientTape() as tape:
            logits = learner({**batch, "carried": carried}, training=True)
            measures = learner.measure_logits(logits, batch)[objective.name]
            loss = measures["loss"][0] / objective.count(batch)
        carried = logits["carried"]
        grads = tape.gradient(loss, [v.value for v in learner.trainable_variables])
        norm = optimizer.apply(grads, learner.trainable_variables)
        losses = [measures[name][0] / measures[name][1]
                  for name in ("forward_loss", "backward_loss", "loss")]
        np.testing.assert_allclose(losses, file[f"step{step}/losses"], atol=2e-6)
        np.testing.assert_allclose(norm, file[f"step{step}/grad_norm"], atol=2e-6)
        wanted = weights(f"after{step + 1}")
        for variable in learner.weights:
            np.testing.assert_allclose(variable, wanted[variable.path.removeprefix("elmo/")],
                                       atol=1e-6)


def test_candidates_are_different_and_as_frequent_as_their_shares_say():
    shares = log_uniform(50)
    assert abs(shares.sum() - 1) < 1e-6
    drawn = [draw_candidates(shares, 10, np.array([1, seed])) for seed in range(300)]
    candidates = np.stack([ids for ids, _ in drawn])
    assert all(len(set(row)) == 10 for row in candidates.tolist())
    frequency = np.bincount(candidates.ravel(), minlength=50) / len(drawn)
    expected = np.exp([expected for _, expected in drawn]).mean(0)
    spread = np.sqrt(expected * (1 - expected) / len(drawn)) + 1e-3
    assert (np.abs(frequency - expected) < 4 * spread).all()


def test_with_all_candidates_the_sampled_loss_is_the_full_one():
    stream = np.random.default_rng(1)
    x, table = stream.normal(size=(6, 4)), stream.normal(size=(9, 4))
    bias, labels = stream.normal(size=9), np.array([0, 8, 3, 3, 1, 5])
    x, table, bias = (value.astype(np.float32) for value in (x, table, bias))
    # Shares of tokens that are all drawn: their expected counts must be equal to cancel out.
    found = sampled_losses(x, table, bias, labels, np.full(9, 1 / 9, np.float32), 9,
                           np.array([3, 4]))
    logits = x @ table.T + bias
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(6), labels]
    np.testing.assert_allclose(found[:, 0], losses, rtol=1e-5)
    np.testing.assert_array_equal(found[:, 1], logits.argmax(1) == labels)


def test_numbers_hold_the_characters():
    char_ids = np.random.default_rng(0).integers(0, 262, (2, 3, 10))
    np.testing.assert_array_equal(unpack_spelling(pack_spelling(char_ids), 10), char_ids)
