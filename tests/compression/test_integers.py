"""Models written as integers, and the sensitivity of layers (golden/quantisation of
$BERT_TF_TEST_DATA)."""

import dataclasses
import json
import os
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import f1_score

import bert_tf
from benchmarks import runtimes
from bert_tf import checkpoints, networks
from bert_tf.checkpoints.quantised import Rounded
from bert_tf.compression.hessian import LayerHessian, choose_bits, sensitivity, top_eigenvalue
from bert_tf.compression.integers import round_matrix
from bert_tf.config import EncoderConfig, MobileBertConfig
from bert_tf.config.quantisation import QUANTISATIONS, Quantisation
from bert_tf.errors import InputError
from bert_tf.layers.quantisation import QuantisedDense
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.classification import Classification
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from bert_tf.training.learners.learner import Learner
from run_scripts import measure_sensitivity, quantise_model
from tests.training import tiny


@pytest.mark.parametrize("how", [Quantisation(), Quantisation("groupwise", groups=4)])
@pytest.mark.parametrize("bits", range(2, 9))
def test_what_is_read_is_rounded_to_the_same_integers(eagerly, how, bits):
    random = np.random.default_rng(bits)
    for middle, width in ((0, 1), (3, 1), (-2, 1e-3), (0, 0)):
        matrix = (middle + width * random.standard_normal((17, 24))).astype(np.float32)
        rounded = round_matrix(matrix, bits, how)
        packed = rounded.pack()
        assert packed.nbytes == -(-matrix.size * bits // 8)
        found = Rounded.unpack(packed, rounded.range, bits, matrix.shape)
        np.testing.assert_array_equal(found.integers, rounded.integers)
        again = round_matrix(found.floats(), bits, how)
        np.testing.assert_array_equal(again.integers, rounded.integers)
        np.testing.assert_array_equal(again.range, rounded.range)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]


def save(folder, quantisation, vocabulary=WORDS, make=tiny.config, seed=1, **sizes):
    keras.utils.set_random_seed(seed)
    config = make(vocab_size=len(vocabulary), quantisation=quantisation, initializer_range=0.3,
                  **sizes)
    learner = Learner(networks.build(config), [Classification(config, 2)])
    rows = {"input_ids": tf.random.stateless_uniform([4, 9], [1, 2], 0, len(vocabulary), tf.int32)}
    learner(rows, training=True)
    learner.save(folder / "model.keras")
    WordpieceTokenizer(Vocabulary(vocabulary)).save(folder)
    SavedTask(Task("mrpc", "classification", {}, ("0", "1"), ("accuracy",)), 16, True, {},
              2).write(folder)
    return learner, rows


@pytest.mark.parametrize("how", [
    {}, {"activations": "dynamic", "embedding_bits": 4},
    {"scheme": "groupwise", "groups": 4, "weight_bits": [2, 3], "head_bits": 32}])
def test_a_file_of_integers_gives_the_same_bits(eagerly, tmp_path, how, written):
    floats, integers = tmp_path / "floats", tmp_path / "integers"
    floats.mkdir()
    learner, rows = save(floats, how)
    quantise_model.main(quantise_model.QuantiseFlags(
        init_checkpoint=str(floats), output=str(integers)))
    # A kill leaves no weights without the other files of a model.
    assert {"bert_config.json", "task.json", "vocab.txt"} <= {
        *written[:written.index("quantised.safetensors")]}
    card = (integers / "README.md").read_text()
    assert "Its matrices are integers: " in card and "bert_tf.Predictor(\"integers\")" in card
    assert f"bert-quantise-model \\\n        --init_checkpoint={floats.name}" in card
    config = checkpoints.read_config(integers)
    assert config == learner.encoder.config
    other = Learner(BertEncoder(config), [Classification(config, 2)])
    assert not checkpoints.load(integers, other).missing
    np.testing.assert_array_equal(other(rows)["classification"], learner(rows)["classification"])
    texts = [("a b c", "d"), ("x y", "z a b c")]
    assert bert_tf.Predictor(integers)(texts) == bert_tf.Predictor(floats)(texts)


def mobilebert(**sizes):
    return MobileBertConfig(
        hidden_size=24, embedding_size=8, intra_bottleneck_size=16, num_attention_heads=2,
        num_hidden_layers=1, intermediate_size=20, max_position_embeddings=16, type_vocab_size=2,
        trigram_input=True, use_bottleneck=True, key_query_shared_bottleneck=True,
        num_feedforward_networks=2, normalization_type="no_norm", hidden_act="relu6",
        classifier_activation=False, hidden_dropout_prob=0, **sizes)


