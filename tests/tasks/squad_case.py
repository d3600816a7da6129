"""The golden cases of tests/golden/squad, and what bert_tf makes of them."""

import copy
import dataclasses
import json
import pathlib

import numpy as np

from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad import read_paragraphs
from bert_tf.tasks.squad_answers import AnswerOptions
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer

FOLDER = pathlib.Path(__file__).parents[1] / "golden" / "squad"
NAMES = ("lower_v2", "cased_v1")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789éßσς中文½"
PIECES = ["the", "an", "##ing", "cafe", "café", "Cafe", "museum", "king", "##dom", "19", "##95"]
VOCABULARY = [*SPECIAL, *".,-()'!?#", *LETTERS, *(f"##{letter}" for letter in LETTERS), *PIECES]
WORDS = ["The", "the", "an", "a", "museum", "Kings", "kingdom.", "(1895-1943)", "café", "CAFÉ's",
         "cafe\u0301", "Straße", "ΟΔΟΣ", "中文", "x中y", "no\u00a0break", "½", "don't", "\u200d",
         "so\u00adft", "line\u2028end", "#hash##", "ﬁne", "[SEP]", "!!", "İx", "\u0301", "e-mail"]


@dataclasses.dataclass
class Case:
    """One case: what was stored, and the same input for bert_tf."""

    golden: dict
    path: str
    tokenizer: WordpieceTokenizer
    negative: bool
    span_options: SpanOptions
    answer_options: AnswerOptions

    def spans(self, mode):
        """`AnswerSpans` of all paragraphs; `mode` is train or predict."""
        paragraphs = read_paragraphs(self.path, mode == "train", self.negative)
        return cut_spans(list(paragraphs), self.tokenizer, self.span_options)


def make_logits(spans, length, seed):
    """float32 start and end logits [spans, length], full of ties."""
    logits = np.random.RandomState(seed).randint(-12, 12, [2, spans, length]) / 4
    logits[:, :, 0] += 2
    return logits.astype(np.float32)


def with_more_answers(dataset):
    """The dataset with a second answer to some questions: an article, or two words."""
    dataset = copy.deepcopy(dataset)
    for number, question in enumerate(questions(dataset)):
        if question["answers"] and number % 3:
            question["answers"].append({"text": ["", "the", "museum more"][number % 3],
                                        "answer_start": 0})
        elif question["answers"] and number % 2:
            question["answers"][0]["text"] = "The ."
    return dataset


def questions(dataset):
    """All questions of a dataset."""
    return [q for article in dataset["data"] for p in article["paragraphs"] for q in p["qas"]]


def ends(start_logits, end_logits):
    """What a head without beams answers."""
    return {"start_logits": start_logits, "end_logits": end_logits}


def load(name, folder):
    golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    path = folder / "squad.json"
    path.write_text(json.dumps(golden["dataset"]), encoding="utf-8")
    options = golden["options"]
    negative = options["version_2_with_negative"]
    return Case(
        golden, str(path), WordpieceTokenizer(Vocabulary(VOCABULARY), options["do_lower_case"]),
        negative,
        SpanOptions(options["max_seq_length"], options["doc_stride"], options["max_query_length"]),
        AnswerOptions(options["n_best_size"], options["max_answer_length"], negative))
