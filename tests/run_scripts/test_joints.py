"""What a command leaves in its folder, the next one finds: no vocabulary is named twice."""

import json
import os
import shutil
import sys
import types

import pytest

import bert_tf
from bert_tf import checkpoints, recipes
from bert_tf.errors import InputError
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.tokenization import default_case, open_tokenizer
from bert_tf.training.settings import TrainSettings
from data_prep import create_pretraining_data
from data_prep.pretraining_flags import PretrainingDataFlags
from run_scripts import run_pretraining
from run_scripts.analysis import pretraining
from run_scripts.finetune import carry_out
from run_scripts.pretraining.flags import PretrainingFlags, find_tokenizer, recipe_defaults
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
# No token has a capital letter, so that the vocabulary looks lower-case.
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "old", "cat", "saw", "a", "dog",
         "house", "and", "went", "."]
LINE = "the old cat saw a dog and went .\n"


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("joints")
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    (folder / "text.txt").write_text((LINE * 6 + "\n") * 8)
    tiny.config(vocab_size=len(WORDS), num_hidden_layers=1).to_json_file(folder / "config.json")
    make(folder)
    return folder


def make(folder, name="records", **options):
    create_pretraining_data.main(PretrainingDataFlags(**{
        "input_file": [str(folder / "text.txt")],
        "output_file": [str(folder / name / "train.tfrecord")],
        "vocab_file": str(folder / "vocab.txt"), "do_lower_case": False, "dupe_factor": 1,
        "max_seq_length": tiny.LENGTH, "max_predictions_per_seq": tiny.PREDICTIONS,
        "num_workers": 1, **options}))


def train(folder, output_dir, *settings, **options):
    given = {"input_file": [str(folder / "records")],
             "bert_config_file": str(folder / "config.json"), "do_train": True, "do_eval": True,
             "max_seq_length": tiny.LENGTH, "max_predictions_per_seq": tiny.PREDICTIONS, **options}
    run_pretraining.main(PretrainingFlags(**given), TrainSettings(
        output_dir=str(output_dir), num_train_steps=2, num_warmup_steps=1, train_batch_size=4,
        eval_batch_size=4), None, *settings)
    return output_dir


@pytest.fixture(name="run", scope="module")
def fixture_run(folder):
    return train(folder, folder / "run")


def test_records_and_the_run_keep_the_tokenizer(folder, run):
    for kept in (folder / "records" / "train.tokenizer", run):
        tokenizer = open_tokenizer(str(kept))
        assert tokenizer.vocabulary.tokens == WORDS and not tokenizer.do_lower_case
    assert (run / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()
    assert json.loads((run / "bert_config.json").read_text())["vocab_size"] == len(WORDS)


def test_the_report_of_records_says_how_long_they_are(folder, tmp_path, capsys):
    make(folder, output_file=[str(tmp_path / "r.tfrecord")])
    counts = json.loads((tmp_path / "r.manifest.json").read_text())["counts"]
    mean = counts["positions"] / counts["instances"]
    assert f"tokens ({mean:.0f} on average)" in capsys.readouterr().out


def test_later_commands_need_no_vocabulary(folder, run, tmp_path, capsys):
    fill = bert_tf.FillMask(run)
    assert fill.tokenizer.encode("The") == [WORDS.index("[UNK]")]     # which is not lower-cased
    checkpoints.convert(run, tmp_path / "hf", "huggingface")
    assert {"vocab.txt", "tokenizer_config.json"} <= set(os.listdir(tmp_path / "hf"))
    assert not json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())["do_lower_case"]
    assert bert_tf.Predictor(run)("the [MASK] .")["masks"] == fill("the [MASK] .")["masks"]
    records = str(folder / "records" / "train.tfrecord")
    capsys.readouterr()
    pretraining.main(pretraining.ShowPretrainingFlags(
        output_dir=str(run), input_file=records, eval_input_file=records,
        eval_text=str(folder / "text.txt")))
    shown = capsys.readouterr().out
    assert "[MASK]" in shown and "curves" not in shown


@pytest.mark.parametrize("given, wanted", [
    ({"num_train_steps": 50}, 5), ({"num_train_steps": 20_000}, None),
    ({"num_train_steps": 50, "num_warmup_steps": 60}, None),
    ({"num_train_steps": 50, "recipe": "albert"}, 5), ({"num_train_steps": 50, "recipe": "t5"},
                                                       None)])
def test_a_short_run_warms_up_for_a_tenth_of_its_steps(given, wanted):
    recipe = recipes.find(given.get("recipe", "bert"))
    found = recipe_defaults({"recipe": "bert", **given})[1].get("num_warmup_steps")
    assert found == (wanted or recipe.defaults.get("num_warmup_steps"))


@pytest.mark.parametrize("words, lower, wanted", [
    (["die"], True, True), (["die"], False, False), (["The"], False, False), (["the"], True, True),
    (["The", "the"], False, False)])
