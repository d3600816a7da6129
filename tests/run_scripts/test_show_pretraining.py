"""What a run learned, shown in words."""

import json
import re
import shutil

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.recipes import Term
from bert_tf.tokenization import open_tokenizer
from bert_tf.training import Learner
from run_scripts import show_pretraining
from tests.training import tiny

SENTENCES = ["The old house stood near the Zürich river.", "Nobody knew where the sailor lived.",
             "Summer came late to those cold mountains."]


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """A run's model and metrics, a vocabulary and a text."""
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
    ("model.keras", None, "there is no .*model.keras"), ("text.txt", None, "text.txt: can't be"),
    ("text.txt", lambda content: b"a \xff\n", "text.txt, line 1, byte 3 is not UTF-8"),
    ("metrics.jsonl", lambda content: content.replace(b"masked_lm/loss", b"loss"),
     "metrics.jsonl: a line of kind 'train' has no number 'masked_lm/loss'"),
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
        show_pretraining.main(show_pretraining.ShowPretrainingFlags(
            output_dir=str(tmp_path / "run"), vocab_file=str(tmp_path / "run" / "vocab.txt"),
            input_file="absent", eval_input_file="absent", picture=str(tmp_path / "a.png"),
            eval_text=str(tmp_path / "run" / "text.txt")))


@pytest.mark.parametrize("vocabulary", ["bert-base-uncased", "roberta-base", "albert"])
def test_a_whole_word_of_the_text_is_masked_and_guesses_are_words(test_data, vocabulary):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / vocabulary))
    summer = tokenizer.encode("a summer")[-1]

    def learner(features):
        logits = np.zeros((1, 1, tokenizer.vocabulary.size), np.float32)
        logits[0, 0, summer] = 100
        assert features["input_ids"][0, features["masked_lm_positions"][0, 0]] == (
            tokenizer.vocabulary.mask_id)
        return {"masked_lm": logits}

    found = list(show_pretraining.guess(learner, tokenizer, SENTENCES, 64))
    assert len(found) == len(SENTENCES)
    for sentence, (shown, answer, best) in zip(SENTENCES, found):
        assert shown.replace("[MASK]", answer) == sentence
        assert answer in re.findall(r"\w+", sentence)
        assert best[0] == ("summer", pytest.approx(1))
