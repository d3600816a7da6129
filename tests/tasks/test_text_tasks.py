"""Tasks as text and their scores, against the original's."""

import collections
import dataclasses
import gzip
import json
import zipfile

import pytest
import sacrebleu

from bert_tf.errors import InputError
from bert_tf.models.t5 import scores as text_scores
from bert_tf.models.t5.scores import write_submission
from bert_tf.models.t5.task_files import TextFile, TextFlags
from bert_tf.models.t5.tasks import (
    TEXT_TASKS,
    TextExample,
    read_split,
    round_score,
    write_question,
)
from bert_tf.tasks import suites
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.squad_scorer import SCORERS, score_v1
from bert_tf.tasks.suites import SUITES
from bert_tf.tokenization import open_tokenizer
from tests.goldens import Material

GOLDEN = Material("golden/t5")
# Where the labels of tensorflow_datasets are in another order than those of the official files.
ORDERS = {"mnli": ("entailment", "neutral", "contradiction")}
SCORES = {"matthews": "matthews_corrcoef", "pearson": "pearson_corrcoef",
          "spearman": "spearman_corrcoef", "answer_f1": "f1", "exact_match": "em"}


def read(name):
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt") as file:
        return list(map(json.loads, file))


def test_glue_and_squad_as_text_equal_the_original():
    tokenizer = open_tokenizer(str(Material("vocabs/t5/spiece.model")))
    for row in read("glue_text_seed1"):
        task, texts = TEXT_TASKS[row["task"]], dict(row["source"])
        label = texts.pop("label")
        if task.words:
            words = ORDERS.get(task.prefix, task.words)
            label = None if label == -1 else task.words.index(words[label])
        example = task.write([texts[column] for column in task.columns], label)
        assert (example.input, example.target) == (row["inputs"], row["targets"])
        for text, ids in ((example.input, "inputs_ids"), (example.target, "targets_ids")):
            assert [*tokenizer.encode(text), tokenizer.vocabulary.sep_id] == row[ids]
    for row in read("squad_text_seed1"):
        source = row["source"]
        assert write_question(
            source["question"], source["context"] if row["include_context"] else None,
            source["answers"]["text"]) == TextExample(
                row["inputs"], row["targets"], tuple(row["answers"]))
    for row in read("tokenization_seed1"):
        assert tokenizer.encode(row["text"]) == row["ids"]
        assert tokenizer.decode(row["some_ids"]) == row["decoded"]


def test_scores_equal_the_original():
    for row in read("scores_seed1"):
        if row["task"] == "trivia_qa":
            found = score_v1(*({str(i): one for i, one in enumerate(row[side])}
                               for side in ("targets", "predictions")), SCORERS["trivia_qa"])
        else:
            examples = [TextExample("", target) if isinstance(target, str) else
                        TextExample("", target[0], tuple(target)) for target in row["targets"]]
            found = text_scores.score(TEXT_TASKS[row["task"]], examples, row["predictions"])
        assert {SCORES.get(name, name): value for name, value in found.items()} == pytest.approx(
            row["scores"], abs=1e-9)


def test_squad_without_contexts_is_scored_as_with_them():
    """t5/data/tasks.py, squad_v010_context_free: marks are dropped, and part no words."""
    examples = [TextExample("", "jack-in-the-box", ("jack-in-the-box",))]
    for name in ("squad", "squad_trivia"):
        assert text_scores.score(TEXT_TASKS[name], examples, ["Jack in the box"]) == {
            "answer_f1": 0.0, "em": 0.0}


def test_equal_numbers_correlate_with_nothing():
    """So that the mean of several tasks' scores stays a number."""
    examples = [TextExample("a", target) for target in ("1.0", "2.0", "5.0")]
    for texts in (["0.0"] * 3, ["no", "number", ""]):
        assert text_scores.score(TEXT_TASKS["stsb"], examples, texts) == {
            "pearson": 0.0, "spearman": 0.0}


def test_names_of_official_tasks_and_metrics():
    for task in TEXT_TASKS.values():
        assert set(task.metrics) <= text_scores.METRICS.keys()
        if task.official:
            labels = TASKS[task.official].labels
            assert len(labels) == len(task.words)
            assert labels == ("0", "1") or labels == task.words or task.is_number
    assert [round_score(value) for value in (0.1, 0.3, 0.5, 2.5, 4.9)] == [
        "0.0", "0.4", "0.4", "2.4", "4.8"]


