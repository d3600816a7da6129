"""Checkpoints of every format are loaded, or refused; heads in files of Keras."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints, networks
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.checkpoints import FORMATS, keras_file, load, read_config
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.layers.base import register
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training.learners.learner import Learner
from tests.networks.test_networks import FORMS
from tests.rounding import assert_same

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
WORDS = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"


def make_learner(config):
    return Learner(BertEncoder(config), [MaskedLM(config), SentencePrediction(config)])


@pytest.fixture
def hf(tmp_path):
    """A copy of a Hugging Face folder, and a function that changes its tensors."""
    shutil.copytree(GOLDEN / "hf_gelu", tmp_path / "hf")
    file = tmp_path / "hf" / "model.safetensors"

    def change(edit):
        tensors = load_file(file)
        save_file(edit(tensors) or tensors, file)

    return tmp_path / "hf", change


@pytest.fixture
def tf1(tmp_path):
    return pathlib.Path(shutil.copytree(GOLDEN / "google_gelu", tmp_path / "tf1"))


def assert_refused(path, message, model=None):
    """`load` names the trouble, which is returned, and leaves the model as it was."""
    model = model or make_learner(read_config(
        GOLDEN / {"hf": "hf_gelu", "tf1": "google_gelu"}[pathlib.Path(path).name]))
    before = model.get_weights()
    with pytest.raises(InputError, match=message) as error:
        load(path, model)
    assert_same(model.get_weights(), before)
    return str(error.value)


def test_configs_keep_the_two_gelus_apart():
    assert read_config(GOLDEN / "hf_gelu").hidden_act == "gelu_erf"
    assert read_config(GOLDEN / "hf_gelu_new").hidden_act == "gelu"
    assert read_config(GOLDEN / "google_gelu").hidden_act == "gelu"


@pytest.mark.parametrize("name", ["gelu_fast", "gelu_accurate", "gelu_python_tanh"])
def test_other_names_of_the_tanh_form_are_read(name, tmp_path):
    folder = pathlib.Path(shutil.copytree(GOLDEN / "hf_gelu_new", tmp_path / "hf"))
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, "hidden_act": name}))
    assert read_config(folder) == read_config(GOLDEN / "hf_gelu_new")


def test_a_bare_encoder_takes_the_encoder_and_says_what_it_left(tf1):
    encoder = BertEncoder(read_config(tf1))
    account = load(tf1, encoder)
    assert len(account.mapped) == len(encoder.trainable_variables)
    assert set(account.ignored.values()) == {
        "of the head masked_lm, as the encoder alone is loaded",
        "of the head next_sentence, as the encoder alone is loaded", "state of the optimizer"}
    assert "2 not used: of the head next_sentence, as the encoder alone is loaded." in str(account)


def test_an_encoder_with_other_names_is_not_left_random(tf1):
    class Renamed(BertEncoder):
        def make_embeddings(self, **kwargs):
            return super().make_embeddings(**{**kwargs, "name": "tables"})

    config = read_config(tf1)
    for model in (Renamed(config), Learner(Renamed(config), [MaskedLM(config)])):
        assert_refused(tf1, r"lacks .*tables/word_embeddings, .* \(5 weights", model)


def test_old_and_bare_names(hf):
    folder, change = hf

    def edit(tensors):
        old = {name.removeprefix("bert.").replace("LayerNorm.weight", "LayerNorm.gamma")
               .replace("LayerNorm.bias", "LayerNorm.beta"): value
               for name, value in tensors.items() if not name.startswith("cls.")}
        return {**old, "embeddings.position_ids": np.arange(40)[None]}

    new, old = (make_learner(read_config(folder)) for _ in range(2))
    load(folder, new)
    change(edit)
    account = load(folder, old)
    assert account.ignored == {"embeddings.position_ids": "a constant, not a weight"}
    assert sorted({name.split("/")[0] for name in account.missing}) == ["masked_lm",
                                                                        "next_sentence"]
    assert "left at their initial values: masked_lm/" in str(account)
    assert_same(new.encoder.get_weights(), old.encoder.get_weights())


def test_copies_of_tied_tensors_must_be_equal(hf):
    folder, change = hf
    change(lambda tensors: tensors.update({DECODER: tensors[WORDS].copy()}))
    assert load(folder, make_learner(read_config(folder))).ignored == {
        DECODER: "a copy of a tied tensor"}
    change(lambda tensors: tensors.update({DECODER: tensors[WORDS] + 1}))
    assert_refused(folder, f"{DECODER}.*differs")


def test_a_copy_stands_in_for_its_original(hf):
    folder, change = hf
    change(lambda tensors: tensors.update({DECODER: tensors.pop(WORDS)}))
    assert load(folder, make_learner(read_config(folder))).mapped[
        "embeddings/word_embeddings"] == DECODER


def test_half_precision_files_are_read(hf):
    folder, change = hf
    full = make_learner(read_config(folder))
    load(folder, full)
    change(lambda tensors: {n: x.astype(ml_dtypes.bfloat16) for n, x in tensors.items()})
    half = make_learner(read_config(folder))
    load(folder, half)
    for a, b in zip(full.trainable_variables, half.trainable_variables):
        assert b.dtype == "float32" and np.allclose(a, b, rtol=1e-2)


@pytest.mark.parametrize("edit, message", [
    (lambda t: t.update(surprise=np.zeros(3, "float32")), "surprise"),
    (lambda t: t.update({WORDS: t[WORDS][:-1].copy()}), "word_embeddings.*100.*101"),
    (lambda t: t.update({WORDS: t[WORDS].astype("int32")}), "word_embeddings.*I32"),
    (lambda t: t.pop("bert.encoder.layer.1.output.dense.bias") is t,
     "encoder.layer.1.output.dense.bias.*missing")])
def test_tensors_that_do_not_fit(hf, edit, message):
    folder, change = hf
    change(edit)
    assert_refused(folder, message)


@pytest.mark.parametrize("overrides, message", [
    ({"hidden_size": 64}, r"shape \[.*32\].*64"), ({"vocab_size": 99}, "word_embeddings.*101.*99"),
    ({"num_hidden_layers": 1}, "layer_1"), ({"num_hidden_layers": 3}, "layer_2.*missing"),
    ({"num_attention_heads": 2}, "num_attention_heads"),
    ({"hidden_act": "gelu_erf"}, "hidden_act")])
def test_another_configuration_than_the_checkpoints(tf1, overrides, message):
    config = EncoderConfig.from_dict({**read_config(tf1).to_dict(), **overrides})
    assert_refused(tf1, message, make_learner(config))


def test_a_stale_checkpoint_file_and_a_prefix(tf1):
    assert "/gone/" in (tf1 / "checkpoint").read_text()
    config = read_config(tf1)
    for path in (tf1, tf1 / "bert_model.ckpt", tf1 / "bert_model.ckpt.index"):
        assert load(path, make_learner(config)).source == str(tf1 / "bert_model.ckpt")
    shutil.copy(tf1 / "bert_model.ckpt.index", tf1 / "model.ckpt-7.index")
    message = assert_refused(tf1, "several", make_learner(config))
    assert f"such as {tf1 / 'model.ckpt-7'}, which the file {tf1}/checkpoint names" in message
    (tf1 / "checkpoint").write_text('model_checkpoint_path: "C:\\\\gone\\\\bert_model.ckpt"\n')
    assert f"such as {tf1 / 'bert_model.ckpt'}, " in assert_refused(
        tf1, "several", make_learner(config))
    (tf1 / "checkpoint").write_text('model_checkpoint_path: "/gone/other"\n')
    assert assert_refused(tf1, "several", make_learner(config)).endswith("name one of them.")


def test_an_object_checkpoint_of_something_else_is_refused(tf1):
    config = read_config(tf1)
    for file in tf1.glob("bert_model*"):
        file.unlink()
    tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(tf1 / "bert_model.ckpt"))
    assert_refused(tf1, "no place for tensor 'x/", make_learner(config))


@pytest.mark.parametrize("name", [
    "pytorch_model.bin", "model.pt", "weights.pkl", "tf_model.h5", "model.h5"])
def test_pickles_are_refused(name, tmp_path):
    (tmp_path / name).write_bytes(b"\x80\x04.")
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(InputError, match=f"{re.escape(name)}.*safetensors"):
            read_config(path)


def test_nothing_and_both_are_refused(tmp_path, tf1, hf):
    with pytest.raises(InputError, match="absent"):
        read_config(tmp_path / "absent")
    shutil.copy(hf[0] / "model.safetensors", tf1)
    with pytest.raises(InputError, match="name one"):
        read_config(tf1)


@pytest.mark.parametrize("key, value", [
    ("model_type", "deberta"), ("position_embedding_type", "relative_key"),
    ("add_cross_attention", True), ("is_decoder", "yes"), ("hidden_act", "mish"),
    ("num_attention_heads", 5)])
def test_other_networks_of_hugging_face_are_refused(hf, key, value):
    path = hf[0] / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(InputError, match=f"config.json.*{key}"):
        read_config(hf[0])


def test_reading_a_format_imports_no_other():
    code = f"""
