"""Fine-tunes BERT to classify or to rate texts, scores it, and predicts.

The task is one that has a name, in its official files (GLUE, SNLI, SciTail), or your own TSV, CSV
or JSON lines; an example may have several labels. Records are made once. The same command started
again goes on where it stopped; trials that are finished are not run again.

Example:
    bert-run-classifier --task=MRPC --data_dir=glue/MRPC --do_train --do_eval --do_predict \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mrpc --num_trials=3
    bert-run-classifier --train_file=mail.csv --dev_file=mail_dev.csv --text_a_column=body \\
        --label_column=folder --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mail
"""

from bert_tf import flags, objectives
from bert_tf.training.settings import FineTuneSettings
from data_prep.task_flags import TaskFlags
from run_scripts.model_flags import ModelFlags
from run_scripts.task_run import TaskRun


def open_run(task_flags, model_flags, settings):
    """The `TaskRun` of the flags, all of them checked."""
    def make_objective(task, class_weights, _):
        if task.kind == "regression":
            return objectives.Regression
        head = objectives.MultiLabel if task.multi_label else objectives.Classification
        return lambda config, dtype: head(
            config, len(task.labels), label_smoothing=settings.label_smoothing,
            class_weights=class_weights, dtype=dtype)

    return TaskRun(("classification", "regression"), task_flags, model_flags, settings,
                   make_objective)


def main(task_flags, model_flags, settings):
    """Checks everything, then trains, scores and predicts."""
    open_run(task_flags, model_flags, settings).run()


def run():
    """The console entry point."""
    flags.run(main, TaskFlags, ModelFlags, FineTuneSettings)


if __name__ == "__main__":
    run()
