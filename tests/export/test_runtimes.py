"""ONNX, LiteRT and a SavedModel of ids, each run by its own runtime."""

import errno
import importlib.util
import os
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import networks
from bert_tf.config import UniversalConfig, XLNetConfig, config_from_dict
from bert_tf.errors import InputError
from bert_tf.export.ids_model import LIBRARY_INPUTS, IdsModel, answers
from bert_tf.export.saving import quiet, save_lite, save_model, save_onnx
from bert_tf.heads import HEADS
from bert_tf.objectives.classification import Classification
from bert_tf.training.learners.learner import Learner
from run_scripts import export_model
from run_scripts.export_model import ExportFlags

TASKS = ("encoder", *(head.name for head in HEADS.values() if head.exportable))


def make_features(length=16, choices=0, task=""):
    """Of 3 examples, or of 3 with so many choices each; of a masked LM with positions."""
    if task == "masked_lm":
        return {**make_features(length),
                "masked_lm_positions": np.array([[1, 8], [2, 0], [1, 2]], "int32")}
    if choices and task in ("", "multiple_choice"):
        rows = [make_features(length) for _ in range(choices)]
        rows[1]["input_ids"] = rows[1]["input_ids"][:, ::-1]
        return {name: np.stack([row[name] for row in rows], axis=1) for name in rows[0]}
    rng = np.random.default_rng(0)
    mask = np.arange(length) < [[length], [9], [3]]
    return {"input_ids": rng.integers(1, 50, (3, length)).astype("int32"),
            "input_mask": mask.astype("int32"),
            "segment_ids": (np.tile(np.arange(length) > 6, (3, 1)) & mask).astype("int32")}


def open_onnx(path):
    """A session, and the function that gives an ONNX file features under our names."""
    session = pytest.importorskip("onnxruntime").InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return session, lambda features: dict(zip(names, session.run(names, {
        LIBRARY_INPUTS.get(name, name): value.astype("int64")
        for name, value in features.items()})))


THEIR_OUTPUTS = {"last_hidden_state": "sequence_output", "pooler_output": "pooled_output"}


def largest_difference(outputs, model, features):
    """Of all outputs, and the largest of the values."""
    expected = answers(model, features)
    outputs = {THEIR_OUTPUTS.get(name, name): value for name, value in outputs.items()}
    if "values" in expected:
        expected["logits"] = expected["values"] if "logits" in outputs else None
        expected = {name: value for name, value in expected.items() if value is not None}
    assert set(outputs) == set(expected)
    return (max(np.abs(outputs[name] - expected[name]).max() for name in expected),
            max(np.abs(value).max() for value in expected.values()))


@pytest.mark.parametrize("task", TASKS)
def test_a_saved_model_of_ids(task, make_model, tmp_path):
    """The signatures of all tasks; the one with an input more is saved."""
    model, features = make_model(task, 50), make_features(choices=4, task=task)
    module = IdsModel(model)
    serve = module.function.get_concrete_function()
    if task == "masked_lm":
        path = save_model(module, tmp_path / "m", 3)
        assert path.endswith("3")
        serve = tf.saved_model.load(path).signatures["serving_default"]
    outputs = serve(**{name: tf.constant(value) for name, value in features.items()})
    assert largest_difference(outputs, model, features)[0] < 1e-5


@pytest.mark.peer
@pytest.mark.parametrize("task", TASKS)
def test_onnx(task, make_model, tmp_path):
    pytest.importorskip("tf2onnx")
    model = make_model(task, 50)
    save_onnx(IdsModel(model), tmp_path / "m.onnx")
    _, run = open_onnx(tmp_path / "m.onnx")
    for length, choices in ((16, 4), (11, 3)):
        features = make_features(length, choices, task)
        outputs = run(features)
        assert largest_difference(outputs, model, features)[0] < 1e-5


@pytest.mark.peer
@pytest.mark.parametrize("task, inputs, outputs", [
    ("encoder", {}, {"last_hidden_state": ["batch", "sequence", 32],
                     "pooler_output": ["batch", 32]}),
    ("regression", {}, {"logits": ["batch", 1], "values": ["batch", 1]}),
    ("answer_span", {}, {"end_logits": ["batch", "sequence"],
                         "start_logits": ["batch", "sequence"]}),
    ("masked_lm", {"masked_lm_positions": ["batch", "predictions"]},
     dict.fromkeys(("logits", "probabilities"), ["batch", "predictions", 50])),
    ("multiple_choice", dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"),
                                      ["batch", "choices", "sequence"]),
     dict.fromkeys(("logits", "probabilities"), ["batch", "choices"]))])
