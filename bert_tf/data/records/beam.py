"""Pieces made by Apache Beam, and so by Dataflow, Flink or Spark.

Only numbers of pieces go through Beam. A worker reads its piece, writes its shards and notes them;
the notes are counted in the end. So a piece may be tried again, or be made twice at once.
"""

import re
import shlex
from collections.abc import Callable

from bert_tf.errors import InputError

_RANGE = 1000               # pieces in an element of the graph
# Each hangs when a worker dies; this machine's own workers do not.
_REFUSED = ("multi_threading", "multi_processing")


class BeamRunner:
    """Makes pieces in a Beam pipeline.

    Args:
        options: options of the pipeline as on its command line; without a runner, the pieces are
            made in this process.

    Raises:
        InputError: Beam is not installed, or refuses the options.
    """

    def __init__(self, options: str = "") -> None:
        try:
            from apache_beam.options import pipeline_options
        except ImportError as error:
            raise InputError("--runner=beam needs Apache Beam, which is not installed "
                             f"({error}); pip install 'bert_tf[beam]'.") from error
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
        """Does all pieces by the picklable `do`, which makes a piece and notes it.

        Raises:
            InputError: a piece can't be made, or the pipeline failed.
        """
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
            raise InputError(_sentence(error)) from error
        if state not in (None, "DONE", "UNKNOWN"):
            raise InputError(f"the Beam pipeline ended with the state {state}; run the same "
                             "command again to resume: finished pieces are kept.")


def _sentence(error):
    if message := re.search(r"InputError: (.*)", str(error)):
        return message[1].partition(" [while running")[0]
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return (f"the Beam pipeline failed ({lines[-1]}); start the same command again, finished "
            "pieces are kept.")
