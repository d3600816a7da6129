"""Shows the tokens that the heads of a model attend to.

    bert-analyze attention --init_checkpoint=uncased_L-12_H-768_A-12 --input_file=books.txt \\
        --output_dir=attention

Measures follow Clark et al. (arXiv:1906.04341) and Kovaleva et al. (arXiv:1908.08593). Writes
attention.html (an interactive page), heads.png (the maps of a text), statistics.png, plane.png,
maps.npz (the maps of the first texts) and statistics.json. --maps shows T5's decoder.
--fine_tuned_checkpoint compares two models on the same texts. --gradients measures how much the
masked LM loss depends on attention.
"""

import dataclasses
import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf import analysis, checkpoints, flags, networks, objectives, training
from bert_tf.analysis import patterns
from bert_tf.analysis.statistics import KINDS, titles
from bert_tf.config import EncoderConfig, T5Config
from bert_tf.data.text.vectors import SEPARATOR, Texts, read_lines
from bert_tf.errors import InputError, counted, naming
from bert_tf.files import check_input, exists, file_size, replace_aside, write_json
from bert_tf.flags import REQUIRED, only, option
from bert_tf.tasks import forms
from bert_tf.tokenization import Tokenizer
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.training.reporting import TimeLeft
from run_scripts.analysis.model import ModelFlags, name_of, open_encoder

_SHARE_MASKED = 0.15
_GRADIENT_TEXTS = 40
_COMPARED_TEXTS = 5     # whose maps give the distances between heads
_LINES = 20_000
_WRITTEN = {"attention.html": "the page with all heads of some texts",
            "heads.png": "the maps of the first text",
            "statistics.png": "where heads look, by layer",
            "plane.png": "which heads look alike",
            "maps.npz": "the maps of the texts on the page, arrays",
            "statistics.json": "all figures"}
_COLUMNS = (*KINDS[:3], "self", "left", "right", "entropy")
_of_encoder = only("maps", "encoder")


@dataclasses.dataclass
class AttentionFlags:
    """The texts and what to do with them."""

    input_file: str = option(REQUIRED, "The texts, plain or .gz.")
    texts: str = option("documents", "documents: one sentence or paragraph per line, a blank line "
                        "after each document, cut into pairs of segments as in the original; "
                        "lines: each line is a text, or two with \" ||| \" between them.",
                        choices=("documents", "lines"))
    num_docs: int = option(100, "Number of texts; the original takes 1000.", least=1)
    zero_segments: bool = _of_encoder(
        False, "Also give the second segment the id 0, as the original does.")
    maps: str = option("encoder", "Whose attention: the encoder's; or for T5, with --texts=lines, "
                       "the decoder's, where the second text of a line attends to its own tokens "
                       "(decoder) or to the first text's (cross).",
                       choices=("encoder", "decoder", "cross"))
    num_maps: int = option(4, "Number of texts in maps.npz and on the page.", least=1)
    fine_tuned_checkpoint: str | None = _of_encoder(
        None, "A fine-tuned model of the same sizes, to compare on the same texts.")
    gradients: bool = _of_encoder(
        False, "Measure the gradient of the masked LM loss with respect to attention weights; the "
        "checkpoint must hold the masked LM head.")
    pattern_network: bool = _of_encoder(
        False, "Train a network that recognises the class of a map from its picture, and report "
        "how well it does on other texts.")
    random_seed: int = option(0, "Seed of the segments and masks.", least=0, most=(1 << 31) - 1)

    def __post_init__(self):
        flags.check(self)
        if self.maps != "encoder" and self.texts != "lines":
            raise InputError(f"--maps={self.maps} needs lines of two texts; give --texts=lines.")


def _read_lines(job):
    forms.check_lines(job.input_file)
    lines = itertools.chain.from_iterable(read_lines(job.input_file, _LINES))
    texts = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    if numbered := dict(itertools.islice(texts, job.num_docs)):
        return numbered
    raise InputError(f"--input_file: {job.input_file} gives no text: it must have one line.")


def _tell_cut(lines, most):
    if lines:
        print(f"{counted(lines, 'line')} cut to {most} tokens", flush=True)


