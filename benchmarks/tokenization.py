"""Compares the speed of tokenization with tf-models-official.

The peer is `official.nlp.tools.tokenization.FullTokenizer` of tf-models-official, the original's
algorithm; both take turns in one process, each with a new tokenizer whose cache is empty.

Example:
    bert-benchmark tokenization --input_file=text.txt --vocab_file=vocab.txt
"""

import dataclasses
import statistics
import time

import numpy as np

from bert_tf import flags
from bert_tf.data.text import corpus
from bert_tf.files import find_files
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization.base import open_tokenizer


@dataclasses.dataclass
class TokenizationBenchmarkFlags:
    """Text to measure on."""

    input_file: list[str] = option(REQUIRED, "Text: files, globs or folders, plain or .gz.")
    vocab_file: str = option(REQUIRED, "The WordPiece vocabulary, one token per line.")
    do_lower_case: bool = option(True, "Lower-case the text: True for uncased vocabularies.")
    rounds: int = option(3, "Number of measurements of each tokenizer; the median is printed.",
                         least=1)


def _ours(job):
    tokenizer = open_tokenizer(job.vocab_file, job.do_lower_case)
    return lambda lines: tokenizer.encode_lines(lines)[0]


def _peers(job):
    from official.nlp.tools import tokenization

    peer = tokenization.FullTokenizer(job.vocab_file, job.do_lower_case)
    return lambda lines: [
        index for line in lines for index in peer.convert_tokens_to_ids(peer.tokenize(line))]


def main(job: TokenizationBenchmarkFlags) -> None:
    """Prints the speeds, their ratio and whether the ids are equal."""
    flags.check(job)
    paths = find_files(job.input_file, "input_file")
    lines = [line for piece in corpus.read_pieces(paths, 1 << 24)
             for line in corpus.decode(piece, paths)]
    megabytes = sum(len(line.encode("utf-8")) + 1 for line in lines) / 1e6
    systems = {"ours": _ours, "peer": _peers}
    try:
        import official.nlp.tools.tokenization  # noqa: F401
    except ImportError:
        print("tf-models-official is not installed: no ratio. (pip install 'bert_tf[official]')")
        del systems["peer"]
    seconds, ids = {name: [] for name in systems}, {}
    for _ in range(job.rounds):
        for name, build in systems.items():
            encode = build(job)
            start = time.process_time()
            ids[name] = encode(lines)
            seconds[name].append(time.process_time() - start)
    speed = {name: megabytes / statistics.median(times) for name, times in seconds.items()}
    for name, value in speed.items():
        print(f"{name}: {value:.2f} MB a CPU second on {megabytes:.2f} MB")
    if "peer" in speed:
        print(f"ours is {speed['ours'] / speed['peer']:.1f} times as fast; the ids are "
              f"{'equal' if np.array_equal(ids['ours'], ids['peer']) else 'DIFFERENT'}")
