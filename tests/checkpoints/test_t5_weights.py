"""T5's weights come in from checkpoints of the original and of transformers, and go out again."""

import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from bert_tf import checkpoints
from bert_tf.checkpoints.conversion import Changes
from bert_tf.checkpoints.weights import variables
from bert_tf.config import T5Config
from bert_tf.errors import InputError
from bert_tf.models.t5.network import T5
from bert_tf.models.t5.objective import SequenceLM
from bert_tf.training.learners.learner import Learner
from tests.goldens import at_hand, part
from tests.original_checkpoint import arrays_of
from tests.original_t5 import config_of, our_weights
from tests.rounding import assert_same

pytestmark = pytest.mark.usefixtures("eagerly")
VERSIONS = ("t5_v1_0", "t5_v1_1", "t5_lm")


def write_mesh(folder, arrays):
    """A checkpoint as the original leaves it."""
    arrays = {**arrays, "global_step": np.int64(3)}
    tf.raw_ops.SaveV2(prefix=str(folder / "model.ckpt-3"), tensor_names=list(arrays),
                      shape_and_slices=[""] * len(arrays),
                      tensors=[tf.constant(value) for value in arrays.values()])


@pytest.mark.parametrize("version", at_hand("golden/t5/{}_seed1.npz", VERSIONS))
def test_a_checkpoint_of_the_original_comes_in_and_out(version, test_data, tmp_path):
    golden = np.load(test_data / "golden" / "t5" / f"{version}_seed1.npz")
    theirs, slots = part(golden, "weights/"), part(golden, "adafactor_slot/")
    for name in ("mesh", "out"):
        (tmp_path / name).mkdir()
    write_mesh(tmp_path / "mesh", {**theirs, **slots})
    config = checkpoints.read_config(tmp_path / "mesh")
    wanted = config_of(json.loads(str(golden["config"])), dropout_rate=0.1, architecture=(
        "language_model" if version == "t5_lm" else "encoder_decoder"))
    assert config == wanted
    network = T5(config)
    account = checkpoints.load(tmp_path / "mesh", network)
    assert not account.missing and len(account.mapped) == len(theirs)
    assert len(account.ignored) == len(slots) + 1
    values = our_weights(golden)
    assert_same({name: v.numpy() for name, v in variables(network).items()}, values)
    forms = ("keras", "google") if version == "t5_lm" else ("huggingface", "keras", "google")
    source = tmp_path / "mesh"
    for form in forms:
        checkpoints.convert(str(source), str(tmp_path / form), form)
        source = tmp_path / form
        assert checkpoints.read_config(source) == wanted
    assert_same(arrays_of(tmp_path / "google" / "model.ckpt"), theirs)
    checkpoints.convert(str(source), str(tmp_path / "cut"), "keras", Changes(vocab_size=100))
    cut = T5(T5Config.from_dict({**config.to_dict(), "vocab_size": 100}))
    assert not checkpoints.load(tmp_path / "cut", cut).missing
    assert np.array_equal(variables(cut)["embeddings/word_embeddings"].numpy(),
                          values["embeddings/word_embeddings"][:100])
    if not config.tie_word_embeddings:
        assert np.array_equal(variables(cut)["logits/kernel"].numpy(),
                              values["logits/kernel"][:, :100])
    if version == "t5_lm":
        with pytest.raises(InputError, match="language_model, but Hugging Face's T5"):
            checkpoints.convert(str(source), str(tmp_path / "hf"), "huggingface")


