"""Fine-tunes one model on several tasks at once, each with a separate head.

A task may be classification or regression of texts or pairs, multiple choice, ranking, or tagging
of words. By default the training follows MT-DNN (arXiv:1901.11504), with up to 512 tokens. Each
step takes a batch of one task. After each epoch a table shows the scores of all tasks; the epoch
with the best mean is kept. --output_dir gets the model, tasks/NAME with the predictions of each
task, dev_curves.tsv, metrics.json, and with --do_predict the files of GLUE's server in submission.
Run the same command again to resume.

A task's folder is a model like any other: bert-finetune can train tasks/mrpc further,
bert-export-model can export it, and Predictor("output_dir", task="mrpc") opens it.

Example:
    bert-finetune --tasks=mnli,rte,mrpc,cola,sts-b --data_dir=glue --do_train --do_eval \\
        --do_predict --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mtdnn
    bert-finetune --tasks=mrpc,mail --data_dir=glue --task_config_path=tasks.json --do_train \\
        --do_eval --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mine

where tasks.json is {"mail": {"train_file": "mail.csv", "dev_file": "mail_dev.csv",
"text_a_column": "body", "label_column": "folder"}}.
"""

from bert_tf import flags
from bert_tf.finetuning import jobs
from bert_tf.finetuning.mixture import MixtureFlags
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.run import open_mixture
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning import carry_out


def main(mixture: MixtureFlags, job: ModelFlags, settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    carry_out(open_mixture(mixture, job, settings), mixture)


def run() -> None:
    flags.run(main, MixtureFlags, ModelFlags, FineTuneSettings,
              defaults=lambda given: ("MT-DNN", jobs.MTDNN_DEFAULTS))


if __name__ == "__main__":
    run()