SUPER_GLUE = {
    "boolq": ({"question": "is it", "passage": "It is.", "label": True, "idx": 1},
              [("boolq passage: It is. question: is it", "True")]),
    "cb": ({"premise": "P", "hypothesis": "H", "label": "contradiction"},
           [("cb hypothesis: H premise: P", "contradiction")]),
    "copa": ({"premise": "P", "choice1": "A", "choice2": "B", "question": "cause", "label": 1},
             [("copa choice1: A choice2: B premise: P question: cause", "choice2")]),
    "wic": ({"word": "w", "sentence1": "A", "sentence2": "B", "label": False, "start1": 0},
            [("wic sentence1: A sentence2: B word: w", "False")]),
    "multirc": ({"passage": {"text": "<b>Sent 1: </b>One.<br><b>Sent 2: </b>Two.", "questions": [
        {"question": "Q", "answers": [{"text": "A", "label": 1}, {"text": "B", "label": 0}]}]}},
                [("multirc question: Q answer: A paragraph: Sent 1: One. Sent 2: Two.", "True"),
                 ("multirc question: Q answer: B paragraph: Sent 1: One. Sent 2: Two.", "False")]),
    "wsc": ({"text": "A dog saw B and he ran.", "label": True, "target": {
        "span1_index": 0, "span1_text": "A dog", "span2_index": 5, "span2_text": "he"}},
            [("wsc: A dog saw B and *he* ran.", "A dog")]),
    "record": ({"passage": {"text": "Bo ran.\n@highlight\nAl sat", "entities": [
        {"start": 0, "end": 1}, {"start": 19, "end": 20}]}, "qas": [
            {"idx": 0, "query": "@placeholder sat", "answers": [{"text": "Al"}, {"text": "Bo"}]}]},
               [("record query: @placeholder sat entities: Al, Bo passage: Bo ran. Al sat",
                 "Al")])}


@pytest.mark.parametrize("name", SUPER_GLUE)
def test_super_glue_as_text(name, tmp_path):
    row, expected = SUPER_GLUE[name]
    task = TEXT_TASKS[f"super_glue_{name}"]
    (tmp_path / "val.jsonl").write_text(json.dumps(row) + "\n")
    examples = list(read_split(task, "dev", str(tmp_path / "val.jsonl")))
    assert [(example.input, example.target) for example in examples] == expected
    assert list(text_scores.score(task, examples, [e.target for e in examples]))[0] == (
        task.metrics[0])
    (tmp_path / "val.jsonl").write_text(json.dumps({"label": 7}) + "\n")
    with pytest.raises(InputError, match="val.jsonl, line 1 is not an example of this"):
        list(read_split(task, "dev", str(tmp_path / "val.jsonl")))


@pytest.mark.parametrize("text, first, referent, pronoun, expected", [
    ("A dog  saw\nit, but he ran.  ", 0, "A dog", 5, ("A dog  saw\nit, but *he* ran.  ", "A dog")),
    ("The cat saw the cat and it", 0, "the cat", 6, ("The cat saw the cat and *it* ", "the cat")),
    ("The cat saw a dog , it ran.", 0, "the cat.", 6, ("The cat saw a dog , *it* ran.", "The cat")),
    ("Al, not Bo , said they ran", 0, "Al and Bo", 5, ("Al, not Bo , said *they* ran",
                                                      "Al and Bo")),
    ("Mr. X said he saw X .", 0, "Mr. X", 3, ("Mr. *he* said *he* saw *he* .", "Mr. X")),
    ('Al said. "Good for  it," said Bo. ', 0, "Al", 5, (
        'Al said. "Good for *it* ," said Bo.', "Al"))])
def test_texts_of_wsc_keep_their_blanks(text, first, referent, pronoun, expected, tmp_path):
    """t5/data/preprocessors.py, wsc_simple, of tensorflow_datasets' wsc.fixed, which changes a
    referent only where the text does not have it."""
    words = text.split(" ")[pronoun].removesuffix(',"')
    (tmp_path / "val.jsonl").write_text(json.dumps({"text": text, "label": False, "target": {
        "span1_index": first, "span1_text": referent, "span2_index": pronoun,
        "span2_text": words}}) + "\n")
    (example,) = read_split(TEXT_TASKS["super_glue_wsc"], "dev", str(tmp_path / "val.jsonl"))
    assert (example.input, example.target) == (f"wsc: {expected[0]}", expected[1])
    assert example.answers == ("False", expected[1])


