"""What a run learned, shown in words."""

import re

import numpy as np
import pytest

from bert_tf.tokenization import open_tokenizer
from run_scripts import show_pretraining

SENTENCES = ["The old house stood near the Zürich river.", "Nobody knew where the sailor lived.",
             "Summer came late to those cold mountains."]


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
