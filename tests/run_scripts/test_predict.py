"""Files and standard input through models: every format of the input and of the output."""

import csv
import dataclasses
import gzip
import io
import json
import lzma
import shutil

import pytest

import bert_tf
from bert_tf import checkpoints, flags
from bert_tf.compression.transfer import TransferSource
from bert_tf.errors import InputError
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import SQUAD, TASKS
from bert_tf.tasks.reading import discover_labels, read_examples
from bert_tf.tasks.rows import Omissions
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Split, Task
from bert_tf.tasks.task_flags import own_task
from run_scripts import example_files, fill_mask, predict
from run_scripts.fill_mask import FillMaskFlags
from run_scripts.predict import PredictFlags
from tests.processes import start_command
from tests.test_fill_mask import CONFIG
from tests.test_fill_mask import write as write_pretrained
from tests.test_predictor import write

pytestmark = pytest.mark.usefixtures("all_eagerly")
TEXTS = ["ab c.", "d e", "", "b b b?"]


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write(folder, "classification")
    return str(folder), bert_tf.Predictor(folder)(TEXTS)


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """The folder of a pre-trained model."""
    return str(write_pretrained(tmp_path_factory.mktemp("run"), bert_tf.Learner(
        bert_tf.BertEncoder(CONFIG), [bert_tf.MaskedLM(CONFIG),
                                      bert_tf.SentencePrediction(CONFIG)])))


def near(answer):
    """An answer whose last digits may differ, as with other texts in its batch."""
    return {"label": answer["label"],
            "probabilities": pytest.approx(answer["probabilities"], abs=2e-6)}


def run(model, folder, name, content, output="out", **flags):
    path, out = folder / name, folder / output
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    predict.main(PredictFlags(init_checkpoint=model, input_file=str(path), output_file=str(out),
                              **flags))
    return out.read_text()


@pytest.mark.parametrize("name", ["in.txt", "in.txt.gz"])
def test_lines_give_lines(model, tmp_path, name, monkeypatch):
    monkeypatch.setattr(example_files, "_PIECE", 3)
    content = "".join(f"{text}\r\n" for text in TEXTS).encode()
    if name.endswith("gz"):
        content = gzip.compress(content)
    assert run(model[0], tmp_path, name, content).splitlines() == [
        said["label"] for said in model[1]]


def test_json_lines_keep_what_they_hold(model, tmp_path):
    rows = [{"n": number, "body": text, "label": "own"} for number, text in enumerate(TEXTS)]
    written = run(model[0], tmp_path, "in.jsonl", "\n".join(map(json.dumps, rows)),
                  text_a_column="body")
    assert [json.loads(line) for line in written.splitlines()] == [
        {**row, "prediction": said} for row, said in zip(rows, model[1])]


@pytest.mark.parametrize("ending, delimiter", [("csv", ","), ("csv", ";"), ("tsv", "\t")])
def test_tables_get_further_columns(model, tmp_path, ending, delimiter):
    content = io.StringIO()
    csv.writer(content, delimiter=delimiter).writerows(
        [["id", "body"], *([number, text] for number, text in enumerate(TEXTS))])
    written = run(model[0], tmp_path, f"in.{ending}", content.getvalue(), text_a_column="1")
    for row, text, said in zip(csv.DictReader(io.StringIO(written), delimiter=delimiter), TEXTS,
                               model[1], strict=True):
        assert row["body"] == text and row["predicted_label"] == said["label"]
        assert float(row["predicted_probabilities_yes"]) == said["probabilities"]["yes"]
    packed = run(model[0], tmp_path, f"in.{ending}.xz", lzma.compress(
        content.getvalue().encode()), text_a_column="1")
    assert packed == written
    if delimiter == ";":        # without names, commas alone separate cells
        return
    # A table without names, as lines of another kind.
    lines = run(model[0], tmp_path, f"more.{ending}", f"x{delimiter}d e\n", "out.jsonl",
                text_a_column="-1", header=False)
    assert json.loads(lines) == {"0": "x", "1": "d e", "prediction": near(model[1][1])}


