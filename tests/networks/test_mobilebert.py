"""MobileBERT and its teacher compute what google-research's mobilebert/ computes with the same
weights, which come in from its checkpoints and go out again."""

import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from bert_tf import checkpoints, recipes
from bert_tf.config import MobileBertConfig, config_from_dict, published
from bert_tf.errors import InputError
from bert_tf.networks import MobileBert
from bert_tf.objectives import MaskedLM, SentencePrediction
from bert_tf.training.learners.learner import Learner
from tests.goldens import at_hand, part
from tests.original_checkpoint import arrays_of
from tests.rounding import ROUNDED, assert_same, off

pytestmark = pytest.mark.usefixtures("eagerly")
TINY = {"vocab_size": 40, "hidden_size": 16, "embedding_size": 8, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 12,
        "type_vocab_size": 2, "intra_bottleneck_size": 8, "use_bottleneck": True,
        "trigram_input": True, "key_query_shared_bottleneck": True, "num_feedforward_networks": 3}


def write_checkpoint(folder, config, weights):
    """A checkpoint as the original leaves it while it trains."""
    folder.mkdir()
    (folder / "bert_config.json").write_text(config)
    tensors = {**weights, "global_step": np.int64(4)}
    tf.raw_ops.SaveV2(prefix=str(folder / "mobilebert.ckpt-4"), tensor_names=list(tensors),
                      shape_and_slices=[""] * len(tensors), tensors=list(tensors.values()))


def learner_of(config):
    return Learner(MobileBert(config), [MaskedLM(config), SentencePrediction(config)])


def close(found, wanted):
    assert off(np.array(found), wanted) < ROUNDED


@pytest.mark.parametrize("name, form", at_hand("golden/mobilebert/forward_{}_seed1.npz", (
    ("opt", "huggingface"), ("tiny_opt", "huggingface"), ("plain", "huggingface"),
    ("manual", "keras"), ("teacher", "keras"))))
def test_outputs_and_weights_are_the_originals(name, form, test_data, tmp_path):
    golden = np.load(test_data / "golden" / "mobilebert" / f"forward_{name}_seed1.npz")
    weights = part(golden, "w/")
    write_checkpoint(tmp_path / "original", str(golden["config"]), weights)
    checkpoints.convert(str(tmp_path / "original"), str(tmp_path / form), form)
    learner = learner_of(checkpoints.read_config(tmp_path / form))
    account = checkpoints.load(tmp_path / form, learner)
    assert not account.ignored and not account.missing
    batch, out = part(golden, "in/"), part(golden, "out/")
    found = learner.encoder(batch, return_attention=True)
    close(found["embedding_output"], out["layer_0"])
    for i in range(learner.encoder.config.num_hidden_layers):
        close(found["layer_outputs"][i], out[f"layer_{i + 1}"])
        close(found["attention_scores"][i], out[f"scores_{i}"])
    close(found["pooled_output"], out["pooled"])
    logits = learner(batch)
    close(tf.reshape(logits["masked_lm"], out["mlm_logits"].shape), out["mlm_logits"])
    measures = learner.measure_logits(logits, batch)
    for head, loss, epsilon in (("masked_lm", "mlm_loss", 1e-5), ("next_sentence", "nsp_loss", 0)):
        total, count = measures[head]["loss"]
        close(total / (count + epsilon), out[loss])
    checkpoints.convert(str(tmp_path / form), str(tmp_path / "again"), "google")
    assert_same(arrays_of(tmp_path / "again" / "bert_model.ckpt"), weights)
    values = json.loads((tmp_path / "again" / "bert_config.json").read_text())
    assert values.items() >= json.loads(str(golden["config"])).items()


def test_sizes_are_those_of_the_network():
    recipe = recipes.find("mobilebert")
    mini = published("mini", recipe.sizes, recipe.presets, vocab_size=50)
    assert (mini.hidden_size, mini.inner_size, mini.num_feedforward_networks) == (256, 64, 4)
    config = MobileBertConfig(**{**TINY, "embedding_size": None, "trigram_input": False})
    assert sum(np.prod(v.shape) for v in MobileBert(config).weights if v.trainable) == (
        config.num_weights)
    assert config_from_dict(config.to_dict()) == config


def test_what_can_not_be_built_or_written_is_refused(tmp_path):
    for values, message in (({"num_attention_heads": 3}, "the width of a layer"),
                            ({"embedding_size": 32}, "embedding_size"),
                            ({"normalization_type": "batch"}, "normalization_type")):
        with pytest.raises(InputError, match=message):
            MobileBertConfig(**{**TINY, **values})
    for name, values, form, message in (
            ("manual", {"normalization_type": "manual_layer_norm"}, "huggingface", "does not have"),
            ("teacher", {"key_query_shared_bottleneck": False}, "huggingface", "transformers"),
            ("erf", {"hidden_act": "gelu_erf"}, "google", "exact GELU"),
            ("plain", {}, "model_garden", "mobilebert")):
        config = MobileBertConfig(**{**TINY, **values})
        MobileBert(config).save(tmp_path / f"{name}.keras")
        with pytest.raises(InputError, match=message):
            checkpoints.convert(str(tmp_path / f"{name}.keras"), str(tmp_path / name), form)


