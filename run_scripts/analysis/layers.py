"""Measures what each layer's vectors encode about tagged words.

    bert-analyze layers --init_checkpoint=uncased_L-12_H-768_A-12 --input_file=eng.train \\
        --eval_input_file=eng.testa --output_dir=layers

The words come from a file like CoNLL-2003's. Measures the contextuality of vectors (Ethayarajh,
arXiv:1909.00512), the similarity of layers (linear CKA), the tags that a linear probe of each layer
predicts, and the heads that attend from a word to its chunk's last word. Writes layers.json and
layers.png.
"""

import dataclasses
import os
from collections.abc import Mapping

import numpy as np

from bert_tf import analysis, flags, metrics
from bert_tf.analysis import contextuality, tags
from bert_tf.analysis.tags import LinkHeads
from bert_tf.errors import InputError, counted
from bert_tf.files import check_input, unpacked_name, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks import conllu
from bert_tf.tasks.rows import Omissions, read_sentences
from bert_tf.tasks.task import Split
from bert_tf.training.reporting import TimeLeft
from run_scripts.analysis.model import ModelFlags, name_of, open_encoder

_SAMPLE = 2000      # words for cosines and CKA
_CHUNKS = 4         # types of chunks to report


@dataclasses.dataclass
class LayersFlags:
    """The tagged words."""

    input_file: str = option(REQUIRED, "Words to learn from: one word per line, its tags in "
                             "further columns, a blank line after each sentence.")
    eval_input_file: str = option(REQUIRED, "Words to measure on.")
    tags: list[str] = option(
        ["pos=1", "chunk=2", "ner=3"], "Kinds of tags: the name and the number of the column, "
        "from 0.")
    chunk_tag: str = option("chunk", "Name of the chunk tags; empty if there are none.")
    sentences: int = option(1000, "Number of sentences to learn from.", least=1)
    eval_sentences: int = option(500, "Number of sentences to measure on.", least=1)

    __post_init__ = flags.check

    def columns(self) -> dict[str, int]:
        """Returns the columns by name."""
        try:
            columns = {name: int(column) for name, column in (tag.split("=") for tag in self.tags)}
        except ValueError:
            columns = {}
        if min(columns.values(), default=0) < 1:
            raise InputError("--tags: write name=column, such as pos=1,chunk=2; column 0 holds the "
                             "words.")
        if self.chunk_tag and self.chunk_tag not in columns:
            raise InputError(f"--chunk_tag: {self.chunk_tag!r} is not in --tags; name one of "
                             "--tags.")
        return columns


@dataclasses.dataclass
class Sentences:
    """Tagged sentences: their words; {name: each one's tags}; for each layer, each one's word
    vectors [n, H], taken at first sub-words; its maps [L, N, w, w] between its words; the tokens of
    its words, without special ones, and where each begins."""

    words: list[list[str]]
    tags: dict[str, list[list[str]]]
    layers: list[list[np.ndarray]]
    attention: list[np.ndarray]
    pieces: list[tuple[np.ndarray, np.ndarray]]


def _read_column(path, name, column):
    layout, omissions = Split((), (0,), column, format="words", header=False), Omissions(True)
    read = read_sentences
    if unpacked_name(path).endswith(conllu.ENDING):
        layout = dataclasses.replace(layout, texts=("form",), format="conllu")
        read = conllu.read_sentences
    sentences = [(words, tags) for _, words, tags, _ in read(path, layout, omissions)]
    if omissions.malformed:
        raise InputError(f"{path}: {counted(omissions.malformed, 'line')} with too few columns for "
                         f"--tags={name}={column}, or not as many as the first line; correct the "
                         "file, or give other --tags.")
    return sentences


