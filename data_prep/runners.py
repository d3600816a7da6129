"""Who makes the pieces of a data job: this machine, several processes, or Apache Beam."""

import dataclasses
import re
import shlex
from collections.abc import Callable

from bert_tf.data.records.jobs import Runner, Share
from bert_tf.errors import InputError, from_extra
from bert_tf.flags import check, only, option

_RANGE = 1000               # pieces in an element of the graph
# Each hangs when a worker dies; this machine's own workers do not.
_REFUSED = ("multi_threading", "multi_processing")


class BeamRunner:
    """Makes pieces in a pipeline of Apache Beam, and so of Dataflow, Flink or Spark.

    Only numbers of pieces go through Beam. A worker reads its piece, writes its shards and notes
    them; the notes are counted in the end. So a piece may be tried again, or be made twice at once.
    `options`: see `RunnerFlags.runner_options`. InputError if Beam is not installed, or refuses the
    options."""

    def __init__(self, options: str) -> None:
        pipeline_options = from_extra("apache_beam.options.pipeline_options", "beam",
                                      "--runner=beam")
        try:
            self._options = pipeline_options.PipelineOptions(shlex.split(options))
            mode = self._options.view_as(pipeline_options.DirectOptions).direct_running_mode
            self._runner = self._options.view_as(pipeline_options.StandardOptions).runner
        except (Exception, SystemExit) as error:    # argparse of Beam ends the process
            raise InputError(f"Beam rejects --runner_options={options!r} ({error}); see Beam's "
                             "pages on pipeline options.") from error
        if mode in _REFUSED:
            raise InputError(f"--runner_options: --direct_running_mode={mode} hangs when a worker "
                             "dies; leave out --runner=beam and give --num_workers instead.")

    def __call__(self, do: Callable[[int], object], count: int) -> None:
        """Does all pieces by the picklable `do`, which makes a piece and notes it. InputError if a
        piece can't be made, or the pipeline failed."""
        import apache_beam as beam  # an extra, and slow to import
        from apache_beam.runners.portability import fn_api_runner
        starts = range(0, count, _RANGE)
        pipeline = beam.Pipeline(runner=self._runner or fn_api_runner.FnApiRunner(),
                                 options=self._options)
        _ = (pipeline | "Ranges" >> beam.Create(list(starts), reshuffle=False)
             | "Pieces" >> beam.FlatMap(lambda start: range(start, min(start + _RANGE, count)))
             | beam.Reshuffle() | "MakePieces" >> beam.Map(do))
        try:
            state = pipeline.run().wait_until_finish()
        except Exception as error:      # each runner has errors of its own
            lines = str(error).strip().splitlines() or [type(error).__name__]
            sentence = (f"the Beam pipeline failed ({lines[-1]}); start the same command again, "
                        "finished pieces are kept.")
            if message := re.search(r"InputError: (.*)", str(error)):
                sentence = message[1].partition(" [while running")[0]
            raise InputError(sentence) from error
        if state not in (None, "DONE", "UNKNOWN"):
            raise InputError(f"the Beam pipeline ended with the state {state}; run the same "
                             "command again to resume: finished pieces are kept.")


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
        InputError if the flags do not go together, or Beam refuses them."""
        check(self)
        if self.runner == "beam":
            return BeamRunner(self.runner_options)
        if not self.piece_share:
            return None
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", self.piece_share)
        if not match or int(match[1]) >= int(match[2]):
            raise InputError(f"--piece_share is {self.piece_share}; it must be K/N with K from 0 "
                             "to N - 1, such as 0/8.")
        return Share(int(match[1]), int(match[2]))
