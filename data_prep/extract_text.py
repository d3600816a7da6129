"""Turns a corpus into text: a sentence per line, a blank line between documents.

--input_file is your own text: plain text, JSON lines, Parquet, a Wikipedia dump, WikiExtractor's
output or a data set by name. The end of a file of plain text ends a document, and so do two blank
lines. In a file without two successive blank lines, one blank line ends a document. Without
--input_file the text is the English documentation of Python's standard library and of the installed
packages. The docstrings of a module make one document; no sentence is repeated.

--eval_file gets whole documents, as held-out text. A text that is a single document is cut into
documents of 50 sentences, and the last of them are held out. Run the same command again to resume a
killed job.

Example:
    bert-extract-text --input_file='books/*.txt' --output_file=train.txt --eval_file=held_out.txt
    bert-extract-text --input_file=enwiki-latest-pages-articles.xml.bz2 --output_file=wiki.txt
"""

import ast
import contextlib
import dataclasses
import hashlib
import importlib.util
import itertools
import math
import os
import re
import sysconfig
import warnings

from bert_tf import files, flags
from bert_tf.errors import InputError, counted
from bert_tf.files import is_library_name
from bert_tf.flags import REQUIRED, only, option, without
from data_prep import prose, sentences
from data_prep.containers import is_plain
from data_prep.corpora import AUTO, PART, Corpus

STANDARD_LIBRARY = "stdlib"
# Folders whose docstrings are hardly prose, or copies of other packages.
_SKIPPED = {"test", "tests", "testing", "_vendor", "vendor", "_vendored", "site-packages",
            "dist-packages", "lib2to3", "__pycache__"}
_TOPICS = "pydoc_data/topics.py"
_SHORTEST = 4       # sentences of a document of documentation


@dataclasses.dataclass
class ExtractTextFlags:
    """Text to extract, and its files."""

    output_file: str = option(REQUIRED, "File for the text.")
    input_file: list[str] = option(
        [], "Your own text, instead of documentation: files, globs or folders of plain text, JSON "
        "lines (.jsonl), Parquet (.parquet), a Wikipedia dump (.xml) or WikiExtractor's output, "
        "plain or compressed (.gz, .xz, .bz2, .zst); or data sets by name, "
        "hf://datasets/OWNER/NAME or tfds:NAME.")
    text_column: str = only("input_file")(
        "text", "Column of the texts in JSON lines, Parquet and data sets.")
    lines_are_paragraphs: bool = only("input_file")(
        False, "A line break ends a paragraph, as in text from web pages; if false, only a blank "
        "line ends it.")
    language: str = only("input_file")(
        AUTO, "Language whose abbreviations and ordinals end no sentence; Chinese, Hindi, Japanese "
        "and Korean need none. auto: a Wikipedia dump's own language, else English.",
        choices=(AUTO, *sentences.LANGUAGES))
    num_workers: int = option(
        0, "Processes that read your own text; 0: one per core.", least=0, most=4096)
    packages: list[str] = without("input_file")(
        [], "Packages whose documentation is the text; stdlib is Python's. Default: all installed "
        "packages.")
    max_megabytes: float = without("input_file")(
        8.0, "Maximum size of the documentation (10^6 bytes). The choice of modules depends only "
        "on their names.", above=0)
    eval_file: str = option("", "File for held-out documents.")
    eval_share: float = only("eval_file")(
        0.05, "Share of the documents for --eval_file, at least one document. In your own plain "
        "text, share of the sentences, in whole documents.", above=0, below=1)

    def check(self):
        flags.check(self)
        if self.eval_file and files.real_path(self.eval_file) == files.real_path(self.output_file):
            raise InputError("--eval_file and --output_file name the same file; give two files.")
        for flag in ("output_file", "eval_file"):
            if (plain := files.unpacked_name(path := getattr(self, flag))) != path:
                raise InputError(f"--{flag}: {path} has the extension of a compressed file, but "
                                 f"the text is not compressed; give {plain}.")


def source_files(packages):
    """Lists (name, path) of the Python files of `packages`, in an order that looks random but is
    fixed. Without a name these are the standard library and all that is installed."""
    if packages:
        locations = [pair for package in packages for pair in _locations(package)]
    else:
        locations = [(folder, folder) for folder in map(sysconfig.get_path, ("stdlib", "purelib"))]
    pairs = {pair for folder, root in locations for pair in _python_files(folder, root)}
    return sorted(pairs, key=lambda pair: (_draw("order", pair[0]), pair))


def _locations(package):
    if package == STANDARD_LIBRARY:
        return [(sysconfig.get_path("stdlib"),) * 2]
    spec = package.isidentifier() and importlib.util.find_spec(package)
    if not spec:
        raise InputError(f"--packages: {package!r} is not installed; install it, or leave it out.")
    places = spec.submodule_search_locations or [spec.origin]
    return [(place, os.path.dirname(place)) for place in places]


def _python_files(place, root):
    if files.is_file(place):
        yield files.relative(place, root), place
    for base, folders, names in os.walk(place):
        folders[:] = set(folders) - _SKIPPED
        for name in names:
            if name.endswith(".py") and not name.startswith("test_"):
                path = os.path.join(base, name)
                yield files.relative(path, root), path


