"""Fine-tunes a model to classify texts or predict numbers; scores it and predicts.

The task is a named task in its official files (GLUE, SNLI, SciTail), or your own TSV, CSV or JSON
lines. An example may have several labels. Records are made once. Run the same command again to
resume; it does not repeat finished trials.

Example:
    bert-finetune --task=MRPC --data_dir=glue/MRPC --do_train --do_eval --do_predict \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mrpc --num_trials=3
    bert-finetune --train_file=mail.csv --dev_file=mail_dev.csv --text_a_column=body \\
        --label_column=folder --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mail
"""

from bert_tf import flags
from bert_tf.finetuning import jobs
from bert_tf.finetuning.head_flags import ClassifierFlags
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.paper_defaults import named_defaults
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning import carry_out


def main(task_flags: TaskFlags, model_flags: ModelFlags, settings: FineTuneSettings,
         head_flags: ClassifierFlags | None = None) -> None:
    """Checks everything, then trains, scores and predicts."""
    carry_out(jobs.classify(task_flags, model_flags, settings, head_flags), task_flags)


def run():
    flags.run(main, TaskFlags, ModelFlags, FineTuneSettings, ClassifierFlags,
              defaults=named_defaults)


if __name__ == "__main__":
    run()
