"""Predicts masked words or the next sentence, or computes a pseudo-perplexity.

    bert-fill-mask --init_checkpoint=run --text="The [MASK] is open."
    bert-fill-mask --init_checkpoint=run --input_file=lines.txt --output_file=guesses.jsonl

Without --text, each line of --input_file is a text, or two texts with " ||| " between them. The
model is the output of bert-run-pretraining, or a checkpoint of any format with a masked LM.
"""

import collections
import dataclasses
import json
import os
import sys
import typing

import bert_tf
from bert_tf.errors import InputError, counted
from bert_tf.files import STANDARD, make_folder
from bert_tf.flags import REQUIRED, only, option
from bert_tf.tasks import forms
from bert_tf.tasks.rows import read_lines
from run_scripts import commands, example_files
from run_scripts.example_files import Row

_ASKS = ("masks", "next_sentence", "pseudo_perplexity")


@dataclasses.dataclass
class FillMaskFlags:
    """The model, the texts, and the questions about them."""

    init_checkpoint: str = option(
        REQUIRED, "The --output_dir of bert-run-pretraining, or a folder or file of any format "
        "that bert-convert-checkpoint reads.")
    text: str = option("", "One text, instead of --input_file.")
    input_file: str = option(STANDARD, "Texts, one per line, plain or .gz; - is standard input.")
    output_file: str = option(STANDARD, "The file to write; - is standard output. With the "
                              "extension .jsonl, the file has one JSON object per line.")
    ask: str = option(
        "masks", "masks: the likeliest tokens for each mask. next_sentence: the probability that "
        "the second text of a line follows the first. pseudo_perplexity: exp(-mean log p) of a "
        "text's tokens, each masked in turn; blank lines are left out.", choices=_ASKS)
    top_k: int = only("ask", "masks")(5, "Number of tokens for each mask.", least=1)
    mask: str | None = only("ask", "masks")(
        None, "The sign for a mask in your text. Default: [MASK], and also the vocabulary's mask "
        "token, such as <mask>.")
    output_format: str | None = option(
        None, "lines: lines for people to read. jsonl: one JSON object per line. Default: by the "
        "extension of --output_file, else lines.", choices=("lines", "jsonl"))
    vocab_file: str | None = option(None, "The model's vocabulary, if it isn't beside the model.")
    do_lower_case: bool | None = option(
        None, "Lower-case the text and drop accents. Default: as in the model's folder, or as its "
        "vocabulary suggests.")
    batch_size: int = option(32, "Most sequences that the model reads at a time.", least=1)


def shown(row: Row, answer: typing.Any) -> str:
    """Returns an answer as people read it: a number, or a line for each mask under the text."""
    if isinstance(answer, float):
        return f"{answer:.6g}"
    return "\n".join([row.cells["text"], *("    " + ", ".join(
        f"{guess['text'].strip()} {guess['probability']:.1%}" for guess in mask)
        for mask in answer)])


def main(job: FillMaskFlags) -> None:
    """Checks all lines of a file, opens the model, and answers."""
    if job.text and job.input_file != STANDARD:
        raise InputError("give --text or --input_file, not both.")
    if not job.text:
        job = dataclasses.replace(job, input_file=example_files.readable(job.input_file))
    example_files.check_files(job.input_file, job.output_file, job.output_format)
    if job.input_file != STANDARD:
        forms.check_lines(job.input_file)
        collections.deque(read_lines(job.input_file), 0)    # errors come before the model is read
    make_folder(os.path.dirname(job.output_file), "output_file")
    fill = bert_tf.FillMask(job.init_checkpoint, job.batch_size, vocab_file=job.vocab_file,
                            do_lower_case=job.do_lower_case, mask=job.mask)
    if job.ask == "masks":
        def answer(texts, where):
            return [each["masks"] for each in fill.stream(texts, job.top_k, where)]
    else:
        answer = getattr(fill, job.ask)

    def writer(file):
        if (job.output_format or example_files.format_of(job.output_file)) == "lines":
            return lambda row, answer: print(shown(row, answer), file=file)
        return lambda row, answer: print(
            json.dumps({**row.cells, job.ask: answer}, ensure_ascii=False), file=file)

    if not job.text and job.input_file == STANDARD and sys.stdin.isatty():
        print("type one text per line; Ctrl-D ends", file=sys.stderr)
    lines, name = read_lines(job.input_file), ""
    if job.text:
        lines, name = iter([(1, job.text)]), "--text"
    elif job.ask == "pseudo_perplexity":
        lines = ((number, line) for number, line in lines if line.strip())
    count = example_files.answer_rows(example_files.text_rows(lines), job.input_file,
                                      job.output_file, answer, writer, name)
    fill.coverage.tell(job.output_file == STANDARD)
    if job.output_file != STANDARD:
        print(f"{job.output_file}: {counted(count, 'text')}")


if __name__ == "__main__":
    commands.start(__name__)