@pytest.mark.parametrize("how, floats_too", [({}, 0), (QUANTISATIONS["mobilebert"], 2)])
def test_mobilebert_is_written_as_integers(eagerly, tmp_path, how, floats_too):
    floats, integers = tmp_path / "floats", tmp_path / "integers"
    floats.mkdir()
    learner, rows = save(floats, how, make=mobilebert)
    dense = [layer for layer in learner._flatten_layers() if isinstance(layer, keras.layers.Dense)]
    assert sum(not isinstance(layer, QuantisedDense) for layer in dense) == floats_too
    # In the layer 2 bottlenecks, attention's 4, 2 networks and what leads out.
    assert len(dense) == 2 + 2 + 4 + 2 * 2 + 1
    quantise_model.main(quantise_model.QuantiseFlags(
        init_checkpoint=str(floats), output=str(integers)))
    config = checkpoints.read_config(integers)
    assert config == learner.encoder.config
    other = Learner(networks.build(config), [Classification(config, 2)])
    assert not checkpoints.load(integers, other).missing
    np.testing.assert_array_equal(other(rows)["classification"], learner(rows)["classification"])
    for form in ("google", "huggingface"):
        with pytest.raises(InputError, match="quantisation"):
            checkpoints.convert(floats, tmp_path / form, form)


def test_a_float_model_is_rounded_by_flags(eagerly, tmp_path, as_program):
    floats, integers = tmp_path / "floats", tmp_path / "integers"
    floats.mkdir()
    sizes = {"hidden_size": 128, "intermediate_size": 512, "num_attention_heads": 2}
    learner, _ = save(floats, None, **sizes)
    with pytest.raises(InputError, match="floats was not trained with --quantisation; give"):
        quantise_model.main(quantise_model.QuantiseFlags(
            init_checkpoint=str(floats), output=str(integers)))
    assert not integers.exists()
    for name in ("model.keras", "model.safetensors"):
        integers.mkdir()
        (integers / name).write_bytes((floats / "model.keras").read_bytes())
        with pytest.raises(InputError, match=f"--output: .*integers holds other weights, .*{name}"):
            quantise_model.main(quantise_model.QuantiseFlags(
                init_checkpoint=str(floats), output=str(integers), quantisation="q8bert"))
        assert [path.name for path in integers.iterdir()] == [name]
        shutil.rmtree(integers)
    for _ in range(2):      # a second time in the same folder, too
        quantise_model.main(as_program(quantise_model.QuantiseFlags(
            init_checkpoint=str(floats), output=str(integers), quantisation="q8bert",
            activation_ranges="dynamic")))
    assert (integers / "flags.txt").read_text().endswith("\n--x=1\n")
    size = os.path.getsize(integers / "quantised.safetensors")
    assert 0.25 < size / (4 * learner.count_params()) < 0.28
    checkpoints.convert(integers, tmp_path / "back", "keras")
    assert checkpoints.read_config(tmp_path / "back").quantisation.activations == "dynamic"
    data = bytearray((integers / "quantised.safetensors").read_bytes())
    data[-1] ^= 1
    (integers / "quantised.safetensors").write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        bert_tf.Predictor(integers)


@pytest.mark.parametrize("how", [
    {"quantisation": "q8bert", "activation_ranges": "dynamic"},
    {"quantisation": "qbert", "weight_groups": 4}])
def test_a_layer_without_heads_is_written_as_integers(eagerly, tmp_path, how):
    floats, integers = tmp_path / "floats", tmp_path / "integers"
    floats.mkdir()
    save(floats, None, pruned_heads={"0": [0, 1]}, num_attention_heads=2)
    quantise_model.main(quantise_model.QuantiseFlags(
        init_checkpoint=str(floats), output=str(integers), **how))
    found, whole = (bert_tf.Predictor(folder)(("a b c", "d"))["probabilities"]["1"]
                    for folder in (integers, floats))
    assert found != whole and found == pytest.approx(whole, abs=0.05)


@pytest.fixture(scope="module")
def hessian(test_data):
    values = np.load(test_data / "golden/quantisation/hessian_seed1.npz")
    sizes = json.loads(str(values["config"]))
    labels = sizes.pop("labels")
    config = EncoderConfig.from_dict(sizes)
    learner = Learner(BertEncoder(config), [Classification(config, labels)])
    theirs = {name: values[f"w/{name}"] for name in
              (key.removeprefix("w/") for key in values if key.startswith("w/"))}
    renamed = (("encoder/layer_", "encoder/layer."), ("/", "."), ("kernel", "weight"),
               ("gamma", "weight"), ("beta", "bias"), ("classification.dense", "classifier"))
    for name, variable in checkpoints.weights.variables(learner).items():
        for ours, other in renamed:
            name = name.replace(ours, other)
        name = next((known for known in (name, f"bert.{name}", f"bert.{name}.weight")
                     if known in theirs), None)
        if name:
            value = theirs.pop(name)
            variable.assign(value.T if variable.path.endswith("kernel") else value)
    assert not theirs
    return values, learner


