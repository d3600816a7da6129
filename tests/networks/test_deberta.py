"""DeBERTa computes what microsoft/DeBERTa and transformers compute."""

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints, networks
from bert_tf.checkpoints import convert
from bert_tf.checkpoints.weights import variables
from bert_tf.errors import InputError
from bert_tf.models.deberta.config import DebertaConfig
from bert_tf.models.deberta.layers import rows_of_distances
from bert_tf.objectives import MaskedLM
from bert_tf.training import Trainer, make_optimizer
from bert_tf.training.learners.learner import Learner
from tests.goldens import part

TOLERANCE = 1e-5
HEADS = {"sequence": ("Classification", {"num_labels": 3}), "token": ("Tagging", {"num_labels": 4}),
         "sequence_regression": ("Regression", {}), "question_answering": ("AnswerSpan", {}),
         "mlm_legacy": ("MaskedLM", {})}


@pytest.fixture
def golden(test_data):
    return pathlib.Path(test_data / "golden" / "deberta" / "mlm_v3").parent


def expected(golden, name):
    return dict(np.load(golden / f"{name}.npz"))


def written(case, folder, **config):
    """A folder of transformers with the weights and the configuration of a golden file."""
    folder.mkdir()
    save_file(part(case, "weights/"), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "deberta-v2", **json.loads(str(case["config"])), **config}))
    return folder


def features(case):
    return {"input_ids": case["input_ids"].astype("int32"),
            "input_mask": case["attention_mask"].astype("int32"),
            **({"segment_ids": case["token_type_ids"].astype("int32")}
               if "token_type_ids" in case else {})}


def part_of(case, name):
    """The values of one of the networks of a golden file, under the names of a single one."""
    config = json.loads(str(case["config"]))[name] if "config" in case else {}
    return {"config": json.dumps(config), **{
        key.replace(f"/{name}.", "/").replace("._weight", ".weight"): value
        for key, value in case.items() if f"/{name}." in key}}


def relative(found, wanted):
    """The largest error of a gradient relative to its largest number, over all variables; and the
    norm of all errors relative to the norm of the gradient."""
    errors, pairs = [], [(np.asarray(tf.convert_to_tensor(found[name])), tensor.read())
                         for name, tensor in wanted.items()]
    for ours, theirs in pairs:
        errors.append(np.abs(ours - theirs).max() / np.abs(theirs).max())
    squares = np.sum([[((ours - theirs)**2).sum(), (theirs**2).sum()] for ours, theirs in pairs], 0)
    return max(errors), np.sqrt(squares[0] / squares[1])


def check_gradients(learner, tape, loss, gradients, config, folder):
    """Compares all gradients with those of a golden file, float32 with float32."""
    named = variables(learner)
    found = dict(zip(named, tape.gradient(loss, [v.value for v in named.values()])))
    wanted = checkpoints.read(written({
        "config": json.dumps(config), **{name.replace("gradient/", "weights/"): value
                                         for name, value in gradients.items()}}, folder)).tensors
    assert len(wanted) == sum(name.startswith("gradient/") for name in gradients)
    each, whole = relative(found, wanted)
    assert each < 1e-5 and whole < 1e-6, (each, whole)


def off(found, wanted, tokens=slice(None)):
    return np.abs(np.asarray(found)[tokens] - np.asarray(wanted)[tokens]).max()


def scaled_words(golden, folder):
    """The model of `mlm_v3` with small vectors of words."""
    folder.mkdir()
    tensors = load_file(golden / "mlm_v3" / "model.safetensors")
    tensors["deberta.embeddings.word_embeddings.weight"] *= np.float32(0.01)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text((golden / "mlm_v3" / "config.json").read_text())
    return folder


@pytest.mark.parametrize("name", ["v3", "v3_long", "v3_small_words", "v2_xlarge", "separate",
                                  "c2p_only"])
def test_layers_equal(name, golden, tmp_path):
    case = expected(golden, f"forward_{name}")
    folder = golden / "mlm_v3"
    if name == "v3_small_words":
        folder = scaled_words(golden, tmp_path / "words")
    elif any(key.startswith("weights/") for key in case):
        folder = written(case, tmp_path / "model")
    outputs = bert_tf.open_model(folder).network()(features(case))
    tokens = case["attention_mask"] == 1
    states = [networks.first_state(outputs), *outputs["layer_outputs"]]
    numbers = [int(key.split("/")[1]) for key in case if key.startswith("hidden/")]
    for number in numbers:
        assert off(states[number], case[f"hidden/{number}"], tokens) < TOLERANCE, number
    if not numbers:
        last = next(key for key in case if "hidden" in key)
        assert off(states[-1], case[last], tokens) < TOLERANCE


