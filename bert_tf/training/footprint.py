"""The memory that a training step takes on a CPU, estimated before the first step.

The step's graph is traced, and its operations are walked in order: a tensor is in memory from the
operation that computes it to the last one that reads it. The memory that is used before, such as by
weights and moments, is measured.

GPUs and TPUs run a compiled step in separate memory, which is not estimated.
"""

import collections
import math
import os
from collections.abc import Mapping

import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.networks.memory import machine_memory
from bert_tf.training.distribution import count_workers, has_accelerator
from bert_tf.training.trainer import Trainer

# Operations that hand on their input, and those that may write their result in its place.
_ALIASES = {"Identity", "IdentityN", "Reshape", "ExpandDims", "Squeeze", "StopGradient",
            "PreventGradient"}
_IN_PLACE = {"AddV2", "AddN", "Sub", "Mul", "RealDiv", "DivNoNan", "Square", "Sqrt", "Rsqrt", "Neg",
             "Exp", "Log", "Pow", "Tanh", "Erf", "Sigmoid", "Softplus", "Relu", "ReluGrad",
             "TanhGrad", "RsqrtGrad", "SigmoidGrad", "Maximum", "Minimum", "SquaredDifference",
             "SelectV2", "BiasAdd", "Softmax", "LogSoftmax", "Cast"}
# Operations whose result takes no memory of its own, or little.
_FREE = {"Const", "ReadVariableOp", "Placeholder", "NoOp", "Shape"}
_KEPT_OPERATIONS = {"AssignVariableOp", "AssignAddVariableOp"}
# Memory of a step beyond the tensors of its graph: bytes for its plan; the optimizer's new values,
# in units of the gradient; freed memory that stays with the process, in units of the graph's
# tensors, where arrays are not returned. Fitted to BERT's steps on x86 CPUs, see docs/results.md.
_OVERHEAD, _UPDATE, _KEPT = 270e6, 1.4, 0.25
_SMALL = 256e6      # bytes


def _size(tensor):
    return (tensor.shape.num_elements() or 0) * tensor.dtype.size


def _needed(graph):
    """The operations that the outputs of a graph depend on, in the graph's order."""
    found = set()
    ahead = [tensor.op for tensor in graph.outputs]
    ahead += [op for op in graph.get_operations() if op.type in _KEPT_OPERATIONS]
    while ahead:
        op = ahead.pop()
        if op not in found:
            found.add(op)
            ahead += [tensor.op for tensor in op.inputs] + op.control_inputs
    return [op for op in graph.get_operations() if op in found]


class _Buffers:
    """The buffers in memory while a graph's operations are walked."""

    def __init__(self, graph):
        self.operations = _needed(graph)
        self._readers = collections.Counter(
            tensor.ref() for op in self.operations for tensor in op.inputs)
        self._readers.update(tensor.ref() for tensor in graph.outputs)
        self._buffer, self._open, self._bytes = {}, [], []
        self.total = 0

    def _reusable(self, op, size):
        """The buffer of an input that nothing else reads, if it may become the output's."""
        for tensor in op.inputs if op.type in _IN_PLACE else ():
            number = self._buffer.get(tensor.ref())
            if number is not None and self._open[number] == 1 and self._bytes[number] == size:
                return number
        return None

    def add(self, op):
        """Puts the outputs of an operation into memory."""
        for index, tensor in enumerate(op.outputs if op.type not in _FREE else ()):
            if op.type in _ALIASES:
                number = self._buffer.get(op.inputs[min(index, len(op.inputs) - 1)].ref())
                if number is None:      # a weight or a feature
                    continue
            else:
                number = self._reusable(op, _size(tensor))
            if number is None:
                number = len(self._open)
                self._open.append(0)
                self._bytes.append(_size(tensor))
                self.total += self._bytes[-1]
            self._buffer[tensor.ref()] = number
            self._open[number] += self._readers[tensor.ref()]

    def drop(self, op):
        """Frees the buffers that no operation reads after this one."""
        for tensor in op.inputs:
            if tensor.ref() in self._buffer:
                self._open[self._buffer[tensor.ref()]] -= 1
        for tensor in (*op.inputs, *op.outputs):
            number = self._buffer.get(tensor.ref())
            if number is not None and not self._open[number]:
                self.total -= self._bytes[number]
                self._bytes[number] = 0


