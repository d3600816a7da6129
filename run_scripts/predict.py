"""Predicts with a fine-tuned model, from a file or standard input.

    bert-predict --init_checkpoint=mail --input_file=new.csv --output_file=predicted.csv
    echo "Where do I pay?" | bert-predict --init_checkpoint=mail

Files with the extension .tsv, .csv, .jsonl or .json are tables; the output has the columns of the
input, and then the columns of the prediction. A tagger reads words in columns, CoNLL-U and the
files of annotation tools as in fine-tuning. All other input has one example per line, with " ||| "
between its texts; the output has the label, number, tags, choice, answer or text of each example.
If the name of the input has no such extension, its first lines show the format; --input_format
names another. Memory does not grow with the input.
"""

import collections
import dataclasses
import functools
import os

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints import names
from bert_tf.errors import InputError, counted
from bert_tf.files import STANDARD, TABLES, fetched, make_folder, shown_name
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks import forms
from bert_tf.tasks.named import layout_of
from bert_tf.tasks.rows import Omissions, read_lines
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Split
from run_scripts import commands, example_files

# Formats of the output for forms of words.
_OUTPUTS = {forms.WORDS: "lines", forms.CONLLU: "lines", forms.ANNOTATIONS: "jsonl"}


@dataclasses.dataclass
class PredictFlags:
    """The model, the examples, and where the predictions go."""

    init_checkpoint: str = option(
        REQUIRED, "The --output_dir of a fine-tuning run; for texts with [MASK], of a pre-training "
        "run.")
    input_file: str = option(STANDARD, "The examples, plain or .gz; - is standard input.")
    output_file: str = option(STANDARD, "The file to write; - is standard output.")
    input_format: str | None = option(
        None, "Format of the input. Default: by the extension of --input_file, else by its first "
        "lines. lines: a text per line. words: a word per line, for taggers.",
        choices=example_files.INPUT_FORMATS)
    output_format: str | None = option(
        None, "Format of the output. Default: by the extension of --output_file, else the input's.",
        choices=example_files.FORMATS)
    text_a_column: str = option(
        "", "In a table, the column of the text, by name or number from 0. Default: the columns of "
        "the training file, or of the task's official file.")
    text_b_column: str = option(
        "", "Column of a second text; in multiple choice, the beginning that all choices share.")
    choice_columns: list[str] = option(
        [], "Columns of the choices in multiple choice, such as ending*.")
    header: bool | None = option(
        None, "The first line of a .tsv or .csv file names the columns. Default: as in the "
        "training file if its columns are read, else true.")
    skip_malformed_lines: bool = option(
        False, "Skip lines of a table that cannot be read. If false, the first such line is an "
        "error.")
    task: str | None = option(None, "The task to predict for, if the model has several.")
    batch_size: int = option(32, "Most examples that the model reads at a time.", least=1)


def columns_of(job: PredictFlags, saved: SavedTask | None, form: str) -> Split:
    """Returns the layout of a table in the format `form`. Its columns are named by the flags; else
    the model was trained on them, or its task's official file has them; else InputError."""
    texts = tuple(filter(None, (job.text_a_column, job.text_b_column)))
    known = {} if texts else example_files.known_columns(saved)
    kind = saved and saved.task.kind
    is_pair = kind and 2 in (saved.num_texts, kind.texts[0])
    if not known and (not job.text_a_column or is_pair and len(texts) < 2):
        flags = "--text_a_column must be given: it names the column of the text"
        if is_pair:
            both = kind.texts[2].removeprefix("a tuple of ") if kind.texts[0] == 2 else "both texts"
            flags = ("--text_a_column and --text_b_column must be given: they name the columns of "
                     f"{both}")
        raise InputError(f"{flags} in {shown_name(job.input_file)}.")
    layout = saved and layout_of(saved.task.name)
    return Split((job.input_file,), tuple(known.get("texts", texts)),
                 choices=tuple(job.choice_columns or known.get("choices", ())), format=form,
                 header=known.get("header", True) if job.header is None else job.header,
                 words=getattr(layout, "words", ()), line_break=getattr(layout, "line_break", ""))


# Flags of tables that other forms do not have.
_OF_TABLES = ("text_b_column", "choice_columns", "header")


def read_rows(job: PredictFlags, saved: SavedTask | None, form: str, omissions: Omissions):
    """Returns the `Row`s of the input, whose form is known; InputError for a flag that is not for
    this form, or first lines that can't be read."""
    refused = {"lines": ("text_a_column", *_OF_TABLES, "skip_malformed_lines"),
               **dict.fromkeys(TABLES.values(), ())}.get(form, _OF_TABLES)
    if wrong := [name for name in refused if getattr(job, name)]:
        how = "line by line" if form == "lines" else f"as {form}"
        raise InputError(f"--{wrong[0]} is for tables, and {shown_name(job.input_file)} is read "
                         f"{how}; leave the flag out, or give --input_format.")
    if form == "lines":
        return example_files.text_rows(read_lines(job.input_file))
    if form in TABLES.values():
        return example_files.read_table(job.input_file, columns_of(job, saved, form), omissions)
    if not (saved and saved.task.kind.format == forms.WORDS):
        raise InputError(f"--input_format={form} is for taggers; give another format.")
    return example_files.read_words(job.input_file, form, saved, job.text_a_column, omissions)


def main(job: PredictFlags) -> None:
    """Checks the folder and all lines of a file, opens the model, and predicts piece by piece."""
    job = dataclasses.replace(
        job, input_file=example_files.readable(job.input_file, job.input_format))
    example_files.check_files(job.input_file, job.output_file, job.output_format)
    checkpoints.check_exists(folder := fetched(job.init_checkpoint))
    if job.task:
        folder = names.known_task_folder(folder, job.task)
    elif not checkpoints.weights_at(folder):        # said before TensorFlow is loaded
        raise InputError(f"--init_checkpoint: there is no model in {folder}; name the --output_dir "
                         "of a fine-tuning run, or a folder of Hugging Face with the head of a "
                         "task.")
    omissions, saved = Omissions(job.skip_malformed_lines), SavedTask.read(folder)
    if saved is None:
        names.check_one_task(folder)
        from bert_tf.opening import task_of_labels  # which loads TensorFlow
        saved = task_of_labels(folder)
    form = job.input_format or example_files.form_of(job.input_file, saved, job.text_a_column)
    if form == "jsonl" and saved and saved.task.kind.format == forms.WORDS:
        form = forms.ANNOTATIONS
    to = job.output_format or example_files.format_of(job.output_file, _OUTPUTS.get(form, form))
    rows = read_rows(job, saved, form, omissions)
    if job.input_file != STANDARD:      # errors of all lines are raised before a model is loaded
        collections.deque(read_rows(job, saved, form, Omissions(job.skip_malformed_lines)), 0)
    make_folder(os.path.dirname(job.output_file), "output_file")
    predictor = bert_tf.Predictor(job.init_checkpoint, job.batch_size, task=job.task)
    count = example_files.answer_rows(
        rows, job.input_file, job.output_file, predictor.predict,
        functools.partial(example_files.writer, to))
    predictor.coverage.tell(job.output_file == STANDARD)
    if job.output_file != STANDARD:
        left = f", {counted(omissions.malformed, 'line')} left out" if omissions.malformed else ""
        print(f"{job.output_file}: {counted(count, 'prediction')}{left}")


if __name__ == "__main__":
    commands.start(__name__)
