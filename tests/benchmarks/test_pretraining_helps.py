"""The release check that pre-training helps: its sentences, its rule, and what it refuses."""

import json
import os
import re
import string

import pytest

from benchmarks import pretraining_helps as check
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.pretraining import MaskedLM
from bert_tf.training.learners.learner import Learner
from bert_tf.training.run import save_model
from run_scripts import library_task
from tests.training import tiny

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase,
          *(f"##{letter}" for letter in string.ascii_lowercase)]


def word(number):
    """A word of letters for a number."""
    return "".join("bcdfghjklm"[int(digit)] for digit in str(number))


@pytest.fixture(name="packages")
def fixture_packages(tmp_path, monkeypatch):
    """Libraries of 14 modules, each of eight sentences and some that may not be taken."""
    def source_files(packages):
        (library,) = packages
        folder = tmp_path / "packages" / library
        folder.mkdir(parents=True, exist_ok=True)
        for module in map(word, range(14)):
            name = library[:2] + module
            sentences = [f"This is what the {word(i)} of module {name} is for when it is there."
                         for i in range(8)]
            sentences[1:1] = [
                f"It is short in {name}.",
                f"This is the {module} of tf.data in {name} and for it when that is there.",
                f"The {module} of a Python in {name} is that for which the other one was made."]
            (folder / f"{module}.py").write_text(f'"""{" ".join(sentences)}"""')
        return [(f"{library}/{path.name}", path) for path in sorted(folder.iterdir())]
    monkeypatch.setattr(library_task.extract_text, "source_files", source_files)
    monkeypatch.setattr(check, "_DOCUMENTS", 12)
    monkeypatch.setattr(check, "_SENTENCES", {"train": 7, "dev": 20})


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    """`CheckFlags` on a quickstart of a few weights, which were never trained."""
    folder = tmp_path / "quickstart"
    (folder / "model").mkdir(parents=True)
    (folder / "quickstart.json").write_text('{"input_file": [], "random_seed": 12345}')
    (folder / "vocab.txt").write_text("\n".join(TOKENS))
    config = tiny.config(vocab_size=len(TOKENS), max_position_embeddings=64,
                         num_hidden_layers=1)
    config.to_json_file(folder / "bert_config.json")
    learner = Learner(BertEncoder(config), [MaskedLM(config)])
    learner.build(None)
    save_model(folder / "model", learner)
    return check.CheckFlags(quickstart_dir=str(folder), output_dir=str(tmp_path / "out"),
                            num_trials=3)


@pytest.fixture(name="runs")
def fixture_runs(monkeypatch):
    """Fine-tuning that trains nothing: dict of (beginning, rate) -> accuracies by seed; its
    folders."""
    accuracies = {("model", 5e-4): [.5, .51, .52], ("", 2e-4): [.3, .3, .3],
                  ("", 5e-4): [.36, .38, .4], ("", 1e-3): [.35, .36, .37]}
    folders = []

    def fake(task_flags, model_flags, settings):
        start = "model" if model_flags.init_checkpoint else ""
        assert bool(start) != bool(model_flags.bert_config_file)
        seed = settings.random_seed
        assert os.path.basename(task_flags.data_dir) == str(seed)
        assert settings.output_dir not in folders[-11:]
        folders.append(settings.output_dir)
        os.makedirs(settings.output_dir, exist_ok=True)
        accuracy = accuracies[start, settings.learning_rate][seed - 1]
        with open(os.path.join(settings.output_dir, "results.json"), "w", encoding="utf-8") as file:
            json.dump({"metrics": {"dev/accuracy": {"mean": accuracy}}}, file)

    monkeypatch.setattr(library_task.run_classifier, "main", fake)
    return accuracies, folders


@pytest.mark.parametrize("pretrained, random, gain, least", [
    ([.5, .5], [.4, .4], 10, 5),                    # the margin
    ([.5, .7], [.4, .4], 20, 127.06),               # s of 10 and 30 is 14.1, s / sqrt(2) is 10
    ([.5, .7], [.4, .6], 10, 5),                    # both vary, the difference does not
    ([.3, .6, .6], [.5, .5, .5], 0, 43.03),
    ([.3, .3], [.5, .5], -20, 5),
])
def test_the_rule(pretrained, random, gain, least):
    assert check.judge(pretrained, random, 5.0) == pytest.approx((gain, least), abs=0.01)


def results(job):
    with open(os.path.join(job.output_dir, "results.json"), encoding="utf-8") as file:
        return json.load(file)


def test_it_passes_where_pretraining_helps(job, packages, runs, capsys):
    check.main(job)
    found, said = results(job), capsys.readouterr().out
    assert found["passed"] and found["gain"] == pytest.approx(51 - 38)      # the best rate
    assert found["accuracies"]["random"] == {
        "0.0002": [.3, .3, .3], "0.0005": [.36, .38, .4], "0.001": [.35, .36, .37]}
    assert re.search(r"\n2 +51\.0% +30\.0% +38\.0% +36\.0%\n", said)
    assert re.search(r"mean +51\.0 ± 1\.0% +30\.0 ± 0\.0% +38\.0 ± 2\.0% +36\.0 ± 1\.0%\n", said)
    assert "pre-training helps by +13.0 points; at least 5.0 are asked for" in said