def test_excel_knows_the_output_as_the_input(model, tmp_path):
    written = run(model[0], tmp_path, "in.csv", "\ufeffbody;n\nd e;1\n", text_a_column="body")
    assert written.startswith("\ufeffbody;n;predicted_label;") and "\nd e;1;" in written


def test_no_column_of_the_input_is_lost(model, tmp_path, capsys):
    for name, content in (("in.csv", "body,predicted_label\nd e,mine\n"),
                          ("in.jsonl", '{"body": "d e", "prediction": "mine"}\n')):
        with pytest.raises(InputError, match="line . of the input has a column 'predict.* already"):
            run(model[0], tmp_path, name, content, text_a_column="body")
    written = run(model[0], tmp_path, "twice.csv", "body,x,x,x_2\nd e,a,b,c\n",
                  text_a_column="body")
    assert written.startswith("body,x,x_2_,x_2,predicted_label,") and "\nd e,a,b,c," in written
    capsys.readouterr()
    written = run(model[0], tmp_path, "more.jsonl", "\n".join([
        '{"body": "d", "of": {"a": [null, "b"]}}', '{"body": "d", "id": 7}']), "out.csv",
        text_a_column="body")
    assert next(csv.DictReader(io.StringIO(written)))["of"] == '{"a": [null, "b"]}'
    assert "line 2 of the input has id, which the first line lacks" in capsys.readouterr().err


def test_the_official_columns_of_a_task_need_no_flag(tmp_path):
    write(tmp_path / "model", "regression")
    saved = SavedTask.read(str(tmp_path / "model"))
    object.__setattr__(saved.task, "name", "sts-b")
    saved.write(str(tmp_path / "model"))
    written = run(str(tmp_path / "model"), tmp_path, "test.tsv",
                  "index\tsentence1\tsentence2\n7\ta\tb c\n")
    assert written.splitlines()[0] == "index\tsentence1\tsentence2\tpredicted_value"
    said = bert_tf.Predictor(tmp_path / "model")(("a", "b c"))["value"]
    assert written.splitlines()[1] == f"7\ta\tb c\t{said}"


def test_the_choices_of_an_official_task_may_be_in_other_columns(tmp_path):
    write(tmp_path, "multiple_choice")
    saved = SavedTask.read(str(tmp_path))
    object.__setattr__(saved.task, "name", "swag")
    job = PredictFlags(init_checkpoint=str(tmp_path), input_file="in.csv", choice_columns=["c*"])
    assert predict.columns_of(job, saved, "csv").choices == ("c*",)


def test_the_columns_of_the_training_file_need_no_flag(model, tmp_path):
    shutil.copytree(model[0], tmp_path / "own")
    saved = dataclasses.replace(SavedTask.read(model[0]), columns={"texts": ["body"]})
    saved.write(tmp_path / "own")
    table = "body,more\nd e,ab c.\n"
    written = run(str(tmp_path / "own"), tmp_path, "in.csv", table)
    assert written == run(model[0], tmp_path, "in.csv", table, text_a_column="body")
    assert written != run(str(tmp_path / "own"), tmp_path, "in.csv", table, text_a_column="more")
    with pytest.raises(InputError, match="no column 'body'; its columns are text; name the "
                       "right ones with --text_a_column[.]$"):
        run(str(tmp_path / "own"), tmp_path, "in.csv", "text\nd e\n")


