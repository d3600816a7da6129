"""Added tokens against the library that finds them for transformers."""

import json
import pickle
import random

import numpy as np
import pytest
import tokenizers
from tokenizers import AddedToken

from bert_tf.errors import InputError
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.base import ADDED
from tests.tokenization.test_byte_bpe import make_files

TOKENS = ["plainly", "[E1]", "Café", AddedToken("un mask", single_word=True), "中文",
          AddedToken("<S>", normalized=False), AddedToken("<L>", lstrip=True, normalized=False),
          AddedToken("<R>", rstrip=True, special=True)]
PARTS = ["plain", "plainly", "PLAINLY", "[E1]", "[e1]", "un mask", "Un  mask", "un maskly", "cafe",
         "Café", "cafe\u0301s", "<S>", "<s>", "<L>", "<R>", "x中文中", "[MASK]", "\t", "..", "ñ"]


def lines(count=300):
    rng = random.Random(3)
    return ["".join(rng.choice(PARTS) + rng.choice(["", " ", "  "])
                    for _ in range(rng.randint(0, 8))) for _ in range(count)]


def added(peer, size):
    """The added tokens of a peer as tokenizer_config.json has them, but for those of its model."""
    return {str(entry["id"]): entry for entry in json.loads(peer.to_str())["added_tokens"]
            if entry["id"] >= size}


def check(tokenizer, peer, texts):
    """Compares ids, offsets, copies and rows of several lines with the peer's ids."""
    expected = [peer.encode(text, add_special_tokens=False).ids for text in texts]
    ids, sizes = tokenizer.encode_lines(texts)
    assert [row.tolist() for row in np.split(ids, np.cumsum(sizes))[:-1]] == expected
    assert ids.dtype == sizes.dtype == np.int32
    assert tokenizer.encode_parts(list(map(tokenizer.at_start, texts)))[0].tolist() == ids.tolist()
    contents = {int(key): entry["content"] for key, entry in tokenizer.settings[ADDED].items()}
    for text, row in zip(texts, expected):
        found, offsets = tokenizer.encode_with_offsets(text)
        assert tokenizer.encode(text) == found == row
        for index, (start, end) in zip(found, offsets):
            assert 0 <= start <= end <= len(text)
            if index in contents:
                assert text[start].lower() == contents[index][0].lower()
    assert pickle.loads(pickle.dumps(tokenizer)).encode_lines(texts)[0].tolist() == ids.tolist()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
def test_wordpiece(vocabulary, tmp_path, capsys, lower, file):
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in vocabulary.tokens))
    peer = tokenizers.BertWordPieceTokenizer(str(path), lowercase=lower)
    own = json.loads(peer.to_str())["added_tokens"]
    peer.add_tokens(TOKENS)
    if file == "tokenizer.json":
        path.unlink()
        peer.save(str(tmp_path / file))
    else:
        (tmp_path / file).write_text(json.dumps({"do_lower_case": lower, ADDED: {
            **added(peer, vocabulary.size), **{str(token["id"]): token for token in own}}}))
    opened = open_tokenizer(tmp_path)
    texts = [text for text in lines() if "[MASK]" not in text]     # plain text here
    check(opened, peer, texts)
    assert not capsys.readouterr().out
    assert opened.vocabulary.size == peer.get_vocab_size() == vocabulary.size + len(TOKENS)
    assert opened.decode(opened.encode("un [E1] plain")) == "un [E1] plain"
    assert opened.readable(vocabulary.size + 1) == "[E1]"
    (tmp_path / "copy").mkdir()
    opened.save(str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "vocab.txt").read_text().splitlines() == vocabulary.tokens
    saved = json.loads((tmp_path / "copy" / "tokenizer_config.json").read_text())
    assert not any("id" in token for token in saved[ADDED].values())
    again = open_tokenizer(tmp_path / "copy")
    assert again.describe() == opened.describe()
    check(again, peer, texts)
    assert ADDED not in open_tokenizer(tmp_path / "copy", rows=vocabulary.size).settings