def test_multirc_is_scored_by_answers_and_by_questions(tmp_path):
    """F1 over all answers, and the share of questions whose answers are all right
    (arXiv:1905.00537, section 3.2; text-to-text-transfer-transformer, t5/evaluation/metrics.py)."""
    labels = [[(1, 0, 1), (0, 1)], [(1, 1, 0, 0)], [(0, 0), (1,)]]
    found = [[(1, 0, 1), (1, 1)], [(1, 0, 0, -1)], [(0, 0), (1,)]]
    (tmp_path / "val.jsonl").write_text("".join(json.dumps({"idx": index, "passage": {
        "text": "One.", "questions": [{"question": "Q", "answers": [
            {"text": "A", "label": label} for label in answers]} for answers in questions]}}) + "\n"
        for index, questions in enumerate(labels)))
    task = TEXT_TASKS["super_glue_multirc"]
    examples = list(read_split(task, "dev", str(tmp_path / "val.jsonl")))
    words = {1: "True", 0: "False", -1: "odd"}
    texts = [words[label] for questions in found for answers in questions for label in answers]
    scores = text_scores.score(task, examples, texts)
    # Right and found 5; found too 2 (an odd text counts as the wrong label); not found 1.
    assert scores == pytest.approx({"f1": 100 * 10 / 13, "group_em": 100 * 3 / 5})


