"""Networks from left to right: beside transformers' BERT with a causal mask, and what no position
may see.
"""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from bert_tf import NextTokenLM, checkpoints, data
from bert_tf.bert.objective import SentencePrediction
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.models.gpt import objective as next_token
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.classification import Classification, MultipleChoice
from bert_tf.objectives.lstms import LstmReader
from bert_tf.objectives.tagging import Tagging
from bert_tf.opening import open_model
from bert_tf.training.learners.learner import Learner
from tests.goldens import part
from tests.rounding import ROUNDED, off
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
CONFIG = tiny.config(num_hidden_layers=1, directionality="left_to_right")
INPUTS = ("input_ids", "input_mask", "segment_ids")


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    with np.load(test_data / "golden" / "ltr" / "ltr_seed1.npz") as file:
        return dict(file)


@pytest.fixture(name="folder")
def fixture_folder(golden, tmp_path):
    """The golden weights as transformers' BertLMHeadModel is saved."""
    save_file(part(golden, "weight/"), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({
        **json.loads(str(golden["config"])), "model_type": "bert", "is_decoder": True,
        "architectures": ["BertLMHeadModel"]}))
    return tmp_path


@pytest.mark.parametrize("most_logits", [1 << 25, 600])
def test_layers_loss_and_gradients_are_those_of_transformers(golden, folder, monkeypatch,
                                                             most_logits):
    monkeypatch.setattr(next_token, "_MOST_LOGITS", most_logits)    # one piece, and several
    learner = NextTokenLM.from_pretrained(folder)
    assert learner.encoder.config.directionality == "left_to_right"
    batch = {name: golden[name].astype("int32") for name in INPUTS}
    is_token = batch["input_mask"] == 1
    outputs = learner.encoder(batch, return_attention=True)
    found = [outputs["embedding_output"], *outputs["layer_outputs"]]
    for number, layer in enumerate(found):
        wanted = golden[f"layer{number}"]
        assert off(np.array(layer)[is_token], wanted[is_token]) < ROUNDED
    with tf.GradientTape() as tape:
        measures = learner.measure(batch)["masked_lm"]
        loss = measures["loss"][0] / measures["loss"][1]
    assert measures["loss"][1] == golden["predicted_tokens"]
    assert float(loss) == pytest.approx(float(golden["loss"]), rel=ROUNDED)
    hits = golden["logits"].argmax(-1)[:, :-1] == batch["input_ids"][:, 1:]
    assert measures["accuracy"][0] == hits[is_token[:, 1:]].sum()
    named = variables(learner)
    grads = dict(zip(named, tape.gradient(loss, [v.value for v in named.values()],
                                          unconnected_gradients="zero")))
    table = checkpoints.loading.read_source(folder).table.rules(learner.encoder.config)
    for rule in table:
        wanted = golden.get(f"grad/{rule.theirs}")
        if wanted is not None:
            wanted = wanted.T if rule.layout == "transpose" else wanted
            assert off(tf.convert_to_tensor(grads[rule.ours]), wanted) < ROUNDED, rule.ours


def test_weights_come_back_from_every_format_that_can_say_it(golden, folder, tmp_path):
    account = checkpoints.convert(str(folder), str(tmp_path / "keras"), "keras")
    assert "masked_lm/output_bias" in account.mapped
    assert isinstance(keras.models.load_model(
        tmp_path / "keras" / "model.keras", compile=False).objectives[0], NextTokenLM)
    checkpoints.convert(str(tmp_path / "keras"), str(tmp_path / "hf"), "huggingface")
    values = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert values["is_decoder"] is True and values["architectures"] == ["BertLMHeadModel"]
    again = load_file(tmp_path / "hf" / "model.safetensors")
    assert {name for name in again if "pooler" not in name} == {
        name.removeprefix("weight/") for name in golden if name.startswith("weight/")
        and "decoder" not in name}
    assert all(np.array_equal(value, golden[f"weight/{name}"]) for name, value in again.items()
               if "pooler" not in name)
    for form in ("google", "model_garden", "keras_hub"):
        with pytest.raises(InputError, match="directionality is left_to_right"):
            checkpoints.convert(str(folder), str(tmp_path / form), form)


def test_a_head_that_reads_the_last_token_is_no_head_of_transformers(tmp_path):
    Learner(BertEncoder(CONFIG), [Classification(CONFIG, 3)]).save(tmp_path / "model.keras")
    with pytest.raises(InputError, match="reads the last token.*--leave_out=classification"):
        checkpoints.convert(str(tmp_path), str(tmp_path / "hf"), "huggingface")
    account = checkpoints.convert(str(tmp_path), str(tmp_path / "hf"), "huggingface",
                                  checkpoints.Changes(leave_out=("classification",)))
    assert "that of transformers reads the first" in str(account)
    assert checkpoints.read_config(tmp_path / "hf") == CONFIG


@pytest.mark.parametrize("head, unused", [
    (Classification, "classifier.bias"), (SentencePrediction, "cls.seq_relationship.bias")])
def test_a_classifier_of_transformers_that_reads_the_first_token_is_not_used(
        head, unused, tmp_path):
    both_ways = dataclasses.replace(CONFIG, directionality="bidi")
    Learner(BertEncoder(both_ways), [head(both_ways, 2)]).save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path), str(tmp_path / "hf"), "huggingface")
    assert len(checkpoints.read(str(tmp_path / "hf")).heads) == 2
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "is_decoder": True}))
    weights = checkpoints.read(str(tmp_path / "hf"))
    assert weights.heads == ["pooler"] and "reads the first token" in weights.ignored[unused]
    assert "that of transformers reads the first" in " ".join(weights.notes)
    if head is Classification:
        with pytest.raises(InputError, match="classifier.bias is not used: .* the first token"):
            open_model(tmp_path / "hf", finetuned=True)