def test_an_output_matrix_of_its_own_is_two_tensors_of_transformers(tmp_path):
    """MobileBertLMPredictionHead: `decoder` [V, E] and `dense` [H - E, V], whatever is tied."""
    config = MobileBertConfig(**TINY, hidden_act="relu")
    learner = Learner(MobileBert(config), [MaskedLM(config, tied=False)])
    learner.save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / "hf"), "huggingface")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    parts = [tensors[f"cls.predictions.{name}.weight"] for name in ("decoder", "dense")]
    matrix = np.array(learner.objectives[0].output_weights)
    assert [part.shape for part in parts] == [(40, 8), (8, 40)]
    assert np.array_equal(np.concatenate([parts[0], parts[1].T], 1), matrix)
    assert not json.loads((tmp_path / "hf" / "config.json").read_text())["tie_word_embeddings"]
    again = Learner(MobileBert(config), [MaskedLM(config, tied=False)])
    checkpoints.load(tmp_path / "hf", again)
    assert np.array_equal(again.objectives[0].output_weights, matrix)


@pytest.mark.parametrize("change", [
    {"num_feedforward_networks": 2}, {"normalization_type": "no_norm"},
    {"normalization_type": "manual_layer_norm"}])
def test_networks_without_a_bottleneck_come_back_from_googles_files(change, tmp_path):
    config = MobileBertConfig(**{**TINY, "embedding_size": None, "trigram_input": False,
                                 "use_bottleneck": False, "num_feedforward_networks": 1, **change})
    network = MobileBert(config)
    network.save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / "google"), "google")
    again = MobileBert(checkpoints.read_config(tmp_path / "google"))
    assert again.config.filled() == config.filled()
    assert not checkpoints.load(tmp_path / "google", again).missing
    np.testing.assert_equal(again.get_weights(), network.get_weights())


@pytest.mark.parametrize("kind, epsilon, is_told", [
    ("layer_norm", 1e-12, True), ("layer_norm", 1e-5, False), ("no_norm", 1e-12, False)])
def test_norms_with_another_epsilon_in_transformers_are_named(kind, epsilon, is_told, tmp_path):
    """MobileBertEmbeddings and OutputBottleneck take PyTorch's default."""
    config = MobileBertConfig(**TINY, normalization_type=kind, layer_norm_eps=epsilon)
    MobileBert(config).save(tmp_path / "model.keras")
    for source, form in (("model.keras", "huggingface"), ("huggingface", "keras")):
        account = checkpoints.convert(str(tmp_path / source), str(tmp_path / form), form)
        assert ("epsilon of 1e-5 in transformers" in str(account)) == is_told


@pytest.mark.parametrize("as_in_transformers", [True, False])
def test_padding_reaches_no_token_in_transformers(as_in_transformers):
    """Even where scores are large, since nothing normalises."""
    network = MobileBert(MobileBertConfig(**{
        **TINY, "trigram_input": False, "normalization_type": "no_norm", "initializer_range": 0.6,
        "as_in_transformers": as_in_transformers}))
    mask = np.array([[0] * 2 + [1] * 4 + [0] * 3])
    ids = np.random.default_rng(3).integers(1, 40, mask.shape)
    states = [np.array(network({"input_ids": each, "input_mask": mask})["sequence_output"])[0, 2:6]
              for each in (ids, np.where(mask, ids, 0))]
    assert np.array_equal(*states) == as_in_transformers


def test_the_neighbours_of_a_token_are_part_of_it():
    ids = np.random.default_rng(2).integers(1, 40, (2, 9)).astype("int32")
    embeddings = MobileBert(MobileBertConfig(**TINY)).embeddings
    changed = np.where(np.arange(9) == 4, ids % 39 + 1, ids)
    moved = np.abs(embeddings(ids) - embeddings(changed)).max((0, 2))
    assert np.flatnonzero(moved).tolist() == [3, 4, 5]


@pytest.mark.peer
@pytest.mark.parametrize("values", ({}, {
    "use_bottleneck_attention": True, "trigram_input": False, "embedding_size": 16}, {
    "normalization_type": "layer_norm", "layer_norm_eps": 1e-12, "hidden_act": "gelu",
    "classifier_activation": True}))
def test_transformers_computes_the_same(values, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    torch.manual_seed(4)
    model = transformers.MobileBertForPreTraining(transformers.MobileBertConfig(**{
        **TINY, "hidden_act": "relu", "normalization_type": "no_norm", "initializer_range": 0.2,
        "classifier_activation": False, **values})).eval()
    model.save_pretrained(tmp_path / "theirs")
    learner = learner_of(checkpoints.read_config(tmp_path / "theirs"))
    account = checkpoints.load(tmp_path / "theirs", learner)
    assert not account.missing
    rng = np.random.default_rng(5)
    ids, segments = rng.integers(1, 40, (2, 9)), np.array([[0] * 4 + [1] * 5] * 2)
    mask = np.array([[1] * 6 + [0] * 3, [0] * 2 + [1] * 7])
    with torch.no_grad():
        wanted = model(*map(torch.tensor, (ids, mask, segments)))
    found = learner({"input_ids": ids, "input_mask": mask, "segment_ids": segments,
                     "masked_lm_positions": np.array([np.arange(9)] * 2)})
    close(found["masked_lm"], wanted.prediction_logits.numpy())
    close(found["next_sentence"], wanted.seq_relationship_logits.numpy())
    checkpoints.convert(str(tmp_path / "theirs"), str(tmp_path / "ours"), "huggingface")
    again, info = transformers.MobileBertForPreTraining.from_pretrained(
        tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert checkpoints.read_config(tmp_path / "ours").as_in_transformers
    assert all(torch.equal(value, again.state_dict()[name])
               for name, value in model.state_dict().items())
