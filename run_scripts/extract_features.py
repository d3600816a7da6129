"""Writes the vectors of texts: one vector per token, or one per text.

Each line of --input_file is a text, or two with " ||| " between them:

    bert-extract-features --init_checkpoint=uncased_L-12_H-768_A-12 --input_file=lines.txt \\
        --output_file=vectors.npz --layers=-1 --pooling=mean

The extension of --output_file chooses the format: .jsonl, which the original writes, .npz,
.safetensors, .tfrecord or .tfrecord.gz; docs/using_a_model.md describes them. The vectors
are in the order of the lines. The input may be of any size; memory does not grow with it.
"""

import dataclasses
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import lazy_loader
import numpy as np

from bert_tf import flags, networks, training
from bert_tf.checkpoints import sentence_modules
from bert_tf.data.batches.bucketing import sorted_batches
from bert_tf.data.text import vectors
from bert_tf.data.text.vectors import Texts, read_lines
from bert_tf.errors import InputError, counted, warn
from bert_tf.files import (
    check_file,
    check_input,
    file_size,
    make_folder,
    read_json,
)
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks import forms
from bert_tf.tokenization import Tokenizer
from bert_tf.tokenization.coverage import Coverage
from bert_tf.training.reporting import TimeLeft
from bert_tf.training.settings import POLICIES
from run_scripts import commands
from run_scripts.analysis.model import EncoderFlags

tf = lazy_loader.load("tensorflow")

_TEXTS = {"truncate": Texts, "windows": vectors.Windows}
_POOLINGS = ("none", "cls", "last", "mean", "max", "pooler")
# So many lines are sorted by length together, or as many as have vectors of so many bytes.
_PIECE_LINES = 4096
_PIECE_BYTES = 1 << 28


@dataclasses.dataclass(kw_only=True)
class ExtractFeaturesFlags(EncoderFlags):
    """The model, the texts, and which vectors of them."""

    input_file: str = option(REQUIRED, "The texts, one text or \"text ||| text\" per line, plain "
        "or .gz.")
    output_file: str = option(REQUIRED, "The file to write.")
    layers: list[str] = option(
        ["-1", "-2", "-3", "-4"], "Layers whose vectors are written: -1 is the last layer, with "
        "the norm behind all layers if the network has one, 0 the first, and embeddings the input "
        "of the first layer; of ALBERT and ELECTRA, before its projection to the layers' width.")
    pooling: str = option(
        "none", "none: one vector per token. All other values give one vector per text. cls: the "
        "vector of [CLS]. last: the vector of the last token, for left-to-right models. mean, max: "
        "over all tokens, including [CLS] and [SEP]. pooler: the trained layer on top of the last "
        "layer (--layers has no effect).", choices=_POOLINGS)
    long_text: str = option(
        "truncate", "How to read a text that is longer than --max_seq_length. truncate: cut its "
        "end. windows: vectors of all its tokens, each from the window with the most context on "
        "both sides of the token; for --pooling=none. Pairs are always cut.", choices=tuple(_TEXTS))
    normalize: bool = option(False, "Scale each vector to the length 1.")
    output_format: str | None = option(
        None, "Format of the output; default: by the extension of --output_file.",
        choices=vectors.FORMATS)
    dtype: str = option(
        "float32", "Data type of the computation; the output is float32.", choices=tuple(POLICIES))


def read_layers(names: list[str], count: int) -> list[int | str]:
    """Returns the layers that --layers names, int or "embeddings", of a model with `count`."""
    layers = []
    for name in map(str.strip, names):
        try:
            layer = name if name == "embeddings" else int(name)
        except ValueError:
            raise InputError(f"--layers: {name!r} must be a number, or embeddings.") from None
        if layer != "embeddings" and not -count <= layer < count:
            raise InputError(f"--layers: there is no layer {layer}; the model has {count}, from 0 "
                             f"or {-count} to {count - 1} or -1. The default names the last 4.")
        if layer in layers:
            raise InputError(f"--layers names {layer} twice.")
        layers.append(layer)
    if not layers:
        raise InputError("--layers names no layer; -1 is the last.")
    return layers


