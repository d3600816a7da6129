"""The matrices that are one here, and two or three in Hugging Face's files."""

from collections.abc import Mapping

import numpy as np

from bert_tf.checkpoints.rules import Tensor
from bert_tf.config import Sizes
from bert_tf.errors import InputError

# The matrices, by names that messages show, and their parts.
QKV, GATED, _GATED_OF_NOMIC = "self_attn.[q,k,v]_proj", "mlp.[gate,up]_proj", "mlp.[fc12,fc11]"
_PARTS = {QKV: [f"self_attn.{part}_proj" for part in "qkv"],
          GATED: ["mlp.gate_proj", "mlp.up_proj"], _GATED_OF_NOMIC: ["mlp.fc12", "mlp.fc11"]}
_JOINTS = [(whole, parts, end) for whole, parts in _PARTS.items() for end in (".weight", ".bias")]


def join(tensors: Mapping[str, Tensor], file: str) -> dict[str, Tensor]:
    """Joins the tensors of `_PARTS`."""
    joined = dict(tensors)
    for whole, parts, end in _JOINTS:
        blocks = {name.removesuffix(part + end): None for name in tensors for part in parts
                  if name.endswith(part + end)}
        for block in blocks:
            names = [block + part + end for part in parts]
            if missing := [name for name in names if name not in tensors]:
                raise InputError(f"{file}: tensor {missing[0]!r} is missing; use a complete "
                                 "checkpoint.")
            pieces = [joined.pop(name) for name in names]
            shapes = [piece.shape for piece in pieces]
            if len({shape[1:] for shape in shapes}) > 1:
                raise InputError(f"{file}: {', '.join(names)} have the shapes {shapes}, which do "
                                 "not fit together; correct the file.")
            joined[block + whole + end] = pieces[0].changed(
                lambda _, pieces=pieces: np.concatenate([piece.read() for piece in pieces]),
                name=block + whole + end,
                shape=(sum(shape[0] for shape in shapes), *shapes[0][1:]))
    return joined


def split(values: Mapping[str, np.ndarray], config: Sizes) -> dict[str, np.ndarray]:
    """Undoes `join`."""
    width = config.key_value_heads * config.head_size
    ends = {QKV: (config.hidden_size, config.hidden_size + width),
            **dict.fromkeys((GATED, _GATED_OF_NOMIC), (config.intermediate_size,))}
    apart = dict(values)
    for whole, parts, end in _JOINTS:
        for name in [name for name in values if name.endswith(whole + end)]:
            pieces = np.split(apart.pop(name), ends[whole])
            apart.update((name.removesuffix(whole + end) + part + end, np.ascontiguousarray(piece))
                         for part, piece in zip(parts, pieces))
    return apart
