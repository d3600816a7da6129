"""XLNet's weights come in from the original's checkpoints and from transformers, and go out."""

import json
import warnings

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.config import XLNetConfig
from bert_tf.errors import InputError
from bert_tf.models.xlnet.network import XLNet
from bert_tf.models.xlnet.objective import PermutationLM
from bert_tf.objectives.classification import (
    Classification,
    MultiLabel,
    MultipleChoice,
    Regression,
)
from bert_tf.objectives.tagging import Tagging
from bert_tf.training.learners.learner import Learner
from tests.goldens import at_hand
from tests.original_checkpoint import arrays_of
from tests.original_xlnet import config_of, weights_of, write_checkpoint

pytestmark = pytest.mark.usefixtures("eagerly")
TINY = {"vocab_size": 30, "n_layer": 2, "d_model": 8, "n_head": 2, "d_head": 4, "d_inner": 12}


@pytest.mark.parametrize("name, forms", at_hand("golden/xlnet/{}_seed1.npz", (
    ("forward_bi_mem", ("huggingface", "keras", "google")),
    ("finetune_qa_train", ("huggingface", "google")), ("finetune_race", ("huggingface", "google")),
    ("forward_uni_plain", ("keras", "google")), ("finetune_classify_attn", ("keras", "google")))))
def test_a_checkpoint_of_the_original_comes_in_and_out(name, forms, test_data, tmp_path):
    golden = np.load(test_data / "golden" / "xlnet" / f"{name}_seed1.npz")
    theirs, source = weights_of(golden), tmp_path / "original"
    write_checkpoint(source, {**theirs, "global_step": np.int64(3)}, config_of(golden))
    for form in forms:
        account = checkpoints.convert(str(source), str(tmp_path / form), form)
        source = tmp_path / form
        assert all(name == "global_step" or "first values" in why
                   for name, why in account.ignored.items())
    again = {key.replace("_task/", "_sts-b/"): value
             for key, value in arrays_of(source / "xlnet_model.ckpt").items()}
    assert all(np.array_equal(again[key], value) for key, value in theirs.items())
    # What a file of Keras holds besides: weights that the original makes when it needs them.
    assert {name.split("/")[1 if "summary" in name else 2] for name in again.keys() - theirs.keys()
            } <= {"sequnece_summary", "mask_emb"}
    (source / "xlnet_config.json").unlink()     # the shapes say what they can
    config = checkpoints.read_config(source)
    assert (config.n_head, config.d_head, config.untie_r) == (
        config_of(golden).n_head, config_of(golden).d_head, config_of(golden).untie_r)


def test_what_a_format_can_not_hold_is_refused(tmp_path):
    def save(name, **values):
        config = XLNetConfig(**{**TINY, **values})
        Learner(XLNet(config), [PermutationLM(config)]).save(tmp_path / f"{name}.keras")
        return str(tmp_path / f"{name}.keras")

    for name, values, form, message in (
            ("wide", {"d_head": 5}, "huggingface", "d_model / n_head wide"),
            ("tied", {"untie_r": False}, "huggingface", "separate biases"),
            ("attn", {"summary_type": "attn"}, "huggingface", "summary_type is attn"),
            ("erf", {"ff_activation": "gelu_erf"}, "google", "give --hidden_act=gelu"),
            ("plain", {}, "model_garden", "the model_type is xlnet")):
        with pytest.raises(InputError, match=message):
            checkpoints.convert(save(name, **values), str(tmp_path / form), form)
    changed = checkpoints.Changes(hidden_act="gelu")
    checkpoints.convert(str(tmp_path / "erf.keras"), str(tmp_path / "out"), "google", changed)
    values = json.loads((tmp_path / "out" / "xlnet_config.json").read_text())
    assert values["ff_activation"] == "gelu" and values["n_token"] == 30
    (tmp_path / "out" / "xlnet_config.json").write_text(json.dumps({**values, "n_token": "x"}))
    with pytest.raises(InputError, match="xlnet_config.json: n_token must be a whole number"):
        checkpoints.read(tmp_path / "out")


