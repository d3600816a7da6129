"""The quickstart's last part: its model learns a task from few labels, and answers.

The task is to find the library that a sentence of documentation describes. The model, and the same
network from random weights, learn it from the same few sentences of the training text, drawn by
three seeds. They are scored on sentences of the held-out documents, which pre-training has not
seen either. All libraries have equally many of these sentences.
"""

import contextlib
import os
import random
import statistics
from typing import NamedTuple

import bert_tf
from bert_tf.files import make_folders, open_file, open_log
from run_scripts import library_task
from run_scripts.library_task import LIBRARIES

LABELS = 25         # sentences of each library to learn from
SEEDS = (1, 2, 3)
_STEPS, _RATE = 200, 5e-4
_SHOWN = 8          # answers on the screen


class Answer(NamedTuple):
    """A held-out sentence, its library, and the model's answer."""

    sentence: str
    library: str
    label: str
    probability: float


class Answers(NamedTuple):
    """Accuracies of each seed, in the order of SEEDS, by the weights that training began with; the
    number of sentences for which they hold; and answers of the first seed's model, in `folder`."""

    accuracies: dict[str, list[float]]
    sentences: int
    examples: list[Answer]
    folder: str


def gather(held_out: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Returns two dicts of sentences by library: of the training documents, and of the held-out
    documents, equally many for each library.

    Args:
        held_out: the file with the held-out text.
    """
    with open_file(held_out) as file:
        lines = {line.strip() for line in file}
    splits: tuple[dict, dict] = {}, {}
    for library in LIBRARIES:
        for split in splits:
            split[library] = []
        for sentences in library_task.documents(library):
            splits[any(one in lines for one in sentences)][library] += sentences
    fewest = min(map(len, splits[1].values()))
    for library, sentences in splits[1].items():
        splits[1][library] = random.Random(0).sample(sentences, fewest)
    return splits


def compare(folder: str, vocab: str, beginnings: dict[str, dict[str, str]],
            held_out: str) -> Answers | None:
    """Fine-tunes the networks, prints their accuracies and some answers, and returns them; None if
    the held-out text has too few sentences of a library. Finished runs are not repeated.

    Args:
        folder: where data and models go.
        beginnings: flags of `ModelFlags` that say where training begins, by the name of the
            network; the first network answers.
        held_out: the file with the held-out text.
    """
    train, test = gather(held_out)
    sentences = sum(map(len, test.values()))
    if sentences < len(LIBRARIES) * LABELS:
        print("this part is skipped: the held-out text has too few sentences of "
              f"{', '.join(LIBRARIES)}")
        return None
    dev = [example for pair in test.items() for example in library_task.labelled(*pair)]
    print(f"each model learns from {LABELS} sentences of each library, then classifies {sentences} "
          "of held-out documents;\nthe reports of the training are in "
          f"{os.path.join(folder, 'log.txt')}")
    accuracies: dict[str, list[float]] = {name: [] for name in beginnings}
    make_folders(folder)
    for seed in SEEDS:
        data = os.path.join(folder, f"data-{seed}")
        library_task.write_examples(data, {"dev": dev, "train": [
            example for library, texts in train.items()
            for example in library_task.labelled(library,
                                                 random.Random(seed).sample(texts, LABELS))]})
        before = f"  seed {seed}:"
        for name, flags in beginnings.items():
            print(f"{before} {name}", end="", flush=True)
            with (open_log(os.path.join(folder, "log.txt")) as log,
                  contextlib.redirect_stdout(log)):
                accuracies[name].append(library_task.fine_tune(
                    data, _output(folder, name, seed), vocab, seed, _RATE, _STEPS, **flags))
            print(f" {accuracies[name][-1]:.1%}", end="", flush=True)
            before = ","
        print()
    print("  mean:   " + ", ".join(f"{name} {statistics.fmean(values):.1%}"
                                   for name, values in accuracies.items())
          + f"; by chance {1 / len(LIBRARIES):.0%}")
    model = _output(folder, next(iter(beginnings)), SEEDS[0])
    answers = Answers(accuracies, sentences, ask(model, dev), model)
    _print_answers(answers)
    return answers


def _output(folder, name, seed):
    return os.path.join(folder, f"{name.replace(' ', '-')}-{seed}")


def ask(model: str, examples: list[dict[str, str]]) -> list[Answer]:
    """Returns a model's answers to some of the examples, which a seed draws."""
    drawn = random.Random(SEEDS[0]).sample(examples, _SHOWN)
    answers = bert_tf.Predictor(model)([example["sentence"] for example in drawn])
    return [Answer(example["sentence"], example["library"], prediction["label"],
                   max(prediction["probabilities"].values()))
            for example, prediction in zip(drawn, answers)]


def _print_answers(answers):
    print(f"\n{_SHOWN} held-out sentences, drawn by a seed before the answers were known; the "
          "model of seed 1 says")
    for one in answers.examples:
        right = one.label == one.library
        print(f"  {one.sentence}\n      {one.label} ({one.probability:.0%})"
              + (", right" if right else f", wrong: {one.library}"))
    print("\nask it yourself, in Python:\n" + "\n".join(
        f"    {line}" for line in snippet(answers)), flush=True)


def snippet(answers: Answers) -> list[str]:
    """Returns the lines of Python that ask the model about a sentence."""
    return ["import bert_tf", f"predictor = bert_tf.Predictor({answers.folder!r})",
            f"predictor({answers.examples[0].sentence!r})"]
