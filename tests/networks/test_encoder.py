"""BertEncoder: sizes, masks, dropout, saving, other backends; its numbers are in checkpoints/."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import networks
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from tests import processes

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
SMALL = EncoderConfig.preset("tiny", vocab_size=50, hidden_size=32, intermediate_size=64,
                             max_position_embeddings=24)
@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(1)
    return BertEncoder(SMALL)


def make_inputs(length=12, batch=2):
    rng = np.random.default_rng(0)
    return {"input_ids": rng.integers(0, 50, (batch, length)).astype("int32"),
            "input_mask": np.ones((batch, length), "int32"),
            "segment_ids": rng.integers(0, 2, (batch, length)).astype("int32")}


def sequence(encoder, inputs, **options):
    return np.array(encoder(inputs, **options)["sequence_output"])


def test_shapes_of_every_output(encoder):
    out = encoder(make_inputs(), return_attention=True)
    shapes = {name: tuple(np.shape(value)) for name, value in out.items()}
    assert shapes == {"embedding_output": (2, 12, 32), "layer_outputs": (2, 2, 12, 32),
                      "sequence_output": (2, 12, 32), "pooled_output": (2, 32),
                      "attention_probs": (2, 2, 2, 12, 12),
                      "attention_scores": (2, 2, 2, 12, 12)}
    assert "attention_probs" not in encoder(make_inputs())


def test_weights_are_a_function_of_the_seed(encoder):
    keras.utils.set_random_seed(1)
    same = BertEncoder(SMALL)
    other = BertEncoder(SMALL)
    for a, b, c in zip(encoder.weights, same.weights, other.weights):
        assert np.array_equal(a, b)
        assert a.name in ("gamma", "beta", "bias") or not np.array_equal(a, c)
    kernel = np.array(encoder.embedding_table)
    assert np.abs(kernel).max() <= 0.04 and 0.015 < kernel.std() < 0.02


def test_mask_and_segments_default_to_ones_and_zeros(encoder):
    inputs = make_inputs()
    inputs["segment_ids"] *= 0
    assert np.allclose(sequence(encoder, {"input_ids": inputs["input_ids"]}),
                       sequence(encoder, inputs), atol=1e-6)


def test_padding_changes_nothing(encoder):
    inputs = make_inputs()
    padded = {name: np.pad(value, ((0, 0), (0, 5))) for name, value in inputs.items()}
    assert np.allclose(sequence(encoder, padded)[:, :12], sequence(encoder, inputs), atol=1e-5)


def test_attention_bias_can_make_it_causal(encoder):
    causal = np.triu(np.full((12, 12), -10000.0, "float32"), 1)[None, None]
    inputs = make_inputs()
    changed = {**inputs, "input_ids": inputs["input_ids"].copy()}
    changed["input_ids"][:, 7:] = 3
    before = encoder(inputs, attention_bias=causal, return_attention=True)
    after = sequence(encoder, changed, attention_bias=causal)
    assert np.allclose(before["sequence_output"][:, :7], after[:, :7], atol=1e-6)
    assert not np.allclose(before["sequence_output"][:, 7:], after[:, 7:], atol=1e-3)
    assert np.array(before["attention_probs"][0])[:, :, 0, 1:].max() == 0


def test_a_masked_head_contributes_nothing(encoder):
    inputs, mask = make_inputs(), np.ones((2, 2), "float32")
    assert np.array_equal(sequence(encoder, inputs), sequence(encoder, inputs, head_mask=mask))
    mask[1, 0] = 0.0
    masked = sequence(encoder, inputs, head_mask=mask)
    assert not np.allclose(masked, sequence(encoder, inputs), atol=1e-4)
    # A head of width 16 whose value kernel and bias are zero is such a head.
    value = encoder.layers_[1].attention.value
    saved = [np.array(w) for w in value.weights]
    value.set_weights([np.where(np.arange(32) < 16, 0, w) for w in saved])
    assert np.allclose(masked, sequence(encoder, inputs), atol=1e-6)
    value.set_weights(saved)


def test_dropout_masks_are_a_function_of_the_seed_alone(encoder):
    inputs = make_inputs()

    def run(*seed):
        return sequence(encoder, inputs, training=True, dropout_seed=np.array(seed, "int32"))

    assert np.array_equal(run(1, 2), run(1, 2))
    assert not np.allclose(run(1, 2), run(1, 3)) and not np.allclose(run(1, 2), run(2, 2))
    assert np.array_equal(sequence(encoder, inputs, dropout_seed=np.array([1, 2], "int32")),
                          sequence(encoder, inputs))


def test_without_a_seed_training_draws_new_masks(encoder):
    inputs = make_inputs()
    assert not np.allclose(sequence(encoder, inputs, training=True),
                           sequence(encoder, inputs, training=True))


def test_a_longer_input_than_positions_is_refused(encoder):
    with pytest.raises(ValueError, match="25 tokens.*24"):
        encoder(make_inputs(25))


def test_training_compiles_and_equals_eager():
    config = EncoderConfig.from_dict({**SMALL.to_dict(), "num_hidden_layers": 1})
    plain = BertEncoder(EncoderConfig.from_dict({
        **config.to_dict(), "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}))
    encoder = BertEncoder(config)
    encoder.set_weights(plain.get_weights())
    inputs = {name: tf.constant(value) for name, value in make_inputs().items()}

    def forward(model, seed):
        return model(inputs, training=True, dropout_seed=seed)["sequence_output"]

    @tf.function(jit_compile=True, autograph=False)
    def run(seed):
        with tf.GradientTape() as tape:
            out = forward(encoder, seed)
            loss = tf.reduce_sum(out**3)
        return out, tape.gradient(loss, encoder.embeddings.position_embeddings.value)

    seed = tf.constant([1, 2])
    traced = tf.function(forward, jit_compile=True, autograph=False)
    assert np.allclose(traced(plain, seed), sequence(encoder, inputs), atol=1e-5)
    (one, gradient), (same, _), (other, _) = run(seed), run(seed), run(seed + 1)
    assert np.array_equal(one, same) and not np.allclose(one, other)
    assert np.all(np.isfinite(gradient))


def test_low_precision(encoder):
    low = BertEncoder(SMALL, dtype="mixed_bfloat16")
    low.set_weights(encoder.get_weights())
    out = low(make_inputs(), return_attention=True)
    assert all(scores.dtype == tf.float32 for scores in out.pop("attention_scores"))
    assert all(value.dtype == tf.bfloat16 for value in tf.nest.flatten(out))
    assert all(weight.dtype == "float32" for weight in low.weights)
    assert np.allclose(np.array(out["sequence_output"], "float32"),
                       sequence(encoder, make_inputs()), atol=0.1)


@pytest.mark.parametrize("policy", ["mixed_float16", "bfloat16", "float64"])
def test_other_policies(policy):
    out = BertEncoder(SMALL, dtype=policy)(make_inputs(), training=True)["pooled_output"]
    assert out.dtype == policy.removeprefix("mixed_") and np.all(np.isfinite(out))


def test_two_encoders_share_their_embeddings():
    first = BertEncoder(SMALL)
    smaller = EncoderConfig.from_dict({**SMALL.to_dict(), "num_hidden_layers": 1})
    second = BertEncoder(smaller, name="second", embeddings=first.embeddings)
    assert second.embedding_table is first.embedding_table
    before = np.array(second(make_inputs())["embedding_output"])
    first.embedding_table.assign(first.embedding_table + 1.0)
    first.embeddings.norm.beta.assign(first.embeddings.norm.beta + 1.0)
    after = np.array(second(make_inputs())["embedding_output"])
    assert not np.allclose(before, after)
    assert np.array_equal(after, first(make_inputs())["embedding_output"])
    wider = EncoderConfig.from_dict({**SMALL.to_dict(), "vocab_size": 51})
    with pytest.raises(InputError, match="vocab_size 50, the encoder has 51"):
        networks.build(wider, embeddings=first.embeddings)


@pytest.mark.parametrize("name", ["BertEncoder", "Bert", "GPT", "Classification", "MaskedLM"])
def test_the_name_of_a_model_is_no_configuration(name):
    with pytest.raises(InputError, match="is 'bert-tiny'; give one, such as EncoderConfig.preset"):
        getattr(bert_tf, name)("bert-tiny", **{"num_labels": 2} if name[0] == "C" else {})


def test_it_is_a_layer_of_a_functional_model(encoder, tmp_path):
    inputs = {name: keras.Input((None,), dtype="int32", name=name)
              for name in ("input_ids", "input_mask")}
    pooled = encoder(inputs)["pooled_output"]
    model = keras.Model(inputs, keras.layers.Dense(3)(pooled))
    features = make_inputs()
    del features["segment_ids"]
    before = np.array(model(features))
    model.save(tmp_path / "functional.keras")
    assert np.array_equal(keras.models.load_model(tmp_path / "functional.keras")(features), before)


@keras.saving.register_keras_serializable("tests")
class Answers(keras.Model):
    """A user's model, whose last layer Keras builds when it loads the model."""

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.answer = encoder, keras.layers.Dense(3)

    def call(self, inputs):
        return self.answer(self.encoder(inputs)["pooled_output"])

    def get_config(self):
        saved = keras.saving.serialize_keras_object(self.encoder)
        return {**super().get_config(), "encoder": saved}

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})


