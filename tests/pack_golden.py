"""Writes the files of tests/golden again that come from $BERT_TF_TEST_DATA; an empty file there
asks for one more.

    python -m tests.pack_golden

Values are never changed: files are taken whole, or some of their arrays, or their first lines.
"""

import gzip
import io
import itertools
import json
import lzma
import os
import pathlib
import re

import numpy as np

from tests.goldens import COMMITTED

# Of files that are not taken whole: a number, the first lines; a text, the arrays without those in
# whose names this expression is found.
PARTS = {
    "text/books_sent.txt": 3000,
    "tokenization_seed1.jsonl": 400,
    "albert/tokenization.jsonl.gz": 200,
    "electra/tokenization.jsonl.gz": 200,
    "electra/pretraining_small_generator.npz": "_layers|_embedding_output",
    "ernie/forward_v1_seed1.npz": "^(initial|sequence|embedding|gradient|after_step|layer_1)",
    "ernie/hf_ernie_v1_seed1/expected.npz": "mlm_logits",
    "gpt/finetune_seed1.npz": "^after[13]",
    "mtdnn/train_san_seed1.npz": "^after",
    "roberta/masking_seed1.npz": "^v090",
    "roberta/tokenization_seed1.jsonl.gz": 150,
    "roberta/special_seed1.jsonl": 40,
    "roberta/forward_seed1.npz": "^logits|^after_step_2|^after.*tokens|"
                                 "^gradient.*(embed_tokens|layers.0)",
    "roberta/hf_roberta_tiny_seed1/expected.npz": "mlm_logits",
    "spanbert/forward_seed1.npz": "^lm_logits|^sbo_logits|^layer_[12]|^embedding|"
                                  "^after_step.*word_emb|^grad.*(layer.[01].|word_emb|decoder)",
    "structbert/forward_seed1.npz": "^attention_output|^word|^layer_[12]|"
                                    "^grad.*(layer.[01]|word_emb)",
    "t5/t5_v1_1_seed1.npz": "adafactor_step0|train/logits|"
                            "^(grad|adafactor_).*(shared|logits|layer_0)",
    "theseus/theseus_seed1.npz": "^(?!rates)",
    "xlnet/tokenization_seed1.jsonl.gz": 150,
    "xlnet/forward_uni_mem_short_seed1.npz": "out/(pos_emb|attention)",
}


def arrays(path, left_out):
    """An uncompressed archive of some of an archive's arrays."""
    content = io.BytesIO()
    with np.load(path) as given:
        np.savez(content, **{name: given[name] for name in given.files
                            if not (left_out and re.search(left_out, name))})
    return content.getvalue()


def first(lines, count, wikipedia):
    """The first lines of a file, without those of Wikipedia, which has a licence of its own."""
    kept = (line for line in lines if not line.startswith(b"{")
            or str(json.loads(line).get("text")).strip() not in wikipedia)
    return b"".join(itertools.islice(kept, count))


def pack(source, target, part, wikipedia):
    """Writes what is wanted of a file, compressed if it isn't yet, in place of what was there."""
    is_gzip, packed = source.suffix == ".gz", target.with_name(f"{target.name}.xz")
    if source.suffix == ".npz":
        content = arrays(source, part)
    else:
        with (gzip.open if is_gzip else open)(source, "rb") as file:
            content = first(file, part, wikipedia) if part else file.read()
    for old in (target, packed):
        old.unlink(missing_ok=True)
    if is_gzip:
        target.write_bytes(gzip.compress(content, 9, mtime=0))
    elif len(content) < 4096:
        target.write_bytes(content)
    else:
        packed.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    data = pathlib.Path(os.environ["BERT_TF_TEST_DATA"])
    with gzip.open(data / "text" / "enwiki_sent.txt.gz", "rt", encoding="utf-8") as text:
        lines = {line.strip() for line in text if line.strip()}
    for path in [path for path in COMMITTED.rglob("*") if path.is_file()]:
        target = path.with_name(path.name.removesuffix(".xz"))
        name = str(target.relative_to(COMMITTED))
        for source in (data / name, data / "golden" / name):
            if source.is_file() and name != "README.md":
                pack(source, target, PARTS.get(name), lines)
