"""Fine-tuning: shared code of the commands."""

import contextlib

from bert_tf.files import locked, make_folder


def alone(settings) -> contextlib.AbstractContextManager:
    """Holds the lock of the output folder during a run's preparation. Several workers, which write
    the same files there, take no lock before they have met."""
    if settings.distribution_strategy == "multi_worker":
        return contextlib.nullcontext()
    make_folder(settings.output_dir, "output_dir")
    return locked(settings.output_dir, "--output_dir")