import sys
from bert_tf import checkpoints
checkpoints.read({str(GOLDEN / "google_gelu")!r})
print(*sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], cwd=pathlib.Path(__file__).parents[2],
                          capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    homes = {form.home for form in FORMATS.values()}
    assert {home for home in (*homes, "models.t5.weights", "models.xlnet.weights")
            if f"bert_tf.{home}" in modules} == {"checkpoints.google"}
    assert not modules & {"tensorflow.python", "keras.src", "h5py.h5", "safetensors"}


@pytest.mark.parametrize("path, is_name", [
    ("bert-base-uncased", True), ("google/electra-small", True), ("./a-b", False), ("run", False),
    ("a/b/c-d", False)])
def test_a_bare_name_of_a_model_is_answered_with_its_name_on_the_hub(path, is_name):
    with pytest.raises(InputError, match=f"there is no {path}; name the folder") as error:
        read_config(path)
    name = path if "/" in path else f"OWNER/{path}"
    assert (f"write hf://{name};" in str(error.value)) == is_name


# Files of Keras

CONFIG = EncoderConfig(vocab_size=11, hidden_size=8, num_hidden_layers=3, num_attention_heads=2,
                       intermediate_size=6, max_position_embeddings=5)


def learner_of(*heads, encoder=None):
    keras.utils.set_random_seed(5)
    return bert_tf.Learner(encoder or bert_tf.BertEncoder(CONFIG), heads)