def read_features(job: AttentionFlags, tokenizer: Tokenizer, max_seq_length: int) -> list[dict]:
    """Returns the features of each text of an `AttentionFlags`, int32 [1, n], without padding."""
    if job.texts == "lines":
        lines = list(_read_lines(job).values())
        texts = Texts(lines, tokenizer, max_seq_length)
        _tell_cut(texts.cut, max_seq_length)
        rows = [texts.pack(np.array([number])) for number in range(len(lines))]
    else:
        documents = analysis.encode_documents(job.input_file, tokenizer, _LINES)
        pairs = analysis.clark_segments(documents, max_seq_length, job.num_docs,
                                        random.Random(job.random_seed),
                                        tokenizer.vocabulary.layout.special(True))
        rows = [analysis.pack([pair], tokenizer) for pair in pairs]
    if not rows:
        room = tokenizer.vocabulary.layout.room(max_seq_length, True)
        raise InputError(f"--input_file: {job.input_file} gives no text: it must have a document "
                         f"whose first two lines have fewer than {room} tokens each; "
                         "give shorter lines, a larger --max_seq_length or --texts=lines.")
    if job.zero_segments:
        for row in rows:
            row["segment_ids"][:] = 0
    return rows


def read_pairs(job: AttentionFlags, tokenizer: Tokenizer, max_seq_length: int) -> list[dict]:
    """Returns the features of each source and target for T5, int32 [1, n]."""
    rows, cut = [], 0
    for number, line in _read_lines(job).items():
        texts = line.split(SEPARATOR)
        if len(texts) != 2:
            raise InputError(f"--input_file: line {number} of {job.input_file} must be two texts "
                             f"with {SEPARATOR!r} between them, for --maps={job.maps}.")
        whole = [tokenizer.encode(text) for text in texts]
        source, target = (ids[:max_seq_length - 1] for ids in whole)
        cut += max(map(len, whole)) >= max_seq_length
        rows.append({name: np.array([ids], np.int32) for name, ids in (
            ("encoder_input_tokens", [*source, tokenizer.vocabulary.sep_id]),
            ("decoder_input_tokens", [0, *target]))})
    _tell_cut(cut, max_seq_length)
    return rows


def padded(rows: list[dict], size: int) -> Iterator[dict]:
    """Yields batches of `size` texts [1, n], each feature padded to its longest."""
    for start in range(0, len(rows), size):
        part = rows[start:start + size]
        longest = {name: max(row[name].shape[1] for row in part) for name in part[0]}
        yield {name: np.concatenate([
            np.pad(row[name], ((0, 0), (0, longest[name] - row[name].shape[1])))
            for row in part]) for name in part[0]}


@dataclasses.dataclass
class Survey:
    """Sums of one pass over the texts."""

    vocabulary: Vocabulary
    keep: int
    distance_texts: int
    maps: str = "encoder"
    is_causal: bool = False
    distances: Any = 0.0

    def __post_init__(self):
        self.statistics = analysis.Statistics()
        self.readings, self.classes, self.pictures = [], [], []

    def add(self, reading, with_pictures: bool = False) -> None:
        kinds = analysis.token_kinds(reading.input_ids, self.vocabulary)
        if len(self.readings) < self.keep:
            self.readings.append(reading)
        if self.statistics.texts < self.distance_texts:
            self.distances = self.distances + analysis.jensen_shannon(reading.attention)
        self.statistics.add(reading.attention, kinds, "decoder" if self.is_causal else self.maps)
        if self.maps != "encoder":
            return
        self.classes.append(patterns.classify(patterns.describe(
            reading.attention, kinds["sep"] | kinds.get("cls", False), reading.segment_ids)))
        if with_pictures:
            self.pictures.append(patterns.picture(reading.attention))


def print_statistics(survey: Survey) -> None:
    """Prints a table by layer, and the strongest head of each kind."""
    figures = survey.statistics.result()
    shown = titles(survey.vocabulary)
    columns = {name: max(10, 1 + len(shown[name])) for name in _COLUMNS if name in figures}
    print(f"\n{counted(survey.statistics.texts, 'text')}; mean over the heads of a layer\n   layer"
          + "".join(f"{shown[name]:>{width}}" for name, width in columns.items()))
    for layer in range(len(figures["entropy"])):
        print(f"{layer + 1:>8}" + "".join(f"{figures[name][layer].mean():>{width}.3f}"
                                          for name, width in columns.items()))
    print(f"    the entropy of a head that looks at all tokens alike is "
          f"{survey.statistics.uniform_entropy:.3f}")
    for name in [*columns][:-1]:
        layer, head = np.unravel_index(figures[name].argmax(), figures[name].shape)
        print(f"    most to {shown[name]}: {figures[name].max():.3f}, layer {layer + 1} head "
              f"{head + 1}")


