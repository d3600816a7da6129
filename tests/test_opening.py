"""Models of every format are opened once; from_pretrained."""

import collections
import dataclasses
import json
import pathlib
import pickle
import shutil
import warnings

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints import loading
from bert_tf.checkpoints.weights import variables
from bert_tf.compression.integers import write_integers
from bert_tf.config import EncoderConfig, T5Config, XLNetConfig
from bert_tf.errors import InputError
from bert_tf.networks import build
from bert_tf.opening import open_model
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from bert_tf.training.train import save_model
from tests.tokenization.test_library_tokenizer import FORMS

GOLDEN = pathlib.Path(__file__).parent / "golden"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
SMALL = {"vocab_size": 31, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 16, "max_position_embeddings": 16}
BERT = EncoderConfig(**SMALL, type_vocab_size=2)
FORMATS = ["google", "huggingface", "model_garden", "keras_hub", "keras"]


def write_keras(folder, model):
    folder.mkdir()
    model.save(folder / "model.keras")
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY))
    return folder


@pytest.fixture
def reads(monkeypatch):
    """Counts how often headers are read and translated."""
    counts = collections.Counter()
    for form in loading.FORMATS.values():
        def read(*arguments, made=form.module.read, name=form.home):
            counts[name] += 1
            return made(*arguments)

        monkeypatch.setattr(form.module, "read", read)
    translate = loading.translate

    def translated(*arguments):
        counts["translated"] += 1
        return translate(*arguments)

    monkeypatch.setattr(loading, "translate", translated)
    return counts


def same(found, wanted):
    found, wanted = variables(found), variables(wanted)
    assert found.keys() == wanted.keys()
    for name, variable in wanted.items():
        assert np.array_equal(found[name], variable), name


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_opened_once(form, tmp_path, reads):
    network = build(BERT)
    folder = write_keras(tmp_path / "first", network)
    if form != "keras":
        checkpoints.convert(folder, tmp_path / form, form)
        folder = tmp_path / form
    reads.clear()
    model = open_model(folder)
    assert model.config.to_dict() == BERT.to_dict() and model.saved is None
    assert model.tokenizer.tokens(model.tokenizer.encode("b")) == ["b"]
    same(model.network(), network)
    home = loading.FORMATS[form].home
    # Google's and the Model Garden's files know each other.
    expected = {home, "checkpoints.google"} if form == "model_garden" else {home}
    assert reads == {**dict.fromkeys(expected, 1), "translated": 1}


@pytest.mark.parametrize("config", [
    T5Config(vocab_size=31, d_model=8, d_kv=3, d_ff=12, num_layers=1, num_heads=2),
    XLNetConfig(vocab_size=31, d_model=8, n_head=2, d_head=4, d_inner=12, n_layer=1)],
    ids=["t5", "xlnet"])
@pytest.mark.parametrize("form", ["google", "huggingface"])
def test_networks_with_a_module_of_their_own(config, form, tmp_path, reads):
    network = build(config)
    checkpoints.convert(write_keras(tmp_path / "first", network), tmp_path / form, form)
    reads.clear()
    model = open_model(tmp_path / form)
    assert type(model.config) is type(config)
    same(model.network(), network)
    assert reads == {f"checkpoints.{form}": 1, "translated": 1}


def write_finetuned(folder, objective=None):
    learner = bert_tf.Learner(build(BERT), [objective or bert_tf.Classification(BERT, 3)])
    folder.mkdir()
    save_model(str(folder), learner)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY))
    SavedTask(Task("own", "classification", {}, ("a", "b", "c")), 12, True).write(str(folder))
    return learner


@pytest.mark.parametrize("integers", [False, True])
def test_a_fine_tuned_model_comes_with_its_task_and_heads(tmp_path, reads, integers):
    learner, folder = write_finetuned(tmp_path / "tuned"), tmp_path / "tuned"
    if integers:
        model = open_model(folder, finetuned=True)
        quantised = dataclasses.replace(model.config, quantisation=bert_tf.config.quantisation
                                        .Quantisation(weight_bits=8))
        learner = dataclasses.replace(model, config=quantised).learner()
        folder = tmp_path / "integers"
        folder.mkdir()
        write_integers(str(folder), learner)
        model.saved.write(str(folder))
        model.tokenizer.save(str(folder))
    reads.clear()
    model = open_model(folder, finetuned=True)
    assert model.saved.task.labels == ("a", "b", "c") and model.saved.max_seq_length == 12
    assert [name for name, _ in model.heads] == ["Classification"]
    again = model.learner()
    if not integers:
        same(again, learner)
    kind = "quantised" if integers else "keras_file"
    assert reads == {f"checkpoints.{kind}": 1, "translated": 1}


