"""XLM-RoBERTa, CamemBERT, DistilBERT, MPNet and EuroBERT compute what transformers computes, and
NeoBERT what its own code does, read from their files."""

import json
import math
import pathlib
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints, networks
from bert_tf.checkpoints import convert
from bert_tf.errors import InputError
from tests.goldens import part

NAMES = ("xlm_roberta", "camembert", "distilbert", "mpnet", "eurobert")
TOLERANCE = 1e-5
SIZES = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 8, "max_position_embeddings": 16}


@pytest.fixture(params=NAMES)
def golden(request, test_data):
    """A folder of transformers, and the outputs of its model."""
    folder = pathlib.Path(test_data / "golden" / "other_encoders" / request.param)
    return folder, dict(np.load(f"{folder}.npz"))


def off(found, expected, tokens=None):
    found, expected = np.asarray(found), np.asarray(expected)
    if tokens is not None:
        found, expected = found[tokens], expected[tokens]
    return np.abs(found - expected).max()


def features(expected):
    return {"input_ids": expected["input_ids"].astype("int32"),
            "input_mask": expected["attention_mask"].astype("int32")}


def word_logits(learner, expected):
    """Those of a masked LM at all positions."""
    batch = features(expected)
    ids = batch["input_ids"]
    everywhere = np.arange(ids.shape[1], dtype="int32") + 0 * ids
    return learner({**batch, "masked_lm_positions": everywhere})["masked_lm"]


def test_layers_and_masked_words_equal(golden):
    folder, expected = golden
    batch, tokens = features(expected), expected["attention_mask"] == 1
    learner = bert_tf.open_model(folder).learner(heads=[("MaskedLM", {})])
    outputs = learner.encoder(batch)
    states = [networks.first_state(outputs), *outputs["layer_outputs"][:-1],
              outputs["sequence_output"]]
    for number, state in enumerate(states):
        assert off(state, expected[f"hidden/{number}"], tokens) < TOLERANCE, number
    logits = word_logits(learner, expected)
    assert off(logits, expected["logits"], tokens) < TOLERANCE
    labels = expected["labels"]
    log_probs = np.asarray(tf.nn.log_softmax(logits))
    rows, places = np.nonzero(labels >= 0)
    loss = -log_probs[rows, places, labels[rows, places]].mean()
    assert abs(loss - expected["loss"]) < TOLERANCE


def with_classifier(folder, expected, tmp_path):
    own = folder.parent / f"{folder.name}_classifier"
    if own.exists():
        return own
    made = shutil.copytree(folder, tmp_path / "classifier")
    kept = {name: value for name, value in load_file(made / "model.safetensors").items()
            if not name.startswith("lm_head")}
    save_file(kept | part(expected, "classifier_weights/"), made / "model.safetensors")
    return made


def test_a_classifier_equals_and_goes_out_again(golden, tmp_path):
    folder, expected = golden
    folder = with_classifier(folder, expected, tmp_path)
    weights = checkpoints.read(folder)
    assert "classification" in weights.heads
    learner = bert_tf.open_model(folder).learner(heads=[("Classification", {"num_labels": 3})])
    logits = learner(features(expected))["classification"]
    assert off(logits, expected["classifier_logits"]) < TOLERANCE
    learner.save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "hf"))
    assert before.keys() == after.keys()
    for name, value in before.items():
        if "position_embeddings" not in name:       # the rows that no token has are lost
            assert value.tobytes() == after[name].tobytes(), name


@pytest.fixture(name="neobert")
def fixture_neobert(test_data, tmp_path):
    """A folder as NeoBERT's code writes it, and the outputs of that code."""
    expected = dict(np.load(test_data / "golden" / "other_encoders" / "neobert.npz"))
    folder = tmp_path / "neobert"
    folder.mkdir()
    save_file(part(expected, "weights/"), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({
        "model_type": "neobert", "architectures": ["NeoBERTLMHead"], "hidden_act": "swiglu",
        "max_length": 64, "pad_token_id": 0, **json.loads(str(expected["config"]))}))
    return folder, expected


def test_neobert_equals_its_own_code(neobert):
    folder, expected = neobert
    tokens = expected["attention_mask"] == 1
    learner = bert_tf.open_model(folder).learner(heads=[("MaskedLM", {})])
    vectors = learner.encoder(features(expected))["sequence_output"]
    assert off(vectors, expected["last_hidden_state"], tokens) < TOLERANCE
    assert off(word_logits(learner, expected), expected["logits"], tokens) < TOLERANCE


