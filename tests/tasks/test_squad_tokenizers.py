"""Answers of SQuAD with tokenizers other than WordPiece: what is learned is what is found again."""

import itertools
import json

import numpy as np
import pytest
import squad_case

from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad import read_paragraphs
from bert_tf.tasks.squad_answers import AnswerOptions, find_answers
from bert_tf.tokenization import byte_bpe, open_tokenizer
from tests.goldens import at_hand

PARAGRAPHS = {
    "The king's brother (1895–1943) drank café au lait in Zürich, the town of\u00a0banks.": [
        "The king's brother", "king", "1895–1943", "1943", "café au lait", "Zürich", "banks"],
    "  two   spaces\tand 東京 🙂 smile": ["two", "東京", "🙂", "smile"],
}
MERGES = ["Ġ t", "h e", "Ġt he", "k i", "n g", "ki ng", "Ġ king", "Ġ b", "Ã ©", "â Ģ"]


@pytest.fixture(name="tokenizer", scope="module", params=[False, True])
def fixture_tokenizer(request):
    """A byte-level BPE of ten merges; `add_prefix_space` changes whole texts alone."""
    tokens = [*byte_bpe.ANGLE_ROLES.values(), *byte_bpe.byte_characters(),
              *(pair.replace(" ", "") for pair in MERGES)]
    return byte_bpe.ByteBpeTokenizer(byte_bpe.make_vocabulary(
        tokens, "test", b"{}", "\n".join(MERGES).encode()), add_prefix_space=request.param)


def answer(folder, tokenizer, length):
    """The answers to all questions by a model that has learned where they are."""
    asked = []
    for number, (context, answers) in enumerate(PARAGRAPHS.items()):
        asked.append({"context": context, "qas": [
            {"id": f"{number}-{place}", "question": "what is it ?",
             "answers": [{"text": answer, "answer_start": context.index(answer)}]}
            for place, answer in enumerate(answers)]})
    path = folder / "squad.json"
    path.write_text(json.dumps({"data": [{"paragraphs": asked}]}), encoding="utf-8")
    options = SpanOptions(length, length // 4, 12)
    spans = cut_spans(list(read_paragraphs(str(path), is_training=True)), tokenizer, options)
    features = spans.features(0, len(spans.start), options, tokenizer.vocabulary)
    logits = np.zeros([2, len(spans.start), length], np.float32)
    found = np.flatnonzero(features["start_positions"][:, 0])
    for side, name in enumerate(("start_positions", "end_positions")):
        logits[side, found, features[name][found, 0]] = 9
    predictions = find_answers(spans, squad_case.ends(*logits), tokenizer, AnswerOptions(3, 40))
    # Every answer is whole in at least one span.
    return [prediction.text for prediction in predictions]


@pytest.mark.parametrize("length", [48, 128])
def test_an_answer_that_is_learned_is_found_again(tmp_path, tokenizer, length):
    assert answer(tmp_path, tokenizer, length) == list(
        itertools.chain.from_iterable(PARAGRAPHS.values()))


@pytest.mark.parametrize("name", at_hand("vocabs/{}/spiece.model", ["albert", "t5"]))
def test_with_sentencepiece_an_answer_is_at_least_whole_words(tmp_path, test_data, name):
    """A part of a word has other pieces than the same text after a space, as with WordPiece."""
    path = test_data / "vocabs" / name / "spiece.model"
    found = answer(tmp_path, open_tokenizer(str(path)), 64)
    for text, expected in zip(found, itertools.chain.from_iterable(PARAGRAPHS.values()),
                              strict=True):
        assert expected in text and len(text) <= len(expected) + 9
    assert found[:3] == ["The king's brother", "king", "(1895–1943)"]


def test_words_are_encoded_as_after_a_space(tokenizer):
    ids, lengths = tokenizer.encode_words(["the", "king"])
    assert tokenizer.tokens(ids.tolist()) == ["Ġthe", "Ġking"] and lengths.tolist() == [1, 1]
    assert tokenizer.excerpt(["the", "(king"], tokenizer.encode(" the ("), 0, 1) == "the ("
