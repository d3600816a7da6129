"""NomicBERT computes what its formula says, and what transformers computes from its files."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints, networks
from bert_tf.checkpoints import convert
from bert_tf.errors import InputError

# The keys of published files.
CONFIG = {"model_type": "nomic_bert", "vocab_size": 30, "n_embd": 8, "n_layer": 2, "n_head": 2,
          "n_inner": 12, "n_positions": 40, "activation_function": "swiglu", "prenorm": False,
          "causal": False, "rotary_emb_fraction": 1.0, "rotary_emb_base": 1000,
          "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
          "rotary_scaling_factor": None, "qkv_proj_bias": False, "mlp_fc1_bias": False,
          "mlp_fc2_bias": False, "type_vocab_size": 2, "max_trained_positions": 16,
          "layer_norm_epsilon": 1e-12, "resid_pdrop": 0.0, "attn_pdrop": 0.0, "pad_token_id": 0}
LAYER = {"attn.Wqkv": (24, 8), "attn.out_proj": (8, 8), "mlp.fc11": (12, 8), "mlp.fc12": (12, 8),
         "mlp.fc2": (8, 12)}
IDS = np.random.default_rng(0).integers(1, 30, (2, 21)).astype("int32")
MASK = (np.arange(21) < [[21], [14]]).astype("int32")
SEGMENTS = (np.arange(21) > 5).astype("int32")[None].repeat(2, 0)


def tensors(prefix=""):
    """Random tensors with published names."""
    rng = np.random.default_rng(1)
    shapes = {"embeddings.word_embeddings": (30, 8), "embeddings.token_type_embeddings": (2, 8),
              **{f"encoder.layers.{i}.{name}": shape for i in range(2)
                 for name, shape in LAYER.items()}}
    values = {f"{name}.weight": rng.normal(0, 0.4, shape) for name, shape in shapes.items()}
    for norm in ("emb_ln", *(f"encoder.layers.{i}.norm{n}" for i in range(2) for n in (1, 2))):
        values |= {f"{norm}.weight": rng.normal(1, 0.2, 8), f"{norm}.bias": rng.normal(0, 0.2, 8)}
    return {f"{prefix}{name}": value.astype("float32") for name, value in values.items()}


def write(folder, values, **changes):
    folder.mkdir(exist_ok=True)
    save_file(values, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    return folder


def norm(x, values, name):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12) * values[
        f"{name}.weight"] + values[f"{name}.bias"]


def formula(values, factor, trained):
    """The last layer's output; arXiv:2104.09864 with pairs (j, j + D / 2), arXiv:2002.05202."""
    values = {name: value.astype("float64") for name, value in values.items()}
    x = norm(values["embeddings.word_embeddings.weight"][IDS]
             + values["embeddings.token_type_embeddings.weight"][SEGMENTS], values, "emb_ln")
    base, size = 1000.0, 4
    if factor and trained < 21:     # the input is longer than those of training
        base *= (factor * 21 / trained - (factor - 1)) ** (size / (size - 2))
    turns = np.exp(1j * np.arange(21)[:, None] * base ** (-np.arange(0, size, 2) / size))
    for i in range(2):
        layer = {name: values[f"encoder.layers.{i}.{name}.weight"].T for name in LAYER}
        query, key, value = np.moveaxis((x @ layer["attn.Wqkv"]).reshape(2, 21, 3, 2, size), 2, 0)
        query, key = (((part[..., :2] + 1j * part[..., 2:]) * turns[:, None])
                      for part in (query, key))
        scores = np.einsum("bqnd,bknd->bnqk", query, key.conj()).real / size**0.5
        scores = np.exp(scores) * MASK[:, None, None]
        context = np.einsum("bnqk,bknd->bqnd", scores / scores.sum(-1, keepdims=True), value)
        x = norm(x + context.reshape(2, 21, 8) @ layer["attn.out_proj"], values,
                 f"encoder.layers.{i}.norm1")
        gate = x @ layer["mlp.fc12"]
        inner = gate / (1 + np.exp(-gate)) * (x @ layer["mlp.fc11"])
        x = norm(x + inner @ layer["mlp.fc2"], values, f"encoder.layers.{i}.norm2")
    return x


def features(**more):
    return {"input_ids": IDS, "input_mask": MASK, "segment_ids": SEGMENTS, **more}


def off(found, expected, tokens=MASK == 1):
    return np.abs(np.asarray(found) - expected)[tokens].max()