def read(path: str, columns: Mapping[str, int | str], count: int, encoder, tokenizer, most: int,
         attention: bool) -> Sentences:
    """Reads sentences that fit and passes them through the network; prints how many do not."""
    named = {name: _read_column(path, name, column) for name, column in columns.items()}
    sentences = Sentences([], {name: [] for name in columns}, [], [], [])
    layout = tokenizer.vocabulary.layout
    room, rows, number = layout.room(most, False), [], 0
    for number, (words, _) in enumerate(next(iter(named.values()))):
        ids, lengths = tokenizer.encode_words(words)
        if len(ids) > room or not lengths.all():
            continue
        rows.append(analysis.pack([(ids.tolist(), [])], tokenizer))
        sentences.words.append(words)
        sentences.pieces.append((ids, np.cumsum(lengths) - lengths))
        for name, tagged in sentences.tags.items():
            tagged.append(named[name][number][1])
        if len(rows) == count:
            break
    if not rows:
        raise InputError(f"{path} holds no sentence of at most {room} tokens; give another file, "
                         "or a larger --max_seq_length.")
    if (left_out := number + 1 - len(rows)):
        print(f"left out: {left_out:,} of {counted(number + 1, 'sentence')} of {path}, with more "
              f"than {room} tokens, or a word without one; a larger --max_seq_length takes longer "
              "ones", flush=True)
    parts = ("hidden", "attention") if attention else ("hidden",)
    readings = TimeLeft(f"sentences of {path}", len(rows)).over(analysis.read(encoder, rows, parts))
    for reading, (ids, starts) in zip(readings, sentences.pieces):
        sentences.layers.append(reading.hidden[:, layout.before + starts])
        if attention:
            tokens = np.arange(len(reading.input_ids))      # special ones count as words here
            firsts = [*tokens[:layout.before], *layout.before + starts,
                      *tokens[layout.before + len(ids):]]
            inner = slice(layout.before, layout.before + len(starts))
            sentences.attention.append(analysis.word_attention(
                reading.attention, np.split(tokens, firsts[1:]))[..., inner, inner])
    sentences.layers = [list(layer) for layer in zip(*sentences.layers)]
    return sentences


def _are_entities(labels):
    return all(tag == "O" or metrics.is_entity_tag(tag) for tags in labels for tag in tags)


def probe(train: Sentences, held_out: Sentences) -> dict[str, dict]:
    """Prints and returns the scores of each layer's probe, by tag."""
    probes = {}
    for name, labels in held_out.tags.items():
        metric = "entity_f1" if _are_entities(labels) else "tag_accuracy"

        def score(predicted, labels=labels, metric=metric):
            return metrics.compute([metric], labels, predicted)[metric]

        predicted = tags.probe_layers(train.layers, train.tags[name], held_out.layers)
        base = tags.most_frequent(train.words, train.tags[name], held_out.words)
        probes[name] = {"metric": metric, "layers": [score(layer) for layer in predicted],
                        "most_frequent": score(base)}
    metric_names = ", ".join(f"{name}: {row['metric']}" for name, row in probes.items())
    print(f"\nlinear probes, {metric_names}"
          + "\n   layer" + "".join(f"{name:>10}" for name in probes))
    for layer, scores in enumerate(zip(*(row["layers"] for row in probes.values()))):
        print(f"{layer:>8}" + "".join(f"{score:>10.1%}" for score in scores))
    print("    word" + "".join(f"{row['most_frequent']:>10.1%}" for row in probes.values())
          + "   (the most frequent tag of each word)")
    return probes


def show_links(links: LinkHeads, what: str, count: int) -> dict[str, dict]:
    """Prints and returns the best head and the best distance of the `count` most frequent kinds of
    links, under the heading `what`."""
    print(f"\n{what:<12}{'words':>8}{'best head':>22}{'right':>8}{'best distance':>16}{'right':>8}")
    figures = {}
    for kind, total in links.totals.most_common(count):
        scores = links.scores(kind)
        way, layer, head = np.unravel_index(scores.argmax(), scores.shape)
        offset, share = links.best_offset(kind)
        figures[kind] = {"words": total, "scores": scores.tolist(), "best_offset": offset,
                         "offset_right": share}
        where = f"layer {layer + 1} head {head + 1} {('from', 'to')[way]}"
        print(f"{kind:<12}{total:>8,}{where:>22}{scores.max():>8.1%}{offset:>+16}{share:>8.1%}")
    return figures


