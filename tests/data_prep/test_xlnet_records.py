"""XLNet's records: against the original's, read in their order, and what is refused."""

import gzip
import json

import numpy as np
import pytest

from bert_tf import data, recipes
from bert_tf.data.records import tfrecord
from bert_tf.errors import InputError
from data_prep import build_vocab, create_pretraining_data, verify_records
from data_prep.create_pretraining_data import PretrainingDataFlags, StreamFlags
from tests.goldens import at_hand
from tests.rounding import assert_same

RUNS = ("bi_s128", "uni_s64_all", "bi_2core_pass3", "ids_task1")
STREAM = {"num_core_per_host": 2, "bsz_per_host": 8, "use_eod": False}


@pytest.mark.parametrize("run", at_hand("golden/xlnet/{}.tfrecord.gz", [
    f"records_{run}" for run in RUNS]))
def test_golden_records(test_data, tmp_path, run):
    golden = test_data / "golden" / "xlnet"
    with open(golden / "records.json", encoding="utf-8") as file:
        described = json.load(file)[run]
    with gzip.open(golden / f"{run}.input.json.gz", "rt", encoding="utf-8") as file:
        for number, lines in enumerate(json.load(file)):
            (tmp_path / f"text_{number}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    flags, path = described["flags"], tmp_path / "r.tfrecord"
    stream = {name: flags[name] for name in (
        "bsz_per_host", "num_core_per_host", "bi_data", "mask_alpha", "mask_beta", "use_eod",
        "from_raw_text", "num_task", "pass_id")}
    create_pretraining_data.main(recipes.fill(
        PretrainingDataFlags, "xlnet", input_file=[str(tmp_path / "text_*.txt")],
        output_file=[str(path)], vocab_file=str(golden / "spiece.model"),
        max_seq_length=flags["seq_len"], max_predictions_per_seq=flags["num_predict"] or 0,
        random_seed=described["python_seed"], do_lower_case=flags["uncased"], num_workers=1,
        task=str(flags["task"]) if flags["num_task"] > 1 else ""), None, StreamFlags(**stream))
    (tmp_path / "golden").write_bytes(gzip.decompress((golden / f"{run}.tfrecord.gz").read_bytes()))
    ours, theirs = ([tfrecord.parse_example(message) for message in tfrecord.read_records(str(
        tmp_path / name))] for name in ("r.tfrecord", "golden"))
    assert len(ours) == len(theirs) == described["records"]
    assert_same(ours, theirs)
    verify_records.main(verify_records.VerifyRecordsFlags(
        input_file=[str(tmp_path / "r.manifest.json")]))


def test_carriage_returns_alone_are_no_last_line(prepare, test_data, tmp_path):
    """The original's reader drops them, so nothing is left that would become <eod>."""
    found = []
    for end in ("\n", "\n\r\r"):
        path = tmp_path / f"out{len(found)}" / "r.tfrecord"
        prepare(["A tree, a house. " * 9 + end, "Walking.\n" * 40], recipe="xlnet", dupe_factor=1,
                max_seq_length=16, max_predictions_per_seq=4, output_file=[str(path)],
                vocab_file=str(test_data / "golden/xlnet/spiece.model"),
                bsz_per_host=2)
        found.append(path.read_bytes())
    assert found[0] == found[1] != b""


@pytest.fixture(name="made")
def fixture_made(prepare, random_text):
    """Function that makes records of two tasks in two passes."""
    def make(stream=None, **flags):
        return prepare([random_text(seed) * 3 for seed in range(2)], **{
            "recipe": "xlnet", "do_lower_case": True, "max_seq_length": 16,
            "max_predictions_per_seq": 4, "dupe_factor": 2,
            "num_task": 2, **STREAM, **(stream or {}), **flags})
    return make


def test_each_batch_continues_the_one_before(made, tmp_path):
    """Whoever shares the batches, wherever one begins, and in evaluation too."""
    made()
    records = data.draw_orders(data.open_records([str(tmp_path / "out")], "input_file"), "f")
    assert (records.rows, len(records.paths)) == (8, 4)
    batches = [{name: value.numpy() for name, value in batch.items()}
               for batch in records.training_batches(0, 0, 8, 1).take(records.size // 8)]
    starts = np.stack([batch["input_ids"][:, 0] for batch in batches])
    nexts = np.stack([batch["input_ids"][:, 8] for batch in batches])
    # What follows the first half, if it is A, begins the next batch; each file begins anew.
    assert (starts[1:] == nexts[:-1]).all(1).sum() == len(batches) - 4
    assert batches[0]["is_backward"][:, 0].tolist() == [0, 0, 1, 1] * 2
    assert (batches[0]["masked_lm_weights"].sum(1) > 0).all()
    split = [batch["query_order"].numpy()
             for batch in records.training_batches(0, 16, 8, 2).take(2)]
    np.testing.assert_array_equal(np.concatenate(split), batches[2]["query_order"])
    evaluated = next(iter(records.evaluation_batches(8, 1, 1)))
    assert evaluated["is_real_example"].numpy().all() and "is_backward" in evaluated


def test_workers_and_tasks_change_nothing(made, tmp_path):
    """A task made alone is that task, but for the draws of pairs, which have its own seed."""
    made(num_workers=2)
    paths = sorted((tmp_path / "out").glob("r.tfrecord-*"))
    shards = [path.read_bytes() for path in paths]
    for path in paths[1:]:
        path.unlink()
    made(num_workers=1)
    assert [path.read_bytes() for path in paths] == shards
    assert len(set(shards)) == 4
    made(dupe_factor=1, task="0")
    assert (tmp_path / "out" / "r.tfrecord").read_bytes() == shards[0]


def test_records_out_of_order_are_found(made, tmp_path, capsys):
    made(dupe_factor=1, task="1")
    path = tmp_path / "out" / "r.tfrecord"
    messages = list(tfrecord.read_records(str(path)))
    messages[:16] = messages[8:16] + messages[:8]
    path.write_bytes(b"".join(map(tfrecord.frame, messages)))
    with pytest.raises(InputError, match="problems in 1 file[.]"):
        verify_records.main(verify_records.VerifyRecordsFlags(
            input_file=[str(path.parent)], max_problems=99))
    assert "record 8: it does not continue the record of its row" in capsys.readouterr().out


@pytest.mark.parametrize("stream, flags, message", [
    ({"bsz_per_host": 6}, {}, "--bsz_per_host=6 can't be divided .* give a multiple of 4"),
    ({"mask_beta": 7}, {}, "--mask_alpha=6 is less than --mask_beta=7"),
    ({"reuse_len": 4}, {}, "--reuse_len is 4, but it must be half of --max_seq_length, 8"),
    ({"num_task": 3}, {}, "--num_task=3: task 2 has no file, there are 2"),
    ({"use_eod": True}, {}, "has no <eod>; give a SentencePiece model of XLNet, or --nouse_eod"),
    ({"bsz_per_host": 4000}, {}, "too short for a batch of 4000 rows of 16 tokens"),
    ({"from_raw_text": False}, {}, "text0.txt has a line that is not a list of ids"),
    ({}, {"max_seq_length": 17}, "--max_seq_length is 17; it must be even"),
    ({}, {"task": "2"}, "--task=2 must be below --num_task=2"),
])
def test_refusals(made, stream, flags, message):
    with pytest.raises(InputError, match=message) as error:
        made(stream, **flags)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("style, recipe, message", [
    *(("xlnet", recipe, f"whose class token is the last, and --recipe={recipe} n")
      for recipe in ("bert", "roberta", "albert")),
    ("t5", "xlnet", "spiece.model has no special token for cls; give")])
def test_a_vocabulary_without_the_class_token_of_the_recipe_is_refused(
        prepare, tmp_path, random_text, style, recipe, message):
    text, vocabulary = tmp_path / "text.txt", str(tmp_path / "spiece.model")
    text.write_text(random_text(1))
    build_vocab.main(build_vocab.BuildVocabFlags(
        input_file=[str(text)], output_file=vocabulary, vocab_size=60, tokenizer="sentencepiece",
        sentencepiece_style=style))
    with pytest.raises(InputError, match=message):
        prepare([random_text(1)], recipe=recipe, vocab_file=vocabulary)


def test_batches_of_another_size_are_refused(made, tmp_path):
    made()
    records = data.open_records([str(tmp_path / "out")], "input_file")
    with pytest.raises(InputError, match="--train_batch_size is 16, .* for batches of 8, where"):
        records.check_batch(16, "train_batch_size", "input_file")
    with pytest.raises(InputError, match="--perm_size=3 must divide both parts"):
        data.draw_orders(records, "input_file", 3)
    with pytest.raises(InputError, match="--max_predictions_per_seq is 5, .* were made with 4"):
        data.draw_orders(records, "input_file", max_predictions_per_seq=5)
    (tmp_path / "out" / "r.manifest.json").unlink()
    with pytest.raises(InputError, match="are in order, but no manifest beside"):
        data.draw_orders(data.open_records([str(tmp_path / "out")], "input_file"), "input_file")
