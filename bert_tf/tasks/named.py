"""The named tasks, each a row with its official files and their sizes.

GLUE as gluebenchmark.com distributes it (arXiv:1804.07461, table 1), SuperGLUE as
super.gluebenchmark.com does, SNLI (nlp.stanford.edu/projects/snli), SciTail
(allenai.org/data/scitail), SWAG (github.com/rowanz/swagaf, data), RACE
(cs.cmu.edu/~glai1/data/race), CoNLL-2003 (clips.uantwerpen.be/conll2003/ner) and SQuAD. XNLI
(arXiv:1809.05053) and its machine translations are XNLI-1.0.zip and XNLI-MT-1.0.zip of
github.com/facebookresearch/XNLI, PAWS-X (arXiv:1908.11828) x-final.tar.gz of
github.com/google-research-datasets/paws. IMDB (aclanthology.org/P11-1015) is
ai.stanford.edu/~amaas/data/sentiment. In Korean: NSMC (github.com/e9t/nsmc), KorSTS and KorNLI
(arXiv:2004.03289, github.com/kakaobrain/KorNLUDatasets). In Chinese: ChnSentiCorp and LCQMC
(aclanthology.org/C18-1166) as in the data of ERNIE (arXiv:1904.09223, table 1)."""

import dataclasses
import os
import re

from bert_tf.errors import InputError, choose_from
from bert_tf.files import is_library_name
from bert_tf.files.places import HUB, TFDS
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.libraries import has_configuration, pinned_name
from bert_tf.tasks.task import Defaults, Split, Task, named_folder

_SENTENCES = ("sentence1", "sentence2")
_BINARY = ("0", "1")
_MNLI = ("contradiction", "entailment", "neutral")      # the order of the original
_ENTAILMENT = ("entailment", "not_entailment")
_GLUE_FILES = {split: (f"{split}.tsv",) for split in ("train", "dev", "test")}


def _glue(name, texts, labels, sizes, submissions, *, kind="classification", label="label",
          files=None, train_dev=None, **fields):
    """Makes a task of GLUE, from the size of each of `files`, {split: possible names}; the server's
    names for the predictions of test files, which have no labels; and fields of `Split` that differ
    between test files and `train_dev` files."""
    splits, submissions = {}, iter(submissions)
    for (split, names), size in zip((files or _GLUE_FILES).items(), sizes, strict=True):
        if split.startswith("test"):
            layout = {"texts": texts, "submission": next(submissions)}
        else:
            layout = {"texts": texts, "label": label, **(train_dev or {})}
        splits[split] = Split(files=names, size=size, **layout)
    return Task(name, KINDS[kind], splits, labels, **fields)


def _inference(name, file, sizes, labels, without_label=None, **layout):
    """Makes SNLI or SciTail; `file` is a split's official file name, with {} for the split."""
    splits = {split: Split((file.format(split), f"{split}.tsv"), size=size, **layout)
              for split, size in zip(_GLUE_FILES, sizes, strict=True)}
    return Task(name, KINDS["classification"], splits, labels, without_label=without_label)


def _labelled(name, kind, texts, label, files, labels=(), **fields):
    return Task(name, KINDS[kind], {split: Split((file,), texts, label, size=size)
                                    for split, (file, size) in files.items()}, labels, **fields)


def _super_glue(name, folder, texts, labels, sizes, *, kind="classification", choices=(), words=(),
                format="jsonl", **fields):
    """Makes a task of SuperGLUE: JSON lines, whose test file has no labels. `folder`: the name of
    its predictions, and of the file with labels that the model of another task answers. `sizes`: of
    the three files, or of the one with labels."""
    layout = {"choices": choices, "words": words, "format": format}
    files = {"train": "train.jsonl", "dev": "val.jsonl", "test": "test.jsonl"}
    if len(sizes) == 1:
        files, sizes = dict.fromkeys(("dev", "test"), f"{folder}.jsonl"), 2 * sizes
    splits = {split: Split((file,), texts, "label", size=size, **layout)
              for (split, file), size in zip(files.items(), sizes, strict=True)}
    splits["test"] = dataclasses.replace(splits["test"], label=None, submission=f"{folder}.jsonl")
    # nyu-mll/jiant, jiant/config/superglue_bert.conf.
    return Task(name, KINDS[kind], splits, labels, defaults=Defaults(256, 4, 1e-5, 10.0), **fields)


