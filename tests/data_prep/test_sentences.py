"""Sentences of paragraphs that people divided, in several languages."""

import os
import random
import re

import pytest

from data_prep.sentences import LANGUAGES, sentences

# Hard cases, written for this test: a sentence a line, a blank line after a paragraph.
GOLD = os.path.join(os.path.dirname(__file__), "sentences.txt")
# Paragraphs that the rules divide otherwise: "Yahoo! Inc.", and a dash of stops within Chinese.
DIFFER = {"en": 1, "zh": 1}


def gold():
    with open(GOLD, encoding="utf-8") as file:
        parts = re.split(r"^# (\w+)\n", file.read(), flags=re.M)
    return {language: [text.split("\n") for text in body.strip().split("\n\n")]
            for language, body in zip(parts[1::2], parts[2::2])}


def joined(parts, language):
    return ("" if language in ("ja", "zh") else " ").join(parts)


@pytest.mark.parametrize("language", gold())
def test_paragraphs_are_divided_as_people_divide_them(language):
    differ = [parts for parts in gold()[language]
              if sentences(joined(parts, language), language) != parts]
    assert len(differ) == DIFFER.get(language, 0), differ


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_character_is_changed(language):
    rng = random.Random(7)
    pieces = [part for paragraphs in gold().values() for parts in paragraphs for part in parts]
    signs = "".join(pieces)
    for _ in range(30):
        text = " ".join("".join((*rng.choices(pieces, k=3), *rng.choices(signs, k=40))).split())
        parts = sentences(text, language)
        assert "".join("".join(parts).split()) == "".join(text.split())
        assert all(part == part.strip() != "" for part in parts)


def test_english_sentences():
    text = ('Dr. A. Smith came, e.g. by Train. "Why?" he asked. It cost 3.5 (see Fig. 2). ok. '
            'He left! No. It rained, etc. Nobody came. Done')
    assert sentences(text) == [
        "Dr. A. Smith came, e.g. by Train.", '"Why?" he asked.', "It cost 3.5 (see Fig. 2). ok.",
        "He left!", "No.", "It rained, etc.", "Nobody came.", "Done"]


@pytest.mark.parametrize("parts", [
    ["这是。", "那是。"], ["他说：“我们走吧。”"], ["「行こう！」と言った。", "「はい。」"],
    ["什么？！", "“他走了！！”", "真的。。。"], ["『「はい。」』", "そう（です。）"],
    ["これ!", "それ?", "あれ。"], ["「長い。", *["長い。"] * 98, "長い。」"]])
def test_marks_that_no_blank_follows(parts):
    assert sentences("".join(parts)) == parts


@pytest.mark.parametrize("ends", [
    "यह है। वह है।", "هل هذا؟ نعم هذا.", "یہ ہے۔ وہ ہے۔", "Սա է։ Նա է։", "ይህ ነው። ያ ነው።",
    "Это он. Это она.", "Il part. À demain.", "ეს არის. ის არის.", "זה כאן. זה שם.", "นี่. นั่น.",
    "It was. 5 came.", "— Ты? — Я.", "¡Ven! ¿Dónde?", "« Viens ! » Il vint.", "Er ging. »Komm!«",
    "It was… He left."])
def test_capital_letters_and_letters_without_case_begin_sentences(ends):
    first, second = sentences(ends)
    assert f"{first} {second}" == ends and len(first) > 3


@pytest.mark.parametrize("whole", [
    "Это было в 1990 г. до н. э. и т. д. в городе.", "Il habite rue Foch, p. ex. à Paris.",
    "Το σπίτι κ. ά. είναι εδώ.", "Wir sahen ca. (über) zehn Häuser.",
    "А. С. Пушкин и Л.Н. Толстой.", "Ο Κ. Π. Καβάφης.", "डॉ. ए. पी. जे. शर्मा आए।"])
def test_small_letters_and_initials_of_any_alphabet_end_no_sentence(whole):
    assert sentences(whole) == [whole]