def peak(graph: tf.Graph) -> int:
    """Returns the most bytes of a graph's tensors that are in memory at once, without its inputs
    and the variables. All shapes must be known. The tensors of a function that it calls count while
    the call lasts."""
    buffers, most = _Buffers(graph), 0
    for op in buffers.operations:
        inner = max((peak(function) for function in _called(graph, op)), default=0)
        most = max(most, buffers.total + inner)
        buffers.add(op)
        most = max(most, buffers.total)
        buffers.drop(op)
    return most


def _called(graph, op):
    """The graphs of the functions that an operation calls."""
    for name in ("f", "body", "then_branch", "else_branch"):
        if name in op.node_def.attr and (called := op.node_def.attr[name].func.name):
            yield graph._get_function(called).graph


def _is_small(trainer, features):
    """Returns whether a step takes so little memory that tracing it is not worth the seconds."""
    config = trainer.learner.encoder.config
    sizes = {name: math.prod(size or 1 for size in spec.shape) for name, spec in features.items()}
    return (16 * _count_weights(trainer)
            + 64 * max(sizes.values()) * config.num_hidden_layers * config.hidden_size
            # The logits of masked tokens, their softmax and their gradient.
            + 12 * sizes.get("masked_lm_ids", 0) * config.vocab_size) < _SMALL


def _count_weights(trainer):
    return sum(math.prod(variable.shape) for variable in trainer.learner.trainable_variables)


def _present():
    """The bytes that this process takes now."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def estimate(trainer: Trainer, features: Mapping[str, tf.TensorSpec],
             present: int | None = None) -> float | None:
    """Returns the most bytes that this process will take; None where that is not known: for loops
    over the words of a text.

    Args:
        features: the batch of one replica; all shapes must be known.
        present: the bytes that it takes before the step; None: what it takes after tracing.
    """
    graph = trainer.replica.trace(features)
    if any(op.type.startswith("TensorList") for op in graph.get_operations()):
        return None
    replicas = trainer.strategy.num_replicas_in_sync // count_workers(trainer.strategy)
    gradient = 4 * _count_weights(trainer)
    present = _present() if present is None else present
    share = 1 if trainer.returns_arrays else 1 + _KEPT
    return present + replicas * (share * peak(graph) + _UPDATE * gradient) + _OVERHEAD


def check(trainer: Trainer, features: Mapping[str, tf.TensorSpec], batch_size: int,
          says: bool = True) -> None:
    """Prints how much memory the steps will take, in one line. Says nothing of small networks, and
    where GPUs or TPUs do the work.

    Args:
        features: as for `estimate`.
        batch_size: the global batch, for the message.
        says: whether to print.

    Raises:
        InputError: it is more than the machine has, with the largest batch that fits; or more than
            TensorFlow can plan.
    """
    if (has_accelerator(trainer.strategy) or not os.path.exists("/proc/self/statm")
            or not trainer.replica.traces or _is_small(trainer, features)
            or any(None in spec.shape for spec in features.values())):
        return
    try:
        needed, room = estimate(trainer, features), machine_memory()
    except ValueError as error:     # tensors of more numbers than TensorFlow can count
        raise InputError(f"--train_batch_size={batch_size}: TensorFlow can't plan such a step "
                         f"({str(error)[:200]}); give a smaller batch.") from error
    if needed is None:
        return
    if needed <= room:
        if says:
            print(f"memory: training needs about {needed / 1e9:.1f} GB; this machine has "
                  f"{room / 1e9:.1f} GB", flush=True)
        return
    fitting = _largest(trainer, features, batch_size, needed, room)
    advice = (f"the largest that fits is about {fitting:,}" if fitting
              else "no batch of these records fits")
    raise InputError(
        f"--train_batch_size={batch_size} takes about {needed / 1e9:.1f} GB of memory, and this "
        f"machine has {room / 1e9:.1f} GB; {advice}. --rematerialize needs less memory and more "
        "time.")


def _largest(trainer, features, batch_size, needed, room):
    """The largest global batch that takes at most `room`, 0 for none; memory grows evenly."""
    part = trainer.replica.accumulation
    rows = next(iter(features.values())).shape[0]
    fewer = max(rows // 2 // part, 1) * part
    if fewer == rows:
        return 0
    present = _present()
    half = {name: tf.TensorSpec([max(spec.shape[0] * fewer // rows, part), *spec.shape[1:]],
                                spec.dtype) for name, spec in features.items()}
    # Each tracing takes memory: it would hide what the fewer rows save.
    each = (needed - (estimate(trainer, half, present) or 0)) / (rows - fewer)
    if each <= 0:       # the weights alone take too much
        return 0
    fitting = max(int(rows - (needed - room) / each), 0) // part * part
    return fitting * batch_size // rows
