"""Lines on which tokenizers are known to differ, and random ones; what tokenizers give for lines."""

import gzip
import json
import random

import numpy as np
import pytest

HARD_LINES = [
    "", " ", "\t\r\n", "plain words, plainly said.", "Don't! (really?) e-mail@x.org",
    "[MASK] [SEP] [CLS] [UNK] [PAD] [unused1] [mask]", "##ing ## # un##able",
    "café CAFÉ cafe\u0301 naïve Ångström ǖ Ǖ", "a\u0327\u0301b a\u0301\u0327b \u0301a",
    "Straße STRASSE ß ẞ ﬁﬂ Ｆｕｌｌ－ｗｉｄｔｈ！ ½ ™ … № ²", "İstanbul I ı i̇ İİ",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ. Σ'Α ΑΣ\u0301Α ΑΣ\u00ad ΑΣ中Α", "中文字符abc漢字 日本語のテキスト 한국어 텍스트",
    "ภาษาไทยไม่มีช่องว่าง हिन्दी में العَرَبِيَّة עִבְרִית", "😀 👩‍👩‍👧 🇬🇧 👍🏽 ♥️ x\u200by a\u200db",
    "nul\0in\0word \0 a\ufffdb \ufffd", "vt\x0bff\x0cfs\x1cgs\x1dnel\x85end\x7f us\x1f\x1e",
    "ls\u2028ps\u2029nb\u00a0em\u2003id\u3000og\u1680x", "soft\u00adhyphen bom\ufeff rlm\u200f",
    "...!!!???---,,,;;; ~~^^||<<>>==++$$``", "“quoted” ‘it’s’ — – ‹a› «b» ¿qué? 。、「」",
    "a" * 100, "a" * 101, "a" * 200, "a" * 201, "b" + "é" * 199, "b" + "é" * 200,
    "a\u0301" * 200, "a\u0301" * 201, "İ" * 201, "中" * 250, "x." * 150, "ก" * 201,
    "\U00020000\U0002a6df\U0002b81f\U0002ceaf\U0002ceb0 豈 \U0002f800 \u2e80 \u3400",
    "\u0378 \ue000 \U000f0000 \U0010ffff \U000e0001 \u0600 \u070f",
    "\u037e\u1fef\u0387\u212a\u2126\u1e9b\u0323 각 \u1100\u1161", "\u302e\u0301 \u0f71\u0f72",
]

_PARTS = list("abzAZ09 .,-[]#'\t\n\0\x0b\x1c\x85\u00a0\u00ad\u2028\ufffd") + [
    "é", "e\u0301", "İ", "Σ", "ς", "ß", "\u0301", "\u0327", "\u0345", "\u302e", "中", "ไ", "각",
    "\u200d", "…", "Ａ", "😀", "un", "##", "[MASK]", " "]


def random_lines(count, seed):
    """`count` lines of mixed difficult parts and of any character at all but surrogates."""
    rng = random.Random(seed)
    chars = [chr(code) for code in range(0x32000) if not 0xD800 <= code < 0xE000]
    return ["".join(rng.choice(_PARTS if rng.random() < 0.8 else chars)
                    for _ in range(rng.randrange(30))) for _ in range(count)]


odd_batches = pytest.mark.parametrize("lines", [
    [], [""], ["", "", ""], ["a", "", " b  c"], ["\0", "a\0b"], ["\ud800a", "b"]])


def rows(tokenizer, lines):
    ids, lengths = tokenizer.encode_lines(lines)
    assert ids.dtype == lengths.dtype == np.int32 and len(ids) == lengths.sum()
    return [row.tolist() for row in np.split(ids, np.cumsum(lengths)[:-1])] if lines else []


def read_golden(path):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