def compile_model(job: ExtractFeaturesFlags, model: Any, layers: list
                  ) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    """Compiles the function from the features that the network reads, int32 [B, S], to a list of
    the vectors of `layers`: float32 [B, S, H], or pooled [B, H]."""
    encoder = networks.build(model.config, dtype=job.dtype)    # weights need no float32
    account = model.load(encoder)
    if account.missing and layers == ["pooler"]:
        raise InputError(f"{account.source} has no {', '.join(account.missing)}; give another "
                         "--pooling.")
    print(account, flush=True)
    # The pooler gives one vector a text already.
    pooling = "none" if layers == ["pooler"] else job.pooling
    reads = getattr(encoder, "text_reads", encoder.reads)

    # TensorFlow leaves out layers on which nothing depends.
    @tf.function(autograph=False, input_signature=[
        tf.TensorSpec([None, None], tf.int32, name) for name in reads])
    def run_model(*inputs):
        features = dict(zip(reads, inputs))
        outputs = encoder(features)
        # The last one is the network's output, also where a norm is behind the layers.
        states = [*outputs["layer_outputs"][:-1], outputs["sequence_output"]]
        named = {"embeddings": outputs["embedding_output"], "pooler": outputs["pooled_output"],
                 **dict(enumerate(states)), **dict(enumerate(states, -len(states)))}
        return [networks.pool(named[layer], features["input_mask"], pooling, job.normalize)
                for layer in layers]

    concrete = run_model.get_concrete_function()
    return lambda features: [rows.numpy() for rows in concrete(
        *(tf.constant(features[name]) for name in reads))]


def warn_of_modules(job: ExtractFeaturesFlags, model: Any) -> None:
    """Warns of what sentence-transformers does with the model of a folder that it wrote, and the
    flags do not: another pooling or length, further layers, prompts before the texts."""
    if not (folders := sentence_modules.read(model.folder)):
        return
    pooling, sizes, tokenizer, texts = (
        read_json(os.path.join(model.folder, *name), {}) for name in (
            (folders.get("Pooling", ""), "config.json"), (sentence_modules.LENGTH,),
            ("tokenizer_config.json",), (sentence_modules.TEXTS,)))
    modes = [re.sub("pooling_mode_|_tokens?$", "", name) for name, value in pooling.items()
             if value is True and name.startswith("pooling_mode_")]
    modes = modes or np.atleast_1d(pooling.get("pooling_mode", job.pooling)).tolist()
    length = min(sizes.get("max_seq_length") or tokenizer.get("model_max_length")
                 or job.max_seq_length, model.config.max_position_embeddings)
    differs = []
    if modes not in ([job.pooling], [f"{job.pooling}token"]):
        differs.append(f"its pooling is {' and '.join(map(str, modes))}")
    if width := texts.get("truncate_dim"):
        differs.append(f"it takes the first {width} numbers of a vector")
    if "Normalize" in folders and not job.normalize:
        differs.append("it normalises vectors (--normalize)")
    differs += [f"its layer {path} is not computed here" for kind, path in folders.items()
                if kind not in sentence_modules.PLAIN]
    if sizes.get("do_lower_case") and not model.tokenizer.do_lower_case:
        differs.append("it lower-cases texts (--do_lower_case)")
    if length != job.max_seq_length:
        differs.append(f"it reads up to {length} tokens (--max_seq_length)")
    prompts = [f"for {name}, it begins a text with {prompt!r}"
               for name, prompt in (texts.get("prompts") or {}).items() if prompt]
    if prompts and pooling.get("include_prompt") is False:
        prompts.append("its pooling leaves these beginnings out")
    differs += prompts
    if differs:
        warn(f"{model.folder} is a model of sentence-transformers, which gives other vectors: "
             f"{'; '.join(differs)}.")


class Throughput:
    """Counts the lines and tokens done, and says every few seconds how long the rest takes."""

    def __init__(self, total):
        self._total, self._tokens, self._left = total, 0, TimeLeft("lines", total)
        self._start, self._cpu_start = time.monotonic(), time.process_time()

    def add(self, lines, tokens):
        """Adds to the counts. Within a piece, whose long lines come first, a share of the tokens
        counts as the same share of the lines."""
        self._tokens += tokens
        self._left(lines)

    def __str__(self):
        seconds = time.monotonic() - self._start
        cpu = time.process_time() - self._cpu_start
        return (f"{counted(self._total, 'line')}, {self._tokens:,} tokens in {seconds:,.1f} s and "
                f"{cpu:,.1f} CPU s: {self._total / seconds:,.1f} lines/s, "
                f"{self._total / cpu:,.1f} lines a CPU s, {self._tokens / seconds:,.0f} tokens/s")


