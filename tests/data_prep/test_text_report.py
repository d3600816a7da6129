"""What making pre-training records says of its text: unknown words, cut lines, whole words."""

import json
import random

import numpy as np
import pytest

from bert_tf.data.records import tfrecord

CHARACTERS = "天气喜欢音乐老师北京朋友"
WORDS = [CHARACTERS[start:start + 2] for start in range(0, len(CHARACTERS), 2)]
LETTERS = "abcdefgh"


@pytest.fixture
def made(prepare, tmp_path, vocab_file, capsys):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab_file.write_text("\n".join([*special, *CHARACTERS, *LETTERS]) + "\n", encoding="utf-8")

    def make(text, **flags):
        prepare(text, **{"max_seq_length": 32, "max_predictions_per_seq": 5,
                         "dupe_factor": 1, **flags})
        record = json.loads((tmp_path / "out" / "r.manifest.json").read_text())
        records = [{name: np.array(values) for name, values in
                    tfrecord.parse_example(message).items()}
                   for path in sorted((tmp_path / "out").glob("r.tfrecord*"))
                   for message in tfrecord.read_records(str(path))]
        return record, capsys.readouterr().out, records
    return make


def chinese():
    """Documents of sentences, each a list of words of two characters."""
    rng = random.Random(1)
    return [[rng.choices(WORDS, k=rng.randint(3, 7)) for _ in range(6)] for _ in range(12)]


def joined(documents, blank=""):
    return "\n\n".join("\n".join(map(blank.join, sentences)) for sentences in documents) + "\n"


@pytest.mark.parametrize("blank", ["", " "])
def test_whole_words_of_one_token_are_named(made, blank):
    text = joined(chinese(), blank)
    _, said, records = made(text, do_whole_word_mask=True)
    assert "no word of the text has two tokens" in said
    assert "--input_format=columns" in said and "--masking_units=phrases" in said


def test_without_whole_words_nothing_is_said(made):
    assert "no word of the text" not in made(joined(chinese()))[1]


@pytest.mark.parametrize("way", ["columns", "phrases"])
def test_both_ways_to_whole_words_mask_words(made, tmp_path, way):
    """A mask that begins a word is followed by one that ends it: all words have two characters."""
    documents = chinese()
    if way == "columns":
        text = "\n\n\n".join("\n\n".join(map("\n".join, sentences)) for sentences in documents)
        flags = {"input_format": "columns", "do_whole_word_mask": True}
    else:
        text, phrases = joined(documents), tmp_path / "words.txt"
        phrases.write_text("\n".join(WORDS), encoding="utf-8")
        flags = {"masking_units": "phrases", "phrase_file": str(phrases)}
    _, said, records = made(text, max_predictions_per_seq=6, masked_lm_prob=0.2, **flags)
    assert "no word of the text" not in said and "single tokens" not in said
    first = {5 + number for number in range(0, len(CHARACTERS), 2)}     # ids of first characters
    pairs = 0
    for record in records:
        used = record["masked_lm_weights"] > 0
        masked = dict(zip(record["masked_lm_positions"][used].tolist(),
                          record["masked_lm_ids"][used].tolist()))
        for position, token in masked.items():
            # Only a word that a pair's cut has divided is masked in part.
            other = position + 1 if token in first else position - 1
            is_cut = record["input_ids"][other] in (2, 3)
            assert other in masked or is_cut
            pairs += other in masked
    assert pairs > 50


def test_phrases_that_are_not_in_the_text_are_named(made, tmp_path):
    phrases = tmp_path / "words.txt"
    phrases.write_text("a b c d e", encoding="utf-8")
    said = made(joined(chinese()), masking_units="phrases", phrase_file=str(phrases))[1]
    assert "no phrase of --phrase_file is in the text" in said


def tokens_in(records):
    return {int(token) for record in records for token in record["input_ids"]}


@pytest.mark.parametrize("flags", [
    {}, {"segments": "sentence_pairs"}, {"recipe": "albert"}, {"recipe": "structbert"},
    {"recipe": "roberta"}, {"recipe": "spanbert"}, {"recipe": "electra"},
    {"segments": "doc_sentences"}, {"recipe": "ernie2", "task": "sentence_reordering"},
    {"recipe": "ernie2", "task": "sentence_distance"}, {"recipe": "gpt", "masking": None}],
    ids=str)
def test_what_no_record_has_is_counted(made, vocab_file, flags):
    """Each token of the text is another one, so that the records show which of them are there."""
    rng = random.Random(2)
    # One line in four is longer than a sequence.
    lengths = [[rng.choice([90, 9, 12, 15]) for _ in range(5)] for _ in range(8)]
    count = sum(map(sum, lengths))
    names = iter([f"w{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}"
                  for n in range(count)])
    documents = [[[next(names) for _ in range(length)] for length in sizes] for sizes in lengths]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab_file.write_text("\n".join([*special, *(word for sentences in documents
                                                 for words in sentences for word in words)]) + "\n")
    # No token is replaced by a random one.
    if "recipe" not in flags or flags["recipe"] in ("albert", "structbert"):
        flags = {**flags, "mask_shares": ["0", "0"]}
    if flags.get("recipe") == "spanbert":
        flags = {**flags, "mask_shares": ["0", "0"]}
    slots = {} if flags.get("recipe") == "gpt" else {"max_predictions_per_seq": 5}
    record, said, records = made(joined(documents, " ") + "\n",
                                 **{"max_predictions_per_seq": 20, **slots, **flags})
    seen = {token for token in tokens_in(records) if token >= len(special)}
    counts = record["counts"]
    assert counts["cut_tokens"] == count - len(seen)
    if counts["cut_tokens"]:
        share = counts["cut_tokens"] / counts["tokens"]
        assert f"{counts['cut_tokens']:,} tokens, {share:.1%} of the text, are cut" in said
    if not flags.get("recipe") == "gpt":
        assert counts["long_lines"] == sum(length == 90 for sizes in lengths for length in sizes)


def test_long_lines_are_named(made):
    text = "\n".join(" ".join(random.Random(n).choices(LETTERS, k=150)) + "\n" * (n % 3 == 2)
                     for n in range(30)) + "\n"
    record, said, _ = made(text)
    assert record["counts"]["long_lines"] == 30
    cut = record["counts"]["cut_tokens"]
    assert cut > 0.7 * record["counts"]["tokens"]
    assert "longer than a sequence: 30 lines" in said
    assert "of the tokens are cut from lines that are longer than a sequence" in said


def test_pieces_and_processes_add_up(made, tmp_path):
    text = "\n\n".join(f"{'ab c d' if n % 3 else 'xyz zz'}\na b c" for n in range(40)) + "\n"
    whole = made(text)[0]["coverage"]
    for path in (tmp_path / "out").iterdir():
        if path.is_file():
            path.unlink()
    parts = made(text, piece_bytes=64, num_workers=2)[0]["coverage"]
    for name in ("tokens", "unknown_tokens", "characters", "hidden_characters", "texts",
                 "unknown_texts"):
        assert whole[name] == parts[name]