@pytest.mark.parametrize("layer, count", [(0, 1), (1, 5), (2, 1)])
def test_eigenvalues_of_layers_equal_pyhessians(layer, count, hessian):
    values, learner = hessian
    block = LayerHessian(learner, layer)
    found = [block.eigenvalue([{name: tf.constant(values[f"batch{i}/{name}"]) for name in (
        "input_ids", "input_mask", "label_ids")}], tolerance=1e-7, most=300) for i in range(count)]
    np.testing.assert_allclose(found, values["top_eigenvalue_f64"][layer][:count], rtol=1e-5)
    np.testing.assert_allclose(found[0], values["exact_largest_of_batch0_f64"][layer], rtol=1e-5)
    if count == 5:
        np.testing.assert_allclose(sensitivity(found), values["sensitivity_f64"][layer], rtol=1e-5)


def test_the_greatest_magnitude_keeps_its_sign():
    matrix = np.random.default_rng(0).standard_normal((20, 20))
    matrix = matrix + matrix.T - 6 * np.eye(20)
    spectrum = np.linalg.eigvalsh(matrix)
    expected = spectrum[np.abs(spectrum).argmax()]
    assert expected < 0
    found = top_eigenvalue(lambda vector: matrix @ vector, 20, tolerance=1e-12, most=5000)
    assert found == pytest.approx(expected, rel=1e-6)
    assert choose_bits([3.0, 9.0, 4.0, 1.0], (2, 4), 2) == [2, 4, 4, 2]


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    """A folder with a float model and the files of its task."""
    folder = tmp_path_factory.mktemp("mrpc")
    (folder / "model").mkdir()
    save(folder / "model", None)
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text(
            "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + "".join(
                f"{i % 2}\t1\t2\ta b c\td {'e ' * i}\n" for i in range(8)))
    return folder


def test_runtimes_are_measured_once(eagerly, mrpc, tmp_path, capsys):
    task = TaskFlags(task="mrpc", data_dir=str(mrpc))
    job = runtimes.RuntimesFlags(
        init_checkpoint=str(mrpc / "model"), repeats=1, output_dir=str(tmp_path / "out"),
        runtimes=["tensorflow"])
    runtimes.main(task, job)
    first = json.loads((tmp_path / "out/results.json").read_text())["rows"]["tensorflow"]
    assert first["bytes"] == os.path.getsize(mrpc / "model/model.keras")
    predicted = bert_tf.Predictor(mrpc / "model")([("a b c", f"d {'e ' * i}") for i in range(8)])
    labels = [int(answer["label"]) for answer in predicted]
    assert first["score"] == pytest.approx(100 * f1_score([0, 1] * 4, labels))
    runtimes.main(task, job)
    assert json.loads((tmp_path / "out/results.json").read_text())["rows"]["tensorflow"] == first
    runtimes.main(task, dataclasses.replace(
        job, batch_size=3, output_dir=str(tmp_path / "batches")))
    batches = json.loads((tmp_path / "batches/results.json").read_text())["rows"]["tensorflow"]
    assert batches["score"] == first["score"]
    kept = json.loads((tmp_path / "out/results.json").read_text())
    kept["settings"]["weights"] = "of another model"
    (tmp_path / "out/results.json").write_text(json.dumps(kept))
    with pytest.raises(InputError, match="results.json holds a run with another --weights; name"):
        runtimes.main(task, job)
    job.init_checkpoint = str(mrpc / "absent")
    with pytest.raises(InputError, match="--init_checkpoint: there are no weights in .*absent"):
        runtimes.main(task, job)
    job.runtimes = ["tensorrt"]
    with pytest.raises(InputError, match="--runtimes is tensorrt"):
        runtimes.main(task, job)


@pytest.mark.parametrize("bits, message", [
    (["1", "4"], "--bits=1,4: quantisation: weight_bits must be from 2 to 8, or 32"),
    (["4"], "--bits=4: give two numbers")])
def test_bits_that_no_layer_can_have_are_refused_first(bits, message, tmp_path):
    with pytest.raises(InputError, match=message):
        measure_sensitivity.main(TaskFlags(), measure_sensitivity.SensitivityFlags(
            init_checkpoint=str(tmp_path), output_dir=str(tmp_path), bits=bits))


def test_sensitivities_are_kept_and_flags_checked(eagerly, mrpc, tmp_path, capsys):
    task = TaskFlags(task="mrpc", data_dir=str(mrpc))
    model = shutil.copytree(mrpc / "model", tmp_path / "model")
    job = measure_sensitivity.SensitivityFlags(
        init_checkpoint=str(model), samples=1, examples=4,
        output_dir=str(tmp_path / "out"), most_products=3)
    measure_sensitivity.main(task, job)
    first = json.loads((tmp_path / "out/results.json").read_text())
    assert "--weight_bits=" in capsys.readouterr().out
    measure_sensitivity.main(task, job)
    assert json.loads((tmp_path / "out/results.json").read_text()) == first
    assert len(first["settings"]["weights"]) == 64
    job.examples = 3
    with pytest.raises(InputError, match="holds a run with another --examples"):
        measure_sensitivity.main(task, job)
    job.examples = 4
    save(model, None, seed=2)
    with pytest.raises(InputError, match="holds a run with another --weights; name another"):
        measure_sensitivity.main(task, job)
