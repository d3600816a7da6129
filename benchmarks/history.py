"""Compares systems at small size, from an LSTM with random weights to T5.

Each system is pre-trained on the same text for the same CPU seconds of steps, and fine-tuned on
three tasks: single sentences (the hypotheses of SNLI: does a premise that the model does not see
entail or contradict them?), pairs of sentences (SNLI), and the names in a text (CoNLL-2003, in
lower case except for ELMo and T5). ELMo's network gives features to LSTMs and is not trained
further; T5 writes labels and tags as text. The table also has published figures.

Run the same command again to resume.

Example:
    bert-benchmark history --input_file=text.txt --snli_dir=snli --conll2003_dir=conll2003 \\
        --output_dir=/tmp/history
"""

import csv
import functools
import itertools
import os
import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.history_systems import SYSTEMS, HistoryFlags, System
from benchmarks.programs import run_own_program
from bert_tf import config as configs
from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import make_folder, read_json, remove_folder, write_aside
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import Example, read_examples
from bert_tf.tokenization.base import open_tokenizer
from run_scripts.kept_results import KeptResults

TASKS = ("sentence", "pair", "names")
_SENTENCE_LABELS = ("contradiction", "entailment")
# Steps after which CPU time is taken: the difference leaves out the time of starting.
_MEASURED = (20, 60)
_TRAIN = {"sentence": "train_text.tsv", "pair": "train_text.tsv", "names": "eng.train"}
_MOST_WORDS = 40        # sentences with more are left out


# The material of the tasks

def read_split(job: HistoryFlags, name: str, split: str) -> Iterator[Example]:
    """The labelled examples of a named task, of the training file at most `max_examples`."""
    task = find_task(name)
    folder = getattr(job, f"{name}_dir")
    if not task.has_file(folder, split):
        raise InputError(f"--{name}_dir={folder} has no {task.splits[split].files[0]}; give the "
                         "folder of the official files.")
    examples = read_examples(task, split, task.path(folder, split))
    return itertools.islice(examples, job.max_examples if split == "train" else None)


def rows_of(job: HistoryFlags, task: str, split: str) -> Iterator[list[str]]:
    """The texts of each example of a task, and its label; of names the lines of a sentence."""
    found = find_task("conll2003" if task == "names" else "snli")
    for example in read_split(job, found.name, split):
        if task == "names":
            if len(example.texts) <= _MOST_WORDS:
                yield [f"{word} {found.labels[tag]}" for word, tag in zip(
                    example.texts, example.label)]
        elif task == "pair":
            yield [*example.texts, found.labels[example.label]]
        elif found.labels[example.label] in _SENTENCE_LABELS:
            yield [example.texts[1], found.labels[example.label]]


def write_tasks(job: HistoryFlags) -> None:
    """The files of all tasks, as the scripts read them; of texts also as inputs and targets."""
    for task in TASKS:
        make_folder(job.path(task), "output_dir")
        for split in ("train", "dev"):
            rows = list(rows_of(job, task, split))
            if task == "names":
                with write_aside(job.path(task, find_task("conll2003").splits[split].files[0])
                                 ) as file:
                    file.writelines("\n".join([*lines, "", ""]) for lines in rows)
                continue
            with write_aside(job.path(task, f"{split}.tsv")) as file:
                writer = csv.writer(file, delimiter="\t", lineterminator="\n")
                writer.writerow((*"ab"[:len(rows[0]) - 1], "label"))
                writer.writerows(rows)
            with write_aside(job.path(task, f"{split}_text.tsv")) as file:
                file.writelines(" ".join(f"{task} {letter}: {text}" for letter, text in zip(
                    "ab", texts)) + f"\t{label}\n" for *texts, label in rows)


# Training

def start(job: HistoryFlags, program: str, log: str, values: dict[str, Any]) -> float:
    """Runs a command once, with its output in a file; returns its CPU seconds."""
    make_folder(job.path("logs"), "output_dir")
    return run_own_program(program, {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in values.items()}, job.path("logs", f"{log}.txt"), 1)["cpu_seconds"]


def vocabulary(job: HistoryFlags, system: System) -> str:
    """The path of the vocabulary, which is learned once."""
    kind = system.vocabulary.get("sentencepiece_style") or system.vocabulary.get(
        "tokenizer", "wordpiece")
    path = job.path("vocabularies", kind, "spiece.model" if kind in ("xlnet", "t5")
                    else "vocab.txt")
    if not os.path.exists(path):
        start(job, "data_prep.build_vocab", f"vocabulary-{kind}", {
            "input_file": job.input_file, "output_file": path, "vocab_size": job.vocab_size,
            **system.vocabulary})
    return path


def prepare(job: HistoryFlags, name: str) -> tuple[str, str]:
    """Makes the vocabulary, the records and the configuration of a system, and returns the paths of
    the last two."""
    system = SYSTEMS[name]
    vocab = vocabulary(job, system)
    folder = job.path("pretrained", system.recipe)
    records, config = os.path.join(folder, "text.tfrecord"), os.path.join(folder, "config.json")
    make_folder(folder, "output_dir")
    start(job, "data_prep.create_pretraining_data", f"records-{system.recipe}", {
        "recipe": system.recipe, "input_file": job.input_file, "output_file": records,
        "vocab_file": vocab, "dupe_factor": 1, "num_workers": 1, **_lengths(job, system),
        **_rows(job, system), **system.records})
    kind, size = getattr(configs, system.config), open_tokenizer(vocab).vocabulary.size
    kind(**{"vocab_size": size, **system.sizes(job)}).to_json_file(config)
    return records, config