def test_the_lstm_is_that_of_torch(golden):
    def weight(name, way):
        return golden[f"bilstm/weight/{name}_l0{way}"]

    config = EncoderConfig.from_dict({**json.loads(str(golden["config"])), "hidden_act": "gelu"})
    reader = LstmReader(config, "last", 10, 1, name="bilstm")
    reader.build()
    values = []
    for way in ("", "_reverse"):
        values += [weight("weight_ih", way).T, weight("weight_hh", way).T,
                   weight("bias_ih", way) + weight("bias_hh", way)]
    reader.set_weights(values)
    found = reader({"layer_outputs": [golden["layer3"]]}, golden["input_mask"].astype("int32"))
    is_token = golden["input_mask"] == 1
    assert off(np.array(found)[is_token], golden["bilstm/output"][is_token]) < ROUNDED


# What no position may see

def batch_of(rows, seed=0, length=10):
    rng = np.random.default_rng(seed)
    mask = np.arange(length) < rng.integers(4, length + 1, (rows, 1))
    return {"input_ids": np.int32(rng.integers(5, 50, (rows, length)) * mask),
            "input_mask": np.int32(mask), "segment_ids": np.zeros((rows, length), "int32")}


@pytest.mark.parametrize("head", [lambda: AnswerSpan(CONFIG), lambda: Tagging(CONFIG, 3),
                                  lambda: NextTokenLM(CONFIG)])
def test_no_output_depends_on_what_comes_after_it(head):
    learner = Learner(BertEncoder(CONFIG), [head()])
    (name,) = (objective.name for objective in learner.objectives)
    batch = batch_of(3)
    first = np.array(learner(batch)[name])
    changed = {**batch, "input_ids": batch["input_ids"].copy()}
    changed["input_ids"][:, 3] = 4
    second = np.array(learner(changed)[name])
    if name == "answer_span":
        first, second = first.transpose(0, 2, 1), second.transpose(0, 2, 1)
    reached = 2 if name == "masked_lm" else 3       # whose label is the token that was changed
    assert np.array_equal(first[:, :reached], second[:, :reached])
    assert not np.allclose(first[:, reached:], second[:, reached:], atol=1e-4)


def test_the_pooled_output_is_that_of_the_last_token():
    encoder, batch = BertEncoder(CONFIG), batch_of(4)
    outputs = encoder(batch)
    last = batch["input_mask"].sum(1) - 1
    rows = np.array(outputs["sequence_output"])[np.arange(4), last]
    assert np.allclose(outputs["pooled_output"], encoder.pooler(rows), atol=1e-6)
    padded = {name: np.pad(value, ((0, 0), (0, 3))) for name, value in batch.items()}
    assert np.allclose(encoder(padded)["pooled_output"], outputs["pooled_output"], atol=1e-6)


@pytest.mark.parametrize("make, width", [
    (lambda: Classification(CONFIG, 2, reader_size=4), (4, 2)),
    (lambda: Tagging(CONFIG, 2, reader_size=4), (4, 10, 2)),
    (lambda: AnswerSpan(CONFIG, reader_size=4), (4, 2, 10)),
    (lambda: MultipleChoice(CONFIG, reader_size=4), (2, 2))])
def test_an_lstm_sees_both_sides_but_no_padding(make, width):
    head = make()
    learner, batch = Learner(BertEncoder(CONFIG), [head]), batch_of(4)
    if head.name == "multiple_choice":
        batch = {name: value.reshape(2, 2, -1) for name, value in batch.items()}

    def logits(features):
        return np.array(learner(features)[head.name])

    found = logits(batch)
    assert found.shape == width
    noise = {**batch, "input_ids": np.where(batch["input_mask"], batch["input_ids"], 7)}
    is_token = batch["input_mask"] == 1
    kept = {"tagging": lambda x: x[is_token],
            "answer_span": lambda x: x.transpose(0, 2, 1)[is_token]}.get(head.name, lambda x: x)
    assert np.allclose(kept(logits(noise)), kept(found), atol=1e-6)
    changed = {**batch, "input_ids": batch["input_ids"].copy()}
    changed["input_ids"][..., 3] = 4
    assert not np.allclose(logits(changed).reshape(-1)[0], found.reshape(-1)[0], atol=1e-7)
    assert type(head).from_config(head.get_config()).reader_size == 4


def test_hidden_tokens_are_put_back(tmp_path):
    features = tiny.write_records(tmp_path / "r.tfrecord", 5)
    text = features["input_ids"].copy()
    for row in range(5):
        for place, label, weight in zip(*(features[f"masked_lm_{name}"][row]
                                          for name in ("positions", "ids", "weights"))):
            if weight:
                text[row, place] = label
    records = data.show_tokens(data.RecordSet.open([str(tmp_path / "r.tfrecord")], "input_file"))
    batch = next(records.evaluation_batches(5, 0, 1).as_numpy_iterator())
    assert not any(name.startswith("masked_lm") for name in batch)
    unique = [len(set(row[used > 0])) == used.sum() for row, used in zip(
        features["masked_lm_positions"], features["masked_lm_weights"])]
    assert any(unique) and np.array_equal(batch["input_ids"][unique], text[unique])
    # Every token but the first is predicted.
    _, weights = NextTokenLM(CONFIG).targets(batch)
    assert np.array_equal(np.sum(weights, 1), batch["input_mask"].sum(1) - 1)
