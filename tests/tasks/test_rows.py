"""Rows of files, of lists in JSON files, and of tensorflow_datasets."""

import gzip
import json
import random
import sys
import types

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks import json_elements
from bert_tf.tasks import rows as rows_module
from bert_tf.tasks.rows import Omissions, Table, read_lines
from bert_tf.tasks.task import Split
from tests.programs import refused


def rows(path, columns, layout="tsv", header=True, omissions=None, are_choices=False):
    split = Split((str(path),), tuple(columns), format=layout, header=header)
    table = Table(str(path), split, omissions or Omissions())
    keys = table.keys(columns, are_choices=are_choices)
    return [(line, *(row[key] for key in keys)) for line, row in table]


@pytest.fixture
def write(tmp_path):
    def make(content, name="file.tsv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path
    return make


def test_only_line_feeds_end_lines(write):
    path = write("\ufeffa\rb\r\n\n\u2028\x85c\x0b\n\n\r\n\n")
    assert list(read_lines(path)) == [(1, "a\rb"), (2, ""), (3, "\u2028\x85c\x0b")]
    assert list(read_lines(write(gzip.compress(b"a\n\nb")))) == [(1, "a"), (2, ""), (3, "b")]


def test_a_line_without_end_is_refused(write, monkeypatch):
    """A small .gz may unpack to a line that fills the memory."""
    monkeypatch.setattr(rows_module, "_LONGEST_LINE", 1 << 20)
    path = write(gzip.compress(b"a\n" + b"b" * ((1 << 20) - 1) + b"\n" + bytes(1 << 21)))
    lines = read_lines(path)
    assert next(lines) == (1, "a") and len(next(lines)[1]) == (1 << 20) - 1
    with pytest.raises(InputError, match="line 3 has more than 1 MB"):
        next(lines)


def test_quotes_in_tsv_are_plain_characters(write):
    path = write('a\tb\n"x\ty"\n"\t""\nz\t\n')
    assert rows(path, ["b", "a"]) == [(2, 'y"', '"x'), (3, '""', '"'), (4, "", "z")]
    assert rows(path, [-1, "0"], header=False)[0] == (1, "b", "a")


def test_csv(write):
    path = write('id,ending0,"end,ing1"\r\n1,"a, ""b""\nc",d\r\n2,,"é"\r\n'
                 + f"3,{'x' * 200_000},\n")
    found = rows(path, ["id", "end*"], "csv")
    assert found[:2] == [(2, "1", 'a, "b"\nc', "d"), (4, "2", "", "é")]
    assert len(found[2][2]) == 200_000
    path = write('id,"a"\r\n1,"x\r\n\r\n\r\ny\n"\r\n2,z\r\n\r\n')
    assert rows(path, ["id", "a"], "csv") == [(2, "1", "x\r\n\r\n\r\ny\n"), (7, "2", "z")]
    # The names tell what separates the cells, as office programs of many countries write them.
    for mark in ";\t":
        path = write(f'id{mark}"a, b"\r\n1{mark}"x, ""y""\n{mark}"\n')
        assert rows(path, ["id", "a, b"], "csv") == [(2, "1", f'x, "y"\n{mark}')]
    assert rows(write("sep=|\na|b,\nc|d\n"), ["b,"], "csv") == [(3, "d")]
    assert rows(write("a;b\nc;d\n"), [0], "csv", header=False) == [(1, "a;b"), (2, "c;d")]
    with pytest.raises(InputError, match="it has 1 column, since only commas .* add such a line"):
        rows(write("a;b\nc;d\n"), [1], "csv", header=False)
    assert rows(write("a;b,c\nd,e\n"), ["c"], "csv") == [(2, "e")]


def test_columns_of_choices_have_one_order(write):
    names = [f"a{number}" for number in (10, 2, 0, 1)]
    cells = [name.upper() for name in names]
    for form, content in (("csv", ",".join(names) + "\n" + ",".join(cells)),
                          ("jsonl", json.dumps(dict(zip(names, cells))))):
        assert rows(write(content + "\n"), ["a*"], form)[0][1:] == ("A0", "A1", "A2", "A10")
    assert rows(write('{"a_yes": 1, "a_no": 2}\n'), ["a*"], "jsonl") == [(1, 2, 1)]
    assert rows(write("a_yes,a_no\n1,2\n"), ["a*"], "csv") == [(2, "1", "2")]
    assert rows(write("a-1,a-2,a-10\nx,y,z\n"), ["a*"], "csv") == [(2, "x", "y", "z")]
    for content, form in (("a,a1,a2\nx,y,0\n", "csv"), ('{"a1": "x", "a_right": "0"}\n', "jsonl")):
        with pytest.raises(InputError, match=r"line 1: a\* means .*a1, .* only a1.* have a number"):
            rows(write(content), ["a*"], form, are_choices=True)
        assert len(rows(write(content), ["a*"], form)[0]) > 2


@pytest.mark.parametrize("content, form", [
    ("text, label\nx, y\n", "csv"), ("text\tlabel\r\r\nx\ty\r\r\n", "tsv"),
    ('{"text": "x", " label": "y"}\n', "jsonl")])
def test_blanks_at_the_ends_of_a_name_need_not_be_written(write, content, form):
    (_, text, label), = rows(write(content), ["text", "label"], form)
    assert (text, label.strip()) == ("x", "y")


def test_a_name_of_two_columns_is_refused(write):
    path = write("text,label,label\na,b,c\n")
    assert rows(path, ["text", 2], "csv") == [(2, "a", "c")]
    with pytest.raises(InputError, match="line 1: 2 columns have the name 'label'; give the num"):
        rows(path, ["text", "label"], "csv")


@pytest.mark.parametrize("name, content, where", [
    ("a.tsv", "a\tb\n1\t2\n1\n1\t2\t3\n\n1\t2\n", ["line 3 has 1 column where there must be 2"]),
    ("a.csv", "a,b\n1,2\n1\n1,2,3\n\n1,2\n", ["line 3 has 1 column where there must be 2"]),
    ("c.csv", "a,b\n1,2\na,b\n1\n1,2,3\n1,2\n", ["line 3 repeats the names of the columns"]),
    ("a.jsonl", '{"a": 1, "b": 2}\n\n[]\n{"a"\n{"a": 1, "b": 2}\n',
     ["line 2 is not a JSON object"]),
    ("b.jsonl", '1\n{"a": 1, "b": 2}\n[]\nnull\n{"a": 1, "b": 2}\n',
     ["line 1 is not a JSON object"]),
])
def test_malformed_lines_are_named_or_counted(write, name, content, where):
    path = write(content, name)
    layout = name[2:]
    with refused(name, "--skip_malformed_lines", *where):
        rows(path, ["a", "b"], layout)
    omissions = Omissions(skip_malformed=True)
    assert len(rows(path, ["a", "b"], layout, omissions=omissions)) == 2
    assert omissions.malformed == 3


@pytest.mark.parametrize("name, content, columns, parts", [
    ("a.tsv", b"", ["a"], ["a.tsv is empty"]),
    ("a.tsv", b"\n\n", ["a"], ["a.tsv is empty"]),
    ("a.tsv", b"a\tb\n", ["a"], ["a.tsv is empty", "below its header"]),
    ("a.jsonl", b"", ["a"], ["a.jsonl is empty"]),
    ("a.tsv", b"a\tb\n1\t2\n", ["c"], ["a.tsv, line 1: there is no column 'c'", "are a, b"]),
    ("a.csv", b"7,b\n1,2\n", ["c"], ["no column 'c'; its columns are 7, b; if line 1 has no names, "
                                      "give --header=False"]),
    ("a.tsv", b'"a"\t"b"\n"1"\t"2"\n', ["a"], ["no column 'a'", "so name the file .csv"]),
    ("a.tsv", b'a\tb\n1\t"x\ny"\nz"\t\n', ["a"], ["line 3 has 1 column", "name the file .csv"]),
    ("a.tsv", b"a\tb\n1\t2\n", ["2"], ["there is no column '2'"]),
    ("a.csv", b"a,b\r1,2\r", ["a"], ["a.csv: its lines end with a carriage return alone"]),
    ("a.tsv", b"a\tb\n1\t2\n", ["c*"], ["there is no column 'c*'"]),
    ("a.jsonl", b'{"a": 1}', ["0"], ["there is no column '0'", "are a"]),
    ("a.tsv", b"a\tb\n1\t2\n1\t\xff\n", ["a"], ["a.tsv, line 3, byte 3 is not UTF-8"]),
    ("a.csv", b'a,b\n1,2\n1,"2\n3\n', ["a"], ["a.csv, line 3 is not CSV"]),
    ("a.csv", b'a,b\n1,"2"3\n', ["a"], ["a.csv, line 2 is not CSV"]),
    ("a.csv", b'"a"|b\n"1"|2\n', ["a"], ["line 1 is not CSV", "put a line such as sep=| before"]),
])
def test_refused(write, name, content, columns, parts):
    path = write(content, name)
    with refused(*parts):
        rows(path, columns, name[2:])


def test_tensorflow_datasets_in_small(monkeypatch):
    """The library's interface, retold: it is no dependency of the tests."""
    def load(name, split, with_info):
        assert (name, split, with_info) == ("glue/mrpc", "train", True)
        data = [{"s": "é".encode(), "label": np.int64(1), "all": np.array([1, 0])},
                {"s": b"b", "label": np.int64(-1), "all": np.zeros(0, int)}]
        label = types.SimpleNamespace(names=["no", "yes"])
        features = {"s": object(), "label": label, "all": types.SimpleNamespace(feature=label)}
        return data, types.SimpleNamespace(features=features)

    stub = types.SimpleNamespace(load=load, as_numpy=iter)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", stub)
    assert rows("glue/mrpc:train", ["s", "label", "all"], "tfds") == [
        (1, "é", "yes", ["yes", "no"]), (2, "b", -1, [])]


@pytest.mark.peer
def test_tensorflow_datasets(tmp_path, monkeypatch):
    """A data set that is built here, where the library is installed."""
    tfds = pytest.importorskip("tensorflow_datasets")
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))

    class SmallPairs(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({
                "s": tfds.features.Text(),
                "label": tfds.features.ClassLabel(names=["no", "yes"]),
                "all": tfds.features.Sequence(tfds.features.ClassLabel(names=["a", "b"]))}))

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            yield 0, {"s": "é", "label": "yes", "all": ["b", "a"]}

    SmallPairs(data_dir=str(tmp_path)).download_and_prepare()
    assert rows("small_pairs:train", ["s", "label", "all"], "tfds") == [(1, "é", "yes", ["b", "a"])]
    with pytest.raises(InputError, match="no split 'absent' of 'small_pairs'"):
        rows("small_pairs:absent", ["s"], "tfds")
    with pytest.raises(InputError, match="of 'no_such_data_set'"):
        rows("no_such_data_set:train", ["s"], "tfds")


