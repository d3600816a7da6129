"""Further pre-training in one command: a model's folder and a text."""

import dataclasses
import json
import os
import re
import shutil

import numpy as np
import pytest

from bert_tf import checkpoints, data, objectives, recipes
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.checkpoints import checksummed
from bert_tf.errors import InputError, warn
from bert_tf.networks import build
from bert_tf.opening import open_model
from bert_tf.tokenization import open_tokenizer
from bert_tf.training import Learner, resume, save_model
from bert_tf.training.settings import TrainSettings
from data_prep import create_pretraining_data
from run_scripts import run_pretraining
from run_scripts.pretraining.flags import PretrainingFlags, is_text, recipe_defaults, text_defaults
from tests.data_prep.conftest import TOKENS, WORDS
from tests.programs import share_out
from tests.rounding import assert_same
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
SIZES = {"vocab_size": len(TOKENS), "num_hidden_layers": 1}


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    """Six documents of five sentences."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    rng = np.random.default_rng(1)
    path.write_text("\n".join(
        "".join(" ".join(rng.choice(WORDS, 6)) + ".\n" for _ in range(5)) for _ in range(6)),
        encoding="utf-8")
    return str(path)


@pytest.fixture(name="model")
def fixture_model(tmp_path):
    def write(model_type="bert", heads=(MaskedLM,), name="model", **overrides):
        recipe = recipes.RECIPES.get(model_type) or dataclasses.replace(
            recipes.RECIPES["bert"], sizes={"model_type": model_type})
        config = tiny.config_of(recipe, **SIZES, **overrides)
        folder = tmp_path / name
        folder.mkdir()
        (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
        save_model(str(folder), Learner(build(config), [head(config) for head in heads]))
        return str(folder)
    return write


def train(folder, text, output, steps=4, **changes):
    """One run of the command; returns the last checkpoint's tensors, if there is one."""
    given = {"init_checkpoint": folder, "input_file": [text], "max_seq_length": tiny.LENGTH,
             "max_predictions_per_seq": 3, "output_dir": str(output), "train_batch_size": 8,
             "num_train_steps": steps, "num_warmup_steps": 1, "save_checkpoints_steps": 2,
             "iterations_per_loop": 2, "random_seed": 0, "pack": False, **changes}
    run_pretraining.main(*share_out(given, PretrainingFlags, TrainSettings))
    saved = resume.checkpoints(str(output))
    return checksummed.read(saved[-1])[0] if saved else {}


def manifest_of(output):
    return data.manifest.load_manifest(str(output / "records" / "input.manifest.json"))


@pytest.mark.parametrize("heads", [(MaskedLM,), (SentencePrediction,)])
def test_the_heads_that_are_there_are_trained(heads, model, text, tmp_path, capsys):
    is_paired = SentencePrediction in heads
    terms = {"masked_lm", *(["next_sentence"] if is_paired else [])}
    folder = model(heads=heads)
    trained = train(folder, text, tmp_path / "out", steps=1)
    out = capsys.readouterr().out
    assert ("no head for masked_lm: a new one is trained" in out) == (MaskedLM not in heads)
    assert ("next_sentence is left out" in out) == (not is_paired)
    assert {name.split("/")[1] for name in trained if name.startswith("learner/")} >= terms
    held = set(checkpoints.read(str(tmp_path / "out" / "model.keras")).heads) - {"pooler"}
    assert held == terms
    made = manifest_of(tmp_path / "out")
    assert made["recipe"]["corruption"]["dynamic"]
    assert made["recipe"]["segments"]["pairing"] == (
        "segment_pairs" if is_paired else "doc_sentences")
    assert ("next_sentence_labels" in made["features"]) == is_paired


def test_a_text_of_less_than_a_batch_is_told_before_training(model, text, tmp_path, capsys):
    warn.cache_clear()
    for batch, warned in ((8, []), (512, ["input_file"])):
        train(model(name=f"model_{batch}"), text, tmp_path / str(batch), steps=1, stop_at_step=0,
              do_train=True, do_eval=True, train_batch_size=batch, eval_batch_size=512)
        assert re.findall(
            r"warning: --(\w+) has \d+ records, less than one batch of --train_batch_size=512, so "
            "the results mean little; give more text", capsys.readouterr().err) == warned


