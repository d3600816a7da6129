"""Models of SentencePiece that tests train."""

import io

import sentencepiece

# Options: the special tokens of some models.
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1,
          "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}


def train(lines, size, **options):
    """The bytes of a model of at most `size` pieces."""
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=file, vocab_size=size, hard_vocab_limit=False,
        num_threads=1, minloglevel=2, **options)
    return file.getvalue()