@pytest.mark.parametrize("factor, trained", [(None, 16), (2, 16), (2, 30)])
def test_a_published_folder_equals_the_formula_and_goes_out_again(factor, trained, tmp_path):
    values = tensors()
    folder = write(tmp_path / "a", values, rotary_scaling_factor=factor,
                   max_trained_positions=trained)
    network = bert_tf.open_model(folder).network()
    assert off(network(features())["sequence_output"], formula(
        values, factor, trained)) < 1e-5
    convert(folder, tmp_path / "b", "huggingface")
    written = load_file(tmp_path / "b" / "model.safetensors")
    assert written.keys() == values.keys()
    assert all(written[name].tobytes() == values[name].tobytes() for name in values)
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    rotary = {"rope_type": "dynamic", "factor": 2} if factor else {"rope_type": "default"}
    before = {key: value for key, value in CONFIG.items() if value is not None}
    assert config.items() >= {**before, "rotary_scaling_factor": factor or 0, "hidden_size": 8,
                              "num_hidden_layers": 2, "intermediate_size": 12,
                              "max_trained_positions": trained,
                              "max_position_embeddings": trained}.items()
    assert config["rope_parameters"] == {**rotary, "rope_theta": 1000}
    assert checkpoints.read(tmp_path / "b").config == network.config


def test_a_file_of_keras_does_not_add_a_pooler(tmp_path):
    values = tensors()
    convert(write(tmp_path / "a", values), tmp_path / "b", "keras")
    account = convert(tmp_path / "b", tmp_path / "c", "huggingface")
    assert "2 not used: first values" in str(account) and "converted: pooler" in str(account)
    assert load_file(tmp_path / "c" / "model.safetensors").keys() == values.keys()
    learner = keras.saving.load_model(tmp_path / "b" / "model.keras")
    learner.save(tmp_path / "b" / "model.keras")        # with a pooler that it may have trained
    assert "pooler" in checkpoints.read(tmp_path / "b").heads


@pytest.mark.parametrize("size, multiple, is_right", [
    (30, 64, True), (25, 6, True), (30, None, True), (25, None, False), (25, 4, False),
    (25, "6", False), (25, 0, False)])
def test_the_original_pads_its_vocabulary(size, multiple, is_right, tmp_path):
    """To a multiple; other tools, which know no such key, don't."""
    folder = write(tmp_path / "a", tensors(), vocab_size=size, pad_vocab_size_multiple=multiple)
    if is_right:
        assert checkpoints.read(folder).config.vocab_size == 30
    else:
        with pytest.raises(InputError, match="word_embeddings.* has the shape .30, 8"):
            checkpoints.read(folder)


def test_a_masked_lm_of_the_original_has_no_biases(tmp_path):
    """Which are zero here, and written once they are learned."""
    head = "cls.predictions.transform."
    values = {**tensors("bert."), f"{head}dense.weight": np.eye(8, dtype="float32"),
              f"{head}layer_norm.weight": np.ones(8, "float32"),
              f"{head}layer_norm.bias": np.zeros(8, "float32")}
    folder = write(tmp_path / "a", values)
    learner = bert_tf.open_model(folder).learner(heads=[("MaskedLM", {})])
    biases = [v for v in learner.trainable_variables
              if "masked_lm" in v.path and v.path.endswith("bias")]
    assert len(biases) == 2 and not any(np.asarray(bias).any() for bias in biases)
    convert(folder, tmp_path / "b", "huggingface")
    assert load_file(tmp_path / "b" / "model.safetensors").keys() == values.keys()
    biases[0].assign(np.ones(biases[0].shape))
    learner.save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "c", "huggingface")
    assert {f"{head}dense.bias", "nomic_bert.encoder.layers.0.mlp.fc11.weight"} <= load_file(
        tmp_path / "c" / "model.safetensors").keys()


@pytest.mark.parametrize("change, said", [
    ({"num_experts": 8}, "num_experts must be 0, not 8"),       # v2-moe
    ({"prenorm": True}, "prenorm must be False, not True"),
    ({"activation_function": "gelu"}, "activation_function must be 'swiglu', not 'gelu'"),
    ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type must be default or dynamic"),
    ({"rope_parameters": {"rope_type": "dynamic"}, "max_trained_positions": None},
     "rotary_scaling_factor must be a number"),
    ({"rope_parameters": "x"}, "rope_type must be default or dynamic"),
    ({"rope_scaling": {"type": "dynamic", "factor": 2}}, "rope_scaling must be None"),
    ({"n_layer": None}, "n_layer must be a whole number .* not None"),
    ({"rotary_emb_base": None}, "rotary_emb_base must be a number"),
    ({"n_embd": "x"}, "n_embd must be a whole number"),
    ({"hidden_size": "x"}, "hidden_size must be a whole number"),
    ({"hidden_act": "gelu"}, "hidden_act must be one of silu")])
def test_another_network_is_refused(change, said, tmp_path):
    with pytest.raises(InputError, match=f"config.json: {said}"):
        checkpoints.read(write(tmp_path / "a", tensors(), **change))


def test_an_inner_width_of_the_original_may_be_left_open(tmp_path):
    """Then it is four times the width."""
    with pytest.raises(InputError, match=r"fc2.* has the shape .8, 12., but .* asks for .8, 32"):
        checkpoints.read(write(tmp_path / "a", tensors(), n_inner=None))


