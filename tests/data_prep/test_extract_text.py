"""Text of packages and of one's own; sentences."""

import importlib.util
import os
import random
import re
import subprocess
import sys

import pytest

from bert_tf.errors import InputError
from data_prep import extract_text, prose
from data_prep.create_pretraining_data import is_wrapped
from data_prep.sentences import LANGUAGES, sentences
from tests.programs import refused

DOCSTRING = '''Computes the *mean* of a :class:`~numpy.ndarray`.

    The values are read once, e.g. from a file,
    and ``None`` is returned for an empty array. See `the manual
    <https://example.org>`_ for more [1]_.

    .. note::
       This may be slow.

    .. math:: a + b

    It is used like this::

        mean(values)

    Parameters
    ----------
    values : array
        The values of which the mean is taken.

    Notes
    -----
    The mean is the sum divided by the count.

    - The first item of this list
      goes on here.
    - The second item is short.

    ```
    This line is code in a fence.
    ```

    >>> mean([1, 2])
    1.5

    Args:
      x: The input of this function is a tensor.

    ====  =====
    This  table
    ====  =====
    '''


def extract(output, **options):
    extract_text.main(extract_text.ExtractTextFlags(output_file=str(output), **options))
    text = output.read_text(encoding="utf-8")
    return [document.split("\n") for document in text.rstrip("\n").split("\n\n")]


def test_prose_of_a_docstring():
    assert prose.paragraphs(DOCSTRING) == [
        "Computes the mean of a ndarray.",
        "The values are read once, e.g. from a file, and None is returned for an empty array. "
        "See the manual for more.",
        "This may be slow.",
        "It is used like this::",
        "The mean is the sum divided by the count.",
        "The first item of this list goes on here.",
        "The second item is short."]


@pytest.mark.parametrize("sentence, expected", [
    ("This is a whole sentence of words.", True),
    ("Too short.", False),
    ("this does not begin as a sentence.", False),
    ("It does not end as a sentence", False),
    ("Use x_1 foo(a, b) y[0] to_b the c.", False),
    ("Die Katze sitzt auf dem Dach.", False),
])
def test_is_english(sentence, expected):
    assert prose.is_english(sentence) is expected


def test_documentation_of_packages(tmp_path):
    documents = extract(tmp_path / "text.txt", packages=["stdlib"], max_megabytes=0.3)
    sentences = [sentence for document in documents for sentence in document]
    assert len(documents) > 20 and len(set(sentences)) == len(sentences) > 1000
    assert min(map(len, documents)) >= 4
    assert all(map(prose.is_english, sentences))
    assert (tmp_path / "text.txt").stat().st_size == pytest.approx(3e5, rel=0.2)


def test_it_is_the_same_in_every_process(tmp_path):
    contents = set()
    for seed in "01":
        output = tmp_path / f"{seed}.txt"
        subprocess.run([sys.executable, "-m", "data_prep.extract_text", f"--output_file={output}",
                        "--packages=numpy,absl", "--max_megabytes=0.2"], check=True,
                       env={"PYTHONHASHSEED": seed})
        contents.add(output.read_bytes())
    assert len(contents) == 1


def test_held_out_documents_share_nothing_with_the_others(tmp_path):
    everything = extract(tmp_path / "all.txt", packages=["absl"])
    train = extract(tmp_path / "train.txt", packages=["absl"], eval_share=0.3,
                    eval_file=str(tmp_path / "eval.txt"))
    held_out = (tmp_path / "eval.txt").read_text().rstrip("\n").split("\n\n")
    held_out = [document.split("\n") for document in held_out]
    assert sorted(train + held_out) == sorted(everything)
    assert train and len(held_out) > 1


def test_unreadable_sources_are_counted(tmp_path, monkeypatch, capsys):
    package = tmp_path / "odd_package"
    package.mkdir()
    body = "The first one is here. The second one is here. The third one is here. "
    (package / "__init__.py").write_text(f'"""{body}The fourth one is here."""')
    (package / "latin.py").write_bytes(b'"""caf\xe9"""')
    (package / "broken.py").write_text("def (")
    (package / "nul.py").write_bytes(b"x = 1\0")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    documents = extract(tmp_path / "text.txt", packages=["odd_package"])
    assert documents == [body.replace(". ", ".|").rstrip("|").split("|")
                         + ["The fourth one is here."]]
    assert "3 source files could not be read" in capsys.readouterr().out