def test_buckets_of_distances_equal(golden):
    case = expected(golden, "log_buckets")
    for buckets, longest in ((256, 512), (8, 32), (64, 512), (256, 1024)):
        config = DebertaConfig(9, 8, 1, 2, 8, position_buckets=buckets,
                               max_relative_positions=longest)
        rows = rows_of_distances(config)
        end = len(rows) // 2
        row = rows[np.clip(case["relative"], -end, end) + end]
        wanted = np.clip(case[f"transformers/{buckets}_{longest}"] + buckets, 0, 2 * buckets - 1)
        np.testing.assert_array_equal(row, wanted)
        # The original counts no distance from the longest on.
        row = rows[np.clip(case["relative"], 1 - longest, longest - 1) + end]
        wanted = np.clip(case[f"original/{buckets}_{longest}"] + buckets, 0, 2 * buckets - 1)
        np.testing.assert_array_equal(row, wanted)


@pytest.mark.parametrize("buckets, longest, distances, at_distances", [
    (32, 129, (32, 64), (21, 26)), (128, 513, (128, 256), (85, 106)),   # in float64 one more
    (18, 65, (24,), (14,)),             # in float64 one less
    (7, 10, (9, 10, 15, 16), (5, 6, 6, 7)),         # the last bucket begins far beyond
    (2, 10, (1, 2, 9, 20), (1, 1, 1, 1)), (3, 10, (1, 2, 9, 20), (1, 1, 1, 1))])
def test_buckets_are_rounded_as_in_the_originals(buckets, longest, distances, at_distances):
    """The numbers are those of transformers 5.23's make_log_bucket_position."""
    rows = rows_of_distances(DebertaConfig(9, 8, 1, 2, 8, position_buckets=buckets,
                                           max_relative_positions=longest))
    end = len(rows) // 2
    for sign in (1, -1):
        at = np.clip(sign * np.array(distances), -end, end) + end
        np.testing.assert_array_equal(rows[at], np.clip(
            sign * np.array(at_distances) + buckets, 0, 2 * buckets - 1))


_V3 = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
       "intermediate_size": 40, "max_position_embeddings": 24, "relative_attention": True,
       "position_biased_input": False, "pos_att_type": "p2c|c2p", "position_buckets": 8,
       "share_att_key": True, "norm_rel_ebd": "layer_norm", "initializer_range": 0.3}


@pytest.mark.peer
@pytest.mark.parametrize("change", [
    {}, {"pos_att_type": "c2p"}, {"pos_att_type": "P2C "}, {"pos_att_type": None},
    {"pos_att_type": "None", "share_att_key": False}, {"relative_attention": False},
    {"relative_attention": False, "position_biased_input": True, "share_att_key": False},
    {"position_buckets": -1, "max_relative_positions": 7}, {"position_buckets": 0},
    {"position_buckets": 7, "max_relative_positions": 10}, {"share_att_key": False},
    {"share_att_key": False, "pos_att_type": "p2c"}, {"norm_rel_ebd": "none"},
    {"conv_kernel_size": 5, "conv_groups": 4, "conv_act": "gelu_new"}, {"type_vocab_size": 3},
    {"conv_kernel_size": 1, "conv_act": "relu6", "pooler_hidden_act": "gelu_pytorch_tanh"},
    {"pooler_hidden_act": "silu", "num_hidden_layers": 1}, {"position_buckets": 2},
    {"position_buckets": 3, "max_relative_positions": 3},
    {"embedding_size": 10, "position_biased_input": True, "type_vocab_size": 2}])
