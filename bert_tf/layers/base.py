"""The base of networks, and the mixin of layers that are made and saved with a configuration. The
table `_VARIANTS` has what other systems put in the place of a part of BERT."""

import contextlib
import importlib
import os
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import keras
import numpy as np
from keras import ops, tree
from keras.src.saving import saving_lib

from bert_tf.config import Sizes, config_from_dict
from bert_tf.config.sizes import with_lists
from bert_tf.errors import InputError
from bert_tf.layers.functions import Tensor, add_bias, form_of, is_prediction

# Names of features in transformers and in the Model Garden, and the names here.
_OTHER_NAMES = {"attention_mask": "input_mask", "token_type_ids": "segment_ids",
                "input_word_ids": "input_ids", "input_type_ids": "segment_ids"}
# Features that are places in a table, and the configuration's number of its rows.
_ROWS = {**dict.fromkeys(("input_ids", "encoder_input_tokens", "decoder_input_tokens"),
                         "vocab_size"), "segment_ids": "type_vocab_size"}

register = keras.saving.register_keras_serializable("bert_tf")
# A part, whether a configuration replaces it, and what makes the replacement.
_VARIANTS: tuple[tuple[str, Callable[[Any], Any], str, str], ...] = (
    ("attention", lambda config: keras.config.backend() == "jax" and not hasattr(
        config, "relative_attention_num_buckets"), "layers.fused_attention", "attend"),
    ("dense", lambda config: config.quantisation, "layers.quantisation", "make_dense"),
    ("output_bias", lambda config: not getattr(config, "decoder_bias", True),
     "models.modernbert.layers", "no_bias"),
    ("output_table", lambda config: config.prediction_width > config.embedding_width,
     "models.mobilebert.layers", "WiderTable"),
    ("prediction_layer", lambda config: config.model_type == "modernbert",
     "models.modernbert.layers", "HiddenLayer"),
    ("prediction_layer", lambda config: config.model_type in ("eurobert", "neobert"),
     "models.eurobert.layers", "NoHiddenLayer"),
    ("reader", lambda config: True, "objectives.lstms", "HeadReader"),      # of a head
    ("rounded_dense", lambda config: config.quantisation.scheme == "affine",
     "models.mobilebert.affine", "AffineDense"),
)


class Dense(keras.layers.Dense):
    """Keras's dense layer on the rows of a matrix, which needs fewer operations than on more axes.

    TensorFlow fuses the product with the bias, and in prediction with the activation.
    """

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """float [..., I] -> [..., O]."""
        shape = ops.shape(inputs)
        rows = ops.matmul(ops.reshape(inputs, (-1, shape[-1])), self.kernel)
        if self.bias is not None:
            if self.compute_dtype == "float32" or is_prediction(training):
                rows = ops.add(rows, self.bias)
            else:
                rows = add_bias(rows, ops.cast(self.bias, rows.dtype))
        activation = form_of(self.activation, training)
        if activation is not None:
            rows = activation(rows)
        return ops.reshape(rows, (*shape[:-1], self.units))


class _Paths(saving_lib.H5IOStore):
    """A file that keeps nothing but the path where Keras would put each variable."""

    def __init__(self):
        self.groups: dict[str, dict] = {}

    def __bool__(self):
        return True

    def make(self, path, metadata=None):
        return self.groups.setdefault(path, {})


def saved_names(model: keras.Model, names: dict[int, str]) -> dict[str, str]:
    """The names of a model's weights by the paths that they have in a file of Keras's.

    Args:
        names: by the `id` of each variable.
    """
    store = _Paths()
    saving_lib._save_state(model, store, None, "", set())
    return {f"{path}/vars/{key}".removeprefix("/"): names[id(variable)]
            for path, group in store.groups.items() for key, variable in group.items()
            if id(variable) in names}


def network_names(network: keras.Model) -> dict[int, str]:
    """The names of a network's weights by the `id` of each: paths relative to the network."""
    # Embeddings that are shared have the name of the network that they were made in.
    shared = network.embeddings.path.removesuffix("embeddings")
    return {id(v): v.path.removeprefix(f"{network.path}/").removeprefix(shared)
            for v in network.weights}


