"""Networks and objectives on JAX and PyTorch give TensorFlow's numbers and gradients."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from tests import backend_cases


@pytest.fixture(scope="module")
def expected():
    found = {}
    for name, case in backend_cases.all_cases().items():
        found |= backend_cases.results(name, case)
    return found


def run(backend, *args, **options):
    """Runs Python with a backend of Keras."""
    return subprocess.run([sys.executable, *args], text=True, capture_output=True,
                          env={**os.environ, "KERAS_BACKEND": backend}, **options)


def on(*backends):
    """Gives a test the names of backends; it is skipped for one that is not installed."""
    return pytest.mark.parametrize("backend", [pytest.param(backend, marks=pytest.mark.skipif(
        importlib.util.find_spec(backend) is None, reason=f"{backend} isn't installed"))
        for backend in backends])


@pytest.mark.peer
@on("jax", "torch")
@pytest.mark.parametrize("name", ["Predictor", "TextModel"])
def test_what_needs_tensorflow_says_so(backend, name):
    result = run(backend, "-c", f"import bert_tf; bert_tf.{name}")
    assert f"KERAS_BACKEND is {backend}; set it to tensorflow." in result.stderr


def test_data_jobs_need_no_torch():
    result = run("torch", "-c", "import bert_tf, sys; sys.exit('torch' in sys.modules)")
    assert result.returncode == 0, result.stderr


@pytest.mark.peer
@on("jax")
@pytest.mark.parametrize("file", ["test_dropout.py", "test_fused_attention.py"])
def test_layers(backend, file):
    result = run(backend, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                 os.path.join(os.path.dirname(__file__), "layers", file))
    assert result.returncode == 0, result.stdout


AVERAGED = """
import bert_tf, keras, numpy
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(bert_tf.AdamWeightDecay(0.1, {}), loss="mse")
inputs, labels = numpy.ones((8, 4)), numpy.ones((8, 1))
for _ in range(2):
    model.fit(inputs, labels, verbose=0)
    model.evaluate(inputs, labels, verbose=0)
    model.save("model.keras")
"""


@pytest.mark.peer
@on("jax")
@pytest.mark.parametrize("options", ["use_ema=True", "average='ema'", "average='swa'"])
def test_averaged_weights_have_arrays_of_their_own(backend, options, tmp_path):
    """JAX deletes the arrays that a step, also one of `evaluate`, gets."""
    (tmp_path / "train.py").write_text(AVERAGED.format(options))
    result = run(backend, tmp_path / "train.py", cwd=tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.peer
@on("jax", "torch")
def test_networks_and_objectives(backend, expected, tmp_path):
    result = run(backend, "-m", "tests.backend_cases", tmp_path / "found.npz")
    assert result.returncode == 0, result.stderr
    with np.load(tmp_path / "found.npz") as found:
        for name in found.keys() | expected.keys():
            check(name, found.get(name), expected.get(name))


ANY_LENGTH = """
import keras
from bert_tf import config, networks
network = networks.build(config.DebertaConfig(
    9, 8, 1, 2, 8, type_vocab_size=0, position_buckets=4, relative_attention=True,
    pos_att_type=("p2c", "c2p"), share_att_key=True, position_biased_input=False))
outputs = network({"input_ids": keras.Input((None,), dtype="int32")})
assert outputs["sequence_output"].shape == (None, None, 8)
"""


@pytest.mark.peer
@on("jax", "torch")
def test_deberta_in_a_functional_model_reads_texts_of_any_length(backend):
    result = run(backend, "-c", ANY_LENGTH)
    assert result.returncode == 0, result.stderr


def check(name, found, expected):
    """Checks that two results are equal; a gradient may be zeros or be left out."""
    if found is None or expected is None:
        assert "/gradients/" in name, name
        found, expected = (np.zeros(()) if x is None else x for x in (found, expected))
    else:
        assert found.dtype == expected.dtype and found.shape == expected.shape, name
    sizes = np.abs(expected.astype("float64"))
    bounds = 1e-5 * np.maximum(sizes, 1)
    if "/gradients/" in name:
        bounds = 1e-4 * max(sizes.max(initial=0), 1e-2)
    assert (np.abs(found - expected.astype("float64")) <= bounds).all(), name