@pytest.mark.parametrize("changes, flags", [
    ({("model", 5e-4): [.40, .42, .44]}, {}),       # by 4 points
    ({("model", 5e-4): [.25, .25, .25]}, {}),       # it guesses
    ({("model", 5e-4): [.25, .5, .75]}, {}),        # by 12, but that may be chance
    ({("", 1e-3): [.51, .52, .53]}, {}),            # at another rate
    ({}, {"margin": 14.0}),
])
def test_it_fails_where_it_does_not(job, packages, runs, changes, flags):
    runs[0].update(changes)
    for name, value in flags.items():
        setattr(job, name, value)
    with pytest.raises(InputError, match="pre-training does not help as it must"):
        check.main(job)
    assert not results(job)["passed"]


def test_trials_of_another_model_are_not_taken_for_its_own(job, packages, runs):
    check.main(job)
    check.main(job)
    with open(job.made("model/model.keras"), "ab") as file:
        file.write(b"trained anew")
    check.main(job)
    first, second, third = (runs[1][start:start + 12] for start in (0, 12, 24))
    assert len(set(first)) == 12 and second == first
    assert not set(third[:3]) & set(first) and third[3:] == first[3:]   # random ones are the same


def test_weights_that_were_never_trained_fail(eagerly, job, packages, monkeypatch):
    monkeypatch.setattr(check, "_STEPS", 1)
    monkeypatch.setattr(check, "RATES", {"pre-trained": (1e-3,), "random": (1e-3,)})
    job.num_trials = 2
    with pytest.raises(InputError, match="pre-training does not help as it must"):
        check.main(job)
    for rates in results(job)["accuracies"].values():
        (accuracies,) = rates.values()
        assert len(accuracies) == 2 and all(0 <= accuracy < 1 for accuracy in accuracies)


def test_sentences_are_balanced_and_share_no_document(packages):
    documents, dealt = check.gather(), []
    for seed in range(20):
        splits = check.deal(documents, seed)
        modules = {}
        for split, count in (("train", 7), ("dev", 20)):
            libraries, sentences = ([example[name] for example in splits[split]]
                                    for name in ("library", "sentence"))
            assert libraries == [name for name in library_task.LIBRARIES for _ in range(count)]
            assert len(set(sentences)) == len(sentences)
            found = [re.search(r"module (\w+) is for", sentence)[1] for sentence in sentences]
            assert [module[:2] for module in found] == [name[:2] for name in libraries]
            assert max(map(found.count, found)) == 4
            modules[split] = set(found)
        assert not modules["train"] & modules["dev"]
        assert splits == check.deal(documents, seed)
        dealt.append(frozenset(modules["train"]))
    assert len(set(dealt)) > 10


def test_a_sentence_of_two_libraries_has_one_label(packages, monkeypatch):
    source_files = library_task.extract_text.source_files
    monkeypatch.setattr(library_task.extract_text, "source_files", lambda packages: [
        *source_files(packages), *source_files(["stdlib"])])
    monkeypatch.setattr(check, "_DOCUMENTS", 14)
    sentences = [sentence for texts in check.gather().values() for text in texts
                 for sentence in text]
    assert len(set(sentences)) == len(sentences) == 4 * 14 * 4


def test_too_little_documentation_is_named(packages, monkeypatch):
    monkeypatch.setattr(check, "_DOCUMENTS", 8)
    with pytest.raises(InputError, match="of stdlib that is installed has 32 .* needs 35"):
        check.gather()
    monkeypatch.setattr(check, "_DOCUMENTS", 9)
    assert all(len(text) == 9 for text in check.gather().values())


@pytest.mark.parametrize("library", library_task.LIBRARIES)
def test_names_give_a_sentence_away(library):
    name = "Python" if library == "stdlib" else library.capitalize()
    assert library_task._GIVEN_AWAY.search(f"In {name}_x it is so.")
    assert not library_task._GIVEN_AWAY.search("The pythonic netflow is a simple one.")


@pytest.mark.parametrize("changes, name, message", [
    ({"num_trials": 1}, None, "--num_trials is 1"),
    ({"margin": -1.0}, None, "--margin is -1.0"),
    ({"margin": float("nan")}, None, "--margin is nan"),
    ({}, "model/model.keras", "there is no model/model.keras in .* run bert-quickstart"),
    ({}, "quickstart.json", "there is no quickstart.json"),
])
def test_refusals(job, changes, name, message):
    for flag, value in changes.items():
        setattr(job, flag, value)
    if name:
        os.remove(job.made(name))
    with pytest.raises(InputError, match=message):
        check.main(job)
    assert not os.path.exists(job.output_dir)


def test_a_quickstart_on_own_text_is_refused(job):
    with open(job.made("quickstart.json"), "w", encoding="utf-8") as file:
        json.dump({"input_file": [["mine.txt", 5]], "random_seed": 1}, file)
    with pytest.raises(InputError, match="own text"):
        check.main(job)
