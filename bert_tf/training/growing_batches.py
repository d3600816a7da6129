"""Batches that grow while a run reads its first tokens (--batch_size_warmup_min_size)."""

import math
import sys

from bert_tf.errors import InputError
from bert_tf.training.settings import TrainSettings
from bert_tf.training.trainer import Trainer


def growing_batch(tokens: int, least: int, most: int, warmup_tokens: int) -> tuple[int, int]:
    """Returns the rows of a batch after some tokens, and the tokens at which batches grow next.

    They grow row by row, and each number of rows comes in about as many steps
    (AnswerDotAI/ModernBERT sequence_packer.py).

    Args:
        tokens: that were read before.
        least, most: rows of the first batches, and after `warmup_tokens`.
    """
    total = 0
    for rows in range(least, most):
        total += rows
        end = math.ceil(warmup_tokens / sum(range(least, most)) * total)
        if tokens < min(end, warmup_tokens):
            return rows, min(end, warmup_tokens)
    return most, sys.maxsize


def check_records(records, are_in_order: bool = False) -> None:
    """Raises InputError if the order or form of records does not allow batches of several sizes."""
    if (are_in_order or hasattr(records, "from_step") or getattr(records, "rows", 0)
            or "input_mask" not in records.format.names):
        raise InputError("--batch_size_warmup_min_size is for records in any order whose "
                         "padding is marked, such as BERT's; leave the flag out.")


class BatchSize:
    """The size of a run's next batch, which the tokens before it decide with
    --batch_size_warmup_min_size. InputError: see `check_records`."""

    def __init__(self, trainer: Trainer, settings: TrainSettings, records) -> None:
        self._trainer, self._most = trainer, settings.train_batch_size
        self._least = settings.batch_size_warmup_min_size
        check_records(records, bool(trainer.learner.carries))
        self._tokens = settings.batch_size_warmup_tokens
        self._length = records.format.sizes["max_seq_length"]

    def __call__(self) -> tuple[int, int]:
        """Returns the records of the next step, over all devices, and the number of steps that
        certainly have as many."""
        tokens = int(self._trainer.tokens.numpy())
        parts, end = growing_batch(tokens, 1, self._most // self._least, self._tokens)
        batch_size = parts * self._least
        return batch_size, -(-(end - tokens) // (batch_size * self._length))