def _draw(purpose, name):
    digest = hashlib.sha256(f"{purpose} {name}".encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


def docstrings(source, name):
    """Lists the docstrings of a module in the order of its lines; ValueError, SyntaxError or
    RecursionError if the source can't be parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # of invalid escapes
        tree = ast.parse(source)
    if name == _TOPICS:     # a dictionary of pages
        return [node.value for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = sorted((node for node in ast.walk(tree) if isinstance(node, kinds)),
                   key=lambda node: getattr(node, "lineno", 0))
    return [text for text in map(ast.get_docstring, nodes) if text]


def documentation(sources, note):
    """Yields (name, sentences) of each document; no sentence comes twice."""
    seen = set()
    for name, path in sources:
        try:
            with files.open_file(path) as file:
                texts = docstrings(file.read(), name)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            note(name)
            continue
        parts = [texts]
        if name == _TOPICS:
            parts = [[text] for text in texts]
        for part in parts:
            new = []
            for paragraph in itertools.chain.from_iterable(map(prose.paragraphs, part)):
                for sentence in filter(prose.is_english, sentences.sentences(paragraph)):
                    key = re.sub(r"[^a-z]", "", sentence.lower())
                    if key not in seen:
                        seen.add(key)
                        new.append(sentence)
            if len(new) >= _SHORTEST:
                yield f"{name} {new[0]}", new


def hold_out(sizes, share):
    """Returns the names of documents to hold out, given their numbers of sentences: those that a
    fixed draw takes until `share` of the sentences is reached, or the shortest one if all are
    longer."""
    left, names = share * sum(sizes.values()), set()
    for name in sorted(sizes, key=lambda name: _draw("eval", name)):
        if sizes[name] <= left:
            left -= sizes[name]
            names.add(name)
    return names or set(sorted(sizes, key=sizes.get)[:len(sizes) > 1])


def _choose_held_out(job, text):
    """Returns whether a document, by its name, goes to --eval_file; `text`: `Corpus` or None."""
    if not job.eval_file:
        return lambda name: False
    if not text:
        return lambda name: _draw("eval", name) < job.eval_share
    if text.is_one_document:
        names = [name for name, _ in text.documents()]
        if len(names) == 1:
            text.close()
            raise InputError(f"the text is one document of up to {PART} sentences, from which "
                             "none can be held out; give more text, with blank lines between "
                             "documents.")
        count = min(max(round(job.eval_share * len(names)), 1), len(names) - 1)
        print(f"note: the text is one document; it is cut into {len(names)} documents of up to "
              f"{PART} sentences, and the last {'is' if count == 1 else f'{count} are'} held out. "
              "Blank lines divide documents.", flush=True)
        return set(names[len(names) - count:]).__contains__
    if text.is_plain:
        return hold_out({name: len(lines) for name, lines in text.documents()},
                        job.eval_share).__contains__
    # One at least, and not all; memory does not grow with the number of documents.
    least, most = 1.0, 0.0
    for name, _ in text.documents():
        draw = _draw("eval", name)
        least, most = min(least, draw), max(most, draw)
    share = max(job.eval_share, math.nextafter(least, 1))
    if least < most:
        share = min(share, most)
    return lambda name: _draw("eval", name) < share


def main(job: ExtractTextFlags) -> None:
    job.check()
    unread, text = [], None
    written = list(filter(None, (job.output_file, job.eval_file)))
    sources = [source for name in job.input_file for source in (    # data sets are as they are
        [name] if is_library_name(name) else files.find_files([name], "input_file", written))]
    files.warn_of_tables(filter(is_plain, sources))
    with contextlib.ExitStack() as stack:
        outputs = {flag: _Output(getattr(job, flag), flag, stack)
                   for flag in ("output_file", "eval_file") if getattr(job, flag)}
        folder, name = os.path.split(job.output_file)
        flags.keep(job, folder, name + ".")
        if sources:
            text = Corpus(sources, job.output_file, job.text_column, job.lines_are_paragraphs,
                          job.language, job.num_workers)
            text.make()
            documents = text.documents()
        else:
            documents = documentation(source_files(job.packages), unread.append)
        is_held_out = _choose_held_out(job, text)
        for name, sentences in documents:
            outputs["eval_file" if is_held_out(name) else "output_file"].write(sentences)
            size = sum(output.size for output in outputs.values())
            if not sources and size >= job.max_megabytes * 1e6:
                break
        if empty := [flag for flag, output in outputs.items() if not output.documents]:
            if text:
                text.close()
            raise InputError(_why_empty(job, empty, len(outputs)))
    if text:
        text.close()
    for output in outputs.values():
        print(f"{output.path}: {counted(output.documents, 'document')}, "
              f"{counted(output.sentences, 'sentence')}, {output.size / 1e6:.2f} MB.")
    if unread:
        print(f"{len(unread)} source files could not be read, such as {unread[0]}.")


def _why_empty(job, flags_of_files, count):
    if len(flags_of_files) == count:
        flag = "input_file" if job.input_file else "packages"
        return (f"--{flag}: there is no text in {', '.join(getattr(job, flag))}; name files or "
                "packages with sentences in them.")
    return (f"no document was drawn for --{flags_of_files[0]}; give more text, or another "
            "--eval_share (equal documents go together).")


class _Output:
    """A text file in BERT's format, with counts of its documents and sentences."""

    def __init__(self, path, flag, stack):
        files.check_file(path, flag)
        files.make_folder(os.path.dirname(path), flag)
        stack.enter_context(files.locked(path, f"--{flag}"))
        files.announce_replacing([path])
        self.path = path
        self.documents = self.sentences = self.size = 0
        self._file = stack.enter_context(files.write_aside(path, "wb"))

    def write(self, sentences):
        text = "".join(f"{line}\n" for line in sentences)
        if self.documents:
            text = f"\n{text}"
        self.size += self._file.write(text.encode("utf-8"))
        self.documents += 1
        self.sentences += len(sentences)


if __name__ == "__main__":
    flags.run(main, ExtractTextFlags)
