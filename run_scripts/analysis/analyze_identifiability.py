"""Measures what attention maps and hidden vectors determine (Brunner et al., arXiv:1908.04211).

    bert-analyze-identifiability --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --input_file=books.txt --output_dir=identifiability

The part of a map in the left null space of the head's values has no effect; the rest is effective
attention. The command compares both by the length of the text, counts the tokens that are still
identified in each layer, and attributes hidden tokens to input tokens by gradients. It writes
identifiability.json and identifiability.png.
"""

import dataclasses
import os
from collections.abc import Sequence

import numpy as np

from bert_tf import analysis, flags
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.flags import REQUIRED, option
from run_scripts.analysis.model import ModelFlags, batches, check_file, name_of, open_model

_LINES = 20_000


@dataclasses.dataclass
class IdentifiabilityFlags:
    """The text and how much of it."""

    input_file: str = option(REQUIRED, "The text: a sentence a line, a blank line after each "
                             "document, plain or .gz.")
    lengths: list[str] = option(["16", "32", "48", "64", "96", "128"], "Lengths of texts, in "
                                "tokens, at which raw and effective attention are compared; those "
                                "above --max_seq_length are left out.")
    texts_per_length: int = option(4, "How many texts of each length.")
    identification_texts: int = option(60, "Texts of --max_seq_length tokens whose tokens are "
                                       "identified; the probe learns from the first 70%.")
    attribution_texts: int = option(2, "Texts of 24 tokens whose hidden tokens are attributed.")
    projections: int = option(32, "Random vectors that estimate the norms of Jacobians; 0: exact, "
                              "at the cost of as many as the network is wide.")


def compare_lengths(encoder: object, tokenizer: object, documents: Sequence, lengths: Sequence[int],
                    texts: int) -> dict[int, dict[str, np.ndarray]]:
    """Prints and returns raw beside effective attention at each length."""
    found = {}
    print(f"\n{'tokens':>8}{'null space':>12}{'correlation':>13}"
          + "".join(f"{name + ' ' + kind:>17}" for kind in ("[CLS]", "[SEP]", ". ,", "rest")
                    for name in ("raw", "eff.")))
    for length in lengths:
        features = analysis.windows(documents, length, texts, tokenizer)
        readings = analysis.read(encoder, batches(features, 4), ("attention", "values"))
        found[length] = means = analysis.compare_maps(readings, tokenizer.vocabulary)
        shown = "".join(f"{means[f'{name} {kind}'].mean():>17.3f}"
                        for kind in ("cls", "sep", "punctuation", "rest")
                        for name in ("raw", "effective"))
        print(f"{length:>8}{means['null_space'].mean():>12.1f}"
              f"{means['correlation'].mean():>13.3f}{shown}", flush=True)
    return found


def main(model: ModelFlags, job: IdentifiabilityFlags) -> None:
    """Runs the command."""
    check_file(job.input_file, "input_file")
    try:
        lengths = [int(length) for length in job.lengths if int(length) <= model.max_seq_length]
    except ValueError as error:
        raise InputError(f"--lengths: {error}; give numbers such as 16,32,64.") from None
    if not lengths:
        raise InputError("--lengths: none is at most --max_seq_length.")
    encoder, tokenizer = open_model(model)
    documents = analysis.encode_documents(job.input_file, tokenizer, _LINES)
    by_length = compare_lengths(encoder, tokenizer, documents, lengths, job.texts_per_length)

    features = analysis.windows(documents, model.max_seq_length, job.identification_texts,
                                tokenizer)
    readings = list(analysis.read(encoder, batches(features, model.batch_size), ("hidden",)))
    identification = analysis.identify(readings)
    print(f"\ntokens identified among those of their text, of {identification.tokens['cosine']:,} "
          f"(linear probe: of {identification.tokens['linear']:,} in texts it did not learn from)")
    print("   layer" + "".join(f"{name:>10}" for name in identification.shares))
    for layer, shares in enumerate(zip(*identification.shares.values())):
        print(f"{layer:>8}" + "".join(f"{share:>10.1%}" for share in shares))

    features = analysis.windows(documents, 24, job.attribution_texts, tokenizer)
    contributions = [analysis.token_attribution(encoder, row, projections=job.projections or None)
                     for row in batches(features, 1)]
    attribution = analysis.summarize_attribution(contributions)
    print("\n   layer  own contribution  own is the largest")
    for layer, (own, largest) in enumerate(zip(attribution["own"], attribution["own_largest"]), 1):
        print(f"{layer:>8}{own:>18.1%}{largest:>20.1%}")

    _write(model.output_dir, name_of(model), encoder.config.head_size, by_length, identification,
           attribution)


def _write(folder, title, head_size, by_length, identification, attribution):
    from bert_tf.analysis.pictures import draw_identifiability
    write_json(os.path.join(folder, "identifiability.json"), {
        "by_length": {str(n): {name: value.tolist() for name, value in means.items()}
                      for n, means in by_length.items()},
        "identified": {name: shares.tolist() for name, shares in identification.shares.items()},
        "identified_of": identification.tokens,
        "attribution": {name: value.tolist() for name, value in attribution.items()}})
    path = os.path.join(folder, "identifiability.png")
    draw_identifiability(path, title, head_size, by_length, identification.shares, attribution)
    print(f"\npicture: {path}", flush=True)


def run() -> None:
    """The console entry point."""
    flags.run(main, ModelFlags, IdentifiabilityFlags)


if __name__ == "__main__":
    run()
