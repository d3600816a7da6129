"""Fine-tunes BERT to find answers in paragraphs: SQuAD v1.1 and v2.0.

--do_train learns from --train_file. --do_predict answers --predict_file, and scores the answers if
the file holds the correct answers. With --do_eval, the file must hold the answers, and every trial
is scored on it. In v2.0 the command also finds the --null_score_diff_threshold with the best F1 on
it after training, and keeps this threshold with the model.

By default sequences are 384 tokens long, and training is as in the paper: 3 epochs in batches of
32, in v2.0 2 epochs in batches of 48, with a learning rate of 5e-5. The model keeps its lengths and
its style; they are the defaults in prediction.

--output_dir gets predictions.json and nbest_predictions.json, in v2.0 null_odds.json, and, if the
file holds the correct answers, metrics.json and eval_results.txt. Scores are in percent, as the
official scripts print them. Records are made once. Run the same command again to resume; it does
not repeat finished trials.

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
from bert_tf.finetuning.paper_defaults import squad_defaults
from bert_tf.tasks.task_flags import SquadFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning import carry_out


def main(squad_flags: SquadFlags, model_flags: ModelFlags, settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    carry_out(jobs.answer_questions(squad_flags, model_flags, settings), squad_flags)


def run():
    flags.run(main, SquadFlags, ModelFlags, FineTuneSettings, defaults=squad_defaults)


if __name__ == "__main__":
    run()
