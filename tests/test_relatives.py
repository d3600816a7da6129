"""What analysis, compression and export do with the types of models beside BERT: they give the
model's own outputs, or refuse in a sentence."""

import contextlib
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import analysis, checkpoints, networks
from bert_tf.compression import cut
from bert_tf.compression.hessian import LayerHessian
from bert_tf.compression.integers import write_integers
from bert_tf.compression.students import take_layers
from bert_tf.compression.teachers import InStep
from bert_tf.config import config_from_dict
from bert_tf.errors import InputError
from bert_tf.export.ids_model import LIBRARY_INPUTS, IdsModel, answers
from bert_tf.export.saving import save_lite, save_onnx
from bert_tf.finetuning.model import QuantisationFlags
from bert_tf.objectives.classification import Classification
from bert_tf.recipes import find_distillation
from bert_tf.training import transfer
from bert_tf.training.learners.learner import Learner

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]
SIZES = {"vocab_size": len(TOKENS), "hidden_size": 16, "num_hidden_layers": 2,
         "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 40,
         "initializer_range": 0.3}
DEBERTA = {"model_type": "deberta-v2", "position_buckets": 4, "max_relative_positions": 20,
           "share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False}
FORMS = {
    "modernbert": {"model_type": "modernbert", "local_attention": 4},
    "modernbert biases": {"model_type": "modernbert", "local_attention": 4, "norm_bias": True,
                          "attention_bias": True, "mlp_bias": True},
    "deberta v2": {**DEBERTA, "conv_kernel_size": 3}, "deberta v3": DEBERTA,
    "mpnet": {"model_type": "mpnet"},
    "eurobert": {"model_type": "eurobert", "num_key_value_heads": 1}, "neobert": {
        "model_type": "neobert", "intermediate_size": 16},
    "nomic_bert": {"model_type": "nomic_bert", "rotary_scaling_factor": 2.0,
                   "max_trained_positions": 10},
    "distilbert": {"model_type": "distilbert", "pooler_type": "first_token_relu",
                   "type_vocab_size": 1},
    "xlm-roberta": {"model_type": "xlm-roberta", "type_vocab_size": 1}}     # as camembert
DISTANCES = "also depends on distances"
UNCUT = "network of the type {} can't be pruned"
# Of each type, the uses that are refused, and what the sentence says.
REFUSED = {
    **dict.fromkeys(("modernbert", "modernbert biases"), {
        "even": DISTANCES, "pruning": UNCUT.format("modernbert"),
        "layers": "in local layers of the student a token sees near tokens only"}),
    **{kind: {"even": DISTANCES, "pruning": UNCUT.format(kind)} for kind in (
        "neobert", "nomic_bert")},
    "eurobert": {"even": DISTANCES, "pruning": UNCUT.format("eurobert"),
                 "zero": "several heads of this network share"},
    "mpnet": {"even": DISTANCES, "pruning": UNCUT.format("mpnet")},
    **dict.fromkeys(("deberta v2", "deberta v3"), {
        "even": DISTANCES, "pruning": UNCUT.format("deberta-v2"),
        "integers": "--quantisation is for .* not for deberta-v2",
        "bits": "of the type deberta-v2, whose layers get no bits"})}


def make(kind, **sizes):
    keras.utils.set_random_seed(3)
    config = config_from_dict({**SIZES, **FORMS[kind], **sizes})
    return Learner(networks.build(config), [Classification(config, 2)])


made = functools.cache(make)        # no use changes the learner


def rows(learner, length=7):
    """Three texts; the features that the network reads."""
    mask = (np.arange(length) < [[length], [length - 2], [3]]).astype("int32")
    ids = np.random.default_rng(length).integers(5, len(TOKENS), (3, length))
    features = {"input_ids": ids.astype("int32") * mask, "input_mask": mask,
                "segment_ids": mask * 0}
    return {name: features[name] for name in learner.reads}


def logits(learner, features):
    return np.asarray(learner(features)["classification"])


def read_maps(learner, folder):
    """Each head's output is the product of its map and its values."""
    encoder = learner.encoder
    features = {"input_ids": np.full((1, 5), 6, "int32"), "segment_ids": np.zeros((1, 5), "int32"),
                "input_mask": np.ones((1, 5), "int32")}
    reading, = analysis.read(encoder, [features])
    outputs = encoder(features)
    states = [networks.first_state(outputs), *outputs["layer_outputs"]]
    for i, attention in enumerate(networks.attentions(encoder).values()):
        output, _ = attention(states[i], encoder.make_bias(features, None))
        heads = np.moveaxis(reading.attention[i] @ reading.values[i], 0, 1).reshape(output[0].shape)
        np.testing.assert_allclose(heads, output[0], atol=1e-5)


def attend_evenly(learner, folder):
    """A head that is off attends to all tokens alike."""
    features = rows(learner)
    with analysis.disabled(learner.encoder, [(1, 0)], "uniform"):
        maps = learner.encoder(features, return_attention=True)["attention_probs"]
    mask = features["input_mask"][:, None]
    np.testing.assert_allclose(maps[1][:, 0] - mask / mask.sum(-1, keepdims=True), 0, atol=1e-6)


def put_heads_out(learner, folder):
    """A head that is off gives 0, as a head with the factor 0."""
    features = rows(learner)
    expected = learner.encoder(features, head_mask=np.float32([[1, 1], [0, 1]]))
    with analysis.disabled(learner.encoder, [(1, 0)], "zero"):
        outputs = learner.encoder(features)
    np.testing.assert_allclose(outputs["sequence_output"], expected["sequence_output"], atol=1e-5)


def cut_heads(learner, folder):
    smaller, features = cut(learner, heads=[(1, 0)]), rows(learner)
    with analysis.disabled(learner.encoder, [(1, 0)], "zero"):
        expected = logits(learner, features)
    np.testing.assert_allclose(logits(smaller, features), expected, atol=1e-5)


def write_as_integers(learner, folder):
    config = QuantisationFlags(quantisation="q8bert").quantised(learner.encoder.config)
    first, other = (Learner(networks.build(config), [Classification(config, 2)]) for _ in range(2))
    features = rows(learner)
    first(features, training=True)      # finds the ranges
    write_integers(str(folder), first)
    assert not checkpoints.load(folder, other).missing
    np.testing.assert_array_equal(logits(other, features), logits(first, features))


def compare_layers(learner, folder):
    teacher = InStep.__new__(InStep)
    teacher.folder, teacher._row = str(folder), find_distillation("tinybert_layers")
    teacher.config = config_from_dict(SIZES)
    teacher.check(learner.encoder.config, None, 16)


def keep_a_layer(learner, folder):
    student = take_layers(learner.encoder, [0])
    features = rows(learner)
    np.testing.assert_array_equal(student(features)["layer_outputs"][0],
                                  learner.encoder(features)["layer_outputs"][0])


def run_lite(learner, folder):
    """Of one layer, unless layers are of several kinds."""
    kind = next(kind for kind in FORMS if made(kind) is learner)
    if not kind.startswith("modernbert"):
        learner = make(kind, num_hidden_layers=1)
    features = rows(learner)
    save_lite(IdsModel(learner, 7), folder / "m.tflite")
    run = tf.lite.Interpreter(str(folder / "m.tflite")).get_signature_runner("serving_default")
    np.testing.assert_allclose(run(**features)["logits"], logits(learner, features), atol=1e-5)


USES = {"maps": read_maps, "even": attend_evenly, "zero": put_heads_out, "pruning": cut_heads,
        "integers": write_as_integers, "bits": lambda learner, folder: LayerHessian(learner, 0),
        "layers": compare_layers, "student": keep_a_layer, "lite": run_lite}


# Whose operations of LiteRT are among another's, or BERT's in tests/export/test_runtimes.py.
OTHERS_LITE = ("modernbert", "deberta v3", "neobert", "distilbert", "xlm-roberta")


@pytest.mark.parametrize("kind, use", [
    (kind, use) for kind in FORMS for use in USES if use != "lite" or kind not in OTHERS_LITE])
def test_use(kind, use, tmp_path):
    message = REFUSED.get(kind, {}).get(use)
    with pytest.raises(InputError, match=message) if message else contextlib.nullcontext():
        USES[use](made(kind), tmp_path)


@pytest.mark.parametrize("kind", ["deberta v2", "deberta v3"])
def test_a_unit_with_the_factor_0_is_one_without_weights_to_the_output(kind):
    learner = make(kind)
    encoder, features = learner.encoder, rows(learner)
    kernel = encoder.layers_[0].output_.projection.kernel
    factors = np.ones((2, kernel.shape[0]), "float32")
    factors[0, 3] = 0
    outputs = encoder(features, unit_mask=factors)
    kernel.assign(np.asarray(kernel) * factors[0][:, None])
    np.testing.assert_allclose(outputs["sequence_output"], encoder(features)["sequence_output"],
                               atol=1e-6)


@pytest.mark.peer
@pytest.mark.parametrize("kind", [kind for kind in FORMS if kind != "neobert"])
def test_maps_are_those_of_transformers(kind, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    import torch
    learner = make(kind, num_hidden_layers=4)
    learner.encoder.save(tmp_path / "model.keras")
    checkpoints.convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    peer = transformers.AutoModel.from_pretrained(tmp_path / "hf", attn_implementation="eager")
    features = rows(learner, 11)
    mask = features["input_mask"]
    expected = peer.eval()(torch.tensor(features["input_ids"]), torch.tensor(mask),
                           output_attentions=True).attentions
    maps = learner.encoder(features, return_attention=True)["attention_probs"]
    for ours, theirs in zip(maps, expected, strict=True):
        np.testing.assert_allclose(ours * mask[:, None, :, None],
                                   theirs.detach().numpy() * mask[:, None, :, None], atol=1e-5)


@pytest.mark.peer
@pytest.mark.parametrize("kind", FORMS)
def test_onnx_at_three_lengths(kind, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    learner = make(kind)
    save_onnx(IdsModel(learner), tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    names = {given.name for given in session.get_inputs()}
    for length in (5, 17, 40):
        features = rows(learner, length)
        given = {LIBRARY_INPUTS.get(name, name): value.astype("int64")
                 for name, value in features.items()}
        output, = session.run(["logits"], {name: given[name] for name in names})
        np.testing.assert_allclose(output, answers(learner, features)["logits"], atol=1e-5)


def test_a_student_keeps_the_kinds_of_layers():
    encoder = make("modernbert", num_hidden_layers=6).encoder
    student = take_layers(encoder, [0, 3, 5])
    assert [kind[:4] for kind in student.config.kinds] == ["full", "full", "slid"]
    for layers in ([1, 2], [0, 2, 0]):
        with pytest.raises(InputError, match="begin with layer 0"):
            take_layers(encoder, layers)


def test_a_network_begins_with_layers_like_its_own():
    learner = make("distilbert", num_hidden_layers=1)
    transfer.begin_with(learner, teacher := make("mpnet"), [1])
    own, taught = learner.encoder.layers_[0], teacher.encoder.layers_[1]
    np.testing.assert_array_equal(own.attention.query.kernel, taught.attention.query.kernel)
    with pytest.raises(InputError, match="the layers of a modernbert have no encoder/layer_1/"):
        transfer.begin_with(learner, make("modernbert"), [1])


@pytest.mark.parametrize("kind, change, message", [
    ("mpnet", {}, "41 tokens long, but max_position_embeddings is 40"),
    ("deberta v2", {"position_biased_input": True},
     "41 tokens long, but max_position_embeddings is 40")])
def test_a_position_beyond_the_table(kind, change, message):
    learner = make(kind, **change)
    with pytest.raises(ValueError, match=message):
        learner.encoder(rows(learner, 41))
