"""Small official files of tasks, and the same sets as the libraries have them: written by
tensorflow_datasets' own builders, and as Parquet files with the columns of the Hub's sets."""

import functools
import json
import os
import pathlib

import lazy_loader

from bert_tf.tasks import task as tasks
from bert_tf.tasks.named import XNLI_LANGUAGES

datasets = lazy_loader.load("datasets")     # tests of other libraries need none of it
COMMIT = "a" * 40
NLI = ("entailment", "neutral", "contradiction")
BOOLEANS = ("False", "True")
PASSAGE = "Ann met Bo in Rome.\n@highlight\nBo left\n@highlight\nAnn stayed"


def _jsonl(folder, *splits):
    names = ("train", "val", "test") if len(splits) == 3 else (folder,)
    return {f"{folder}/{name}.jsonl": "".join(
        json.dumps({"idx": number, **row}) + "\n" for number, row in enumerate(rows))
        for name, rows in zip(names, splits, strict=True)}


def _hidden(rows):
    return [{key: value for key, value in row.items() if key != "label"} for row in rows]


def _pairs(columns, *labels):
    return [{**{column: f"{column} {number} «é»" for column in columns}, "label": label}
            for number, label in enumerate(labels)]


def _wsc(text, first, second, label):
    return {"text": text, "label": label, "target": {
        "span1_index": first[0], "span1_text": first[1], "span2_index": second[0],
        "span2_text": second[1]}}


def _multirc(first, labels):
    """A passage with two questions, whose numbers begin at `first`."""
    labels = iter(labels)
    return {"idx": first, "passage": {
        "text": f"<b>Sent 1: </b>A cat {first}.<br><b>Sent 2: </b>A dog.<br>", "questions": [
            {"idx": 2 * first + number, "question": f"who {number}?", "answers": [
                {"idx": 4 * first + 2 * number + place, "text": f"it is {place}",
                 "label": next(labels)} for place in range(2)]} for number in range(2)]}}


def _without_answers(row):
    for question in row["passage"]["questions"]:
        question["answers"] = _hidden(question["answers"])
    return row


def _record(first, answered=True):
    """A passage with entities of which one is named twice, and two queries."""
    spans = [(0, 2), (8, 9), (14, 17), (31, 32), (50, 52)]
    queries = (("@placeholder went away", ("Bo", "Bo")), ("in @placeholder", ("Rome",)))
    return {"idx": first, "passage": {"text": PASSAGE, "entities": [
        {"start": start, "end": end} for start, end in spans]}, "qas": [
            {"idx": 2 * first + number, "query": query,
             **({"answers": [{"start": 8, "end": 9, "text": text} for text in texts]}
                if answered else {})} for number, (query, texts) in enumerate(queries)]}


WIC = [{"word": "bat", "sentence1": "a bat flew", "sentence2": "my bats", "start1": 2, "end1": 5,
        "start2": 3, "end2": 7, "label": True},
       {"word": "b", "sentence1": "b c", "sentence2": "d b", "start1": 0, "end1": 1, "start2": 2,
        "end2": 3, "label": False}]
WSC = [_wsc("the cat saw it , but it hid", (0, "The cat"), (6, "it"), False),
       _wsc("a use of it", (0, "a"), (3, "it"), True)]
_COPA = [{"premise": f"p{number}", "question": question, "choice1": "x", "choice2": "y",
          "label": number} for number, question in enumerate(("cause", "effect"))]
_BOOLQ = _pairs(("question", "passage"), True, False, True)
_CB = _pairs(("premise", "hypothesis"), "neutral", "entailment", "contradiction")
_ENTAILS = _pairs(("premise", "hypothesis"), "not_entailment", "entailment")
_SENTENCES = _pairs(("sentence1", "sentence2"), "not_entailment", "entailment")


def _squad(version, count):
    """Two articles, one with two paragraphs; in v2.0 every second question has no answer."""
    found, number = [], 0
    for title, contexts in (("Ann_B", ("Ann met Bo  in Rome. ", "Bo left.")), ("Ann_C", ("C d.",))):
        paragraphs = []
        for context in contexts:
            asked = []
            for _ in range(count):
                number += 1
                word = context.split()[0]
                impossible = {"is_impossible": number % 2 == 0} if version == 2 else {}
                asked.append({"id": f"q{number}", "question": f"who  is {number}?", **impossible,
                              "answers": [] if impossible.get("is_impossible") else [
                                  {"text": word, "answer_start": 0}] * (1 + number % 2)})
            paragraphs.append({"context": context, "qas": asked})
        found.append({"title": title, "paragraphs": paragraphs})
    return json.dumps({"version": str(version), "data": found})