def _lengths(job, system):
    lengths = {"max_seq_length": job.max_seq_length}
    if system.recipe in ("bert", "xlnet"):
        lengths["max_predictions_per_seq"] = int(0.15 * job.max_seq_length) + 1
    return lengths


def _rows(job, system):
    """The rows of a batch, where records are made for them."""
    in_streams = system.recipe in ("elmo", "lm_lstm", "xlnet")
    return {"bsz_per_host": job.train_batch_size} if in_streams else {}


def pretrain(job: HistoryFlags, name: str, results: KeptResults) -> str:
    """Pre-trains a system for --cpu_seconds, if its model is missing; returns the model."""
    system = SYSTEMS[name]
    folder = job.path("pretrained", system.recipe)
    model = os.path.join(folder, "run", "model.keras")
    if os.path.exists(model):
        return model
    records, config = prepare(job, name)

    def train(steps, output_dir):
        return start(job, "run_pretraining", f"pretraining-{system.recipe}-{steps}", {
            "input_file": records, "bert_config_file": config, "do_train": True,
            "train_batch_size": job.train_batch_size, "output_dir": output_dir,
            "num_train_steps": steps, "num_warmup_steps": steps // 10, "iterations_per_loop": 20,
            "save_checkpoints_steps": 1000, "keep_checkpoint_max": 1,
            **_lengths(job, system), **system.pretraining})

    def measure(steps):
        output_dir = os.path.join(folder, f"measured-{steps}")
        # A run that was stopped would go on, and only the seconds of its rest would be measured.
        remove_folder(output_dir)
        return train(steps, output_dir)

    taken = [results.get("cpu_seconds", system.recipe, str(steps),
                         measure=functools.partial(measure, steps)) for steps in _MEASURED]
    a_step = (taken[1] - taken[0]) / (_MEASURED[1] - _MEASURED[0])
    if a_step <= 0:
        raise InputError(f"{job.path('results.json')}: CPU seconds of {_MEASURED} steps of {name} "
                         f"are {taken}; delete them there, remove the folders {folder}/measured-*, "
                         "and run the command again while the machine does less other work.")
    train(max(1, round(job.cpu_seconds / a_step)), os.path.join(folder, "run"))
    return model


def fine_tune(job: HistoryFlags, name: str, task: str, seed: int, results: KeptResults) -> float:
    """The score of a system in a task, in percent."""
    system = SYSTEMS[name]
    model = ({"init_checkpoint": pretrain(job, name, results)} if system.is_pretrained
             else {"bert_config_file": prepare(job, name)[1]})
    folder = job.path(task, f"{name.replace(' ', '_')}-seed{seed}")
    values = {
        **model, "vocab_file": vocabulary(job, system), "do_train": True, "do_eval": True,
        "max_seq_length": job.max_seq_length, "train_batch_size": 32, "eval_batch_size": 64,
        "random_seed": seed, "output_dir": folder, **system.tuning}
    log, data_dir = f"{task}-{os.path.basename(folder)}", job.path(task)
    if system.recipe == "t5":
        with open(job.path(task, _TRAIN[task]), encoding="utf-8") as file:
            examples = sum(line == "\n" or task != "names" for line in file)
        start(job, "finetune", log, {
            **values, "num_train_steps": max(1, int(job.num_train_epochs * examples / 32)),
            **({"tasks": "conll2003", "data_dir": data_dir} if task == "names" else {
                f"{split}_file": job.path(task, f"{split}_text.tsv")
                for split in ("train", "dev")})})
        found = read_json(os.path.join(folder, "metrics.json"))["metrics"]
        return found["conll2003/entity_f1" if task == "names" else "pairs/exact_match"]
    values |= {"num_train_epochs": job.num_train_epochs, "num_workers": 1, "data_dir": data_dir}
    if task == "names":
        start(job, "finetune", log, {**values, **system.tagger, "task": "conll2003"})
        return 100 * _metric(folder, "entity_f1")
    columns = ["a", "b"] if task == "pair" else ["a"]
    start(job, "finetune", log, {
        **values, **system.classifier, "train_file": "train.tsv", "dev_file": "dev.tsv",
        "label_column": "label", **{f"text_{c}_column": c for c in columns}})
    return 100 * _metric(folder, "accuracy")


def _metric(folder, name):
    return read_json(os.path.join(folder, "metrics.json"))["metrics"][f"dev/{name}"]


def print_table(table: dict[str, dict[str, list[float]]]) -> None:
    """Prints a line for each system: the means of its scores, and published ones."""
    print(f"\n{'':<16}" + "".join(f"{task:>10}" for task in TASKS) + "   published")
    for system, scores in table.items():
        print(f"{system:<16}" + "".join(
            f"{statistics.fmean(scores[task]):>10.1f}" for task in TASKS)
            + f"   {SYSTEMS[system].published}")
    print("accuracy of sentences and pairs, F1 of names; in percent", flush=True)


def main(job: HistoryFlags) -> None:
    """Makes the missing runs, and prints the table."""
    job.check()
    results = job.open_results()
    write_tasks(job)
    table: dict[str, dict[str, list[float]]] = {}
    for system in job.systems or SYSTEMS:
        found = table.setdefault(system, {task: [] for task in TASKS})
        for task in TASKS:
            for seed in range(1, job.num_trials + 1):
                score = results.get("scores", system, task, str(seed), measure=functools.partial(
                    fine_tune, job, system, task, seed, results))
                found[task].append(score)
                print(f"== {system}, {task}, seed {seed}: {score:.1f}", flush=True)
    print_table(table)


def run() -> None:
    flags.run(main, HistoryFlags)


if __name__ == "__main__":
    run()