def two_heads():
    """Two heads of one class and of one size, which only their order tells apart."""
    return learner_of(bert_tf.Regression(CONFIG),
                      bert_tf.Classification(CONFIG, 3, name="mnli"),
                      bert_tf.Classification(CONFIG, 3, name="snli"), bert_tf.MaskedLM(CONFIG))


def assert_same_weights(one, other):
    one, other = variables(one), variables(other)
    assert one.keys() == other.keys()
    for name, variable in one.items():
        assert np.array_equal(variable, other[name]), name


def test_two_heads_of_one_class(tmp_path):
    learner = two_heads()
    learner.save(tmp_path / "model.keras")
    assert_same_weights(learner, keras.models.load_model(tmp_path / "model.keras"))
    weights = checkpoints.read(tmp_path / "model.keras")
    assert weights.heads == ["pooler", "masked_lm", "regression", "mnli", "snli"]
    other = two_heads()
    for variable in other.weights:
        variable.assign(np.zeros(variable.shape))
    account = checkpoints.load(tmp_path / "model.keras", other)
    assert not account.missing and "mnli/dense/kernel" in account.mapped
    assert_same_weights(learner, other)


def test_heads_of_one_class_in_other_formats(tmp_path):
    two_heads().save(tmp_path / "model.keras")
    account = checkpoints.convert(tmp_path / "model.keras", tmp_path / "google", "google")
    assert "of the head mnli, which the format google does not have" in account.ignored.values()
    assert checkpoints.read(tmp_path / "google", "regression").heads == [
        "pooler", "masked_lm", "regression"]


def test_one_head_of_its_class_keeps_its_row_whatever_it_is_called(tmp_path):
    learner_of(bert_tf.Classification(CONFIG, 3, name="mnli")).save(tmp_path / "model.keras")
    assert checkpoints.read(tmp_path / "model.keras").heads == ["pooler", "classification"]


@pytest.mark.parametrize("names", [("same", "same"), ("a/b", "c"), ("tagging", "c"), (3, "c")])
def test_heads_that_cannot_be_told_apart(names):
    objectives = [("Classification", {"name": name}) for name in names]
    with pytest.raises(InputError, match="need different names"):
        keras_file._name_heads(objectives, "x.keras")


@register
class WithProjection(BertEncoder):
    """An encoder with a dense layer before its pooler, as ALBERT's has."""

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        projection, pooler = self.dense(4), self.pooler
        projection.build((None, 8))
        # Keras saves the layers in the order in which they were set.
        self._tracker.unlock()
        self._layers.remove(pooler)
        self.widening = projection
        self._layers.append(pooler)
        self._tracker.lock()


def test_a_second_dense_layer_in_the_encoder(tmp_path, monkeypatch):
    monkeypatch.setitem(networks.NETWORKS, "Projected", "WithProjection")
    encoder = WithProjection(CONFIG)
    learner = learner_of(bert_tf.Tagging(CONFIG, 2), encoder=encoder)
    learner.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras").encoder
    assert np.array_equal(again.pooler.kernel, encoder.pooler.kernel)
    tensors = keras_file.read(str(tmp_path / "model.keras")).tensors
    assert np.array_equal(tensors["pooler/dense/kernel"].read(), encoder.pooler.kernel)
    assert np.array_equal(tensors["dense/kernel"].read(), encoder.widening.kernel)


@pytest.mark.parametrize("name, sizes", [*((name, forms[-1]) for name, forms in FORMS.items()),
                                         ("EncoderConfig", FORMS["EncoderConfig"][2])])
def test_a_file_tells_the_names_of_its_weights(name, sizes, tmp_path):
    file = tmp_path / "model.keras"
    config = getattr(bert_tf.config, name).from_dict(sizes)
    network = networks.build(config)
    network.save(file)
    told = checkpoints.read(file)
    assert told.tensors.keys() == variables(network).keys()
    assert_same_weights(network, keras.models.load_model(file))