def test_the_training_files_of_wsc_and_record_have_what_is_learned(tmp_path):
    """t5/data/preprocessors.py: wsc_simple with correct_referent_only; record has an example for
    each answer."""
    def learned(name, rows):
        (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return [example.target for example in read_split(
            TEXT_TASKS[name], "train", str(tmp_path / "train.jsonl"))]

    row = SUPER_GLUE["wsc"][0]
    assert learned("super_glue_wsc", [row, {**row, "label": False}]) == ["A dog"]
    assert learned("super_glue_record", [SUPER_GLUE["record"][0]]) == ["Al", "Bo"]


@pytest.mark.parametrize("text, referent, names", [
    ("Bob", "bob", True), ("the fuzzy bunny", "bunny", True), ("Bob", "Bob's hat", False),
    ("a dog", "the cat", False), ("the", "the cat", None), ("", "Bob", None),
    (" My cat", "your cat ", True), ("the cat", "my ", False), ("the   a", "Bob", False),
    ("the   a", "my", True)])
def test_a_text_names_a_referent(text, referent, names):
    """t5/data/postprocessors.py, wsc_simple; an empty text is right for no label."""
    assert text_scores.is_named(text, referent) is names
    wanted = [("True", referent), ("False", referent)]
    score = text_scores.METRICS["referent_accuracy"](wanted, [text, text])
    assert score == (0.0 if names is None else 0.5)


def test_tags_as_text(tmp_path):
    (tmp_path / "eng.testa").write_text("-DOCSTART- -X- O O\n\nA N I-NP I-PER\nb V I-VP O\n")
    task = TEXT_TASKS["conll2003"]
    [example] = read_split(task, "dev", str(tmp_path / "eng.testa"))
    assert example == TextExample("conll2003 words: A b", "B-PER O")
    for text, f1 in (("B-PER O", 100.0), ("B-PER", 100.0), ("B-PER O B-LOC", 100.0), ("", 0.0)):
        assert text_scores.score(task, [example], [text])["entity_f1"] == f1
    (tmp_path / "eng.testa").write_text("A N I-NP I-GPE\nb V I-VP O\n")
    with pytest.raises(InputError, match="eng.testa: label 'B-GPE' is none of O, B-LOC"):
        list(read_split(task, "dev", str(tmp_path / "eng.testa")))


@pytest.mark.parametrize("texts", [
    ["Das Paket ist klein.", "Zwei Hunde schlafen hier."],
    ["Das Paket ist groß!", "Zwei Hunde (alte) schlafen oft."], ["", "Zwei"]])
def test_translations_are_scored_by_sacrebleu(texts, tmp_path):
    """The arguments are those of t5/evaluation/metrics.py; BLEU is of the corpus."""
    wanted = ["Das Paket ist klein.", "Zwei Hunde schlafen hier."]
    (tmp_path / "dev.tsv").write_text("The package.\tDas Paket ist klein.\n"
                                      "Two dogs.\tZwei Hunde schlafen hier.\n")
    sources = TextFlags(tasks=["translate_en_de"], data_dir=[str(tmp_path)])
    file, = sources.open(False, True, False).of("dev")
    task, examples = file.task, file.examples
    assert examples[0] == TextExample("translate English to German: The package.", wanted[0])
    official = sacrebleu.corpus_bleu(
        texts, [wanted], smooth_method="exp", smooth_value=0.0, force=False, lowercase=False,
        tokenize="intl", use_effective_order=False)
    assert text_scores.score(task, examples, texts) == {"bleu": pytest.approx(official.score)}
    assert (official.score == pytest.approx(100)) == (texts == wanted)


def test_files_are_found_and_read(tmp_path):
    folder = tmp_path / "CoLA"
    folder.mkdir()
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("a\t1\t\tA word.\nb\t0\t*\tWord a.\n")
    sources = TextFlags(tasks=["cola"], data_dir=[str(tmp_path)]).open(True, True, False)
    file, = sources.of("dev")
    assert file.task.name == file.name == "cola" and file.examples == [
        TextExample("cola sentence: A word.", "acceptable"),
        TextExample("cola sentence: Word a.", "unacceptable")]
    own = tmp_path / "own.tsv"
    own.write_text('tag: a "b"\tX Y\nshort\t\n')
    file, = TextFlags(train_file=str(own)).open(True, False, False).of("train")
    assert file.examples == [TextExample('tag: a "b"', "X Y"), TextExample("short", "")]
    own.write_text("one\n")
    file, = TextFlags(test_file=str(own)).open(False, False, True).of("test")
    assert file.examples == [TextExample("one")]


@pytest.mark.parametrize("values, part", [
    ({}, "give either --tasks, or your own files"), ({"tasks": ["odd"]}, "there is no odd:"),
    ({"tasks": ["cola", "mrpc"], "data_dir": ["a", "b", "c"]}, "names 3 folders for 2 tasks"),
    ({"tasks": ["cola"], "data_dir": ["nowhere"]}, "there is no train file of cola in 'nowhere'"),
    ({"tasks": ["cola"], "train_file": "a"}, "give either --tasks"),
    ({"train_file": "a", "data_dir": ["b"]}, "--data_dir is for --tasks"),
    ({"dev_file": "a"}, "--train_file must be given"),
    ({"train_file": "a", "mixing_maximum": 9}, "--mixing_maximum is for several tasks"),
    ({"train_file": "a", "mixing_temperature": 2.0}, "--mixing_temperature is for several tasks"),
    ({"tasks": ["cola"], "mixing_temperature": 0}, "--mixing_temperature is 0; it must")])
def test_flags_that_do_not_go_together_are_refused(values, part):
    with pytest.raises(InputError, match=part):
        TextFlags(**values).open(True, False, False)


def test_submissions(tmp_path):
    file = TextFile(TEXT_TASKS["wnli"], "wnli", "test.tsv", "test")
    texts, path = ["entailment"] * 145 + ["odd"], tmp_path / "WNLI.tsv"
    assert write_submission(str(tmp_path), file, texts) == str(path)
    assert path.read_text().splitlines()[::145] == ["index\tprediction", "144\t1"]
    assert path.read_text().endswith("145\t0\n")
    assert write_submission(str(tmp_path), file, texts[1:]) is None


# The texts that a model writes for three examples of SUPER_GLUE, and the lines of the server's
# files (super.gluebenchmark.com/faq).
SUBMITTED = {
    "boolq": ("BoolQ", ["True", "False", "odd"], ["true", "false", "false"]),
    "cb": ("CB", ["contradiction", "neutral", "odd"], ["contradiction", "neutral", "entailment"]),
    "copa": ("COPA", ["choice2", "choice1", "odd"], [1, 0, 0]),
    "wic": ("WiC", ["True", "False", ""], ["true", "false", "false"]),
    "rte": ("RTE", ["not_entailment", "entailment", "odd"],
            ["not_entailment", "entailment", "entailment"]),
    "axb": ("AX-b", ["not_entailment", "entailment", "odd"],
            ["not_entailment", "entailment", "entailment"]),
    "axg": ("AX-g", ["entailment", "not_entailment", ""],
            ["entailment", "not_entailment", "entailment"]),
    "wsc": ("WSC", ["the dog", "B", ""], ["True", "False", "False"]),
    "record": ("ReCoRD", ["Al", "Bø", ""], ["Al", "Bø", ""]),
    "multirc": ("MultiRC", ["True", "False", "False", "True", "odd", "True"], [
        [{"idx": 0, "answers": [{"idx": 0, "label": first}, {"idx": 1, "label": second}]}]
        for first, second in ((1, 0), (0, 1), (0, 1))])}


@pytest.mark.parametrize("name", SUBMITTED)
def test_submissions_of_super_glue(name, tmp_path, monkeypatch):
    submitted, texts, wanted = SUBMITTED[name]
    pair = {"premise": "P", "hypothesis": "H", "sentence1": "P", "sentence2": "H"}
    row = SUPER_GLUE.get(name, (pair,))[0]
    kept = {key: value for key, value in row.items() if key not in ("idx", "label")}
    rows = [{**kept, "idx": index} for index in range(3)]
    if name == "record":
        rows = [{**kept, "qas": [{"idx": 7 + index, "query": "@placeholder sat"}]}
                for index in range(3)]
    layout = TASKS[TEXT_TASKS[f"super_glue_{name}"].same_as].split("test")
    path = tmp_path / layout.files[0]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sources = TextFlags(tasks=[f"super_glue_{name}"], data_dir=[str(tmp_path)]).open(
        False, False, True)
    file, = sources.of("test")
    if name in ("axb", "axg", "rte"):
        assert file.examples[0].input == "rte hypothesis: H premise: P"
    official = file.official
    assert file.path == str(path)
    out = tmp_path / "out"
    out.mkdir()
    assert write_submission(str(out), file, texts) is None      # the server wants the whole file
    layout = dataclasses.replace(official.split(file.official_split), size=len(texts))
    monkeypatch.setattr(type(official), "split", lambda *_: layout)
    assert write_submission(str(out), file, texts) == str(out / f"{submitted}.jsonl")
    lines = [json.loads(line) for line in (out / f"{submitted}.jsonl").read_text(
        encoding="utf-8").splitlines()]
    assert [line["idx"] for line in lines] == ([7, 8, 9] if name == "record" else [0, 1, 2])
    assert [line["passage"]["questions"] if name == "multirc" else line["label"]
            for line in lines] == wanted
    names, missing = suites.write_archive(str(tmp_path), SUITES["superglue"], {
        official.name: str(out)})
    assert names == [f"{submitted}.jsonl"] and len(missing) == 9
    with zipfile.ZipFile(tmp_path / "submission.zip") as found:
        assert found.namelist() == names


def test_a_text_is_read_as_it_is_written():
    counts = collections.Counter(text_scores.label_of(text, ("no", "yes")) for text in (
        "no", "yes", "yes ", "Yes", ""))
    assert counts == {0: 1, 1: 1, -1: 3}
    assert [text_scores.number_of(text) for text in (" 2.0 ", "1e1", "two", "nan", "-inf")] == [
        2.0, 10.0, -1.0, -1.0, -1.0]


@pytest.mark.parametrize("content, line, count", [("a\tb\nc\n", 2, 1), ("a\tb\n\nc\td\n", 2, 1),
                                                  ("a\tb\tc\n", 1, 3)])
def test_lines_that_are_no_pairs_are_named(tmp_path, content, line, count):
    """No flag leaves them out."""
    (tmp_path / "dev.tsv").write_text(content)
    with pytest.raises(InputError, match=(
            f"dev.tsv, line {line} has {count} columns?; give an input, a tab and a target")):
        list(read_split(TEXT_TASKS["pairs"], "dev", str(tmp_path / "dev.tsv")))


@pytest.mark.parametrize("line, is_told", [
    ("input\ttarget", True), ("Text\tLabel", True), ("input\tEingabe", False), ("a\tb", False)])
def test_names_of_columns_are_told(tmp_path, capsys, line, is_told):
    """They are an example, as every line."""
    (tmp_path / "dev.tsv").write_text(f"{line}\nsource\ttarget\n")
    read = list(read_split(TEXT_TASKS["pairs"], "dev", str(tmp_path / "dev.tsv")))
    assert [example.input for example in read] == [line.split("\t")[0], "source"]
    assert ("line 1 is read as an example; remove it" in capsys.readouterr().err) == is_told
