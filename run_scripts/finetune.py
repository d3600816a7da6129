"""Fine-tunes a model on a task or on several, scores it, and predicts.

Give your own files and their columns, or name a task (--task), several (--tasks) or a suite
(--suite). For your own files, --task_kind may say what to predict. The task decides which flags
there are: --help together with these flags lists the flags for this task, --help alone those for
texts to classify.

With --suite=glue the command fine-tunes on each task of GLUE, at every point of a grid of settings,
with several seeds. It chooses the point with the best median on the development set; the best run
of this point predicts the test files. It writes the mean, deviation and median of every task and
point, the suite's averages, and the archive for the server. Several processes with the same flags
share the work.

The command makes records once; with --records_only it makes them and does not train. Run the same
command again to resume; it does not repeat finished trials.

Example:
    bert-finetune --train_file=mail.csv --dev_file=mail_dev.csv --text_a_column=body \\
        --label_column=folder --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mail
    bert-finetune --task=MRPC --data_dir=glue/MRPC --do_train --do_eval --do_predict \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mrpc --num_trials=3
    bert-finetune --task_kind=tagging --train_file=train.conll --dev_file=dev.conll --do_train \\
        --do_eval --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/tags
    bert-finetune --task=squad --data_dir=squad --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/squad
    bert-finetune --train_file=quiz.jsonl --dev_file=quiz_dev.jsonl --text_a_column=question \\
        --choice_columns='answer*' --label_column=right --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/quiz
    bert-finetune --tasks=mnli,rte,mrpc,cola,sts-b --data_dir=glue --do_train --do_eval \\
        --do_predict --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mtdnn
    bert-finetune --suite=glue --data_dir=glue --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --output_dir=/tmp/glue --num_trials=5 --dry_run
"""

import sys
from typing import Any

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.finetuning import jobs
from bert_tf.finetuning.suite_flags import SuiteFlags
from bert_tf.flags.parsing import expand_flagfiles, given_flags
from run_scripts import commands


def carry_out(run, job) -> None:
    """Carries out a `FineTuneRun`, and keeps the flags of `job` in its output folder."""
    run.carry_out(lambda: flags.keep(job, run.settings.output_dir, trains=run.flags.do_train))


def main(*groups: Any) -> None:
    """Checks everything, then trains, scores and predicts. `groups` are the filled dataclasses of a
    row of `jobs.JOBS`; flags of a head may be left out."""
    first = groups[0]
    if isinstance(first, SuiteFlags):
        from bert_tf.finetuning import suite_run
        suite_run.carry_out(first, lambda: flags.keep(first, first.output_dir))
    else:
        job = next(job for job in jobs.JOBS.values() if isinstance(first, job.classes[0]))
        carry_out(job.open(*groups), first)


def run() -> None:
    try:
        job = jobs.JOBS[jobs.job_of(given_flags(expand_flagfiles(sys.argv[1:])))]
    except InputError as error:
        sys.exit(f"error: {error}")
    flags.run(main, *job.classes, defaults=job.defaults)


if __name__ == "__main__":
    commands.run("bert-finetune")
