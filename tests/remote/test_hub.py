"""Models of the Hugging Face Hub by name, from a small server of its protocol."""

import json
import os

import huggingface_hub
import huggingface_hub.constants
import huggingface_hub.file_download
import huggingface_hub.hf_api
import huggingface_hub.utils
import keras
import numpy as np
import pytest
from absl import flags as absl_flags
from safetensors.numpy import load, save

import bert_tf
from bert_tf import checkpoints, files, model_card
from bert_tf.errors import InputError
from bert_tf.files import hub as ours
from bert_tf.files import in_card, places, snapshot_of
from bert_tf.flags import parsing
from bert_tf.opening import open_model
from bert_tf.tokenization import open_tokenizer
from run_scripts.fill_mask import FillMaskFlags
from tests import hub_server
from tests.hub_server import COMMIT
from tests.programs import refused
from tests.rounding import assert_same
from tests.training import tiny

NEVER = {"pytorch_model.bin": b"\x80\x04never", "tf_model.h5": b"never", "tokenizer.json": b"{}",
         "onnx/model.onnx": b"never", "README.md": b"---\nlicense: apache-2.0\n---\n"}
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(tiny.VOCAB - 5))]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder in Hugging Face's format, and the network that it was made of."""
    folder = tmp_path_factory.mktemp("hub")
    keras.utils.set_random_seed(3)
    network = bert_tf.BertEncoder(tiny.config(num_hidden_layers=1))
    learner = bert_tf.Learner(network, [])
    learner.encoder.config.to_json_file(folder / "bert_config.json")
    learner.save(str(folder / "model.keras"))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    checkpoints.convert(str(folder / "model.keras"), str(folder / "out"), "huggingface")
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}, network


@pytest.fixture
def hub(model, tmp_path, monkeypatch):
    with hub_server.serve() as (hub, address):
        hub.models["us/tiny"] = {**model[0], **NEVER}
        hub.models["us/pickled"] = {"config.json": b"{}", "pytorch_model.bin": b"never"}
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        for module in (huggingface_hub.constants, huggingface_hub.hf_api,
                       huggingface_hub.file_download):
            for name, value in (("ENDPOINT", address), ("HUGGINGFACE_CO_URL_HOME", address),
                                ("HUGGINGFACE_CO_URL_TEMPLATE", template)):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", address)
        constants = huggingface_hub.constants
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(places, "COPIES", {})
        forget()
        yield hub
        forget()


def forget():
    """Begins as a new process does."""
    ours.local_copy.cache_clear()
    if hasattr(huggingface_hub.utils, "reset_sessions"):        # of versions before 1
        huggingface_hub.utils.reset_sessions()


def fetched_files(hub):
    return {line.partition(f"/resolve/{COMMIT}/")[2] for line in hub.asked if "/resolve/" in line}


def test_only_files_that_are_read_are_fetched_once(hub, model, capsys):
    network = bert_tf.BertEncoder.from_pretrained("hf://us/tiny")
    assert_same(network.get_weights(), model[1].get_weights())
    assert fetched_files(hub) == {"config.json", "model.safetensors", "vocab.txt",
                                  "tokenizer_config.json", "README.md"}
    out, said = capsys.readouterr()     # predictions may go to standard output
    assert not out
    assert f"hf://us/tiny@{COMMIT}, licence apache-2.0" in said
    assert next(iter(places.COPIES.values())).commit == COMMIT
    hub.asked.clear()
    forget()
    assert open_model("hf://us/tiny").tokenizer.vocabulary.size == tiny.VOCAB
    assert not fetched_files(hub)
    folder = files.fetched(f"hf://us/tiny@{COMMIT}")
    assert snapshot_of(f"{folder}/vocab.txt").licence == "apache-2.0"
    assert open_tokenizer(f"hf://us/tiny@{COMMIT}").vocabulary.tokens == TOKENS
    assert not fetched_files(hub)


def test_what_sentence_transformers_does_is_fetched():
    names = ["model.safetensors", "modules.json", "1_Pooling/config.json", "2_Dense/config.json",
             "sentence_bert_config.json", "config_sentence_transformers.json", "onnx/config.json"]
    assert {*names} - {*ours._wanted("hf://us/tiny", names, "", True)} == {names[-1]}


@pytest.mark.parametrize("names, is_wanted", [
    (("config.json", "tokenizer.json"), True), (("spiece.model", "tokenizer.json"), False),
    (("merges.txt", "tokenizer.json", "vocab.json"), False)])
def test_a_new_vocabulary_is_fetched_where_there_is_no_other(names, is_wanted):
    assert ("tokenizer.json" in ours._wanted("hf://us/tiny", names, "", False)) == is_wanted


def test_added_tokens_are_told(hub, capsys):
    hub.models["us/tiny"]["added_tokens.json"] = b'{"<e1>": 99}'
    open_tokenizer("hf://us/tiny")
    assert "(<e1>)" in capsys.readouterr().err