def describe(sentences: Sentences) -> dict[str, np.ndarray]:
    """Prints and returns the contextuality of each layer."""
    words = [word.lower() for sentence in sentences.words for word in sentence]
    if len(words) < 2:
        raise InputError("--eval_input_file holds one word only, which has no other to be compared "
                         "with; give more sentences.")
    rng = np.random.default_rng(0)
    sample = rng.choice(len(words), min(_SAMPLE, len(words)), replace=False)
    figures = contextuality.describe_layers(sentences.layers, words, sample)
    titles = {"anisotropy": "random words", "self_similarity": "one word",
              "intra_sentence": "one sentence", "first_component": "1st component"}
    if "self_similarity" not in figures:
        del titles["self_similarity"]
        print("\nno word of --eval_input_file occurs twice, so that the figures of one word in "
              "several places are left out; more --eval_sentences give them")
    print(f"\nmean cosines on {len(words):,} words; of one word and one sentence, less that of "
          "random words\n   layer" + "".join(f"{title:>15}" for title in titles.values())
          + "  CKA to the next")
    for layer in range(len(sentences.layers)):
        after = ""
        if layer + 1 < len(sentences.layers):
            after = f"{figures['cka'][layer, layer + 1]:>17.3f}"
        print(f"{layer:>8}" + "".join(f"{figures[name][layer]:>15.3f}" for name in titles) + after)
    return figures


def draw(path: str, title: str, figures: dict, probes: dict[str, dict]) -> None:
    """Draws cosines, the similarity of layers, and probes."""
    from bert_tf.analysis.pictures import picture
    layers = range(len(figures["anisotropy"]))
    with picture(path, 1, 3, (4.6, 3.8)) as (figure, axes):
        figure.suptitle(title, parse_math=False)
        for name, label in (("anisotropy", "random words"),
                            ("self_similarity", "one word, less random"),
                            ("intra_sentence", "one sentence, less random")):
            if name in figures:
                axes[0, 0].plot(layers, figures[name], "o-", label=label)
        axes[0, 0].set(title="mean cosine", xlabel="layer", xticks=layers,
                       ylim=(min(0, axes[0, 0].get_ylim()[0]), 1.05))
        image = axes[0, 1].imshow(figures["cka"], cmap="viridis", vmin=0, vmax=1, origin="lower")
        axes[0, 1].set(title="similarity of layers (linear CKA)", xlabel="layer", ylabel="layer",
                       xticks=layers, yticks=layers)
        figure.colorbar(image, ax=axes[0, 1], shrink=0.8)
        for number, (name, row) in enumerate(probes.items()):
            axes[0, 2].plot(layers, row["layers"], "o-", color=f"C{number}",
                            label=f"{name} ({row['metric']})")
            axes[0, 2].axhline(row["most_frequent"], color=f"C{number}", linestyle=":")
        axes[0, 2].set(title="linear probes (dots: most frequent tag)", xlabel="layer",
                       xticks=layers, ylim=(0, 1))
        for axis in axes[0, [0, 2]]:
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)


def main(model: ModelFlags, job: LayersFlags) -> None:
    for flag in ("input_file", "eval_input_file"):
        check_input(getattr(job, flag), flag)
    columns = job.columns()
    opened = open_encoder(model)
    encoder, tokenizer = opened.network(), opened.tokenizer
    train, held_out = (
        read(path, columns, count, encoder, tokenizer, model.max_seq_length, attention)
        for path, count, attention in ((job.input_file, job.sentences, False),
                                       (job.eval_input_file, job.eval_sentences,
                                        bool(job.chunk_tag))))
    if job.chunk_tag and not _are_entities(held_out.tags[job.chunk_tag]):
        raise InputError(f"--chunk_tag: the tags {job.chunk_tag} of {job.eval_input_file} must be "
                         "like B-NP, I-NP and O; name other tags, or leave the flag empty.")
    figures = describe(held_out)
    probes = probe(train, held_out)
    chunks = {}
    if job.chunk_tag:
        heads = tags.ChunkHeads()
        for attention, labels in zip(held_out.attention, held_out.tags[job.chunk_tag]):
            heads.add(attention, labels)
        print("\nheads that look at the last word of the chunk", end="")
        chunks = show_links(heads, "chunk", _CHUNKS)
    write_json(os.path.join(model.output_dir, "layers.json"), {
        **{name: value.tolist() for name, value in figures.items()}, "probes": probes,
        "chunks": chunks})
    path = os.path.join(model.output_dir, "layers.png")
    draw(path, name_of(model), figures, probes)
    print(f"\npicture: {path}", flush=True)