def test_settings_of_transformers_count_where_a_file_has_both(tmp_path):
    """It keeps the original's keys as they were when it writes a changed configuration."""
    found = checkpoints.read(write(
        tmp_path / "a", tensors(), layer_norm_eps=1e-5, hidden_dropout_prob=0.1,
        rope_parameters={"rope_type": "dynamic", "factor": 3, "rope_theta": 500})).config
    assert (found.layer_norm_eps, found.hidden_dropout_prob, found.rope_theta) == (1e-5, 0.1, 500)
    assert (found.rotary_scaling_factor, found.max_trained_positions) == (3, 16)
    assert found.max_position_embeddings == 40


def test_bfloat16_and_layers_computed_again():
    keras.utils.set_random_seed(1)
    config = bert_tf.config.NomicBertConfig(
        vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=12, initializer_range=0.3, hidden_dropout_prob=0.1)
    network, half = (networks.build(config, dtype=dtype) for dtype in ("float32", "mixed_bfloat16"))
    half.set_weights(network.get_weights())
    vectors = half(features())["sequence_output"]
    assert keras.backend.standardize_dtype(vectors.dtype) == "bfloat16"
    assert off(keras.ops.cast(vectors, "float32"), network(features())["sequence_output"]) < 0.1
    found = []
    for network.rematerializes in (False, True):
        found.append(np.asarray(network(features(), training=True, dropout_seed=np.int32([1, 2]))[
            "sequence_output"]))
    np.testing.assert_allclose(*found, atol=1e-5)
    seen = network.make_bias(features(), None)
    dropped = [np.asarray(network.layers_[0](found[0], seen, np.int32([1, number]))[0])
               for number in (2, 3)]
    assert np.abs(np.subtract(*dropped)).max() > 0.1


@pytest.mark.peer
@pytest.mark.parametrize("original", [True, False])
@pytest.mark.parametrize("seed, sizes", [
    (0, {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24,
         "max_position_embeddings": 40}),
    (1, {"hidden_size": 24, "num_attention_heads": 4, "intermediate_size": 40, "type_vocab_size": 3,
         "max_position_embeddings": 8, "rope_parameters": {
             "rope_type": "dynamic", "factor": 3.0, "rope_theta": 500.0}})])
def test_transformers_equal(original, seed, sizes, tmp_path):
    """Hidden states, heads and gradients, from files with both names of tensors."""
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    import tensorflow as tf
    import torch
    torch.manual_seed(seed)
    config = transformers.NomicBertConfig(
        vocab_size=30, num_hidden_layers=3, num_labels=3, initializer_range=0.15, **sizes)
    inputs = {"input_ids": torch.tensor(IDS), "attention_mask": torch.tensor(MASK),
              "token_type_ids": torch.tensor(SEGMENTS)}
    everywhere = np.arange(21, dtype="int32")[None].repeat(2, 0)
    for kind, objective in (("MaskedLM", "MaskedLM"), ("SequenceClassification", "Classification"),
                            ("TokenClassification", "Tagging")):
        peer = getattr(transformers, f"NomicBertFor{kind}")(config).eval()
        for name, weight in peer.named_parameters():
            if weight.ndim == 1:
                torch.nn.init.normal_(weight, float("norm" in name.lower() and "bias" not in name),
                                      0.2)
        peer.save_pretrained(tmp_path / kind, save_original_format=original)
        options = {} if kind == "MaskedLM" else {"num_labels": 3}
        learner = bert_tf.open_model(tmp_path / kind).learner(heads=[(objective, options)])
        name = learner.objectives[0].name
        expected = peer(**inputs, output_hidden_states=True)
        outputs = learner.encoder(features())
        states = [outputs["embedding_output"], *outputs["layer_outputs"]]
        for ours, theirs in zip(states, expected.hidden_states, strict=True):
            assert off(ours, theirs.detach().numpy()) < 1e-5
        where = np.ones(2, bool) if name == "classification" else MASK == 1
        with tf.GradientTape() as tape:
            logits = learner(features(masked_lm_positions=everywhere))[name]
            loss = tf.reduce_mean(logits[where] ** 2)
        assert off(logits, expected.logits.detach().numpy(), where) < 1e-5
        (expected.logits[torch.tensor(where)] ** 2).mean().backward()
        table, dense = tape.gradient(loss, [
            learner.encoder.embedding_table.value, learner.encoder.layers_[0].output_.kernel.value])
        base = peer.nomic_bert
        for ours, theirs in (
                (tf.convert_to_tensor(table), base.embeddings.word_embeddings.weight.grad),
                (tf.transpose(dense), base.layers[0].mlp.down_proj.weight.grad)):
            assert np.abs(ours - theirs.numpy()).max() < 1e-5
        convert(tmp_path / kind, tmp_path / "back" / kind, "huggingface")
        before, after = (load_file(folder / kind / "model.safetensors")
                         for folder in (tmp_path, tmp_path / "back"))
        assert before.keys() == after.keys()
        assert all(after[name].tobytes() == value.tobytes() for name, value in before.items())
        again = type(peer).from_pretrained(tmp_path / "back" / kind).eval()(**inputs)
        assert torch.equal(again.logits, expected.logits)
