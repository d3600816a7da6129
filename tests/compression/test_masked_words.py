"""TinyBERT's copies of texts, against the rules of its code said slowly."""

import random

import numpy as np
import pytest

from bert_tf import networks
from bert_tf.checkpoints import keras_file
from bert_tf.compression.masked_words import MaskedWords, WordModel, WordVectors
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.objectives import MaskedLM
from bert_tf.training import Learner

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "sat", "mat", "##s",
          "##ly", "on", "42", ".", "slow", "green", "a"]
TEXT = "The cats sat on the green mat 42 slowly."


class Words:
    """Candidates that say their place."""

    def words(self, text):
        words = text.lower().replace(".", " .").split()
        return words, [[7, 8] if word in ("cats", "slowly") else [5] for word in words]

    def candidates(self, pieces, places):
        return [[f"m{place}", f"n{place}"] if place != 6 else [] for place in places]


@pytest.mark.parametrize("seed", [0, 1])
def test_copies_follow_the_rules(seed):
    made = MaskedWords(Words(), {"cats": ["dogs", "cows"]}.get, copies=30, seed=seed)
    found = made([TEXT, "dog"], 5)
    # The rules of DataAugmentor.augment: one choice and one coin for each word and copy.
    draws, expected, current = random.Random(f"{seed} 5"), [], [TEXT, "dog"]
    for side, (text, options) in enumerate((
            (TEXT, {1: ["dogs", "cows"], 2: ["m2", "n2"], 5: ["m5", "n5"], 6: ["mat"],
                    8: ["slowly"]}), ("dog", {0: ["m0", "n0"]}))):
        copies = [text]
        for _ in range(30):
            words = text.lower().replace(".", " .").split()
            for place, others in options.items():
                word = draws.choice(others)
                if draws.random() < 0.4:
                    words[place] = word
            if " ".join(words) not in copies:
                copies.append(" ".join(words))
        for copy in copies:
            current[side] = copy
            expected.append(list(current))
    assert found == [copy for copy in expected if copy != [TEXT, "dog"]]
    assert len({tuple(copy) for copy in found}) > 10 and found == made([TEXT, "dog"], 5)
    assert found[-1][0] == found[-2][0] != TEXT     # the second text goes with the last first one


def test_candidates_are_those_of_the_masked_language_model(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    config = EncoderConfig(vocab_size=len(TOKENS), hidden_size=8, num_hidden_layers=1,
                           num_attention_heads=2, intermediate_size=8, type_vocab_size=2,
                           max_position_embeddings=24)
    learner = Learner(networks.build(config), [MaskedLM(config)])
    learner.objectives[0].output_bias.assign(np.random.default_rng(1).normal(0, 0.1, len(TOKENS)))
    learner.save(tmp_path / keras_file.NAME)
    model = WordModel(str(tmp_path))
    words, pieces = model.words("The cats sat on slowly.")
    assert words == ["the", "cats", "sat", "on", "slowly", "."]
    assert [len(part) for part in pieces] == [1, 2, 1, 1, 2, 1]
    ids = [token for part in pieces for token in part]
    row = [2, *ids, 3, *ids, 3]
    row[4] = 4                                      # "sat" after [CLS], the, cat, ##s
    segments = [0] * (len(ids) + 2) + [1] * (len(ids) + 1)
    logits = np.array(learner({
        "input_ids": np.array([row]), "segment_ids": np.array([segments]),
        "masked_lm_positions": np.array([[4]])})["masked_lm"])[0, 0]
    best = [TOKENS[i] for i in np.argsort(-logits)[:15]]
    assert model.words("Càt")[0] == ["cat"]
    assert model.candidates(pieces, [2]) == [[t for t in best if not t.startswith("##")]]
    (tmp_path / "tokenizer_config.json").write_text('{"strip_accents": false}')
    assert WordModel(str(tmp_path)).words("Càt") == (["càt"], [[1]])
    # Of a cased model, as its files say, else as its tokens show.
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert WordModel(str(tmp_path)).words("The cat")[0] == ["The", "cat"]
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join([*TOKENS[:-1], "The"]) + "\n")
    assert WordModel(str(tmp_path)).words("The cat") == (["The", "cat"], [[17], [6]])


def test_near_words(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 0\ndog 0.9 0.1\nmat 0 1\nsat -1 0\n")
    assert WordVectors(str(path)).near("cat")[:2] == ["dog", "mat"]
    assert WordVectors(str(path)).near("cow") == []
    path.write_text("cat 1 0\ndog 0.9\n")
    with pytest.raises(InputError, match="line 2 is not a word and 2 numbers"):
        WordVectors(str(path))