def test_fine_tuning_lower_cases_as_pre_training_did(words, lower, wanted, tmp_path):
    bert_tf.WordpieceTokenizer(bert_tf.Vocabulary([*WORDS[:5], *words]), lower).save(str(tmp_path))
    assert default_case(str(tmp_path / "vocab.txt")) == wanted
    assert open_tokenizer(str(tmp_path)).do_lower_case == wanted


@pytest.mark.parametrize("word, lower, wanted", [
    ("यह", False, False), ("यह", True, True), ("यह", None, True),
    # The tokens show it, as in Google's Chinese vocabulary, which Hugging Face calls cased.
    ("the", False, True), ("The", True, False)])
def test_fine_tuning_lower_cases_as_hugging_face_says(word, lower, wanted, tmp_path):
    tokens = [*WORDS[:5], word]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
    assert default_case(str(tmp_path / "vocab.txt")) == default_case(str(tmp_path)) == wanted


def test_short_sentences_are_shown_where_there_are_no_others(run, folder, tmp_path, capsys):
    (tmp_path / "own.txt").write_text("the old house .\n\nThe dog .\n")
    records = str(folder / "records" / "train.tfrecord")
    pretraining.main(pretraining.ShowPretrainingFlags(
        output_dir=str(run), input_file=records, eval_input_file=records,
        eval_text=str(tmp_path / "own.txt")))
    assert capsys.readouterr().out.count("[MASK]") == 2


def test_the_generator_of_electra_has_the_tokenizer_too(folder, tmp_path):
    make(folder, "electra", recipe="electra", output_file=[str(tmp_path / "e.tfrecord")])
    tiny.config(vocab_size=len(WORDS), num_hidden_layers=1, model_type="electra",
                hidden_size=64).to_json_file(tmp_path / "config.json")
    run = train(folder, tmp_path / "run", GeneratorSettings(generator_hidden_size=1.0),
                input_file=[str(tmp_path / "e.tfrecord")], do_eval=False,
                bert_config_file=str(tmp_path / "config.json"))
    for each in (run, run / "generator"):
        assert bert_tf.FillMask(each)("the [MASK]")["masks"]


@pytest.mark.parametrize("name", ["settings", "config"])
@pytest.mark.parametrize("settings", [{}, {"strip_accents": True}])
def test_a_named_vocabulary_has_the_settings_of_the_records(folder, tmp_path, settings, name):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    shutil.copy(folder / "vocab.txt", tmp_path / "vocab.txt")
    make(folder, output_file=[str(tmp_path / "r.tfrecord")], vocab_file=str(tmp_path / "vocab.txt"))
    other = tmp_path / "other" / "vocab.txt"
    other.parent.mkdir()
    shutil.copy(folder / "vocab.txt", other)
    (other.parent / f"tokenizer_{name}.json").write_text('{"tokenize_chinese_chars": false}')
    found = find_tokenizer(PretrainingFlags(
        input_file=[str(tmp_path / "r.tfrecord")], vocab_file=str(other)))
    assert found.describe() == {"name": "wordpiece", "do_lower_case": False, **settings}


def test_another_vocabulary_is_refused_and_older_records_take_one(folder, tmp_path):
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in [*WORDS[:-1], "!"]))
    with pytest.raises(InputError, match="did not make the records"):
        train(folder, tmp_path / "run", vocab_file=str(tmp_path / "vocab.txt"))
    shutil.copytree(folder / "records", tmp_path / "older")
    shutil.rmtree(tmp_path / "older" / "train.tokenizer")
    older = {"input_file": [str(tmp_path / "older")], "do_eval": False}
    assert not (train(folder, tmp_path / "without", **older) / "vocab.txt").exists()
    run = train(folder, tmp_path / "with", vocab_file=str(folder / "vocab.txt"), **older)
    assert (run / "vocab.txt").exists()
    # The same command again adds what is missing.
    make(folder, output_file=[str(tmp_path / "older" / "train.tfrecord")])
    assert (tmp_path / "older" / "train.tokenizer" / "vocab.txt").exists()


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("first, is_training", [
    ("# bert-finetune --flagfile=THIS_FILE\n--do_train\n", True),
    ("# bert-distill --flagfile=THIS_FILE\n--task=mrpc\n", True),
    ("# bert-finetune --flagfile=THIS_FILE\n--do_eval\n", False), ("", False)])
def test_predictions_leave_the_flags_of_a_training(tmp_path, as_program, monkeypatch, trains, first,
                                                   is_training):
    monkeypatch.setattr(sys, "argv", ["bert-finetune"])
    kept = tmp_path / "flags.txt"
    if first:
        kept.write_text(first)
    carry_out(types.SimpleNamespace(
        carry_out=lambda begin: begin(), flags=types.SimpleNamespace(do_train=trains),
        settings=types.SimpleNamespace(output_dir=str(tmp_path))), as_program(object()))
    text = kept.read_text()
    assert text == first if is_training and not trains else text.endswith("\n--x=1\n")
