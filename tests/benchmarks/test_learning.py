"""The comparison with transformers, as far as it goes without transformers."""

import dataclasses
import gzip
import json
import math
import os
import random
import re

import numpy as np
import pytest

from benchmarks import learning
from bert_tf.data.records import tfrecord
from bert_tf.errors import InputError
from bert_tf.training import trainer
from bert_tf.training.settings import TrainSettings
from run_scripts import run_pretraining

WORDS = "the house tree walks in a wood".split()
STEPS = 6


@pytest.fixture
def job(tmp_path):
    """`LearningComparisonFlags` on random text, small enough to train on in a test."""
    rng = random.Random(1)
    document = "".join(" ".join(rng.choices(WORDS, k=9)) + "\n" for _ in range(6))
    (tmp_path / "text.txt").write_text(f"{document}\n" * 12)
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    return learning.LearningComparisonFlags(
        input_file=[str(tmp_path / "text.txt")], vocab_file=str(tmp_path / "vocab.txt"),
        output_dir=str(tmp_path / "out"), num_seeds=2, num_train_steps=STEPS, num_warmup_steps=2,
        train_batch_size=4, max_seq_length=32, max_predictions_per_seq=5, held_out_every=4)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_one_in_so_many_documents_is_held_out(tmp_path, pack):
    documents = [f"document {i}\nends here\n" for i in range(7)]
    # A blank line at the start, two after the fourth document, none at the end.
    text = "\n" + "\n".join(documents[:4]) + "\n \n" + "\n".join(documents[4:]).rstrip()
    (tmp_path / "text").write_bytes(pack(text.encode()))
    learning.split_documents([tmp_path / "text"], 3, tmp_path / "rest", tmp_path / "held")
    for name, indices in (("rest", [1, 2, 4, 5]), ("held", [0, 3, 6])):
        found = re.split(r"\n\s*\n", (tmp_path / name).read_text().strip())
        assert found == [documents[i].strip() for i in indices]


def test_the_peer_gets_the_batches_and_rates_that_ours_trains_on(job, monkeypatch):
    learning.make_folder(job.path("seed5"), "output_dir")
    learning.prepare(job)
    learning.dump_training(job, 5)
    batches, rates = [], []

    def train(trainer, iterator, count):
        assert count == 1
        batches.append(next(iterator))
        rates.append(float(trainer.optimizer.learning_rate.numpy()))
        trainer.optimizer.iterations.assign_add(1)
        trainer.step.assign_add(1)
        return dict.fromkeys(("loss", "learning_rate", "grad_norm"), 0.0)

    # run_pretraining sets TensorFlow's global seed too, on which the order must not depend.
    monkeypatch.setattr(trainer.Trainer, "train", train)
    values = {**learning.training_flags(job, 5), "iterations_per_loop": 1, "do_eval": False,
              "init_checkpoint": "",        # which the peer would write
              "deterministic": False}       # which would hold for all later tests
    run_pretraining.main(*(
        kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)
                if field.name in values})
        for kind in (run_pretraining.PretrainingFlags, TrainSettings)))

    dump = dict(np.load(job.path("seed5", "training.npz")))
    np.testing.assert_array_equal(dump.pop("learning_rates"), np.float32(rates))
    assert rates[0] == 0 and max(rates) > 0 and len(rates) == STEPS
    assert dump.keys() == batches[0].keys()
    for name, values in dump.items():
        np.testing.assert_array_equal(values, np.stack([batch[name] for batch in batches]))


def test_all_held_out_records_are_dumped_once(job):
    learning.make_folder(job.output_dir, "output_dir")
    learning.prepare(job)
    messages = tfrecord.read_records(job.path("held_out.tfrecord"))
    ids = [tfrecord.parse_example(message)["input_ids"] for message in messages]
    np.testing.assert_array_equal(np.load(job.path("held_out.npz"))["input_ids"], ids)


@pytest.fixture
def fakes(job, monkeypatch):
    """Programs that train nothing; returns a dict of their losses by seed, and a list of runs."""
    losses = {"bert_tf": {1: 7.0, 2: 7.2}, "transformers": {1: 7.0, 2: 7.1}}
    runs = []

    def fake(name):
        def measure(_, seed):
            runs.append((name, seed))
            return {**dict.fromkeys(learning.METRICS, 0.5),
                    learning.LOSS: losses[name][seed]}
        return measure

    monkeypatch.setattr(learning, "run_ours", fake("bert_tf"))
    monkeypatch.setattr(learning, "run_peer", fake("transformers"))
    monkeypatch.setattr(learning.LearningComparisonFlags, "check", lambda job: None)
    return losses, runs


def test_finished_runs_are_not_run_again(job, fakes, capsys):
    losses, runs = fakes
    missing = losses["transformers"].pop(2)
    with pytest.raises(KeyError):
        learning.main(job)
    losses["transformers"][2] = missing
    learning.main(job)
    learning.main(dataclasses.replace(      # the same files
        job, vocab_file=os.path.relpath(job.vocab_file),
        input_file=list(map(os.path.relpath, job.input_file))))
    assert runs == [("bert_tf", 1), ("transformers", 1), ("bert_tf", 2), ("transformers", 2),
                    ("transformers", 2)]
    said = capsys.readouterr().out
    assert "7.1000 ± 0.1414" in said and f"{math.exp(7.2):.4f}" in said
    with open(job.path("results.json"), encoding="utf-8") as file:
        assert json.load(file)["seeds"]["2"]["transformers"]["masked_lm/loss"] == 7.1
    with pytest.raises(InputError, match="other flags"):
        learning.main(dataclasses.replace(job, learning_rate=1.0))


@pytest.mark.parametrize("loss", [8.6, float("nan")])
def test_a_higher_loss_fails(job, fakes, loss):
    fakes[0]["bert_tf"].update({1: loss, 2: 8.5})
    with pytest.raises(InputError, match="learned less"):
        learning.main(job)


def test_what_chance_explains_is_allowed():
    difference, most = learning.judge(
        {"bert_tf": [1.0, 2.0, 3.0], "transformers": [1.0, 1.0, 1.0]})
    assert difference == pytest.approx(1.0)
    assert most == pytest.approx(4.3027 * (1 / 3) ** 0.5, rel=1e-4)     # Student's t


def test_bad_flags_are_refused(job):
    for flags, message in (({"num_seeds": 1}, "--num_seeds is 1"),
                           ({"peer_python": "/no/such/python"}, "--peer_python")):
        with pytest.raises(InputError, match=message):
            dataclasses.replace(job, **flags).check()
