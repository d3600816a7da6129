"""The tokenizer.json of Hugging Face's folders, run by the library tokenizers, and transformers'
reading of the folder, beside our ids."""

import gzip
import itertools
import json

import numpy as np
import pytest
from tokenizers import Tokenizer

from bert_tf.checkpoints import huggingface_tokenizer
from bert_tf.models.gpt import tokenizer as gpt_bpe
from bert_tf.tokenization import byte_bpe, open_tokenizer
from bert_tf.tokenization.encoding import encode_pairs
from tests import sentencepieces

# The file of a vocabulary in the folder of data, or its folder, and transformers' type of model.
VOCABULARIES = {"vocabs/bert-base-uncased/vocab.txt": "bert",
                "vocabs/bert-base-cased/vocab.txt": "bert",
                "vocabs/bert-base-chinese/vocab.txt": "bert",
                "vocabs/roberta-base": "roberta",
                "vocabs/gpt2": "bert",
                "vocabs/albert/spiece.model": "albert",
                "vocabs/t5/spiece.model": "t5",
                "golden/xlnet/spiece.model": "xlnet",
                "golden/deberta/tokenizer/spm.model": "deberta-v2"}
# ALBERT cuts 5,000 off in "1,025,000"; see the module.
CUT_OTHERWISE = {"vocabs/albert/spiece.model": 2}
FOREIGN = """北京是中华人民共和国的首都，人口超过2,100万。
新冠疫苗于2020年12月开始接种。他说：“今天天气很好！”
대한민국의 수도는 서울이다. 인구는 약 977만 명이다.
“안녕하세요?” 하고 그녀가 말했다.
भारत की राजधानी नई दिल्ली है। गंगा नदी हिमालय से निकलती है।
क्या आप मेरी मदद कर सकते हैं?
「ありがとうございます」と彼は言った。パーティーは５月です。
กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย
وُلِدَ في عام ١٩٥٠
Москва — столица России. Ёлка стоит в углу.
Die Straße ist 1.234,5 m lang; größer als üblich.
Hà Nội là thủ đô của Việt Nam.
İstanbul'da ışıklar, ﬁne ﬂow ½ ² ™ Å Å
a\u00a0b\u2003c\u200bd\ufeffe  and   many    spaces
``quoted'' text, `y' and $1,000,000.00 in 1990, 2000 and 10,
foo_bar.baz@x.com http://a.b/c?d=e&f=g <b>tag</b> 😀ok 👩‍👩‍👧
""".splitlines()


@pytest.fixture(scope="session")
def lines(test_data):
    text = test_data / "text"
    with gzip.open(text / "enwiki_sent.txt.gz", "rt", encoding="utf-8") as file:
        wikipedia = list(itertools.islice(filter(str.strip, file), 800))
    books = (text / "books_sent.txt").read_text("utf-8").splitlines()[:700]
    sample = (text / "sample_text.txt").read_text("utf-8").splitlines()
    rows = [line.rstrip("\n") for line in (*wikipedia, *books, *sample, *FOREIGN) if line.strip()]
    assert len(rows) > 1400
    return rows


@pytest.fixture(scope="module", params=VOCABULARIES)
def written(request, test_data, tmp_path_factory):
    """The name of a vocabulary, and a folder with the files of its tokenizer."""
    name, folder = request.param, tmp_path_factory.mktemp("tokenizer")
    (folder / "config.json").write_text(json.dumps({"model_type": VOCABULARIES[name]}))
    huggingface_tokenizer.write(str(folder), open_tokenizer(test_data / name),
                                has_segments=VOCABULARIES[name] not in ("roberta", "t5"))
    return name, folder


def differing(ids, ours, lines):
    return [line for line, rows, wanted in zip(lines, ids, ours, strict=True) if rows != wanted]


def encoded(tokenizer, lines):
    ids, lengths = tokenizer.encode_lines(lines)
    return [row.tolist() for row in np.split(ids, np.cumsum(lengths)[:-1])]


def test_the_ids_of_tokenizers_are_ours(written, lines):
    name, folder = written
    ours = open_tokenizer(folder)
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    rows = [row.ids for row in library.encode_batch(lines, add_special_tokens=False)]
    others = differing(rows, encoded(ours, lines), lines)
    assert len(others) <= CUT_OTHERWISE.get(name, 0), others
    assert library.get_vocab_size() == ours.vocabulary.size
    pairs = list(zip(lines[:100], lines[-100:]))
    for texts, row in zip(pairs, library.encode_batch(pairs)):
        wanted, _ = encode_pairs([texts], ours, None)
        assert row.ids == wanted["input_ids"][0].tolist()
        if "roberta" not in name:       # which has no segments
            assert row.type_ids == wanted["segment_ids"][0].tolist()
    for text, row in zip(lines, library.encode_batch(lines[:50])):
        assert row.ids == ours(text)["input_ids"][0].tolist()


def test_what_is_written_is_read_and_written_again(written, tmp_path):
    _, folder = written
    inputs = json.loads((folder / "tokenizer_config.json").read_text())["model_input_names"]
    huggingface_tokenizer.write(str(tmp_path), open_tokenizer(folder), "token_type_ids" in inputs)
    for path in folder.iterdir():
        if path.name != "config.json":
            assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


