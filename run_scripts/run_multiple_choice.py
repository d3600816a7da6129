"""Fine-tunes BERT to choose how a text continues, scores it, and predicts.

The task is SWAG, in its official files, or your own CSV, TSV or JSON lines with a column for each
choice. The label is the number of the right choice, from 0. Records are made once. Run the same
command again to resume; it does not repeat finished trials.

Example:
    bert-finetune --task=SWAG --data_dir=swag --do_train --do_eval --do_predict \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/swag
    bert-finetune --train_file=quiz.jsonl --dev_file=quiz_dev.jsonl \\
        --text_a_column=question --choice_columns='answer*' --label_column=right \\
        --do_train --do_eval --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/quiz
"""

from bert_tf import flags
from bert_tf.finetuning import jobs
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.paper_defaults import named_defaults
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning import carry_out


def main(task_flags: TaskFlags, model_flags: ModelFlags, settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    carry_out(jobs.choose(task_flags, model_flags, settings), task_flags)


def run():
    flags.run(main, TaskFlags, ModelFlags, FineTuneSettings, defaults=named_defaults)


if __name__ == "__main__":
    run()
