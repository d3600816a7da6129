"""The quickstart's last part: its model learns a task from few labels, and answers.

Which library does a sentence of documentation describe? The model, and the same network from random
weights, learn it from the same few sentences of the training text, drawn by three seeds. They are
scored on sentences of the held-out documents, equally many of each library. Sentences that name one
of the libraries are left out, so a model must recognise the library by the content.
"""

import json
import os
import random
import re
import statistics
from collections.abc import Iterator
from typing import NamedTuple

import bert_tf
from bert_tf import training
from bert_tf.files import make_folder, make_folders, open_file, read_json, write_aside
from bert_tf.finetuning.model import ModelFlags
from bert_tf.kept import LOG, logged
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from data_prep import extract_text
from run_scripts import finetune

# The libraries with the most documentation, and names in a sentence that may give them away.
_NAMES = {extract_text.STANDARD_LIBRARY: "c?python", "scipy": "scipy",
          "matplotlib": "matplotlib|mpl|pyplot", "tensorflow": "tensorflow|tf"}
LIBRARIES = tuple(_NAMES)
_GIVEN_AWAY = re.compile(rf"(?<![a-z])({'|'.join(_NAMES.values())})(?![a-z])", re.I)
_FEWEST_WORDS, _LENGTH = 12, 64
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


def documents(library: str) -> Iterator[list[str]]:
    """Yields the sentences of each document of a library that a model may be asked about;
    InputError if the library is not installed."""
    for _, sentences in extract_text.documentation(
            extract_text.source_files([library]), lambda name: None):
        if chosen := [sentence for sentence in sentences
                      if len(sentence.split()) >= _FEWEST_WORDS
                      and not _GIVEN_AWAY.search(sentence)]:
            yield chosen


def gather(held_out: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Returns two dicts of sentences by library: of the training documents, and of the documents in
    the file of held-out text, equally many for each library."""
    with open_file(held_out) as file:
        lines = {line.strip() for line in file}
    splits: tuple[dict, dict] = {name: [] for name in LIBRARIES}, {name: [] for name in LIBRARIES}
    for library in LIBRARIES:
        for sentences in documents(library):
            splits[any(one in lines for one in sentences)][library] += sentences
    fewest = min(map(len, splits[1].values()))
    for library, sentences in splits[1].items():
        splits[1][library] = random.Random(0).sample(sentences, fewest)
    return splits


def fine_tune(data_dir: str, output_dir: str, vocab_file: str, seed: int, **model: str) -> float:
    """Returns the accuracy of a network after fine-tuning, which is done once. `data_dir` has
    train.jsonl and dev.jsonl; `model` are flags of `ModelFlags` that say where training begins."""
    finetune.main(
        TaskFlags(data_dir=data_dir, train_file="train.jsonl", dev_file="dev.jsonl",
                  text_a_column="sentence", label_column="library", labels=list(LIBRARIES)),
        ModelFlags(do_train=True, do_eval=True, vocab_file=vocab_file, max_seq_length=_LENGTH,
                   num_workers=1, records_dir=data_dir, **model),
        FineTuneSettings(output_dir=output_dir, random_seed=seed, learning_rate=_RATE,
                         train_batch_size=16, num_train_steps=_STEPS, eval_batch_size=100))
    results = read_json(os.path.join(output_dir, training.trials.RESULTS))
    return results["metrics"]["dev/accuracy"]["mean"]


def compare(folder: str, vocab: str, beginnings: dict[str, dict[str, str]],
            held_out: str) -> Answers | None:
    """Fine-tunes the networks, prints their accuracies and some answers, and returns them; None if
    the file of held-out text has too few sentences of a library. Finished runs are not repeated.
    `beginnings` are flags of `ModelFlags` that say where training begins, by the name of the
    network; the first network answers. Data and models go to `folder`."""
    train, test = gather(held_out)
    sentences = sum(map(len, test.values()))
    if sentences < len(LIBRARIES) * LABELS:
        print("this part is skipped: the held-out text has too few sentences of "
              f"{', '.join(LIBRARIES)}")
        return None
    print(f"each model learns from {LABELS} sentences of each library, then classifies {sentences} "
          "of held-out documents;\nthe reports of the training are in "
          f"{os.path.join(folder, LOG)}")
    accuracies: dict[str, list[float]] = {name: [] for name in beginnings}
    make_folders(folder)
    for seed in SEEDS:
        data = os.path.join(folder, f"data-{seed}")
        make_folder(data, "output_dir")
        drawn = {library: random.Random(seed).sample(texts, LABELS)
                 for library, texts in train.items()}
        for split, by_library in (("dev", test), ("train", drawn)):
            with write_aside(os.path.join(data, f"{split}.jsonl")) as file:
                file.writelines(json.dumps({"sentence": text, "library": library}) + "\n"
                                for library, texts in by_library.items() for text in texts)
        before = f"  seed {seed}:"
        for name, flags in beginnings.items():
            print(f"{before} {name}", end="", flush=True)
            with logged(folder):
                accuracies[name].append(fine_tune(data, _output(folder, name, seed), vocab, seed,
                                                  **flags))
            print(f" {accuracies[name][-1]:.1%}", end="", flush=True)
            before = ","
        print()
    print("  mean:   " + ", ".join(f"{name} {statistics.fmean(values):.1%}"
                                   for name, values in accuracies.items())
          + f"; by chance {1 / len(LIBRARIES):.0%}")
    model = _output(folder, next(iter(beginnings)), SEEDS[0])
    answers = Answers(accuracies, sentences, ask(model, test), model)
    _print_answers(answers)
    return answers


def _output(folder, name, seed):
    return os.path.join(folder, f"{name.replace(' ', '-')}-{seed}")


def ask(model: str, sentences: dict[str, list[str]]) -> list[Answer]:
    """Returns a model's answers to some of the sentences by library, which a seed draws."""
    drawn = random.Random(SEEDS[0]).sample(
        [(text, library) for library, texts in sentences.items() for text in texts], _SHOWN)
    answers = bert_tf.Predictor(model)([text for text, _ in drawn])
    return [Answer(*one, answer["label"], max(answer["probabilities"].values()))
            for one, answer in zip(drawn, answers)]


def _print_answers(answers):
    print(f"\n{_SHOWN} held-out sentences, drawn by a seed before the answers were known; the "
          "model of seed 1 says")
    for one in answers.examples:
        verdict = ", right" if one.label == one.library else f", wrong: {one.library}"
        print(f"  {one.sentence}\n      {one.label} ({one.probability:.0%}){verdict}")
    print("\nask it yourself, in Python:\n" + "\n".join(
        f"    {line}" for line in snippet(answers)), flush=True)


def snippet(answers: Answers) -> list[str]:
    """Returns the lines of Python that ask the model about a sentence."""
    return ["import bert_tf", f"predictor = bert_tf.Predictor({answers.folder!r})",
            f"predictor({answers.examples[0].sentence!r})"]