def test_onnx_has_the_names_of_hugging_face(task, inputs, outputs, make_model, tmp_path):
    pytest.importorskip("tf2onnx")
    model = make_model(task, 50)
    save_onnx(IdsModel(model), tmp_path / "m.onnx", metadata={"task": task, "labels": '["no"]'})
    session, run = open_onnx(tmp_path / "m.onnx")
    expected = {**dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"),
                                ["batch", "sequence"]), **inputs}
    assert {given.name: given.shape for given in session.get_inputs()} == expected
    assert {given.type for given in session.get_inputs()} == {"tensor(int64)"}
    assert {found.name: found.shape for found in session.get_outputs()} == outputs
    assert session.get_modelmeta().custom_metadata_map == {"task": task, "labels": '["no"]'}
    if task == "regression":
        answer = run(make_features())
        assert np.array_equal(answer["logits"], answer["values"])


@pytest.mark.parametrize("kind", [
    {"model_type": "roberta"}, {"model_type": "distilbert", "pooler_type": "first_token_relu"}])
def test_a_network_without_segments_gets_none_in_onnx(kind):
    """As the tokenizers of Hugging Face give it none."""
    model = networks.build(config_from_dict({
        **kind, "vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 16}))
    module, features = IdsModel(model), make_features()
    features["segment_ids"][:] = 0
    signature = module.library_function.input_signature
    assert [spec.name for spec in signature] == ["input_ids", "attention_mask"] == [*module.axes]
    outputs = module.library_function(*(tf.constant(features[name], tf.int64)
                                        for name in ("input_ids", "input_mask")))
    assert largest_difference(outputs, model, features)[0] < 1e-5


@pytest.mark.peer
def test_onnx_runtime_recognises_layer_normalisation_and_gelu(tmp_path):
    pytest.importorskip("tf2onnx")
    onnx, onnxruntime = map(pytest.importorskip, ("onnx", "onnxruntime"))
    model = networks.build(config_from_dict({
        "vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 12, "max_position_embeddings": 16, "hidden_act": "gelu_erf"}))
    for number, weight in enumerate(model.weights):     # tf2onnx drops additions of 0
        weight.assign(np.random.default_rng(number).normal(size=weight.shape))
    save_onnx(IdsModel(model), tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "run.onnx")
    onnxruntime.InferenceSession(tmp_path / "m.onnx", options)
    operations = [node.op_type for node in onnx.load(tmp_path / "run.onnx").graph.node]
    assert sum(name.endswith("LayerNormalization") for name in operations) == 5
    assert sum(name.endswith("Gelu") for name in operations) == 2
    assert not {"ReduceMean", "Erf"} & {*operations}
    outputs = open_onnx(tmp_path / "m.onnx")[1](make_features(16))
    assert largest_difference(outputs, model, make_features(16))[0] < 1e-4


@pytest.mark.peer
def test_onnx_of_8_bits(make_model, tmp_path):
    pytest.importorskip("tf2onnx")
    model, features = make_model("classification", 50), make_features()
    for int8 in (False, True):
        save_onnx(IdsModel(model), tmp_path / f"{int8}.onnx", int8)
    _, run = open_onnx(tmp_path / "True.onnx")
    difference, largest = largest_difference(run(features), model, features)
    assert 1e-7 < difference < 0.05 * max(1, largest)
    onnx = pytest.importorskip("onnx")
    points = [onnx.numpy_helper.to_array(array) for array in onnx.load(
        tmp_path / "True.onnx").graph.initializer if array.name.endswith("kernel_zero_point")
        or "zero_point" in array.name]
    # Signed, with a zero point for each column, which is not 0.
    assert any(p.dtype == np.int8 and p.ndim == 1 and p.size > 1 and p.any() for p in points)
    assert all(p.dtype == np.int8 for p in points if p.size > 1)
    assert os.path.getsize(tmp_path / "True.onnx") < os.path.getsize(tmp_path / "False.onnx")


@pytest.mark.peer
@pytest.mark.parametrize("config", [
    UniversalConfig(50, 32, 2, 2, 64, max_position_embeddings=64, recurrence_type="act"),
    XLNetConfig(50, 32, 2, 2, 16, 64), config_from_dict({      # as pruning may leave it
        "vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 12, "max_position_embeddings": 16, "pruned_heads": {"0": [1]}})],
    ids=["halts", "relative", "one head"])
def test_onnx_of_other_networks(config, tmp_path):
    pytest.importorskip("tf2onnx")
    model = networks.build(config)
    save_onnx(IdsModel(model), tmp_path / "m.onnx")
    _, run = open_onnx(tmp_path / "m.onnx")
    for length in (16, 11):
        features = make_features(length)
        outputs = run(features)
        assert largest_difference(outputs, model, features)[0] < 1e-5


@pytest.mark.parametrize("task, activation, tolerances", [
    ("encoder", "gelu_erf", [1e-5, 0.05]), ("answer_span", "relu", [1e-5]),
    ("masked_lm", "gelu", [1e-5])])
def test_lite(task, activation, tolerances, make_model, tmp_path):
    """In float32 and, what does not depend on the task, of integers."""
    model, features = make_model(task, 50, activation), make_features(task=task)
    module, sizes, path = IdsModel(model, 16), [], tmp_path / "m.tflite"
    for int8, tolerance in zip((False, True), tolerances):
        save_lite(module, path, int8)
        run = tf.lite.Interpreter(str(path)).get_signature_runner("serving_default")
        difference, largest = largest_difference(run(**features), model, features)
        assert difference < tolerance * max(1, largest)
        sizes.append(os.path.getsize(path))
    assert len(sizes) == 1 or sizes[1] < sizes[0]


def lstm(kind="bilstm"):
    config = config_from_dict({"model_type": kind, "vocab_size": 12, "embedding_size": 4,
                               "hidden_size": 4})
    return Learner(networks.build(config), [Classification(config, 3)])


def test_lite_of_an_lstm_is_refused(tmp_path):
    with pytest.raises(InputError, match="LiteRT can't hold this network .*; choose --format=ids."):
        save_lite(IdsModel(lstm(), 8), tmp_path / "m.tflite")


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["bilstm", "sequence_lstm"])
def test_onnx_of_an_lstm_is_refused(kind, tmp_path):
    pytest.importorskip("tf2onnx")
    with pytest.raises(InputError, match="ONNX can't hold this network .*; choose --format=ids."):
        save_onnx(IdsModel(lstm(kind)), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_one_objective_at_a_time(make_model):
    model = make_model("classification", 50)
    several = Learner(model.encoder, [*model.objectives, *make_model("tagging", 50).objectives])
    with pytest.raises(InputError, match="several objectives .classification, tagging.; export"):
        answers(several, make_features())


def test_onnx_says_what_it_needs(make_model, tmp_path):
    if importlib.util.find_spec("tf2onnx"):
        pytest.skip("tf2onnx is installed")
    with pytest.raises(InputError, match=r"pip install 'bert_tf\[onnx\]'"):
        export_model.main(ExportFlags(init_checkpoint="absent", output="o", format="onnx_int8"))
    with pytest.raises(InputError, match=r"pip install 'bert_tf\[onnx\]'"):
        save_onnx(IdsModel(make_model("encoder", 50)), tmp_path / "m.onnx")


def test_the_log_is_held_back_unless_something_breaks(capfd):
    with quiet():
        os.write(2, b"from C++\n")
    assert capfd.readouterr().err == ""
    with pytest.raises(InputError), quiet():
        os.write(2, b"before a wrong flag\n")
        raise InputError("x")
    assert capfd.readouterr().err == ""
    with pytest.raises(ZeroDivisionError), quiet():
        os.write(2, b"before a defect\n")
        raise ZeroDivisionError
    assert capfd.readouterr().err == "before a defect\n"


def test_a_full_disk_leaves_nothing_of_a_saved_model(tmp_path, monkeypatch):
    def fill(module, folder, **_):
        raise tf.errors.ResourceExhaustedError(None, None, f"{folder}; No space left on device")
    monkeypatch.setattr(tf.saved_model, "save", fill)
    with pytest.raises(OSError, match=f"device: '{tmp_path}/m/1'") as error:
        save_model(mock.Mock(), tmp_path / "m")
    assert error.value.errno == errno.ENOSPC and not os.listdir(tmp_path / "m")