def _race(split):
    return {f"RACE/{split}/{part}/{number}.txt": json.dumps({
        "id": f"{part}{number}.txt", "article": f"The article {number}.",
        "questions": ["It is _ .", "What is it?"], "answers": ["B", "D"],
        "options": [[f"{part} {letter}" for letter in "abcd"], list("efgh")]})
        for part in ("high", "middle") for number in (9, 10)}


def _tagged(*sentences):
    return "-DOCSTART- -X- -X- O\n\n" + "".join("".join(
        f"{word} NN I-NP {tag}\n" for word, tag in zip(*sentence)) + "\n" for sentence in sentences)


_TAGGED = [(("Ann", "met", "Bo", "Co"), ("B-PER", "O", "B-ORG", "I-ORG")), (("Rome",), ("B-LOC",))]


def _xnli(split):
    rows = ["language\tgold_label\tsentence1\tsentence2\tpairID"]
    rows += [f"{language}\t{label}\t{language} {split} \"{number}\t{language} b\t{number}"
             for language in XNLI_LANGUAGES for number, label in enumerate(NLI)]
    return "\n".join(rows) + "\n"


def _tsv(*rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def _glue(folder, columns, label, values):
    """Train, dev and test files whose texts differ by split."""
    found = {}
    for split in ("train", "dev", "test"):
        rows = [[str(number), *(f"{split} {column} «{number}»" for column in columns), value]
                for number, value in enumerate(values)]
        head = ["index", *columns, label]
        cut = len(head) - (split == "test")
        found[f"{folder}/{split}.tsv"] = _tsv(head[:cut], *(row[:cut] for row in rows))
    return found


def _cola():
    found = {f"CoLA/{split}.tsv": _tsv(*(["x", label, "*", f"{split} a \"{label}\""]
                                        for label in "10")) for split in ("train", "dev")}
    return {**found, "CoLA/test.tsv": _tsv(("index", "sentence"), ("0", "A b."), ("1", "C \"d"))}


def _mnli():
    found = _glue("MNLI", ("sentence1", "sentence2"), "gold_label", NLI)
    return {"MNLI/train.tsv": found["MNLI/train.tsv"], **{
        f"MNLI/{split}_{part}.tsv": found[f"MNLI/{split}.tsv"].replace(split, part)
        for split in ("dev", "test") for part in ("matched", "mismatched")}}


# Of each task the official files.
FILES = {
    "cola": _cola(),
    "mrpc": {f"MRPC/{split}.tsv": _tsv(
        ("index" if split == "test" else "Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
        *((label, "1", "2", f"{split} \"{label}", "b") for label in "10"))
        for split in ("train", "dev", "test")},
    "snli": {f"SNLI/snli_1.0_{split}.txt": _tsv(
        ("gold_label", "sentence1", "sentence2"),
        *((label, f"{split} {label}", "b") for label in (*NLI, "-")))
        for split in ("train", "dev", "test")},
    "sst-2": _glue("SST-2", ("sentence",), "label", "01"),
    "sts-b": _glue("STS-B", ("sentence1", "sentence2"), "score", ("2.5", "5.000")),
    "qqp": _glue("QQP", ("question1", "question2"), "is_duplicate", "10"),
    "mnli": _mnli(),
    "qnli": _glue("QNLI", ("question", "sentence"), "label", ("not_entailment", "entailment")),
    "rte": _glue("RTE", ("sentence1", "sentence2"), "label", ("not_entailment", "entailment")),
    "wnli": _glue("WNLI", ("sentence1", "sentence2"), "label", "01"),
    "boolq": _jsonl("BoolQ", _BOOLQ, _BOOLQ[:2], _hidden(_BOOLQ)),
    "cb": _jsonl("CB", _CB, _CB[1:], _hidden(_CB)),
    "copa": _jsonl("COPA", _COPA, _COPA[::-1], _hidden(_COPA)),
    "multirc": _jsonl("MultiRC", [_multirc(0, (1, 0, 0, 1)), _multirc(1, (0, 0, 1, 1))],
                      [_multirc(0, (1, 1, 1, 0))],
                      [_without_answers(_multirc(n, (0, 0, 0, 0))) for n in range(6)]),
    "record": _jsonl("ReCoRD", [_record(0), _record(1)], [_record(0)],
                     [_record(n, False) for n in range(6)]),
    "superglue-rte": _jsonl("RTE", _ENTAILS, _ENTAILS[:1], _hidden(_ENTAILS)),
    "wic": _jsonl("WiC", WIC, WIC[:1], _hidden(WIC)),
    "wsc": _jsonl("WSC", WSC, WSC[:1], _hidden(WSC)),
    "ax-b": _jsonl("AX-b", _SENTENCES),
    "ax-g": _jsonl("AX-g", _ENTAILS),
    "race": {name: text for split in ("train", "dev", "test")
             for name, text in _race(split).items()},
    "conll2003": {f"CoNLL2003/{name}": text for names, text in (
        (("train.txt", "eng.train"), _tagged(*_TAGGED)),
        (("valid.txt", "eng.testa"), _tagged(_TAGGED[1])),
        (("test.txt", "eng.testb"), _tagged(_TAGGED[0]))) for name in names},
    "xnli": {**{f"XNLI/XNLI-1.0/xnli.{split}.tsv": _xnli(split) for split in ("dev", "test")},
             "XNLI/XNLI-MT-1.0/multinli/multinli.train.en.tsv": _tsv(
                 ("premise", "hypo", "label"), ("a", "b", "contradictory"), ("c", "d", "neutral"))},
    "xnli-de": {f"XNLI/XNLI-1.0/xnli.{split}.tsv": _xnli(split) for split in ("dev", "test")} | {
        "XNLI/XNLI-MT-1.0/multinli/multinli.train.de.tsv": _tsv(
            ("premise", "hypo", "label"), ("e", "f", "entailment"), ("g", "h", "neutral"))},
    "squad": {f"SQuAD/{split}-v1.1.json": _squad(1, count)
              for split, count in (("train", 3), ("dev", 2))},
    "squad_v2": {f"SQuAD/{split}-v2.0.json": _squad(2, count)
                 for split, count in (("train", 3), ("dev", 2))},
    "triviaqa": {
        "TriviaQA/evidence/wikipedia/Ann.txt": "The city of  Rome is old. " * 2,
        "TriviaQA/evidence/wikipedia/Bo.txt": "Bo lives in rome.",
        **{f"TriviaQA/qa/wikipedia-{split}.json": json.dumps({"Domain": "Wikipedia", "Data": [
            {"QuestionId": f"{split}_{number}", "Question": f"what {number}?",
             "Answer": {"Aliases": ["Rome", "Roma"], "NormalizedAliases": ["rome", "roma"]},
             "EntityPages": [{"Filename": f"{name}.txt"} for name in ("Ann", "Bo")[number:]]}
            for number in range(2)]}) for split in ("train", "dev")}},
    "swag": {f"SWAG/{split}.csv": "".join(",".join(row) + "\n" for row in (
        ("video-id", "sent1", "sent2", *(f"ending{n}" for n in range(4)), "label")[:-1 if split ==
            "test" else None], ("v", f"{split} a", "he", "x", "y", "z", "w", "2")[:-1 if split ==
                "test" else None])) for split in ("train", "val", "test")},
}
# Its data set in tensorflow_datasets, and on the Hub.
TFDS = {"sst-2": "glue/sst2", "sts-b": "glue/stsb",
        "superglue-rte": "super_glue/rte", "ax-b": "super_glue/axb", "ax-g": "super_glue/axg",
        **{name: f"glue/{name}" for name in ("cola", "qqp", "mnli", "qnli", "rte", "wnli")},
        **{name: f"super_glue/{name}" for name in (
            "boolq", "cb", "copa", "multirc", "record", "wic", "wsc")}}
HUB = {**{name: f"aps/{of}" for name, of in TFDS.items() if of.startswith("super_glue")},
       "cola": "nyu-mll/glue/cola", "mrpc": "nyu-mll/glue/mrpc", "mnli": "nyu-mll/glue/mnli",
       "sts-b": "nyu-mll/glue/stsb", "snli": "stanfordnlp/snli",
       "race": "ehovy/race", "conll2003": "eriktks/conll2003", "xnli": "facebook/xnli",
       "xnli-de": "facebook/xnli",
       "triviaqa": "mandarjoshi/trivia_qa/rc.wikipedia",
       "squad": "rajpurkar/squad", "squad_v2": "rajpurkar/squad_v2", "swag": "allenai/swag/regular"}


def write_files(task, folder):
    for name, text in FILES[task].items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(folder)


def write_tfds(task, files, folder, monkeypatch):
    """Has tensorflow_datasets' own builders read the official files as what they downloaded, and
    write its format into a folder; returns the name of the set."""
    import tensorflow_datasets as tfds
    from etils import epath
    with monkeypatch.context() as patch:
        patch.setattr(tfds.download.DownloadManager, "download_and_extract",
                      lambda self, what: epath.Path(files))
        tfds.builder(TFDS[task], data_dir=str(folder)).download_and_prepare(
            download_config=tfds.download.DownloadConfig(compute_stats="skip"))
    # The library reads TFDS_DATA_DIR once, when it is imported.
    monkeypatch.setattr(tfds, "load", functools.partial(
        tfds.load, data_dir=str(folder), download=False))
    return f"tfds:{TFDS[task]}"


def _official(task, name):
    return [json.loads(line) for line in FILES[task][name].splitlines()]


def _hub_splits(task):
    string, integer = datasets.Value("string"), datasets.Value("int32")
    many = datasets.List

    def classes(*names):
        return datasets.ClassLabel(names=list(names))

    def lines(columns, label=(), flat=lambda row: [row], further=()):
        folder = next(iter(FILES[task])).partition("/")[0]
        features = datasets.Features({**dict.fromkeys(columns, string), "idx": integer,
                                      **dict(further), **({"label": classes(*label)}
                                                          if label else {})})
        config = HUB[task].rpartition("/")[2]
        for split, name in (("train", "train"), ("validation", "val"), ("test", "test")):
            path = f"{folder}/{name}.jsonl"
            path = path if path in FILES[task] else f"{folder}/{folder}.jsonl"
            if path != f"{folder}/{folder}.jsonl" or split == "test":
                rows = [{key: _class(value, label) if key == "label" else value
                         for key, value in {"label": -1, **row}.items() if key in features}
                        for line in _official(task, path) for row in flat(line)]
                yield (config, split), (rows, features)

    return dict({
        "boolq": lambda: lines(("question", "passage"), BOOLEANS),
        "cb": lambda: lines(("premise", "hypothesis"), ("entailment", "contradiction", "neutral")),
        "copa": lambda: lines(("premise", "choice1", "choice2", "question"),
                              ("choice1", "choice2")),
        "superglue-rte": lambda: lines(("premise", "hypothesis"), ("entailment", "not_entailment")),
        "ax-b": lambda: lines(("sentence1", "sentence2"), ("entailment", "not_entailment")),
        "ax-g": lambda: lines(("premise", "hypothesis"), ("entailment", "not_entailment")),
        "wic": lambda: lines(("word", "sentence1", "sentence2"), BOOLEANS, further=dict.fromkeys(
            ("start1", "start2", "end1", "end2"), integer)),
        "wsc": lambda: lines(("text", "span1_text", "span2_text"), BOOLEANS,
                             lambda row: [{**row, **row["target"]}],
                             dict.fromkeys(("span1_index", "span2_index"), integer)),
        "multirc": lambda: lines(("paragraph", "question", "answer"), BOOLEANS, _flat_multirc, {
            "idx": dict.fromkeys(("paragraph", "question", "answer"), integer)}),
        "record": lambda: lines(("passage", "query"), (), _flat_record, {
            "idx": dict.fromkeys(("passage", "query"), integer), "entities": many(string),
            "answers": many(string), "entity_spans": {
                "text": many(string), "start": many(integer), "end": many(integer)}}),
        **{name: lambda: _hub_table(task) for name in _TABLES},
        "race": _hub_race, "conll2003": _hub_conll2003, "xnli": _hub_xnli, "xnli-de": _hub_xnli,
        "squad": lambda: _hub_squad("v1.1"), "squad_v2": lambda: _hub_squad("v2.0"),
        "swag": _hub_swag, "triviaqa": _hub_trivia_qa}[task]())


def _class(value, names):
    """The number of a class."""
    return names.index(value) if isinstance(value, str) else int(value)


def _flat_multirc(row):
    for question in row["passage"]["questions"]:
        for answer in question["answers"]:
            yield {"paragraph": row["passage"]["text"], "question": question["question"],
                   "answer": answer["text"], "label": answer.get("label", -1), "idx": {
                       "paragraph": row["idx"], "question": question["idx"],
                       "answer": answer["idx"]}}


def _flat_record(row):
    text = row["passage"]["text"]
    spans = [(entity["start"], entity["end"] + 1) for entity in row["passage"]["entities"]]
    texts = [text[start:end] for start, end in spans]
    for query in row["qas"]:
        yield {"passage": text, "query": query["query"], "entities": sorted(set(texts)),
               "answers": sorted({answer["text"] for answer in query.get("answers", ())}),
               "entity_spans": {"text": texts, "start": [start for start, _ in spans],
                                "end": [end for _, end in spans]},
               "idx": {"passage": row["idx"], "query": query["idx"]}}


# Of a set with the columns of a table: its columns, its classes, and where the file has its texts
# and its label.
_TABLES = {
    "cola": (("sentence",), ("unacceptable", "acceptable"), slice(-1, None), 1),
    "mrpc": (("sentence1", "sentence2"), ("not_equivalent", "equivalent"), slice(-2, None), 0),
    "mnli": (("premise", "hypothesis"), NLI, slice(1, 3), 3),
    "sts-b": (("sentence1", "sentence2"), (), slice(1, 3), 3),
    "snli": (("premise", "hypothesis"), NLI, slice(1, 3), 0)}


def _hub_table(task):
    columns, names, texts, place = _TABLES[task]
    config = HUB[task].partition("/glue/")[2]
    label = datasets.ClassLabel(names=list(names)) if names else datasets.Value("float32")
    features = datasets.Features({**dict.fromkeys(columns, datasets.Value("string")),
                                  "label": label})
    for path, text in FILES[task].items():
        split = path.partition("/")[2].rpartition(".")[0].removeprefix("snli_1.0_")
        has_label = task == "snli" or not split.startswith("test")
        rows = [line.split("\t") for line in text.splitlines()]
        rows = rows if task == "cola" and has_label else rows[1:]
        values = [row[place] if has_label and row[place] != "-" else "-1" for row in rows]
        yield (config, split.replace("dev", "validation")), ([
            {**dict(zip(columns, row[texts])),
             "label": names.index(value) if value in names else float(value)}
            for row, value in zip(rows, values)], features)


def _hub_race():
    string = datasets.Value("string")
    features = datasets.Features({**dict.fromkeys(("example_id", "article", "answer", "question"),
                                                  string), "options": datasets.List(string)})
    for split in ("train", "dev", "test"):
        rows = [{"example_id": article["id"], "article": article["article"], "answer": answer,
                 "question": question, "options": options}
                for name, text in reversed(FILES["race"].items())
                if f"/{split}/" in name for article in [json.loads(text)]
                for question, options, answer in zip(
                    article["questions"], article["options"], article["answers"])]
        yield ("all", {"dev": "validation"}.get(split, split)), (rows, features)


def _hub_conll2003():
    names = ["O", *(f"{place}-{name}" for name in ("PER", "ORG", "LOC", "MISC") for place in "BI")]
    features = datasets.Features({
        "id": datasets.Value("string"), "tokens": datasets.List(datasets.Value("string")),
        "ner_tags": datasets.List(datasets.ClassLabel(names=names))})
    for split, sentences in (("train", _TAGGED), ("validation", _TAGGED[1:]),
                             ("test", _TAGGED[:1])):
        yield ("", split), ([{"id": str(number), "tokens": list(words),
                              "ner_tags": [names.index(tag) for tag in tags]}
                             for number, (words, tags) in enumerate(sentences)], features)


def _hub_xnli():
    features = datasets.Features({"premise": datasets.Value("string"), "hypothesis": datasets.Value(
        "string"), "label": datasets.ClassLabel(names=list(NLI))})
    for split, name in (("dev", "validation"), ("test", "test")):
        rows = [line.split("\t") for line in _xnli(split).splitlines()[1:]]
        for language in ("de", "en"):
            yield (language, name), ([
                {"premise": row[2], "hypothesis": row[3], "label": NLI.index(row[1])}
                for row in rows if row[0] == language], features)
    for language, *rows in (("en", ("a", "b", 2), ("c", "d", 1)),
                            ("de", ("e", "f", 0), ("g", "h", 1))):
        yield (language, "train"), ([dict(zip(("premise", "hypothesis", "label"), row))
                                     for row in rows], features)


def _hub_squad(version):
    string = datasets.Value("string")
    features = datasets.Features({
        **dict.fromkeys(("id", "title", "context", "question"), string),
        "answers": {"text": datasets.List(string),
                    "answer_start": datasets.List(datasets.Value("int32"))}})
    for split, name in (("train", "train"), ("dev", "validation")):
        task = {"v1.1": "squad", "v2.0": "squad_v2"}[version]
        articles = json.loads(FILES[task][f"SQuAD/{split}-{version}.json"])["data"]
        yield ("", name), ([
            {"id": asked["id"], "title": article["title"], "context": paragraph["context"],
             "question": asked["question"], "answers": {
                 key: [answer[key] for answer in asked["answers"]]
                 for key in ("text", "answer_start")}}
            for article in articles for paragraph in article["paragraphs"]
            for asked in paragraph["qas"]], features)


def _hub_swag():
    columns = ("video-id", "sent1", "sent2", *(f"ending{number}" for number in range(4)))
    features = datasets.Features({
        **dict.fromkeys(columns, datasets.Value("string")),
        "label": datasets.ClassLabel(names=list("0123"))})
    for split, name in (("train", "train"), ("val", "validation"), ("test", "test")):
        cells = FILES["swag"][f"SWAG/{split}.csv"].splitlines()[1].split(",")
        yield ("regular", name), ([{**dict(zip(columns, cells)), "label": int(
            cells[7]) if len(cells) > 7 else -1}], features)


def _hub_trivia_qa():
    string, many = datasets.Value("string"), datasets.List(datasets.Value("string"))
    features = datasets.Features({
        **dict.fromkeys(("question", "question_id"), string),
        "entity_pages": {"filename": many, "wiki_context": many},
        "search_results": {"filename": many, "search_context": many},
        "answer": {"aliases": many, "normalized_aliases": many, "value": string}})
    for split, name in (("train", "train"), ("dev", "validation")):
        found = json.loads(FILES["triviaqa"][f"TriviaQA/qa/wikipedia-{split}.json"])["Data"]
        yield ("rc.wikipedia", name), ([
            {"question": row["Question"], "question_id": row["QuestionId"],
             "entity_pages": {"filename": (names := [page["Filename"] for page in row[
                 "EntityPages"]]), "wiki_context": [
                     FILES["triviaqa"][f"TriviaQA/evidence/wikipedia/{name}"] for name in names]},
             "search_results": {"filename": [], "search_context": []},
             "answer": {"aliases": row["Answer"]["Aliases"], "value": "x",
                        "normalized_aliases": row["Answer"]["NormalizedAliases"]}}
            for row in found], features)


def hide_official_files(monkeypatch):
    """As where a data set of the Hub has none."""
    there = tasks.match_names
    for known, local in (("is_file", os.path.isfile), ("is_folder", os.path.isdir), (
            "match_names", lambda path, *names: [] if str(path).startswith("hf:") else there(
                path, *names))):
        monkeypatch.setattr(tasks, known, local)


def write_hub(task, folder, monkeypatch):
    """Writes a set of the Hub as Parquet files, which the library itself reads; returns its name.
    """
    load, name = datasets.load_dataset, "/".join(HUB[task].split("/")[:2])
    for (config, split), (rows, features) in _hub_splits(task).items():
        path = pathlib.Path(folder, name, config, f"{split}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_list(rows, features).to_parquet(str(path))

    def from_disk(name, config, split, revision, streaming):
        assert revision == COMMIT and not streaming     # it is read several times
        return load("parquet", data_files={split: str(
            pathlib.Path(folder, name, config or "", f"{split}.parquet"))}, split=split,
            streaming=True)

    hide_official_files(monkeypatch)
    monkeypatch.setattr(datasets, "load_dataset", from_disk)
    monkeypatch.setattr(datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", False)
    config = HUB[task].removeprefix(name)
    return f"hf://datasets/{name}@{COMMIT}{config}"