@pytest.mark.parametrize("model_type", ["bert", "neobert", "nomic_bert"])
def test_the_command_resumes_bit_for_bit_and_ends_in_a_folder_of_a_model(
        model_type, model, text, tmp_path, capsys):
    folder = model(model_type)
    expected = train(folder, text, tmp_path / "whole", steps=3)
    if model_type == "bert":
        train(folder, text, tmp_path / "killed", steps=3, stop_at_step=2)
        again = train(folder, text, tmp_path / "killed", steps=3)
        assert "resuming at step 2" in capsys.readouterr().out
        assert_same(again, expected)
    before, after = open_model(folder), open_model(str(tmp_path / "whole"))
    assert after.config == before.config
    assert after.tokenizer.vocabulary.agrees(before.tokenizer.vocabulary)
    assert after.tokenizer.describe() == before.tokenizer.describe()
    # The run began with the model: 3 steps of a small rate leave it near.
    start, end = (opened.weights.tensors["encoder/layer_0/output/dense/kernel"].read()
                  for opened in (before, after))
    assert 0 < np.abs(start - end).max() < 1e-3


def test_the_tokenizer_of_the_folder_makes_the_records_and_its_pooling_stays(model, text, tmp_path):
    folder = model()
    described = {"modules.json": [{"type": "sentence_transformers.models.Pooling",
                                   "path": "1_Pooling"}],
                 "1_Pooling/config.json": {"pooling_mode_cls_token": True}}
    os.mkdir(os.path.join(folder, "1_Pooling"))
    for name, content in described.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"do_lower_case": False, "strip_accents": False}, file)
    wanted = open_model(folder).tokenizer
    assert not wanted.do_lower_case
    train(folder, text, tmp_path / "out", steps=1)
    kept = open_tokenizer(str(tmp_path / "out"))
    assert kept.describe() == wanted.describe()
    assert manifest_of(tmp_path / "out")["options"]["do_lower_case"] is False
    for name, content in described.items():     # how texts become vectors stays
        assert json.loads((tmp_path / "out" / name).read_text()) == content


def test_a_folder_of_hugging_face_and_its_configuration(model, text, tmp_path):
    """The one command, and records that were made before with --bert_config_file."""
    folder = str(tmp_path / "hf")
    checkpoints.convert(model(), folder, "huggingface")
    shutil.copy(tmp_path / "model" / "vocab.txt", folder)
    config = os.path.join(folder, "config.json")
    with open(config, encoding="utf-8") as file:
        values = json.load(file)
    with open(config, "w", encoding="utf-8") as file:
        json.dump({**values, "_name_or_path": "x", "transformers_version": "5.0"}, file)
    expected = train(folder, text, tmp_path / "one", steps=2)
    records = str(tmp_path / "one" / "records" / "input.manifest.json")
    for name, more in (("two", {"bert_config_file": config}), ("three", {})):
        same = train(folder, records, tmp_path / name, steps=2, do_train=True,
                     terms=["masked_lm"], **more)
        assert_same(same, expected)
    assert checkpoints.read_config_file(config) == checkpoints.read_config(folder)


@pytest.mark.parametrize("model_type, heads, recipe, terms, is_dynamic", [
    ("distilbert", (MaskedLM,), "bert", ["masked_lm"], True),
    ("electra", (MaskedLM,), "bert", ["masked_lm"], True),      # a generator alone
    ("ernie", (MaskedLM, SentencePrediction), "ernie", ["masked_lm", "next_sentence"], True),
    ("albert", (MaskedLM,), "albert", ["masked_lm"], True),
    ("albert", (MaskedLM, SentencePrediction), "albert", ["masked_lm", "sentence_order"], True),
    ("roberta", (MaskedLM,), "roberta", ["masked_lm"], True),
    ("structbert", (MaskedLM,), "structbert", ["masked_lm"], False)])
def test_relatives_keep_their_recipe(model_type, heads, recipe, terms, is_dynamic, model, text,
                                     tmp_path, monkeypatch, capsys):
    """tests/run_scripts/test_recipes.py trains each of them."""
    monkeypatch.setattr("bert_tf.training.train.Run.train", lambda run: None)
    more = {"type_vocab_size": 2} if model_type == "electra" else {}
    folder = model(model_type, heads, **more)
    train(folder, text, tmp_path / "out", steps=1)
    said = capsys.readouterr().out
    assert f"): {', '.join(terms)}" in said
    assert ("left out, since" in said) == (len(terms) == 1 and model_type not in ("roberta",))
    made = manifest_of(tmp_path / "out")["recipe"]
    assert (made["name"], made["corruption"]["dynamic"]) == (recipe, is_dynamic)


