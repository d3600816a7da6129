"""Pairs of texts with a user's labels, for two of ERNIE 2.0's tasks: records against the lines."""

import collections
import json

import numpy as np
import pytest

from bert_tf import recipes
from bert_tf.config import EncoderConfig
from bert_tf.data import open_records
from bert_tf.errors import InputError
from bert_tf.models.ernie.segments import find_labels
from bert_tf.tokenization import open_tokenizer
from data_prep import create_pretraining_data
from data_prep.create_pretraining_data import PretrainingDataFlags
from run_scripts.pretraining.flags import PretrainingFlags
from run_scripts.pretraining.records import (
    check_labels,
    choose_terms,
    keep_labels,
    open_eval_records,
)
from tests.data_prep.conftest import TOKENS, WORDS
from tests.data_prep.test_ernie_records import parsed

RELEVANCE = ("strong", "weak", "random")
MARKERS = ("because", "but", "however", "so")


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(0)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    rows = [[" ".join(rng.choice(WORDS, rng.integers(1, 20))) for _ in range(2)] for _ in range(60)]
    for name, labels in (("relevance", RELEVANCE), ("markers", MARKERS)):
        pairs = [(*row, labels[number % len(labels)]) for number, row in enumerate(rows)]
        (folder / f"{name}.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs))
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(dict(
            zip(("text_a", "text_b", "label"), pair), more=1)) for pair in pairs))
    return folder


def make(folder, name, file, task, **changes):
    create_pretraining_data.main(recipes.fill(PretrainingDataFlags, **{
        "recipe": "ernie2", "task": task, "input_file": [str(folder / file)],
        "output_file": [str(folder / name / "r.tfrecord")], "vocab_file": str(folder / "vocab.txt"),
        "max_seq_length": 24, "max_predictions_per_seq": 4, "num_workers": 1,
        "do_lower_case": True, **changes}))
    return ({path.name: path.read_bytes() for path in (folder / name).glob("*.tfrecord*")},
            json.loads((folder / name / "r.manifest.json").read_text()))


@pytest.mark.parametrize("task, name, labels", [
    ("ir_relevance", "relevance", RELEVANCE), ("discourse_relation", "markers", MARKERS)])
def test_records_are_the_lines(folder, task, name, labels):
    files, manifest = make(folder, task, f"{name}.tsv", task)
    assert manifest["options"]["labels"] == list(labels)
    assert manifest["recipe"]["segments"]["num_labels"] == len(labels)
    assert make(folder, f"{task}_json", f"{name}.jsonl", task)[0] == files
    found, tokenizer = parsed(files), open_tokenizer(str(folder / "vocab.txt"), do_lower_case=True)
    assert (found["task_ids"] == list(recipes.find("ernie2").tasks).index(task)).all()
    assert not found["masked_lm_weights"].any() and not found["token_label_weights"].any()
    wanted, left = collections.defaultdict(list), 0
    for line in (folder / f"{name}.tsv").read_text().splitlines():
        *texts, label = line.split("\t")
        wanted[labels.index(label)].append([tokenizer.encode(text) for text in texts])
    for ids, mask, segments, (label,) in zip(
            *(found[key] for key in ("input_ids", "input_mask", "segment_ids",
                                     "next_sentence_labels"))):
        sides = [ids[(mask == 1) & (segments == side)][side == 0:-1].tolist() for side in (0, 1)]
        mine = next(pair for pair in wanted[label] if all(any(
            whole[at:at + len(part)] == part for at in range(len(whole)))
            for whole, part in zip(pair, sides)))
        assert sides == mine or mask.all()      # cut to fit
        left += sides == mine
        wanted[label].remove(mine)
    assert not any(wanted.values()) and 0 < left < 60      # each once


def test_a_query_with_several_titles_needs_no_warning(folder, tmp_path, capsys):
    (tmp_path / "n.tsv").write_text("the house\ta tree\tstrong\nthe house\tthe\tweak\n")
    _, manifest = make(tmp_path, "queries", tmp_path / "n.tsv", "ir_relevance",
                       vocab_file=str(folder / "vocab.txt"))
    assert manifest["rates"]["repeated_lines"] == 0.25
    assert "are repeated" not in capsys.readouterr().out


def test_pieces_are_whole_lines(folder):
    whole = parsed(make(folder, "whole", "relevance.tsv", "ir_relevance")[0])
    files, manifest = make(folder, "pieces", "relevance.tsv", "ir_relevance", piece_bytes=900,
                           num_workers=2)
    found = parsed(files)
    assert len(manifest["shards"]) > 3
    assert sorted(found["next_sentence_labels"].ravel()) == sorted(
        whole["next_sentence_labels"].ravel())
    assert len(found["input_ids"]) == 60


def test_a_head_has_the_labels_of_its_records(folder):
    paths = []
    for task, file in (("ir_relevance", "relevance.tsv"), ("discourse_relation", "markers.tsv")):
        make(folder, f"head_{task}", file, task)
        paths.append(str(folder / f"head_{task}" / "r.tfrecord"))
    terms = choose_terms(recipes.find("ernie2"), [], open_records(paths, "input_file"))
    assert {term.task: term.options for term in terms} == {
        "ir_relevance": {"num_labels": 3}, "discourse_relation": {"num_labels": 4}}