def test_names_of_labels_go_into_files_of_hugging_face(tmp_path):
    folder = tmp_path / "tuned"
    write_finetuned(folder)
    named = Task("own", "classification", {}, ("0", "1", "2"), label_names=("x", "y", "z"))
    for number, (task, wanted) in enumerate(((None, ["a", "b", "c"]), (named, ["x", "y", "z"]))):
        if task:
            SavedTask(task, 12, True).write(str(folder))
            assert SavedTask.read(str(folder)).task.label_names == ("x", "y", "z")
        checkpoints.convert(folder / "model.keras", tmp_path / f"hf{number}", "huggingface")
        found = json.loads((tmp_path / f"hf{number}" / "config.json").read_text())
        assert list(found["id2label"].values()) == wanted


def test_a_classifier_that_google_names_by_no_task(tmp_path, reads):
    """The head that is asked for decides what `output_weights` is; the header is not read again."""
    learner = write_finetuned(tmp_path / "tuned", bert_tf.Regression(BERT))
    checkpoints.convert(tmp_path / "tuned" / "model.keras", tmp_path / "google", "google")
    reads.clear()
    model = open_model(tmp_path / "google")
    same(model.learner(heads=[("Regression", {})]), learner)
    assert reads == {"checkpoints.google": 1, "translated": 2}


def test_a_tokenizer_of_electra_keeps_its_settings(tmp_path):
    folder = write_keras(tmp_path / "run", build(EncoderConfig(**SMALL, model_type="electra")))
    (folder / "tokenizer_config.json").write_text('{"strip_accents": false}')
    assert open_model(folder).tokenizer.settings == {"strip_accents": False,
                                                     "drop_category_c": True}


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match="--init_checkpoint must be given, or --bert_config_file"):
        open_model("")
    folder = write_keras(tmp_path / "plain", build(BERT))
    with pytest.raises(InputError, match="there is no task.json in .*plain"):
        open_model(folder, finetuned=True)
    (folder / "other.txt").write_text("".join(f"{token}\n" for token in [*VOCABULARY[:-1], "zz"]))
    with pytest.raises(InputError, match="other.txt is not the model's vocabulary"):
        _ = open_model(folder, vocab_file=str(folder / "other.txt")).tokenizer
    (folder / "vocab.txt").unlink()
    (folder / "other.txt").unlink()
    with pytest.raises(InputError, match="--vocab_file must be given: there is no vocabulary"):
        _ = open_model(folder).tokenizer
    with pytest.raises(InputError, match="has no classification/dense/kernel.* trained for this"):
        open_model(folder).learner(heads=[("Classification", {"num_labels": 2})])
    shutil.copytree(GOLDEN / "hf_gelu", tmp_path / "gone")
    model = open_model(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(InputError, match="gone/model.safetensors: can't be read as safetensors"):
        model.network()


def test_random_weights_need_a_configuration_alone(tmp_path):
    BERT.to_json_file(tmp_path / "bert_config.json")
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY))
    model = open_model("", str(tmp_path / "bert_config.json"), str(tmp_path / "vocab.txt"))
    assert model.weights is None and model.config == BERT
    assert model.tokenizer.vocabulary.size == 31


# from_pretrained

def golden():
    expected = dict(np.load(GOLDEN / "hf_gelu" / "expected.npz"))
    return {name: expected[name] for name in ("input_ids", "input_mask", "segment_ids")}, expected


@pytest.mark.parametrize("objective, options, shape", [
    (bert_tf.Classification, {"num_labels": 3}, (3,)),
    (bert_tf.MultiLabel, {"num_labels": 4}, (4,)),
    (bert_tf.Regression, {}, (1,)),
    (bert_tf.AnswerSpan, {}, (2, None)),
    (bert_tf.Tagging, {"num_labels": 5}, (None, 5)),
    (bert_tf.FeatureTagging, {"num_labels": 5, "layers": "last", "lstm_size": 4}, (None, 5)),
    (bert_tf.MultipleChoice, {}, (None,)),
])
def test_each_task_says_that_its_head_is_new(objective, options, shape):
    inputs, expected = golden()
    with pytest.warns(UserWarning, match="has no .*/dense/kernel, .*/dense/bias; these keep"):
        learner = objective.from_pretrained(GOLDEN / "hf_gelu", **options)
    rows, length = inputs["input_ids"].shape
    if objective is bert_tf.MultipleChoice:
        inputs = {name: value[:, None] for name, value in inputs.items()}
        length = 1
    logits, = learner(inputs).values()
    assert logits.shape == (rows, *(size or length for size in shape))
    pooled = learner.encoder(golden()[0])["pooled_output"]
    assert np.allclose(pooled, expected["pooled_output"], atol=1e-5)


