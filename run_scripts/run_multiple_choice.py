"""Fine-tunes BERT to choose how a text goes on, scores it, and predicts.

The task is SWAG, in its official files, or your own CSV, TSV or JSON lines with a column for each
of any number of choices; the label is the number of the right one, from 0. Records are made once.
The same command started again goes on where it stopped; trials that are finished are not run again.

Example:
    bert-run-multiple-choice --task=SWAG --data_dir=swag --do_train --do_eval --do_predict \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/swag
    bert-run-multiple-choice --train_file=quiz.jsonl --dev_file=quiz_dev.jsonl \\
        --text_a_column=question --choice_columns='answer*' --label_column=right \\
        --do_train --do_eval --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/quiz
"""

from bert_tf import flags, objectives
from bert_tf.training.settings import FineTuneSettings
from data_prep.task_flags import TaskFlags
from run_scripts.model_flags import ModelFlags
from run_scripts.task_run import TaskRun


def main(task_flags, model_flags, settings):
    """Checks everything, then trains, scores and predicts."""
    def make_objective(*_):
        return lambda config, dtype: objectives.MultipleChoice(
            config, label_smoothing=settings.label_smoothing, dtype=dtype)

    TaskRun(("multiple_choice",), task_flags, model_flags, settings, make_objective).run()


def run():
    """The console entry point."""
    flags.run(main, TaskFlags, ModelFlags, FineTuneSettings)


if __name__ == "__main__":
    run()
