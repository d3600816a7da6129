"""Elements of a list in a JSON file, however the blocks fall."""

import gzip
import json
import random

import pytest

from bert_tf.errors import InputError
from bert_tf.tasks import json_elements


def write(folder, text):
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
            path = write(tmp_path, json.dumps({**before, "data": data, **after}, indent=indent))
            assert list(json_elements.read_elements(path, "data")) == data


def test_reads_gzip_and_a_byte_order_mark(tmp_path):
    path = write(tmp_path, gzip.compress(b'\xef\xbb\xbf{"data": [1, 2]}\n'))
    assert list(json_elements.read_elements(path, "data")) == [1, 2]


def test_elements_come_before_the_file_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(json_elements, "_BLOCK", 4)
    elements = json_elements.read_elements(write(tmp_path, '{"data": [1, 2, 3, oh'), "data")
    assert [next(elements), next(elements), next(elements)] == [1, 2, 3]
    with pytest.raises(InputError, match="file.json"):
        next(elements)


def test_an_element_without_end_is_refused(tmp_path, monkeypatch):
    """A small .gz may unpack to an element that fills the memory."""
    monkeypatch.setattr(json_elements, "_BLOCK", 16)
    monkeypatch.setattr(json_elements, "_LONGEST_VALUE", 1 << 20)
    text = '{"data": [1, "' + "a" * (1 << 10) + '", "' + "b" * (1 << 23)
    elements = json_elements.read_elements(write(tmp_path, gzip.compress(text.encode())), "data")
    assert [next(elements), len(next(elements))] == [1, 1 << 10]
    with pytest.raises(InputError, match="an element has more than 1 million characters"):
        next(elements)


NO_LIST = "file.json is not a JSON object with a list 'data'"


@pytest.mark.parametrize("text, message", [*((text, NO_LIST) for text in (
    "", "[]", "{}", '{"data": 1}', '{"data": [1}', '{"data": [1,]}', '{"data": [1 2]}',
    '{"data": [1]', '{"data": [1', '{"data": [1]} x', '{"data": [], "data": []}', "plain text",
    '{"data" [1]}', '{"other": []}', '{"data": [' + "[" * 100000)),
    (b'{"data": ["\xe9"]}', "file.json is not UTF-8 text; save it as UTF-8"),
    (None, "file.json")])
def test_what_is_not_such_a_file_is_named(tmp_path, text, message):
    path = tmp_path / "file.json" if text is None else write(tmp_path, text)
    with pytest.raises(InputError, match=message):
        list(json_elements.read_elements(path, "data"))
