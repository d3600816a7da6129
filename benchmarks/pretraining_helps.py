"""Checks that pre-training helps: the quickstart's model must beat random weights.

The model and the same network from random weights are fine-tuned on few labelled sentences. The
sentences come from the text that the quickstart trains on; the label of each is the library that it
documents. Sentences that name one of the libraries are left out. Training and scoring use sentences
of different documents, and all labels are equally frequent. Each seed deals the documents out anew,
in the same way for both networks. Random weights may choose the best of three learning rates by the
score itself; the pre-trained ones have only one of these.

The check passes if accuracy is better by --margin points in the mean over the seeds, and by at
least what chance explains, t * s / sqrt(n), with s the sample standard deviation of the n seeds'
differences, and t the 97.5th percentile of Student's t with n - 1 degrees of freedom; else the exit
status is 1. Run the same command again to resume.

Example:
    bert-quickstart && bert-benchmark pretraining-helps
"""

import dataclasses
import hashlib
import itertools
import math
import os
import random
import statistics

from benchmarks import chance
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import make_folder, read_json, write_json
from bert_tf.flags import option
from run_scripts import library_task
from run_scripts.library_task import LIBRARIES

# Documents of each library, and the most sentences of one document.
_DOCUMENTS = 80
_SENTENCES = {"train": 10, "dev": 150}
_PER_DOCUMENT = 4
_STEPS = 150
RATES = {"pre-trained": (5e-4,), "random": (2e-4, 5e-4, 1e-3)}


@dataclasses.dataclass
class CheckFlags:
    """The quickstart's folder, and the required margin."""

    quickstart_dir: str = option("quickstart_output", "The --output_dir of a finished quickstart.")
    output_dir: str = option(
        "", "Folder for sentences, trials and results.json; default: pretraining_check in "
        "--quickstart_dir.")
    num_trials: int = option(5, "Seeds of each network, at least 2.", least=2)
    margin: float = option(5.0, "Points of accuracy by which pre-training must help.", least=0)

    def check(self):
        """Raises InputError for values that can't work, or if there is no such quickstart."""
        flags.check(self)
        for name in ("quickstart.json", "vocab.txt", "bert_config.json", "model/model.keras"):
            if not os.path.isfile(self.made(name)):
                raise InputError(f"--quickstart_dir: there is no {name} in "
                                 f"{self.quickstart_dir!r}; run bert-quickstart first, to its end.")
        if read_json(self.made("quickstart.json"))["input_file"]:
            raise InputError(f"--quickstart_dir: {self.quickstart_dir} is of your own text; the "
                             "check is for a quickstart on documentation, without --input_file.")

    def made(self, name):
        """The path of a file of the quickstart."""
        return os.path.join(self.quickstart_dir, name)


def gather():
    """Returns the documents of each library, lists of sentences that may be labelled."""
    found, seen = {}, set()
    # With the sentences that are left over of the last document of a split.
    needed = sum(_SENTENCES.values()) + len(_SENTENCES) * _PER_DOCUMENT
    for library in LIBRARIES:
        documents = ([sentence for sentence in sentences if sentence not in seen][:_PER_DOCUMENT]
                     for sentences in library_task.documents(library))
        found[library] = list(itertools.islice(filter(None, documents), _DOCUMENTS))
        sentences = list(itertools.chain.from_iterable(found[library]))
        if len(sentences) < needed:
            raise InputError(f"the documentation of {library} that is installed has "
                             f"{len(sentences)} sentences for the check, which needs {needed}; "
                             f"install all of {library}.")
        seen.update(sentences)
    return found


def deal(documents, seed):
    """Returns "train" and "dev" lists of {"sentence", "library"}; no document has examples in both.
    The seed decides."""
    splits = {split: [] for split in _SENTENCES}
    for library, texts in documents.items():
        shuffled = iter(random.Random(seed).sample(texts, len(texts)))
        for split, count in _SENTENCES.items():
            found = []
            while len(found) < count:
                found += next(shuffled)
            splits[split] += library_task.labelled(library, found[:count])
    return splits


def judge(pretrained, untrained, margin):
    """Returns the gain of pre-training in points, and the least that is required. Both lists
    have the accuracies of the same seeds in the same order."""
    gains = [100 * (one - other) for one, other in zip(pretrained, untrained, strict=True)]
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    return statistics.fmean(gains), max(margin, chance.interval(error, len(gains)))


def print_table(seeds, columns):
    """Prints the accuracies, seed by seed, and their means."""
    print("\naccuracy on sentences of other documents; by chance it would be "
          f"{1 / len(LIBRARIES):.1%}")
    print("seed " + "".join(f"{heading:>24}" for heading in columns))
    for row, seed in enumerate(seeds):
        print(f"{seed:<5}" + "".join(f"{column[row]:>24.1%}" for column in columns.values()))
    spreads = (f"{100 * statistics.fmean(column):.1f} ± {100 * statistics.stdev(column):.1f}%"
               for column in columns.values())
    print("mean " + "".join(f"{spread:>24}" for spread in spreads), flush=True)


def main(job):
    """Runs the trials, and prints the table and the verdict; InputError if pre-training does not
    help."""
    job.check()
    job.output_dir = job.output_dir or job.made("pretraining_check")
    make_folder(job.output_dir, "output_dir")
    seeds = range(1, job.num_trials + 1)
    documents = gather()
    for seed in seeds:
        library_task.write_examples(os.path.join(job.output_dir, "data", str(seed)),
                                    deal(documents, seed))
    model = job.made("model/model.keras")
    with open(model, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # Trials of a model that was trained anew since are not taken for its own.
    begins = {"pre-trained": (f"pretrained-{digest[:12]}", {"init_checkpoint": model}),
              "random": ("random", {"bert_config_file": job.made("bert_config.json")})}
    found = {name: {rate: [library_task.fine_tune(
        os.path.join(job.output_dir, "data", str(seed)),
        os.path.join(job.output_dir, folder, f"rate{rate:g}-seed{seed}"), job.made("vocab.txt"),
        seed, rate, _STEPS, **flag) for seed in seeds] for rate in RATES[name]}
             for name, (folder, flag) in begins.items()}

    print_table(seeds, {f"{name}, rate {rate:g}": accuracies for name, rates in found.items()
                        for rate, accuracies in rates.items()})
    best = {name: max(rates.values(), key=statistics.fmean) for name, rates in found.items()}
    gain, least = judge(best["pre-trained"], best["random"], job.margin)
    passed = gain >= least
    write_json(os.path.join(job.output_dir, "results.json"), {
        "passed": passed, "gain": gain, "least": least, "margin": job.margin,
        "model_sha256": digest, "seeds": list(seeds), "accuracies": found})
    verdict = f"by {gain:+.1f} points; at least {least:.1f} are asked for"
    if not passed:
        raise InputError(f"pre-training does not help as it must: it changes the accuracy "
                         f"{verdict}. Look for what is wrong with the pre-training.")
    print(f"pre-training helps {verdict}", flush=True)


def run():
    flags.run(main, CheckFlags)


if __name__ == "__main__":
    run()
