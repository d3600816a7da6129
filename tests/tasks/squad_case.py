"""The golden cases of tests/golden/squad, and what bert_tf makes of them."""

import dataclasses
import json

from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad import read_paragraphs
from bert_tf.tasks.squad_answers import AnswerOptions
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from tests.make_squad_golden import CASES, FOLDER, VOCABULARY

NAMES = tuple(CASES)


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