@contextlib.contextmanager
def shown_shapes(model: keras.Model) -> Iterator[None]:
    """Shows Keras's summary of a model the `output_shape` of layers built without a shape."""
    unbuilt = [(layer, layer._build_shapes_dict) for layer in model._flatten_layers()
               if getattr(layer, "output_shape", None) and not layer._build_shapes_dict]
    try:
        for layer, _ in unbuilt:
            layer._build_shapes_dict = {"input_shape": None}
        yield
    finally:
        for layer, shapes in unbuilt:      # else a saved model would hold it
            layer._build_shapes_dict = shapes


def _check_policy(dtype):
    """Raises InputError if Keras has no policy `dtype`, or one that does not compute in floats."""
    with contextlib.suppress(TypeError, ValueError):
        if keras.backend.is_float_dtype(keras.dtype_policies.get(dtype).compute_dtype):
            return
    raise InputError(f"dtype is {dtype!r}; give a policy of Keras that computes in floats, such as "
                     "float32 or mixed_bfloat16.")


def settings_of(layer: Any) -> dict[str, Any]:
    """The attributes of a layer or optimizer that the `config_keys` of its classes name; tuples as
    lists, as JSON has them."""
    return {key: with_lists(getattr(layer, key)) for kind in reversed(type(layer).__mro__)
            for key in vars(kind).get("config_keys", ())}


class InCheckpoints:
    """Mixin for Keras layers, all of whose parts tf.train.Checkpoint finds. Keras 3.15 hides layers
    and variables in lists, and the weights would be left out without an error."""

    _layers: list
    _trainable_variables: list
    _non_trainable_variables: list

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        children = super()._trackable_children(save_type, **kwargs)     # type: ignore[misc]
        if save_type == "checkpoint":
            parts = *self._layers, *self._trainable_variables, *self._non_trainable_variables
            children |= {f"part-{number}": part for number, part in enumerate(parts)}
        return children


