"""A task for every machine: which library does a sentence of documentation describe?

The labels come with the text. Sentences that name one of the libraries are left out, so a model
must recognise the library by the content.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from bert_tf import training
from bert_tf.files import make_folder, read_json, write_aside
from bert_tf.finetuning.model import ModelFlags
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import FineTuneSettings
from data_prep import extract_text
from run_scripts import finetune

# The libraries with the most documentation, and names in a sentence that may give them away.
_NAMES = {extract_text.STANDARD_LIBRARY: "c?python", "scipy": "scipy",
          "matplotlib": "matplotlib|mpl|pyplot", "tensorflow": "tensorflow|tf"}
LIBRARIES = tuple(_NAMES)
_GIVEN_AWAY = re.compile(rf"(?<![a-z])({'|'.join(_NAMES.values())})(?![a-z])", re.I)
_FEWEST_WORDS = 12
_LENGTH = 64
_BATCH_SIZE, _EVAL_BATCH_SIZE = 16, 100
_METRIC = "dev/accuracy"


def documents(library: str) -> Iterator[list[str]]:
    """Yields the sentences of each document of a library that a model may be asked about.

    Raises:
        InputError: the library is not installed.
    """
    for _, sentences in extract_text.documentation(
            extract_text.source_files([library]), lambda name: None):
        if chosen := [sentence for sentence in sentences
                      if len(sentence.split()) >= _FEWEST_WORDS
                      and not _GIVEN_AWAY.search(sentence)]:
            yield chosen


def labelled(library: str, sentences: Iterable[str]) -> list[dict[str, str]]:
    """Returns the examples of sentences of one library."""
    return [{"sentence": sentence, "library": library} for sentence in sentences]


def write_examples(folder: str, splits: Mapping[str, list[dict[str, str]]]) -> None:
    """Writes the examples of each split, "train" and "dev", as JSON lines into a folder."""
    make_folder(folder, "output_dir")
    for split, examples in splits.items():
        with write_aside(os.path.join(folder, f"{split}.jsonl")) as file:
            file.writelines(json.dumps(example) + "\n" for example in examples)


def fine_tune(data_dir: str, output_dir: str, vocab_file: str, seed: int, rate: float, steps: int,
              **model: str) -> float:
    """Returns the accuracy of a network after fine-tuning, which is done once.

    Args:
        data_dir: folder of `write_examples`.
        model: flags of `ModelFlags` that say where training begins.
    """
    finetune.main(
        TaskFlags(data_dir=data_dir, train_file="train.jsonl", dev_file="dev.jsonl",
                  text_a_column="sentence", label_column="library", labels=list(LIBRARIES)),
        ModelFlags(do_train=True, do_eval=True, vocab_file=vocab_file, max_seq_length=_LENGTH,
                   num_workers=1, records_dir=data_dir, **model),
        FineTuneSettings(output_dir=output_dir, random_seed=seed, learning_rate=rate,
                         train_batch_size=_BATCH_SIZE, num_train_steps=steps,
                         eval_batch_size=_EVAL_BATCH_SIZE))
    return read_json(os.path.join(output_dir, training.trials.RESULTS))["metrics"][_METRIC]["mean"]
