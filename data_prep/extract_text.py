"""Writes text in BERT's input format: one sentence a line, a blank line between documents.

Without --input_file the text is English that is on every machine with our dependencies: the
documentation inside the standard library and the installed packages. The docstrings of a module
make one document; no sentence is repeated. With --input_file the text is your own plain text. The
end of a file ends a document, and so do two blank lines. In a file without two successive blank
lines, a single one ends a document. Whole documents are held out. A text that is one document is
cut into documents of 50 sentences, of which the last ones are held out.

Example:
    bert-extract-text --output_file=train.txt --eval_file=eval.txt --eval_share=0.05
"""

import ast
import contextlib
import dataclasses
import hashlib
import importlib.util
import itertools
import os
import re
import sysconfig
import warnings

from bert_tf import flags
from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.files import (
    announce_replacing,
    find_files,
    is_file,
    locked,
    make_folder,
    open_file,
    relative,
    write_aside,
)
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization.blocks import slices
from data_prep import prose

STANDARD_LIBRARY = "stdlib"
# Folders whose docstrings are hardly prose, or copies of other packages.
_SKIPPED = {"test", "tests", "testing", "_vendor", "vendor", "_vendored", "site-packages",
            "dist-packages", "lib2to3", "__pycache__"}
_TOPICS = "pydoc_data/topics.py"
_WHITE_SPACE = re.compile(r"\s")
_SHORTEST = 4       # sentences of a document of documentation
_PART = 50          # sentences of each document that a text of one document is cut into


@dataclasses.dataclass
class ExtractTextFlags:
    """Text to extract, and its files."""

    output_file: str = option(REQUIRED, "File for the text.")
    input_file: list[str] = option([], "Your own plain text, instead of documentation: files, "
                                   "globs or folders, plain or .gz.")
    packages: list[str] = option(
        [], "Packages whose documentation is taken; stdlib is Python's own. Default: all that are "
        "installed.")
    max_megabytes: float = option(
        8.0, "Stop at this much documentation (10^6 bytes). The choice of modules depends on their "
        "names alone.", above=0)
    eval_file: str = option("", "File for held-out documents.")
    eval_share: float = option(
        0.05, "Share that goes to --eval_file: of the documents; of the sentences of your own "
        "text, in whole documents, at least one.", above=0, below=1)

    def check(self):
        """Raises InputError for values that cannot work."""
        flags.check(self)
        if self.input_file and self.packages:
            raise InputError("give --input_file or --packages, not both.")
        if self.eval_file == self.output_file:
            raise InputError("--eval_file and --output_file name one file; give two.")


def source_files(packages):
    """Lists (name, path) of the Python files of `packages`, in an order that looks random but is
    fixed. Without a name these are the standard library and all that is installed."""
    if packages:
        locations = [pair for package in packages for pair in _locations(package)]
    else:
        locations = [(folder, folder) for folder in map(sysconfig.get_path, ("stdlib", "purelib"))]
    found = {pair for folder, root in locations for pair in _python_files(folder, root)}
    return sorted(found, key=lambda pair: (_draw("order", pair[0]), pair))


def _locations(package):
    """(folder or file, the folder its names are relative to) of a package, found, not imported."""
    if package == STANDARD_LIBRARY:
        return [(sysconfig.get_path("stdlib"),) * 2]
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None:
        raise InputError(f"--packages: {package!r} is not installed.")
    places = spec.submodule_search_locations or [spec.origin]
    return [(place, os.path.dirname(place)) for place in places]


def _python_files(place, root):
    if is_file(place):
        yield relative(place, root), place
    for base, folders, names in os.walk(place):
        folders[:] = set(folders) - _SKIPPED
        for name in names:
            if name.endswith(".py") and not name.startswith("test_"):
                path = os.path.join(base, name)
                yield relative(path, root), path