def test_tensorflow_datasets_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(InputError, match="pip install"):
        rows("glue/mrpc:train", ["s"], "tfds")


# Lists in JSON files

def as_file(folder, text):
    path = folder / "file.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_elements_are_those_of_json(tmp_path, monkeypatch, block, indent):
    monkeypatch.setattr(json_elements, "_BLOCK", block)
    rng = random.Random(block)
    for size in (0, 1, 5):
        data = [rng.choice([1, -2.5e10, "é\\\"[]{}", None, [1, [2]], {"data": [3]}, {}, "中" * 9])
                for _ in range(size)]
        for before, after in (({}, {}), ({"a": 1.25}, {"x": [data]}), ({"a": {}}, {"b": 1.5})):
            path = as_file(tmp_path, json.dumps({**before, "data": data, **after}, indent=indent))
            assert list(json_elements.read_elements(path, "data")) == data


def test_reads_gzip_and_a_byte_order_mark(tmp_path):
    path = as_file(tmp_path, gzip.compress(b'\xef\xbb\xbf{"data": [1, 2]}\n'))
    assert list(json_elements.read_elements(path, "data")) == [1, 2]


def test_elements_come_before_the_file_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(json_elements, "_BLOCK", 4)
    elements = json_elements.read_elements(as_file(tmp_path, '{"data": [1, 2, 3, oh'), "data")
    assert [next(elements), next(elements), next(elements)] == [1, 2, 3]
    with pytest.raises(InputError, match="file.json"):
        next(elements)


