"""`from_pretrained`, and what people do with the models it gives."""

import pathlib
import warnings

import keras
import numpy as np
import pytest

import bert_tf

GOLDEN = pathlib.Path(__file__).parent / "golden"


def golden(folder):
    expected = dict(np.load(GOLDEN / folder / "expected.npz"))
    return {name: expected[name] for name in ("input_ids", "input_mask", "segment_ids")}, expected


@pytest.mark.parametrize("folder", ["google_gelu", "hf_gelu"])
def test_an_encoder_of_either_format(folder):
    inputs, expected = golden(folder)
    encoder = bert_tf.BertEncoder.from_pretrained(GOLDEN / folder)
    assert np.allclose(encoder(inputs)["pooled_output"], expected["pooled_output"], atol=1e-5)


@pytest.mark.parametrize("objective, options, shape", [
    (bert_tf.Classification, {"num_labels": 3}, (3,)),
    (bert_tf.MultiLabel, {"num_labels": 4}, (4,)),
    (bert_tf.Regression, {}, (1,)),
    (bert_tf.AnswerSpan, {}, (2, None)),
    (bert_tf.Tagging, {"num_labels": 5}, (None, 5)),
    (bert_tf.FeatureTagging, {"num_labels": 5, "layers": "last", "lstm_size": 4}, (None, 5)),
    (bert_tf.MultipleChoice, {}, (None,)),
])
def test_each_task_says_that_its_head_is_new(objective, options, shape):
    inputs, expected = golden("hf_gelu")
    with pytest.warns(UserWarning, match="has no .*/dense/kernel, .*/dense/bias; these keep"):
        learner = objective.from_pretrained(GOLDEN / "hf_gelu", **options)
    rows, length = inputs["input_ids"].shape
    if objective is bert_tf.MultipleChoice:
        inputs = {name: value[:, None] for name, value in inputs.items()}
        length = 1
    logits, = learner(inputs).values()
    assert logits.shape == (rows, *(size or length for size in shape))
    pooled = learner.encoder(golden("hf_gelu")[0])["pooled_output"]
    assert np.allclose(pooled, expected["pooled_output"], atol=1e-5)


def test_heads_that_are_there_are_loaded():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bert_tf.MaskedLM.from_pretrained(GOLDEN / "hf_gelu")
        bert_tf.SentencePrediction.from_pretrained(GOLDEN / "hf_gelu")


def test_dtype():
    with pytest.warns(UserWarning):
        learner = bert_tf.Classification.from_pretrained(
            GOLDEN / "hf_gelu", num_labels=2, dtype="mixed_bfloat16")
    assert {layer.compute_dtype for layer in (learner.encoder, *learner.objectives)} == {"bfloat16"}


@pytest.mark.parametrize("name", ["GPT", "FixedPatternEncoder", "XLNet", "T5"])
def test_a_network_of_another_class_is_named(name):
    with pytest.raises(bert_tf.InputError, match="call bert_tf.Bert.from_pretrained"):
        getattr(bert_tf, name).from_pretrained(GOLDEN / "hf_gelu")

    class Own(bert_tf.BertEncoder):
        """A user's subclass."""

    assert isinstance(Own.from_pretrained(GOLDEN / "hf_gelu"), Own)


def test_no_checkpoint_is_an_input_error(tmp_path):
    with pytest.raises(bert_tf.InputError, match="holds no checkpoint"):
        bert_tf.BertEncoder.from_pretrained(tmp_path)


def test_a_functional_model_holds_the_weights_and_is_saved(tmp_path):
    inputs, expected = golden("hf_gelu")
    ids = {name: keras.Input((None,), dtype="int32", name=name) for name in inputs}
    encoder = bert_tf.BertEncoder.from_pretrained(GOLDEN / "hf_gelu")
    model = keras.Model(ids, keras.layers.Dense(3)(encoder(ids)["pooled_output"]))
    model.layers[-1].kernel.assign(np.eye(expected["pooled_output"].shape[1], 3))
    model.save(tmp_path / "functional.keras")
    loaded = keras.models.load_model(tmp_path / "functional.keras")
    assert np.allclose(loaded(inputs), expected["pooled_output"][:, :3], atol=1e-5)


def test_the_summary_names_every_part(capsys):
    with pytest.warns(UserWarning):
        learner = bert_tf.Classification.from_pretrained(GOLDEN / "hf_gelu", num_labels=3)
    learner.summary(expand_nested=True, line_length=100)
    shown = capsys.readouterr().out
    for name in ("bert (Bert)", "embeddings (Embeddings)", "layer_0 (TransformerLayer)",
                 "classification (Classification)", f"{learner.count_params():,}"):
        assert name in shown