@pytest.mark.parametrize("name", [*NAMES, "neobert"])
def test_there_and_back_byte_for_byte(name, test_data, tmp_path, request):
    folder = test_data / "golden" / "other_encoders" / name
    if name == "neobert":
        folder, _ = request.getfixturevalue(name)
    convert(folder, tmp_path / "hf", "huggingface")
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "hf"))
    assert before.keys() == after.keys()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert checkpoints.read(tmp_path / "hf").config == checkpoints.read(folder).config


@pytest.mark.parametrize("name, more", [
    ("xlm_roberta", {}), ("xlm_roberta_classifier", {
        "problem_type": "single_label_classification", "tie_word_embeddings": False})])
def test_a_folder_keeps_what_says_nothing_of_our_networks(name, more, test_data, tmp_path):
    """Without a tokenizer also its padding, and the first positions, which no token has."""
    folder = tmp_path / "a"
    shutil.copytree(test_data / "golden" / "other_encoders" / name, folder)
    config = json.loads((folder / "config.json").read_text())
    more = {"pad_token_id": 4, "bos_token_id": None, "eos_token_id": 7, "hidden_act": "gelu_python",
            "classifier_dropout": 0.3, **more}
    (folder / "config.json").write_text(json.dumps(config | more))
    convert(folder, tmp_path / "hf", "huggingface")
    assert more.items() <= json.loads((tmp_path / "hf" / "config.json").read_text()).items()
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "hf"))
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


def test_the_bias_of_distances_learns_where_layers_are_computed_again():
    config = bert_tf.config.MPNetConfig(
        20, 8, 2, 2, 8, max_position_embeddings=16, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0)
    network = networks.build(config)
    batch = {"input_ids": np.arange(12, dtype="int32").reshape(2, 6)}
    gradients = []
    for network.rematerializes in (False, True):
        with tf.GradientTape() as tape:
            # Weighted, as a norm's outputs have a constant sum.
            outputs = network(batch)["sequence_output"]
            loss = keras.ops.sum(outputs * np.arange(8.0, dtype="float32"))
        gradients.append(np.asarray(tf.convert_to_tensor(
            tape.gradient(loss, network.distance_bias.weight.value))))
    assert np.abs(gradients[0]).max() > 1e-6
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "camembert", "mpnet"])
def test_padding_on_the_left_changes_no_token(kind):
    keras.utils.set_random_seed(1)
    network = networks.build(bert_tf.config.config_from_dict({
        **SIZES, "model_type": kind, "type_vocab_size": 1, "initializer_range": 0.3}))
    ids = np.arange(12, dtype="int32").reshape(2, 6)
    alone = network({"input_ids": ids})["sequence_output"]
    for left, right in ((4, 0), (1, 3)):
        padded, mask = (np.pad(values, [(0, 0), (left, right)])
                        for values in (ids, np.ones_like(ids)))
        found = network({"input_ids": padded, "input_mask": mask})["sequence_output"]
        assert off(found[:, left:left + 6], alone) < TOLERANCE


def test_padding_of_mpnet_is_token_1(test_data, tmp_path):
    """transformers counts positions by the tokens other than token 1, whatever pad_token_id is."""
    folder = shutil.copytree(test_data / "golden" / "other_encoders" / "mpnet", tmp_path / "mpnet")
    (folder / "vocab.txt").write_text("\n".join(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(35))]))
    with pytest.raises(InputError, match="padding is token 0 of the vocabulary, but .* token 1;"):
        convert(folder, tmp_path / "hf", "huggingface")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": 0}))
    with pytest.raises(InputError, match="pad_token_id must be 1, not 0"):
        checkpoints.read(folder)


@pytest.mark.parametrize("pooling, of_weights", [
    ("bos", lambda x, mask: x[:, 0]),
    ("mean", lambda x, mask: (x * mask).sum(1) / mask.sum(1))])
