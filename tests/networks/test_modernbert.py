"""ModernBERT computes what transformers computes with the same weights."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from bert_tf import checkpoints, networks, open_model
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.weights import variables
from bert_tf.config import ModernBertConfig
from bert_tf.errors import InputError
from bert_tf.export.ids_model import IdsModel
from bert_tf.layers.changes import no_branches
from bert_tf.models.modernbert import huggingface, layers, network
from tests.goldens import at_hand
from tests.rounding import assert_same

pytestmark = pytest.mark.usefixtures("eagerly")

SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2,
         "intermediate_size": 12, "local_attention": 8, "max_position_embeddings": 128}
HEADS = {  # the class in transformers, ours, its labels
    "classifier_cls_single": ("SequenceClassification", "Classification", 3),
    "classifier_mean_multi": ("SequenceClassification", "MultiLabel", 4),
    "classifier_mean_regression": ("SequenceClassification", "Regression", 1),
    "token_classifier": ("TokenClassification", "Tagging", 5),
    "question_answering": ("QuestionAnswering", "AnswerSpan", 0),
    "multiple_choice_mean": ("MultipleChoice", "MultipleChoice", 0)}


@pytest.fixture(name="load")
def fixture_load(test_data, tmp_path):
    def load(name, end="MaskedLM"):
        golden = np.load(test_data / "golden" / "modernbert" / f"{name}.npz")
        folder = test_data / "golden" / "modernbert" / "mlm_windowed"
        if any(key.startswith("weights/") for key in golden.files):
            folder = tmp_path / "model"
            folder.mkdir()
            values = {**json.loads(str(golden["config"])), "architectures": [f"ModernBertFor{end}"],
                      "classifier_dropout": 0.3, "sparse_prediction": True,
                      "initializer_cutoff_factor": 3.0, "sparse_pred_ignore_index": -1}
            (folder / "config.json").write_text(json.dumps(values))
            save_file({key.removeprefix("weights/"): np.ascontiguousarray(golden[key])
                       for key in golden.files if key.startswith("weights/")},
                      folder / "model.safetensors", {"format": "pt"})
        return golden, folder
    return load


@pytest.fixture(params=["whole", "blocks"])
def form(request, monkeypatch):
    """Local layers compute all scores, or blocks."""
    if request.param == "blocks":
        monkeypatch.setattr(layers, "_LEAST_BLOCK", 1)
    return request.param


def features(golden):
    return {"input_ids": golden["input_ids"], "input_mask": golden["attention_mask"]}


def labelled(golden):
    """The features of the labelled places, in the order of rows."""
    labels = golden["labels"]
    rows = [np.flatnonzero(row != -100) for row in labels]
    most = max(map(len, rows))
    places, weights = (np.zeros((len(rows), most), "int32") for _ in range(2))
    for row, chosen in enumerate(rows):
        places[row, :len(chosen)], weights[row, :len(chosen)] = chosen, 1
    ids = np.take_along_axis(labels, places, 1) * weights
    return {**features(golden), "masked_lm_positions": places, "masked_lm_ids": ids,
            "masked_lm_weights": weights}


def off(found, expected):
    return np.abs(np.array(found) - expected).max()


@pytest.mark.parametrize("name", at_hand("golden/modernbert/{}.npz", (
    "forward_windowed", "forward_defaults", "forward_biases")))
def test_layers_and_logits_are_the_originals(name, load, form):
    golden, folder = load(name)
    learner = open_model(folder).learner(heads=[("MaskedLM", {})])
    batch = labelled(golden)
    outputs = learner.encoder(batch)
    real = golden["attention_mask"][..., None]
    states = [outputs["embedding_output"], *outputs["layer_outputs"]]
    for i, state in enumerate(states):
        if f"layer/{i}" in golden:
            assert off(state * real, golden[f"layer/{i}"]) < 1e-5
    assert off(outputs["sequence_output"] * real, golden["last_hidden_state"]) < 1e-5
    head, = learner.objectives
    logits = head(outputs, batch, learner.encoder.embedding_table)
    labels, weights = head.targets(batch)
    total, count = head.loss(logits, labels, weights)
    assert abs(float(total / count) - golden["loss"]) < 2e-6
    chosen = batch["masked_lm_weights"] > 0
    expected = (golden["logits"][golden["labels"] != -100] if "logits" in golden
                else golden["logits_at_labels"])
    assert off(np.array(logits)[chosen], expected) < 1e-5


@pytest.mark.parametrize("name", at_hand("golden/modernbert/{}.npz", ("gradients_windowed",)))
def test_gradients_are_the_originals(name, load, form):
    golden, folder = load("forward_windowed")
    gradients, _ = load(name)
    model = open_model(folder)
    learner = model.learner(heads=[("MaskedLM", {})])
    batch, (head,) = labelled(golden), learner.objectives
    named = variables(learner, {"masked_lm"})
    with tf.GradientTape() as tape:
        outputs = learner.encoder(batch)
        logits = head(outputs, batch, learner.encoder.embedding_table)
        total, count = head.loss(logits, *head.targets(batch))
        loss = total / count
    values = tape.gradient(loss, [v.value for v in named.values()])
    ours = dict(zip(named, map(tf.convert_to_tensor, (
        v if v is not None else tf.zeros(()) for v in values))))
    names = {rule.ours: rule for rule in huggingface.table_for(
        checkpoints.read(folder)).rules(model.config)}
    theirs = {key.removeprefix("gradients/").removeprefix("gradient/"): gradients[key]
              for key in gradients.files}
    compared = 0
    for name, value in ours.items():
        key = names[name].theirs
        if key not in theirs:
            continue
        value = np.array(value)
        expected = theirs[key].T if names[name].layout == "transpose" else theirs[key]
        if key.endswith("tok_embeddings.weight"):       # their padding gets none from its input
            rows = np.arange(len(value)) != 3
            value, expected = value[rows], expected[rows]
        assert np.linalg.norm(value - expected) < 2e-6 * np.linalg.norm(expected), key
        compared += 1
    assert compared == len(theirs) - 1 and "loss" in theirs


@pytest.mark.parametrize("name", at_hand("golden/modernbert/{}.npz", HEADS))
def test_heads_are_the_originals(name, load):
    golden, folder = load(name, HEADS[name][0])
    kind, labels = HEADS[name][1:]
    learner = open_model(folder).learner(heads=[(kind, {"num_labels": labels} if labels else {})])
    head, = learner.objectives
    batch = features(golden)
    flat = {key: value.reshape(-1, value.shape[-1]) for key, value in batch.items()}
    logits = head(learner.encoder(flat), batch)
    real = golden["attention_mask"]
    if kind == "AnswerSpan":
        expected = np.stack([golden["start_logits"], golden["end_logits"]], 1) * real[:, None]
        inside = np.stack([golden[key] < real.shape[1] for key in head.reads], 1)
        labels = np.stack([golden[key] for key in head.reads], 1) * inside
        losses = [head.loss(logits[:, end], labels[:, end], inside[:, end].astype("float32"))
                  for end in range(2)]
        loss = np.mean([float(total / count) for total, count in losses])
        logits = logits * real[:, None]
    else:
        expected, weights = golden["logits"], np.ones(golden["labels"].shape, "float32")
        labels = golden["labels"]
        if kind == "Tagging":
            weights, labels = (labels != -100).astype("float32"), np.maximum(labels, 0)
            expected, logits = expected * real[..., None], logits * real[..., None]
        total, count = head.loss(logits, labels, weights)
        loss = float(total / count)
    assert off(logits, expected) < 1e-5
    assert abs(loss - golden["loss"]) < 5e-6


@pytest.mark.parametrize("name", at_hand("golden/modernbert/{}.npz", (
    "forward_windowed", "forward_biases", *HEADS)))
def test_a_folder_is_written_as_it_was_read(name, load, tmp_path):
    _, folder = load(name, *HEADS.get(name, ())[:1])
    conversion.convert(folder, tmp_path / "out", "huggingface")
    mine, theirs = (load_file(path / "model.safetensors") for path in (tmp_path / "out", folder))
    assert_same(mine, theirs)
    ours, given = (json.loads((path / "config.json").read_text())
                   for path in (tmp_path / "out", folder))
    for key in given.keys() - {"dtype", "problem_type", "transformers_version"}:
        assert ours[key] == given[key], key


def test_configurations_of_transformers_4_and_5(test_data):
    forms = json.loads((test_data / "golden" / "modernbert" / "config_forms.json").read_text())
    for name, form in forms.items():
        if name == "odd window":
            continue
        config = huggingface._read_config({**form["given"], "num_hidden_layers": 7})
        assert [kind.split("_")[0] for kind in config.kinds] == form["layer_types"]
        thetas = form["thetas"]
        assert config.global_rope_theta == thetas["full_attention"]
        # transformers 5 makes null of it, and fails; transformers 4 takes the other
        assert config.local_rope_theta == thetas["sliding_attention"] or (
            name == "local_rope_theta null" and config.local_rope_theta == 20000.0)
        assert config.window == form["half_window"]


@pytest.mark.parametrize("values, thetas", [
    ({"rope_parameters": {"sliding_attention": {"rope_theta": 7}}}, (160_000.0, 7)),
    ({"rope_parameters": {"full_attention": {}}, "global_rope_theta": 8}, (8, 10_000.0)),
    ({"rope_parameters": {"full_attention": {"rope_theta": 9}}, "local_rope_theta": None}, (9, 9)),
    ({"rope_parameters": {"full_attention": {}, "sliding_attention": {"rope_theta": 6}},
      "local_rope_theta": None}, (160_000.0, 6))])
def test_a_kind_without_settings_has_the_theta_beside_or_the_default(values, thetas):
    config = huggingface._read_config({**SMALL, **values})
    assert (config.global_rope_theta, config.local_rope_theta) == thetas


@pytest.mark.parametrize("change, message", [
    ({"layer_types": ["full_attention"] * 3}, "layer_types names 3 layers, but"),
    ({"layer_types": ["full_attention"] * 3 + ["other"]}, "layer_types must be a list"),
    ({"local_attention": 9}, "local_attention must be even"),
    ({"global_rope_theta": None}, "global_rope_theta must be a number above 0, not None"),
    ({"global_rope_theta": 0}, "global_rope_theta must be a number above 0, not 0"),
    ({"rope_parameters": {"full_attention": {"rope_theta": None}}}, "rope_theta of full_attention "
     "must be a number above 0, not None"),
    ({"rope_parameters": {"rope_theta": 1.0}}, "rope_parameters must have settings for "
     "full_attention and sliding_attention, not {'rope_theta': 1.0}"),
    ({"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type must be 'default'"),
    ({"rope_parameters": {"full_attention": {"type": "linear"}}}, "rope_type must be 'default'"),
    ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "rope_scaling must be null, not {"),
    ({"hidden_activation": "selu"}, "hidden_activation must be one of"),
    ({"num_attention_heads": 16}, "must be an even multiple"),
    ({"classifier_pooling": "max"}, "classifier_pooling must be one of cls, mean")])
def test_what_a_configuration_may_not_say(change, message):
    with pytest.raises(InputError, match=message):
        huggingface._read_config({**SMALL, **change})


def test_what_is_refused_of_weights_and_inputs(test_data, tmp_path):
    golden = test_data / "golden" / "modernbert" / "mlm_windowed"
    values = load_file(golden / "model.safetensors")
    values["model.layers.1.mlp.Wi.weight"] = values["model.layers.1.mlp.Wi.weight"][:24].copy()
    save_file(values, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((golden / "config.json").read_text())
    with pytest.raises(InputError, match=r"Wi.weight' has the shape \[24, 32\], but .* \[48, 32\]"):
        open_model(tmp_path)
    net = networks.build(ModernBertConfig(**{**SMALL, "max_position_embeddings": 8}))
    with pytest.raises(ValueError, match="9 tokens long, but max_position_embeddings is 8"):
        net({"input_ids": np.ones((1, 9), "int32")})


@pytest.mark.parametrize("length", [1, 7, 32, 33, 100])
def test_blocks_see_what_a_band_shows(length, monkeypatch):
    monkeypatch.setattr(layers, "_LEAST_BLOCK", 6)
    keras.utils.set_random_seed(1)
    net = networks.build(ModernBertConfig(**SMALL))
    rng = np.random.default_rng(2)
    mask = np.arange(length) < np.array([[length], [(length + 1) // 2]])
    inputs = {"input_ids": rng.integers(50, size=(2, length)), "input_mask": mask.astype("int32")}
    whole = net(inputs, return_attention=True)
    assert len(whole["attention_probs"]) == 4
    monkeypatch.setattr(network, "block_width", lambda config: 0)       # no sequence is too short
    blocks = net(inputs)
    assert off(blocks["sequence_output"][mask], whole["sequence_output"][mask]) < 2e-6


@pytest.mark.parametrize("rematerializes", [False, True])
def test_long_rows_have_the_gradients_of_short_ones(rematerializes, monkeypatch):
    """Where the backward pass computes scores of a part of the queries again."""
    monkeypatch.setattr(layers, "_LEAST_BLOCK", 1)
    keras.utils.set_random_seed(1)
    net = networks.build(ModernBertConfig(**SMALL))
    inputs = {"input_ids": np.arange(60).reshape(1, 60) % 50,
              "input_mask": np.ones((1, 60), "int32")}
    weights = [v.value for v in net.layers_[0].trainable_variables]

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            outputs = net(inputs, training=True, dropout_seed=tf.constant([1, 2]))
            loss = tf.reduce_sum(outputs["sequence_output"][:, :, :3]**3)
        return tape.gradient(loss, weights)

    whole = gradients.python_function()
    net.rematerializes = rematerializes
    monkeypatch.setattr(layers, "_QUERIES", 25)
    monkeypatch.setattr(layers, "_WHOLE", 50)
    for one, other in zip(whole, gradients()):
        assert off(one, other) < 1e-5 * np.abs(one).max()


@pytest.mark.parametrize("compiles", [False, True])
def test_a_graph_of_any_length_takes_long_rows_in_parts(compiles, monkeypatch):
    """Short rows stay equal to the last bit; ONNX's graph has no loop."""
    monkeypatch.setattr(layers, "_QUERIES", 25)
    keras.utils.set_random_seed(1)
    net = networks.build(ModernBertConfig(
        **{**SMALL, "num_hidden_layers": 2}, initializer_range=0.3))
    inputs = {"input_ids": (np.arange(120).reshape(2, 60) % 50).astype("int32"),
              "input_mask": (np.arange(60) < [[60], [41]]).astype("int32")}

    def outputs(most):
        monkeypatch.setattr(layers, "_WHOLE", most)
        return tf.function(
            lambda *values: net(dict(zip(inputs, values)))["sequence_output"], autograph=False,
            jit_compile=compiles, input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)(
                *inputs.values())

    tf.config.run_functions_eagerly(False)
    short = outputs(60)
    with no_branches():
        whole = outputs(59)
    monkeypatch.setattr(layers, "attend", lambda query, *_: (0 * query, {}))    # of short rows
    assert off(outputs(59), whole) < 1e-5
    assert np.array_equal(short, whole)
    if not compiles:
        exported = IdsModel(net).library_function.get_concrete_function().graph
        assert not {"If", "While", "StatelessIf", "StatelessWhile"} & {
            node.op for node in exported.as_graph_def().node}


