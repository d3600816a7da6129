"""Fine-tunes BERT to find answers in paragraphs: SQuAD v1.1 and v2.0.

--do_train learns from --train_file. --do_predict answers --predict_file, and scores the answers
where the file holds the correct ones. With --do_eval, --predict_file is used to choose: it must
hold the answers; every trial is scored on it; and in v2.0 the --null_score_diff_threshold of the
best F1 is found on it after training, kept with the model and used from then on.

By default sequences are 384 tokens long, and training is as in the paper: 3 epochs in batches of
32, in v2.0 2 epochs in batches of 48, at a rate of 5e-5. How a model was trained to read and to
answer is kept with it, and is the default when it predicts.

--output_dir gets predictions.json and nbest_predictions.json, in v2.0 null_odds.json, and, where
there are correct answers, metrics.json and eval_results.txt. Scores are in percent, as the official
scripts print them. Records are made once. The same command started again continues where it
stopped; trials that are finished are not run again.

Example:
    bert-finetune --train_file=train-v1.1.json --predict_file=dev-v1.1.json --do_train \\
        --do_predict --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/squad
    bert-finetune --train_file=train-v2.0.json --predict_file=dev-v2.0.json --do_train --do_eval \\
        --version_2_with_negative --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/squad2
    bert-finetune --predict_file=questions.json --do_predict --init_checkpoint=/tmp/squad2 \\
        --output_dir=/tmp/answers
"""

from bert_tf import flags
from bert_tf.finetuning import jobs
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.paper_defaults import defaults_for, squad_task
from bert_tf.tasks.task_flags import SquadFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning import carry_out


def main(squad_flags: SquadFlags, model_flags: ModelFlags, settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    carry_out(jobs.answer_questions(squad_flags, model_flags, settings), squad_flags)


def run():
    flags.run(main, SquadFlags, ModelFlags, FineTuneSettings, defaults=defaults_for(squad_task))


if __name__ == "__main__":
    run()