def test_heads_that_are_there_are_loaded():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bert_tf.MaskedLM.from_pretrained(GOLDEN / "hf_gelu")
        bert_tf.SentencePrediction.from_pretrained(GOLDEN / "hf_gelu")


def test_dtype():
    with pytest.warns(UserWarning):
        learner = bert_tf.Classification.from_pretrained(
            GOLDEN / "hf_gelu", num_labels=2, dtype="mixed_bfloat16")
    assert {layer.compute_dtype for layer in (learner.encoder, *learner.objectives)} == {"bfloat16"}


@pytest.mark.parametrize("name", ["GPT", "FixedPatternEncoder", "XLNet", "T5"])
def test_a_network_of_another_class_is_named(name):
    with pytest.raises(bert_tf.InputError, match="call bert_tf.Bert.from_pretrained"):
        getattr(bert_tf, name).from_pretrained(GOLDEN / "hf_gelu")

    class Own(bert_tf.BertEncoder):
        """A user's subclass."""

    assert isinstance(Own.from_pretrained(GOLDEN / "hf_gelu"), Own)


def test_a_folder_without_a_checkpoint_says_what_it_holds(tmp_path):
    def said():
        with pytest.raises(bert_tf.InputError) as error:
            bert_tf.checkpoints.read(tmp_path)
        return str(error.value)

    assert "holds no checkpoint: no TensorFlow checkpoint" in said()
    # As of a Trainer, or of an old sentence encoder.
    shutil.copytree(GOLDEN / "hf_gelu", tmp_path / "0_Transformer")
    assert said().endswith(f"itself; name a folder in it that does: {tmp_path}/0_Transformer.")
    (tmp_path / "saved_model.pb").touch()
    assert "is a SavedModel, as of TensorFlow Hub, which is not read" in said()
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "model.safetensors is a pointer of Git LFS" in said()
    # transformers would add it to the weights.
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "holds an adapter, such as LoRA's, which is not read" in said()


def test_a_functional_model_holds_the_weights_and_is_saved(tmp_path):
    inputs, expected = golden()
    ids = {name: keras.Input((None,), dtype="int32", name=name) for name in inputs}
    encoder = bert_tf.BertEncoder.from_pretrained(GOLDEN / "hf_gelu")
    model = keras.Model(ids, keras.layers.Dense(3)(encoder(ids)["pooled_output"]))
    model.layers[-1].kernel.assign(np.eye(expected["pooled_output"].shape[1], 3))
    model.save(tmp_path / "functional.keras")
    loaded = keras.models.load_model(tmp_path / "functional.keras")
    assert np.allclose(loaded(inputs), expected["pooled_output"][:, :3], atol=1e-5)


def test_the_summary_names_every_part(capsys):
    with pytest.warns(UserWarning):
        learner = bert_tf.Classification.from_pretrained(GOLDEN / "hf_gelu", num_labels=3)
    learner.summary(expand_nested=True, line_length=100)
    shown = capsys.readouterr().out
    for name in ("bert (Bert)", "embeddings (Embeddings)", "layer_0 (TransformerLayer)",
                 "classification (Classification)", f"{learner.count_params():,}"):
        assert name in shown


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_heads_tell_two_texts_apart_where_the_network_reads_no_segments(tmp_path, kind):
    """The tokenizer of XLM-RoBERTa gives both texts the segment 0, which a BERT reads."""
    peer = FORMS["xlm_roberta"][0]()
    peer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps(
        {**SMALL, "vocab_size": peer.get_vocab_size(), "model_type": kind}))
    tokenizer = open_model("", str(tmp_path / "config.json"),
                           str(tmp_path / "tokenizer.json")).tokenizer
    expected = [int(owner == 1 and kind == "roberta")
                for owner in peer.encode("the cat", "sat").sequence_ids]
    for one in (tokenizer, pickle.loads(pickle.dumps(tokenizer))):
        assert one(("the cat", "sat"))["segment_ids"][0, :-1].tolist() == expected[:-1]


def test_a_head_without_its_pooler_asks_for_a_complete_file(tmp_path):
    learner = bert_tf.training.Learner(build(BERT), [bert_tf.objectives.Classification(BERT, 2)])
    learner.untrained = ("pooler/dense/kernel", "pooler/dense/bias")
    write_keras(tmp_path / "a", learner)
    with pytest.raises(InputError, match="no pooler.*bias, which its head reads; use a complete"):
        open_model(tmp_path / "a").learner()
