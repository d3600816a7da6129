"""Loaded checkpoints compute what three independent implementations compute."""

import os
import pathlib

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.checkpoints import load, read_config, tensor_bundle
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training.learners.learner import Learner
from tests.rounding import ROUNDED, off

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
FOLDERS = sorted(path.parent.name for path in GOLDEN.glob("*/expected.npz"))


def make_learner(config):
    return Learner(BertEncoder(config), [MaskedLM(config), SentencePrediction(config)])


def compare(outputs, expected):
    for name in outputs.keys() & expected.keys():
        ours = np.array([keras.ops.convert_to_numpy(x) for x in outputs[name]])
        assert ours.shape == expected[name].shape, name
        assert off(ours, expected[name]) < ROUNDED, name
    return outputs.keys() & expected.keys()


@pytest.mark.parametrize("folder", FOLDERS)
def test_transformers_and_the_model_garden(folder):
    expected = dict(np.load(GOLDEN / folder / "expected.npz"))
    batch = {name: expected.pop(name) for name in
             ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")}
    learner = make_learner(read_config(GOLDEN / folder))
    account = load(GOLDEN / folder, learner)
    assert not account.missing and len(account.mapped) == len(learner.trainable_variables)
    outputs = {**learner.encoder(batch, return_attention=True), **learner(batch)}
    assert compare(outputs, expected) == expected.keys()


def test_the_originals_graph(test_data):
    folder = test_data / "weights" / "bert-tiny-question-classifier"
    expected = dict(np.load(test_data / "golden" / "bert_tiny_forward_seed1.npz"))
    batch = {name: expected.pop(name) for name in ("input_ids", "input_mask", "segment_ids")}
    encoder = BertEncoder(read_config(folder))
    account = load(folder, encoder)
    assert account.ignored == dict.fromkeys(
        ("output_weights", "output_bias"),
        "of the head classification, as the encoder alone is loaded")
    assert not account.missing
    outputs = encoder(batch)
    outputs |= {f"layer_{i}": value for i, value in enumerate(outputs["layer_outputs"])}
    assert compare(outputs, expected) == expected.keys()


def test_a_released_classifier_there_and_back(test_data, tmp_path):
    folder = test_data / "weights" / "bert-tiny-question-classifier"
    for source, form in ((folder, "huggingface"), (tmp_path / "huggingface", "model_garden"),
                         (tmp_path / "huggingface", "keras"), (tmp_path / "keras", "google")):
        account = checkpoints.convert(source, tmp_path / form, form)
        assert len(account.mapped) == 41
    before, after = (tensor_bundle.tensors(str(path / "bert_model.ckpt"))
                     for path in (folder, tmp_path / "google"))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert tensor.dtype == after[name].dtype
        assert tensor.read().tobytes() == after[name].read().tobytes(), name
    assert (tmp_path / "google" / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()


def test_a_released_sentence_encoder(test_data):
    """Spearman's correlation on STS-B dev, as published for mean-pooled all-MiniLM-L6-v2."""
    path = os.environ.get("BERT_TF_MINILM")
    if not path:
        pytest.skip("BERT_TF_MINILM names no folder of all-MiniLM-L6-v2")
    scipy_stats = pytest.importorskip("scipy.stats", reason="scipy isn't installed")
    encoder = bert_tf.BertEncoder.from_pretrained(path)
    vocabulary = bert_tf.Vocabulary.from_file(os.path.join(path, "vocab.txt"))
    tokenizer = bert_tf.WordpieceTokenizer(vocabulary)
    with open(test_data / "glue" / "STS-B" / "dev.tsv", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]

    def embed(sentences):
        """The unit vectors [N, H] of sentences, in batches of similar lengths."""
        ids = [[vocabulary.cls_id, *tokenizer.encode(sentence), vocabulary.sep_id]
               for sentence in sentences]
        order, found = np.argsort(list(map(len, ids))), np.zeros((len(ids), 384))
        for some in np.array_split(order, len(ids) // 50):
            batch = keras.utils.pad_sequences([ids[i] for i in some], padding="post")
            mask = (batch > 0).astype("int32")
            out = encoder({"input_ids": batch, "input_mask": mask})["sequence_output"]
            found[some] = (keras.ops.convert_to_numpy(out) * mask[..., None]).sum(axis=1)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    scores = (embed([row[7] for row in rows]) * embed([row[8] for row in rows])).sum(axis=1)
    assert round(scipy_stats.spearmanr(scores, [float(row[9]) for row in rows])[0], 3) == 0.867
