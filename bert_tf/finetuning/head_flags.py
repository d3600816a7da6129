"""The flags of heads that classify texts and that tag words."""

import dataclasses

from bert_tf.finetuning.model import FEATURE_LAYERS, frozen
from bert_tf.flags import check, only, option
from bert_tf.heads import CHOICES
from bert_tf.training.settings import FineTuneSettings


def _of_heads(flag):
    """An `option` for a flag that only some heads have."""
    return only("head", *(name for name, head in CHOICES.items() if flag in head.choice.flags))


@dataclasses.dataclass
class ClassifierFlags:
    """The head; by default as the model was trained."""

    head: str | None = option(
        None, " ".join(["Head that classifies a text.", *(
            f"{name}: {head.choice.help}" for name, head in CHOICES.items())]),
        choices=tuple(CHOICES))
    head_size: int | None = _of_heads("head_size")(
        None, "Width of the head's hidden layer (default: see --head).")
    label_gain: bool | None = _of_heads("label_gain")(
        None, "Train the classifier at every token, with more weight on later tokens (default: "
        "False).")
    feature_layers: str | None = _of_heads("feature_layers")(
        None, "Layers that give the features (default: elmo, the sum of all layers with learned "
        "weights).", choices=FEATURE_LAYERS)
    lstm_size: int | None = _of_heads("lstm_size")(
        None, "Width of each direction of the head's LSTMs (default: see --head).")
    lstm_layers: int | None = _of_heads("lstm_layers")(
        None, "Number of the head's stacked LSTMs (default: see --head).")

    def options(self) -> dict:
        """Returns the flags by name."""
        check(self)
        return dataclasses.asdict(self)

    def frozen(self, settings: FineTuneSettings) -> FineTuneSettings:
        """The settings of training, with the encoder frozen if it only gives features."""
        if self.head and CHOICES[self.head].choice.freezes:
            return frozen(settings, f"head={self.head}")
        return settings


_of_lstms = only("feature_layers")


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
    lstm_size: int | None = _of_lstms(
        None, "Width of each direction of the LSTMs of --feature_layers (default: 768).")
    lstm_layers: int | None = _of_lstms(
        None, "Number of stacked LSTMs of --feature_layers (default: 2).")

    options = ClassifierFlags.options

    def frozen(self, settings: FineTuneSettings) -> FineTuneSettings:
        """As of `ClassifierFlags`."""
        return frozen(settings, "feature_layers") if self.feature_layers else settings
