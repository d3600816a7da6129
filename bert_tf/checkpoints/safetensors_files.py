"""Safetensors files, alone or in shards with an index; how Hugging Face's folders are written."""

import contextlib
import functools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from bert_tf.checkpoints import checksummed, rules
from bert_tf.checkpoints.rules import Tensor
from bert_tf.errors import InputError, warn
from bert_tf.files import open_file, read_json, staged, write_json

# A row of `Format.ignored`.
COPIES = (r"copies\..*", "a copy of a tied tensor")
_POINTER = b"version https://git-lfs"        # begins a file of a clone without Git LFS
_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@contextlib.contextmanager
def _opened(file):
    try:
        with safe_open(staged(file), framework="numpy") as reader:
            yield reader
    except (SafetensorError, OSError) as error:
        if isinstance(error, SafetensorError) and _is_pointer(file):
            raise InputError(f"{file} is a pointer of Git LFS to the weights; fetch them with `git "
                             "lfs pull`, or download the model with `hf download`.") from error
        raise InputError(f"{file}: can't be read as safetensors ({error}); copy or download the "
                         "file again.") from error


def _read(file, name):
    with _opened(file) as reader:
        return reader.get_tensor(name)


def _of_file(file):
    with _opened(file) as reader:
        parts = [(name, reader.get_slice(name)) for name in reader.keys()]
        return {name: Tensor(name, tuple(part.get_shape()),
                             _DTYPES.get(part.get_dtype(), part.get_dtype()),
                             functools.partial(_read, file, name)) for name, part in parts}


def _is_pointer(file):
    with open_file(file, "rb") as content:
        return content.read(len(_POINTER)) == _POINTER


def _of_shards(index):
    """Returns the tensors that an index names; each tensor must be in the file that it states."""
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(
            isinstance(shard, str) and shard.endswith(".safetensors")
            and shard == os.path.basename(shard) for shard in places.values()):
        raise InputError(f"{index}: weight_map must name, for each tensor, a .safetensors file of "
                         "the same folder.")
    tensors = {}
    for shard in sorted(set(places.values())):
        held = _of_file(os.path.join(os.path.dirname(index), shard))
        if held.keys() != {name for name, place in places.items() if place == shard}:
            raise InputError(f"{index}: {shard} holds other tensors than the index lists for it; "
                             "download all files of the checkpoint again.")
        tensors |= held
    return tensors


def tensors(file: str) -> dict[str, Tensor]:
    """The tensors, by name, of a .safetensors file, or of the .json index of shards beside it."""
    if file.endswith(".json"):
        return _of_shards(file)
    return _of_file(file)


def set_copy_aside(tensors: dict[str, Tensor], copy: str, original: str, file: str) -> None:
    """Renames a copy of a tied tensor, so that `COPIES` ignores it; InputError if it differs."""
    if not np.array_equal(tensors[copy].read(), tensors[original].read()):
        raise InputError(f"{file}: tensor {copy!r} differs from {original!r}, but the network ties "
                         "them; correct the file or its configuration.")
    tensors[f"copies.{copy}"] = tensors.pop(copy)


def labels(values: dict, file: str) -> tuple[str, ...]:
    """The names of the classes in the `config.json` beside `file`, in the order of their numbers.
    Classes that share a name are called LABEL_0 and so on. (), with a warning, unless each number
    from 0 has a name."""
    numbered = values.get("id2label") or {}
    numbers = list(map(str, range(len(numbered)))) if isinstance(numbered, dict) else None
    if numbers is None or {*numbers} != {*numbered} or not all(
            isinstance(label, (str, int)) for label in numbered.values()):
        warn(f"{rules.beside(file, 'config.json')}: id2label is {str(numbered)[:60]}, which does "
             'not name the label of each number from 0, as {"0": "no", "1": "yes"} does; so labels '
             "are called LABEL_0 and so on")
        return ()
    names = tuple(str(numbered[number]) for number in numbers)
    plain = tuple(f"LABEL_{number}" for number in numbers)
    told = tuple(name if names.count(label) > 1 else label for name, label in zip(plain, names))
    return told if len({*told}) == len(told) else plain


def write(folder: str, values: Mapping[str, np.ndarray], config: Mapping[str, Any]) -> None:
    """Writes `model.safetensors` and `config.json`. `values` have Hugging Face's names.
    `config.json` names the narrowest type that holds the numbers of all weights, since transformers
    5 else reads all of them in the type of the first."""
    checksummed.save(os.path.join(folder, "model.safetensors"), values, {"format": "pt"})
    dtypes = {value.dtype for value in values.values()}
    if {"float16", "bfloat16"} <= {*map(str, dtypes)}:      # neither holds the other's numbers
        dtypes.add(np.dtype("float32"))
    widest = max(dtypes, key=lambda dtype: dtype.itemsize)
    write_json(os.path.join(folder, "config.json"), {**config, "torch_dtype": str(widest)})
