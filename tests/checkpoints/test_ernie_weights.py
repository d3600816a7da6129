"""ERNIE's checkpoints in Hugging Face's and Paddle's files, against transformers' and Paddle's own
numbers (the files of $BERT_TF_TEST_DATA)."""

import json
import shutil
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints import conversion, loading
from bert_tf.errors import InputError
from bert_tf.models.ernie import weights as paddle
from tests.goldens import at_hand
from tests.rounding import ROUNDED, assert_same, off

VERSIONS = (1, 2)
# What Paddle's names begin with that transformers' files of the same weights do not hold.
TASK = "sentence_order_fc"


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    folder = test_data / "golden" / "ernie"
    return lambda version: (folder / f"hf_ernie_v{version}_seed1",
                            np.load(folder / f"forward_v{version}_seed1.npz"))


def weights_of(forward):
    """Paddle's weights by its names."""
    return {name.removeprefix("weight/"): forward[name]
            for name in forward.files if name.startswith("weight/")}


def write_variable(path, value):
    """A LoDTensor as Paddle 1.8 writes it, from its specification: no levels, float32."""
    axes = b"".join(struct.pack("BB" if size < 128 else "BBB", 0x10, *(
        (size,) if size < 128 else (size % 128 + 128, size // 128))) for size in value.shape)
    description = b"\x08\x05" + axes
    path.write_bytes(struct.pack("<IQIi", 0, 0, 0, len(description)) + description
                     + value.astype("<f4").tobytes())


def read_variable(path):
    """The numbers of such a file, in one row."""
    content = path.read_bytes()
    size = struct.unpack_from("<i", content, 16)[0]
    return np.frombuffer(content[20 + size:], "<f4")


@pytest.mark.parametrize("version", at_hand("golden/ernie/forward_v{}_seed1.npz", VERSIONS))
def test_huggingface_files_give_transformers_numbers(golden, version):
    folder, _ = golden(version)
    expected = np.load(folder / "expected.npz")
    config = loading.read_config(folder)
    assert (config.layer_norm_eps, config.hidden_act) == (1e-5, ("relu", "gelu_erf")[version - 1])
    network = bert_tf.BertEncoder(config)
    learner = bert_tf.Learner(network, [bert_tf.MaskedLM(config)])
    account = checkpoints.load(folder, learner)
    assert not account.missing
    names = ("input_ids", "input_mask", "segment_ids", "task_ids")
    inputs = {name: expected[name].astype("int32") for name in names}
    outputs = network(inputs)
    real = inputs["input_mask"] > 0
    found = {"embedding_output": outputs["embedding_output"],
             **{f"layer_{i + 1}": x for i, x in enumerate(outputs["layer_outputs"])}}
    length = real.shape[1]
    found["mlm_logits"] = learner.objectives[0](outputs, {
        "masked_lm_positions": np.tile(np.arange(length), (len(real), 1))},
        network.embedding_table)
    for name in found.keys() & expected:
        assert off(np.asarray(found[name])[real], expected[name][real]) < ROUNDED, name


@pytest.mark.parametrize("version", at_hand("golden/ernie/forward_v{}_seed1.npz", VERSIONS))
def test_paddle_and_huggingface_hold_the_same(golden, version, tmp_path):
    folder, forward = golden(version)
    wanted = {name: value for name, value in weights_of(forward).items()
              if not name.startswith(TASK) and not (version == 2 and "next_sent" in name)}
    account = conversion.convert(folder, tmp_path / "paddle", "paddle")
    files = {path.name: read_variable(path) for path in (tmp_path / "paddle/params").iterdir()}
    if version == 2:        # transformers has drawn a head for it
        files = {name: value for name, value in files.items() if "next_sent" not in name}
    assert_same(files, {name: value.ravel() for name, value in wanted.items()})
    assert len(account.mapped) == len(wanted) + 2 * (version == 2)
    values = json.loads((tmp_path / "paddle/ernie_config.json").read_text())
    assert (values["hidden_act"], values.get("task_type_vocab_size")) == (
        ("relu", "gelu")[version - 1], (3, 16)[version - 1])
    # And back, from files as Paddle writes them.
    params = tmp_path / "theirs" / "params"
    params.mkdir(parents=True)
    for name, value in weights_of(forward).items():
        write_variable(params / name, value)
    (params / "word_embedding_moment1_0").write_bytes((params / "word_embedding").read_bytes())
    shutil.copy(tmp_path / "paddle/ernie_config.json", params.parent)
    account = conversion.convert(params.parent, tmp_path / "back", "huggingface")
    assert "1 not used: of the optimizer" in str(account)
    assert ("2 not used: of the head sentence_order, which the format huggingface"
            in str(account)) == (version == 2)
    mine, theirs = (load_file(where / "model.safetensors") for where in (tmp_path / "back", folder))
    mine, theirs = ({name.removeprefix("ernie."): value for name, value in held.items()}
                    for held in (mine, theirs))
    assert theirs.keys() - mine.keys() <= {
        "cls.seq_relationship.weight", "cls.seq_relationship.bias"}
    assert_same(mine, {name: theirs[name] for name in mine})
    described, original = (json.loads((where / "config.json").read_text())
                           for where in (tmp_path / "back", folder))
    for key in ("model_type", "hidden_act", "layer_norm_eps", "type_vocab_size", "vocab_size",
                "max_position_embeddings", "intermediate_size"):
        assert described[key] == original[key], key
    assert described["use_task_id"] is (version == 2)


def tiny_weights(**sizes):
    return bert_tf.BertEncoder(bert_tf.EncoderConfig(**{
        "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "hidden_act": "relu", "max_position_embeddings": 6,
        "type_vocab_size": 2, "layer_norm_eps": 1e-5, "model_type": "ernie", **sizes}))


@pytest.mark.parametrize("sizes, problem", [
    ({"layer_norm_eps": 1e-12}, "layer_norm_eps is 1e-12"),
    ({"intermediate_size": 16}, "intermediate_size is 16"),
    ({"hidden_act": "gelu"}, "hidden_act is gelu.*--hidden_act=gelu_erf"),
    ({"model_type": "bert"}, "model_type is bert")])
def test_what_ernies_code_would_compute_otherwise_is_refused(sizes, problem):
    config = tiny_weights(**sizes).config
    weights = checkpoints.weights.Weights("x", config, {}, {})
    with pytest.raises(InputError, match=problem):
        paddle.table_for(weights)


def test_a_damaged_variable_is_named(tmp_path):
    (tmp_path / "params").mkdir()
    path = tmp_path / "params" / "word_embedding"
    write_variable(path, np.ones((3, 4)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="word_embedding is not a variable of Paddle"):
        loading.read_source(tmp_path)


def test_an_unused_table_of_tasks_is_ignored(tmp_path):
    """A model with the table, and a configuration without use_task_id, as ERNIE 2.0 released."""
    network = tiny_weights(use_task_id=True, task_type_vocab_size=4)
    params = tmp_path / "params"
    params.mkdir()
    named = checkpoints.weights.variables(network)
    tensors = {name: checkpoints.rules.Tensor(name, tuple(v.shape), "float32", v.numpy)
               for name, v in named.items()}
    table = paddle.table_for(checkpoints.weights.Weights("x", network.config, {}, {}))
    for name, tensor in checkpoints.weights.to_table(
            checkpoints.weights.Weights("x", network.config, tensors, {}), table).items():
        write_variable(params / name, tensor.read())
    values = {key: value for key, value in network.config.to_dict().items() if key not in (
        "use_task_id", "model_type", "layer_norm_eps")}
    (tmp_path / "ernie_config.json").write_text(json.dumps(values))
    weights = loading.read(tmp_path)
    assert not weights.config.use_task_id
    assert weights.ignored == {"task_embedding": "a table of tasks that use_task_id leaves unused"}
    # A network of tasks begins with the weights of one that knew none.
    account = checkpoints.weights.assign(network, weights)
    assert account.missing == ["embeddings/task_type_embeddings"]
    again = loading.read_for(tmp_path, network.config)
    assert again.tensors.keys() == {*weights.tensors, "embeddings/task_type_embeddings"}
    (params / "task_embedding").unlink()
    assert loading.read_for(tmp_path, network.config).tensors.keys() == weights.tensors.keys()
    # Task 0 is what a model without task ids sees.
    plain = bert_tf.BertEncoder(weights.config)
    checkpoints.weights.assign(plain, weights)
    ids = {"input_ids": np.array([[1, 2, 3]])}
    network.embeddings.task_embeddings.assign(np.zeros((4, 8)))
    assert np.array_equal(plain(ids)["sequence_output"], network(ids)["sequence_output"])


def test_tasks_and_their_embeddings_pass_through_our_own_files(tmp_path):
    network = tiny_weights(use_task_id=True, task_type_vocab_size=4)
    heads = (bert_tf.MaskedLM, bert_tf.Capitalization, bert_tf.TokenDocument,
             bert_tf.SentenceReordering, bert_tf.SentenceDistance,
             bert_tf.DiscourseRelation, bert_tf.IrRelevance)
    learner = bert_tf.Learner(network, [head(network.config) for head in heads])
    held = {name: v.numpy() for name, v in checkpoints.weights.variables(learner).items()}
    learner.save(tmp_path / "model.keras")
    conversion.convert(tmp_path / "model.keras", tmp_path / "paddle", "paddle")
    conversion.convert(tmp_path / "paddle", tmp_path / "back", "keras")
    for folder in ("model.keras", "back"):
        weights = loading.read(tmp_path / folder)
        assert weights.config == network.config
        assert_same({name: one.read() for name, one in weights.tensors.items()}, held)
    account = conversion.convert(tmp_path / "back", tmp_path / "hf", "huggingface")
    assert "2 not used: of the head capitalization, which the format huggingface" in str(account)
    assert "embeddings.task_type_embeddings.weight" in "".join(
        load_file(tmp_path / "hf" / "model.safetensors"))