def test_ideographs_beside_added_tokens_stay(vocabulary, tmp_path):
    """Tokens that take the blanks beside them take those around an ideograph, but not itself."""
    rng, path = random.Random(5), tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in [
        *vocabulary.tokens, *"\u65b0\u51a0\u75ab\u82d7"]))
    contents = ["covid", "\u65b0\u51a0", "un mask", "Caf\u00e9", "..", " q", "a\u75ab"]
    parts = ["\u65b0", "\u51a0", "\u75ab", "\u82d7", "covid", "Covid", "covids", "un mask",
             "Cafe\u0301", "a", " ", "  ", "\t", "\u3000", "\u200b", ".", "q", "\u30ab\u3099"]
    for number in range(40):
        lower = number % 2 == 0
        peer = tokenizers.BertWordPieceTokenizer(
            str(path), lowercase=lower, handle_chinese_chars=number % 5 > 0)
        size = peer.get_vocab_size()
        peer.add_tokens([AddedToken(
            content, single_word=rng.random() < 0.3, lstrip=rng.random() < 0.5,
            rstrip=rng.random() < 0.5, normalized=rng.random() < 0.8)
            for content in rng.sample(contents, 3)])
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({
            "do_lower_case": lower, "tokenize_chinese_chars": number % 5 > 0,
            ADDED: added(peer, size)}))
        opened = open_tokenizer(tmp_path)
        for text in ["\u65b0\u51a0covid\u75ab\u82d7", *(
                "".join(rng.choices(parts, k=6)) for _ in range(20))]:
            ids = peer.encode(text, add_special_tokens=False).ids
            assert opened.encode(text) == opened.encode_with_offsets(text)[0] == ids, text


@pytest.mark.parametrize("prefix", [False, True])
def test_byte_bpe(tmp_path, prefix):
    old = make_files(tmp_path, [("e", "r"), ("p", "l"), ("Ġ", "a"), ("Ġ", "pl")])
    peer = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(
        old, old.replace("vocab.json", "merges.txt")))
    peer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    size = peer.get_vocab_size()
    peer.add_tokens(TOKENS)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({
        "add_prefix_space": prefix, ADDED: added(peer, size)}))
    check(open_tokenizer(tmp_path), peer, lines())


def test_ids_without_rows_are_told(vocabulary, tmp_path, capsys):
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary.tokens))
    size, plain = vocabulary.size, open_tokenizer(tmp_path).encode("un<e1>")
    for given, rows, is_found in (
            ({"<e1>": size}, size + 1, True), ({"<e1>": size}, None, True),
            ({"<e1>": size}, size, False), ({"<e1>": size + 1}, None, False),
            ({"<e1>": 0}, None, False), ({"[MASK]": vocabulary.mask_id, "<e1>": size}, None, True)):
        (tmp_path / "added_tokens.json").write_text(json.dumps(given))
        opened = open_tokenizer(tmp_path, rows=rows)
        assert opened.encode("un<e1>") == ([*plain[:1], size] if is_found else plain)
        assert opened.vocabulary.hash == vocabulary.hash
    assert capsys.readouterr().err.count("cut as other text here: the model has no rows") == 1


def test_answers_and_words(vocabulary, tmp_path):
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary.tokens))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[E1]": vocabulary.size}))
    opened = open_tokenizer(tmp_path)
    ids, sizes = opened.encode_words(["plainly", "[E1]plain", "un"])
    assert sizes.tolist() == [2, 2, 1] and ids[2] == vocabulary.size
    assert opened.continues[ids].tolist() == [False, True, False, False, False]
    assert opened.excerpt(["[E1]plain"], ids[2:3], 0, 1) == "[E1]"
    assert opened.excerpt(["plainly"], ids[:1], 0, 1) == open_tokenizer(
        tmp_path, rows=vocabulary.size).excerpt(["plainly"], ids[:1], 0, 1)
    with pytest.raises(InputError, match="has no setting x"):
        open_tokenizer(tmp_path, x=1)