def test_networks_of_transformers_equal(change, tmp_path):
    """All layers and the logits of a folder that transformers writes; and it opens ours."""
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    import torch
    torch.manual_seed(1)
    peer = transformers.DebertaV2ForSequenceClassification(
        transformers.DebertaV2Config(**_V3 | change, num_labels=3)).eval()
    for parameter in peer.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    peer.save_pretrained(tmp_path / "theirs")
    model = bert_tf.open_model(tmp_path / "theirs")
    learner = model.learner(heads=[("Classification", {"num_labels": 3})])
    mask = (np.arange(22) < [[22], [9]]).astype("int32")
    ids = np.random.default_rng(1).integers(1, 40, (2, 22)).astype("int32") * mask
    segments = ids % max(1, model.config.type_vocab_size)
    batch = {"input_ids": ids, "input_mask": mask, "segment_ids": segments}
    convert(tmp_path / "theirs", tmp_path / "ours", "huggingface")
    for network in (peer, transformers.AutoModelForSequenceClassification.from_pretrained(
            tmp_path / "ours").eval()):
        outputs = network(*map(torch.tensor, (ids, mask, segments)), output_hidden_states=True)
        layers = learner.encoder(batch)["layer_outputs"]
        for layer, state in zip(layers, outputs.hidden_states[1:], strict=True):
            assert off(layer, state.detach(), mask == 1) < TOLERANCE
        assert off(learner(batch)["classification"], outputs.logits.detach()) < TOLERANCE


def test_one_head_reads_several_long_texts():
    """TensorFlow 2.20 crashes in a product of several matrices with a single one."""
    network = networks.build(DebertaConfig(20, 8, 1, 1, 8, type_vocab_size=0))
    ids = np.random.default_rng(1).integers(1, 20, (6, 90)).astype("int32")
    together, alone = (network({"input_ids": x})["sequence_output"] for x in (ids, ids[2:3]))
    assert off(together[2:3], alone) < TOLERANCE


@pytest.mark.parametrize("name", HEADS)
def test_heads_equal(name, golden, tmp_path):
    case = expected(golden, f"head_{name}")
    objective, options = HEADS[name]
    folder = written(case, tmp_path / "model")
    model = bert_tf.open_model(folder)
    learner = Learner(networks.build(model.config), [
        getattr(bert_tf, objective)(model.config, **options)])
    model.load(learner)
    batch, tokens = features(case), case["attention_mask"] == 1
    if name == "mlm_legacy":
        batch["masked_lm_positions"] = np.broadcast_to(
            np.arange(tokens.shape[1], dtype="int32"), tokens.shape)
    found = np.asarray(learner(batch)[learner.objectives[0].name])
    if name == "question_answering":
        starts = next(case[key] for key in case if "start_logits" in key)
        ends = next(case[key] for key in case if "end_logits" in key)
        assert off(found[:, 0], starts, tokens) < TOLERANCE
        assert off(found[:, 1], ends, tokens) < TOLERANCE
        labels = np.stack([case["start_positions"], case["end_positions"]], 1)
        picked = tf.gather(tf.nn.log_softmax(found), labels, batch_dims=2)      # padding counts
        assert abs(-tf.reduce_mean(picked) - case["loss"]) < TOLERANCE
    elif name in ("token", "mlm_legacy"):
        assert off(found, case["logits"], tokens) < 2 * TOLERANCE
    else:
        assert off(found.reshape(case["logits"].shape), case["logits"]) < TOLERANCE


def test_masked_words_and_gradients_equal(golden, tmp_path):
    case, gradients = expected(golden, "forward_v3"), expected(golden, "gradients_v3")
    learner = bert_tf.MaskedLM.from_pretrained(golden / "mlm_v3")
    labels, tokens = case["labels"], case["attention_mask"] == 1
    batch = {**features(case), "masked_lm_positions": np.broadcast_to(
        np.arange(tokens.shape[1], dtype="int32"), tokens.shape)}
    rows, places = np.nonzero(labels >= 0)
    with tf.GradientTape() as tape:
        logits = learner(batch)["masked_lm"]
        picked = tf.gather_nd(tf.nn.log_softmax(logits), np.stack(
            [rows, places, labels[rows, places]], 1))
        loss = -tf.reduce_mean(picked)
    assert off(logits, case["logits"], tokens) < 2 * TOLERANCE
    assert abs(loss - case["loss"]) < TOLERANCE
    check_gradients(learner, tape, loss, gradients, json.loads(
        (golden / "mlm_v3" / "config.json").read_text()), tmp_path / "gradients")


def test_the_enhanced_mask_decoder_equals(golden, tmp_path):
    """Logits, losses and gradients of the original's MaskedLanguageModel; label 0 means none."""
    case, gradients = (expected(golden, f"enhanced_mask_decoder{end}") for end in (
        "", "_gradients"))
    folder = written(case, tmp_path / "model", enhanced_mask_decoder=True)
    model = bert_tf.open_model(folder)
    learner = Learner(networks.build(model.config), [bert_tf.MaskedLM(model.config)])
    model.load(learner)
    rows, places = np.nonzero(case["labels"])
    batch = {**features(case), "masked_lm_positions": np.broadcast_to(
        np.arange(30, dtype="int32"), (4, 30))}
    with tf.GradientTape() as tape:
        logits = tf.gather_nd(learner(batch)["masked_lm"], np.stack([rows, places], 1))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            case["labels"][rows, places], logits))
    assert off(logits, case["logits"]) < 2 * TOLERANCE
    assert abs(loss - case["loss"]) < TOLERANCE
    check_gradients(learner, tape, loss, gradients, model.config.to_dict() | dict.fromkeys(
        ("hidden_act", "pooler_hidden_act"), "gelu"), tmp_path / "gradients")


