"""Fine-tunes BERT to give each word of a sentence a tag, scores it, and predicts.

The task is CoNLL-2003, in its official files, or your own: one word per line with its tag in the
last column, and a blank line between sentences. Names such as B-PER are scored as entities, other
tags word by word. With --feature_layers the encoder is not trained, and LSTMs learn from its
vectors. Records are made once. Run the same command again to resume; it does not repeat finished
trials.

Example:
    bert-finetune --task=conll2003 --data_dir=conll2003 --do_lower_case=False \\
        --document_context --do_train --do_eval --do_predict \\
        --init_checkpoint=cased_L-12_H-768_A-12 --output_dir=/tmp/names
    bert-finetune tagger --train_file=train.txt --dev_file=dev.txt --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/tags
"""

from bert_tf import flags
from bert_tf.finetuning import jobs
from bert_tf.finetuning.head_flags import TaggerFlags
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.paper_defaults import named_defaults
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning import carry_out


def main(task_flags: TaskFlags, model_flags: ModelFlags, head_flags: TaggerFlags,
         settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    carry_out(jobs.tag(task_flags, model_flags, settings, head_flags), task_flags)


def run():
    flags.run(main, TaskFlags, ModelFlags, TaggerFlags, FineTuneSettings,
              defaults=named_defaults)


if __name__ == "__main__":
    run()