def test_a_vocabulary_needs_no_weights(hub):
    assert open_tokenizer("hf://us/tiny").vocabulary.size == tiny.VOCAB
    assert open_tokenizer("hf://us/tiny/vocab.txt").vocabulary.size == tiny.VOCAB
    assert "model.safetensors" not in fetched_files(hub)


def test_weights_in_several_files_are_fetched_by_their_index(hub, model):
    tensors = load(model[0]["model.safetensors"])
    names = sorted(tensors)
    parts = {f"model-{number}-of-2.safetensors": names[number - 1::2] for number in (1, 2)}
    shards = {file: save({name: tensors[name] for name in part}) for file, part in parts.items()}
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    hub.models["us/parts"] = {
        **{name: data for name, data in model[0].items() if name != "model.safetensors"}, **shards,
        "model.safetensors.index.json": json.dumps(index).encode(), "other.safetensors": b"never"}
    network = bert_tf.BertEncoder.from_pretrained("hf://us/parts")
    np.testing.assert_array_equal(network.weights[0], model[1].weights[0])
    assert "other.safetensors" not in fetched_files(hub)


@pytest.mark.parametrize("is_offline", [True, False])
def test_what_was_used_before_needs_no_network(hub, monkeypatch, capsys, is_offline):
    folder = files.fetched("hf://us/tiny")
    forget()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", is_offline)
    capsys.readouterr()
    assert files.fetched("hf://us/tiny") == folder
    assert ("The earlier download is used" in capsys.readouterr().err) != is_offline
    with pytest.raises(InputError, match="the Hub can't be reached"):
        files.fetched("hf://us/pickled")


@pytest.mark.parametrize("name, message", [
    ("hf://us/pickled", "pytorch_model.bin isn't fetched, because"),
    ("hf://us/tiny/pytorch_model.bin", "pytorch_model.bin isn't fetched, because"),
    ("hf://us/absent", "hf://us/absent is not a model of the Hub, or a private one"),
    ("hf://closed/x", "is open only to those who accepted its terms"),
    ("hf://us/tiny@old", "has no such revision"),
    ("hf://tiny", "as hf://OWNER/NAME"),
])
def test_what_can_not_be_taken_is_said_in_one_sentence(hub, name, message):
    with refused(message):
        files.fetched(name)
    assert not fetched_files(hub)


def test_a_cut_is_made_up_for(hub, model):
    hub.cut = 3
    with open(os.path.join(files.fetched("hf://us/tiny"), "model.safetensors"), "rb") as file:
        assert file.read() == model[0]["model.safetensors"]


def test_flags_take_names(hub, tmp_path):
    values = absl_flags.FlagValues()
    parsing.define(FillMaskFlags, values)
    values(["x", "--init_checkpoint=hf://us/tiny", "--input_file=-"])
    job = parsing.read(FillMaskFlags, values)
    assert job.init_checkpoint == files.fetched("hf://us/tiny")
    values(["x", "--init_checkpoint=hf://us/absent"])
    with pytest.raises(InputError, match="--init_checkpoint: hf://us/absent is not a model"):
        parsing.read(FillMaskFlags, values)
    values(["x", "--init_checkpoint=a", "--output_file=hf://us/tiny"])
    with pytest.raises(InputError, match="--output_file: .* can't be written"):
        parsing.read(FillMaskFlags, values)


@pytest.mark.usefixtures("eagerly")
def test_python_takes_names_and_the_card_says_whose_model_it_was(hub, tmp_path, monkeypatch):
    files.fetched("hf://us/tiny")
    forget()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    asked = len(hub.asked)
    model = bert_tf.TextModel.from_pretrained("hf://us/tiny")
    assert model.path == bert_tf.TextModel("hf://us/tiny").path == files.fetched("hf://us/tiny")
    (tmp_path / "a.csv").write_text("body,folder\n" + "1 2 3,x\n4 5,y\n" * 4)
    bert_tf.finetune({"train_file": str(tmp_path / "a.csv"), "text_a_column": "body",
                      "label_column": "folder"}, "hf://us/tiny", tmp_path / "out",
                     max_seq_length=8, num_train_steps=1, train_batch_size=8, num_workers=1)
    text = (tmp_path / "out" / "README.md").read_text()
    assert text.startswith("---\nbase_model: us/tiny\nlibrary_name: bert_tf\nlicense: apache-2.0\n"
                           "pipeline_tag: text-classification\ntags:\n- bert\n---\n")
    assert f"weights of `hf://us/tiny@{COMMIT}`" in text and len(hub.asked) == asked


def test_a_card_names_no_folder_of_the_cache(hub, tmp_path):
    place = files.fetched("hf://us/tiny")
    text = model_card.card(str(tmp_path), place, f"bert-convert-checkpoint --input={place}")
    assert f"--input=hf://us/tiny@{COMMIT}\n" in text and place not in text


def test_a_damaged_head_of_a_card_says_nothing(tmp_path):
    card = tmp_path / "README.md"
    for head, licence in (("license: mit", "mit"), ("license: [mit", ""), ("language: en", "")):
        card.write_text(f"---\n{head}\n---\nText\n")
        assert in_card(card, "license") == licence
