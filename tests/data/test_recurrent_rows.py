"""Texts in rows that are read side by side."""

import numpy as np
import pytest

from bert_tf.data.text.corpus import tokenize_documents
from bert_tf.models.recurrent import instances as sequences
from bert_tf.models.recurrent.instances import sentence_rows, stream_rows, text_rows
from bert_tf.tokenization import open_tokenizer


def test_streams_of_sentences_are_those_of_the_original(test_data, tmp_path):
    file = np.load(test_data / "golden" / "elmo" / "bilm_training_seed1.npz")
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in file["vocabulary"]))
    tokenizer = open_tokenizer(str(tmp_path))
    assert tokenizer.name == "elmo_words" and not tokenizer.do_lower_case
    documents = tokenize_documents([*file["sentences"].tolist(), ""], tokenizer)
    for reverse, ending in ((False, ""), (True, "_reverse")):
        found = sentence_rows(documents, tokenizer.vocabulary, range(20), 3, 6, reverse)
        for values, name in zip(found, ("token_ids", "next_token_id")):
            wanted = np.concatenate([file[f"step{step}/{name}{ending}"] for step in range(3)])
            np.testing.assert_array_equal(np.where(values < 43, values, 2)[:9], wanted)


def test_a_long_text_goes_on_in_its_row_and_the_next_takes_its_place():
    lengths = [7, 2, 4, 3, 1]
    texts = [sequences.language_model(np.arange(n) + 10 * (i + 1)) for i, n in enumerate(lengths)]
    found = text_rows(iter(texts), rows=2, steps=3)
    ids = found["input_ids"].reshape(-1, 2, 3)
    np.testing.assert_array_equal(ids[:, 0], [[10, 11, 12], [13, 14, 15], [16, 0, 0], [40, 41, 42]])
    np.testing.assert_array_equal(ids[:, 1], [[20, 21, 0], [30, 31, 32], [33, 0, 0], [50, 0, 0]])
    assert found["is_start"].ravel().tolist() == [1, 1, 0, 1, 0, 0, 1, 1]
    assert found["input_mask"].sum() == sum(lengths)
    assert found["next_token_weights"].sum() == sum(lengths) - len(lengths)


@pytest.mark.parametrize("rows, steps", [(1, 100), (1, 3), (3, 4), (5, 2), (40, 3)])
def test_a_stream_predicts_each_token_once_in_rows_that_go_on(tmp_path, rows, steps):
    lines = ["the dog barks .", "no one hears", "", "it barked", ""]
    (tmp_path / "vocab.txt").write_text("\n".join(
        "[PAD] [UNK] [CLS] [SEP] [MASK] the dog bark ##s ##ed . no one hears it".split()))
    tokenizer = open_tokenizer(str(tmp_path / "vocab.txt"))
    documents = tokenize_documents(lines, tokenizer)
    found = stream_rows(documents, tokenizer.vocabulary.sep_id, rows, steps)
    text = "[SEP] the dog bark ##s . no one hears [SEP] it bark ##ed [SEP]".split()
    by_row = {name: values.reshape(-1, rows, steps).swapaxes(0, 1).reshape(rows, -1)
              for name, values in found.items() if name != "is_start"}
    used = by_row["input_mask"] == 1
    assert (np.diff(by_row["input_mask"]) <= 0).all()
    for name, wanted in (("input_ids", text[:-1]), ("next_token_ids", text[1:])):
        assert [tokenizer.vocabulary.tokens[i] for i in by_row[name][used]] == wanted
    np.testing.assert_array_equal(used, by_row["next_token_weights"])
    assert by_row["next_token_boundary"].sum() == len(" ".join(lines).split()) == 9
    assert found["is_start"].ravel().tolist() == [1] * rows + [0] * (len(found["is_start"]) - rows)
