"""ELMo: allenai/bilm-tf's outputs with states carried and without, and its training."""

import json

import h5py
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints, recipes
from bert_tf.checkpoints.conversion import convert
from bert_tf.config import ElmoConfig
from bert_tf.models.recurrent.layers import unpack_spelling
from bert_tf.models.recurrent.network import Elmo
from bert_tf.models.recurrent.objective import (
    BidirectionalLM,
    draw_candidates,
    log_uniform,
    sampled_losses,
)
from bert_tf.objectives.attentive_classification import AttentiveClassification
from bert_tf.objectives.lstms import mix_layers
from bert_tf.spelling import pack_spelling
from bert_tf.tokenization import open_tokenizer
from bert_tf.training import Learner
from bert_tf.training.optimizers.adam import make_optimizer
from bert_tf.training.train import save_model
from tests.rounding import ROUNDED, off

pytestmark = pytest.mark.usefixtures("eagerly")
LSTMS = {f"{way}_{i}": (d, i) for d, way in enumerate(("forward", "backward")) for i in range(2)}


def assign(model, values):
    """Gives a model all its weights, by their names below the network's."""
    for variable in model.weights:
        variable.assign(values.pop(variable.path.removeprefix("elmo/")))
    assert not values


@pytest.fixture(scope="module")
def model(forward, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bilm")
    with h5py.File(folder / "a_weights.hdf5", "w") as file:
        for name, value in forward.items():
            if name.startswith("weight/"):
                file[name.removeprefix("weight/")] = value
    options = {**json.loads(str(forward["options"])), "n_tokens_vocab": 4}
    (folder / "a_options.json").write_text(json.dumps(options))
    return folder


@pytest.fixture(scope="module")
def forward(test_data):
    return dict(np.load(test_data / "golden" / "elmo" / "bilm_forward_seed1.npz"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("elmo") / "vocab.txt"
    path.write_text("<S>\n</S>\n<UNK>\nthe\n!!!MAXTERMID\n")
    return open_tokenizer(str(path), max_characters=12)


def test_outputs_are_those_of_the_original(forward, tokenizer, model):
    network = Elmo(checkpoints.read_config(model))
    account = checkpoints.load(model, network)
    assert len(account.mapped) == 29 and not (account.missing or account.ignored)
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
        spelled = unpack_spelling([features[name] for name in network.reads[3:]], 12)
        np.testing.assert_array_equal(spelled, char_ids)
        inputs = {**features, "input_mask": is_token.astype(np.int32)}
        for mode, more in (("stateless", {}), ("stateful", {"carried": carried})):
            outputs = network({**inputs, **more})
            found = np.stack([outputs["embedding_output"], *outputs["layer_outputs"]], 1)
            for row, sentence in enumerate(sentences):
                wanted = forward[f"{batch}/{mode}/lm_embeddings"][row][:, :len(sentence)]
                assert off(found[row][:, 1:1 + len(sentence)], wanted) < ROUNDED
        carried = outputs["carried"]


def test_weights_go_into_all_formats_and_back(model, tmp_path):
    convert(str(model), str(tmp_path / "keras"), "keras")
    convert(str(tmp_path / "keras"), str(tmp_path / "elmo"), "elmo")
    with (h5py.File(model / "a_weights.hdf5") as first,
          h5py.File(tmp_path / "elmo" / "elmo_weights.hdf5") as last):
        names = []
        first.visit(names.append)
        for name in names:
            if isinstance(first[name], h5py.Dataset):
                np.testing.assert_array_equal(first[name][()], last[name][()])
    options = [json.loads(path.read_text()) for path in (
        model / "a_options.json", tmp_path / "elmo" / "elmo_options.json")]
    assert all(options[1][part] == options[0][part] for part in ("lstm", "char_cnn"))
    assert checkpoints.read_config(tmp_path / "elmo") == checkpoints.read_config(model)


def test_layers_are_mixed_as_in_the_original(test_data):
    file = np.load(test_data / "golden" / "elmo" / "mixing_seed1.npz")
    mask = file["mask"].astype(np.int32)
    layers = [tf.constant(layer) for layer in file["lm_embeddings"].swapaxes(0, 1)]
    tokens = mask[:, :, None]

    def agrees(found, name):
        assert off(found * tokens, file[name] * tokens) < ROUNDED

    agrees(mix_layers(layers, np.zeros(3, np.float32), 1.0), "initial/weighted")
    weights = tf.Variable(file["weight/plain_ELMo_W"])
    gamma = tf.Variable(file["weight/plain_ELMo_gamma"][0])
    with tf.GradientTape() as tape:
        mixed = mix_layers(layers, weights, gamma)
        penalty = 0.01 * tf.reduce_sum(weights**2)
        total = tf.reduce_sum(mixed * file["target"]) + penalty
    agrees(mixed, "plain")
    np.testing.assert_allclose(penalty, file["plain/l2"], rtol=1e-6)
    for found, name in zip(tape.gradient(total, [weights, gamma]), ("W", "gamma")):
        assert off(np.ravel(found), file[f"grad/plain_ELMo_{name}"]) < ROUNDED
    agrees(mix_layers(layers, file["weight/normed_ELMo_W"], file["weight/normed_ELMo_gamma"][0],
                      mask, do_layer_norm=True), "normed")
    agrees(mix_layers(layers[-1:], np.zeros(1, np.float32), file["weight/top_ELMo_gamma"][0]),
           "top")


def test_sizes_are_the_published_ones():
    """In millions, without the softmax (the table of the authors' page)."""
    for name, millions in (("small", 13.6), ("medium", 28.0), ("original", 93.6)):
        sizes = recipes.find("elmo").presets[name]
        config = ElmoConfig(**sizes)
        count = 261 * 16 + sum(16 * width * n + n for width, n in config.filters)
        count += config.n_highway * 2 * (2048**2 + 2048) + 2048 * config.projection_dim
        count += config.projection_dim + 4 * (
            (2 * config.projection_dim + 1) * 4 * config.dim + config.dim * config.projection_dim)
        assert round(count / 1e6, 1) == millions


def test_two_texts_attend_to_each_other(tmp_path):
    config = ElmoConfig(9, 4, 6, filters=(), hidden_dropout_prob=0)
    head = AttentiveClassification(config, num_labels=3, lstm_size=3, lstm_layers=1, hidden_size=5,
                                   pairs=True)
    learner = Learner(Elmo(config), [head])
    ids = np.array([[0, 3, 4, 1, 5, 6, 1], [0, 3, 1, 7, 1, 0, 0], [0, 3, 1, 0, 0, 0, 0]])
    batch = {"input_ids": ids,
             "input_mask": np.array([[1] * 7, [1] * 5 + [0] * 2, [1] * 3 + [0] * 4]),
             "segment_ids": np.array([[0] * 4 + [1] * 3, [0] * 3 + [1] * 2 + [0] * 2, [0] * 7]),
             "label_ids": np.array([0, 2, 1])}      # the last has no second text
    logits = learner(batch)[head.name]
    longer = {name: np.pad(value, ((0, 0), (0, 2)), constant_values=0) if value.ndim > 1 else value
              for name, value in batch.items()}
    np.testing.assert_allclose(learner(longer)[head.name], logits, rtol=1e-6, atol=1e-6)
    other = {**batch, "input_ids": np.where(ids == 7, 8, ids)}
    assert abs(learner(other)[head.name][1] - logits[1]).numpy().max() > 1e-6
    save_model(str(tmp_path), learner)
    again = Learner(Elmo(config), [AttentiveClassification.from_config(head.get_config())])
    assert not checkpoints.load(tmp_path, again).missing
    np.testing.assert_allclose(again(batch)[head.name], logits, rtol=1e-6, atol=1e-6)


def test_training_is_that_of_the_original(test_data):
    file = np.load(test_data / "golden" / "elmo" / "bilm_training_seed1.npz")

    def weights(prefix):
        found = {"embeddings/word_embeddings": file[f"{prefix}/lm/embedding"],
                 "bidirectional_lm/output_weights": file[f"{prefix}/lm/softmax/W"],
                 "bidirectional_lm/output_bias": file[f"{prefix}/lm/softmax/b"]}
        for name, (way, i) in LSTMS.items():
            cell = f"{prefix}/lm/RNN_{way}/rnn/multi_rnn_cell/cell_{i}/lstm_cell"
            for ours, theirs in (("kernel", "kernel"), ("bias", "bias"),
                                 ("projection_kernel", "projection/kernel")):
                found[f"encoder/{name}/{ours}"] = file[f"{cell}/{theirs}"]
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
        np.testing.assert_allclose(losses, file[f"step{step}/losses"], rtol=ROUNDED)
        np.testing.assert_allclose(norm, file[f"step{step}/grad_norm"], rtol=ROUNDED)
        wanted = weights(f"after{step + 1}")
        for variable in learner.weights:
            np.testing.assert_allclose(variable, wanted[variable.path.removeprefix("elmo/")],
                                       rtol=1e-6, atol=1e-6)


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