# English comes first: a model that learned from it is chosen by its score there.
XNLI_LANGUAGES = ("en", "ar", "bg", "de", "el", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur",
                   "vi", "zh")
_PAWS_X_LANGUAGES = ("en", "de", "es", "fr", "ja", "ko", "zh")


def _in(folder, *names):
    """The names of files, and those in the folder that the official archive makes."""
    return (*names, *(f"{folder}/{name}" for name in names))


def _xnli(name, train="", languages=XNLI_LANGUAGES, translated=False, **fields):
    """Makes XNLI: a split for each language's examples of a file. `train`: the language of the
    training file; "" if another task's model answers. `translated`: whether the examples are
    machine translations into English, all in one file or in a file for each language."""
    splits = {}
    if train:
        splits["train"] = Split(
            _in("XNLI-MT-1.0", f"multinli/multinli.train.{train}.tsv"), ("premise", "hypo"),
            "label", size=392702, words=(("label", "contradictory", "contradiction"),))
    for split, size in (("dev", 2490), ("test", 5010)):
        for language in languages:
            files = _in("XNLI-1.0", f"xnli.{split}.tsv")
            if translated:
                files = _in("XNLI-MT-1.0", f"xnli/xnli.{split}.{language}.tsv",
                            f"xnli/xnli.{split}.en.tsv")
            splits[f"{split}_{language}"] = Split(files, _SENTENCES, "gold_label", size=size,
                                                  only=("language", language))
    return Task(name, KINDS["classification"], splits, _MNLI, folder_of="xnli", **fields)


def _paws_x(name, train="en", languages=_PAWS_X_LANGUAGES):
    """Makes PAWS-X, whose languages have a folder each; `train` is the training file's language."""
    layout = {"texts": _SENTENCES, "label": "label"}
    file = "train.tsv" if train == "en" else "translated_train.tsv"
    splits = {"train": Split(_in("x-final", f"{train}/{file}"), size=49401, **layout)}
    splits |= {f"{split}_{language}": Split(_in("x-final", f"{language}/{split}_2k.tsv"),
                                            size=2000, **layout)
               for split in ("dev", "test") for language in languages}
    return Task(name, KINDS["classification"], splits, _BINARY, folder_of="paws-x",
                label_names=("different", "paraphrase"))


# The questions of the baselines of SuperGLUE (nyu-mll/jiant, COPA).
_COPA = (("question", "cause", "What was the cause of this?"),
         ("question", "effect", "What happened as a result?"))
