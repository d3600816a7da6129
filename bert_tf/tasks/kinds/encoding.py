"""Encodes the texts and labels of examples into features of sequences.

Shapes: N examples, S sequence, C choices.
"""

import numpy as np

from bert_tf.errors import InputError
from bert_tf.tokenization.packing import pack_parts


def label_id(label: str, ids: dict, where: str) -> int:
    """Returns a label's id in {label: id}, or raises InputError that names the line (`where`)."""
    if label not in ids:
        raise InputError(f"{where}: label {label!r} is none of {', '.join(ids)}; correct the line "
                         "or the --label_column, or train a new head for all labels that --labels "
                         "names.")
    return ids[label]


def encode_choices(contexts: list, choices: list, tokenizer, max_seq_length: int,
                   max_qa_length: int, carry_choices: bool) -> tuple[dict, np.ndarray]:
    """Encodes a context and a choice per sequence, and shortens the context alone (zihangdai/xlnet
    run_race.py, convert_single_example).

    Args:
        contexts: N texts.
        choices: N lists of C texts.
        max_qa_length: number of a choice's last tokens that are kept.
        carry_choices: whether a context joined with a choice that fits is the context of later
            choices.

    Returns:
        input_ids, input_mask, segment_ids [N * C, S], and whether each was cut, bool [N * C].
    """
    vocabulary = tokenizer.vocabulary
    layout, parts, is_cut = vocabulary.layout, [], []
    room = layout.room(max_seq_length, True)
    for text, others in zip(contexts, choices):
        ids, lengths = tokenizer.encode_lines([text, *others])
        context, *encoded = np.split(ids, np.cumsum(lengths)[:-1])
        for choice in encoded:
            tail = choice[-max_qa_length:][-room:]
            fits = len(context) + len(tail) <= room
            parts.append((context[:room - len(tail)], tail))
            is_cut.append(not fits or len(tail) < len(choice))
            if carry_choices and fits:
                one = pack_parts([(context, tail)], max_seq_length, vocabulary, all_pairs=True)
                context = one["input_ids"][one["input_mask"]]
    return pack_parts(parts, max_seq_length, vocabulary, layout.pads_left,
                      all_pairs=True), np.array(is_cut)


def with_label_ids(features: dict, examples: list, dtype=np.int64) -> dict:
    """Returns the features with `label_ids`, and `is_real_example`, 1 for each row."""
    labels = np.array([example.label for example in examples], dtype)
    return {**features, "label_ids": labels.reshape(len(examples), -1),
            "is_real_example": np.ones([len(features["input_ids"]), 1], np.int64)}
