"""A text for a text, whatever the task (arXiv:1910.10683)."""

from collections.abc import Sequence

import numpy as np

from bert_tf.data.records.features import known
from bert_tf.models.t5.segments import Runs
from bert_tf.tasks.task import Kind, warn_of_cut

# The options of generation where a model does not know them: tokens of an answer, and beam search.
GENERATION = {"max_target_length": 128, "beams": 1, "alpha": 0.6}


class TextToText(Kind):
    """The text that a model writes for a text."""

    name, title, job = "text_to_text", "text to text", "text_to_text"
    reads = ("encoder_input_tokens",)
    features = known("encoder_input_tokens", "decoder_target_tokens")
    texts = (1, 1, "a text that begins as those that the model was trained on")
    measures = False

    def _head(self, task, options):
        return "sequence_lm", {}

    def headline(self, task, eval_splits):
        return "average"

    def overall(self, scores):
        first = [next(iter(of_file.values())) for of_file in scores]
        return {"average": sum(first) / len(first)} if first else {}

    def generation(self, options):
        options = {**GENERATION, **options}
        return {"length": options["max_target_length"], "beams": options["beams"],
                "alpha": options["alpha"]}

    def answer(self, task, examples, run, tokenizer, max_seq_length, options):
        runs, cut = encode([example.texts[0] for example in examples], tokenizer, max_seq_length)
        warn_of_cut(cut > 0, "texts", max_seq_length, "--max_seq_length")
        ids = runs.padded(np.arange(len(runs)), max_seq_length)
        tokens = run({"encoder_input_tokens": ids, "input_mask": ids > 0})["tokens"]
        return [{"text": tokenizer.decode(row.tolist())} for row in tokens]


def encode(texts: Sequence[str], tokenizer, length: int) -> tuple[Runs, int]:
    """Runs of at most `length` tokens, final ones included, and how many texts were cut to fit."""
    ids, lengths = tokenizer.encode_lines(texts)
    ends = lengths.cumsum()
    runs = Runs.join(np.append(ids[end - size:end][:length - 1], tokenizer.vocabulary.sep_id)
                     for end, size in zip(ends.tolist(), lengths.tolist()))
    return runs, int((lengths >= length).sum())