def test_a_table_has_names_of_columns_if_the_training_file_had(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("d e\tyes\nab c.\tno\n")
    for header, kept in ((False, ["d e", "ab c."]), (True, ["ab c."])):
        task = own_task("classification", {"train": "t.tsv"}, ["0"], "1", labels=("no", "yes"),
                        header=header)
        SavedTask(task, 8, True, columns=task.columns).write(tmp_path)
        saved = SavedTask.read(str(tmp_path))
        for flag, texts in ((None, kept), (True, ["ab c."]), (False, ["d e", "ab c."])):
            job = PredictFlags(init_checkpoint="", header=flag)
            rows = example_files.read_table(str(path), predict.columns_of(job, saved, "tsv"),
                                            Omissions())
            assert [row.texts for row in rows] == texts


@pytest.mark.parametrize("name, row, texts", [
    ("copa", {"premise": "p", "question": "cause", "choice1": "c", "choice2": "d"},
     ("p", "What was the cause of this? c", "What was the cause of this? d")),
    ("imdb", {"text": " great<br />film "}, "great film")])
def test_cells_are_read_as_the_task_reads_them(name, row, texts, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(row) + "\n")
    job = PredictFlags(init_checkpoint="", text_a_column="text" * ("text" in row))
    columns = predict.columns_of(job, SavedTask(TASKS[name], 16, True), "jsonl")
    found, = example_files.read_table(str(path), columns, Omissions())
    assert found.texts == texts and found.cells == row
    source = TransferSource(TASKS[name], "train", "", further=(str(path),), has_own=False)
    assert [example.texts for example in source.examples()] == [
        list(texts) if isinstance(texts, tuple) else [texts]]


@pytest.mark.parametrize("name, content", [
    ("in.jsonl", '{"q": "x", "a0": "b", "a1": "c"}\n{"q": "x", "a0": "b", "a1": "c", "a2": "d"}\n'),
    ("in.csv", "q,a0,a1,a2\nx,b,c,d\nx,b,c,\n")])
def test_all_rows_have_the_choices_of_the_first(name, content, tmp_path):
    path = tmp_path / name
    path.write_text(content)
    rows = example_files.read_table(str(path), Split((), ("q",), choices=("a*",), format=name[3:]),
                                    Omissions())
    assert next(rows).texts[:3] == ("x", "b", "c")
    with pytest.raises(InputError, match=rf"{name}, line . does not have . choices, as line 1"):
        next(rows)
    other = Split((), ("q",), choices=("b*",), format=name[3:])
    with pytest.raises(InputError, match="'b.'; .* with --text_a_column and --choice_columns[.]$"):
        next(example_files.read_table(str(path), other, Omissions()))


def test_a_tagger_reads_words_of_every_form(tmp_path):
    """Against the Predictor on the words, which stand here."""
    write(tmp_path / "model", "tagging")
    saved = dataclasses.replace(SavedTask.read(str(tmp_path / "model")),
                                columns={"texts": ["(found)"], "format": "annotations"})
    saved.write(str(tmp_path / "model"))
    sentences = [("ab", "c", "."), ("d", "e")]
    predictor = bert_tf.Predictor(tmp_path / "model")
    said = predictor(sentences)
    placed = predictor("ab c.")
    assert placed["tags"] == said[0]["tags"]    # split as in training
    tags = [" ".join(answer["tags"]) for answer in said]
    for name, content in (
            ("in.conllu", "# a\n1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_\n" + "\n".join("".join(
                f"{number}\t{word}\t_\tX\t_\t_\t0\troot\t_\t_\n"
                for number, word in enumerate(words, 1)) for words in sentences)),
            ("in.conll", "# a comment\n" + "\n".join("".join(f"{word} {saved.task.labels[0]}\n"
                         for word in words) for words in sentences)),
            ("in.txt", "ab c.\nd e\n")):
        assert run(str(tmp_path / "model"), tmp_path, name, content).splitlines() == tags
    rows = [{"text": "ab c.", "id": 3}, {"tokens": ["d", "e"]}]
    written = run(str(tmp_path / "model"), tmp_path, "in.json", json.dumps(rows, indent=1))
    assert [json.loads(line) for line in written.splitlines()] == [
        {**row, "prediction": answer} for row, answer in zip(rows, [placed, said[1]])]


def test_no_structured_file_is_read_line_by_line(model, tmp_path):
    (tmp_path / "in").write_text('[\n {"text": "a [MASK]"}\n]')
    with pytest.raises(InputError, match="in is JSON, and one text per line is read here"):
        fill_mask.main(FillMaskFlags(init_checkpoint="", input_file=str(tmp_path / "in")))
    (tmp_path / "in").write_bytes(b"a\n\xff")
    with pytest.raises(InputError, match="in, line 2, byte 1 is not UTF-8"):
        fill_mask.main(FillMaskFlags(init_checkpoint="", input_file=str(tmp_path / "in")))
    for name, form in (("in.conll.gz", "tagged words"), ("in.ann", "a file of brat")):
        content = gzip.compress(b"a O\n") if name.endswith(".gz") else "T1\tA 0 1\ta\n"
        with pytest.raises(InputError, match=f"{name} is {form}, which is for taggers"):
            run(model[0], tmp_path, name, content)
        with pytest.raises(InputError, match=f"{name} is {form}, and one text per line is read"):
            fill_mask.main(FillMaskFlags(init_checkpoint="", input_file=str(tmp_path / name)))
    with pytest.raises(InputError, match="in.parquet is Parquet, which is not read"):
        run(model[0], tmp_path, "in.parquet", "PAR1")


@pytest.mark.parametrize("prediction, line", [
    ({"labels": ["a", "b"], "probabilities": {}}, "a,b"), ({"value": 1.5}, "1.5"),
    ({"words": ["x", "y"], "tags": ["O", "B-LOC"], "entities": [{}]}, "O B-LOC"),
    ({"choice": 1, "probabilities": [0.2, 0.8]}, "1"), ({"text": "a\nb"}, "a b"),
    ({"answer": "a  b", "probability": 1.0, "n_best": [{"text": "a"}]}, "a b"),
    ({"masks": [[{"text": " door"}, {"text": "x"}], [{"text": "open"}]]}, "door open")])
def test_each_kind_says_one_thing_in_a_line(prediction, line):
    assert example_files.headline(prediction) == line


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_labels_in_a_table_are_read_by_multi_label(form, tmp_path):
    answers = [("a b", "c"), (), ("d",)], [("a, b", "c"), ("c",)]
    for number, rows in enumerate(answers):
        path = tmp_path / f"{number}.{form}"
        with open(path, "w", newline="") as file:
            write_row = example_files.writer(form, file)
            for line, labels in enumerate(rows, 1):
                write_row(example_files.Row(line, "x", {"text": "x"}), {"labels": list(labels)})
        task = own_task("multi_label", {"train": str(path)}, ["text"], "predicted_labels")
        task = discover_labels(task, "train", str(path))
        assert [tuple(name for name, has in zip(task.labels, example.label) if has)
                for example in read_examples(task, "train", str(path))] == rows


@pytest.mark.parametrize("name, content, flags, part", [
    ("in.csv", "a,b\n1,2\n3\n", {"text_a_column": "a"}, "in.csv, line 3 has 1 column"),
    ("in.jsonl", '{"a": "x"}\n{"a": 1}\n', {"text_a_column": "a"},
     "in.jsonl, line 2 has 1 where text must be"),
    ("in.txt", "a\nb ||| c ||| d\n", {}, r"in.txt, line 2 has 3 texts; give a text"),
    ("in.tsv", "a\nb\n", {}, "--text_a_column must be given: it names .* text in .*in.tsv"),
    ("in.tsv", "a\nb\n", {"text_a_column": "c"}, "no column 'c'; its columns are a"),
    ("in.txt", "a\n", {"output": "in.txt"}, "in.txt is also the input; name another file"),
    ("in.txt", "a\n", {"output": "."}, "--output_file: .* is a folder; name a file"),
    ("in.txt", "a\n", {"output": "out.csv.gz"}, "the output is not compressed; give .*out.csv.$"),
    ("in.txt", "a\n", {"output": "out.json"}, "out.json is for another form; give .jsonl"),
    ("in.csv", "a\nx\n", {"output": "out.xlsx", "text_a_column": "a"}, "out.xlsx is for another"),
    ("in.txt", "a\n\xff".encode("latin-1"), {}, "in.txt, line 2, byte 1 is not UTF-8")])
def test_what_cannot_be_read_is_named_and_nothing_half_written_stays(
        model, tmp_path, name, content, flags, part):
    with pytest.raises(InputError, match=part):
        run(model[0], tmp_path, name, content, **flags)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("flags, part", [
    ({"init_checkpoint": "absent"}, "there is no absent; name the folder of a checkpoint"),
    ({"init_checkpoint": "/"}, "--init_checkpoint: there is no model in /"),
    ({"input_file": "absent.csv"}, "--input_file: there is no file absent.csv"),
    ({"input_format": "lines", "text_a_column": "a"},
     "--text_a_column is for tables, and .*in.csv"),
    ({"input_format": "lines", "header": True}, "--header is for tables, and .*in.csv"),
    ({"input_format": "lines", "skip_malformed_lines": True}, "--skip_malformed_lines is for tabl"),
    ({}, "--text_a_column must be given: it"), ({"text_a_column": "b"}, "no column 'b'"),
    ({"text_a_column": "a"}, "in.csv, line 3 has 2 columns"),
    ({"text_a_column": "a", "skip_malformed_lines": True, "output_file": "/dev/null/x.csv"},
     "--output_file: can't write")])
def test_what_is_missing_is_told_before_a_model_is_loaded(
        model, tmp_path, monkeypatch, flags, part):
    monkeypatch.setattr(bert_tf, "Predictor", None)
    (tmp_path / "in.csv").write_text("a\nx\ny,z\n")
    with pytest.raises(InputError, match=part):
        predict.main(PredictFlags(**{
            "init_checkpoint": model[0], "input_file": str(tmp_path / "in.csv"),
            "output_file": str(tmp_path / "new" / "out.csv"), **flags}))
    assert not (tmp_path / "new").exists()


def test_lines_are_checked_before_a_model_of_hugging_face_is_opened(model, tmp_path, monkeypatch):
    checkpoints.convert(model[0], str(tmp_path / "hf"), "huggingface")
    monkeypatch.setattr(bert_tf, "Predictor", None)
    with pytest.raises(InputError, match="in.csv, line 3 has 1 column"):
        run(str(tmp_path / "hf"), tmp_path, "in.csv", "a,b\n1,2\n3\n", text_a_column="a",
            text_b_column="b")


@pytest.mark.parametrize("task, message", [
    (None, "several tasks, mood, tone; name one of them"),
    ("moods", "no task 'moods'; it has mood, tone")])
def test_a_task_of_several_is_asked_for_before_columns(model, tmp_path, task, message):
    folder = shutil.copytree(model[0], tmp_path / "several")
    for name in ("mood", "tone"):
        (folder / "tasks" / name).mkdir(parents=True)
        shutil.copy(folder / "task.json", folder / "tasks" / name)
    (folder / "task.json").unlink()
    with pytest.raises(InputError, match=message):
        run(str(folder), tmp_path, "in.csv", "a\n1\n", task=task)


@pytest.mark.parametrize("kind, texts", [("span", "a question and a passage"),
                                         ("classification", "both texts")])
def test_both_columns_of_a_pair_are_asked_for_at_once(kind, texts):
    saved = SavedTask(Task("own", KINDS[kind], {}, ("no", "yes")), 16, True, num_texts=2)
    for column in ("", "a"):
        job = PredictFlags(init_checkpoint="", input_file="in.csv", text_a_column=column)
        with pytest.raises(InputError, match="--text_a_column and --text_b_column must be given: "
                           f"they name the columns of {texts} in in.csv.$"):
            predict.columns_of(job, saved, "csv")


def test_the_command_for_a_file_of_squad_is_named(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": [{"title": "a", "paragraphs": []}]}, indent=1))
    saved = SavedTask(SQUAD[False], 16, True)
    with pytest.raises(InputError, match="dev.json is in SQuAD's form: .* --predict_file=.*dev.js"):
        example_files.form_of(str(path), saved, "")
    path.write_text('{"question": "a", "context": "b"}\n')
    assert example_files.form_of(str(path), saved, "") == "jsonl"


def test_bad_lines_may_be_left_out(model, tmp_path, capsys):
    written = run(model[0], tmp_path, "in.tsv", "body\nd e\na\tb\n", text_a_column="body",
                  skip_malformed_lines=True)
    assert len(written.splitlines()) == 2
    assert capsys.readouterr().out.endswith("out: 1 prediction, 1 line left out\n")


def test_standard_input_to_standard_output(model, tmp_path):
    def predicted(form, content):
        (tmp_path / "in").write_text(content)
        return start_command("run_scripts.predict", {
            "init_checkpoint": model[0], "input_format": form, "text_a_column": "body"},
            f"import os; os.dup2(os.open({str(tmp_path / 'in')!r}, os.O_RDONLY), 0)").finish()

    assert json.loads(predicted("jsonl", '{"body": "d e"}\n').splitlines()[-1]) == {
        "body": "d e", "prediction": near(model[1][1])}
    # A table has the separator that came in.
    *_, names, row = predicted("csv", "id;body\n7;d e\n").splitlines()
    assert names.startswith("id;body;predicted_label;")
    assert row.startswith(f"7;d e;{model[1][1]['label']};")


def test_a_pre_trained_model_predicts_masks(run, tmp_path):
    (tmp_path / "in.txt").write_text("a [MASK]\n")
    predict.main(PredictFlags(init_checkpoint=run, input_file=str(tmp_path / "in.txt"),
                              output_file=str(tmp_path / "out.jsonl")))
    written = json.loads((tmp_path / "out.jsonl").read_text())["prediction"]
    assert written == bert_tf.FillMask(run)("a [MASK]") == bert_tf.Predictor(run)("a [MASK]")


def test_what_is_asked_of_a_pre_trained_model(run, tmp_path, capsys):
    fill = bert_tf.FillMask(run)
    (tmp_path / "in.txt").write_text("a [MASK] c\nb ||| [MASK] c\n")
    fill_mask.main(FillMaskFlags(init_checkpoint=run, input_file=str(tmp_path / "in.txt"), top_k=2))
    first, guesses, *_ = capsys.readouterr().out.splitlines()
    best = fill("a [MASK] c", top_k=2)["masks"][0]
    assert first == "a [MASK] c" and guesses == "    " + ", ".join(
        f"{guess['text']} {guess['probability']:.1%}" for guess in best)
    fill_mask.main(FillMaskFlags(init_checkpoint=run, text="a ||| b", ask="next_sentence"))
    fill_mask.main(FillMaskFlags(init_checkpoint=run, text="a b", ask="pseudo_perplexity",
                                 output_format="jsonl"))
    out = capsys.readouterr().out.splitlines()
    assert float(out[0]) == pytest.approx(fill.next_sentence(("a", "b")), rel=1e-5)
    assert json.loads(out[1]) == {"text": "a b", "pseudo_perplexity": fill.pseudo_perplexity("a b")}


def test_blank_lines_between_documents_have_no_perplexity(run, tmp_path, capsys):
    (tmp_path / "in.txt").write_text("a b\n\n \nb c\n\na\n")
    fill_mask.main(FillMaskFlags(init_checkpoint=run, input_file=str(tmp_path / "in.txt"),
                                 ask="pseudo_perplexity"))
    assert [float(line) for line in capsys.readouterr().out.splitlines()] == pytest.approx(
        bert_tf.FillMask(run).pseudo_perplexity(["a b", "b c", "a"]), rel=1e-5)


@pytest.mark.parametrize("flags, part", [
    ({"text": "a"}, r"--text, line 1 has no \[MASK\]"),
    ({"text": "a", "input_file": "b"}, "give --text or --input_file, not both"),
    ({"input_file": "absent"}, "--input_file: there is no file absent"),
    ({"text": "a", "ask": "next_sentence"}, "--text, line 1 must be a tuple of two texts")])
def test_what_cannot_be_asked_is_named(run, flags, part):
    with pytest.raises(InputError, match=part):
        fill_mask.main(FillMaskFlags(init_checkpoint=run, **flags))


def test_flags_of_masks_are_for_questions_about_masks():
    for flag in ({"top_k": 2}, {"mask": "_"}):
        flags.check(FillMaskFlags(init_checkpoint="run", **flag))
        with pytest.raises(InputError, match="it is for --ask=masks"):
            flags.check(FillMaskFlags(init_checkpoint="run", ask="next_sentence", **flag))
