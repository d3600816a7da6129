"""What a run learned, shown in words."""

import json
import re
import shutil

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.recipes import Term
from bert_tf.tokenization import Vocabulary, WordpieceTokenizer, open_tokenizer
from bert_tf.training import Learner
from run_scripts.analysis import pretraining
from tests.training import tiny

SENTENCES = ["The old house stood near the Zürich river.", "Nobody knew where the sailor lived.",
             "Summer came late to those cold mountains."]


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"]
    config = tiny.config(vocab_size=len(tokens), num_hidden_layers=1, hidden_size=8,
                         num_attention_heads=2, intermediate_size=8)
    Learner.of_terms(config, (Term("MaskedLM"),)).save(folder / "model.keras")
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    (folder / "text.txt").write_text("a b c d " * 3 + "\n")
    (folder / "metrics.jsonl").write_text("".join(json.dumps({
        "kind": kind, "step": 2, "masked_lm/loss": 1.5, "masked_lm/accuracy": 0.5}) + "\n"
        for kind in ("train", "eval")))
    return folder


@pytest.mark.parametrize("name, change, part", [
    ("model.keras", lambda content: content[:len(content) // 2], "model.keras"),
    ("model.keras", lambda content: content[:700] + b"x" * 9 + content[709:], "model.keras"),
    ("model.keras", None, "there is no .*model.keras"),
    ("text.txt", None, "there is no file .*text.txt"),
    ("text.txt", lambda content: b"a \xff\n", "text.txt, line 1, byte 3 is not UTF-8"),
    ("metrics.jsonl", lambda content: content.replace(b"masked_lm/loss", b"loss"),
     "metrics.jsonl: a line of the kind 'train' has no 'masked_lm/loss'"),
    ("metrics.jsonl", lambda content: content.replace(b"0.5", b'"x"'), "'masked_lm/accuracy'"),
    ("vocab.txt", None, "vocab.txt' can't be read"),
    ("nothing", None, "--input_file: no file matches 'absent'")])
def test_what_is_damaged_or_missing_is_named(folder, tmp_path, name, change, part):
    shutil.copytree(folder, tmp_path / "run")
    path = tmp_path / "run" / name
    if change:
        path.write_bytes(change(path.read_bytes()))
    else:
        path.unlink(missing_ok=True)
    with pytest.raises(InputError, match=part):
        pretraining.main(pretraining.ShowPretrainingFlags(
            output_dir=str(tmp_path / "run"), vocab_file=str(tmp_path / "run" / "vocab.txt"),
            input_file="absent", eval_input_file="absent", picture=str(tmp_path / "a.png"),
            eval_text=str(tmp_path / "run" / "text.txt")))


def test_a_run_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="--output_dir: there is no absent; name"):
        pretraining.main(pretraining.ShowPretrainingFlags(output_dir="absent"))


def test_the_picture_gets_a_folder_before_the_work_begins(folder, tmp_path):
    for picture, message in (("new/a.png", "--input_file: no file"), ("text/a.png", "--picture: ")):
        (tmp_path / "text").write_text("a file")
        with pytest.raises(InputError, match=message):
            pretraining.main(pretraining.ShowPretrainingFlags(
                output_dir=str(folder), input_file="absent", eval_input_file="absent",
                picture=str(tmp_path / picture)))
    assert (tmp_path / "new").is_dir()


@pytest.mark.parametrize("vocabulary", ["bert-base-uncased", "roberta-base", "albert"])
def test_whole_words_are_drawn_one_of_a_sentence(test_data, vocabulary):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / vocabulary))
    common = set(tokenizer.encode("where where stood Nobody nobody"))
    drawn = [pretraining.draw_words(tokenizer, SENTENCES, common, seed, 2)
             for seed in (*range(200), 0)]
    assert drawn[0] == drawn[-1] and len({tuple(words) for words in drawn}) > 10
    answers = set()
    for words in drawn:
        assert len(words) == 2
        for shown, answer, index in words:
            assert shown.replace("[MASK]", answer) in SENTENCES
            assert [index] in map(tokenizer.encode, (answer, f" {answer}"))
            assert answer in re.findall(r"\w+", shown.replace("[MASK]", answer))
            answers.add(answer)
    assert {"house", "sailor"} <= answers and not {"where", "stood"} & answers


@pytest.mark.parametrize("sentence, word, token", [
    ("la fene\u0302tre est", "fene\u0302tre", "fenetre"),
    # A mark at the end of a word belongs to it.
    ("le cafe\u0301 est", "cafe\u0301", "cafe"), ("एक हिन्दी है", "हिन्दी", "हिनदी")])
def test_a_word_is_masked_with_the_marks_that_its_token_lacks(sentence, word, token):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", token]
    lower = WordpieceTokenizer(Vocabulary(tokens), True)
    drawn = pretraining.draw_words(lower, [sentence], {1}, 0, 1)
    assert drawn == [(sentence.replace(word, "[MASK]"), word, 5)]


@pytest.mark.parametrize("tokens, lower, text, frequent, drawn", [
    (["हिन्दी"], False, "एक हिन्दी है", {1}, ("एक [MASK] है", "हिन्दी", 5)),
    ("打开。", True, "打开。", {5}, ("打[MASK]。", "开", 6))], ids=["marks", "chinese"])
def test_words_with_marks_and_chinese_characters_are_words(tokens, lower, text, frequent, drawn):
    tokenizer = WordpieceTokenizer(Vocabulary(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tokens]), lower)
    assert pretraining.draw_words(tokenizer, [text], frequent, 0, 1) == [drawn]


def test_a_guess_is_right_by_its_token(monkeypatch, capsys):
    """The text has accents and capitals that the tokens lack."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fenetre", "chateau", "la"]

    class Fill:
        tokenizer = WordpieceTokenizer(Vocabulary(tokens), True)

        def stream(self, texts, top_k):
            for _ in texts:
                yield {"masks": [[{"id": 5, "text": "fenetre", "probability": 0.5}]]}

    guesses, _ = pretraining._guess(
        Fill(), ["La Fenêtre la", "la château la"], np.array([0] * 7 + [9]), 1)
    assert {guess.word: guess.is_hit for guess in guesses} == {"Fenêtre": True, "château": False}
    assert "1 of 2 words are among the 5 guesses" in capsys.readouterr().out


def test_records_are_those_of_the_run(tmp_path):
    with pytest.raises(InputError, match="--input_file must be given"):
        pretraining.records_of(str(tmp_path))
    (tmp_path / "flags.txt").write_text(
        "# bert-run-pretraining --flagfile=THIS_FILE\n--do_train\n--input_file=a*,b\n")
    assert pretraining.records_of(str(tmp_path)) == {
        "input_file": ["a*", "b"], "eval_input_file": ["a*", "b"]}
    with (tmp_path / "flags.txt").open("a") as file:
        file.write("--eval_input_file=c\n")
    assert pretraining.records_of(str(tmp_path))["eval_input_file"] == ["c"]