def test_sequences_of_one_row_are_separate(test_data, form, monkeypatch):
    monkeypatch.setattr(layers, "_QUERIES", 50)
    monkeypatch.setattr(layers, "_WHOLE", 50)       # fewer than the row has
    golden = np.load(test_data / "golden" / "modernbert" / "packed_windowed.npz")
    net = open_model(test_data / "golden" / "modernbert" / "mlm_windowed").network()
    numbers = np.cumsum(golden["position_ids"] == 0, axis=1)
    padding = np.zeros((1, 7), "int32")
    outputs = net({"input_ids": np.concatenate([golden["input_ids"], padding + 3], 1),
                   "input_mask": np.concatenate([numbers > 0, padding], 1).astype("int32"),
                   "sequence_ids": np.concatenate([numbers, padding], 1).astype("int32")})
    assert off(outputs["sequence_output"][:, :-7], golden["last_hidden_state"]) < 1e-5


def test_packed_rows_are_separate(test_data):
    golden = np.load(test_data / "golden" / "modernbert" / "packed_windowed.npz")
    plain = np.load(test_data / "golden" / "modernbert" / "forward_windowed.npz")
    net = open_model(test_data / "golden" / "modernbert" / "mlm_windowed").network()
    lengths = plain["attention_mask"].sum(1)
    length = plain["input_ids"].shape[1]
    packed = np.full((2, length), -1)
    at = np.zeros(plain["input_ids"].shape, "int32")
    place = 0
    for row, count in enumerate(lengths):
        for position in range(count):
            r, c = (0, position) if row == 0 else (1, place)
            packed[r, c], at[row, position] = row * length + position, r * length + c
            place += row > 0
    outputs = net({"input_ids": plain["input_ids"], "input_mask": plain["attention_mask"],
                   "packed_from": packed, "packed_at": at})
    real = plain["attention_mask"] > 0
    assert off(np.array(outputs["sequence_output"])[real], plain["last_hidden_state"][real]) < 1e-5
    assert off(np.array(outputs["sequence_output"])[real],
               golden["last_hidden_state"][0, :lengths.sum()]) < 1e-5


def test_rotary_tables_are_the_originals_in_every_dtype():
    """PyTorch rounds the frequencies twice; one rounding alone would be off by 5e-5 here."""
    config = ModernBertConfig(**{**SMALL, "hidden_size": 20})
    turns = layers.rotary_angles(config, np.array([[8191]]))
    for kind, cosines in (         # of torch 2.13, theta 160,000 and 10,000
            ("full_attention", [-0.6463905, -0.49357423, 0.32166266, 0.9944983, 0.845981]),
            ("sliding_attention", [-0.6463905, -0.75948894, -0.02570453, 0.3688534, 0.440165])):
        assert off(turns[kind][0][0, 0, 0], np.array(cosines)) < 1e-6
        assert "float32" in str(turns[kind][0].dtype)
    net = networks.build(config, dtype="mixed_bfloat16")
    assert net({"input_ids": np.ones((1, 5), "int32")})["sequence_output"].dtype == "bfloat16"
