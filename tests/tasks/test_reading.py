"""Examples of every task from its official layout, and of a user's own files."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks.kinds.labelled import SplitPredictions, label_id
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import SQUAD, TASKS, find_task, placed
from bert_tf.tasks.reading import Example, discover_labels, read_examples
from bert_tf.tasks.rows import Omissions
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.task import Split, Task
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags, own_task
from run_scripts import example_files


def read(task, folder, split, omissions=None):
    return list(read_examples(task, split, task.path(str(folder), split), omissions))


@pytest.mark.parametrize("name, folder, splits", [
    ("cola", "glue/CoLA", 3), ("mrpc", "glue/MRPC", 3), ("sts-b", "glue/STS-B", 3),
    ("wnli", "glue/WNLI", 3), ("ax", "glue/AX", 2)])
def test_official_counts(test_data, name, folder, splits):
    task = TASKS[name]
    assert len(task.splits) == splits
    for split, layout in task.splits.items():
        examples = read(task, test_data / folder, split)
        assert len(examples) == layout.size
        assert all(text for example in examples for text in example.texts)


def test_subset_of_mnli(test_data):
    for split, count in (("train", 9888), ("dev_matched", 6238)):
        assert len(read(TASKS["mnli"], test_data / "glue/MNLI", split)) == count


def test_what_stands_in_official_files(test_data):
    mrpc = read(TASKS["mrpc"], test_data / "glue/MRPC", "dev")[0]
    assert mrpc.label == 1 and mrpc.texts[1].startswith('" The foodservice pie business')
    assert [e.label for e in read(TASKS["sts-b"], test_data / "glue/STS-B", "dev")[:2]] == [5, 4.75]
    cola = read(TASKS["cola"], test_data / "glue/CoLA", "test")[0]
    assert cola == Example(["Bill whistled past the house."], 0)
    ax = read(TASKS["ax"], test_data / "glue/AX", "dev")
    assert ax[0].label == TASKS["mnli"].labels.index("contradiction")
    test = read(TASKS["ax"], test_data / "glue/AX", "test")
    words, test_words = ([list(map(str.split, e.texts)) for e in read] for read in (ax, test))
    assert words == test_words


def test_entities_of_conll_2003(test_data):
    """The counts of the shared task's paper (Tjong Kim Sang and De Meulder 2003, table 2)."""
    task = TASKS["conll2003"]
    begins = [task.labels.index(f"B-{kind}") for kind in ("LOC", "MISC", "ORG", "PER")]
    for split, counts in (("dev", [1837, 922, 1341, 1842]), ("test", [1668, 702, 1661, 1617])):
        examples = read(task, test_data / "conll2003", split)
        assert len(examples) == task.splits[split].size and all(all(e.texts) for e in examples)
        labels = [tag for e in examples for tag in e.label]
        assert [labels.count(index) for index in begins] == counts


def test_swag(tmp_path):
    (tmp_path / "val.csv").write_text(
        ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,"
        "label\n"
        '0,v1,7,"He waits, and. She","He waits, and.",She,gold,"sits, then stands.",""" runs.",'
        "falls.,sings.,2\n"
        "1,v2,8,It rains. A dog,It rains.,A dog,gen,barks.,sleeps.,eats.,digs.,0\n")
    examples = read(TASKS["swag"], tmp_path, "dev")
    assert [(e.texts, e.label) for e in examples] == [
        (["He waits, and.", "She sits, then stands.", 'She " runs.', "She falls.", "She sings."],
         2),
        (["It rains.", "A dog barks.", "A dog sleeps.", "A dog eats.", "A dog digs."], 0)]


NLI = ("index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
       "sentence1_parse\tsentence2_parse\tsentence1\tsentence2")
MIDDLE = "0\tp\tp\tp\tp\tp\tp\tp\t"
MADE = {
    "sst-2": {"train.tsv": "sentence\tlabel\nhide new secretions \t0\n",
              "test.tsv": "index\tsentence\n0\tuneasy mishmash .\n"},
    "qqp": {"train.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
                         '1\t2\t3\t"How" do I?\tWhy\rnot?\t1\n',
            "test.tsv": "id\tquestion1\tquestion2\n0\tWho?\tWhat\u2028?\n"},
    "qnli": {"train.tsv": "index\tquestion\tsentence\tlabel\n0\tWhen?\tNow.\tentailment\n",
             "test.tsv": 'index\tquestion\tsentence\n0\tWhy?\t"So.\n'},
    "rte": {"train.tsv": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n",
            "test.tsv": "index\tsentence1\tsentence2\n0\tA.\tB.\n"},
    "mnli": {"train.tsv": f'{NLI}\tlabel1\tgold_label\n{MIDDLE}"He said\tNo.\tneutral\tneutral\n',
             "test_matched.tsv": f"{NLI}\n{MIDDLE}A.\tB.\n"},
    "snli": {"snli_1.0_train.txt":
             "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\tlabel1\n"
             "neutral\t( A )\tA.\tB.\tneutral\n-\t( A )\tA.\tB.\tneutral\n",
             "snli_1.0_test.txt": "gold_label\tsentence1\tsentence2\nentailment\tA.\tB.\n"},
    "scitail": {"scitail_1.0_train.tsv": "Plants \"eat\" light.\tPlants eat.\tentails\n",
                "scitail_1.0_test.tsv": "A.\tB.\tneutral\n"},
}