def test_a_classifier_of_eurobert_reads_what_it_was_trained_with(pooling, of_weights, test_data,
                                                                  tmp_path):
    """Under the name of the key in transformers, or in the original's own code."""
    golden = test_data / "golden" / "other_encoders" / "eurobert"
    expected = dict(np.load(f"{golden}.npz"))
    folder = with_classifier(golden, expected, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    dense, out = (tuple(expected[f"classifier_weights/{layer}.{part}"].astype("float64")
                        for part in ("weight", "bias")) for layer in ("dense", "classifier"))
    x = of_weights(expected["hidden/2"], expected["attention_mask"][:, :, None])
    x = x @ dense[0].T + dense[1]
    x = x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2
    for key in ("classifier_pooling", "clf_pooling"):
        config.pop("classifier_pooling", None)
        (folder / "config.json").write_text(json.dumps({**config, key: pooling}))
        learner = bert_tf.open_model(folder).learner(
            heads=[("Classification", {"num_labels": 3})])
        assert off(learner(features(expected))["classification"], x @ out[0].T + out[1]
                   ) < TOLERANCE


def test_a_file_of_eurobert_without_a_theta_has_that_of_transformers(test_data, tmp_path):
    """transformers 5.24, RotaryEmbeddingConfigMixin.default_theta."""
    folder = shutil.copytree(test_data / "golden/other_encoders/eurobert", tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    for rotary, theta in (({}, 10_000), ({"rope_parameters": None}, 10_000),
                          ({"rope_theta": 500}, 500)):
        (folder / "config.json").write_text(json.dumps({
            **{key: value for key, value in config.items() if "rope" not in key}, **rotary}))
        assert checkpoints.read_config(folder).rope_theta == theta


def test_tied_words_of_eurobert_are_written_apart(test_data, tmp_path):
    """Which transformers reads as two equal matrices."""
    golden = test_data / "golden" / "other_encoders" / "eurobert"
    expected, folder = dict(np.load(f"{golden}.npz")), shutil.copytree(golden, tmp_path / "tied")
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": True}))
    convert(folder, tmp_path / "apart", "huggingface")
    assert not json.loads((tmp_path / "apart/config.json").read_text())["tie_word_embeddings"]
    words = load_file(tmp_path / "apart/model.safetensors")["lm_head.weight"]
    np.testing.assert_array_equal(words, tensors["model.embed_tokens.weight"])
    for source in (folder, tmp_path / "apart"):
        logits = word_logits(bert_tf.open_model(source).learner(heads=[("MaskedLM", {})]), expected)
        assert off(logits, expected["hidden/2"] @ words.T, expected["attention_mask"] == 1
                   ) < TOLERANCE


def test_eurobert_in_bfloat16_and_with_layers_computed_again():
    keras.utils.set_random_seed(1)
    config = bert_tf.config.config_from_dict({
        **SIZES, "model_type": "eurobert", "num_key_value_heads": 1, "initializer_range": 0.3,
        "attention_probs_dropout_prob": 0.1})
    network, half = (networks.build(config, dtype=dtype) for dtype in ("float32", "mixed_bfloat16"))
    half.set_weights(network.get_weights())
    ids = np.arange(12, dtype="int32").reshape(2, 6)
    vectors = half({"input_ids": ids})["pooled_output"]
    assert keras.backend.standardize_dtype(vectors.dtype) == "bfloat16"
    assert off(keras.ops.cast(vectors, "float32"), network({"input_ids": ids})["pooled_output"]
               ) < 0.05
    gradients = []
    for network.rematerializes in (False, True):
        with tf.GradientTape() as tape:
            outputs = network({"input_ids": ids}, training=True, dropout_seed=np.int32([1, 2]))
            loss = keras.ops.sum(keras.ops.square(outputs["pooled_output"]))
        gradients.append([np.asarray(tf.convert_to_tensor(each)) for each in tape.gradient(
            loss, [v.value for v in network.trainable_variables])])
    for kept, again in zip(*gradients):
        np.testing.assert_allclose(kept, again, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name, change, said", [
    ("eurobert", {"num_key_value_heads": 3}, "num_key_value_heads .3. must divide num_attention"),
    ("eurobert", {"head_dim": 8}, "head_dim must be hidden_size / num_attention_heads .4., not 8"),
    ("eurobert", {"rope_parameters": {"rope_theta": None}}, "rope_theta must be a number above"),
    ("eurobert", {"rope_parameters": {"rope_type": "yarn"}}, "rope_type must be 'default', not 'y"),
    ("eurobert", {"rope_scaling": {"factor": 2}}, "rope_scaling must be null, not {'factor': 2}"),
    ("eurobert", {"rope_parameters": "x"}, "rope_parameters must have one rope_theta of all"),
    ("eurobert", {"rope_parameters": {"full_attention": {"rope_theta": 5}}}, "rope_para"),
    ("eurobert", {"is_decoder": True}, "is_decoder must be False: a eurobert reads texts in both"),
    ("neobert", {"rms_norm": False}, "rms_norm must be True, not False"),
    ("neobert", {"hidden_act": "gelu"}, "hidden_act must be 'SwiGLU', not 'gelu'")])
def test_another_network_than_eurobert_or_neobert_is_refused(name, change, said, test_data,
                                                             tmp_path, request):
    folder = test_data / "golden" / "other_encoders" / name
    if name == "neobert":
        folder, _ = request.getfixturevalue(name)
    folder = shutil.copytree(folder, tmp_path / "changed")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(InputError, match=f"config.json: {said}"):
        checkpoints.read(folder)


@pytest.mark.parametrize("part, change, said", [
    ("q", lambda value: None, "tensor 'model.layers.1.self_attn.q_proj.weight' is missing"),
    ("k", lambda value: None, "tensor 'model.layers.1.self_attn.k_proj.weight' is missing"),
    ("k", lambda value: np.ascontiguousarray(value[:, 1:]),
     "have the shapes ..16, 16., .8, 15., .8, 16.., which do not fit together")])
def test_a_part_of_a_joined_matrix_that_is_missing_or_wrong(part, change, said, test_data,
                                                            tmp_path):
    folder = shutil.copytree(test_data / "golden" / "other_encoders" / "eurobert", tmp_path / "a")
    values = load_file(folder / "model.safetensors")
    name = f"model.layers.1.self_attn.{part}_proj.weight"
    values[name] = change(values[name])
    (folder / "model.safetensors").unlink()
    save_file({name: value for name, value in values.items() if value is not None},
              folder / "model.safetensors")
    with pytest.raises(InputError, match=said):
        checkpoints.read(folder)


def test_a_tagger_with_another_layer_than_ours_is_refused(neobert):
    """As a fork of NeoBERT may have it."""
    folder, _ = neobert
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({
        **config, "architectures": ["NeoBERTForTokenClassification"]}))
    values, width = load_file(folder / "model.safetensors"), config["hidden_size"]
    values = {name: value for name, value in values.items() if not name.startswith("decoder")}
    values |= {"classifier.weight": np.zeros((3, width), "float32"),
               "classifier.bias": np.zeros(3, "float32")}
    save_file(values, folder / "model.safetensors")
    assert checkpoints.read(folder).heads == ["tagging"]
    values |= {"dense.weight": np.zeros((width, width), "float32")}
    save_file(values, folder / "model.safetensors")
    with pytest.raises(InputError, match="the model has no place for tensor 'dense.weight'"):
        checkpoints.read(folder)