class FromConfig(InCheckpoints):
    """Mixin for Keras layers and models that are made from a configuration of `bert_tf.config`.

    The shapes of weights depend on the configuration alone, so `build` needs no shape. Calls never
    write `x += y`: on PyTorch this changes a tensor that the gradient needs.

    Attributes:
        part: the part of a model that its dense layers belong to: "layer" of the encoder, "pooler",
            "head" of a task; None for others.
        config_keys: arguments of a class's `__init__`, and attributes, that `get_config` holds.
        scopes: by the attributes of parts, names above theirs in the paths of weights.
    """

    part: str | None = "layer"
    config_keys: tuple[str, ...] = ()
    scopes: Mapping[str, str] = types.MappingProxyType({})

    def __init__(self, config: Sizes, **kwargs: Any):
        if not isinstance(config, Sizes):
            raise InputError(f"the configuration is {config!r}; give one, such as "
                             "EncoderConfig.preset('base'), or open a model by from_pretrained.")
        _check_policy(kwargs.get("dtype"))
        # Each weight is cast where it is used; masks and biases stay in float32 on their way there.
        super().__init__(autocast=False, **kwargs)  # type: ignore[call-arg]
        self.config: Any = config

    @property
    def output_shape(self) -> tuple[int | None, ...] | None:
        """Shape of the first output, which `summary` shows; None if it is not known."""
        width = getattr(self.config, "hidden_size", None)
        return (None, None, width) if width else None

    def initializer(self) -> keras.initializers.Initializer:
        """A new (mostly truncated) normal initializer: one used twice gives equal weights."""
        kind: Any = keras.initializers.RandomNormal
        if self.config.truncates_initializer:
            kind = keras.initializers.TruncatedNormal
        return kind(stddev=self.config.initializer_range)

    def add_weight(self, shape: Any, initializer: Any = None, **kwargs: Any) -> keras.Variable:
        """Adds a variable, which Keras never casts by itself. `initializer` None: as in `dense`."""
        return super().add_weight(  # type: ignore[misc]
            shape, initializer or self.initializer(), **{"autocast": False, **kwargs})

    def add_table(self, name: str, rows: int, initializer: Any = None) -> Any:
        """Adds a table of embeddings, [rows, E]."""
        return self.add_weight((rows, self.config.embedding_width), initializer, name=name)

    def dense(self, units: int, name: str = "dense", activation: Any = None,
              initializer: Any = None, use_bias: bool = True, inputs: int | None = None
              ) -> keras.layers.Dense:
        """Makes a dense layer with a 2-D kernel, in this layer's dtype. `initializer` is the
        kernel's; None: a truncated normal. `inputs` is the width that it reads; None: H."""
        options = {"name": name, "kernel_initializer": initializer or self.initializer(),
                   "dtype": self.dtype_policy}  # type: ignore[attr-defined]
        if make := variant("dense", self.config):
            layer = make(self.config, self.part, units, activation, use_bias, **options)
        else:
            layer = Dense(units, activation, use_bias, **options)
        if inputs is None:
            inputs = self.config.hidden_size
        layer.width_read = inputs       # 0 where all heads or units before it are pruned
        return layer

    def scope_of(self, part: Any) -> str:
        """The names above a part's in the paths of its weights, as in Google's files."""
        return next((scope for name, scope in self.scopes.items()
                     if getattr(self, name, None) is part), "")

    def shape_read_by(self, part: Any) -> tuple[int | None, ...]:
        return None, None, getattr(part, "width_read", self.config.hidden_size)

    def build(self, input_shape: Any = None) -> None:
        """Builds the parts that are not built yet: those that layers share are built once. They
        read vectors of the width that `dense` was given, or H."""
        for part in self._layers:
            if part.built:
                continue
            with contextlib.ExitStack() as stack:
                for name in self.scope_of(part).split():
                    stack.enter_context(keras.name_scope(name))
                part.build(self.shape_read_by(part))

    def get_config(self) -> dict[str, Any]:
        settings = {**super().get_config(), "config": self.config.to_dict()}  # type: ignore[misc]
        if isinstance(self, keras.Model):
            settings["weights"] = saved_names(self, network_names(self))
        return settings | settings_of(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        options = {key: value for key, value in config.items() if key != "weights"}
        return cls(**{**options, "config": config_from_dict(config["config"])})


class TakesFeatures(InCheckpoints):
    """Mixin for Keras models that are called with a dict of features.

    Attributes:
        feature_axes: the number of axes of each feature that an export takes, by name.

    Raises:
        InputError: the features are not a dict, have another library's names, which the model would
            ignore, or are lists of lists in place of arrays; or an array of NumPy has one axis, or
            ids without a row in their table, where Keras would take the last rows or zeros.
    """

    feature_axes: dict[str, int]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Networks call the features `inputs`; learners call them `batch`.
        features = next(iter(args), kwargs.get("inputs", kwargs.get("batch")))
        if not isinstance(features, Mapping):
            raise InputError("give a dict of features, such as {'input_ids': ids, 'input_mask': "
                             f"mask}}, in place of a {type(features).__name__}.")
        for name, ours in _OTHER_NAMES.items():
            if name in features:
                raise InputError(f"the feature {name!r} is {ours!r} here: rename it.")
        for name, value in features.items():
            is_plain = isinstance(value, (list, tuple)) and not all(
                hasattr(one, "shape") for one in value)
            if is_plain or type(value).__name__ == "RaggedTensor":
                raise InputError(f"the feature {name!r} is a {type(value).__name__}; give an array "
                                 "or a tensor, with rows of one length.")
            if isinstance(value, np.ndarray) and name in _ROWS:
                network: Any = getattr(self, "encoder", self)
                _check_ids(network.config, name, value)
        # Keras builds a user's model around this one, when it is loaded, with floats for ids.
        whole = {name: ops.cast(features[name], "int32") for name in _ROWS.keys() & features.keys()
                 if keras.backend.is_float_dtype(getattr(features[name], "dtype", "int32"))}
        if whole:
            kwargs.pop("inputs", kwargs.pop("batch", None))
            args = ({**features, **whole}, *args[1:])
        return super().__call__(*args, **kwargs)  # type: ignore[misc]

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints Keras's summary of a network, with the shapes of its layers."""
        with shown_shapes(self):  # type: ignore[arg-type]
            super().summary(*args, **kwargs)  # type: ignore[misc]

    def export(self, filepath: str, *args: Any, input_signature: Any = None, **kwargs: Any) -> None:
        """Writes the model as Keras does, with its features as named inputs.

        Each output has a name. A list of tensors, one for each layer, becomes `layer_outputs_0` and
        so on, and a dict likewise. `keras.Model.export` takes the same arguments.

        Args:
            filepath: the folder or file to write.
            input_signature: a dict of `keras.InputSpec`, alone or in a list; None: int32 of any
                size for each feature.

        Raises:
            InputError: the format is "onnx"; ONNX Runtime can't run all that Keras 3.15 writes.
        """
        if "onnx" in (*args, kwargs.get("format")):
            raise InputError("Keras can't export this model to ONNX; save it, and call "
                             "bert-export-model --format=onnx.")
        specs = input_signature or {
            name: keras.layers.InputSpec("int32", (None,) * axes)
            for name, axes in self.feature_axes.items()}
        if not isinstance(specs, Mapping):
            specs = specs[0]
        inputs = {name: keras.Input(tuple(spec.shape)[1:], dtype=spec.dtype, name=name)
                  for name, spec in specs.items()}
        outputs = {"_".join(map(str, path)): value for path, value in
                   tree.flatten_with_path(self(inputs))}
        keras.Model(inputs, outputs, name=self.name).export(  # type: ignore[attr-defined]
            filepath, *args, **kwargs)


def _check_ids(config, name, ids):
    """Raises InputError if ids [...] have no row in the table that the feature `name` means."""
    if ids.ndim < 2:
        raise InputError(f"the feature {name!r} has the shape {list(ids.shape)}; give a row for "
                         "each text, [B, S].")
    rows = getattr(config, _ROWS[name])
    if name == "segment_ids" and not config.has_segments or not rows:
        return      # there is no table
    if ids.size and not 0 <= ids.min() <= ids.max() < rows:
        raise InputError(f"the feature {name!r} has ids from {ids.min()} to {ids.max()}, but the "
                         f"model's {_ROWS[name]} is {rows}; give ids from 0 to {rows - 1}.")


class Network(TakesFeatures, FromConfig, keras.Model):
    """A network; see `bert_tf.networks.build`.

    `fit` draws from its `seed_generator`; a training loop that must resume passes `dropout_seed`.
    """

    embeddings: Any
    reads: tuple[str, ...]
    # Parts whose names begin the paths of their weights; paths of others begin with "encoder".
    outside: tuple[str, ...] = ("embeddings", "encoder")

    @property
    def feature_axes(self) -> dict[str, int]:      # type: ignore[override]
        """The number of axes of each feature that an export takes, by name."""
        return dict.fromkeys(self.reads, 2)

    @property
    def embedding_table(self) -> keras.Variable:
        """The variable [V, E] of word embeddings."""
        return self.embeddings.word_embeddings

    def scope_of(self, part: Any) -> str:
        if part.name in (*self.outside, "pooler"):
            return ""
        return "pooler" if self._is_pooler(part) else "encoder"

    def shape_read_by(self, part: Any) -> tuple[int | None, ...]:
        shape = super().shape_read_by(part)
        return shape[1:] if self._is_pooler(part) else shape    # which reads one vector of a text

    def _is_pooler(self, part):
        return part is getattr(self, "pooler", None)

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike, **options: Any) -> Self:
        """Returns the network with the weights at `path`; see `bert_tf.pretrained.encoder`."""
        # When it is called: what reads all formats stands above the networks.
        return importlib.import_module("bert_tf.pretrained").encoder(cls, path, **options)


def variant(part: str, config: Any) -> Any:
    """What makes a part of a configuration's network; None where BERT's own code makes it."""
    for replaced, applies, module, name in _VARIANTS:
        if replaced == part and applies(config):
            return getattr(importlib.import_module(f"bert_tf.{module}"), name)
    return None
