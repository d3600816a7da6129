"""Measures what attention maps and hidden vectors identify.

    bert-analyze identifiability --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --input_file=books.txt --output_dir=identifiability

Measures follow Brunner et al. (arXiv:1908.04211). The part of a map in the left null space of the
head's values has no effect; the rest is effective attention. Compares raw and effective attention
by text length, for all maps and (columns "sum 1") for maps whose rows sum to 1. Counts the tokens
that can still be identified in each layer. Attributes hidden vectors to input tokens by gradients.
Writes identifiability.json and identifiability.png.
"""

import dataclasses
import os
from typing import Any

import numpy as np

from bert_tf import analysis, flags
from bert_tf.analysis.statistics import KINDS, titles
from bert_tf.errors import InputError, naming
from bert_tf.files import check_input, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization.vocabulary import Layout
from bert_tf.training.reporting import TimeLeft
from run_scripts.analysis.model import ModelFlags, batches, name_of, open_encoder

_LINES = 20_000
_ATTRIBUTED = 24    # tokens of a text whose hidden tokens are attributed


@dataclasses.dataclass
class IdentifiabilityFlags:
    """The text and how much of it."""

    input_file: str = option(REQUIRED, "The text: one sentence per line, a blank line after each "
                             "document, plain or .gz.")
    lengths: list[str] = option(["16", "32", "48", "64", "96", "128"], "Lengths of texts, in "
                                "tokens, at which raw and effective attention are compared; "
                                "lengths above --max_seq_length are left out.", items=int, least=8)
    texts_per_length: int = option(4, "Number of texts of each length.", least=1)
    identification_texts: int = option(
        60, "Number of texts of --max_seq_length tokens whose tokens are identified, at least 3; "
        "probes learn from the first 70% and are tested on the last 15%.", least=3)
    mlp_epochs: int = option(
        10, "Training epochs of the probe with a hidden layer; 0: only the linear probe.", least=0)
    attribution_texts: int = option(
        2, "Number of texts, of 24 tokens each, on which attribution is measured.", least=1)
    projections: int = option(
        32, "Number of random vectors that estimate the norms of Jacobians; 0: exact norms, which "
        "need as many vectors as the network is wide.", least=0)

    __post_init__ = flags.check

    def read_lengths(self, most: int) -> list[int]:
        """Returns the lengths up to `most`, at least one."""
        lengths = [length for length in map(int, self.lengths) if length <= most]
        if not lengths:
            raise InputError(f"--lengths: all are above --max_seq_length={most}; give a smaller "
                             "length.")
        return lengths


def compare_lengths(encoder: Any, vocabulary: object, texts: dict[int, dict]
                    ) -> dict[int, dict[str, np.ndarray]]:
    """Prints and returns raw and effective attention of the texts of each length."""
    by_length = {}
    kinds = [kind for kind in KINDS if kind != "cls" or vocabulary.cls_id is not None]
    titled = titles(vocabulary)
    print(f"\n{'tokens':>8}{'null space':>12}{'(sum 1)':>9}{'correlation':>13}{'(sum 1)':>9}"
          + "".join(f"{name + ' ' + titled[kind]:>17}" for kind in kinds
                    for name in ("raw", "eff.")))
    for length, features in texts.items():
        progress = TimeLeft(f"texts of {length} tokens", len(features["input_ids"]))
        readings = analysis.read(encoder, batches(features, 4), ("attention", "values"))
        by_length[length] = means = analysis.compare_maps(progress.over(readings), vocabulary,
                                                          encoder.config.is_causal)
        shown = "".join(f"{means[f'{name} {kind}'].mean():>17.3f}"
                        for kind in kinds for name in ("raw", "effective"))
        print(f"{length:>8}{means['null_space'].mean():>12.1f}"
              f"{means['sums_to_one null_space'].mean():>9.1f}{means['correlation'].mean():>13.3f}"
              f"{means['sums_to_one correlation'].mean():>9.3f}{shown}", flush=True)
    return by_length


def show_identification(identified: "analysis.Identification") -> None:
    """Prints the shares of tokens that are identified."""
    print(f"\ntokens identified among those of their text, of {identified.tokens['cosine']:,} "
          f"(probes: of {identified.tokens['linear']:,} in texts that they did not learn from)")
    print("   layer" + "".join(f"{name:>10}" for name in identified.shares))
    for layer, shares in enumerate(zip(*identified.shares.values())):
        print(f"{layer:>8}" + "".join(f"{share:>10.1%}" for share in shares))
    print("\nthe same, by the linear probe of one layer (row) in the vectors of another (column)\n"
          "   layer" + "".join(f"{layer:>8}" for layer in range(len(identified.across))))
    for layer, shares in enumerate(identified.across):
        print(f"{layer:>8}" + "".join(f"{share:>8.1%}" for share in shares))


def attribute(encoder: object, features: dict, projections: int, layout: Layout
              ) -> dict[str, np.ndarray]:
    """Prints and returns the contributions of input tokens to hidden tokens."""
    progress = TimeLeft("hidden tokens attributed", features["input_ids"].size)
    figures = analysis.summarize_attribution([
        analysis.token_attribution(encoder, row, projections=projections or None,
                                   progress=progress) for row in batches(features, 1)],
        layout=layout)
    print("\n   layer  own contribution  own is the largest")
    for layer, (own, largest) in enumerate(zip(figures["own"], figures["own_largest"]), 1):
        print(f"{layer:>8}{own:>18.1%}{largest:>20.1%}")
    return figures


def main(model: ModelFlags, job: IdentifiabilityFlags) -> None:
    check_input(job.input_file, "input_file")
    lengths = job.read_lengths(model.max_seq_length)
    opened = open_encoder(model)
    encoder, tokenizer = opened.network(), opened.tokenizer
    documents = analysis.encode_documents(job.input_file, tokenizer, _LINES)

    def cut(length, count):
        with naming(f"--input_file: {job.input_file}"):
            return analysis.windows(documents, length, count, tokenizer)

    texts = {length: cut(length, job.texts_per_length) for length in lengths}
    whole = cut(model.max_seq_length, job.identification_texts)
    short = cut(min(_ATTRIBUTED, model.max_seq_length), job.attribution_texts)
    if len(whole["input_ids"]) < 3:
        raise InputError(f"--input_file: {job.input_file} has fewer than 3 windows of "
                         f"--max_seq_length={model.max_seq_length} tokens in one document; give "
                         "more text, or a smaller --max_seq_length.")
    by_length = compare_lengths(encoder, tokenizer.vocabulary, texts)
    readings = list(analysis.read(encoder, batches(whole, model.batch_size), ("hidden",)))
    identification = analysis.identify(readings, job.mlp_epochs,
                                       TimeLeft("layers identified", len(readings[0].hidden)))
    show_identification(identification)
    attribution = attribute(encoder, short, job.projections, tokenizer.vocabulary.layout)
    from bert_tf.analysis.pictures import draw_identifiability
    write_json(os.path.join(model.output_dir, "identifiability.json"), {
        "by_length": {str(n): {name: value.tolist() for name, value in means.items()}
                      for n, means in by_length.items()},
        "identified": {name: shares.tolist() for name, shares in identification.shares.items()},
        "identified_of": identification.tokens,
        "identified_across": identification.across.tolist(),
        "attribution": {name: value.tolist() for name, value in attribution.items()}})
    path = os.path.join(model.output_dir, "identifiability.png")
    draw_identifiability(path, name_of(model), encoder.config.head_size, by_length, identification,
                         attribution, titles(tokenizer.vocabulary))
    print(f"\npicture: {path}", flush=True)
