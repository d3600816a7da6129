"""Flags that say who makes the pieces of a data job."""

import dataclasses

from bert_tf.data.records.beam import BeamRunner
from bert_tf.data.records.jobs import Runner, Share
from bert_tf.flags import check, only, option


@dataclasses.dataclass
class RunnerFlags:
    """Several machines."""

    runner: str = option(
        "local", "What makes the pieces: this machine (local), or Apache Beam (beam).",
        choices=("local", "beam"))
    runner_options: str = only("runner", "beam")(
        "", "Options of the Beam pipeline, as on Beam's command line, such as "
        "'--runner=DataflowRunner --region=...'. Without a runner, Beam makes the pieces in this "
        "process.")
    piece_share: str = only("runner", "local")(
        "", "K/N, K from 0: make every N-th piece from piece K on, while other processes make the "
        "others, as in Slurm arrays and indexed jobs. The last process ends the job, or the same "
        "command without this flag.")

    def open(self) -> Runner | None:
        """Returns the runner that makes the pieces; None: this machine makes all of them.

        Raises:
            InputError: the flags do not go together, or Beam refuses them.
        """
        check(self)
        if self.runner == "beam":
            return BeamRunner(self.runner_options)
        return Share.parse(self.piece_share) if self.piece_share else None