def split(rows: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yields (start, end) of runs of texts of at most `most` rows, or of one text; `rows`: int
    [N]."""
    ends = np.cumsum(rows)
    start = 0
    while start < len(rows):
        end = np.searchsorted(ends, ends[start] - rows[start] + most, "right")
        end = max(int(end), start + 1)
        yield start, end
        start = end


@dataclasses.dataclass
class Extraction:
    """The vectors of a whole file, as `run_model` of `compile_model` gives them: `widths` are the
    numbers of each layer's vectors; for `num_heads` see `data.sorted_batches`. `cut` counts the
    lines that were too long, and `coverage` what the vocabulary knows of all lines."""

    job: ExtractFeaturesFlags
    num_heads: int
    widths: dict[int | str, int]
    run_model: Callable
    progress: Throughput
    cut: int = 0
    coverage: Coverage = dataclasses.field(default_factory=Coverage)

    def pieces(self, tokenizer: Tokenizer) -> Iterator[vectors.Piece]:
        """Yields a `Piece` after the other."""
        is_pooled = self.job.pooling != "none"
        most = _PIECE_BYTES // (4 * sum(self.widths.values()))
        first, tokenizer = 0, self.coverage.watch(tokenizer)
        for lines in read_lines(self.job.input_file, _PIECE_LINES):
            texts = _TEXTS[self.job.long_text](lines, tokenizer, self.job.max_seq_length)
            self.cut += texts.cut
            self.coverage.warn_once(("do_lower_case",))
            rows = np.ones_like(texts.lengths) if is_pooled else texts.lengths
            for start, end in split(rows, most):
                yield self._extract(texts, start, end, first + start)
            first += len(lines)

    def _extract(self, texts, start, end, first):
        is_pooled = self.job.pooling != "none"
        lengths = texts.lengths[start:end]
        ends = np.cumsum(lengths)
        rows = len(ends) if is_pooled else ends[-1]
        vectors_of = {layer: np.empty([rows, width], np.float32)
                      for layer, width in self.widths.items()}
        input_ids = np.empty(rows, np.int32)
        of = texts.rows(start, end)
        for batch in sorted_batches(of.lengths, self.job.batch_size, self.num_heads):
            features = texts.pack(of.rows[batch])
            places, taken = batch, slice(None)
            if not is_pooled:
                begins, lasts = of.begins[batch][:, None], of.ends[batch][:, None]
                column = np.arange(features["input_mask"].shape[1])
                taken = (column >= begins) & (column < lasts)
                places = ((ends - lengths)[of.owners[batch]] + of.places[batch])[:, None]
                places = (places + column - begins)[taken]
                input_ids[places] = features["input_ids"][taken]
            for layer, values in zip(vectors_of, self.run_model(features)):
                vectors_of[layer][places] = values[taken]
            tokens = int((of.ends - of.begins)[batch].sum())
            self.progress.add(len(ends) * tokens / ends[-1], tokens)
        if is_pooled:
            return vectors.Piece(first, vectors_of)
        return vectors.Piece(first, vectors_of, input_ids, lengths.astype(np.int32))


def main(job: ExtractFeaturesFlags) -> None:
    """Checks everything, then extracts."""
    form = job.output_format or vectors.format_of(job.output_file)
    check_file(job.output_file, "output_file")
    make_folder(os.path.dirname(job.output_file), "output_file")
    check_input(job.input_file, "input_file")
    forms.check_lines(job.input_file)
    total = sum(map(len, read_lines(job.input_file, _PIECE_LINES)))
    if not total:
        raise InputError(f"--input_file: {job.input_file} is empty; it must hold one text per "
                         "line.")
    model = job.open()
    config, tokenizer = model.config, model.tokenizer
    if job.long_text == "windows" and job.pooling != "none":
        raise InputError("--long_text=windows is for --pooling=none; leave out one of the two "
                         "flags.")
    if config.is_causal and job.pooling == "cls":
        raise InputError("--pooling=cls takes the first token, but in a left-to-right model the "
                         "first token sees no other; give --pooling=last.")
    if job.pooling == "pooler":
        if not config.has_pooler:
            raise InputError(f"--pooling=pooler: a model of the type {config.model_type} has no "
                             "trained layer on top of the last; give another --pooling.")
        layers = ["pooler"]
    else:
        layers = read_layers(job.layers, config.depth)
    asked = job
    if job.pooling == "cls" and tokenizer.vocabulary.layout.cls_last:
        job = dataclasses.replace(job, pooling="last")
    if job.pooling != "none":
        warn_of_modules(asked, model)
    run_model = compile_model(job, model, layers)
    progress = Throughput(total)
    widths = dict.fromkeys(layers, config.hidden_size)
    if "embeddings" in widths:
        widths["embeddings"] = config.embedding_output_width
    extraction = Extraction(job, training.counted_heads(config), widths, run_model, progress)
    folder, name = os.path.split(job.output_file)
    flags.keep(asked, folder, name + ".")
    vectors.write(job.output_file, form, extraction.pieces(tokenizer), tokenizer.vocabulary)
    if extraction.cut:
        print(f"{counted(extraction.cut, 'line')} cut to {job.max_seq_length} tokens")
    print(f"{progress}\n{job.output_file}: {file_size(job.output_file):,} bytes")
    extraction.coverage.tell(noun="text: ")


if __name__ == "__main__":
    commands.start(__name__)
