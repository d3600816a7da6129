"""Notes on a text of which pre-training records are made: empty files, documents without an end."""

import re
from typing import Any

from bert_tf.errors import counted
from bert_tf.files import file_size, is_packed, open_unpacked, read_range
from bert_tf.recipes import Recipe
from data_prep.pretraining_flags import PretrainingDataFlags


def why_no_record(job: PretrainingDataFlags, recipe: Recipe, counts: dict[str, Any]) -> str:
    """Returns the error on a text that makes no record, given its counts."""
    names, sentences = ", ".join(job.input_file[:3]), counts.get("sentences", 0)
    if not sentences:
        return f"--input_file: {names} holds no text; name files with text."
    ending = ", and no blank line ends the last document" * bool(counts.get("open_documents"))
    return (f"--input_file: {names} has {counted(sentences, 'sentence')}, which make no record of "
            f"--recipe={recipe.name}: each is too short or longer than "
            f"--max_seq_length={job.max_seq_length}, or they are too few{ending}. Give other text, "
            "one sentence per line (bert-extract-text writes it), or change --max_seq_length.")


def notes_on(paths: list[str], joins_files: bool) -> list[str]:
    """Returns the notes on input files that may be a mistake. `joins_files` is whether a document
    may continue in the next file."""
    notes = [f"{path} is empty." for path in paths if _is_empty(path)]
    if joins_files:
        notes += [f"{path} does not end with a blank line: its last document continues in the next "
                  "file, as in the original." for path in paths[:-1] if not _ends_document(path)]
    return notes


def _is_empty(path):
    if not is_packed(path):
        return not file_size(path)
    with open_unpacked(path) as file:
        return not file.read(1)


def _ends_document(path):
    if is_packed(path):
        return True     # not worth another pass over it
    size = file_size(path)
    end = read_range(path, max(0, size - 256), size)
    return re.search(rb"(^|\n)[ \t\r]*\n[ \t\r]*$", end) is not None
