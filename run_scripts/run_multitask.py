"""Fine-tunes one model on several tasks at once, each with a head of its own.

Tasks are classification of texts and of pairs, similarity, choices, and tags of words. By default
training is that of MT-DNN (arXiv:1901.11504), with up to 512 tokens. Every step is a batch of one
task. After each epoch a table shows the scores of all tasks; the epoch with the best mean is kept.
--output_dir gets the model, tasks/NAME with the predictions of each task, dev_curves.tsv,
metrics.json, and with --do_predict the files of GLUE's server in submission. The same command
started again continues where it stopped.

A task's folder is a model like any other: tasks/mrpc is what bert-finetune trains further,
bert-export-model exports, and Predictor("output_dir", task="mrpc") opens.

Example:
    bert-finetune --tasks=mnli,rte,mrpc,cola,sts-b --data_dir=glue --do_train --do_eval \\
        --do_predict --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mtdnn
    bert-finetune --tasks=mrpc,mail --data_dir=glue --task_config_path=tasks.json --do_train \\
        --do_eval --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mine

where tasks.json is {"mail": {"train_file": "mail.csv", "dev_file": "mail_dev.csv",
"text_a_column": "body", "label_column": "folder"}}.
"""

from bert_tf import flags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning.model import ModelFlags
from run_scripts.finetuning.multitask import MixtureFlags
from run_scripts.finetuning.multitask_run import open_run

_DEFAULTS = {"optimizer": "adamax", "learning_rate": 5e-5, "num_train_epochs": 5.0,
             "train_batch_size": 32}


def main(mixture: MixtureFlags, job: ModelFlags, settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    run = open_run(mixture, job, settings)
    if run.is_chief:
        flags.keep(mixture, settings.output_dir)
    run.carry_out()


def run() -> None:
    """The console entry point."""
    flags.run(main, MixtureFlags, ModelFlags, FineTuneSettings,
              defaults=lambda given: ("MT-DNN", dict(_DEFAULTS)))


if __name__ == "__main__":
    run()
