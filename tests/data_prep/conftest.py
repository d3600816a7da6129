"""A small vocabulary, random text, and the job on them and its records."""

import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.data.records import tfrecord
from bert_tf.flags.options import fields_of
from data_prep import create_pretraining_data
from tests.programs import share_out

# The folder of the slow tokenizer.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "tokenization"))

LETTERS = "abcdefghijklmnopqrstuvwxyzABé中文"
# Twice the empty token, as in the released Chinese vocabulary.
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "", "[SEP]", "[MASK]", "", *".,!?'", *LETTERS,
          *(f"##{letter}" for letter in LETTERS), "the", "house", "##ing", "tree", "walk", "cafe"]
WORDS = ("the house tree walk walking cafe café a I treehouse housing Bright xylophone 中文 日本 "
         "it's ☃ [MASK] [SEP] b c d").split()


# The job, which kills itself and its workers as soon as one piece is finished.
_DIES = """
import os, signal
from bert_tf.data.records import jobs
from run_scripts.commands import start
jobs._Report.add = lambda *_: os.killpg(0, signal.SIGKILL)
start("data_prep.create_pretraining_data")
"""


def start_dying(**flags):
    """The process of a job of records that ends by kill -9 after its first piece."""
    return subprocess.Popen([sys.executable, "-c", _DIES, *(
        f"--{name}={value}" for name, value in flags.items())], start_new_session=True,
                            stdout=subprocess.DEVNULL)


def columns(*paths):
    """The features of all records of some files."""
    examples = [tfrecord.parse_example(message)
                for path in paths for message in tfrecord.read_records(str(path))]
    return {name: np.array([example[name] for example in examples]) for name in examples[0]}


@pytest.fixture(scope="session")
def random_text():
    """function(seed, documents, sentences, words): text with up to so many of each."""
    def make(seed, documents=8, sentences=9, words=25):
        rng = random.Random(seed)

        def sentence():
            return " ".join(rng.choices(WORDS, k=rng.randint(1, words))) + rng.choice(".,!?")

        return "\n".join("".join(sentence() + "\n" for _ in range(rng.randint(1, sentences)))
                         for _ in range(documents))
    return make


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in TOKENS), encoding="utf-8")
    return path


@pytest.fixture
def prepare(tmp_path, vocab_file):
    """function(text or list of texts, **flags): runs the job on files of these; returns the `Job`.

    The texts (str or bytes) become text0.txt, text1.txt ...; None takes the files that are there.
    The records go to out/r.tfrecord. Flags that only the recipe has are passed on, too.
    """
    def run(texts, runner=None, **flags):
        if isinstance(texts, (str, bytes)):
            texts = [texts]
        for index, text in enumerate(texts or []):
            (tmp_path / f"text{index}.txt").write_bytes(
                text if isinstance(text, bytes) else text.encode())
        flags = {
            "input_file": [str(tmp_path / f"text{i}.txt") for i in range(len(texts or [None]))],
            "output_file": [str(tmp_path / "out" / "r.tfrecord")], "vocab_file": str(vocab_file),
            "num_workers": 1, **flags}
        recipe = recipes.find(flags.get("recipe", "bert"))
        job, *further = share_out(flags, create_pretraining_data.PretrainingDataFlags,
                                  *create_pretraining_data.flags_of(recipe))
        create_pretraining_data.main(job, runner, *further)
        for part in further:
            vars(job).update({field.name: getattr(part, field.name) for field in fields_of(part)})
        return job
    return run
