"""Flags that say who makes the pieces of a data job."""

import dataclasses

from bert_tf.data.records.jobs import Share
from bert_tf.flags import option


@dataclasses.dataclass
class RunnerFlags:
    """Several machines."""

    piece_share: str = option(
        "", "K/N: make every N-th piece from K on, beside processes that make the others, as in "
        "Slurm arrays and indexed jobs; K from 0. The last one ends the job, or the same command "
        "without this flag does.", rare=True)

    @property
    def share(self) -> Share | None:
        """The share, or None for all pieces."""
        return Share.parse(self.piece_share) if self.piece_share else None
