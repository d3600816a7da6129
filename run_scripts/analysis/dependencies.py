"""Measures how well attention finds the heads of words in a treebank.

    bert-analyze dependencies --init_checkpoint=uncased_L-12_H-768_A-12 --input_file=train.conllu \\
        --eval_input_file=dev.conllu --output_dir=dependencies

Follows Clark et al. (arXiv:1906.04341, section 4). Shows for each relation which attention head and
which fixed distance find the word's head most often. Trains and scores (UAS) two probes that
combine all attention heads: one with fixed weights, one with weights that depend on both words. The
second probe takes the words' vectors from the model's embeddings, or from --word_vectors. Files are
CoNLL-U. Writes dependencies.json.
"""

import dataclasses
import os

import numpy as np

from bert_tf import flags
from bert_tf.analysis.dependencies import DependencyProbe, Parsed, attachment, offset_heads
from bert_tf.analysis.tags import LinkHeads
from bert_tf.compression.word_vectors import read_word_vectors
from bert_tf.errors import InputError, counted
from bert_tf.files import check_input, unpacked_name, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.conllu import ENDING
from run_scripts.analysis.layers import read, show_links
from run_scripts.analysis.model import ModelFlags, open_encoder

_OFFSETS = (-2, -1, 1, 2)       # heads of all words that the probes are compared with


@dataclasses.dataclass
class DependenciesFlags:
    """The treebank."""

    input_file: str = option(REQUIRED, "The treebank to train the probes on, CoNLL-U.")
    eval_input_file: str = option(REQUIRED, "The treebank to measure on, CoNLL-U.")
    sentences: int = option(500, "Number of sentences to learn from.", least=1)
    eval_sentences: int = option(500, "Number of sentences to measure on.", least=1)
    relations: int = option(15, "Number of relations to show, the most frequent ones.", least=1)
    word_vectors: str = option(
        "", "Text file of word vectors for the second probe, such as GloVe's: each line has a word "
        "and its numbers. Words are looked up as they are, then in lower case; a word that is not "
        "found has zeros. Default: the mean of the model's embeddings of a word's sub-words.")
    decay: float = option(1e-4, "Weight decay: factor of the sum of the probes' squared weights in "
                          "the loss.", least=0, rare=True)

    __post_init__ = flags.check


def parse(path: str, count: int, encoder, tokenizer, length: int
          ) -> tuple[list[Parsed], list[list[str]], list[list[str]]]:
    """Reads sentences with their attention; returns them, their words and their relations."""
    parts = read(path, {"id": "id", "head": "head", "deprel": "deprel"}, count, encoder, tokenizer,
                 length, attention=True)
    table, parsed = np.asarray(encoder.embedding_table), []
    for words, numbers, heads, attention, (ids, starts) in zip(
            parts.words, parts.tags["id"], parts.tags["head"], parts.attention, parts.pieces):
        sentence = f"{path}: the sentence {' '.join(words[:8])!r} of {counted(len(words), 'word')}"
        if numbers != list(map(str, range(1, 1 + len(words)))):
            raise InputError(f"{sentence} has the numbers {' '.join(numbers)}; its words must be "
                             "numbered from 1 on.")
        if not all(head.isdecimal() and int(head) <= len(heads) and int(head) != number
                   for number, head in enumerate(heads, 1)):
            raise InputError(f"{sentence} has the heads {' '.join(heads)}; they must be numbers of "
                             "other words, or 0.")
        counts = np.diff(np.append(starts, len(ids)))
        vectors = np.add.reduceat(table[ids], starts) / counts[:, None]
        parsed.append(Parsed(attention, [int(head) - 1 for head in heads], vectors))
    if all(head < 0 for one in parsed for head in one.heads):
        raise InputError(f"{path}: no word of its sentences has a head; name a file with "
                         "dependency trees.")
    return parsed, parts.words, [[kind.partition(":")[0] for kind in kinds]
                                 for kinds in parts.tags["deprel"]]


def with_vectors(sentences: list[Parsed], words: list[list[str]], path: str) -> list[Parsed]:
    """Returns the sentences with a file's vectors; prints how many words have one."""
    known = {form for of in words for word in of for form in (word, word.lower())}
    rows = dict(read_word_vectors(path, "word_vectors", known.__contains__))
    if not rows:
        raise InputError(f"--word_vectors: {path} has no word of the treebank; name vectors of "
                         "its language.")
    nothing = np.zeros_like(next(iter(rows.values())))
    looked_up = [[rows.get(word, rows.get(word.lower(), nothing)) for word in of] for of in words]
    count = sum(vector is not nothing for of in looked_up for vector in of)
    print(f"{count:,} of {sum(map(len, words)):,} words have a vector in {path}", flush=True)
    return [one._replace(vectors=np.array(vectors)) for one, vectors in zip(sentences, looked_up)]


def probe(train: list[Parsed], held_out: list[Parsed], decay: float) -> dict[str, float]:
    """Prints and returns the UAS of fixed distances and of both probes."""
    def blind(sentences):
        return [one._replace(vectors=None) for one in sentences]

    scores = {f"distance {offset:+}": attachment(held_out, [
        offset_heads(one, offset) for one in held_out]) for offset in _OFFSETS}
    for name, view in (("attention", blind), ("attention and words", list)):
        print(f"training the probe of {name} on {len(train):,} sentences", flush=True)
        trained = DependencyProbe(decay)
        trained.train(view(train))
        scores[name] = attachment(held_out, [trained.predict(one) for one in view(held_out)])
    print("\nwords whose head is found (UAS)")
    for name, share in scores.items():
        print(f"{name:<22}{share:>8.1%}")
    return scores


def main(model: ModelFlags, job: DependenciesFlags) -> None:
    for flag in ("input_file", "eval_input_file"):
        path = getattr(job, flag)
        check_input(path, flag)
        if not unpacked_name(path).endswith(ENDING):
            raise InputError(f"--{flag}: {path} must be CoNLL-U, with the extension {ENDING}.")
    if job.word_vectors:
        check_input(job.word_vectors, "word_vectors")
    opened = open_encoder(model)
    encoder, tokenizer = opened.network(), opened.tokenizer
    held_out, words, relations = parse(job.eval_input_file, job.eval_sentences, encoder, tokenizer,
                                       model.max_seq_length)
    links = LinkHeads()
    for one, kinds in zip(held_out, relations):
        links.add_links(one.attention, [
            (word, head, name) for word, (head, kind) in enumerate(zip(one.heads, kinds))
            if head >= 0 for name in (kind, "all")])
    relation_heads = show_links(links, "relation", job.relations + 1)
    train, others, _ = parse(job.input_file, job.sentences, encoder, tokenizer,
                             model.max_seq_length)
    if job.word_vectors:
        both = with_vectors(train + held_out, others + words, job.word_vectors)
        train, held_out = both[:len(train)], both[len(train):]
    write_json(os.path.join(model.output_dir, "dependencies.json"), {
        "relations": relation_heads, "uas": probe(train, held_out, job.decay)})