def test_it_is_a_layer_of_a_users_class(encoder, tmp_path):
    model, features = Answers(encoder), make_inputs()
    before = np.array(model(features))
    model.save(tmp_path / "users.keras")
    assert np.array_equal(keras.models.load_model(tmp_path / "users.keras")(features), before)


def test_a_saved_encoder_loads_in_a_fresh_process(encoder, tmp_path):
    """Which has imported Keras, and nothing of this package."""
    encoder.save(tmp_path / "encoder.keras")
    np.savez(tmp_path / "inputs.npz", **make_inputs())
    processes.Process(textwrap.dedent("""
        import bert_tf
        import keras
        import numpy as np
        encoder = keras.models.load_model("encoder.keras")
        out = encoder(dict(np.load("inputs.npz")))
        np.save("out.npy", np.array(out["sequence_output"]))
        """), cwd=tmp_path).finish()
    assert np.array_equal(np.load(tmp_path / "out.npy"), sequence(encoder, make_inputs()))


@pytest.mark.peer
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends(backend, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} isn't installed")
    run_python(f"""
        import sys
        sys.modules["tensorflow"] = None  # importing it fails
        import numpy as np, keras
        from bert_tf.checkpoints import load, read_config
        from bert_tf.networks.encoder import BertEncoder
        folder = {str(GOLDEN / "hf_gelu")!r}
        encoder = BertEncoder(read_config(folder))
        load(folder, encoder)
        golden = dict(np.load(folder + "/expected.npz"))
        inputs = {{k: golden[k] for k in ("input_ids", "input_mask", "segment_ids")}}
        convert = keras.ops.convert_to_numpy
        out = convert(encoder(inputs)["pooled_output"])
        assert np.abs(out - golden["pooled_output"]).max() < 1e-5
        one, same, other = (
            convert(encoder(inputs, training=True, dropout_seed=np.array([1, n]))["pooled_output"])
            for n in (2, 2, 3))
        assert np.array_equal(one, same) and not np.allclose(one, other)
        """, tmp_path, KERAS_BACKEND=backend)


def test_a_fork_of_a_process_that_has_not_trained_is_noted(tmp_path):
    run_python("""
        import os
        import bert_tf
        import keras
        keras.ops.ones(1)
        if child := os.fork():
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        else:
            try:
                bert_tf.Predictor("nowhere")
            except bert_tf.InputError as error:
                os._exit(3 if "before this process was forked" in str(error) else 4)
    """, tmp_path, KERAS_BACKEND="tensorflow")


def run_python(code, folder, **environment):
    """Runs `code` in a fresh process in `folder`."""
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=folder, text=True,
                            capture_output=True, env={**os.environ, **environment})
    assert result.returncode == 0, result.stderr
