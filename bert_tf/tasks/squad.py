"""Reads SQuAD v1.1 and v2.0 files (google-research/bert run_squad.py, read_squad_examples) article
by article, so that memory does not grow; and what `question_files` brings into their form."""

import bisect
import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Iterator

from bert_tf.errors import InputError
from bert_tf.files import ending, file_size, is_library_name, open_file, shown_name
from bert_tf.tasks.json_elements import read_elements
from bert_tf.tasks.libraries import read_library
from bert_tf.tasks.question_files import ALIASES, OFFICIAL, form_of, read_questions
from bert_tf.tokenization.wordpiece import SPACES, is_cjk, is_deleted, is_punctuation

PIECE_QUESTIONS = 1 << 13
# The original's spaces. Others, such as a no-break space, belong to words.
_WORD = re.compile(r"[^ \t\r\n\u202f]+")


@dataclasses.dataclass(frozen=True)
class Question:
    """One question, and in training the answer to learn."""

    id: str
    text: str
    is_impossible: bool = False     # the paragraph holds no answer
    answer: str = ""
    first_word: int = -1            # the paragraph's words that the answer touches
    last_word: int = -1
    start: int = -1                 # its first character in the paragraph


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """The words of a paragraph and the `Question`s about it."""

    words: list
    questions: list
    skipped: list       # a sentence for each question whose answer is not in the paragraph
    context: str = ""


def word_spans(passage: str, squad_style: str = "bert") -> list[tuple[int, int]]:
    """Returns the first character of each word of a passage, and the last + 1. Words are cut at the
    original's spaces; in CMRC's style, a Chinese character or a punctuation mark is a word, too
    (ymcui/cmrc2018, baseline/run_cmrc2018_drcd_baseline.py)."""
    if squad_style != "cmrc":
        return [match.span() for match in _WORD.finditer(passage)]
    kinds = list(map(_kind, passage))
    edges = [place for place in range(1, len(kinds))
             if kinds[place] == "own" or kinds[place] != kinds[place - 1]]
    return [(first, last) for first, last in zip([0, *edges], [*edges, len(kinds)])
            if kinds[first:last] and kinds[first] != "space"]


@functools.cache
def _kind(char):
    """Whether a character is a word of its own, a space, or a part of a word."""
    if char in SPACES:
        return "space"
    return "own" if is_cjk(char) or is_punctuation(char) or is_deleted(char) else "part"


def passage_words(passage: str, squad_style: str = "bert") -> list[str]:
    return [passage[first:last] for first, last in word_spans(passage, squad_style)]


def read_paragraphs(path: str, is_training: bool, version_2_with_negative: bool = False,
                    squad_style: str = "bert") -> Iterator[Paragraph]:
    """Yields the paragraphs of a file of SQuAD, TriviaQA or MRQA, plain or gzip, one article in
    memory at a time. Training reads answers, and of v2.0 `is_impossible`. Raises InputError if the
    file is not SQuAD, or an answer is impossible; names file and question.

    As in the original, a question to train on is left out if the answer's words are not at the
    stated place. Where the original refuses several answers, the first is learned. ELECTRA's style
    compares without regard to case; ALBERT's and XLNet's take the stated characters and leave no
    question out. CMRC's cuts Chinese into characters."""
    empty = True
    for context, asked in _raw_paragraphs(path, is_training):
        words = word_spans(context, squad_style)
        starts = [first for first, _ in words]
        paragraph = Paragraph([context[first:last] for first, last in words], [], [], context)
        for raw, where in asked:
            question = Question(raw["id"], take(raw, "question", str, where))
            if is_training:
                question = _with_answer(question, raw, where, context, paragraph.words, starts,
                                        version_2_with_negative)
            if not question.answer or _is_there(question, paragraph, squad_style):
                paragraph.questions.append(question)
            else:
                paragraph.skipped.append(
                    f"{where} is left out: its answer's words are not in the paragraph at "
                    "answer_start; correct the answer to learn from it.")
        empty = empty and not asked
        yield paragraph
    if empty:
        raise InputError(f"{path} holds no question; give a SQuAD file that does.")


def read_pieces(path, is_training, version_2_with_negative=False, size=PIECE_QUESTIONS, *,
                squad_style="bert"):
    """Yields the paragraphs of a SQuAD file in lists of at least `size` questions, except the last.
    See `read_paragraphs`."""
    piece, questions = [], 0
    for paragraph in read_paragraphs(path, is_training, version_2_with_negative, squad_style):
        piece.append(paragraph)
        questions += len(paragraph.questions)
        if questions >= size:
            yield piece
            piece, questions = [], 0
    if piece:
        yield piece


def read_answers(path: str) -> dict[str, list[str]]:
    """{official id: correct answers}, [] where there is none; a repeated id is refused."""
    return {raw.get(OFFICIAL, raw["id"]): _texts(raw, where)
            for raw, where in _distinct_questions(path)}