def test_a_trained_model_is_read_with_all_that_a_stack_may_be(tmp_path):
    config = T5Config(vocab_size=128, d_model=8, d_kv=3, d_ff=16, num_layers=2, num_heads=2,
                      num_decoder_layers=3)
    learner = Learner(T5(config), [SequenceLM(config)])
    learner.save(tmp_path / "model.keras")
    for form, source in (("huggingface", ""), ("google", "huggingface"), ("keras", "google")):
        checkpoints.convert(str(tmp_path / source), str(tmp_path / form), form)
    other = Learner(T5(config), [SequenceLM(config)])
    assert not checkpoints.load(tmp_path / "keras", other).missing
    assert_same(other.get_weights(), learner.get_weights())
    values = json.loads((tmp_path / "huggingface" / "config.json").read_text())
    assert values["num_decoder_layers"] == 3 and values["is_encoder_decoder"]
    for key, value, message in (("feed_forward_proj", "gated-silu", "feed_forward_proj must be"),
                                ("decoder_start_token_id", 2, "start_token_id must be 0, .* not 2"),
                                ("eos_token_id", 2, "config.json: eos_token_id must be 1"),
                                ("pad_token_id", 1, "pad_token_id must be 0"),
                                ("d_kv", 4, "has the shape")):
        (tmp_path / "huggingface" / "config.json").write_text(json.dumps({**values, key: value}))
        with pytest.raises(InputError, match=message):
            checkpoints.read(tmp_path / "huggingface")


def test_other_classes_of_transformers_are_read_without_their_heads_or_refused(tmp_path):
    """T5ForSequenceClassification and T5EncoderModel."""
    T5(T5Config(30, d_model=8, d_kv=4, d_ff=12, num_layers=1, num_heads=2)).save(
        tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path / "model.keras"), str(tmp_path / "hf"), "huggingface")
    path, head = tmp_path / "hf" / "model.safetensors", "classification_head.dense.weight"
    tensors, held = load_file(path), checkpoints.read(tmp_path / "hf").tensors.keys()
    save_file({f"transformer.{name}": value for name, value in tensors.items()} | {
        head: np.eye(8)}, path)
    weights = checkpoints.read(tmp_path / "hf")
    assert weights.tensors.keys() == held and weights.ignored.keys() == {head}
    save_file({name: value for name, value in tensors.items() if "decoder" not in name}, path)
    with pytest.raises(InputError, match="holds T5's encoder without a decoder"):
        checkpoints.read(tmp_path / "hf")


@pytest.mark.peer
@pytest.mark.parametrize("version", ("v1_0", "v1_1"))
def test_transformers_computes_and_generates_the_same(version, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    torch.manual_seed(4)
    is_first = version == "v1_0"
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_decoder_layers=3,
        num_heads=4, feed_forward_proj="relu" if is_first else "gated-gelu",
        tie_word_embeddings=is_first, initializer_factor=1.0, decoder_start_token_id=0)).eval()
    if not is_first:        # transformers ties the matrix all the same when it makes a model
        model.lm_head.weight = torch.nn.Parameter(torch.randn(50, 16))
    model.save_pretrained(tmp_path / "theirs")
    config = checkpoints.read_config(tmp_path / "theirs")
    network = T5(config)
    assert not checkpoints.load(tmp_path / "theirs", network).missing
    assert len(variables(network)) == len(dict(model.named_parameters()))
    rng = np.random.default_rng(5)
    lengths = np.array([[150], [7], [90]])
    tokens = rng.integers(2, 50, (3, 150)) * (np.arange(150) < lengths)
    targets = rng.integers(2, 50, (3, 40))
    shifted = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
    inputs = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(tokens != 0)}
    outputs = network({"encoder_input_tokens": tokens.astype("int32"),
                       "decoder_input_tokens": shifted.astype("int32")})
    with torch.no_grad():
        wanted = model(**inputs, decoder_input_ids=torch.tensor(shifted)).logits.numpy()
        texts = model.generate(**inputs, max_new_tokens=20, do_sample=False,
                               use_cache=False).numpy()
    assert np.abs(np.array(network.logits(outputs["sequence_output"])) - wanted).max() < 2e-4
    found = np.array(network.generate(tf.constant(tokens, tf.int32), 20))
    texts = np.pad(texts[:, 1:], ((0, 0), (0, 20)))[:, :20]        # without the start
    assert np.array_equal(found, texts)
    checkpoints.convert(str(tmp_path / "theirs"), str(tmp_path / "ours"), "huggingface")
    again, info = transformers.T5ForConditionalGeneration.from_pretrained(
        tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert all(torch.equal(value, again.state_dict()[name])
               for name, value in model.state_dict().items())