def print_classes(named: dict[str, Survey]) -> None:
    """Prints the shares of the pattern classes."""
    print("\nshares of Kovaleva's classes of maps, by rule")
    print(f"{'':<12}" + "".join(f"{name:>22}" for name in patterns.CLASSES))
    for name, survey in named.items():
        print(f"{name:<12}" + "".join(f"{share:>22.1%}"
                                      for share in patterns.shares(np.stack(survey.classes))))


def open_others(job: AttentionFlags, opened, encoder, rows: list[dict]) -> tuple:
    """Returns the encoder of --fine_tuned_checkpoint and the masked LM of --gradients, or None."""
    fine = learner = None
    if job.fine_tuned_checkpoint:
        fine = networks.build(encoder.config)
        with naming("--fine_tuned_checkpoint"):
            checkpoints.load(job.fine_tuned_checkpoint, fine)
    if job.gradients:
        if not isinstance(encoder.config, EncoderConfig):
            raise InputError("--gradients is for the masked LM of BERT's encoder, not for a model "
                             f"of the type {encoder.config.model_type}; leave the flag out.")
        learner = training.Learner(encoder, [objectives.MaskedLM(encoder.config)])
        account = opened.load(learner)
        if any(name.startswith("masked_lm/") for name in account.missing):
            raise InputError(f"--gradients: {account.source} has no masked LM head; leave the flag "
                             "out, or name a pre-trained checkpoint.")
    if job.pattern_network and len(rows) < 2:
        raise InputError("--pattern_network needs texts to learn from and other texts to be tested "
                         f"on, but {job.input_file} gives one text; give more text.")
    return fine, learner


def compare(encoder, other, survey: Survey, rows: list[dict], texts: int, vocabulary) -> dict:
    """Prints how a fine-tuned model's maps differ, and returns the figures."""
    tuned, cosines = Survey(vocabulary, 0, 0), []
    pairs = zip(analysis.read(encoder, rows, ("attention",)),
                analysis.read(other, rows, ("attention",)))
    for plain, fine in TimeLeft("texts compared", texts).over(pairs):
        cosines.append(analysis.cosine(plain.attention, fine.attention))
        tuned.add(fine)
    similarity = np.mean(cosines, 0)
    print_classes({"pre-trained": survey, "fine-tuned": tuned})
    print("\ncosine of a head's maps before and after fine-tuning\n   layer      mean     least")
    for layer, values in enumerate(similarity, 1):
        print(f"{layer:>8}{values.mean():>10.3f}{values.min():>10.3f}")
    return {"cosine": similarity.tolist(),
            "fine_tuned_classes": patterns.shares(np.stack(tuned.classes)).tolist()}


def measure_gradients(learner, rows: list[dict], vocabulary, seed: int) -> dict:
    """Prints and returns the gradient's mean magnitude by layer, to [SEP] and others."""
    rng = np.random.default_rng(seed)
    sums, count = np.zeros((2, 2, len(learner.encoder.layers_))), np.zeros(2)
    for row in TimeLeft("texts with gradients", len(rows)).over(rows):
        batch = analysis.mask_tokens(row, vocabulary, _SHARE_MASKED, rng)
        weights, gradients = analysis.attention_gradients(
            learner.encoder, learner.objectives[0], batch)
        sep = row["input_ids"][0] == vocabulary.sep_id
        # The share of tokens that see each one: means are over these.
        share = np.tri(len(sep)).mean(0) if learner.encoder.config.is_causal else 1
        for kind, columns in enumerate((sep, ~sep)):
            for part, values in enumerate((np.abs(gradients), weights)):
                sums[part, kind] += (values / share)[..., columns].mean((1, 2, 3)).sum(-1)
            count[kind] += columns.sum()
    means = sums / count[:, None]                           # [2, 2, L]
    print("\nmagnitude of the loss's derivative by a weight, and the weight, means over tokens\n"
          "   layer  dL/da to [SEP]  dL/da to others  a to [SEP]  a to others")
    for layer in range(means.shape[-1]):
        (sep, other), (a_sep, a_other) = means[..., layer]
        print(f"{layer + 1:>8}{sep:>16.2e}{other:>17.2e}{a_sep:>12.4f}{a_other:>13.4f}")
    return {"gradient_to_sep": means[0, 0].tolist(), "gradient_to_others": means[0, 1].tolist()}