def test_an_element_without_end_is_refused(tmp_path, monkeypatch):
    """A small .gz may unpack to an element that fills the memory."""
    monkeypatch.setattr(json_elements, "_BLOCK", 16)
    monkeypatch.setattr(json_elements, "_LONGEST_VALUE", 1 << 20)
    text = '{"data": [1, "' + "a" * (1 << 10) + '", "' + "b" * (1 << 23)
    elements = json_elements.read_elements(as_file(tmp_path, gzip.compress(text.encode())), "data")
    assert [next(elements), len(next(elements))] == [1, 1 << 10]
    with pytest.raises(InputError, match="an element has more than 1 million characters"):
        next(elements)


@pytest.mark.parametrize("wrong, line", [('"b', 5), ("'b'", 5), ('"b" "c"', 5), ('"b"}', 6)])
@pytest.mark.parametrize("block", [2, 1 << 20])
def test_the_line_of_an_error_is_that_of_the_file(tmp_path, monkeypatch, block, wrong, line):
    monkeypatch.setattr(json_elements, "_BLOCK", block)
    path = as_file(tmp_path, '[\n{"a": 1},\n{"a":\n 2},\n{"a": ' + wrong + "\n}]")
    with pytest.raises(InputError, match=rf"file.json is not a JSON list \(line {line}: "):
        list(json_elements.read_elements(path))


NO_LIST = "file.json is not a JSON object with a list 'data'"


@pytest.mark.parametrize("text, message", [*((text, NO_LIST) for text in (
    "", "[]", "{}", '{"data": 1}', '{"data": [1}', '{"data": [1,]}', '{"data": [1 2]}',
    '{"data": [1]', '{"data": [1', '{"data": [1]} x', '{"data": [], "data": []}', "plain text",
    '{"data" [1]}', '{"other": []}', '{"data": [' + "[" * 100000)),
    (b'{"data": ["\xe9"]}', "file.json is not UTF-8 text; save it as UTF-8"),
    (None, "file.json")])
def test_what_is_not_such_a_file_is_named(tmp_path, text, message):
    path = tmp_path / "file.json" if text is None else as_file(tmp_path, text)
    with pytest.raises(InputError, match=message):
        list(json_elements.read_elements(path, "data"))