@pytest.mark.parametrize("projects", (True, False))
def test_the_summary_of_transformers_has_an_activation_without_the_projection(projects, tmp_path):
    config = XLNetConfig(**{**TINY, "ff_activation": "tanh" if projects else "gelu_erf"},
                         use_summ_proj=projects)
    Learner(XLNet(config), [Classification(config, 2)]).save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / "hf"), "huggingface")
    path = tmp_path / "hf" / "config.json"
    values = json.loads(path.read_text())
    assert (values["summary_activation"], values["summary_use_proj"]) == (
        "tanh" if projects else "", projects)
    weights = checkpoints.read(tmp_path / "hf")
    assert weights.config == config
    # Other commands read the folder too, and have no --hidden_act.
    assert ["bert-convert-checkpoint --hidden_act=gelu" in note
            for note in weights.notes] == [True] * (not projects)
    for changes, message in (({"summary_activation": "" if projects else "tanh"},
                              "config.json: summary_activation must be .* another model"),
                             ({"d_inner": None}, "config.json: d_inner must be a whole .* None"),
                             ({"bi_data": True}, "config.json: bi_data must be False, not True")):
        path.write_text(json.dumps(values | changes))
        with pytest.raises(InputError, match=message):
            checkpoints.read(tmp_path / "hf")


@pytest.mark.parametrize("objective, options", [
    (Classification, {"num_labels": 1}), (Regression, {}), (MultiLabel, {"num_labels": 1}),
    (MultipleChoice, {}), (Tagging, {"num_labels": 2})])
def test_a_folder_that_names_no_class_has_the_head_that_is_asked_for(objective, options, tmp_path):
    """Their logits have one name; keys that say nothing of the network stay as they are."""
    config = XLNetConfig(**TINY)
    head = objective(config, **options)
    Learner(XLNet(config), [head]).save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / "hf"), "huggingface")
    path = tmp_path / "hf" / "config.json"
    values = json.loads(path.read_text()) | {
        "ff_activation": "gelu_fast", "pad_token_id": 0, "summary_last_dropout": 0.3,
        "untie_r": False}
    if objective is Tagging:        # which has no summary
        values["summary_activation"] = "gelu"
    del values["architectures"]
    path.write_text(json.dumps(values))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)     # of weights that are missing
        found = objective.from_pretrained(tmp_path / "hf", **options).objectives[0]
    assert np.array_equal(found.weights[0], head.weights[0])
    checkpoints.convert(str(tmp_path / "hf"), str(tmp_path / "out"), "huggingface")
    out = json.loads((tmp_path / "out" / "config.json").read_text())
    kept = ("ff_activation", "pad_token_id", "summary_last_dropout", "summary_activation")
    assert [out[key] for key in kept] == [values[key] for key in kept]


@pytest.mark.peer
@pytest.mark.parametrize("activation", ("gelu_new", "gelu", "tanh"))
def test_transformers_computes_the_same(activation, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    torch.manual_seed(4)
    model = transformers.XLNetLMHeadModel(transformers.XLNetConfig(
        vocab_size=60, d_model=16, n_layer=2, n_head=2, d_inner=24, ff_activation=activation,
        mem_len=6, reuse_len=5, clamp_len=7, initializer_range=0.2)).eval()
    model.save_pretrained(tmp_path / "theirs")
    network = XLNet(checkpoints.read_config(tmp_path / "theirs"))
    account = checkpoints.load(tmp_path / "theirs", network)
    assert {name.split("/")[0] for name in account.missing} == {"pooler"}
    rng = np.random.default_rng(5)
    ids, segments = rng.integers(5, 60, (2, 9)), np.array([[0] * 4 + [1] * 4 + [2]] * 2)
    mask, hidden = np.array([[1] * 9, [0] * 3 + [1] * 6]), rng.random((2, 9, 9)) < 0.3
    mapping = np.eye(9)[[[4, 7]] * 2]
    theirs, ours = [torch.zeros(6, 2, 16)] * 2, np.zeros((2, 2, 6, 16), "float32")
    for _ in range(2):
        with torch.no_grad():
            wanted = model.transformer(
                torch.tensor(ids), torch.tensor(mask).float(), theirs, torch.tensor(hidden).float(),
                torch.tensor(mapping).float(), torch.tensor(segments), use_mems=True)
        found = network({"input_ids": ids.astype("int32"), "input_mask": mask.astype("int32"),
                         "segment_ids": segments.astype("int32"), "perm_mask": hidden,
                         "masked_lm_positions": np.array([[4, 7]] * 2, "int32"),
                         "carried": {"memory": ours}})
        theirs, ours = wanted.mems, np.array(found["carried"]["memory"])
        assert np.abs(np.array(found["query_output"]) - wanted[0].numpy()).max() < 2e-6
        for layer in range(2):
            off = np.abs(ours[:, layer] - theirs[layer].numpy().swapaxes(0, 1))
            assert off.max() < 2e-6
    checkpoints.convert(str(tmp_path / "theirs"), str(tmp_path / "ours"), "huggingface")
    again, info = transformers.XLNetLMHeadModel.from_pretrained(
        tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert all(torch.equal(value, again.state_dict()[name])
               for name, value in model.state_dict().items())
