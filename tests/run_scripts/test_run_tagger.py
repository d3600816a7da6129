"""The tagger from the command line: official and own files, scores, predictions, features."""

import json
import pathlib
import random
import shutil

import numpy as np
import pytest
from tensorflow.python.framework import config as tf_config

import bert_tf
from bert_tf.errors import InputError
from bert_tf.finetuning.model import FEATURE_LAYERS, ModelFlags, TaggerFlags
from bert_tf.objectives import lstms
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts import finetune
from tests.programs import share_out
from tests.rounding import assert_same
from tests.test_metrics import conlleval
from tests.training import tiny

NAMES, PLACES = ("anna", "bert", "carl", "dora"), ("paris", "rome", "york", "lima")
OTHERS = ("the", "visits", "likes", "and", "new", ".")
LENGTH = 32


def sentence(rng):
    """Words and tags; "new york" is one place, and a name is of one or two words."""
    person = [(name, "I-PER") for name in rng.choices(NAMES, k=rng.randint(1, 2))]
    place = [(word, "I-LOC") for word in rng.choice([[p] for p in PLACES] + [["new", "york"]])]
    return [*person, (rng.choice(["visits", "likes"]), "O"), *place, (".", "O")]


def text(sentences, columns=2):
    """A file of such sentences; of more columns, as CoNLL-2003 has them."""
    return "\n".join("".join(" ".join([word, *["X"] * (columns - 2), tag]) + "\n"
                             for word, tag in words) for words in sentences)


def read_columns(path):
    """Of a file of predictions: for each sentence its words, and tags by columns."""
    blocks = path.read_text(encoding="utf-8").strip("\n").split("\n\n")
    return [list(zip(*map(str.split, block.split("\n")))) for block in blocks]


def read_scores(folder):
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["metrics"]


@pytest.fixture(name="data", scope="module")
def fixture_data(tmp_path_factory):
    """A configuration without dropout, a vocabulary, and files: 12 sentences to train on; these and
    one of 200 words with other tags to choose on; in conll/ the same as official files."""
    folder, rng = tmp_path_factory.mktemp("tagging"), random.Random(4)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *NAMES, *PLACES, *OTHERS]
    (folder / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    tiny.config(vocab_size=len(tokens), max_position_embeddings=LENGTH).to_json_file(
        folder / "config.json")
    train = [sentence(rng) for _ in range(12)]
    words = rng.choices(NAMES + PLACES + OTHERS, k=200)
    dev = [*train, [(word, rng.choice(["O", "B-LOC", "I-LOC", "B-PER"])) for word in words]]
    (folder / "conll").mkdir()
    for name, sentences in (("train", train), ("dev", dev)):
        (folder / f"{name}.txt").write_text(text(sentences), encoding="utf-8")
    for name, sentences in (("eng.train", train), ("eng.testa", dev), ("eng.testb", train)):
        (folder / "conll" / name).write_text("-DOCSTART- -X- O O\n\n" + text(sentences, 4),
                                             encoding="utf-8")
    return folder


@pytest.fixture(name="tagger", scope="module")
def fixture_tagger(data):
    """function(out, **flags): runs the script on the own files; returns the folder `out`."""
    def tagger(out, **changes):
        values = {"train_file": "train.txt", "dev_file": "dev.txt", "data_dir": str(data),
                  "max_seq_length": LENGTH, "output_dir": str(out), "num_workers": 1,
                  "train_batch_size": 6, "num_train_steps": 60, "iterations_per_loop": 30,
                  "learning_rate": 1e-2, **changes}
        if changes.get("do_train"):
            values = {"bert_config_file": str(data / "config.json"),
                      "vocab_file": str(data / "vocab.txt"), **values}
        finetune.main(*share_out(values, TaskFlags, ModelFlags, FineTuneSettings, TaggerFlags))
        return pathlib.Path(out)
    return tagger


@pytest.fixture(name="trained", scope="module")
def fixture_trained(data, tagger):
    """The folder of a tagger that was scored on the sentences it had learned."""
    folder = tagger(data / "trained", do_train=True, do_eval=True, do_predict=True,
                    test_file="train.txt", labelled_test=True)
    tf_config.disable_op_determinism()
    return folder


def test_another_scheme_of_tags_changes_neither_files_nor_scores(
        eagerly, data, trained, tagger, tmp_path):
    flags = {"do_eval": True, "test_file": "train.txt", "labelled_test": True}
    folder = tagger(tmp_path / "bioes", do_train=True, do_predict=True, tag_scheme="bioes",
                    init_checkpoint=str(trained), bert_config_file="", vocab_file="",
                    num_train_steps=40, **flags)
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))["task"]
    assert task["labels"] == ["O", *(f"{p}-{t}" for p in "BEIS" for t in ("LOC", "PER"))]
    scores = read_scores(folder)
    assert scores["test/entity_f1"] == 1
    _, gold, predicted = zip(*read_columns(folder / "dev_predictions.txt"))
    assert {tag[0] for tags in (*gold, *predicted) for tag in tags} == set("BIO")
    correct, guessed, labelled = conlleval(gold, predicted)
    assert scores["dev/entity_f1"] == pytest.approx(2 * correct / (guessed + labelled))
    again = tagger(tmp_path / "again", init_checkpoint=str(folder), max_seq_length=0, **flags)
    assert read_scores(again) == pytest.approx(scores, rel=1e-5)
    with pytest.raises(InputError, match="--tag_scheme=bio: the model was trained with bioes"):
        tagger(tmp_path / "other", init_checkpoint=str(folder), max_seq_length=0,
               tag_scheme="bio", **flags)


