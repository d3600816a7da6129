"""A model as a function of ids, which every runtime can run."""

from collections.abc import Collection
from typing import Any

import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.heads import OBJECTIVES, Head
from bert_tf.layers.changes import no_branches

_POSITIONS = "masked_lm_positions"      # where a masked LM predicts
_SEGMENTS = "segment_ids"
# Names in ONNX files are Hugging Face's, whose libraries look for them.
LIBRARY_INPUTS = {"input_mask": "attention_mask", _SEGMENTS: "token_type_ids",
                  "encoder_input_tokens": "input_ids", "decoder_input_tokens": "decoder_input_ids"}
_LIBRARY_OUTPUTS = {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output"}


def heads_of(model: Any) -> list[Head]:
    heads = [OBJECTIVES.get(type(objective).__name__)
             for objective in getattr(model, "objectives", ())]
    return [head for head in heads if head]


def takes_choices(model) -> bool:
    """Returns whether a model takes several choices for each example: features [B, C, S]."""
    orders = [getattr(objective, "orders", 1) for objective in getattr(model, "objectives", ())]
    return max(orders, default=1) > 1 or any("C" in head.inputs for head in heads_of(model))


def answers(model, features: dict[str, tf.Tensor], left_out: Collection[str] = ()
            ) -> dict[str, tf.Tensor]:
    """Returns a model's named outputs, float32 except positions, without those `left_out`: of an
    encoder `sequence_output` [B, S, H] and `pooled_output` [B, H]; of a network with a decoder
    `logits` [B, T, V]; or the answers of a Learner of one objective. `features` are int32 [B, S],
    or [B, C, S] if the model `takes_choices`."""
    if len(getattr(model, "objectives", ())) > 1:
        names = ", ".join(objective.name for objective in model.objectives)
        raise InputError(f"the model has several objectives ({names}); export its encoder, or a "
                         "Learner with the encoder and one objective.")
    outputs = model(features)
    if hasattr(model, "logits"):
        named = {"logits": model.logits(outputs["sequence_output"])}
    elif hasattr(model, "objectives"):
        objective, = model.objectives
        named = objective.answers(outputs[objective.name])
    else:
        named = {name: outputs[name] for name in ("sequence_output", "pooled_output")}
    return {name: tf.cast(value, tf.float32) if value.dtype.is_floating else value
            for name, value in named.items() if name not in left_out}


def check_length(model: Any, length: int, least: int = 1) -> None:
    """Raises InputError if a model can't read sequences of this length, or it is below `least`."""
    longest = getattr(model, "encoder", model).config.max_position_embeddings
    if not least <= length <= longest:
        raise InputError(f"max_seq_length is {length}; it must be from {least} to the model's "
                         f"{longest}.")


class IdsModel(tf.Module):
    """Maps a network's features, int32 [B, S], or [B, C, S] if the model `takes_choices`, to
    `answers`. A masked LM takes `masked_lm_positions`, int32 [B, P], too, and answers for these
    alone: float32 [B, P, V].

    `function` is the tf.function, and `functions` the signatures of a SavedModel by name.
    `library_function` is the same for ONNX: int64 inputs and outputs under Hugging Face's names,
    without segments if the network has none. `axes` are the names of the axes of each of its
    inputs, `output_axes` of the first two axes of its outputs."""

    def __init__(self, model, length: int | None = None, left_out: Collection[str] = ()):
        """`length` is the only S that the function takes, for runtimes that need a fixed one; None:
        any S. For `left_out` see `answers`."""
        super().__init__()
        if length is not None:
            check_length(model, length)
        self._weights = [v.value for v in model.weights]    # for the SavedModel
        shape = [None, None, length] if takes_choices(model) else [None, length]
        shapes = dict.fromkeys(model.reads, shape)
        if any(_POSITIONS in objective.reads for objective in getattr(model, "objectives", ())):
            shapes[_POSITIONS] = [None, None]
        self.function = tf.function(
            lambda *ids: answers(model, dict(zip(shapes, ids)), left_out), autograph=False,
            input_signature=[tf.TensorSpec(shape, tf.int32, name)
                             for name, shape in shapes.items()])
        has_segments = getattr(model, "encoder", model).config.has_segments
        read = [name for name in shapes if name != _SEGMENTS or has_segments]

        def answer_library(*ids):
            features = {name: tf.cast(value, tf.int32) for name, value in zip(read, ids)}
            if len(read) < len(shapes):     # tokenizers give such a network no segments
                features[_SEGMENTS] = tf.zeros_like(features["input_ids"])
            with no_branches():
                outputs = {_LIBRARY_OUTPUTS.get(name, name): value
                           for name, value in answers(model, features, left_out).items()}
            if "values" in outputs:     # numbers have this name there
                outputs["logits"] = outputs["values"]
            return outputs

        self.library_function = tf.function(answer_library, autograph=False, input_signature=[
            tf.TensorSpec(shapes[name], tf.int64, LIBRARY_INPUTS.get(name, name))
            for name in read])
        last = {_POSITIONS: "predictions", "decoder_input_tokens": "decoder_sequence"}
        self.axes = {LIBRARY_INPUTS.get(name, name): (
            "batch", *["choices"] * (len(shapes[name]) == 3), last.get(name, "sequence"))
            for name in read}
        self.output_axes = self.axes.get(_POSITIONS, list(self.axes.values())[-1])[:2]
        self.functions = {"serving_default": self.function}


class GenerationModel(tf.Module):
    """A network that has `generate`, or its Learner, with the loop over its tokens in the graph.

    `functions` has the signatures of a SavedModel: `serving_default`, from `encoder_input_tokens`,
    int32 [B, S], padded with 0, to `output_ids`, int32 [B, T], 0 after the end; and `logits`, the
    `IdsModel` of predictions for given targets. `length` is T, the most tokens of a result; for
    `beams` and `alpha` see `generate`.
    """

    def __init__(self, model, length: int, beams: int = 1, alpha: float = 0.6):
        super().__init__()
        network = getattr(model, "encoder", model)
        self._logits = IdsModel(network)
        self._weights = [v.value for v in network.weights]      # for the SavedModel
        generate = tf.function(
            lambda tokens: {"output_ids": network.generate(tokens, length, beams, alpha)},
            autograph=False,
            input_signature=[tf.TensorSpec([None, None], tf.int32, "encoder_input_tokens")])
        self.functions = {"serving_default": generate, "logits": self._logits.function}
