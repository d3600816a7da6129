"""The flags of heads that classify texts and that tag words."""

import dataclasses

from bert_tf.finetuning.model import FEATURE_LAYERS, frozen
from bert_tf.flags import Scope, check, option
from bert_tf.heads import CHOICES
from bert_tf.training.settings import FineTuneSettings


def _heads_with(flag):
    """The `Scope` of a flag that only some heads have."""
    names = [name for name, head in CHOICES.items() if flag in head.choice.flags]
    return Scope(" and ".join(f"--head={name}" for name in names), names.__contains__, "head")


@dataclasses.dataclass
class ClassifierFlags:
    """The head; by default as the model was trained."""

    head: str | None = option(
        None, " ".join(["Head that classifies a text.", *(
            f"{name}: {head.choice.help}" for name, head in CHOICES.items())]),
        choices=tuple(CHOICES))
    head_size: int | None = option(
        None, "Width of the head's hidden layer (default: see --head).",
        for_=_heads_with("head_size"))
    label_gain: bool | None = option(
        None, "Train the classifier at every token, with more weight on later tokens (default: "
        "False).", for_=_heads_with("label_gain"))
    feature_layers: str | None = option(
        None, "Layers that give the features (default: elmo, the sum of all layers with learned "
        "weights).", choices=FEATURE_LAYERS, for_=_heads_with("feature_layers"))
    lstm_size: int | None = option(
        None, "Width of each direction of the head's LSTMs (default: see --head).",
        for_=_heads_with("lstm_size"))
    lstm_layers: int | None = option(
        None, "Number of the head's stacked LSTMs (default: see --head).",
        for_=_heads_with("lstm_layers"))

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
        None, "Number of stacked LSTMs of --feature_layers (default: 2).", for_=_LSTMS)

    def frozen(self, settings: FineTuneSettings) -> FineTuneSettings:
        """The settings of training, with the encoder frozen if it only gives features."""
        check(self)
        return frozen(settings, "feature_layers") if self.feature_layers else settings