def learn_patterns(survey: Survey, seed: int) -> dict:
    """Trains the network on 70% of the texts and synthetic maps; prints and returns its scores."""
    pictures = np.stack(survey.pictures)                    # [texts, L, N, S, S]
    classes = np.stack(survey.classes)
    learned = max(int(0.7 * len(pictures)), 1)
    made, labels = patterns.synthesize(100, np.random.default_rng(seed))
    side = pictures.shape[-1]
    network = patterns.PatternNetwork(seed).fit(
        np.concatenate([pictures[:learned].reshape(-1, side, side), made]),
        np.concatenate([classes[:learned].ravel(), labels]))
    other, other_labels = patterns.synthesize(40, np.random.default_rng(seed + 1))
    predicted = network.predict(pictures[learned:].reshape(-1, side, side))
    truth = classes[learned:].ravel()
    scores = {"texts_f1": patterns.macro_f1(truth, predicted),
              "texts_accuracy": float((predicted == truth).mean()),
              "synthetic_f1": patterns.macro_f1(other_labels, network.predict(other))}
    print(f"\nthe network that sees only the pictures: macro F1 {scores['texts_f1']:.2f}, accuracy "
          f"{scores['texts_accuracy']:.1%} on {len(truth):,} maps of other texts; macro F1 "
          f"{scores['synthetic_f1']:.2f} on synthetic maps")
    return scores


def main(model: ModelFlags, job: AttentionFlags) -> None:
    check_input(job.input_file, "input_file")
    opened = open_encoder(model)
    if job.maps != "encoder" and not isinstance(opened.config, T5Config):
        raise InputError(f"--maps={job.maps}: {model.init_checkpoint} has no decoder; name a T5, "
                         "or leave the flag out.")
    encoder, tokenizer = opened.network(), opened.tokenizer
    fine = learner = None
    if job.maps == "encoder":
        rows = read_features(job, tokenizer, model.max_seq_length)
        fine, learner = open_others(job, opened, encoder, rows)
        readings = analysis.read(encoder, padded(rows, model.batch_size), ("attention",))
    else:
        rows = read_pairs(job, tokenizer, model.max_seq_length)
        readings = analysis.read_decoder(encoder, padded(rows, model.batch_size), job.maps)
    survey = Survey(tokenizer.vocabulary, job.num_maps, _COMPARED_TEXTS, job.maps,
                    encoder.config.is_causal)
    for reading in TimeLeft("texts", len(rows)).over(readings):
        survey.add(reading, job.pattern_network)
    print_statistics(survey)
    figures = {"texts": len(rows), "uniform_entropy": survey.statistics.uniform_entropy,
               **{name: value.tolist() for name, value in survey.statistics.result().items()}}
    if survey.classes:
        figures["classes"] = patterns.shares(np.stack(survey.classes)).tolist()
    if fine:
        batched = list(padded(rows, model.batch_size))
        figures |= compare(encoder, fine, survey, batched, len(rows), tokenizer.vocabulary)
    elif survey.classes:
        print_classes({"all heads": survey})
    if learner:
        figures |= measure_gradients(learner, rows[:_GRADIENT_TEXTS], tokenizer.vocabulary,
                                     job.random_seed)
    if job.pattern_network:
        figures |= learn_patterns(survey, job.random_seed)
    _write(model.output_dir, name_of(model), survey, figures, tokenizer)


def _write(folder, title, survey, figures, tokenizer):
    from bert_tf.analysis import pictures
    from bert_tf.analysis.page import readable, write_page

    def path(name):
        return os.path.join(folder, name)

    statistics, titled = survey.statistics.result(), titles(tokenizer.vocabulary)
    write_json(path("statistics.json"), figures)
    pictures.draw_statistics(path("statistics.png"), title, statistics,
                             survey.statistics.uniform_entropy, titled)
    first = survey.readings[0]
    shown = readable(first.input_ids[:16], tokenizer)
    pictures.draw_heads(path("heads.png"), f"{title}: {shown} ...", first.attention)
    if len(survey.distances) > 2:
        pictures.draw_plane(path("plane.png"), title, analysis.scale(survey.distances),
                            statistics, titled)
    write_page(path("attention.html"), f"Attention of {title}", survey.readings, tokenizer)
    arrays = {}
    for number, reading in enumerate(survey.readings):
        arrays |= {f"text{number}/input_ids": reading.input_ids,
                   f"text{number}/segment_ids": reading.segment_ids,
                   f"text{number}/attention": reading.attention}
        if reading.from_ids is not None:
            arrays[f"text{number}/from_ids"] = reading.from_ids
    with replace_aside(path("maps.npz")) as aside:
        np.savez_compressed(aside, **arrays)
    print(f"\nin {folder}:", flush=True)
    for name, content in _WRITTEN.items():
        if exists(path(name)):
            print(f"  {name:<16}{content}, {file_size(path(name)) / 1e6:.1f} MB")
    print("open attention.html in a browser", flush=True)
