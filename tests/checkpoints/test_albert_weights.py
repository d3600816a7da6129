"""ALBERT computes what google-research/albert computes, from its checkpoints, which are written
again bit for bit.
"""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.checkpoints import google, huggingface, keras_hub, model_garden, rules
from bert_tf.checkpoints.weights import Weights, variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.classification import Classification, Regression
from bert_tf.objectives.conditional_span import ConditionalSpan
from bert_tf.training.learners.learner import Learner
from tests import original_checkpoint
from tests.goldens import at_hand, part
from tests.rounding import assert_same
from tests.training import tiny

CASES = ("shared", "groups2_inner2", "unshared_nomapping")
TINY = EncoderConfig.preset(
    "tiny", vocab_size=11, hidden_size=8, intermediate_size=6, num_hidden_layers=3,
    max_position_embeddings=5, model_type="albert", embedding_size=4, num_hidden_groups=1)


def make_learner(config, *heads):
    keras.utils.set_random_seed(3)
    return Learner(BertEncoder(config), heads or [MaskedLM(config), SentencePrediction(config)])


@pytest.mark.parametrize("case", at_hand("golden/albert/forward_{}.npz", CASES))
def test_the_original(case, test_data, tmp_path):
    golden = dict(np.load(test_data / "golden" / "albert" / f"forward_{case}.npz"))
    original_checkpoint.write(tmp_path / "google", str(golden["config"]), part(golden, "weights/"))
    config = checkpoints.read_config(tmp_path / "google")
    assert config.model_type == "albert"
    learner = make_learner(config)
    account = checkpoints.load(tmp_path / "google", learner)
    assert not account.missing and len(account.mapped) == len(part(golden, "weights/"))
    assert set(account.ignored.values()) == {"state of the optimizer"}

    batch, wanted = part(golden, "batch/"), part(golden, "outputs/")
    outputs = learner.encoder(batch)
    layers = outputs.pop("layer_outputs")
    outputs |= {f"layer_{i}": layer for i, layer in enumerate(layers)}
    with tf.GradientTape() as tape:
        logits = learner(batch)
        measures = learner.measure_logits(logits, batch)
        outputs["loss"] = learner.total_loss(measures)
    gradients = tape.gradient(outputs["loss"], learner.trainable_variables)
    outputs["gradient_norm"] = tf.linalg.global_norm([tf.convert_to_tensor(g) for g in gradients])
    for ours, theirs in (("masked_lm", "masked_lm"), ("next_sentence", "sentence_order")):
        log_probs = keras.ops.log_softmax(logits[ours])
        outputs[f"{theirs}_log_probs"] = np.reshape(log_probs, (-1, log_probs.shape[-1]))
        total, count = measures[ours]["loss"]
        outputs[f"{theirs}_loss"] = total / count
    assert outputs.keys() - {"projected_output"} == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(outputs[name], value, rtol=5e-6, atol=1e-5, err_msg=name)

    checkpoints.convert(tmp_path / "google", tmp_path / "hf", "huggingface")
    checkpoints.convert(tmp_path / "hf", tmp_path / "ours", "keras")
    assert checkpoints.read_config(tmp_path / "ours") == config
    checkpoints.convert(tmp_path / "ours", tmp_path / "back", "google")
    assert_same(dict(tensors(tmp_path / "back")), part(golden, "weights/"))
    written = json.loads((tmp_path / "back" / "albert_config.json").read_text())
    known = json.loads(str(golden["config"]))
    assert written.items() >= {key: known[key] for key in known.keys() & written.keys()}.items()


def tensors(folder):
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder) or str(
        next(folder.glob("*.index"))).removesuffix(".index"))
    return ((name, reader.get_tensor(name)) for name in reader.get_variable_to_shape_map())


@pytest.mark.parametrize("case, make", at_hand("golden/albert/head_{}.npz", [
    ("mnli", lambda config: Classification(config, 3)), ("sts-b", Regression),
    ("squad_v1", AnswerSpan), ("squad_v2", ConditionalSpan)]))
def test_tasks_of_the_original(case, make, test_data, tmp_path):
    golden = dict(np.load(test_data / "golden" / "albert" / f"head_{case}.npz"))
    weights = part(golden, "weights/")
    original_checkpoint.write(tmp_path / "google", str(golden["config"]), weights)
    config = checkpoints.read_config(tmp_path / "google")
    learner = make_learner(config, make(config))
    missing = checkpoints.load(tmp_path / "google", learner).missing
    assert set(missing) <= {"pooler/dense/kernel", "pooler/dense/bias"}
    checkpoints.convert(tmp_path / "google", tmp_path / "back", "google")
    assert_same(dict(tensors(tmp_path / "back")), weights)


