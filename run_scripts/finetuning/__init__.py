"""Fine-tuning: shared code of the commands."""

from bert_tf import flags


def carry_out(run, job) -> None:
    """Carries out a `FineTuneRun`, and keeps the flags, of which `job` has some, beside it."""
    run.carry_out(lambda: flags.keep(job, run.settings.output_dir))