_PREMISE = ("premise", "hypothesis")
_BOOLEAN = ("False", "True")
_TWICE = tuple(f"{part}{number}" for number in "12" for part in ("before", "marked", "after"))
TASKS = {task.name: task for task in (
    _glue("cola", ("sentence",), _BINARY, (8551, 1043, 1063), ("CoLA.tsv",),
          label_names=("unacceptable", "acceptable"),
          metrics=("matthews", "accuracy"), train_dev={"header": False, "texts": (3,), "label": 1}),
    _glue("sst-2", ("sentence",), _BINARY, (67349, 872, 1821), ("SST-2.tsv",),
          label_names=("negative", "positive")),
    _glue("mrpc", ("#1 String", "#2 String"), _BINARY, (3668, 408, 1725), ("MRPC.tsv",),
          metrics=("f1", "accuracy"), label="Quality",
          label_names=("not_equivalent", "equivalent")),
    _glue("sts-b", _SENTENCES, (), (5749, 1500, 1379), ("STS-B.tsv",),
          metrics=("pearson", "spearman"), kind="regression", label="score", bounds=(0, 5)),
    # The sizes of QQP-clean.zip; in the archive before it a few lines of train and dev are broken.
    _glue("qqp", ("question1", "question2"), _BINARY, (363846, 40430, 390965), ("QQP.tsv",),
          metrics=("f1", "accuracy"), label="is_duplicate", train_dev={"is_broken": True},
          label_names=("not_duplicate", "duplicate")),
    _glue("mnli", _SENTENCES, _MNLI, (392702, 9815, 9832, 9796, 9847),
          ("MNLI-m.tsv", "MNLI-mm.tsv"), label="gold_label", files={
              split: (f"{split}.tsv",) for split in (
                  "train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched")}),
    _glue("qnli", ("question", "sentence"), _ENTAILMENT, (104743, 5463, 5463), ("QNLI.tsv",)),
    # QNLI's first version, two lines per question, to be ranked; sizes count pairs.
    _glue("qnnli", ("question", "sentence"), _ENTAILMENT, (54218, 2866, 2870), ("QNLI.tsv",),
          kind="ranking", metrics=KINDS["ranking"].own_metrics, folder_of="qnli"),
    _glue("rte", _SENTENCES, _ENTAILMENT, (2490, 277, 3000), ("RTE.tsv",)),
    _glue("wnli", _SENTENCES, _BINARY, (635, 71, 146), ("WNLI.tsv",),
          label_names=("not_entailment", "entailment")),
    _glue("wnli-ranking", _SENTENCES, _BINARY, (635, 71, 146), ("WNLI.tsv",),
          kind="pronoun_ranking", label_names=("not_entailment", "entailment"), folder_of="wnli"),
    _glue("ax", _SENTENCES, _MNLI, (1104, 1104), ("AX.tsv",), metrics=("matthews", "accuracy"),
          model_of="mnli", folder_of="diagnostic", files={
              "dev": ("diagnostic-full.tsv",), "test": ("diagnostic.tsv", "AX.tsv")},
          train_dev={"texts": ("Premise", "Hypothesis"), "label": "Label"}),
    # SuperGLUE (arXiv:1905.00537, table 1), with the sizes of the files.
    _super_glue("boolq", "BoolQ", ("passage", "question"), _BOOLEAN, (9427, 3270, 3245)),
    _super_glue("cb", "CB", _PREMISE, ("contradiction", "entailment", "neutral"), (250, 56, 250),
                metrics=("macro_f1", "accuracy")),
    _super_glue("copa", "COPA", ("premise", "question"), (), (400, 100, 500),
                kind="multiple_choice", choices=("choice1", "choice2"), words=_COPA),
    # Sizes of MultiRC count answers; sizes of ReCoRD count queries.
    _super_glue("multirc", "MultiRC", ("paragraph", "answer"), _BINARY, (27243, 4848, 9693),
                kind="answer_set", metrics=("f1", "group_em"), format="multirc"),
    _super_glue("record", "ReCoRD", ("passage", "query"), _BINARY, (100730, 10000, 10000),
                kind="cloze", metrics=("f1", "em"), format="record"),
    _super_glue("wic", "WiC", _TWICE, _BOOLEAN, (5428, 638, 1400), kind="word_in_context",
                format="wic"),
    _super_glue("wsc", "WSC", _TWICE, _BOOLEAN, (554, 104, 146), kind="coreference", format="wsc"),
    # A masked LM ranks the possible referents of the pronouns.
    _super_glue("wsc-ranking", "WSC", _TWICE, _BOOLEAN, (554, 104, 146), kind="pronoun_ranking",
                format="wsc", folder_of="wsc"),
    _super_glue("superglue-rte", "RTE", _PREMISE, _ENTAILMENT, (2490, 277, 3000), folder_of="rte"),
    _super_glue("ax-b", "AX-b", _SENTENCES, _ENTAILMENT, (1104,), metrics=("matthews", "accuracy"),
                model_of="superglue-rte"),
    _super_glue("ax-g", "AX-g", _PREMISE, _ENTAILMENT, (356,),
                metrics=("accuracy", "gender_parity"), model_of="superglue-rte"),
    # "-" marks a pair on which the annotators disagreed; the official counts leave it out.
    _inference("snli", "snli_1.0_{}.txt", (549367, 9842, 9824), _MNLI, without_label="-",
               texts=_SENTENCES, label="gold_label"),
    # The folder tsv_format of SciTailV1.1. Quotes are plain characters: read as CSV quotes, they
    # leave 23,097 training examples.
    _inference("scitail", "scitail_1.0_{}.tsv", (23596, 1304, 2126), ("entails", "neutral"),
               texts=(0, 1), label=2, header=False),
    Task("swag", KINDS["multiple_choice"],
         {split: Split((f"{file}.csv",), ("sent1", "sent2"), label, ("ending*",), "csv", size=size)
          for split, file, label, size in (("train", "train", "label", 73546),
                                           ("dev", "val", "label", 20006),
                                           ("test", "test", None, 20005))},
         defaults=Defaults(train_batch_size=16)),
    Task("race", KINDS["multiple_choice"],
         {split: Split((split,), (), "answers", format="race", size=size)
          for split, size in (("train", 87866), ("dev", 4887), ("test", 4934))},
         defaults=Defaults(max_seq_length=512)),    # articles have about 300 words
    Task("conll2003", KINDS["tagging"],
         {split: Split(files, (0,), -1, format="words", header=False, size=size)
          for split, size, files in (("train", 14041, ("eng.train", "train.txt")),
                                     ("dev", 3250, ("eng.testa", "valid.txt", "dev.txt")),
                                     ("test", 3453, ("eng.testb", "test.txt")))},
         ("O", *(f"{place}-{name}" for name in ("LOC", "MISC", "ORG", "PER") for place in "BI")),
         metrics=("entity_f1", "entity_precision", "entity_recall", "tag_accuracy")),
    # Learned from English alone; the other two ways of arXiv:1809.05053 translate the training set
    # or the test set.
    _xnli("xnli", "en"),
    _xnli("xnli-translate-test", languages=XNLI_LANGUAGES[1:], translated=True, model_of="xnli"),
    *(_xnli(f"xnli-{language}", language, (language,)) for language in XNLI_LANGUAGES[1:]),
    _paws_x("paws-x"),
    *(_paws_x(f"paws-x-{language}", language, (language,)) for language in _PAWS_X_LANGUAGES[1:]),
    # IMDB and NSMC have no dev set; the test set is read in place of one.
    Task("imdb", KINDS["classification"],
         {split: Split((folder,), ("text",), "label", format="folders", size=25000,
                       line_break="<br />") for split, folder in (("train", "train"),
                                                                  ("dev", "test"))},
         ("neg", "pos"), folder_of="aclImdb", defaults=Defaults(max_seq_length=512)),
    _labelled("nsmc", "classification", ("document",), "label", {
        "train": ("ratings_train.txt", 150000), "dev": ("ratings_test.txt", 50000)}, _BINARY,
              label_names=("negative", "positive")),
    _labelled("korsts", "regression", _SENTENCES, "score", {
        "train": ("sts-train.tsv", 5749), "dev": ("sts-dev.tsv", 1500),
        "test": ("sts-test.tsv", 1379)}, metrics=("spearman", "pearson"), bounds=(0, 5)),
    # Users join both official training files to train.tsv (docs/languages.md).
    _labelled("kornli", "classification", _SENTENCES, "gold_label", {
        "train": ("train.tsv", 942854), "dev": ("xnli.dev.ko.tsv", 2490),
        "test": ("xnli.test.ko.tsv", 5010)}, _MNLI),
    _labelled("chnsenticorp", "classification", ("text_a",), "label", {
        "train": ("train.tsv", 9600), "dev": ("dev.tsv", 1200), "test": ("test.tsv", 1200)},
              _BINARY, label_names=("negative", "positive")),
    _labelled("lcqmc", "classification", ("text_a", "text_b"), "label", {
        "train": ("train.tsv", 238766), "dev": ("dev.tsv", 8802), "test": ("test.tsv", 12500)},
              _BINARY, label_names=("different", "same")),
)}
# The names in help and errors; one name covers the tasks in single languages.
TASK_NAMES = [name for name in TASKS if name.rpartition("-")[2] not in XNLI_LANGUAGES + (
    *_PAWS_X_LANGUAGES,)] + ["xnli-LANGUAGE", "paws-x-LANGUAGE"]