def _draw(purpose, name):
    """A number in [0, 1) that depends on its arguments alone."""
    digest = hashlib.sha256(f"{purpose} {name}".encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


def docstrings(source, name):
    """Lists the docstrings of a module in the order of its lines.

    Raises:
        ValueError, SyntaxError, RecursionError: the source can't be parsed.
    """
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


def documentation(files, note):
    """Yields (name, sentences) of each document; no sentence comes twice.

    Args:
        note: called with (name) for every file that can't be read.
    """
    seen = set()
    for name, path in files:
        try:
            with open_file(path) as file:
                texts = docstrings(file.read(), name)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            note(name)
            continue
        for part in [[text] for text in texts] if name == _TOPICS else [texts]:
            found = []
            for sentence in _sentences_of(part):
                key = re.sub(r"[^a-z]", "", sentence.lower())
                if key not in seen:
                    seen.add(key)
                    found.append(sentence)
            if len(found) >= _SHORTEST:
                yield f"{name} {found[0]}", found


def _sentences_of(texts):
    return (sentence for text in texts for paragraph in prose.paragraphs(text)
            for sentence in prose.sentences(paragraph) if prose.is_english(sentence))


def own_text(paths):
    """Yields (name, sentences) of each document of plain text files; parts of the document where
    there is one alone."""
    documents = _whole_documents(paths)
    first, second = next(documents, None), next(documents, None)
    if first and not second:
        name, found = first
        for start in range(0, len(found), _PART):
            yield f"{name} {start}", found[start:start + _PART]
    elif first:
        yield from itertools.chain([first, second], documents)


def _whole_documents(paths):
    for path in paths:
        text = "\n".join(line.strip() for piece in corpus.read_pieces([path], 1 << 24)
                         for line in corpus.decode(piece, [path])).strip()
        gap = r"\n{3,}" if "\n\n\n" in text else r"\n\n"
        for number, document in enumerate(re.split(gap, text)):
            found = [sentence for paragraph in document.split("\n\n")
                     for sentence in prose.sentences(_join_blanks(paragraph))]
            if found:
                yield f"{path} {number}", found


def hold_out(sizes, share):
    """Returns the names of documents to hold out: those that a fixed draw takes until `share` of
    the sentences is reached, or the shortest one if all are longer than that.

    Args:
        sizes: {name: number of sentences}.
    """
    left, found = share * sum(sizes.values()), set()
    for name in sorted(sizes, key=lambda name: _draw("eval", name)):
        if sizes[name] <= left:
            left -= sizes[name]
            found.add(name)
    return found or set(sorted(sizes, key=sizes.get)[:len(sizes) > 1])


def _choose_held_out(job, paths):
    """Returns whether a document, by its name, goes to --eval_file."""
    if not job.eval_file:
        return lambda name: False
    if not paths:
        return lambda name: _draw("eval", name) < job.eval_share
    sizes = {name: len(found) for name, found in own_text(paths)}
    if next(_whole_documents(paths), ("",))[0] in sizes:
        return hold_out(sizes, job.eval_share).__contains__
    count = max(round(job.eval_share * len(sizes)), len(sizes) > 1)
    print(f"note: the text is one document; it is cut into {len(sizes)} of up to {_PART} "
          f"sentences, the last {count} of which are held out. Blank lines divide documents.",
          flush=True)
    return set(list(sizes)[len(sizes) - count:]).__contains__


def _join_blanks(text):
    """Returns the text with one blank for each run of white space; long texts in parts."""
    parts = (" ".join(part.split()) for part in slices(text, _WHITE_SPACE))
    return " ".join(filter(None, parts))


def main(job):
    """Writes the text and prints what it took."""
    job.check()
    unread = []
    paths = find_files(job.input_file, "input_file") if job.input_file else []
    documents = own_text(paths) if paths else documentation(source_files(job.packages),
                                                            unread.append)
    is_held_out = _choose_held_out(job, paths)
    with contextlib.ExitStack() as stack:
        outputs = {flag: _Output(getattr(job, flag), flag, stack)
                   for flag in ("output_file", "eval_file") if getattr(job, flag)}
        folder, name = os.path.split(job.output_file)
        flags.keep(job, folder, name + ".")
        for name, sentences in documents:
            outputs["eval_file" if is_held_out(name) else "output_file"].write(sentences)
            size = sum(output.size for output in outputs.values())
            if not job.input_file and size >= job.max_megabytes * 1e6:
                break
        if not outputs["output_file"].documents:
            raise InputError("no text was found; name files or packages with sentences in them.")
    for output in outputs.values():
        print(f"{output.path}: {output.documents} documents, {output.sentences} sentences, "
              f"{output.size / 1e6:.2f} MB.")
    if unread:
        print(f"{len(unread)} source files could not be read, such as {unread[0]}.")


class _Output:
    """A text file in BERT's format, and what went into it."""

    def __init__(self, path, flag, stack):
        make_folder(os.path.dirname(path), flag)
        stack.enter_context(locked(path, f"--{flag}"))
        announce_replacing([path])
        self.path = path
        self.documents = self.sentences = self.size = 0
        self._file = stack.enter_context(write_aside(path, "wb"))

    def write(self, sentences):
        """Appends a document (list of str)."""
        text = ("\n" if self.documents else "") + "".join(f"{line}\n" for line in sentences)
        self.size += self._file.write(text.encode("utf-8"))
        self.documents += 1
        self.sentences += len(sentences)


def run():
    flags.run(main, ExtractTextFlags)


if __name__ == "__main__":
    run()