def test_electra_with_its_generator(model, text, tmp_path, capsys):
    """The checkpoint of a run has both networks, its model.keras the discriminator alone."""
    folder = model("electra", ())
    records = tmp_path / "r.tfrecord"
    create_pretraining_data.main(recipes.fill(
        create_pretraining_data.PretrainingDataFlags, "electra", input_file=[text],
        output_file=[str(records)], vocab_file=folder, max_seq_length=tiny.LENGTH,
        max_predictions_per_seq=3, num_workers=1))
    train("", str(records), tmp_path / "run", steps=1, do_train=True,
          bert_config_file=os.path.join(folder, "bert_config.json"))
    capsys.readouterr()
    train(str(tmp_path / "run"), text, tmp_path / "out", steps=1)
    said = capsys.readouterr().out
    assert "): masked_lm, replaced_token" in said and "initial weights from" in said
    assert "no head" not in said and "left out, since" not in said
    with pytest.raises(InputError, match="neither a masked LM nor the generator"):
        train(str(tmp_path / "run" / "model.keras"), text, tmp_path / "none", steps=1)


def test_text_is_refused_where_no_model_reads_it(model, text, tmp_path):
    folder = model()
    for changes, said in (
            ({"init_checkpoint": ""}, "is text, which is read with the tokenizer of"),
            ({"max_seq_length": 64}, "is more than the 16 positions"),
            ({"distribution_strategy": "multi_worker"}, "several machines")):
        with pytest.raises(InputError, match=said):
            train(folder, text, tmp_path / "out", **changes)
    for place in ("", resume.STAGE.format(1, 3)):
        other = tmp_path / f"other{place}"
        (other / place).mkdir(parents=True)
        (other / "bert_config.json").write_text('{"vocab_size": 5}')
        (other / place / "checkpoint-2.safetensors").touch()
        with pytest.raises(InputError, match=f"{other} holds a run whose vocab_size is 5, but"):
            train(folder, text, other)
        assert len(list(other.iterdir())) == 2      # no records yet
    tiny.write_records(tmp_path / "r.tfrecord", 4)
    assert not is_text([str(tmp_path / "r.tfrecord")]) and is_text([text])
    with pytest.raises(InputError, match="one of --input_file and --eval_input_file is text"):
        train(folder, text, tmp_path / "out", eval_input_file=[str(tmp_path / "r.tfrecord")])
    (tmp_path / "empty.txt").touch()
    assert is_text([str(tmp_path / "empty.txt"), text])
    with pytest.raises(InputError, match="empty.txt holds no text"):
        train(folder, str(tmp_path / "empty.txt"), tmp_path / "out")
    assert text_defaults({}, [str(tmp_path / "empty.txt")])["num_train_steps"] == 1
    with pytest.raises(InputError, match="no file matches"):
        train(folder, str(tmp_path / "absent.txt"), tmp_path / "out")


def test_networks_without_masked_words_are_refused(text, tmp_path):
    recipe = recipes.RECIPES["gpt"]
    config = tiny.config_of(recipe, **SIZES)
    folder = tmp_path / "gpt"
    folder.mkdir()
    save_model(str(folder), Learner(build(config), [objectives.TiedLM(config)]))
    with pytest.raises(InputError, match="is a openai-gpt, which learns no masked words"):
        train(str(folder), text, tmp_path / "out")


def test_a_held_out_text_is_scored_before_and_after(model, text, tmp_path, capsys):
    folder = model()
    train(folder, text, tmp_path / "out", steps=1, eval_input_file=[text], do_eval=True,
          do_train=True)
    assert (tmp_path / "out" / "records" / "eval.tfrecord").exists()
    for each in (model(name="wide", hidden_size=48), folder):       # one after the other
        given = PretrainingFlags(input_file=[text], init_checkpoint=each, do_eval=True,
                                 max_seq_length=tiny.LENGTH, max_predictions_per_seq=3)
        run_pretraining.main(given, TrainSettings(output_dir=str(tmp_path / "before")))
        assert "masked_lm_accuracy" in (tmp_path / "before" / "eval_results.txt").read_text()
        assert "\nrecords at step 0: loss" in capsys.readouterr().out     # none is trained on
    assert not (tmp_path / "before" / "model.keras").exists()


def test_defaults_of_a_text_follow_its_size(text):
    size = os.path.getsize(text)
    source, values = recipe_defaults({"init_checkpoint": "m", "input_file": [text],
                                      "max_seq_length": 32, "train_batch_size": 2})
    steps = -(-3 * size // (4 * 32 * 2))        # three readings of tokens of 4 bytes
    assert (source, values) == ("the text", {
        "max_predictions_per_seq": 5, "num_train_steps": steps, "num_warmup_steps": steps // 10})
    assert recipe_defaults({"input_file": [text]})[0] == "recipe bert"


def test_a_model_is_not_trained_further_in_its_own_folder(model, text):
    folder = model()
    before = sorted(os.listdir(folder))
    with pytest.raises(InputError, match="--output_dir is the folder of --init_checkpoint="):
        train(folder, text, folder, steps=1)
    assert sorted(os.listdir(folder)) == before
