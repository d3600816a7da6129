"""EncoderConfig: Google's file, and the refusals."""

import dataclasses
import json

import numpy as np
import pytest

from bert_tf.config import CONFIGS, PRESETS, ElmoConfig, EncoderConfig, Sizes, encoder, read_config
from bert_tf.config.sizes import one_of, whole
from bert_tf.errors import InputError
from bert_tf.tasks.task import settle

# The multilingual and Chinese releases carry keys that their own code never reads.
CHINESE_RELEASE = {
    "attention_probs_dropout_prob": 0.1, "directionality": "bidi", "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
    "intermediate_size": 3072, "max_position_embeddings": 512, "num_attention_heads": 12,
    "num_hidden_layers": 12, "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3, "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform", "type_vocab_size": 2, "vocab_size": 21128}
GOOGLE_KEYS = {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
               "intermediate_size", "hidden_act", "hidden_dropout_prob",
               "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size",
               "initializer_range"}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_round_trip_through_a_file_of_googles_keys(name, tmp_path):
    config = EncoderConfig.preset(name, hidden_dropout_prob=0.25)
    path = tmp_path / "bert_config.json"
    config.to_json_file(path)
    assert EncoderConfig.from_json_file(path) == config
    assert set(json.loads(path.read_text())) == GOOGLE_KEYS


def test_whole_numbers_of_numpy_are_whole_numbers():
    config = EncoderConfig(vocab_size=np.int64(50), hidden_size=np.uint16(96))
    assert config == EncoderConfig(50, 96) and json.loads(json.dumps(config.to_dict()))
    for value in (np.float32(50), np.bool_(True), np.array([50]), np.int64(0)):
        with pytest.raises(InputError, match="vocab_size must be a whole number from 1"):
            EncoderConfig(vocab_size=value)


def test_fractions_of_numpy_are_fractions():
    config = EncoderConfig(50, hidden_dropout_prob=np.float64(0.25),
                           initializer_range=np.float32(0.5))
    assert config == EncoderConfig(50, hidden_dropout_prob=0.25, initializer_range=0.5)
    assert json.loads(json.dumps(config.to_dict()))["hidden_dropout_prob"] == 0.25
    for value in (np.float64("nan"), np.float32(-1), np.bool_(True), np.array([0.1]), 0.1j):
        with pytest.raises(InputError, match="hidden_dropout_prob must be a number of at least 0"):
            EncoderConfig(50, hidden_dropout_prob=value)


def test_an_unusual_epsilon_is_written():
    config = EncoderConfig.preset("tiny", layer_norm_eps=1e-6)
    assert EncoderConfig.from_dict(config.to_dict()) == config


def test_preset_sizes():
    base = EncoderConfig.preset("base", vocab_size=28996)
    assert dataclasses.astuple(base)[:5] == (28996, 768, 12, 12, 3072)
    with pytest.raises(InputError, match="huge"):
        EncoderConfig.preset("huge")


def test_keys_of_released_configs_that_change_nothing_are_accepted():
    assert EncoderConfig.from_dict(CHINESE_RELEASE) == EncoderConfig.preset(
        "base", vocab_size=21128)
    with pytest.raises(InputError, match="directionality"):
        EncoderConfig.from_dict({**CHINESE_RELEASE, "directionality": "unidi"})


@pytest.mark.parametrize("key, value", [
    ("num_attention_heads", 3), ("num_attention_heads", 0), ("hidden_size", -128),
    ("vocab_size", 5_000_000_000), ("vocab_size", "30522"), ("num_hidden_layers", 2.0),
    ("num_hidden_layers", True), ("intermediate_size", None), ("hidden_dropout_prob", 1.0),
    ("hidden_dropout_prob", -0.1), ("attention_probs_dropout_prob", float("nan")),
    ("attention_probs_dropout_prob", "0.1"), ("initializer_range", -1), ("hidden_act", "swish"),
    ("hidden_act", None), ("hidden_act", ["gelu"]), ("embedding_size", 0),
    ("num_hidden_groups", 1.0), ("inner_group_num", None), ("shared_parts", "none"),
    ("pooler_type", "mean"), ("model_type", "bart")])
def test_refusals_name_the_key(key, value):
    with pytest.raises(InputError, match=key):
        EncoderConfig.from_dict({**EncoderConfig.preset("tiny").to_dict(), key: value})


@pytest.mark.parametrize("text, message", [
    ('{\n "vocab_size": 9\n 8}', "line 3"), ("[1]", "object"), ('{"hidden_size": 8}', "vocab_size"),
    ('{"vocab_size": 9, "layers": 2}', "layers")])
def test_refusals_name_the_file(text, message, tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as refusal:
        EncoderConfig.from_json_file(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("model_type", CONFIGS)
@pytest.mark.parametrize("value", ["odd", ["odd"], -2.5, 10**12, True])
def test_a_value_of_another_type_names_its_key(model_type, value):
    sizes = {"vocab_size": 40, "model_type": model_type,
             **({"pooler_type": "first_token_relu"} if model_type == "distilbert" else {})}
    assert CONFIGS[model_type].from_dict(sizes)
    for field in dataclasses.fields(CONFIGS[model_type]):
        if type(field.default) is bool is type(value) or (field.name, value) == ("n_highway", True):
            continue
        with pytest.raises(InputError, match=field.name):
            CONFIGS[model_type].from_dict({**sizes, field.name: value})


@pytest.mark.parametrize("filters", [[[1.5, 32]], [["1", 32]], [[1, float("inf")]], [[1]], 3])
def test_filters_are_whole_numbers(filters):
    with pytest.raises(InputError, match="filters must be a list of pairs"):
        ElmoConfig(filters=filters)
    found = ElmoConfig(filters=[[np.int64(2), 32]]).filters
    assert found == ((2, 32),) and type(found[0][0]) is int


def test_an_absent_file_and_binary_data_are_refused(tmp_path):
    with pytest.raises(InputError, match="absent.json"):
        EncoderConfig.from_json_file(tmp_path / "absent.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        EncoderConfig.from_json_file(tmp_path / "binary")


@dataclasses.dataclass(frozen=True)
class OtherConfig(Sizes):
    """The configuration of a network whose files have other keys."""

    added_keys = ("n_layer",)
    distinctive_keys = ("n_piece",)

    n_piece: int = whole(most=100)
    n_layer: int = 2
    ff_activation: str = one_of("gelu", ("gelu", "relu"))
    model_type: str = one_of("other", ("other",))


@pytest.mark.parametrize("values, expected", [
    ({"vocab_size": 9}, EncoderConfig(9)),
    ({"vocab_size": 9, "model_type": "bert"}, EncoderConfig(9)),
    ({"n_piece": 9}, OtherConfig(9)),
    ({"n_piece": 9, "n_layer": 3, "model_type": "other"}, OtherConfig(9, 3)),
])
def test_a_file_is_read_by_its_model_type_or_its_keys(values, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(encoder, "CONFIGS", {**CONFIGS, "other": OtherConfig})
    (tmp_path / "config.json").write_text(json.dumps(values))
    config = read_config(tmp_path / "config.json")
    assert config == expected and type(config) is type(expected)
    config.to_json_file(tmp_path / "again.json")
    assert read_config(tmp_path / "again.json") == config


@pytest.mark.parametrize("values, message", [
    ({"n_piece": 101}, "config.json: n_piece must be a whole number from 1 to 100, not 101"),
    ({"n_piece": 9, "ff_activation": "tanh"}, "ff_activation must be one of gelu, relu"),
    ({"n_piece": 9, "vocab_size": 9}, "unknown key 'vocab_size'; choose from "),
    ({"n_piece": 9, "ff_activatoin": 9}, "'ff_activatoin'; did you mean ff_activation. The"),
    ({"model_type": "other"}, "n_piece is missing"),
    ({"model_type": "bart"}, "json: .* 'bart' is unknown; did you mean bert. .*, other"),
])
def test_refusals_of_any_configuration_name_the_file(values, message, tmp_path, monkeypatch):
    monkeypatch.setattr(encoder, "CONFIGS", {**CONFIGS, "other": OtherConfig})
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=message):
        read_config(tmp_path / "config.json")


def test_an_option_is_the_flag_else_what_was_saved_else_the_default():
    given = {"stride": None, "length": 0, "case": False, "odd": None}
    assert settle(given, {"stride": 7, "length": 3, "other": 1}, {"stride": 9, "case": True}) == {
        "stride": 7, "length": 0, "case": False, "odd": None}