def test_a_tagger_of_neobert_is_not_written_for_code_without_such_a_class(tmp_path):
    config = bert_tf.config.config_from_dict({**SIZES, "model_type": "neobert"})
    bert_tf.Learner(networks.build(config), [bert_tf.Tagging(config, 3)]).save(
        tmp_path / "model.keras")
    with pytest.raises(InputError, match="no class with the head tagging; .* --leave_out=tagging"):
        convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")


@pytest.mark.parametrize("kind, change, said", [
    ("neobert", {"rope_theta": 500.0}, "rope_theta must be one of 10000.0"),
    ("neobert", {"hidden_act": "relu"}, "hidden_act must be one of silu"),
    ("neobert", {"mlp_bias": True}, "mlp_bias must be one of False"),
    ("neobert", {"num_key_value_heads": 1}, "a head of keys and values for each of queries"),
    ("neobert", {"intermediate_size": 20}, "must be a multiple of 8"),
    ("mpnet", {"relative_attention_num_buckets": 16}, "relative_attention_num_buckets must be a w"),
    ("mpnet", {"pruned_heads": {0: [1]}}, "share a table with a column for each head")])
def test_sizes_that_a_network_lacks_are_refused(kind, change, said):
    with pytest.raises(InputError, match=said):
        bert_tf.config.config_from_dict({**SIZES, "model_type": kind, **change})