@pytest.mark.peer
def test_the_ids_of_transformers_are_ours(written, lines):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    name, folder = written
    ours, library = open_tokenizer(folder), transformers.AutoTokenizer.from_pretrained(folder)
    others = differing(library(lines, add_special_tokens=False).input_ids, encoded(ours, lines),
                       lines)
    assert len(others) <= CUT_OTHERWISE.get(name, 0), others
    assert len(library) == ours.vocabulary.size
    if "t5" not in name:        # which reads one text
        first, second = lines[:100], lines[-100:]
        rows = library(first, second)
        for index, texts in enumerate(zip(first, second)):
            wanted, _ = encode_pairs([texts], ours, None)
            assert rows.input_ids[index] == wanted["input_ids"][0].tolist()
            if "token_type_ids" in rows:
                assert rows.token_type_ids[index] == wanted["segment_ids"][0].tolist()


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_another_kind_of_sentencepiece_is_named(kind, tmp_path, capsys):
    (tmp_path / "spiece.model").write_bytes(sentencepieces.train(
        ["the cat sat on the mat, in 1990, and it sat"] * 20, 22, model_type=kind,
        **sentencepieces.T5))
    ours = open_tokenizer(tmp_path / "spiece.model")
    huggingface_tokenizer.write(str(tmp_path), ours, has_segments=False)
    if kind == "bpe":
        assert "is not a Unigram model, so tokenizer.json is not written" in "".join(
            capsys.readouterr())
        assert not (tmp_path / "tokenizer.json").exists()
    else:
        library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        text = "the mat <extra_id_3> sat, in 1990,"
        assert library.encode(text).ids == ours(text)["input_ids"][0].tolist()


def roberta(tmp_path):
    first = [*byte_bpe.ANGLE_ROLES.values(), *byte_bpe.byte_characters()]
    tokens = [*first, "he", "\u0120he"]
    (tmp_path / "vocab.json").write_text(json.dumps(dict(zip(tokens, range(len(tokens))))))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\n\u0120 he\n")
    return open_tokenizer(tmp_path / "vocab.json")


def test_the_mask_of_roberta_takes_the_blank_before_it(tmp_path):
    ours = roberta(tmp_path)
    huggingface_tokenizer.write(str(tmp_path), ours, has_segments=False)
    rows = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("he <mask> he")
    ids = ours.vocabulary.ids
    assert rows.ids == [ids[token] for token in ("<s>", "he", "<mask>", "\u0120he", "</s>")]
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert settings["mask_token"]["lstrip"] and settings["pad_token"] == "<pad>"


def test_added_tokens_stay_apart(tmp_path):
    """A token that was added to the vocabulary's own is no piece of words."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "gp", "##us", "##s"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({
        "do_lower_case": True, "added_tokens_decoder": {"8": {
            "content": "gpu", "single_word": True, "lstrip": False, "rstrip": False,
            "normalized": True, "special": False, "id": 8},
            "9": {"content": "<X>", "special": True}}}))
    ours = open_tokenizer(tmp_path / "vocab.txt")
    huggingface_tokenizer.write(str(tmp_path), ours, has_segments=True)
    library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ("GPU gpus", "a gpu", "gpu.gpu", "<x> <X>gp"):
        assert library.encode(text, add_special_tokens=False).ids == ours.encode(text)
    assert ours.encode("gpus gpu") == [5, 6, 8]
    written = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert "id" not in written["added_tokens_decoder"]["8"]


def test_a_vocabulary_without_padding_gets_no_new_token(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n##a\n")
    huggingface_tokenizer.write(str(tmp_path), open_tokenizer(tmp_path), has_segments=True)
    assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).get_vocab_size() == 6
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["pad_token"] == "[SEP]"


def test_words_of_gpt_are_cut_by_our_rules(tmp_path, lines):
    """Each character is a token, so that the ids show where words end."""
    characters = [*map(chr, range(33, 127)), "\u00e9", "\u4e2d"]
    tokens = ["<unk>", *characters, *(f"{char}</w>" for char in characters), "ab</w>"]
    (tmp_path / "vocab.json").write_text(json.dumps(dict(zip(tokens, range(len(tokens))))))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    ours = open_tokenizer(tmp_path / "vocab.json")
    assert isinstance(ours, gpt_bpe.GptTokenizer)
    huggingface_tokenizer.write(str(tmp_path), ours, has_segments=False)
    library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    odd = ["Mr. Ab isn't the U.S. he's (e.g. Smith's...) \u201cyes\u201d.",
           "a:b <c>=d 5% #x '90s'.", "end.Begin http://a.b/c?d=e&f=g",
           "... a..b ..c d.. $5 5$ \u20ac3.50, n't 's 'tis", "(Cannot) 'didnt' gonna. etc. a\\b",
           "what?!?? ((no)) -- 'said.'' 5km 2. 9% x=y a= __x__ 7pm. '' ''' 5\u00b0C 'em. 'em"]
    rows = [row.ids for row in library.encode_batch(odd + lines)]
    assert differing(rows, encoded(ours, odd + lines), odd + lines) == []
    assert library.token_to_id("_classify_") == ours.vocabulary.cls_id
