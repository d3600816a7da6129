"""Fine-tunes BERT to give each word of a sentence a tag, scores it, and predicts.

The task is CoNLL-2003, in its official files, or your own: a word a line with its tag in the last
column, and a blank line between sentences. Names such as B-PER are scored as entities, other tags
word by word. With --feature_layers the encoder stays as it is, and LSTMs learn from its vectors of
the words. Records are made once. The same command started again continues where it stopped;
finished trials are not run again.

Example:
    bert-finetune --task=conll2003 --data_dir=conll2003 --do_lower_case=False \\
        --document_context --do_train --do_eval --do_predict \\
        --init_checkpoint=cased_L-12_H-768_A-12 --output_dir=/tmp/names
    bert-finetune tagger --train_file=train.txt --dev_file=dev.txt --do_train --do_eval \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/tags
"""

import dataclasses

from bert_tf import flags
from bert_tf.flags import Scope, check, option
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from run_scripts.finetuning.ensemble import open_models
from run_scripts.finetuning.model import FEATURE_LAYERS, ModelFlags, frozen
from run_scripts.finetuning.relatives import defaults_for, named_task

_LSTMS = Scope("LSTMs, which --feature_layers gives features to", bool, "feature_layers")


@dataclasses.dataclass
class HeadFlags:
    """The head, which predicts a word's tag; by default as the model was trained."""

    document_context: bool | None = option(
        None, "Fill up sequences with the neighbouring sentences of the document (default: False).",
        rare=True)
    feature_layers: str | None = option(
        None, "Layers of the encoder whose vectors LSTMs read. The LSTMs are trained instead of "
        "the encoder (arXiv:1810.04805, table 7), by default with --learning_rate=1e-3 and "
        "--train_batch_size=32.", choices=FEATURE_LAYERS)
    lstm_size: int | None = option(
        None, "Width of each direction of the LSTMs of --feature_layers (default: 768).",
        for_=_LSTMS)
    lstm_layers: int | None = option(
        None, "Number of stacked LSTMs of --feature_layers (default: 2).",
        for_=_LSTMS)

    def frozen(self, settings: FineTuneSettings) -> FineTuneSettings:
        """The settings of training, with the encoder frozen if it only gives features."""
        check(self)
        return frozen(settings, "feature_layers") if self.feature_layers else settings


def main(task_flags: TaskFlags, model_flags: ModelFlags, head_flags: HeadFlags,
         settings: FineTuneSettings) -> None:
    """Checks everything, then trains, scores and predicts."""
    if model_flags.do_train:
        settings = head_flags.frozen(settings)
    open_models("run_tagger", task_flags, model_flags, settings,
             dataclasses.asdict(head_flags)).carry_out()


def run():
    flags.run(main, TaskFlags, ModelFlags, HeadFlags, FineTuneSettings,
              defaults=defaults_for(named_task))


if __name__ == "__main__":
    run()
