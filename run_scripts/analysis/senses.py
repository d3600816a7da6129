"""Finds the senses of words by the nearest vectors of words with known senses.

    bert-analyze senses --init_checkpoint=uncased_L-12_H-768_A-12 --input_file=semcor.data.xml \\
        --eval_input_file=semeval2007.data.xml --output_dir=senses

Follows Wiedemann et al. (arXiv:1909.10430). Among the words with the same lemma in --input_file,
the nearest neighbours by cosine vote on the sense of a word. The most frequent sense in that file
is the baseline. Files are Raganato et al.'s .data.xml with .gold.key.txt, or plain: a word, its
lemma and its sense, separated by tabs, one word per line. Writes senses.json.
"""

import collections
import dataclasses
import os

import numpy as np

from bert_tf import analysis, flags
from bert_tf.analysis.senses import Neighbours
from bert_tf.errors import InputError, counted
from bert_tf.files import check_input, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.senses import Instance, Sentence, read_senses
from bert_tf.training.reporting import TimeLeft
from run_scripts.analysis.model import ModelFlags, open_encoder


@dataclasses.dataclass
class SensesFlags:
    """The words with senses."""

    input_file: list[str] = option(REQUIRED, "Words with known senses.")
    eval_input_file: str = option(REQUIRED, "Words with senses to predict.")
    neighbours: list[str] = option(
        ["1", "3", "7", "10"], "Numbers of neighbours; the command scores each.", items=int,
        least=1)
    layer: int = option(-1, "The layer whose vectors are compared: 0 for the embeddings, or "
                        "counted from the last one, -1.")

    __post_init__ = flags.check


def vectors_of(sentences: list[Sentence], opened, encoder, length: int, layer: int, what: str
               ) -> tuple[list[Instance], np.ndarray]:
    """The instances that a sequence has room for, and the means of their vectors, float [n, H]."""
    tokenizer, rows, places = opened.tokenizer, [], []
    layout = tokenizer.vocabulary.layout
    for words, instances in sentences:
        ids, lengths = tokenizer.encode_words(words)
        ends = np.cumsum(lengths)
        ids = ids[:layout.room(length, False)]
        fitting = [(one, slice(layout.before + ends[one.words[0]] - lengths[one.words[0]],
                               layout.before + ends[one.words[-1]]))
                   for one in instances if one.words and ends[one.words[-1]] <= len(ids)]
        fitting = [(one, place) for one, place in fitting if place.start < place.stop]
        if fitting:
            rows.append(analysis.pack([(ids.tolist(), [])], tokenizer))
            places.append(fitting)
    readings = TimeLeft(f"sentences of {what}", len(rows)).over(
        analysis.read(encoder, rows, ("hidden",)))
    usable: list[Instance] = []
    vectors = []
    for reading, fitting in zip(readings, places):
        for one, place in fitting:
            usable.append(one)
            vectors.append(reading.hidden[layer, place].mean(0))
    if not usable:
        raise InputError(f"{what}: no word with a sense is within the first {length} tokens of its "
                         "sentence; give another file, or a larger --max_seq_length.")
    total = sum(len(instances) for _, instances in sentences)
    if (left_out := total - len(usable)):
        print(f"{left_out:,} of {total:,} words of {what} are left out: they are not within the "
              f"first {length} tokens of their sentence, or have no token; a larger "
              "--max_seq_length takes more", flush=True)
    return usable, np.stack(vectors)


def score(known: Neighbours, instances: list[Instance], vectors: np.ndarray, counts: list[int]
          ) -> dict[str, dict]:
    """Returns the shares that are right, by the way to predict, of all instances whose lemma is
    known, and of those whose lemma has several senses."""
    seen = [place for place, one in enumerate(instances) if one.lemma in known.counts]
    if not seen:
        raise InputError("--eval_input_file has no lemma of --input_file; give files about the "
                         "same words.")
    several = [place for place in seen if len(known.counts[instances[place].lemma]) > 1]
    by_lemma = collections.defaultdict(list)
    for place in seen:
        by_lemma[instances[place].lemma].append(place)
    ways: dict[str, list] = {
        "most frequent sense": [known.most_frequent(one.lemma) for one in instances]}
    for count in counts:
        ways[f"{count} nearest"] = predicted = [None] * len(instances)
        for lemma, places in by_lemma.items():
            for place, sense in zip(places, known.predict(lemma, vectors[places], count)):
                predicted[place] = sense
    return {name: {"instances": len(chosen), **{
        way: sum(predicted[i] in instances[i].senses for i in chosen) / len(chosen)
        for way, predicted in ways.items()}}
        for name, chosen in (("known lemma", seen), ("several senses", several)) if chosen}


def main(model: ModelFlags, job: SensesFlags) -> None:
    for path in job.input_file:
        check_input(path, "input_file")
    check_input(job.eval_input_file, "eval_input_file")
    train = [sentence for path in job.input_file for sentence in read_senses(path)]
    held_out = read_senses(job.eval_input_file)
    opened = open_encoder(model)
    depth = opened.config.depth
    if not -depth - 1 <= job.layer <= depth:
        raise InputError(f"--layer is {job.layer}, but the model has {depth} layers; give a layer "
                         "that exists.")
    encoder, known = opened.network(), Neighbours()
    for one, vector in zip(*vectors_of(train, opened, encoder, model.max_seq_length, job.layer,
                                       "--input_file")):
        known.add(one.lemma, one.senses, vector)
    instances, vectors = vectors_of(held_out, opened, encoder, model.max_seq_length, job.layer,
                                    "--eval_input_file")
    shares = score(known, instances, vectors, list(map(int, job.neighbours)))
    print(f"\n{counted(sum(map(len, known.counts.values())), 'sense')} of "
          f"{counted(len(known.counts), 'lemma')}; {counted(len(instances), 'word')} to tell\n"
          f"{'':>24}" + "".join(f"{name:>16}" for name in shares))
    for way in next(iter(shares.values())):
        print(f"{way:>24}" + "".join(
            f"{row[way]:>16,}" if way == "instances" else f"{row[way]:>16.1%}"
            for row in shares.values()))
    write_json(os.path.join(model.output_dir, "senses.json"), shares)
