"""Text out of every container of a corpus, and out of a Wikipedia dump."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import sys
import xml.sax.saxutils

import pytest

from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.files import open_unpacked
from data_prep import containers, corpora, extract_text, wikipedia
from tests.programs import refused

WORDS = ["the", "cat", "sat", "größer", "mat", "日本", "run", "of", "tree"]


def texts(count):
    """Documents of several paragraphs; some are equal, one is empty."""
    made = []
    for number in range(count):
        sentences = [" ".join(["Word", *(WORDS[(number * 7 + at * at) % 9] for at in range(9)),
                               str(number % 17)]) + "." for at in range(3 + number % 5)]
        made.append("\n\n".join((" ".join(sentences[:2]), "\n".join(sentences[2:]))))
    return [*made, ""]


def packed_zstd(data):
    pyarrow = pytest.importorskip("pyarrow")
    half = len(data) // 2       # two frames, as tools that append make them
    return b"".join(pyarrow.compress(part, "zstd", asbytes=True)
                    for part in (data[:half], data[half:]))


def parquet_of(documents):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": range(len(documents)), "text": documents}), sink,
                        row_group_size=7)
    return sink.getvalue()


def plain(documents):
    return "\n\n\n".join(filter(None, documents)).encode()


def json_lines(documents):
    return "".join(json.dumps({"id": 1, "text": text}) + "\n\n" for text in documents).encode()


CONTAINERS = {
    "a.txt": plain, "a.txt.gz": lambda found: gzip.compress(plain(found)),
    "a.txt.xz": lambda found: lzma.compress(plain(found)),
    "a.txt.bz2": lambda found: bz2.compress(plain(found)),
    "a.txt.zst": lambda found: packed_zstd(plain(found)), "a.jsonl": json_lines,
    "a.jsonl.gz": lambda found: gzip.compress(json_lines(found)), "a.parquet": parquet_of}


def extract(output, source, **options):
    extract_text.main(extract_text.ExtractTextFlags(
        output_file=str(output), input_file=[str(source)], **{"num_workers": 1, **options}))
    return output.read_bytes()


@pytest.fixture(name="small_pieces")
def fixture_small_pieces(monkeypatch):
    monkeypatch.setattr(containers, "_PIECE_BYTES", 2000)


@pytest.mark.parametrize("name", CONTAINERS)
def test_one_text_comes_out_of_every_container(tmp_path, small_pieces, name):
    found = texts(60)
    (tmp_path / name).write_bytes(CONTAINERS[name](found))
    wanted = ["".join(line + "\n" for line in re.split(r"(?<=\.)\s+", text))
              for text in found if text]
    assert extract(tmp_path / "out", tmp_path / name).decode() == "\n".join(wanted)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "out"]


@pytest.mark.parametrize("names", [("a.jsonl", "a.jsonl.gz"), ("a.jsonl", "a.parquet")])
def test_the_same_documents_are_held_out_of_every_container(tmp_path, small_pieces, names):
    held_out = []
    for number, name in enumerate(names):
        source, folder = tmp_path / f"{number}{name}", tmp_path / str(number)
        source.write_bytes(CONTAINERS[name](texts(60)))
        folder.mkdir()
        train = extract(folder / "train", source, eval_file=str(folder / "eval"), eval_share=0.2)
        held_out.append((folder / "eval").read_bytes())
        parts = train.split(b"\n\n") + held_out[-1].split(b"\n\n")
        assert sorted(part.strip() for part in parts) == sorted(
            part.strip() for part in extract(folder / "all", source).split(b"\n\n"))
    assert held_out[0] == held_out[1] and 3 < held_out[0].count(b"\n\n") < 25


def test_one_document_at_least_is_held_out(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts(5)))
    extract(tmp_path / "train", tmp_path / "a.jsonl", eval_file=str(tmp_path / "eval"),
            eval_share=1e-9)
    assert (tmp_path / "eval").read_bytes()


def test_processes_and_kills_change_nothing(tmp_path, small_pieces, monkeypatch, capsys):
    source = tmp_path / "a.jsonl"
    source.write_bytes(json_lines(texts(60)))
    wanted = extract(tmp_path / "whole", source)
    make, done = corpora.Maker.__call__, []

    def fail(self, index, piece):
        done.append(index)
        if len(done) in (3, 5):
            raise KeyboardInterrupt
        return make(self, index, piece)

    monkeypatch.setattr(corpora.Maker, "__call__", fail)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            extract(tmp_path / "out", source)
        assert not (tmp_path / "out").exists()
    (tmp_path / "out.progress" / "00000.txt").write_bytes(b"cut")
    os.utime(source, (1, 1))
    assert extract(tmp_path / "out", source) == wanted
    assert done[:6] == [0, 1, 2, 2, 3, 0] and len(done) == len(set(done)) + 3
    assert "pieces finished before: 2" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(containers, "_PIECE_BYTES", 2000)
    assert extract(tmp_path / "two", source, num_workers=2) == wanted


def test_another_text_begins_afresh(tmp_path, small_pieces, monkeypatch):
    source = tmp_path / "a.jsonl"
    source.write_bytes(json_lines(texts(60)))
    monkeypatch.setattr(extract_text.Corpus, "close", lambda self: None)
    first = extract(tmp_path / "out", source)
    source.write_bytes(json_lines(texts(50)))
    assert extract(tmp_path / "out", source) != first
    (tmp_path / "out.progress" / "mine").write_text("")
    source.write_bytes(json_lines(texts(40)))
    with pytest.raises(InputError, match="mine is in the folder where a job keeps its finished"):
        extract(tmp_path / "out", source)


def test_a_plain_text_of_many_pieces_has_its_documents(tmp_path, small_pieces):
    documents = [f"Sentence {number} is here. It ends." for number in range(500)]
    (tmp_path / "a.txt").write_text("\n\n".join(documents))
    assert extract(tmp_path / "out", tmp_path / "a.txt").decode() == "\n".join(
        text.replace(". ", ".\n") + "\n" for text in documents)


WHITE = "\u00a0\u3000\u0085\u001c\u2028\t \r"


def divided(text):
    """The documents of a plain text, divided as a whole text by the first version that did so."""
    text = "\n".join(line.strip() for line in text.split("\n")).strip()
    documents = re.split(r"\n{3,}" if "\n\n\n" in text else r"\n\n", text)
    return [[" ".join(paragraph.split()) for paragraph in document.split("\n\n")]
            for document in documents]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("seed", range(6))
def test_all_white_space_makes_blank_lines(tmp_path, monkeypatch, seed, pack):
    rng = random.Random(seed)
    monkeypatch.setattr(containers, "_PIECE_BYTES", rng.choice([9, 30, 200]))
    monkeypatch.setattr(corpus, "_WINDOW", 4)
    most = rng.choice([3, 4])      # lines from one letter to the next
    white, least = (WHITE[:4], 1) if seed % 2 else (WHITE, 0)
    text = "Begin" + "".join(
        rng.choice("AB\u65e5") + "\n".join("".join(rng.choices(white, k=rng.randint(least, 2)))
                                        for _ in range(rng.randint(1, most))) for _ in range(60))
    (tmp_path / "a.txt").write_bytes(pack(text.encode()))
    assert [found.split("\n") for found in extract(tmp_path / "out", tmp_path / "a.txt").decode()[
        :-1].split("\n\n")] == divided(text)


def test_packed_files_take_no_room_on_the_disk(tmp_path, monkeypatch):
    """A text of 22 MB, of which one document is longer than a piece."""
    monkeypatch.setenv("BERT_TF_STAGE_FOLDER", str(tmp_path / "copies"))
    documents = ["It rains. " * 1000, "It snows. " * (1 << 20), *["It rains. " * 1000] * 1200]
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\n\n".join(documents).encode(), 1))
    source = str(tmp_path / "a.txt.gz")
    pieces = list(containers.container_of(source).pieces(source, "text"))
    assert [piece.first for piece in pieces][:2] == [1, 3] and len(pieces) == 3
    assert not (tmp_path / "copies").exists()
    assert b"".join(piece.content[0] for piece in pieces) == "\n\n".join(documents).encode()


def test_line_breaks_may_end_paragraphs(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"page": "A heading\nIt rains\nOn. And on."}))
    for option, wanted in ((False, "A heading It rains On.\nAnd on.\n"),
                           (True, "A heading\nIt rains\nOn.\nAnd on.\n")):
        assert extract(tmp_path / "out", tmp_path / "a.jsonl", text_column="page",
                       lines_are_paragraphs=option).decode() == wanted


@pytest.mark.parametrize("name, content, parts", [
    ("a.jsonl", b'{"text": "A."}\n{"page": "B."}\n', ["line 2 has no column 'text'; it has page",
                                                      "--text_column"]),
    ("a.jsonl", b'{"text": "A."}\n[1]\n', ["line 2 is not a JSON object"]),
    ("a.jsonl", b'{"text": ["A."]}\n', ["line 1 has a value of type list in place of a text"]),
    ("a.json.gz", gzip.compress(b"[\n" * 500, mtime=0)[:-9], ["a.json.gz", "damaged"]),
    ("a.jsonl.xz", lzma.compress(b"{}" * 500)[:-30], ["a.jsonl.xz", "damaged"]),
    ("a.jsonl.bz2", bz2.compress(b"{}" * 500)[:-9], ["a.jsonl.bz2", "damaged"]),
    ("a.xml", b"<html></html>", ["a.xml is not a MediaWiki dump"]),
    ("a.xml", b"<mediawiki>\n<page><title>A</page>\n", ["a.xml", "not XML"]),
    ("a.jsonl", b"", ["no text"]),
])
def test_refusals(tmp_path, name, content, parts):
    (tmp_path / name).write_bytes(content)
    with refused(*parts):
        extract(tmp_path / "out", tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_what_was_finished_before_an_error_is_kept(tmp_path, small_pieces):
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts(60)) + b"[1]\n")
    with pytest.raises(InputError, match="line 123 is not a JSON object"):
        extract(tmp_path / "out", tmp_path / "a.jsonl")
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "out.progress"]


@pytest.mark.parametrize("name, make", [
    ("a.jsonl", lambda: json_lines(["One.", "Two.", "Three."])),
    ("a.txt", lambda: b"It rains. " * 149)])
def test_a_document_is_left_however_large_the_share(tmp_path, name, make):
    (tmp_path / name).write_bytes(make())
    extract(tmp_path / "train", tmp_path / name, eval_file=str(tmp_path / "eval"), eval_share=0.999)
    parts = [(tmp_path / part).read_text().split("\n\n") for part in ("train", "eval")]
    assert list(map(len, parts)) == [1, 2]


def test_equal_documents_cannot_be_divided(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(json_lines(["It rains."] * 2))
    with pytest.raises(InputError, match="no document was drawn for --output_file; give"):
        extract(tmp_path / "train", tmp_path / "a.jsonl", eval_file=str(tmp_path / "eval"))
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_parquet_is_checked(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(parquet_of(["A."]))
    with pytest.raises(InputError, match="a.parquet has no column 'page'; it has id, text"):
        extract(tmp_path / "out", tmp_path / "a.parquet", text_column="page")
    with pytest.raises(InputError) as error:
        extract(tmp_path / "out", tmp_path / "a.parquet", text_column="id")
    assert str(error.value).endswith("a.parquet has a value of type int in place of a text; name "
                                     "the column of the texts with --text_column.")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="a.parquet: can't be read"):
        extract(tmp_path / "out", tmp_path / "a.parquet")


def test_a_byte_order_mark_is_no_text(tmp_path):
    for name, content in (("a.txt", b"It rains."), ("a.jsonl", b'{"text": "It rains."}')):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content + b"\n")
        extract(tmp_path / "out", tmp_path / name)
        assert (tmp_path / "out").read_text() == "It rains.\n"


def test_damaged_zstandard_is_named(tmp_path):
    path = tmp_path / "a.zst"
    whole = packed_zstd(b"a\nb\n" * 99)
    path.write_bytes(whole)
    with open_unpacked(str(path)) as file:
        assert file.read() == b"a\nb\n" * 99
    for damaged in (whole[:-5] + b"wrong", whole[:-1], whole[:12]):
        path.write_bytes(damaged)
        with (pytest.raises(InputError, match="a.zst: can't be read"),
              open_unpacked(str(path)) as file):
            file.read()


# Two made-up articles in the markup that pages have, and what of them is text.
ARTICLE = """{{Infobox river
| name = Lune {{small|(upper)}}
| map = [[File:Map.png|thumb|A [[map]]]]
}}
[[File:Lune.jpg|thumb|300px|The '''Lune''' near its [[source (river)|source]]]]
The '''Lune''' (from {{lang|la|luna}}, {{IPA|/lun/}}; ) is a [[river]] in
''[[Nowhere|the North]]''.<ref name="a">{{cite
book|title=Rivers}}</ref> It is {{convert|12|km}} long<ref name="a" /> and
has [[bridge]]s.<!-- how many? --> See [http://example.org its page] or [[:Category:Rivers]].

== Course ==
{| class="wikitable"
! Town !! People
|-
| [[Ash]] || 12
|}
It rises at {{coord|1|2}}Ash&nbsp;Hill,<br />then falls {{unknown template}}. Water is
H<sub>2</sub>O, and <math>n</math>
of its <nowiki>{{springs}}</nowiki> are dry.
* [[Ash]]
** a town
# ''first''
: See also [[Moon]]
<gallery>
File:A.jpg|A bridge
</gallery>
Fish live there.

This passage has {{a template that never ends.

=== Notes ===
<references />
__NOTOC__
[[Category:Rivers]]
[[de:Lune (Fluss)]]
"""
PLAIN = """The Lune (from luna) is a river in the North. It is 12 km long and has bridges. \
See its page or Category:Rivers.

It rises at Ash Hill, then falls. Water is H2O, and n of its {{springs}} are dry.

Fish live there."""


def page(title, markup, inner=""):
    return (f"  <page>\n    <title>{title}</title>\n{inner}    <revision>\n      <id>7</id>\n      "
            f"<text xml:space=\"preserve\">{xml.sax.saxutils.escape(markup)}</text>\n"
            "    </revision>\n  </page>\n")


HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de">
  <siteinfo><namespaces>
    <namespace key="0" case="first-letter" />
    <namespace key="1" case="first-letter">Diskussion</namespace>
    <namespace key="6" case="first-letter">Datei</namespace>
  </namespaces></siteinfo>
"""


def test_the_passages_of_an_article():
    pytest.importorskip("mwparserfromhell")
    assert wikipedia.plain_text(ARTICLE) == PLAIN


@pytest.mark.parametrize("markup, text", [
    ("[[File:A.jpg|thumb|A [[cat|big cat]] on [http://x y]]]Rain.", "Rain."),
    ("A [[cat]]s [[cat#Food]] [[#Food]] [[fr:Chat]]b.", "A cats cat Food b."),
    ("A '''''b''''' <i>c</i> <span style='x'>d</span>.", "A b c d."),
    ("{{a|{{b|[[c]]}}}}One ( ; ) two ( , three).", "One two (three)."),
    ("Stray ]] and }} end.", "Stray and end."), ("[[Open. Next", ""),
    ("1\n\n2 of 3.", "2 of 3."), ("Cats:\n* a\n* b", ""), ("|a || b\nText.", "Text."),
    ("He said: I saw that there are:\n* a", "He said: I saw that there are:"),
    ("A &lt; b &amp;amp; &#233;.", "A < b & é."),
    ("A <math>\\frac{1}{2}</math>b.", "A b."), ("x<ref>[[a]]</ref> <ref group=n/>y.", "x y."),
    ("<div>In a box.</div>", "In a box."), ("{{{1|arg}}}T.", "T."),
    ("=Head=\nT.\n----\nU.", "T.\n\nU."),
    # What is left out leaves a blank where its neighbours would touch.
    ("Ash{{x1}}Hill, a{{x1}}. ({{x1}}b) 東京{{x1}}都市", "Ash Hill, a. (b) 東京都市"),
    ("A ({{x1}})is [[b ]][[c]], [[Erd&#337;s]]. ({{x1}})東京", "A is b c, Erdős.東京"),
    ("''B'''ash''' or sh'''ell'''''.", "Bash or shell."),
    ("''x''<sub>''m''</sub> [[a|''b'']]''c''.", "xm bc."),
    ("One<ref>x</ref>two.<ref>y</ref>Three.", "One two. Three."),
    # Templates that stand for a character, or show their arguments.
    ("In 1990{{ndash}}2000{{snd}}a{{nbsp}}b{{·}}c{{mdash}}d.", "In 1990–2000 – a b · c—d."),
    ("2{{x}}3 m, Jones{{'}} H{{sub|2}}O, 10{{sup|3}}.", "2×3 m, Jones' H2O, 103."),
    ("{{As of|2009|3}}, {{as of|2010|lc=y}}, {{As_of|2009|3|8|since=y}}.",
     "As of March 2009, as of 2010, Since 8 March 2009."),
    ("A {{formatnum:1234567.5}} {{formatnum:1,2|R}} {{formatnum:12}}.", "A 1,234,567.5 1,2 12."),
    ("{{convert|10|to|20|km|mi|0}}, {{convert|2|x|3|m}}, {{convert|5|ft|10|in|m}}, "
     "{{cvt|1200|sqmi|km2|0|abbr=on}}, {{convert|-5|–|7|C}}.",
     "10 to 20 km, 2 × 3 m, 5 ft 10 in, 1,200 sq mi, -5–7 °C."),
    ("A {{lang-fr|La ''Lune''}}, {{frac|3|1|2}}, {{val|1.5|0.1|u=km}}, {{circa|1480}}, {{uc:x}}.",
     "A La Lune, 3 1/2, 1.5±0.1 km, c. 1480, X."),
    # Apostrophes before bold and italics, as MediaWiki divides them.
    ("L'''amour'' et l'''or'' d'''Orly''.", "L'amour et l'or d'Orly."),
    ("x'''bold ''and'' bold''' '''b''' ''i''.", "xbold and bold b i."),
    ("d''''Artagnan''' ''''''x''''' l''[[a|'''b''']]''.", "d'Artagnan 'x lb."),
    ("''It is l''''''an'''.", "It is l'an."), ("''Ada'''s and ''Bo'''s.", "Ada's and Bo's."),
    # Text of nowiki and code.
    ("See <nowiki>[[a]] ''b'' <ref></nowiki> l'<nowiki/>''x''.",
     "See [[a]] ''b'' <ref> l'x."),
    ("Type <code>a[b[0]] {{'}} &lt;div&gt; __init__</code>, __NOTOC__c.",
     "Type a[b[0]] ' <div> __init__, c."),
    ("Is <syntaxhighlight lang=c inline>x|}</syntaxhighlight> C?", "Is x|} C?"),
    # Variants of Chinese.
    ("他是-{zh-hans:计算机; zh-hant:電腦}-人，-{zh-tw:乙;zh-cn:[[甲]];}-。", "他是计算机人，甲。"),
    ("-{H|zh-cn:x;zh-tw:y}-也-{里}-，-{R|甲:乙}-，-{A|zh-hant:丙;zh-hk:丁}-。",
     "也里，甲:乙，丙。"),
])
def test_markup(markup, text):
    pytest.importorskip("mwparserfromhell")
    assert wikipedia.plain_text(markup) == text


def test_numbers_are_written_as_in_the_language_of_the_dump():
    pytest.importorskip("mwparserfromhell")
    assert [wikipedia.plain_text("Es sind {{formatnum:12345}}.", language=language)
            for language in ("de", "fr", "")] == [
                "Es sind 12.345.", "Es sind 12 345.", "Es sind 12,345."]


@pytest.mark.parametrize("name, pack", [
    ("wiki.xml", bytes), ("wiki1.xml-p1p41242", bytes), ("wiki1.xml-p1p41242.bz2", bz2.compress),
    ("wiki", lambda data: b'\xef\xbb\xbf<?xml version="1.0"?>\n' + data),
    ("wiki.xml.bz2", lambda data: bz2.compress(data[:3000]) + bz2.compress(data[3000:]))])
def test_a_dump(tmp_path, small_pieces, name, pack):
    pytest.importorskip("mwparserfromhell")
    articles = [page(f"Lune: {number}", f"Page {number} [[Datei:A.jpg|B]]is here. It ends.\n\n"
                     + "Fish. " * 50, "    <ns>0</ns>\n") for number in range(30)]
    others = (page("Diskussion:Lune", "A talk."), page("Moon", "#WEITERLEITUNG [[Lune]]"),
              page("Luna", "Gone.", '<redirect title="M"/>'),
              page("Help", "Some help.", "    <ns>12</ns>\n"))
    dump = HEAD + "".join(articles[:9]) + "".join(others) + "".join(articles[9:]) + "</mediawiki>\n"
    (tmp_path / name).write_bytes(pack(dump.encode()))
    wanted = [f"Page {number} is here.\nIt ends.\n" + "Fish.\n" * 50 for number in range(30)]
    assert extract(tmp_path / "out", tmp_path / name).decode() == "\n".join(wanted)


def extracted_text(documents):
    """WikiExtractor's output: each line is a paragraph, the first one the title."""
    return "".join(
        f'<doc id="{number}" url="https://a.org/?curid={number}" title="T. "x" &">\nT. "x" &\n\n'
        + text.replace("Word", "&lt;&amp;").replace("\n\n", "\n") + "\n\n</doc>\n"
        for number, text in enumerate(documents)).encode()


def extracted_json(documents):
    return "".join(json.dumps({
        "id": "1", "revid": "2", "url": "u", "title": "T",
        "text": text.replace("Word", "&lt;&amp;").replace("\n\n", "\n")}) + "\n"
        for text in documents).encode()


@pytest.mark.parametrize("make", [extracted_text, extracted_json])
@pytest.mark.parametrize("name, pack", [
    ("wiki_00", bytes), ("wiki_00.bz2", bz2.compress), ("wiki_00.gz", gzip.compress)])
def test_output_of_wikiextractor(tmp_path, small_pieces, make, name, pack):
    source, whole = str(tmp_path / name), make(texts(60))
    (tmp_path / name).write_bytes(pack(whole))
    pieces = list(containers.container_of(source).pieces(source, "text"))
    assert len(pieces) > 5 and b"".join(piece.content for piece in pieces) == whole
    # Within a line no sentence begins with a letter.
    wanted = ["".join(line + "\n" for line in re.split(r"\n+", text.replace("Word", "<&")))
              for text in texts(60) if text]
    assert extract(tmp_path / "out", source).decode() == "\n".join(wanted)


@pytest.mark.parametrize("line", ["<doc>", '<doc id="1">', "{", '{"text": "One."}', "<mediawikis>"])
def test_other_text_in_brackets_is_plain(tmp_path, line):
    (tmp_path / "a.txt").write_text(f"{line}\nIt rains.")
    assert extract(tmp_path / "out", tmp_path / "a.txt").decode() == f"{line} It rains.\n"


def test_a_dump_that_ends_within_a_page_is_told(tmp_path, capsys):
    pytest.importorskip("mwparserfromhell")
    dump = HEAD + page("A", "It rains.") + page("B", "It snows.")
    for name, end, warns in (("whole.xml", "</mediawiki>\n", False), ("cut.xml", "<page>", True)):
        (tmp_path / name).write_text(dump + end)
        assert extract(tmp_path / f"{name}.txt", tmp_path / name) == b"It rains.\n\nIt snows.\n"
        assert (f"{name} ends within a page" in capsys.readouterr().out) == warns


def test_sentences_of_a_dump_end_as_in_its_language(tmp_path):
    pytest.importorskip("mwparserfromhell")
    (tmp_path / "wiki.xml").write_text(HEAD + page("A", "Am 3. Mai kam er.") + "</mediawiki>\n")
    assert extract(tmp_path / "out", tmp_path / "wiki.xml") == b"Am 3. Mai kam er.\n"
    assert extract(tmp_path / "out", tmp_path / "wiki.xml", language="en") == (
        b"Am 3.\nMai kam er.\n")


def test_pages_of_old_dumps_have_no_number_of_a_namespace():
    names = wikipedia.read_namespaces(HEAD.encode())
    pages = page("Diskussion:A", "x") + page("A: b", "y <ref>")
    assert list(wikipedia.articles(pages.encode(), names)) == [("A: b", "y <ref>")]
    assert names["hidden"] >= {"datei", "file", "image", "category"}


def test_packages_that_are_absent_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"pip install 'bert_tf\[corpora\]'"):
        extract(tmp_path / "out", tmp_path / "a.parquet")
