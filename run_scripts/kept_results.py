"""The results that a command keeps as they arrive: started again, it measures only missing ones."""

import dataclasses
import os
from collections.abc import Collection
from typing import Any

from bert_tf import flags
from bert_tf.files import make_folder, with_whole_names
from bert_tf.kept import Kept


def open_results(job: Any, free: Collection[str], *others: Any, **contents: Any) -> Kept:
    """Opens results.json in a command's `output_dir`, which is made. All flags of `job` but the
    `free` ones, flags of `others` that are not at their defaults, and `contents`, values that
    identify files, must be as before; else InputError."""
    make_folder(job.output_dir, "output_dir")
    settings = {name: value for name, value in dataclasses.asdict(job).items()
                if name not in ("output_dir", *free)}
    for other in others:
        settings |= flags.changed(other)
    results = Kept(os.path.join(job.output_dir, "results.json"),
                   with_whole_names(settings | contents))
    flags.keep(job, job.output_dir)         # not those that do not fit the results
    return results