def test_own_text(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("Chapter one\n\nIt was a dark\nnight. It rained.\n \nSo it was. \n\n\n\n"
                    "Étrange! Ça va.\n", encoding="utf-8")
    assert extract(tmp_path / "text.txt", input_file=[str(path)]) == [
        ["Chapter one", "It was a dark night.", "It rained.", "So it was."],
        ["Étrange!", "Ça va."]]


def test_the_language_of_own_text(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("Am 3. Mai kam er. Er blieb.\n", encoding="utf-8")
    assert extract(tmp_path / "a.txt", input_file=[str(path)], language="de") == [
        ["Am 3. Mai kam er.", "Er blieb."]]
    assert extract(tmp_path / "b.txt", input_file=[str(path)]) == [
        ["Am 3.", "Mai kam er.", "Er blieb."]]


@pytest.mark.parametrize("content, options, parts", [
    (b"\n \n", {}, ["no text"]),
    (b"Good.\nBad \xff.\n", {}, ["own.txt", "line 2", "byte 5"]),
    (b"Good.", {"packages": ["absl"]}, ["no --packages with --input_file"]),
    (b"Good.", {"input_file": [], "max_megabytes": 0}, ["--max_megabytes"]),
    (b"Good.", {"input_file": [], "packages": ["no_such_package"]}, ["no_such_package"]),
    (b"Good.", {"eval_file": "e", "eval_share": 1.0}, ["--eval_share"]),
    (b"Good.", {"language": "xx"}, ["--language", "de, fr"]),
])
def test_refusals(tmp_path, content, options, parts):
    path = tmp_path / "own.txt"
    path.write_bytes(content)
    with refused(*parts):
        extract(tmp_path / "text.txt", **{"input_file": [str(path)], **options})
    assert not (tmp_path / "text.txt").exists()


def test_a_job_does_not_read_its_own_files(tmp_path):
    """As where it is run again in the folder of its text; other files of like names are read."""
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "book.txt").write_text("\n\n".join(f"Sentence {n} is here.\n" for n in range(40)))
    (folder / "text.txt.more").write_text("One more text.\n")
    (folder / "text.txt.progress").mkdir()
    for name in ("text.txt.progress/00000.txt", "text.txt.tmp-bert_tf-1-a"):
        (folder / name).write_text("Left by a kill.\n")
    (folder / "held.txt.progress").write_text("Left by a kill.\n")
    given = {"input_file": [str(folder)], "eval_file": str(folder / "held.txt"), "eval_share": 0.3}
    first = extract(folder / "text.txt", **given)
    assert ["One more text."] in first or "One more" in (folder / "held.txt").read_text()
    held = (folder / "held.txt").read_text()
    assert "kill" not in f"{first}{held}"
    assert extract(folder / "text.txt", **given) == first
    assert (folder / "held.txt").read_text() == held
    for name in ("text.txt", "held.txt"):
        with pytest.raises(InputError, match="is also the output file"):
            extract(folder / "text.txt", **{**given, "input_file": [str(folder / name)]})
    with pytest.raises(InputError, match="name the same file"):
        extract(folder / "text.txt", **{**given, "eval_file": f"{folder}/./text.txt"})
    with pytest.raises(InputError, match="--eval_file: .* is not compressed; give .*/held.txt.$"):
        extract(folder / "text.txt", **{**given, "eval_file": f"{folder}/held.txt.gz"})
    with pytest.raises(InputError, match="is a folder; name a file"):
        extract(tmp_path, **given)


def test_held_out_documents_of_own_text_are_whole(tmp_path):
    path = tmp_path / "book.txt"
    chapters = [[f"This is sentence {n} of chapter {c}." for n in range(60 + c)] for c in range(9)]
    path.write_text("\n\n".join("\n".join(chapter) for chapter in chapters))
    train = extract(tmp_path / "train.txt", input_file=[str(path)], eval_share=0.15,
                    eval_file=str(tmp_path / "eval.txt"))
    held_out = [document.split("\n") for document in (
        tmp_path / "eval.txt").read_text().rstrip("\n").split("\n\n")]
    assert len(held_out) == 1 and all(document in chapters for document in train + held_out)
    assert sorted(train + held_out) == sorted(chapters)


@pytest.mark.parametrize("sizes, share, count", [
    ({"a": 50, "b": 40}, 0.05, 1), ({"a": 9}, 0.5, 0), ({}, 0.5, 0),
    ({str(n): 10 for n in range(100)}, 0.1, 10)])
def test_some_of_several_documents_are_held_out(sizes, share, count):
    held_out = extract_text.hold_out(sizes, share)
    assert len(held_out) == count and (count != 1 or held_out == {"b"})


def test_one_document_is_cut_and_its_end_held_out(tmp_path, capsys):
    path = tmp_path / "own.txt"
    path.write_text("\n".join(f"This is sentence {n}." for n in range(120)))
    train = extract(tmp_path / "train.txt", input_file=[str(path)],
                    eval_file=str(tmp_path / "eval.txt"))
    printed = capsys.readouterr().out
    assert list(map(len, train)) == [50, 50] and "one document" in printed
    assert "train.txt: 2 documents, 100 sentences, " in printed
    assert "eval.txt: 1 document, 20 sentences, " in printed
    assert (tmp_path / "eval.txt").read_text().startswith("This is sentence 100.\n")


@pytest.mark.parametrize("source, message", [
    ({"packages": ["json"]}, "no document was drawn for --eval_file"),
    ({"input_file": "one.txt"}, "^the text is one document of up to 50 sentences, from which none"),
    ({"input_file": "none.txt"}, "--input_file: there is no text in .*none.txt; name")])
def test_held_out_text_is_not_empty(tmp_path, source, message, capsys):
    (tmp_path / "none.txt").write_text("\n")
    (tmp_path / "one.txt").write_text("A short sentence is here. Another one is too.\n")
    if "input_file" in source:
        source = {"input_file": [str(tmp_path / source["input_file"])], "num_workers": 1}
    with pytest.raises(InputError, match=message):
        extract_text.main(extract_text.ExtractTextFlags(
            output_file=str(tmp_path / "out"), eval_file=str(tmp_path / "eval"), **source))
    assert not (tmp_path / "out").exists() and not (tmp_path / "eval").exists()
    assert "held out" not in capsys.readouterr().out


def test_prose_with_hard_line_breaks_is_told_from_sentences(test_data):
    words = [f"{'Aber' if n % 11 == 0 else 'word'}{n}{'.' * (n % 11 == 10)}" for n in range(900)]
    assert is_wrapped([" ".join(words[n:n + 9]) for n in range(0, 900, 9)])
    assert not is_wrapped([" ".join(words[n:n + 11]) for n in range(0, 900, 11)])
    assert not is_wrapped([" ".join(words[n:n + 9]).lower() for n in range(0, 900, 9)])
    for name in ("sample_text.txt", "books_sent.txt", "wikitext-2-raw/wiki.test.raw"):
        path = test_data / "text" / name
        if path.exists():
            assert not is_wrapped(path.read_text().split("\n")[:2000]), name


# Sentences

# Hard cases, written for this test: a sentence a line, a blank line after a paragraph.
GOLD = os.path.join(os.path.dirname(__file__), "sentences.txt")
# Paragraphs that the rules divide otherwise: "Yahoo! Inc.", and a dash of stops within Chinese.
DIFFER = {"en": 1, "zh": 1}


def gold():
    with open(GOLD, encoding="utf-8") as file:
        parts = re.split(r"^# (\w+)\n", file.read(), flags=re.M)
    return {language: [text.split("\n") for text in body.strip().split("\n\n")]
            for language, body in zip(parts[1::2], parts[2::2])}


def joined(parts, language):
    return ("" if language in ("ja", "zh") else " ").join(parts)


@pytest.mark.parametrize("language", gold())
def test_paragraphs_are_divided_as_people_divide_them(language):
    differ = [parts for parts in gold()[language]
              if sentences(joined(parts, language), language) != parts]
    assert len(differ) == DIFFER.get(language, 0), differ


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_character_is_changed(language):
    rng = random.Random(7)
    pieces = [part for paragraphs in gold().values() for parts in paragraphs for part in parts]
    signs = "".join(pieces)
    for _ in range(30):
        text = " ".join("".join((*rng.choices(pieces, k=3), *rng.choices(signs, k=40))).split())
        parts = sentences(text, language)
        assert "".join("".join(parts).split()) == "".join(text.split())
        assert all(part == part.strip() != "" for part in parts)


def test_english_sentences():
    text = ('Dr. A. Smith came, e.g. by Train. "Why?" he asked. It cost 3.5 (see Fig. 2). ok. '
            'He left! No. It rained, etc. Nobody came. Done')
    assert sentences(text) == [
        "Dr. A. Smith came, e.g. by Train.", '"Why?" he asked.', "It cost 3.5 (see Fig. 2). ok.",
        "He left!", "No.", "It rained, etc.", "Nobody came.", "Done"]


@pytest.mark.parametrize("parts", [
    ["这是。", "那是。"], ["他说：“我们走吧。”"], ["「行こう！」と言った。", "「はい。」"],
    ["什么？！", "“他走了！！”", "真的。。。"], ["『「はい。」』", "そう（です。）"],
    ["これ!", "それ?", "あれ。"], ["「長い。", *["長い。"] * 98, "長い。」"]])
def test_marks_that_no_blank_follows(parts):
    assert sentences("".join(parts)) == parts


@pytest.mark.parametrize("ends", [
    "यह है। वह है।", "هل هذا؟ نعم هذا.", "یہ ہے۔ وہ ہے۔", "Սա է։ Նա է։", "ይህ ነው። ያ ነው።",
    "Это он. Это она.", "Il part. À demain.", "ეს არის. ის არის.", "זה כאן. זה שם.", "นี่. นั่น.",
    "It was. 5 came.", "— Ты? — Я.", "¡Ven! ¿Dónde?", "« Viens ! » Il vint.", "Er ging. »Komm!«",
    "It was… He left."])
def test_capital_letters_and_letters_without_case_begin_sentences(ends):
    first, second = sentences(ends)
    assert f"{first} {second}" == ends and len(first) > 3


@pytest.mark.parametrize("whole", [
    "Это было в 1990 г. до н. э. и т. д. в городе.", "Il habite rue Foch, p. ex. à Paris.",
    "Το σπίτι κ. ά. είναι εδώ.", "Wir sahen ca. (über) zehn Häuser.",
    "А. С. Пушкин и Л.Н. Толстой.", "Ο Κ. Π. Καβάφης.", "डॉ. ए. पी. जे. शर्मा आए।"])
def test_small_letters_and_initials_of_any_alphabet_end_no_sentence(whole):
    assert sentences(whole) == [whole]
