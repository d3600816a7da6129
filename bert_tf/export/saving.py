"""Writes a model in a runtime's format, whole or not at all."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import os
import sys
import tempfile
import typing
from collections.abc import Callable, Iterator, Mapping

import lazy_loader

from bert_tf.errors import InputError
from bert_tf.files import exists, folder_aside, is_unfinished, make_folders, write_aside

if typing.TYPE_CHECKING:
    from bert_tf.export.ids_model import IdsModel

# The log of TensorFlow's import can be held back too.
tf = lazy_loader.load("tensorflow")

_OPSET = 18
_LAST = "saved_model.pb"      # without it TensorFlow sees no model


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Holds back the logs of TensorFlow and the converters on stderr, in C++ too; they are written
    after all if the block ends with an error other than an `InputError`."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except InputError:
            raise
        except BaseException:
            sys.stderr.flush()
            log.seek(0)
            os.dup2(stderr, 2)
            os.write(2, log.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


def check_version(folder: str | os.PathLike, version: int) -> str:
    """Returns the folder of a version of a SavedModel; InputError if it is there already."""
    path = os.path.join(folder, str(version))
    if exists(path) and not is_unfinished(path, _LAST):
        raise InputError(f"{path} is there already; give another version, or remove the folder.")
    return path


def save_model(module: tf.Module, folder: str | os.PathLike, version: int = 1,
               finish: Callable[[str], None] | None = None) -> str:
    """Writes a SavedModel in TensorFlow Serving's layout, `folder/version`, and returns its path.
    `module.functions` are its signatures. An existing version is refused. `finish` writes further
    files into the folder of the version, before it appears under its name."""
    path = check_version(folder, version)
    make_folders(folder)
    # TensorFlow Serving ignores folders whose names are not numbers.
    with folder_aside(path, _LAST) as aside:
        tf.saved_model.save(module, aside, signatures=module.functions)
        if finish:
            finish(aside)
    return path


def check_onnx(int8: bool = False) -> None:
    """Raises InputError if a package that writes ONNX is not installed."""
    for name in ("tf2onnx", *["onnxruntime"] * int8):
        if not importlib.util.find_spec(name):
            raise InputError(f"ONNX{' in 8 bits' if int8 else ''} needs the package {name}: pip "
                             "install 'bert_tf[onnx]', or '.[onnx]' in a clone.")


def save_onnx(module: IdsModel, path: str | os.PathLike, int8: bool = False,
              metadata: Mapping[str, str] | None = None) -> None:
    """Writes an ONNX file with inputs, outputs and axes under Hugging Face's names, int64 inputs;
    needs tf2onnx. `int8` stores matrices in 8 bits and computes activation scales at run time; it
    needs onnxruntime. InputError if tf2onnx can't convert a part, such as an LSTM's loop."""
    check_onnx(int8)
    from tf2onnx import convert, optimizer
    function = module.library_function
    try:
        with _without(optimizer._optimizers, "remove_back_to_back"):
            model, _ = convert.from_function(
                function, input_signature=function.input_signature, opset=_OPSET)
    except ValueError as error:
        raise _refusal("ONNX", error) from error
    if left := _unconverted(model.graph):
        raise _refusal("ONNX", f"it has no operation {', '.join(sorted(left))}")
    _join(model.graph)
    for value in [*model.graph.input, *model.graph.output]:
        names = module.axes.get(value.name, module.output_axes)
        for axis, size in enumerate(value.type.tensor_type.shape.dim):
            if not size.HasField("dim_value"):
                size.Clear()
                if axis < len(names):
                    size.dim_param = names[axis]
    if int8:
        model = _in_8_bits(model)
    for key, value in (metadata or {}).items():
        model.metadata_props.add(key=key, value=value)
    _write(path, model.SerializeToString())


def _join(graph):
    """Makes each layer normalisation one operation, and writes GELU as ONNX Runtime recognises it.
    MiniLM then takes 0.86 of the CPU time in 8 bits (ONNX Runtime 1.31)."""
    from onnx import helper, numpy_helper
    if any(attribute.HasField("g") for node in graph.node for attribute in node.attribute):
        return      # an inner graph may read any name of this one
    numbers = {tensor.name: numpy_helper.to_array(tensor).item() for tensor in graph.initializer
               if math.prod(tensor.dims) == 1}
    vectors = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 1}
    makers = {name: node for node in graph.node for name in node.output}

    def source(node, *path):
        """The node at the end of a path: each step is the place of an input and its operation."""
        for place, operation in path:
            node = makers.get(node.input[place]) if node else None
            if node and node.op_type != operation:
                return None
        return node

    root = helper.make_tensor("root_of_2", 1, [], [math.sqrt(2)])       # 1: float32
    for node in graph.node:
        if node.op_type == "Erf":
            half = source(node, (0, "Mul"))
            if half and math.isclose(numbers.get(half.input[1], 0), math.sqrt(0.5), rel_tol=1e-6):
                half.CopyFrom(helper.make_node(
                    "Div", [half.input[0], root.name], half.output, half.name))
        elif node.op_type == "Add":
            centred = source(node, (0, "Mul"), (0, "Sub"))
            mean = source(centred, (1, "ReduceMean"))
            factor = source(node, (0, "Mul"), (1, "Mul"))
            variance = source(factor, (0, "Reciprocal"), (0, "Sqrt"), (0, "Add"))
            square = source(variance, (0, "ReduceMean"), (0, "Mul"))
            if mean and square and set(square.input) == {*centred.output} and (
                    mean.input[0] == centred.input[0] and numbers.get(mean.input[1]) == -1
                    and variance.input[1] in numbers
                    and vectors.issuperset([factor.input[1], node.input[1]])):
                node.CopyFrom(helper.make_node(
                    "LayerNormalization", [mean.input[0], factor.input[1], node.input[1]],
                    node.output, node.name, epsilon=numbers[variance.input[1]]))
    graph.initializer.append(root)
    needed = {output.name for output in graph.output}
    for place in reversed(range(len(graph.node))):
        if needed.isdisjoint(graph.node[place].output):
            del graph.node[place]
        else:
            needed.update(graph.node[place].input)
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in needed:
            del graph.initializer[place]


def _in_8_bits(model):
    """Returns an ONNX model whose matrices are signed integers with a scale and a zero point for
    each column. With one scale for all columns, MiniLM's error is 1.6 times as large; unsigned
    integers take 1.7 times as long (ONNX Runtime 1.31, a CPU with VNNI)."""
    import onnx
    from onnxruntime import quantization
    with tempfile.TemporaryDirectory() as folder:
        floats, integers = (os.path.join(folder, name) for name in ("floats.onnx", "int8.onnx"))
        _write(floats, model.SerializeToString())
        quantization.quantize_dynamic(
            floats, integers, per_channel=True, weight_type=quantization.QuantType.QInt8,
            extra_options={"WeightSymmetric": False})
        return onnx.load(integers)


def save_lite(module: IdsModel, path: str | os.PathLike, int8: bool = False) -> None:
    """Writes a LiteRT file of a model with a fixed length. `int8` stores matrices in 8 bits and
    computes activation scales at run time. InputError if LiteRT has no operation for a part."""
    from tensorflow.lite.python.convert_phase import ConverterError
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [module.function.get_concrete_function()], module)
    if int8:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            content = converter.convert()
    except ConverterError as error:
        reason = str(error).partition("error: ")[2].partition("\n")[0]
        raise _refusal("LiteRT", reason) from error
    _write(path, content)


@contextlib.contextmanager
def _without(steps, name):
    """Leaves a step of tf2onnx's optimizer out. "remove_back_to_back" joins two reshapes although
    the second copies a size of the first one's result: a layer with one head then fails."""
    before = dict(steps)
    steps.pop(name, None)
    try:
        yield
    finally:
        steps.clear()
        steps.update(before)


def _refusal(runtime, reason):
    return InputError(f"{runtime} can't hold this network ({reason}); choose --format=ids.")


def _unconverted(graph):
    """The operations of TensorFlow, which no runtime takes, that tf2onnx left in a graph."""
    import onnx
    operations = {node.op_type for node in graph.node
             if not node.domain and not onnx.defs.has(node.op_type)}
    return operations.union(*(_unconverted(attribute.g) for node in graph.node
                         for attribute in node.attribute if attribute.HasField("g")))


def _write(path, content):
    with write_aside(path, "wb") as file:
        file.write(content)