def _questions(name, version, sizes, metrics, defaults):
    files = {split: f"{split}-{version}.json" for split in ("train", "dev")}
    return Task(name, KINDS["span"], {
        split: Split((file,), ("question", "context"), "answers", format="squad", size=size)
        for (split, file), size in zip(files.items(), sizes, strict=True)}, metrics=metrics,
        defaults=defaults, folder_of="squad")


# Answers in paragraphs, by version_2_with_negative (arXiv:1810.04805, sections 4.2 and 4.3).
SQUAD = {
    False: _questions("squad", "v1.1", (87599, 10570), ("f1", "exact_match"),
                      Defaults(384, 32, 5e-5, 3.0)),
    True: _questions("squad_v2", "v2.0", (130319, 11873), ("f1", "exact"),
                     Defaults(384, 48, 5e-5, 2.0)),
}
# TriviaQA; suites train on its questions of Wikipedia (arXiv:1810.04805, section 4.2).
TRIVIA_QA = Task("triviaqa", KINDS["span"], {
    split: Split((os.path.join("qa", f"wikipedia-{split}.json"),), ("question", "context"),
                 "answers", format="squad") for split in ("train", "dev")},
    metrics=("f1", "exact_match"), defaults=SQUAD[False].defaults)
# All tasks that suites know.
OF_SUITES = {**TASKS, **{task.name: task for task in (*SQUAD.values(), TRIVIA_QA)}}