@pytest.mark.parametrize("parts", ["all", "attention", "feed_forward"])
def test_what_is_shared_is_saved_once(parts, tmp_path):
    config = dataclasses.replace(TINY, num_hidden_groups=2, inner_group_num=2, shared_parts=parts)
    learner = make_learner(config)
    assert len(learner.encoder.layers_) == 6
    held = variables(learner)
    learner.save(tmp_path / "model.keras")
    batch = {"input_ids": np.array([[1, 2, 3]]), "masked_lm_positions": np.array([[1]])}
    again = keras.models.load_model(tmp_path / "model.keras")
    assert np.array_equal(again(batch)["masked_lm"], learner(batch)["masked_lm"])
    assert_same(tiny.weights_at(tmp_path / "model.keras"), held)
    checkpoints.convert(tmp_path / "model.keras", tmp_path / "again", "keras")
    assert checkpoints.read_config(tmp_path / "again") == config
    assert_same(tiny.weights_at(tmp_path / "again"), held)


@pytest.mark.parametrize("form, changes, message", [
    (google, {"model_type": "bert"}, "embedding_size is 4, but this format's bert has"),
    (google, {"model_type": "bert", "embedding_size": None}, "num_hidden_groups is 1"),
    (google, {"shared_parts": "attention"}, "shared_parts is attention"),
    (google, {"hidden_act": "gelu_erf"}, "hidden_act is the exact GELU"),
    (google, {"num_hidden_layers": 22, "num_hidden_groups": None},
     "each of the 22 layers is a group"),
    (google, {"model_type": "roberta"}, "the model_type is roberta, but this format holds bert on"),
    (model_garden, {}, "the model_type is albert, but this format holds bert only"),
    (keras_hub, {}, "the model_type is albert, but this format holds bert only"),
    (huggingface, {"model_type": "bert"}, "embedding_size is 4, but this format's bert has"),
    (huggingface, {"shared_parts": "feed_forward"}, "shared_parts is feed_forward"),
    (huggingface, {"num_hidden_layers": 22, "num_hidden_groups": 22},
     "transformers .* 22 layers over 22")])
def test_networks_that_others_cannot_build(form, changes, message):
    weights = Weights("m.keras", dataclasses.replace(TINY, **changes), {}, {})
    with pytest.raises(InputError, match=f"m.keras: {message}"):
        form.table_for(weights)


def test_what_transformers_reads(tmp_path):
    """There the layer behind the embeddings is in every file, and the other GELU has no word."""
    config = dataclasses.replace(TINY, embedding_size=None, num_hidden_groups=None)
    make_learner(config).save(tmp_path / "model.keras")
    checkpoints.convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    described = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert described["architectures"] == ["AlbertForPreTraining"]
    assert (described["hidden_act"], described["embedding_size"]) == ("gelu_new", 8)
    assert (described["num_hidden_groups"], described["inner_group_num"]) == (3, 1)
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    kernel = "albert.encoder.embedding_hidden_mapping_in.weight"
    assert np.array_equal(tensors[kernel], np.eye(8))
    account = checkpoints.convert(tmp_path / "hf", tmp_path / "again", "huggingface")
    assert account.ignored[kernel] == "a layer that only copies the embeddings"
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == tensors.keys()

    tensors[kernel] = 2 * tensors[kernel]
    save_file(tensors, tmp_path / "hf" / "model.safetensors")
    network = bert_tf.open_model(tmp_path / "hf").network()
    outputs = network({"input_ids": np.array([[1, 2, 3]])})
    assert np.array_equal(outputs["projected_output"], 2 * outputs["embedding_output"])
    checkpoints.convert(tmp_path / "hf", tmp_path / "keras", "keras")
    checkpoints.convert(tmp_path / "keras", tmp_path / "back", "huggingface")
    assert_same(load_file(tmp_path / "back" / "model.safetensors"), tensors)
    with pytest.raises(InputError, match="project_embeddings is True, but this format's albert"):
        checkpoints.convert(tmp_path / "keras", tmp_path / "out", "google")


def test_no_weight_of_the_encoder_is_left_out(tmp_path, monkeypatch):
    make_learner(TINY).save(tmp_path / "model.keras")
    monkeypatch.setattr(google, "table_for", lambda weights: rules.Format(()))
    with pytest.raises(InputError, match="google can't hold embeddings, embeddings_project"):
        checkpoints.convert(tmp_path / "model.keras", tmp_path / "out", "google")