@pytest.mark.parametrize("name, texts, label, test_label", [
    ("sst-2", ["hide new secretions "], 0, 0), ("qqp", ['"How" do I?', "Why\rnot?"], 1, 0),
    ("qnli", ["When?", "Now."], 0, 0), ("rte", ["A.", "B."], 1, 0),
    ("mnli", ['"He said', "No."], 2, 0), ("snli", ["A.", "B."], 2, 1),
    ("scitail", ['Plants "eat" light.', "Plants eat."], 0, 1)])
def test_official_layouts(tmp_path, name, texts, label, test_label):
    for file, content in MADE[name].items():
        (tmp_path / file).write_bytes(content.encode())
    omissions, task = Omissions(), TASKS[name]
    assert read(task, tmp_path, "train", omissions) == [Example(texts, label)]
    assert omissions.without_label == (name == "snli")
    split = "test_matched" if name == "mnli" else "test"
    assert [e.label for e in read(task, tmp_path, split)] == [test_label]


def write_all(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


XNLI = ("language\tgold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
        "sentence2_parse\tsentence1\tsentence2\tpromptID\tpairID\tgenre\tlabel1\tlabel2\tlabel3\t"
        "label4\tlabel5\tsentence1_tokenized\tsentence2_tokenized\tmatch\n")


def xnli_row(language, label, text):
    return "\t".join([language, label, "", "", "", "", f"{text} a", f"{text} b", "1", "1", "genre",
                      *5 * [label], "A", "B", "True\n"])


def test_xnli_in_its_three_settings(tmp_path):
    rows = {"en": ("neutral", '"One'), "zh": ("contradiction", "\u4e00"), "ar": ("entailment", "x")}
    archives = tmp_path / "XNLI"
    write_all(archives, {
        **{f"XNLI-1.0/xnli.{split}.tsv": XNLI + "".join(
            xnli_row(language, *row) for language, row in rows.items())
           for split in ("dev", "test")},
        **{f"XNLI-MT-1.0/multinli/multinli.train.{language}.tsv":
           f"premise\thypo\tlabel\n{language} 1\t2\tcontradictory\n3\t4\tneutral\n"
           for language in ("en", "zh")},
        "XNLI-MT-1.0/xnli/xnli.dev.zh.tsv": XNLI + xnli_row("zh", "neutral", "in English"),
        "XNLI-MT-1.0/xnli/xnli.test.en.tsv": XNLI + "".join(
            xnli_row(language, "entailment", f"from {language}") for language in ("ar", "zh"))})
    zero_shot, chinese, test = (find_task(name) for name in (
        "XNLI", "xnli-zh", "xnli-translate-test"))
    assert len(zero_shot.splits) == 1 + 2 * 15 and len(test.splits) == 2 * 14
    assert list(zero_shot.splits)[:2] == ["train", "dev_en"] and "train" not in test.splits
    for task, language in ((zero_shot, "en"), (chinese, "zh")):
        assert read(task, tmp_path, "train") == [
            Example([f"{language} 1", "2"], 0), Example(["3", "4"], 2)]
    for split in ("dev_ar", "test_ar"):
        assert read(zero_shot, archives, split) == [Example(["x a", "x b"], 1)]
    assert read(chinese, tmp_path, "dev_zh") == [Example(["\u4e00 a", "\u4e00 b"], 0)]
    assert list(chinese.splits) == ["train", "dev_zh", "test_zh"]
    assert read(test, tmp_path, "dev_zh") == [Example(["in English a", "in English b"], 2)]
    assert read(test, tmp_path, "test_zh") == [Example(["from zh a", "from zh b"], 1)]
    with pytest.raises(InputError, match="is empty"):
        read(zero_shot, tmp_path, "dev_sw")


def test_paws_x(tmp_path):
    table = "id\tsentence1\tsentence2\tlabel\n7\t{} a\tb\t1\n"
    write_all(tmp_path / "x-final", {
        name: table.format(name) for name in ("en/train.tsv", "ko/translated_train.tsv",
                                              "ko/dev_2k.tsv", "en/dev_2k.tsv", "ko/test_2k.tsv")})
    every, korean = find_task("paws-x"), find_task("PAWS-X-ko")
    assert [text for split in ("train", "dev_en", "dev_ko", "test_ko")
            for [text, _], label, _ in read(every, tmp_path, split) if label == 1] == [
        "en/train.tsv a", "en/dev_2k.tsv a", "ko/dev_2k.tsv a", "ko/test_2k.tsv a"]
    assert read(korean, tmp_path, "train")[0].texts[0] == "ko/translated_train.tsv a"
    assert not every.has_file(str(tmp_path), "dev_ja")


def test_broken_lines_of_qqp(tmp_path):
    whole = "133\t2\t3\tWho?\tWhat?\t0\n"
    (tmp_path / "train.tsv").write_text(
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n" + whole
        + "134\t5\t6\tHow\n do I?\tWhy?\t1\n" + whole, encoding="utf-8")
    omissions = Omissions()
    assert len(read(TASKS["qqp"], tmp_path, "train", omissions)) == 2
    assert omissions.malformed == 2
    (tmp_path / "test.tsv").write_text("id\tquestion1\tquestion2\n0\tHow\n do I?\tWhy?\n")
    with pytest.raises(InputError, match=r"test.tsv, line 2 has 2 columns .* must be 3"):
        read(TASKS["qqp"], tmp_path, "test")


@pytest.mark.parametrize("name, content, message", [
    ("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentails\n",
     r"train.tsv, line 2: label 'entails' is none of entailment, not_entailment"),
    ("rte", "index\tsentence1\tlabel\n0\ta\tentailment\n",
     r"line 1: there is no column 'sentence2'"),
    ("rte", "index\tsentence1\tsentence2\n0\ta\tb\n", r"line 1: there is no column 'label'"),
    ("rte", "index\tsentence1\tsentence2\tlabel\n", "is empty"),
    ("cola", "", "is empty"),
    ("sts-b", "sentence1\tsentence2\tscore\na\tb\tgood\n", r"line 2: 'good' is not a number"),
    ("sts-b", "sentence1\tsentence2\tscore\na\tb\tnan\n", r"line 2: 'nan' is not a number"),
    ("sts-b", "sentence1\tsentence2\tscore\na\tb\t3,5\n", "number from 0 to 5; write decimals be"),
    ("sts-b", "sentence1\tsentence2\tscore\na\tb\t7\n", r"line 2: '7' is not a number from 0 to 5"),
    ("snli", "gold_label\tsentence1\tsentence2\n-\ta\tb\n", "is empty"),
])
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / "train.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(TASKS[name], tmp_path, "train")


def test_missing_files_splits_and_tasks(tmp_path):
    with pytest.raises(InputError, match="no scitail_1.0_dev.tsv or dev.tsv in"):
        TASKS["scitail"].path(str(tmp_path), "dev")
    with pytest.raises(InputError, match="no split 'train'; it has dev, test"):
        TASKS["ax"].split("train")
    with pytest.raises(InputError, match="no task 'coola'.*did you mean cola. The choices are co"):
        find_task("coola")
    assert find_task("CoLA") is TASKS["cola"] and find_task("SST2") is TASKS["sst-2"]


def test_tables_are_whole():
    for name, task in TASKS.items():
        assert task.name == name and task.headline == task.metrics[0]
        assert task.kind in KINDS.values()
        assert task.kind.has_labels == bool(task.labels)
        assert all(layout.size for layout in task.splits.values())
        assert task.model_of is None or task.labels == TASKS[task.model_of].labels


@pytest.mark.parametrize("name, row, texts, label", [
    ("boolq", {"question": "is it", "passage": "It is.", "idx": 0, "label": True},
     ["It is.", "is it"], "True"),
    ("cb", {"premise": "P", "hypothesis": "H", "label": "entailment"}, ["P", "H"], "entailment"),
    ("copa", {"premise": "He fell.", "choice1": "A", "choice2": "effect", "question": "cause",
              "label": 1, "idx": 0},
     ["He fell.", "What was the cause of this? A", "What was the cause of this? effect"], 1),
    ("copa", {"premise": "cause", "choice1": "A", "choice2": "B", "question": "effect", "label": 0},
     ["cause", "What happened as a result? A", "What happened as a result? B"], 0),
    ("superglue-rte", {"premise": "P", "hypothesis": "H", "label": "not_entailment"}, ["P", "H"],
     "not_entailment")])
def test_super_glue(name, row, texts, label, tmp_path):
    """Lines as those of super.gluebenchmark.com, and the texts of its baselines."""
    task = TASKS[name]
    (tmp_path / "val.jsonl").write_text(json.dumps(row) + "\n")
    example, = read(task, tmp_path, "dev")
    assert example.texts == texts
    assert (task.labels[example.label] if task.labels else example.label) == label
    del row["label"]
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n")
    assert read(task, tmp_path, "test")[0].texts == texts


TAGGED = """-DOCSTART- -X- O O

EU NNP B-NP I-ORG
rejects VBZ B-VP O
Berlin NNP I-NP I-LOC
Paris NNP I-NP B-LOC
\xa0x NNP I-NP I-LOC


-DOCSTART- -X- O O

End . O I-PER
"""


def test_tagged_words(tmp_path):
    (tmp_path / "train.txt").write_text(TAGGED, encoding="utf-8")
    task = TASKS["conll2003"]
    examples = read(task, tmp_path, "train")
    assert [e.texts for e in examples] == [["EU", "rejects", "Berlin", "Paris", "\xa0x"], ["End"]]
    assert [[task.labels[tag] for tag in e.label] for e in examples] == [
        ["B-ORG", "O", "B-LOC", "B-LOC", "I-LOC"], ["B-PER"]]
    assert examples[0].document != examples[1].document
    (tmp_path / "train.txt").write_text("a O\n\n\nb O\n\nc O\n")     # as it writes them itself
    first, second, third = (e.document for e in read(task, tmp_path, "train"))
    assert first != second == third
    # Lines that are no words do not say how many columns words have.
    for start in ("\n", "-DOCSTART-\n\n"):
        (tmp_path / "train.txt").write_text(start + TAGGED, encoding="utf-8")
        assert [e[:2] for e in read(task, tmp_path, "train")] == [e[:2] for e in examples]


@pytest.mark.parametrize("content, message", [
    ("a O\nb\n", "line 2 has 1 column where there must be 2"),
    ("a\nb\n", "line 1 has 1 column where there must be 2"),
    ("a O\n\nb O\nc PER\nd B-PER\n", "sentence of line 3: the tag 'PER' is neither O nor a pos"),
    ("a O\n\nb I-X\n", "line 3: label 'B-X' is none of O, B-LOC"),
    ("-DOCSTART- O\n\n", "is empty"),
])
def test_bad_tagged_words(tmp_path, content, message):
    (tmp_path / "eng.train").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        task = TASKS["conll2003"]
        two = dataclasses.replace(task.splits["train"], label=1)
        read(dataclasses.replace(task, splits={"train": two}), tmp_path, "train")


def test_the_headline_of_own_files_is_chosen():
    flags = TaskFlags(train_file="a.csv", text_a_column="t", label_column="l")
    for headline, metrics in (("", ("accuracy", "macro_f1", "matthews")),
                              ("macro_f1", ("macro_f1", "accuracy", "matthews"))):
        task = dataclasses.replace(flags, headline=headline).read_task()
        assert task.metrics == metrics and task.headline == metrics[0]
    with pytest.raises(InputError, match="--headline=f1: .* accuracy, macro_f1, matthews"):
        dataclasses.replace(flags, headline="f1").read_task()


def test_own_files(tmp_path):
    (tmp_path / "a.csv").write_text('body,folder\n"x, y",10\nz,9\nw,10\n', encoding="utf-8")
    (tmp_path / "t.csv").write_text("body\nq\n", encoding="utf-8")
    task = own_task("classification", {"train": "a.csv", "test": "t.csv"}, ["body"], "folder")
    task = discover_labels(task, "train", task.path(str(tmp_path), "train"))
    assert task.labels == ("9", "10")
    (tmp_path / "b.csv").write_text("body,folder\nx,1\nx, 1\nx,01\nx, 0\nx,0\n", encoding="utf-8")
    same = own_task("classification", {"train": "b.csv"}, ["body"], "folder")
    assert discover_labels(same, "train", str(tmp_path / "b.csv")).labels == (
        "0", "01", "1")     # in every process; without blanks
    assert read(task, tmp_path, "train") == [
        Example(["x, y"], 1), Example(["z"], 0), Example(["w"], 1)]
    assert read(task, tmp_path, "test") == [Example(["q"], 0)]


def test_own_files_with_several_labels(tmp_path):
    lines = [{"t": "x", "l": ["b", "a"]}, {"t": "y", "l": []}, {"t": "z", "l": "c, a"},
             {"t": "n", "l": None}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    task = own_task("multi_label", {"train": "a.jsonl"}, ["t"], "l")
    task = discover_labels(task, "train", task.path(str(tmp_path), "train"))
    assert task.labels == ("a", "b", "c") and task.headline == "micro_f1"
    assert [e.label for e in read(task, tmp_path, "train")] == [[1, 1, 0], [0, 0, 0], [1, 0, 1],
                                                              [0, 0, 0]]
    (tmp_path / "a.jsonl").write_text('{"t": "x", "l": ["b", null]}', encoding="utf-8")
    with pytest.raises(InputError, match="a.jsonl, line 1 has null in its list of labels"):
        read(task, tmp_path, "train")


@pytest.mark.parametrize("file, content, columns, message", [
    *(("a.jsonl", f'{{"t": "x", "l": "a"}}\n{{"t": "y", "l": {label}}}', ("t", "l"), message)
      for label, message in (
          ('["a", "b"]', "line 2: the label is a list; give --multi_label"),
          ('" [\'a\', \'b\']"', "line 2: the label is a list; give --multi_label"),
          ('""', "line 2 has no label"), ("null", "line 2 has no label"))),
    ("a.jsonl", '{"q": "who?", "choices": ["a", "b"], "right": 1}', ("q", "right", "choices"),
     "line 1 has .'a', 'b'. .*each choice a key of its own"),
    ("a.csv", "body,folder\nx,a\ny,b\n", ("1", "folder"),
     "a.csv: column 'folder' is the text and also the label"),
    ("a.csv", "folder,body\na,x\nb,y\n", ("body", "-1"), "column '-1' is the text and also the"),
    ("a.csv", "q,a,b\nwho?,x,0\n", ("q", "b", "a", "b"), "column 'b' is the text and also the la"),
    ("a.tsv", "t\tl\nx\t1\ny\t1\n", ("t", "l"), "holds only 1 label;"),
    *(("a.txt", "\nthe\nend\n", ("0", column), f"line 2: column {column} of 1 holds the words")
      for column in ("-1", "0"))])
def test_what_is_not_one_label_beside_a_text(tmp_path, file, content, columns, message):
    (tmp_path / file).write_text(content, encoding="utf-8")
    kind = "tagging" if file == "a.txt" else "classification"
    text, label, *choices = columns
    task = own_task("multiple_choice" if choices else kind, {"train": file}, [text], label,
                    choices=choices)
    with pytest.raises(InputError, match=message):
        read(discover_labels(task, "train", str(tmp_path / file)), tmp_path, "train")


def test_what_an_annotator_of_prodigy_did_not_accept_is_left_out(tmp_path):
    rows = [{"text": name, "label": "xy"[place % 2], "_task_hash": place, "answer": answer}
            for place, (name, answer) in enumerate(
                [("a", "accept"), ("b", "accept"), ("c", "reject"), ("d", "ignore")])]
    rows += [{"text": "e", "label": "y", "answer": "reject"}]       # a column of this name
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = own_task("classification", {"train": "a.jsonl"}, ["text"], "label", labels=("x", "y"))
    omissions = Omissions()
    assert [example.texts for example in read(task, tmp_path, "train", omissions)] == [
        ["a"], ["b"], ["e"]]
    assert omissions.without_label == 2


def test_an_unknown_label_is_told_of_without_all_others():
    with pytest.raises(InputError, match="'x' is none of 0, 1, .*, 99 and 1,900 more; correct"):
        label_id("x", {str(number): number for number in range(2000)}, "a.csv, line 2")


def test_a_file_of_columns_is_told_of_in_a_few_words(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(
        {"t": {str(row): "word " * 50 for row in range(99)}, "l": {"0": "x"}}))
    task = own_task("classification", {"train": "a.json"}, ["t"], "l", labels=("x", "y"))
    with pytest.raises(InputError, match=r"line 1 has .* pandas writes rows with to_json") as error:
        read(task, tmp_path, "train")
    assert len(str(error.value)) < 500


def test_own_tags_that_are_no_entities(tmp_path):
    (tmp_path / "pos.txt").write_text("the\tDT\nend\tNN\n\nnow\tRB", encoding="utf-8")
    task = own_task("tagging", {"train": "pos.txt"}, ["0"], "1")
    task = discover_labels(task, "train", task.path(str(tmp_path), "train"))
    assert task.labels == ("DT", "NN", "RB") and task.metrics == ("tag_accuracy",)
    assert [e.label for e in read(task, tmp_path, "train")] == [[0, 1], [2]]
    (tmp_path / "pos.txt").write_text("\n")
    with pytest.raises(InputError, match="pos.txt holds no example with a label; name"):
        discover_labels(own_task("tagging", {"train": "pos.txt"}, ["0"], "1"), "train",
                        str(tmp_path / "pos.txt"))


@pytest.mark.parametrize("arguments, message", [
    (("classification", {}, ["t"], "l"), "no file is named"),
    (("classification", {"train": "a.text"}, ["t"], "l"), "a.text must have the extension .tsv"),
    (("classification", {"train": "/"}, ["t"], "l"), "/ is a folder; name a file in it"),
    (("classification", {"train": "a.tsv"}, ["t"], None), "--label_column must be given"),
    (("multiple_choice", {"train": "a.tsv"}, ["t"], "l"), "--choice_columns must be given"),
])
def test_own_files_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        own_task(*arguments)


def test_a_folder_that_its_library_saved_is_named_at_once(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "data-00000-of-00001.arrow").touch()
    for folder in map(str, (tmp_path, tmp_path / "train")):
        for read in (lambda folder: own_task("classification", {"train": folder}, ["t"], "l"),
                     lambda folder: example_files.form_of(folder, None, "")):     # to predict
            with pytest.raises(InputError, match="train/data-.*is Arrow, .*JSON lines .datasets"):
                read(folder)


@pytest.mark.parametrize("flags, kind, message", [
    ({"train_file": "a.txt", "text_b_column": "1"}, "tagging", "--text_b_column is for two texts"),
    ({"labels": ["x", "y", ""]}, "classification", "--labels=x,y,: a label is empty"),
    ({"labels": ["x", "y"]}, "regression", "--labels names labels, and regression has none"),
    ({"labels": ["x", "y"], "choice_columns": ["c"]}, "multiple_choice", "--labels names labels"),
    ({"header": False}, "classification", "--header=false is for .tsv and .csv"),
    ({"train_file": "a.conllu", "header": False}, "tagging", "--header=false is for .tsv")])
def test_flags_of_other_files_are_refused(flags, kind, message):
    """Before, they were ignored."""
    given = {"train_file": "a.jsonl", "text_a_column": "0", "label_column": "1", **flags}
    with pytest.raises(InputError, match=message):
        TaskFlags(**given).read_task(kind)


@pytest.mark.parametrize("style, has_negatives, is_used", [
    ("bert", True, False), ("cmrc", False, False), ("albert", False, False),
    ("albert", True, True), ("electra", False, True)])
def test_flags_of_beams_are_for_heads_with_beams(style, has_negatives, is_used):
    options = {"squad_style": style, "version_2_with_negative": has_negatives}
    for name in ("start_n_top", "end_n_top"):
        with contextlib.nullcontext() if is_used else pytest.raises(
                InputError, match=f"--{name} is for heads that predict ends from starts"):
            SquadFlags(**{name: 3}).with_options(SQUAD[False], options)
    with contextlib.nullcontext() if has_negatives else pytest.raises(
            InputError, match="is for --version_2_with_negative"):
        SquadFlags(null_score_diff_threshold=0.5).with_options(SQUAD[False], options)


@pytest.mark.parametrize("name, content, rows", [
    ("a.csv", "t,l\nx,1\ny\nz,2\nt,l\nw,1\n", [0, 2, 4]),
    ("a.jsonl", '{"t": "x", "l": 1}\n{"t": null, "l": 2}\n'
     '{"t": "y", "l": 1, "_task_hash": 3, "answer": "reject"}\n{"t": "z", "l": 2}\n', [0, 3]),
    ("a.txt", "x 1\ny 1 1\n\nz 2\n", [0, 1])])
def test_predictions_have_the_numbers_of_the_rows(tmp_path, name, content, rows):
    """Also after rows that give no example; sentences are counted."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    kind, labels = ("tagging", ("O", "1", "2")) if name == "a.txt" else ("classification", "12")
    task = own_task(kind, {"dev": name}, ["0" if kind == "tagging" else "t"],
                    "-1" if kind == "tagging" else "l", labels=labels)
    source = Source(task, "dev", str(tmp_path / name), skip_malformed_lines=True)
    predictions = SplitPredictions(source)
    assert len(predictions.examples) == len(rows)
    assert list(predictions._numbers()) == rows


def test_no_prediction_is_lost_if_a_file_gets_shorter_meanwhile(tmp_path):
    path, lines = tmp_path / "a.csv", ["t,l", "x,1", "y", "z,2", "w,1"]
    path.write_text("\n".join(lines), encoding="utf-8")
    task = own_task("classification", {"dev": "a.csv"}, ["t"], "l", labels="12")
    predictions = SplitPredictions(Source(task, "dev", str(path), skip_malformed_lines=True))
    answers = {"probabilities": np.eye(2)[[0, 1, 0]]}
    assert len(predictions.examples) == 3
    path.write_text("\n".join(lines[:4]), encoding="utf-8")
    with pytest.raises(ValueError, match="longer than argument 1"):
        predictions.write(str(tmp_path), answers, np.array([0, 1, 0]), False)
    assert not (tmp_path / "dev_predictions.jsonl").exists()


def test_text_that_is_none(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": "x", "l": 1}\n{"t": null, "l": 2}\n{"l": 2}\n',
                                      encoding="utf-8")
    task = own_task("classification", {"train": "a.jsonl"}, ["t"], "l", labels=("1", "2"))
    with pytest.raises(InputError, match="line 2 has None where text must be"):
        read(task, tmp_path, "train")
    omissions = Omissions(skip_malformed=True)
    assert len(read(task, tmp_path, "train", omissions)) == 1 and omissions.malformed == 2


@pytest.mark.parametrize("second", [
    {"q": "b", "a0": "x", "r": 0}, {"q": "b", "a0": "x", "a1": "", "r": 0},
    {"q": "b", "a0": "x", "a1": "y", "a2": "z", "r": 0}])
def test_rows_with_another_number_of_choices(tmp_path, second):
    rows = [{"q": "a", "a0": "x", "a1": "y", "r": 1}, second]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = own_task("multiple_choice", {"train": "a.jsonl"}, ["q"], "r", choices=["a*"])
    with pytest.raises(InputError, match="a.jsonl, line 2 (has no 'a1'|does not have 2 choices)"):
        read(task, tmp_path, "train")
    omissions = Omissions(skip_malformed=True)
    assert read(task, tmp_path, "train", omissions) == [Example(["a", "x", "y"], 1)]
    assert omissions.malformed == 1


def test_shares_of_a_file_are_nested(tmp_path):
    lines = [f"text {i}\t{i % 2}" for i in range(235)]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("\n".join(["a\ty", *lines]) + "\n")

    def texts(**flags):
        own = TaskFlags(data_dir=str(tmp_path), train_file="train.tsv", dev_file="dev.tsv",
                        text_a_column="a", label_column="y", **flags)
        train, dev = own.find_sources(own.read_task(), [])
        assert len(list(dev.examples())) == 235
        return [example.texts[0] for example in train.examples()]

    taken = {}
    for seed in range(3):
        taken[seed] = [texts(train_fraction=share, train_fraction_seed=seed)
                       for share in (0.1, 0.5, 1.0)]
        assert [len(found) for found in taken[seed]] == [23, 117, 235]
        for small, large in zip(taken[seed], taken[seed][1:]):
            assert [text for text in large if text in set(small)] == small      # in their order
    assert taken[0][0] != taken[1][0]
    for flags, message in (({"train_fraction": 0.005}, "leaves 1 examples .*none with the "),
                           ({"train_fraction": 0.0}, "--train_fraction is 0.0"),
                           ({"train_fraction": 1.5}, "--train_fraction is 1.5")):
        with pytest.raises(InputError, match=message):
            texts(**flags)


def test_files_may_be_in_a_folder_of_the_task(tmp_path):
    (tmp_path / "STS-B").mkdir()
    (tmp_path / "STS-B" / "dev.tsv").touch()
    assert TASKS["sts-b"].path(str(tmp_path), "dev") == str(tmp_path / "STS-B" / "dev.tsv")
    (tmp_path / "dev.tsv").touch()
    assert TASKS["sts-b"].path(str(tmp_path), "dev") == str(tmp_path / "dev.tsv")
    with pytest.raises(InputError, match="no train.tsv in .* .the train file of sts-b.; name"):
        TASKS["sts-b"].path(str(tmp_path), "train")
    # As download_glue_data.py of nyu-mll/GLUE-baselines names them, and as GLUE's address does.
    (tmp_path / "diagnostic").mkdir()
    for name in ("AX.tsv", "diagnostic.tsv"):
        (tmp_path / "diagnostic" / name).touch()
        assert TASKS["ax"].path(str(tmp_path), "test") == str(tmp_path / "diagnostic" / name)
    own = own_task("classification", {"train": "a.tsv"}, ["a"], "b")
    with pytest.raises(InputError, match="no a.tsv in .* .the train file.; name"):
        own.path(str(tmp_path), "train")


NAMES = "a.csv: line 1 is read as the names of columns, but has the label {!r}; if it is an"
NUMBERS = "give --task_kind=regression"
ALIKE = "a.csv: the labels {} and {} look alike"


@pytest.mark.parametrize("kind, name, column, labels, said, is_said", [
    *(("classification", "b", column, ["b", "e", "b"], NAMES.format("b"), column == "1")
      for column in ("1", "b")),
    *(("regression", name, "1", ["1", "2", "4.5"], NAMES.format(name), name == "0.5")
      for name in ("0.5", "stars")),
    *(("classification", "l", "l", labels, NUMBERS, is_said) for labels, is_said in (
        (["1.5", "2", "-3e2"], True), (["1", "2"], False), (["1.0", "2.0"], False),
        (["1.5", "b"], False), (["nan", "1.5"], False))),
    *(("classification", "l", "l", ["a", "b", label], f"{label!r} is learned as a label", is_said)
      for label, is_said in (("nan", True), ("#N/A", True), ("None", False))),
    *(("classification", "l", "l", ["Yes", "b", label],
       ALIKE.format(*map(ascii, sorted(["Yes", label]))), is_said) for label, is_said in (
        ("yes", True), ("Yes\u200b", True), ("\uff39es", True), ("Yes not", False),
        ("Yes.", False)))])
def test_odd_labels_are_told(tmp_path, capsys, kind, name, column, labels, said, is_said):
    (tmp_path / "a.csv").write_text(f"t,{name}\n" + "".join(f"x,{label}\n" for label in labels),
                                    encoding="utf-8")
    task = own_task(kind, {"train": "a.csv"}, ["t"], column)
    task = discover_labels(task, "train", str(tmp_path / "a.csv"))
    assert set(task.labels) == (set(labels) if kind == "classification" else set())
    assert len(read(task, tmp_path, "train")) == len(labels)
    assert (said in capsys.readouterr().err) == is_said


# IMDB, and tasks in Korean and Chinese

def labelled(task, split, folder):
    found = read_examples(task, split, task.path(str(folder), split))
    return [(example.texts, example.label) for example in found]


@pytest.fixture(name="reviews")
def fixture_reviews(tmp_path):
    """A folder like aclImdb."""
    for name, text in (("train/pos/0_9.txt", "Good.<br /><br />Really “good”.\n"),
                       ("train/neg/1_1.txt", "Bad!"), ("train/neg/0_3.txt", " So\nso "),
                       ("train/unsup/0_0.txt", "Who knows?"), ("test/pos/0_8.txt", "Fine"),
                       ("test/neg/0_2.txt", "Poor"), ("train/labeledBow.feat", "9 0:9")):
        path = tmp_path / "aclImdb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "aclImdb"


def test_imdb_is_read_as_by_xlnet(reviews):
    """run_classifier.py of zihangdai/xlnet: stripped, tags of line ends are blanks, neg first."""
    task = find_task("IMDB")
    for folder in (reviews, reviews.parent):
        assert labelled(task, "train", folder) == [
            (["So\nso"], 0), (["Bad!"], 0), (["Good.  Really “good”."], 1)]
        assert labelled(task, "dev", folder) == [(["Poor"], 0), (["Fine"], 1)]
    for folder in ("train/neg", "other/train"):     # of other data
        (reviews.parent / folder).mkdir(parents=True)
    assert task.path(str(reviews.parent), "train") == str(reviews / "train")
    with pytest.raises(InputError, match=r"there is no train/neg/\*.txt in .*other' \(the train"):
        task.path(str(reviews.parent / "other"), "train")
    (reviews / "train" / "pos" / "0_9.txt").unlink()
    with pytest.raises(InputError, match="train has no folder pos with files"):
        labelled(task, "train", reviews)


def test_the_test_set_is_scored_in_place_of_a_dev_set(reviews):
    flags = TaskFlags(task="imdb", data_dir=str(reviews))
    assert list(flags.find(find_task("imdb"), True, True, False)[0]) == ["train", "dev"]
    with pytest.raises(InputError, match="--do_predict: imdb has no test file of its own"):
        flags.find(find_task("imdb"), False, False, True)


def test_rows_have_no_tags_of_line_ends_either(tmp_path):
    task = Task("own", "classification", {"train": Split(
        ("a.jsonl",), ("text",), "label", format="jsonl", line_break="<br />")}, ("neg", "pos"))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": " a<br />b ", "label": "pos"}))
    assert labelled(task, "train", tmp_path) == [(["a b"], 1)]


@pytest.mark.parametrize("name, rows, text", [
    ("imdb", "tfds:imdb_reviews", "text"), ("nsmc", "hf://datasets/e9t/nsmc", "document")])
def test_a_library_has_the_test_set_in_place_of_a_dev_set(name, rows, text):
    splits = placed(find_task(name), rows).splits
    assert {split: (layout.files, layout.texts) for split, layout in splits.items()} == {
        "train": ((f"{rows}:train",), (text,)), "dev": ((f"{rows}:test",), (text,))}


@pytest.mark.parametrize("name, file, content, wanted", [
    ("nsmc", "ratings_test.txt", 'id\tdocument\tlabel\n1\t"재미 있다\t1\n2\t\t0\n',
     [(['"재미 있다'], 1), ([""], 0)]),
    ("korsts", "sts-dev.tsv", "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
     "main-captions\tMSRvid\t2012test\t0\t4.750\t아이가\t아이\n", [(["아이가", "아이"], 4.75)]),
    ("kornli", "xnli.dev.ko.tsv", "sentence1\tsentence2\tgold_label\n그\t나\tneutral\n",
     [(["그", "나"], 2)]),
    ("chnsenticorp", "dev.tsv", "label\ttext_a\n1\t不错\n", [(["不错"], 1)]),
    ("lcqmc", "dev.tsv", "text_a\ttext_b\tlabel\n开初\t开始\t0\n", [(["开初", "开始"], 0)])])
def test_files_of_other_languages(tmp_path, name, file, content, wanted):
    (tmp_path / file).write_text(content, encoding="utf-8")
    task = find_task(name)
    assert labelled(task, "dev", tmp_path) == wanted
    assert all(layout.label is not None for layout in task.splits.values())