def test_learns_a_handful_of_sentences(trained):
    scores = read_scores(trained)
    assert scores["test/entity_f1"] == scores["test/tag_accuracy"] == 1
    summary = json.loads((trained / "metrics.json").read_text(encoding="utf-8"))
    assert summary["headline"] == "dev/entity_f1"
    task = json.loads((trained / "task.json").read_text(encoding="utf-8"))["task"]
    assert task["labels"] == ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]


def test_scores_are_those_of_the_predictions(trained):
    """The long sentence's tags are drawn at random, so that much is wrong."""
    _, gold, predicted = zip(*read_columns(trained / "dev_predictions.txt"))
    correct, guessed, labelled = conlleval(gold, predicted)
    scores = read_scores(trained)
    assert 0 < correct < min(guessed, labelled)
    assert scores["dev/entity_precision"] == pytest.approx(correct / guessed)
    assert scores["dev/entity_recall"] == pytest.approx(correct / labelled)
    assert scores["dev/entity_f1"] == pytest.approx(2 * correct / (guessed + labelled))


def test_every_word_of_a_long_sentence_gets_a_tag(trained, data):
    gold = read_columns(data / "dev.txt")
    found = read_columns(trained / "dev_predictions.txt")
    assert [s[0] for s in found] == [s[0] for s in gold] and len(found[-1][2]) == 200
    assert {tag[:1] for tag in found[-1][2][-20:]} <= set("BIO")
    lines = (trained / "dev_predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert [tuple(json.loads(line)["tags"]) for line in lines] == [s[2] for s in found]


def test_the_saved_model_scores_as_at_the_end_of_training(eagerly, trained, tagger, tmp_path):
    out = tagger(tmp_path / "out", do_eval=True, init_checkpoint=str(trained), max_seq_length=0,
                 test_file="train.txt", labelled_test=True, train_file="")
    assert read_scores(out) == pytest.approx(read_scores(trained), rel=1e-5)
    assert read_columns(out / "dev_predictions.txt") == read_columns(
        trained / "dev_predictions.txt")


def test_document_context_predicts_as_many_words(eagerly, trained, tagger, tmp_path):
    out = tagger(tmp_path / "out", do_eval=True, init_checkpoint=str(trained), train_file="",
                 document_context=True)
    manifest = json.loads((out / "records/dev.manifest.json").read_text(encoding="utf-8"))
    assert manifest["options"]["document_context"]
    assert [s[:2] for s in read_columns(out / "dev_predictions.txt")] == [
        s[:2] for s in read_columns(trained / "dev_predictions.txt")]


def test_files_without_tags(eagerly, trained, tagger, data, tmp_path):
    (tmp_path / "words.txt").write_text("anna\nvisits\nrome\n", encoding="utf-8")
    out = tagger(tmp_path / "out", do_predict=True, init_checkpoint=str(trained), train_file="",
                 dev_file="", data_dir="", test_file=str(tmp_path / "words.txt"))
    assert read_columns(out / "test_predictions.txt") == [
        [("anna", "visits", "rome"), ("B-PER", "O", "B-LOC")]]
    with pytest.raises(InputError, match="--do_eval: name a file that has labels"):
        tagger(tmp_path / "out", do_eval=True, init_checkpoint=str(trained), train_file="",
               dev_file="", data_dir="", test_file=str(tmp_path / "words.txt"))


def test_official_files_with_features_of_a_frozen_encoder(eagerly, trained, tagger, data, tmp_path):
    features = {"feature_layers": "weighted_sum_all", "lstm_size": 8, "lstm_layers": 1}
    own = {"train_file": "", "dev_file": "", "task": "conll2003", "data_dir": str(data / "conll")}
    out = tagger(tmp_path / "out", do_train=True, do_eval=True, do_predict=True,
                 init_checkpoint=str(trained), document_context=True, num_train_steps=2, **own,
                 **features)
    before, after = (bert_tf.BertEncoder.from_pretrained(str(folder)).get_weights()
                     for folder in (trained, out))
    assert_same(after, before)
    names = {path.name for path in out.iterdir()}
    assert {f"{split}_predictions.{ending}" for split in ("dev", "test")
            for ending in ("txt", "jsonl")} <= names
    at_end = read_scores(out)
    assert {"dev/entity_f1", "test/entity_f1"} <= set(at_end)
    shutil.rmtree(out / "records")
    tagger(out, do_eval=True, max_seq_length=0, **own)      # built again as task.json says
    assert read_scores(out) == pytest.approx(at_end, rel=1e-5)
    with pytest.raises(InputError, match="was trained with --feature_layers=weighted_sum_all, not "
                                         "last; leave the flag out"):
        tagger(out, do_eval=True, feature_layers="last", **own)
    kept = {"do_train": True, "init_checkpoint": str(out), "keep_head": True, **own}
    with pytest.raises(InputError, match="was trained with --feature_layers=weighted_sum_all; "):
        tagger(tmp_path / "kept", **kept)       # or its encoder would be trained too
    tagger(tmp_path / "kept", **kept, num_train_steps=1, feature_layers="weighted_sum_all")
    np.testing.assert_array_equal(
        *(bert_tf.BertEncoder.from_pretrained(str(folder)).get_weights()[0]
          for folder in (trained, tmp_path / "kept")))
    with pytest.raises(InputError, match="task.json has another .*--feature_layers"):
        tagger(out, do_train=True, do_eval=True, init_checkpoint=str(trained),
               document_context=True, num_train_steps=2, **own,
               **{**features, "feature_layers": "last"})


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_tags_that_the_model_never_saw_are_wrong(eagerly, data, tagger, tmp_path, scheme, capsys):
    """In files to score; the original scorer counts their entities too."""
    rng = random.Random(7)
    lines = text([sentence(rng) for _ in range(6)]).replace("york I-LOC", "york I-GPE")
    lines = lines.replace("new I-LOC", "new I-GPE").replace("rome I-LOC", "rome I-GPE")
    (data / "gpe.txt").write_text(lines, encoding="utf-8")
    folder = tagger(tmp_path / "out", do_train=True, do_eval=True, dev_file="gpe.txt",
                    num_train_steps=2, iterations_per_loop=2, tag_scheme=scheme)
    said = capsys.readouterr().out
    assert "gpe.txt has tags that the model doesn't know, which are scored as wrong: " in said
    assert f"B-GPE ({lines.count('new I-GPE') + lines.count('rome I-GPE')}), I-GPE (" in said
    _, gold, predicted = zip(*read_columns(folder / "dev_predictions.txt"))
    assert sum(one.count("GPE") for one in map(str, gold)) == lines.count("GPE") > 1
    scores, (correct, guessed, held) = read_scores(folder), conlleval(gold, predicted)
    assert scores["dev/entity_recall"] == pytest.approx(correct / held)
    assert scores["dev/entity_precision"] == pytest.approx(correct / guessed)

    with pytest.raises(InputError, match="gpe.txt, line 1: label 'B-PER' is none of O, B-GPE"):
        tagger(tmp_path / "other", do_train=True, train_file="gpe.txt", labels=["O", "B-GPE"])
    (data / "other.txt").write_text("rome X\nparis Y\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"other.txt has no tag of B-LOC, .*, but X \(1\), Y"):
        tagger(tmp_path / "eval", do_eval=True, init_checkpoint=str(folder), train_file="",
               dev_file="other.txt")


def test_the_flag_names_all_choices():
    assert FEATURE_LAYERS == tuple(lstms.CHOICES)


@pytest.mark.parametrize("flags, message", [
    ({"task_kind": "classification", "text_a_column": "a", "label_column": "b"},
     "must have the extension .tsv"),
    ({"train_file": "", "dev_file": "", "task_kind": "tagging"}, "no file is named"),
    ({"train_file": "nowhere.txt"}, "there is no nowhere.txt"),
    ({"label_column": "2"}, "train.txt, line 1 has 2 columns where there must be 3"),
    ({"label_column": "0"}, "train.txt, line 1: column 0 of 2 holds the words"),
    ({"label_column": "tag"}, "'tag' of a file of tagged words must be a number"),
    ({"labels": ["O", "B-PER", "I-PER"]}, "line [0-9]+: label 'B-LOC' is none of O, B-PER, I-PER"),
    ({"do_lower_case": False}, "has no token with a capital letter"),
    ({"feature_layers": "last", "frozen_layers": 1}, "--frozen_layers is 1, but --feature_layers"),
    ({"feature_layers": "last", "reinit_layers": 1}, "--reinit_layers is 1, but --feature_layers"),
])
def test_refused(tagger, tmp_path, flags, message):
    with pytest.raises(InputError, match=message) as error:
        tagger(tmp_path / "out", do_train=True, do_eval=True, **flags)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("*.tfrecord*"))


def test_heads_that_cannot_be_leave_no_claim(tagger, tmp_path):
    with pytest.raises(InputError, match="concat_last_4 need 4 layers, but the encoder has 2"):
        tagger(tmp_path / "out", do_train=True, do_eval=True, feature_layers="concat_last_4")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["records"]


def test_settings_of_a_frozen_encoder():
    def settings(**flags):
        found = TaggerFlags(feature_layers="last").frozen(FineTuneSettings("out", **flags))
        return found.frozen_layers, found.learning_rate, found.train_batch_size
    assert settings() == settings(frozen_layers=-1) == (-1, 1e-3, 32)
    assert settings(learning_rate=2e-3, train_batch_size=8) == (-1, 2e-3, 8)
    assert TaggerFlags().frozen(FineTuneSettings("out")).frozen_layers == 0
