"""Fine-tunes T5, text to text: one task or a mixture of several.

--tasks names tasks of GLUE, SuperGLUE and SQuAD in their official files, which become text as in
the original: "mnli hypothesis: ... premise: ...", and the words of a label. Your own files hold an
input, a tab and a target on each line, for any task, such as words with their tags. Scores are the
official metrics of each task, in percent. A text that is not a label of its task counts as wrong.

By default training is as in the original: Adafactor with a constant learning rate of 0.001. Run the
same command again to resume. --output_dir gets the model, which `bert_tf.Predictor` opens,
predictions.tsv of each file and metrics.json.

Example:
    bert-finetune text-to-text --tasks=cola,mrpc --data_dir=glue --do_train --do_eval \\
        --init_checkpoint=t5-small --num_train_steps=2000 --output_dir=/tmp/t5
    bert-finetune text-to-text --train_file=tags.tsv --dev_file=tags_dev.tsv --do_train --do_eval \\
        --init_checkpoint=t5-small --num_train_steps=2000 --output_dir=/tmp/tags
"""

from bert_tf import flags
from bert_tf.finetuning import jobs
from bert_tf.models.t5.finetuning import TextModelFlags, open_texts
from bert_tf.models.t5.task_flags import TextFlags
from bert_tf.training.settings import TrainSettings
from run_scripts.finetuning import carry_out


def main(text_flags: TextFlags, job: TextModelFlags, settings: TrainSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    carry_out(open_texts(text_flags, job, settings), job)


def run() -> None:
    flags.run(main, TextFlags, TextModelFlags, TrainSettings,
              defaults=lambda given: ("fine-tuning of t5", jobs.T5_DEFAULTS))


if __name__ == "__main__":
    run()
