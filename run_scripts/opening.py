"""The devices and the records of a run that fine-tunes."""

import os

from bert_tf.files import make_folder


def open_records(model_flags, settings, defaults, names, make):
    """Opens devices, makes records where they are not there yet, and reads them into memory.

    Args:
        model_flags: `ModelFlags`.
        settings: `FineTuneSettings`.
        defaults: the task's `Defaults`.
        names: of the records.
        make: function (folder, num_workers, may_replace) that makes them; one process calls it.

    Returns:
        The strategy, and a dict of `ExampleSet` by name.

    Raises:
        InputError: the devices are not there, a folder can't be written, or what `make` raises.
    """
    from bert_tf.data.example_set import ExampleSet     # pylint: disable=C0415
    from bert_tf.training.trainer import open_strategy     # pylint: disable=C0415
    from bert_tf.training.distribution import is_chief      # pylint: disable=C0415
    from bert_tf.training.run import wait_for_workers       # pylint: disable=C0415
    strategy = open_strategy(settings.resolve(defaults, 1), trains=model_flags.do_train)
    make_folder(settings.output_dir, "output_dir")
    folder = model_flags.records_dir or os.path.join(settings.output_dir, "records")
    if is_chief(strategy):
        make_folder(folder, "records_dir")
        make(folder, model_flags.num_workers, not model_flags.records_dir)
    wait_for_workers(strategy)
    return strategy, {
        name: ExampleSet(os.path.join(folder, f"{name}.manifest.json"), settings.pad_to_max_length)
        for name in names}