def read_official_ids(path: str) -> dict[str, str]:
    """Returns {question id: official id} of a SQuAD file in its order. They differ for TriviaQA's
    questions of Wikipedia, which have an id for each document."""
    return {raw["id"]: raw.get(OFFICIAL, raw["id"]) for raw, _ in _distinct_questions(path)}


def read_references(path: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yields the text, the paragraph and any correct answers of each question of a SQuAD file."""
    for context, asked in _raw_paragraphs(path):
        for raw, where in asked:
            yield take(raw, "question", str, where), context, (
                _texts(raw, where) if raw.get("answers") or ALIASES in raw else [])


def identify(path: str) -> tuple[str, int]:
    """The SHA-256 and the number of bytes of a SQuAD file, or of a library's questions."""
    if not is_library_name(path):
        with open_file(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), file_size(path)
    digest, size = hashlib.sha256(), 0
    for context, asked in _raw_paragraphs(path):
        content = json.dumps([context, [raw for raw, _ in asked]]).encode()
        digest.update(content)
        size += len(content)
    return digest.hexdigest(), size


def holds_answers(path: str) -> bool:
    """Whether any question of a SQuAD file has an answer, or is marked as impossible. If so, the
    rest of the file is not read."""
    return any(raw.get("answers") or raw.get(ALIASES) or raw.get("is_impossible") is True
               for raw, _ in _distinct_questions(path))


def take(owner, key, kind, where):
    """Returns `owner[key]`; InputError that names `where` and the key if its type is another."""
    value = owner.get(key) if isinstance(owner, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
        raise InputError(f"{where} has no {key!r} of type {kind.__name__}; give a file in SQuAD's "
                         "format.")
    return value


def _texts(raw, where):
    if raw.get(ALIASES):
        return list(raw[ALIASES])
    return [take(answer, "text", str, where) for answer in take(raw, "answers", list, where)]


def _raw_paragraphs(path, is_training=False):
    """Yields (context, [(question's JSON, its name in errors), ...])."""
    if form := form_of(path):
        for context, asked in read_questions(path, form, is_training):
            yield context, [(_with_text_id(raw), where) for raw, where in asked]
        return
    if ending(str(path)) in (".csv", ".tsv"):
        raise InputError(f"{shown_name(path)} is a table, which is not read here; save it as JSON "
                         "lines with id, question, context and answers, as SQuAD's rows have them.")
    articles = read_elements(path, "data")
    if is_library_name(path):
        articles = (article for _, article in read_library(path, "squad"))
    for number, article in enumerate(articles):
        for place, paragraph in enumerate(take(article, "paragraphs", list,
                                               f"{path}: article {number}")):
            where = f"{path}: article {number}, paragraph {place}"
            asked = [(raw, f"{path}: question {take(raw, 'id', str, where)!r}")
                     for raw in map(_with_text_id, take(paragraph, "qas", list, where))]
            yield take(paragraph, "context", str, where), asked


def _with_text_id(raw):
    """The question's JSON, whose id may be a number, as annotation tools write it."""
    if isinstance(raw, dict) and type(raw.get("id")) is int:
        return {**raw, "id": str(raw["id"])}
    return raw


def _distinct_questions(path):
    seen = set()
    for _, asked in _raw_paragraphs(path):
        for raw, where in asked:
            if raw["id"] in seen:
                raise InputError(f"{where} is there twice; remove one of the two.")
            seen.add(raw["id"])
            yield raw, where
    if not seen:
        raise InputError(f"{path} holds no question; give a SQuAD file that does.")


def _with_answer(question, raw, where, context, words, starts, version_2_with_negative):
    if version_2_with_negative and take(raw, "is_impossible", bool, where):
        return dataclasses.replace(question, is_impossible=True)
    answers = take(raw, "answers", list, where)
    if not answers:
        raise InputError(f"{where} has no answer to train on; if questions without an answer are "
                         "allowed, give --version_2_with_negative.")
    text = take(answers[0], "text", str, where)
    start = take(answers[0], "answer_start", int, where)
    if not text.strip():
        raise InputError(f"{where} has an answer without text; correct the answer, or remove it.")
    if not 0 <= start <= len(context) - len(text):
        raise InputError(f"{where} has an answer from character {start} to {start + len(text)}, "
                         f"but its paragraph has {len(context)}; correct answer_start.")
    first = bisect.bisect_right(starts, start) - 1
    last = bisect.bisect_right(starts, start + len(text) - 1) - 1
    if first < 0:       # spaces before the first word: the original takes -1 as Python's last
        first = last if last == len(words) - 1 else len(words)
    return dataclasses.replace(question, answer=text, first_word=first, last_word=last, start=start)


def _is_there(question, paragraph, squad_style):
    if squad_style == "cmrc":
        return paragraph.context.startswith(question.answer, question.start)
    there = " ".join(paragraph.words[question.first_word:question.last_word + 1])
    answer = " ".join(question.answer.split())
    if squad_style == "electra":
        answer, there = answer.lower(), there.lower()
    return squad_style in ("albert", "xlnet") or answer in there