def find_questions(name: str) -> Task | None:
    """Returns SQuAD or TriviaQA by a name such as squad1.1; None for other names."""
    return {"squad": SQUAD[False], "squad11": SQUAD[False], "squad2": SQUAD[True],
            "squad20": SQUAD[True], "triiaqa": TRIVIA_QA}.get(re.sub(r"[-_ .v]", "", name.lower()))


def find_task(name: str) -> Task:
    """Finds a task by name, ignoring case and hyphens."""
    plain = name.lower().replace("-", "")
    for known, task in TASKS.items():
        if known.replace("-", "") == plain:
            return task
    if find_questions(name):
        raise InputError(f"{name} is a task of bert-finetune; here SQuAD's files are named by "
                         "--train_file and --dev_file.")
    raise InputError(f"there is no task {name!r}; {choose_from(name, TASK_NAMES)[:-1]}, or "
                     "describe your own file with --text_a_column and --label_column.")


def layout_of(name: str) -> Split | None:
    """How the cells of a named task's official files are read; None for other names."""
    return next(iter(TASKS[name].splits.values()), None) if name in TASKS else None


def find_folder(data_dir: str, name: str, remedy: str) -> str:
    """Returns the folder of a named task's files in `data_dir`, or the name of its data set.
    `remedy`: completes the error: put the files there, or ... Raises InputError if there is no such
    folder or data set."""
    own = OF_SUITES[name].folder_of or name
    if folder := named_folder(data_dir, name, own):
        return folder
    if is_library_name(data_dir):
        return configuration(data_dir, OF_SUITES[name])
    raise InputError(f"--data_dir: {data_dir!r} has no folder {own} for the task {name}; name the "
                     f"folder that holds it, put the official files there, or {remedy}.")


# Tasks whose examples are rows of a library's data set in place of official files, as GLUE's in
# tensorflow_datasets and on the Hugging Face Hub: where columns have other names.
_TEXTS = {"cola": ("sentence",), "mrpc": ("sentence1", "sentence2"),
          **dict.fromkeys(("mnli", "ax", "snli", "scitail", "xnli"), _PREMISE)}
_OF_LANGUAGES = ("xnli", "paws-x")      # a configuration for each language
# Data sets with a configuration for each task, and where it has another name than the task.
_SUITES = ("glue", "super_glue")
_CONFIGURATIONS = {"sst-2": "sst2", "sts-b": "stsb", "ax-b": "axb", "ax-g": "axg",
                   "superglue-rte": "rte", "wnli-ranking": "wnli", "wsc-ranking": "wsc"}
# Further names of classes, and the labels of the official files.
_CLASSES = {"paws-x": {"different_meaning": "0"}}
_ALONE = ("race", "swag", "conll2003", "snli", "scitail", "imdb", "nsmc", *_OF_LANGUAGES)
# Dev sets with another name than validation; where there is none, the test set is read.
_DEV = dict.fromkeys(("imdb", "nsmc"), "test")
# Tasks that tensorflow_datasets lacks, or has in another form.
_HUB_ALONE = {"conll2003", "nsmc", "race", "squad", "squad_v2", "swag", "triviaqa", *_OF_LANGUAGES}
# Tasks that are separate data sets next to the data set that --data_dir names.
_SQUAD = {"squad": "v1.1", "squad_v2": "v2.0"}
# Tasks that SuperGLUE's tasks may begin with.
_BEFORE_SUPER_GLUE = {"mnli": f"{HUB}nyu-mll/glue/mnli", "swag": f"{HUB}allenai/swag/regular"}
_TRIVIA_QA = f"{HUB}mandarjoshi/trivia_qa/rc.wikipedia"
# Formats whose columns a library renames; lines of others are made of its rows.
_TABLES = ("tsv", "csv", "folders")