@pytest.mark.parametrize("head", ["released", "legacy", "untied"])
def test_there_and_back_byte_for_byte(head, golden, tmp_path):
    """Under the same names; transformers has an output matrix in its legacy head alone."""
    folder = golden / "mlm_v3"
    if head != "released":
        case, name = expected(golden, "head_mlm_legacy"), "weights/cls.predictions"
        words, bias = (case.pop(f"{name}.decoder.{end}") for end in ("weight", "bias"))
        if head == "untied":
            case |= {f"{name}.decoder.weight": words + 1, f"{name}.decoder.bias": bias + 1}
        folder = written(case, tmp_path / "a", tie_word_embeddings=head == "legacy")
    convert(folder, tmp_path / "hf", "huggingface")
    before, after = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "hf"))
    assert before.keys() == after.keys()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert checkpoints.read(tmp_path / "hf").config == checkpoints.read(folder).config
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["legacy"] == (head != "released")
    assert config["tie_word_embeddings"] == (head != "untied")


@pytest.mark.parametrize("change, said", [
    ({"pos_att_type": "p2p|c2p"}, "pos_att_type must be some of c2p, p2c"),
    ({"position_buckets": 1}, "position_buckets must be 0 or at least 2, not 1"),
    ({"position_buckets": 64, "max_relative_positions": 20}, "but distances end at 20"),
    ({"pos_att_type": [["c2p"]]}, "pos_att_type must be some of c2p, p2c"),
    ({"conv_kernel_size": 3, "conv_groups": 3}, "must divide hidden_size"),
    ({"conv_kernel_size": 4}, r"conv_kernel_size \(4\) must be odd"),
    ({"embedding_size": 4, "position_biased_input": False, "enhanced_mask_decoder": True},
     r"enhanced_mask_decoder needs an embedding_size \(4\) equal to hidden_size \(8\)")])
def test_sizes_that_contradict_each_other_are_refused(change, said):
    with pytest.raises(InputError, match=said):
        DebertaConfig(20, 8, 2, 2, 8, **change)


def test_bfloat16_is_near_float32(eagerly):
    """In the forward pass and in two steps of training; nothing is NaN, in padding neither."""
    keras.utils.set_random_seed(1)
    config = DebertaConfig(
        40, 32, 2, 2, 64, type_vocab_size=0, max_position_embeddings=16, position_buckets=8,
        share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
        initializer_range=0.1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        conv_kernel_size=3, enhanced_mask_decoder=True)
    whole, low = (Learner(networks.build(config, dtype=dtype), [MaskedLM(config, dtype=dtype)])
                  for dtype in ("float32", "mixed_bfloat16"))
    low.set_weights(whole.get_weights())
    mask = (np.arange(16) < [[16], [9], [3], [0]]).astype("int32")
    ids = np.random.default_rng(1).integers(5, 40, (4, 16)).astype("int32") * mask
    batch = {"input_ids": ids, "input_mask": mask, "masked_lm_positions": mask[:, :2] * [[1, 2]],
             "masked_lm_ids": ids[:, 1:3], "masked_lm_weights": mask[:, 1:3].astype("float32")}
    first, second = (learner.encoder(batch)["sequence_output"] for learner in (whole, low))
    assert second.dtype == "bfloat16" and np.isfinite(second.numpy().astype("float32")).all()
    assert off(second.numpy().astype("float32"), first, mask == 1) < 0.1
    losses = []
    for learner in (whole, low):
        trainer = Trainer(learner, make_optimizer("bert_adamw", 1e-3), tf.distribute.get_strategy())
        trainer.train(iter(trainer.distribute(
            lambda *_: tf.data.Dataset.from_tensor_slices(batch).repeat(2).batch(4))), 2)
        assert all(np.isfinite(weight.numpy()).all() for weight in learner.weights)
        loss, count = learner.measure(batch)["masked_lm"]["loss"]
        losses.append(float(loss / count))
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
