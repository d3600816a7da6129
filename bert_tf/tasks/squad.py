"""Reading SQuAD v1.1 and v2.0 files (google-research/bert run_squad.py, read_squad_examples).

A file is read article by article, so that memory does not grow with it.
"""

import bisect
import dataclasses
import re
from collections.abc import Iterator

from bert_tf.errors import InputError
from bert_tf.tasks.json_elements import read_elements

PIECE_QUESTIONS = 1 << 13
# The original's spaces. Others, such as a no-break space, are parts of words.
_WORD = re.compile(r"[^ \t\r\n\u202f]+")


@dataclasses.dataclass(frozen=True)
class Question:
    """One question, and in training the answer to learn.

    Attributes:
        id: str.
        text: str.
        is_impossible: whether to learn that the paragraph holds no answer.
        answer: the answer's text, "" where there is none.
        first_word, last_word: the paragraph's words that the answer touches, -1 where none.
        start: the paragraph's character with which the answer begins, -1 where none.
    """

    id: str
    text: str
    is_impossible: bool = False
    answer: str = ""
    first_word: int = -1
    last_word: int = -1
    start: int = -1


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """The words of a paragraph and the questions about it.

    Attributes:
        words: list of str.
        questions: list of `Question`.
        skipped: a sentence for each question left out because its answer is not in the paragraph.
        context: the text.
    """

    words: list
    questions: list
    skipped: list
    context: str = ""


def passage_words(passage: str) -> list[str]:
    """The words of a passage, between the original's spaces."""
    return _WORD.findall(passage)


def read_paragraphs(path: str, is_training: bool,
                    version_2_with_negative: bool = False,
                    squad_style: str = "bert") -> Iterator[Paragraph]:
    """Yields the paragraphs of a SQuAD file, one article in memory at a time.

    As in the original, a question to train on is left out where the answer's words are not at
    the place named. Where the original refuses several answers, the first is learned.

    Args:
        path: JSON, plain or gzip.
        is_training: whether answers are read.
        version_2_with_negative: whether `is_impossible` is read, in training.
        squad_style: whose code is followed: ELECTRA's compares without regard to case; ALBERT's and
            XLNet's, which take the characters named, leave no question out.

    Yields:
        `Paragraph`.

    Raises:
        InputError: the file is not SQuAD, or an answer is impossible; names file and question.
    """
    empty = True
    for context, asked in _raw_paragraphs(path):
        paragraph = Paragraph(passage_words(context), [], [], context)
        starts = [match.start() for match in _WORD.finditer(context)] if is_training else None
        for raw, where in asked:
            question = Question(raw["id"], take(raw, "question", str, where))
            if is_training:
                question = _with_answer(question, raw, where, context, paragraph.words, starts,
                                        version_2_with_negative)
            if not question.answer or _is_there(question, paragraph.words, squad_style):
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
    """Yields the paragraphs of a SQuAD file in lists of at least `size` questions but for the last.

    The other arguments and the errors are those of `read_paragraphs`.
    """
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
    """The texts of the correct answers to every question of a SQuAD file.

    Returns:
        dict of question id -> list of str, empty where there is no answer.

    Raises:
        InputError: the file is not SQuAD, or has an id twice; names file and question.
    """
    return {raw["id"]: [take(answer, "text", str, where)
                        for answer in take(raw, "answers", list, where)]
            for raw, where in _distinct_questions(path)}


def read_references(path: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yields the text, the paragraph and the correct answers, if there are any, of each question of
    a SQuAD file.

    Raises:
        InputError: the file is not SQuAD; names file and question.
    """
    for context, asked in _raw_paragraphs(path):
        for raw, where in asked:
            yield take(raw, "question", str, where), context, [
                take(answer, "text", str, where) for answer in raw.get("answers") or ()]


def holds_answers(path: str) -> bool:
    """Whether any question of a SQuAD file has an answer, or is marked as impossible.

    Raises:
        InputError: see `read_answers`; where there are answers, the file is not read to its end.
    """
    return any(raw.get("answers") or raw.get("is_impossible") is True
               for raw, _ in _distinct_questions(path))


def take(owner, key, kind, where):
    """`owner[key]`, which must be of type `kind`.

    Raises:
        InputError: it is not; names `where` and the key.
    """
    value = owner.get(key) if isinstance(owner, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
        raise InputError(f"{where} has no {key!r} of type {kind.__name__}; give a file in the "
                         "layout of SQuAD.")
    return value


def _raw_paragraphs(path):
    """Yields (context, list of (question's JSON, how errors name it))."""
    for number, article in enumerate(read_elements(path, "data")):
        for place, paragraph in enumerate(take(article, "paragraphs", list,
                                               f"{path}: article {number}")):
            where = f"{path}: article {number}, paragraph {place}"
            asked = [(raw, f"{path}: question {take(raw, 'id', str, where)!r}")
                     for raw in take(paragraph, "qas", list, where)]
            yield take(paragraph, "context", str, where), asked


def _distinct_questions(path):
    """Yields (question's JSON, how errors name it); there are some, and their ids differ."""
    seen = set()
    for _, asked in _raw_paragraphs(path):
        for raw, where in asked:
            if raw["id"] in seen:
                raise InputError(f"{where} is there twice; leave one of them out.")
            seen.add(raw["id"])
            yield raw, where
    if not seen:
        raise InputError(f"{path} holds no question; give a SQuAD file that does.")


def _with_answer(question, raw, where, context, words, starts, version_2_with_negative):
    """The question with its answer."""
    if version_2_with_negative and take(raw, "is_impossible", bool, where):
        return dataclasses.replace(question, is_impossible=True)
    answers = take(raw, "answers", list, where)
    if not answers:
        raise InputError(f"{where} has no answer to train on; set --version_2_with_negative if it "
                         "is impossible to answer.")
    text = take(answers[0], "text", str, where)
    start = take(answers[0], "answer_start", int, where)
    if not text.strip():
        raise InputError(f"{where} has an answer without text; correct it or leave it out.")
    if not 0 <= start <= len(context) - len(text):
        raise InputError(f"{where} has an answer from character {start} to {start + len(text)}, "
                         f"but its paragraph has {len(context)}; correct answer_start.")
    first = bisect.bisect_right(starts, start) - 1
    last = bisect.bisect_right(starts, start + len(text) - 1) - 1
    if first < 0:       # spaces before the first word: the original takes -1 as Python's last
        first = last if last == len(words) - 1 else len(words)
    return dataclasses.replace(question, answer=text, first_word=first, last_word=last,
                               start=start)


def _is_there(question, words, squad_style):
    """Whether the words of the answer are at the place named."""
    there = " ".join(words[question.first_word:question.last_word + 1])
    answer = " ".join(question.answer.split())
    if squad_style == "electra":
        answer, there = answer.lower(), there.lower()
    return squad_style in ("albert", "xlnet") or answer in there