def placed(task: Task, data_dir: str) -> Task:
    """Returns a task with the splits of a data set where `data_dir` names one and has no official
    files; else the task as it is. Raises InputError if the library has no such rows of the task."""
    if not is_library_name(data_dir) or any(task.has_file(data_dir, name) for name in task.splits):
        return task
    if data_dir.startswith(TFDS) and _group(task) in _HUB_ALONE:
        raise InputError(f"--data_dir: {task.name} is not read from tensorflow_datasets; name the "
                         f"data set of the Hub, {HUB}OWNER/NAME, or the folder of the official "
                         "files.")
    if _last_name(data_dir) in _SUITES and _group(task) not in _ALONE:
        data_dir = configuration(data_dir, task)
    splits = {name: split for name, layout in task.splits.items()
              if (split := _split(task, name, layout, data_dir))}
    if not splits or not (task.model_of or "train" in splits):
        raise InputError(f"--data_dir: {data_dir} has no examples of {task.name}; give the folder "
                         "of its official files, or leave the task out.")
    return dataclasses.replace(task, splits=splits)


def with_rows(task: Task, name: str) -> Task:
    """Returns a task whose splits have the layout of rows where a split's file is named as a
    library's data set; else the task as it is."""
    if not is_library_name(name):
        return task
    return dataclasses.replace(task, splits={
        split: _split(task, split, layout, name) or layout
        for split, layout in task.splits.items()})


def configuration(data_dir: str, task: Task) -> str:
    """The name of a task's data set, in a suite of configurations or of several sets."""
    version = _SQUAD.get(pinned_name(data_dir))
    if task.name == "triviaqa":
        return _TRIVIA_QA
    if _last_name(data_dir) == "super_glue" and task.name in _BEFORE_SUPER_GLUE:
        return _BEFORE_SUPER_GLUE[task.name]
    if version not in (None, _SQUAD.get(task.name, version)):
        raise InputError(f"--data_dir: {data_dir} is version {version} of SQuAD, but {task.name} "
                         f"needs {_SQUAD[task.name]}; name the set without a version or a "
                         "revision, or leave the task out.")
    if _group(task) in _ALONE or has_configuration(data_dir):
        return data_dir
    if task.name not in _SQUAD:
        return f"{data_dir}/{_CONFIGURATIONS.get(task.name, task.name)}"
    if "@" in data_dir:
        return data_dir
    return data_dir.removesuffix("_v2") + task.name.removeprefix("squad")    # the Hub's two sets


def _split(task, name, layout, data_dir) -> Split | None:
    group = _group(task)
    part, mark, rest = name.partition("_")
    if task.model_of and layout.label is not None:
        if layout.format in _TABLES:
            return None     # the labels of AX, and translations of test sets, are in files alone
        part = "test"
    elif part == "dev":
        part = _DEV.get(group, "validation")
    if group in _OF_LANGUAGES:
        language = rest or task.name.removeprefix(group).removeprefix("-") or "en"
        return _layout(task, layout, f"{data_dir}/{language}:{part}")
    return _layout(task, layout, f"{data_dir}:{part}{mark}{rest}")


def _layout(task, layout, file):
    if layout.format not in _TABLES:
        return dataclasses.replace(layout, files=(file,))
    # A class has a name there where official files have a number; -1 is not a label.
    names = dict(zip(task.label_names, task.labels)) | _CLASSES.get(_group(task), {})
    words = [("label", *pair) for pair in names.items()]
    if task.without_label:
        words.append(("label", -1, task.without_label))
    return dataclasses.replace(
        layout, files=(file,), format="library", only=(),
        texts=_TEXTS.get(_group(task), layout.texts), words=(*layout.words, *words),
        label=None if layout.label is None else "label")


def _last_name(data_dir):       # without library, owner and version
    return data_dir.rpartition(":")[2].rpartition("/")[2].partition("@")[0]


def _group(task):
    return task.folder_of if task.folder_of in _OF_LANGUAGES else task.name
