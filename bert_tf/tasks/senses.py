"""Sentences whose words are tagged with senses."""

import dataclasses
import os
import xml.etree.ElementTree
from collections.abc import Iterator

from bert_tf.errors import InputError
from bert_tf.files import exists, open_unpacked
from bert_tf.tasks.rows import read_lines

_DATA, _KEYS = ".data.xml", ".gold.key.txt"
_NONE = "_"


@dataclasses.dataclass(frozen=True)
class Instance:
    """A word with a sense."""

    words: range    # numbers of the words of the sentence that it consists of
    lemma: str  # the word that has the sense, such as "bank NOUN"
    senses: tuple[str, ...]     # the senses that are right, one or more


# A sentence's words, and the instances among them.
Sentence = tuple[list[str], list[Instance]]


def read_senses(path: str) -> list[Sentence]:
    """Reads sentences with tagged words.

    The file is plain: a line for each word, with the word, its lemma and its senses (with "|"
    between several) between tabs, "_" for words without a sense, and a blank line after each
    sentence. Or its name ends in .data.xml: it is a file of Raganato et al.'s framework (EACL
    2017), whose senses are in the file next to it that ends in .gold.key.txt. Raises InputError if
    the file has another form, or tags no word."""
    try:
        sentences = list(_read_framework(path) if path.endswith(_DATA) else _read_plain(path))
    except xml.etree.ElementTree.ParseError as error:
        raise InputError(f"{path} is not XML ({error}); correct it.") from None
    if not any(instances for _, instances in sentences):
        raise InputError(f"{path} tags no word with a sense; name another file.")
    return sentences


def _read_plain(path) -> Iterator[Sentence]:
    words: list[str] = []
    instances: list[Instance] = []
    for number, line in (*read_lines(path), (0, "")):
        if not line.strip():
            if words:
                yield words, instances
            words, instances = [], []
            continue
        cells = line.split("\t")
        if len(cells) != 3 or not all(cells):
            raise InputError(f"{path}, line {number}: write a word, its lemma and its sense, "
                             "separated by tabs; \"_\" stands for none.")
        if cells[2] != _NONE:
            instances.append(Instance(range(len(words), len(words) + 1), cells[1],
                                      tuple(cells[2].split("|"))))
        words.append(cells[0])


def _read_framework(path) -> Iterator[Sentence]:
    beside = path.removesuffix(_DATA) + _KEYS
    if not exists(beside):
        raise InputError(f"{path}: {os.path.basename(beside)}, the file with the senses, is "
                         "missing in the same folder; put it there.")
    keys = {name: tuple(senses) for name, *senses in (
        line.split() for _, line in read_lines(beside) if line.strip())}
    with open_unpacked(path) as file:
        for _, sentence in xml.etree.ElementTree.iterparse(file):
            if sentence.tag != "sentence":
                continue
            words: list[str] = []
            instances = []
            for word in sentence:
                first = len(words)
                words += (word.text or "").replace("_", " ").split()
                if word.tag == "instance":
                    name = word.get("id", "")
                    if not keys.get(name):
                        raise InputError(f"{beside} has no sense for {name!r}, a word of {path}; "
                                         "give two files of one release.")
                    instances.append(Instance(
                        range(first, len(words)), f"{word.get('lemma')} {word.get('pos')}",
                        keys[name]))
            yield words, instances
            sentence.clear()
