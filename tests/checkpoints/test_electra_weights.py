"""ELECTRA's checkpoints in Google's, Hugging Face's and our own format: both networks."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import checkpoints, recipes
from bert_tf.checkpoints import Changes, convert
from bert_tf.checkpoints.weights import variables
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.models.electra.learner import Electra
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.training.optimizers.adam import AdamWeightDecay
from bert_tf.training.trainer import Trainer
from tests.goldens import at_hand
from tests.training import tiny

SIZES = {"vocab_size": 50, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 96, "embedding_size": 8, "max_position_embeddings": 16,
         "type_vocab_size": 2, "hidden_act": "gelu_erf", "model_type": "electra",
         "pooler_type": "first_token"}
GENERATOR = Changes(generator=True)


def values(path, generator=False):
    source = checkpoints.loading.read_source(path, generator=generator)
    weights = checkpoints.weights.translate(source, source.config)
    return {name: tensor.read() for name, tensor in weights.tensors.items()}, weights.config


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """The folder of a run with random weights everywhere, and its learner."""
    folder = tmp_path_factory.mktemp("run")
    config = EncoderConfig.from_dict(SIZES)
    learner = Electra.of_terms(config, recipes.find("electra").terms,
                               settings=GeneratorSettings(generator_hidden_size=0.5))
    rng = np.random.default_rng(1)
    for variable in learner.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    trainer = Trainer(learner, AdamWeightDecay(), tf.distribute.get_strategy())
    tiny.save_checkpoint(str(folder), trainer, {"order": {}, "taken": 0}, 1)
    config.to_json_file(folder / "bert_config.json")
    return folder, learner


def same(found, learner):
    wanted = {name: v.numpy() for name, v in variables(learner).items() if "seed" not in name}
    assert found.keys() == wanted.keys()
    assert all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)


def test_both_networks_are_in_a_training_checkpoint(run):
    folder, learner = run
    for generator, part in ((False, "model"), (True, "generator")):
        found, config = values(folder, generator)
        same(found, learner.parts()[part])
        assert config == learner.parts()[part].encoder.config
    encoder = bert_tf.BertEncoder.from_pretrained(folder)
    assert encoder.config.model_type == "electra" and not encoder.pooler


@pytest.mark.parametrize("form", ["google", "huggingface", "keras"])
@pytest.mark.parametrize("part", ["model", "generator"])
def test_there_and_back(run, tmp_path, form, part):
    folder, learner = run
    changes = GENERATOR if part == "generator" else Changes()
    dry = convert(folder, "", form, changes, dry_run=True)
    account = str(convert(folder, tmp_path / "there", form, changes))
    assert account == str(dry)
    assert ("--generator converts" in account) == (part == "model" and form != "google")
    same(values(tmp_path / "there")[0], learner.parts()[part])
    if form == "google" and part == "model":
        same(values(tmp_path / "there", generator=True)[0], learner.parts()["generator"])
    convert(tmp_path / "there", tmp_path / "keras", "keras")
    found, config = values(tmp_path / "keras")
    same(found, learner.parts()[part])
    assert config.filled() == learner.parts()[part].encoder.config.filled()


def test_names_of_hugging_face(run, tmp_path):
    from safetensors.numpy import load_file
    for changes, name, ends in (
            (Changes(), "ElectraForPreTraining", ("discriminator_predictions.dense.weight",
                                                  "discriminator_predictions.dense_prediction.bias")),
            (GENERATOR, "ElectraForMaskedLM", ("generator_predictions.LayerNorm.weight",
                                               "generator_lm_head.bias"))):
        convert(run[0], tmp_path / name, "huggingface", changes)
        described = json.loads((tmp_path / name / "config.json").read_text())
        assert described["architectures"] == [name] and described["hidden_act"] == "gelu"
        assert described["embedding_size"] == 8 and "pooler" not in str(described)
        assert {*ends, "electra.embeddings_project.weight"} <= load_file(
            tmp_path / name / "model.safetensors").keys()


def write_google(folder, tensors):
    folder.mkdir()
    tf.raw_ops.SaveV2(prefix=str(folder / "electra_small"), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors), tensors=list(tensors.values()))


@pytest.mark.parametrize("name", at_hand("golden/electra/pretraining_{}.npz", [
    "small_generator", "untied_embeddings", "all_tied", "embedding_is_generator_width",
    "no_projection_half_depth"]))
def test_the_original_names(test_data, tmp_path, name):
    golden = np.load(test_data / f"golden/electra/pretraining_{name}.npz")
    tensors = {key.removeprefix("weights/"): golden[key] for key in golden if "weights/" in key}
    slots = {f"{key}/adam_m": np.zeros_like(value) for key, value in tensors.items()}
    write_google(tmp_path / "theirs", {**tensors, **slots, "global_step": np.int64(7)})
    # Four heads are narrower than all that this code builds from shapes alone.
    heads = json.loads(str(golden["options"]))["model_hparam_overrides"]["num_attention_heads"]
    config = dataclasses.replace(values(tmp_path / "theirs")[1], num_attention_heads=heads)
    assert config.filled().embedding_size == json.loads(str(golden["options"]))["embedding_size"]
    config.to_json_file(tmp_path / "theirs/bert_config.json")

    learner = bert_tf.ReplacedToken.from_pretrained(tmp_path / "theirs")
    batch = {"input_ids": golden["outputs/corrupted_input_ids"], **{
        key: golden[f"batch/{key}"] for key in ("input_mask", "segment_ids")}}
    real = batch["input_mask"] > 0
    np.testing.assert_allclose(
        tf.sigmoid(learner(batch)["replaced_token"])[real],
        golden["outputs/discriminator_probabilities"][real], rtol=1e-6, atol=1e-6)

    convert(tmp_path / "theirs", tmp_path / "again", "google")
    again = checkpoints.tensor_bundle.tensors(str(tmp_path / "again/electra.ckpt"))
    assert again.keys() == tensors.keys()
    assert all(again[key].read().tobytes() == tensors[key].tobytes() for key in tensors)
    if name == "all_tied":
        with pytest.raises(InputError, match="holds no generator"):
            convert(tmp_path / "theirs", "", "keras", GENERATOR, dry_run=True)
        return
    convert(tmp_path / "theirs", tmp_path / "generator", "huggingface", GENERATOR)
    learner = bert_tf.MaskedLM.from_pretrained(tmp_path / "generator")
    batch |= {"input_ids": golden["outputs/masked_input_ids"],
              "masked_lm_positions": golden["outputs/masked_lm_positions"]}
    np.testing.assert_allclose(learner(batch)["masked_lm"], golden["outputs/generator_logits"],
                               rtol=1e-5, atol=1e-5)


def test_a_configuration_of_googles_means_the_exact_gelu(run, tmp_path):
    convert(run[0], tmp_path / "theirs", "google")
    plain = {key: value for key, value in SIZES.items() if key not in ("model_type", "pooler_type")}
    for changed in ({}, {"hidden_act": "gelu"}):
        (tmp_path / "theirs/bert_config.json").write_text(json.dumps({**plain, **changed}))
        assert checkpoints.read_config(tmp_path / "theirs") == EncoderConfig.from_dict(SIZES)


@pytest.mark.parametrize("form, changes, message", [
    ("google", {"hidden_act": "gelu"}, "hidden_act is the tanh form"),
    ("google", {"layer_norm_eps": 1e-5}, "layer_norm_eps"),
    ("huggingface", "classification", "hidden layer in the head classification")])
def test_refusals(run, tmp_path, form, changes, message):
    config, head = EncoderConfig.from_dict(SIZES), {}
    if isinstance(changes, dict):
        config = dataclasses.replace(config, **changes)
    else:
        head = {"classification/dense/kernel": np.zeros((128, 2), "f"),
                "classification/dense/bias": np.zeros(2, "f")}
    found, _ = values(run[0])
    tensors = {f"learner/{name}": value for name, value in {**found, **head}.items()}
    checkpoints.checksummed.write(str(tmp_path / "checkpoint-000000001.safetensors"), tensors, {})
    config.to_json_file(tmp_path / "bert_config.json")
    with pytest.raises(InputError, match=message):
        convert(tmp_path, "", form, dry_run=True)


def test_a_learner_of_both_networks_takes_both(run, tmp_path):
    folder, wanted = run
    convert(folder, tmp_path / "discriminator", "huggingface")
    for path, missing in ((folder, False), (tmp_path / "discriminator", True)):
        learner = Electra.of_terms(wanted.encoder.config, recipes.find("electra").terms,
                                   settings=GeneratorSettings(generator_hidden_size=0.5))
        account = checkpoints.load(path, learner)
        assert bool(account.missing) == missing
        pairs = [(v.numpy(), w.numpy()) for v, w in zip(
            learner.trainable_variables, wanted.trainable_variables)]
        assert all((v == w).all() for v, w in pairs) != missing