def test_labels_have_an_order(folder, tmp_path):
    (tmp_path / "n.tsv").write_text("a\tb\t10\n\na\tb\t9\n")
    assert find_labels([str(tmp_path / "n.tsv")]) == ["9", "10"]
    backwards = parsed(make(folder, "order", "markers.tsv", "discourse_relation",
                            labels=list(MARKERS[::-1]))[0])["next_sentence_labels"]
    forwards = parsed(make(folder, "sorted", "markers.tsv", "discourse_relation")[0])[
        "next_sentence_labels"]
    assert np.array_equal(backwards, len(MARKERS) - 1 - forwards)


@pytest.mark.parametrize("line, changes, message", [
    ("a\tb", {}, r"line 1 \('a\\tb'\) is not a pair with a label; give text, tab"),
    ("a\t\tstrong", {}, "line 1 .* is not a pair with a label"),
    ('{"text_a": "a", "label": "weak"}', {}, "line 1 .* is not a pair with a label"),
    ('{"text_a": "a", "text_b": null, "label": "weak"}', {}, "line 1 .* is not a pair with"),
    ('{"text_a": "a", "text_b": "b", "label": null}', {"task": "discourse_relation"},
     "line 1 .* is not a pair with a label"),
    ("a\tb\tnone", {}, "has the label 'none', which is none of --labels=strong,weak,random"),
    ("a\tb\tstrong\n\x01\tb\tstrong", {}, "of 2 pairs, 1 have tokens in both texts"),
    ("a\tb\tx", {"task": "discourse_relation"}, "--labels=x: a task has two labels or more"),
    ("a b c", {"task": "capitalization", "labels": ["x", "y"]}, "no --labels with --task=capit")])
def test_lines_that_are_no_pairs_are_refused(folder, tmp_path, line, changes, message):
    (tmp_path / "bad.tsv").write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        make(folder, "bad", tmp_path / "bad.tsv", **{"task": "ir_relevance", **changes})


def test_the_report_knows_that_each_pair_is_one_record(folder, tmp_path, capsys):
    """Several files, the first without an end of its last line, in a recipe that repeats texts."""
    for name in ("first", "second"):
        (tmp_path / name).write_text("a\tb\tstrong\na b\ta\tweak")
    make(folder, "report", "", "ir_relevance",
         input_file=[str(tmp_path / name) for name in ("first", "second")], dupe_factor=3)
    said = capsys.readouterr().out
    assert "4 instances" in said
    assert "left out" not in said and "last document" not in said


def test_a_wrong_line_has_its_number_in_its_file(folder, tmp_path):
    """Also in a later piece, of the second of two files; a byte order mark is no text."""
    good = '\ufeff{"text_a": "a", "text_b": "b", "label": "weak"}\n' + "a\tb\tstrong\n" * 20
    (tmp_path / "good").write_text(good)
    (tmp_path / "bad").write_text(good + "a\tstrong\n")
    with pytest.raises(InputError, match=r"bad, line 22 \("):
        make(folder, "numbers", "", "ir_relevance", piece_bytes=60,
             input_file=[str(tmp_path / name) for name in ("good", "bad")])
    make(folder, "marked", "", "ir_relevance", input_file=[str(tmp_path / "good")])


def test_records_that_go_together_have_the_same_labels(folder):
    """The ids of labels that a file alone decides may be others than those of training."""
    for name, labels in (("mine", MARKERS), ("theirs", MARKERS[::-1])):
        make(folder, name, "markers.tsv", "discourse_relation", labels=list(labels))
    mine, theirs = (str(folder / name / "r.tfrecord") for name in ("mine", "theirs"))
    with pytest.raises(InputError, match="different labels"):
        open_records([mine, theirs], "input_file")
    records = open_records([mine], "input_file")
    job = PretrainingFlags(recipe="ernie2", input_file=[mine], eval_input_file=[theirs],
                           bert_config_file="x", max_seq_length=24,
                           max_predictions_per_seq=4)
    config = EncoderConfig(vocab_size=len(TOKENS), use_task_id=True, task_type_vocab_size=16)
    with pytest.raises(InputError, match="the labels of discourse_relation are so,however"):
        open_eval_records(job, records, config, recipes.find("ernie2"))
    job.eval_input_file = [mine]
    assert open_eval_records(job, records, config, recipes.find("ernie2")).size == 60
    # A run keeps the labels for evaluations without its records.
    run, other = folder / "run", open_records([theirs], "input_file")
    run.mkdir()
    for _ in range(2):
        check_labels(str(run), job, other if not list(run.iterdir()) else records)
        keep_labels(records, str(run))
    for model in (run, run / "model.keras"):
        with pytest.raises(InputError, match="--eval_input_file: the labels of discourse_relation "
                                             "are so,however.*labels.json are because,but"):
            check_labels(str(model), job, other)
