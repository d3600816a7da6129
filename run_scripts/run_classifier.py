"""Fine-tunes BERT to classify or to rate texts, scores it, and predicts.

The task is one that has a name, in its official files (GLUE, SNLI, SciTail), or your own TSV, CSV
or JSON lines; an example may have several labels. Records are made once. The same command started
again continues where it stopped; trials that are finished are not run again.

Example:
    bert-finetune --task=MRPC --data_dir=glue/MRPC --do_train --do_eval --do_predict \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mrpc --num_trials=3
    bert-finetune --train_file=mail.csv --dev_file=mail_dev.csv --text_a_column=body \\
        --label_column=folder --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mail
"""

import dataclasses

from bert_tf import flags
from bert_tf.flags import Scope, check, option
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning.ensemble import open_models
from run_scripts.finetuning.model import FEATURE_LAYERS, ModelFlags, frozen
from run_scripts.finetuning.relatives import defaults_for, named_task

HEADS = ("linear", "step", "attentive")
_WIDE = Scope("--head=step and --head=attentive", HEADS[1:].__contains__, "head")
_STEP = Scope("--head=step", "step".__eq__, "head")
_ATTENTIVE = Scope("--head=attentive", "attentive".__eq__, "head")


@dataclasses.dataclass
class ClassifierFlags:
    """The head; by default as the model was trained."""

    head: str | None = option(
        None, "Head that classifies a text. linear: one layer on the pooled output (default). "
        "step: a hidden layer on the output at the last token (arXiv:1511.01432; the default of "
        "its LSTM). attentive: LSTMs on features from the model's layers, which are not trained, "
        "with attention between two texts (arXiv:1804.07461).", choices=HEADS)
    head_size: int | None = option(
        None, "Width of the hidden layer of --head=step (default: 30) or --head=attentive "
        "(default: 512).", for_=_WIDE)
    label_gain: bool | None = option(
        None, "With --head=step, classify at all tokens in training, with more weight on later "
        "tokens (default: False).", for_=_STEP)
    feature_layers: str | None = option(
        None, "With --head=attentive, layers that give the features (default: elmo, the sum of all "
        "layers with learned weights).", choices=FEATURE_LAYERS, for_=_ATTENTIVE)
    lstm_size: int | None = option(
        None, "Width of each direction of the LSTMs of --head=attentive (default: 1500).",
        for_=_ATTENTIVE)
    lstm_layers: int | None = option(
        None, "Number of stacked LSTMs of --head=attentive (default: 2).", for_=_ATTENTIVE)

    def options(self) -> dict:
        """Returns the flags by name."""
        check(self)
        return dataclasses.asdict(self)


def main(task_flags: TaskFlags, model_flags: ModelFlags, settings: FineTuneSettings,
         head_flags: ClassifierFlags | None = None) -> None:
    """Checks everything, then trains, scores and predicts."""
    head_flags = head_flags or ClassifierFlags()
    options = head_flags.options()
    if head_flags.head == "attentive" and model_flags.do_train:
        settings = frozen(settings, "head=attentive")
    open_models("run_classifier", task_flags, model_flags, settings,
             {"label_scale": task_flags.label_scale, **options}).carry_out()


def run():
    flags.run(main, TaskFlags, ModelFlags, FineTuneSettings, ClassifierFlags,
              defaults=defaults_for(named_task))


if __name__ == "__main__":
    run()
