"""The flags of heads that classify texts and that tag words."""

import dataclasses

from bert_tf.finetuning.model import FEATURE_LAYERS, frozen
from bert_tf.flags import Scope, check, option
from bert_tf.training.settings import FineTuneSettings

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
        "its LSTM). attentive: LSTMs with attention between the two texts, on features from the "
        "model's frozen layers (arXiv:1804.07461).", choices=HEADS)
    head_size: int | None = option(
        None, "Width of the hidden layer of --head=step (default: 30) or --head=attentive "
        "(default: 512).", for_=_WIDE)
    label_gain: bool | None = option(
        None, "With --head=step, train the classifier at every token, with more weight on later "
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


_LSTMS = Scope("LSTMs, which --feature_layers gives features to", bool, "feature_layers")


@dataclasses.dataclass
class TaggerFlags:
    """The head, which predicts a word's tag; by default as the model was trained."""

    document_context: bool | None = option(
        None, "Fill sequences up with neighbouring sentences of the document (default: False).",
        rare=True)
    feature_layers: str | None = option(
        None, "Train LSTMs on the vectors of these layers, and keep the encoder frozen "
        "(arXiv:1810.04805, table 7). The defaults are then --learning_rate=1e-3 and "
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
