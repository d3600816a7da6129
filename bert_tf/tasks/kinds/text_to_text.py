"""A text for a text, whatever the task (arXiv:1910.10683)."""

import numpy as np

from bert_tf.data.records.features import known
from bert_tf.tasks.task import Kind

_MOST_TARGETS = 128     # tokens of an answer, where a model does not know how long its targets were


class TextToText(Kind):
    """The text that a model writes for a text."""

    name, title, script = "text_to_text", "text to text", "run_text_to_text"
    reads = ("encoder_input_tokens",)
    features = known("encoder_input_tokens", "decoder_target_tokens")
    texts = (1, 1, "a text that begins as those that the model was trained on")
    measures = False

    def _head(self, task, options):
        return "sequence_lm", {}

    def headline(self, task, eval_splits):
        return "average"

    def overall(self, scores):
        """Returns the mean of the files' headlines."""
        first = [next(iter(found.values())) for found in scores]
        return {"average": sum(first) / len(first)} if first else {}

    def generation(self, options):
        """Returns the arguments of the network's `generate`."""
        return {"length": options.get("max_target_length", _MOST_TARGETS),
                "beams": options.get("beams", 1), "alpha": options.get("alpha", 0.6)}

    def answer(self, task, examples, run, tokenizer, max_seq_length, options):
        ids = encode_inputs([example.texts[0] for example in examples], tokenizer, max_seq_length)
        found = run({"encoder_input_tokens": ids, "input_mask": ids > 0})["tokens"]
        return [{"text": tokenizer.decode(row.tolist())} for row in found]


def encode_inputs(texts, tokenizer, max_seq_length: int) -> np.ndarray:
    """Returns texts as a model reads them, with a final token: int32 [B, S], padded with 0."""
    ids, lengths = tokenizer.encode_lines(texts)
    found = np.zeros((len(texts), max_seq_length), np.int32)
    for row, end, length in zip(found, np.cumsum(lengths), lengths):
        size = min(length, max_seq_length - 1)
        row[:size] = ids[end - length:end - length + size]
        row[size] = tokenizer.vocabulary.sep_id
    return found
