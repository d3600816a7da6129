"""Fine-tunes BERT to give each word of a sentence a tag, scores it, and predicts.

The task is CoNLL-2003, in its official files, or your own: a word a line with its tag in the last
column, and a blank line between sentences. Names such as B-PER are scored as entities, other tags
word by word. With --feature_layers the encoder stays as it is, and LSTMs learn from what it says of
the words. Records are made once. The same command started again goes on where it stopped; trials
that are finished are not run again.

Example:
    bert-run-tagger --task=conll2003 --data_dir=conll2003 --do_lower_case=False \\
        --document_context --do_train --do_eval --do_predict \\
        --init_checkpoint=cased_L-12_H-768_A-12 --output_dir=/tmp/names
    bert-run-tagger --train_file=train.txt --dev_file=dev.txt --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/tags
"""

import dataclasses

from bert_tf import flags, objectives
from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.training.settings import FineTuneSettings
from data_prep.task_flags import TaskFlags
from run_scripts.model_flags import ModelFlags
from run_scripts.task_run import TaskRun

# What bert_tf/objectives/tagging.py makes; flags are read before Keras is.
FEATURE_LAYERS = ("embeddings", "second_to_last", "last", "weighted_sum_last_4", "concat_last_4",
                  "weighted_sum_all")


@dataclasses.dataclass
class HeadFlags:
    """What a word's tag is told from; without --do_train, what the model was trained with."""

    document_context: bool | None = option(
        None, "Fill sequences with the sentences around, from one document (default: False).")
    feature_layers: str | None = option(
        None, "Instead of training the encoder, train LSTMs that read these of its layers "
        "(arXiv:1810.04805, table 7); with --learning_rate=1e-3 and --train_batch_size=32, if "
        "these say nothing.", choices=FEATURE_LAYERS)
    lstm_size: int | None = option(
        None, "Width of each direction of the LSTMs of --feature_layers (default: 768).")
    lstm_layers: int | None = option(
        None, "LSTMs of --feature_layers, one after the other (default: 2).")

    def frozen(self, settings):
        """The settings of training, with the encoder frozen if it only gives features.

        Raises:
            InputError: a flag is of the other way to train.
        """
        if not self.feature_layers:
            for name in ("lstm_size", "lstm_layers"):
                if getattr(self, name) is not None:
                    raise InputError(f"--{name} is of the LSTMs of --feature_layers: give it too, "
                                     "or leave this out.")
            return settings
        for name, allowed in (("frozen_layers", (0, -1)), ("reinit_layers", (0,))):
            if getattr(settings, name) not in allowed:
                raise InputError(f"--{name} is {getattr(settings, name)}, but --feature_layers "
                                 "takes the whole encoder as it is: leave out one of them.")
        return dataclasses.replace(
            settings, frozen_layers=-1, learning_rate=settings.learning_rate or 1e-3,
            train_batch_size=settings.train_batch_size or 32)


def main(task_flags, model_flags, head_flags, settings):
    """Checks everything, then trains, scores and predicts."""
    if model_flags.do_train:
        settings = head_flags.frozen(settings)

    def make_objective(task, class_weights, options):
        if model_flags.do_train and options["feature_layers"] != head_flags.feature_layers:
            raise InputError(f"--init_checkpoint was trained with --feature_layers="
                             f"{options['feature_layers']}: give the flag, or leave out "
                             "--keep_head.")
        common = {"label_smoothing": settings.label_smoothing, "class_weights": class_weights}

        def make(config, dtype):
            if not options["feature_layers"]:
                return objectives.Tagging(config, len(task.labels), dtype=dtype, **common)
            sizes = {name: options[name] for name in ("lstm_size", "lstm_layers")
                     if options[name] is not None}
            return objectives.FeatureTagging(
                config, len(task.labels), options["feature_layers"], dtype=dtype, **sizes, **common)
        return make

    TaskRun(("tagging",), task_flags, model_flags, settings, make_objective,
            dataclasses.asdict(head_flags)).run()


def run():
    """The console entry point."""
    flags.run(main, TaskFlags, ModelFlags, HeadFlags, FineTuneSettings)


if __name__ == "__main__":
    run()
