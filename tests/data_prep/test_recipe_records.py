"""Records of every recipe, and of what the flags make of it."""

import json
import subprocess
import sys
import types

import pytest

from bert_tf import data, recipes
from bert_tf.data.batches import example_set
from bert_tf.data.instances.pretraining import instances_of
from bert_tf.data.masking import find
from bert_tf.data.records import features
from bert_tf.flags import applicable, program
from data_prep import create_pretraining_data, verify_records
from data_prep.pretraining_flags import recipe_defaults
from tests.data_prep.conftest import columns

# The ways to mask that each recipe has.
MASKINGS = [(recipe.name, masking) for recipe in recipes.RECIPES.values()
            for masking in ("static", "dynamic")
            if not (recipe.denoising or recipe.tasks) and find(recipe.corruption).hides
            and (masking == "static" or find(recipe.corruption).can_be_dynamic)]
STREAMS = {"xlnet": {"bsz_per_host": 2, "use_eod": False}}
# They choose no tokens to predict.
ALL_PREDICTED = ("ltr", "gpt", "t5", "transformer_xl", "elmo", "lm_lstm", "sa_lstm")
MASKS = {"masked_lm_positions", "masked_lm_ids", "masked_lm_weights"}


def small(recipe, masking):
    """The flags for small records of a recipe, of its first task if it has several."""
    once = {"dupe_factor": 1, **STREAMS[recipe]} if recipe in STREAMS else {}
    slots = {} if recipe in ALL_PREDICTED else {"max_predictions_per_seq": 5}
    return {**once, **slots, "recipe": recipe, "masking": masking or None, "max_seq_length": 32,
            "task": next(iter(recipes.find(recipe).tasks), "")}


def described(tmp_path):
    return json.loads((tmp_path / "out/r.manifest.json").read_text())


@pytest.mark.parametrize("recipe, masking", [*((name, "") for name in recipes.RECIPES), *MASKINGS])
def test_every_recipe_writes_sound_records(prepare, tmp_path, random_text, recipe, masking):
    job = prepare(random_text(1), **small(recipe, masking))
    record, found = described(tmp_path), columns(*job.output_file)
    assert set(record["features"]) == set(found)
    resolved = job.resolve().vary(tokenizer="wordpiece")
    assert recipes.from_description(record["recipe"]) == resolved
    assert (MASKS <= set(found)) == (not resolved.corruption.dynamic and not resolved.denoising)
    verify_records.main(verify_records.VerifyRecordsFlags(input_file=[str(tmp_path / "out")]))
    described_features, _ = example_set.record_features(record)
    assert [feature.name for feature in described_features] == record["features"]
    if masking:
        records = data.RecordSet.open(job.output_file, "input_file")
        assert records.size == len(next(iter(found.values())))
        assert {feature.name for feature in records.format.features} == set(found)


def test_a_recipe_is_the_flags_that_it_stands_for(prepare, tmp_path, random_text):
    prepare(random_text(2), do_whole_word_mask=True, dupe_factor=2)
    before, content = described(tmp_path), (tmp_path / "out/r.tfrecord").read_bytes()
    prepare(random_text(2), recipe="bert_wwm", dupe_factor=2, masking="static",
            segments="segment_pairs", mask_shares=["0.8", "0.1"])
    after = described(tmp_path)
    assert (tmp_path / "out/r.tfrecord").read_bytes() == content
    for manifest, name in ((before, "bert"), (after, "bert_wwm")):
        assert {recipe.pop("name") for recipe in (
            manifest["recipe"], manifest["fingerprint"]["recipe"])} == {name}
    assert after == before
    assert set(after["fingerprint"]) == {"options", "vocabulary", "pieces", "output_file", "recipe"}
    assert set(after["fingerprint"]["options"]) == {
        "do_lower_case", "do_whole_word_mask", "max_seq_length", "max_predictions_per_seq",
        "random_seed", "dupe_factor", "masked_lm_prob", "short_seq_prob", "piece_bytes",
        "blanks_separate_docs", "strip_accents", "input_format", "tag_column", "phrase_file",
        "second_share", "labels"}


def test_byte_order_marks_of_files_are_no_words(prepare, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("</S>\n<S>\n<UNK>\na\nb\n")
    records = []
    for mark in ("", "\ufeff"):
        prepare([f"{mark}a b a b a\n"] * 2, recipe="elmo", vocab_file=str(path), max_seq_length=5,
                bsz_per_host=1)
        records.append((tmp_path / "out/r.tfrecord").read_bytes())
    assert records[0] == records[1]


def test_the_report_on_elmo_counts_unknown_words_and_the_last_batch(prepare, tmp_path, capsys):
    path = tmp_path / "words.txt"
    path.write_text("</S>\n<S>\n<UNK>\na\nb\n")
    prepare("a b c a\nb b\n", recipe="elmo", vocab_file=str(path), max_seq_length=5, dupe_factor=1,
            bsz_per_host=1)
    assert described(tmp_path)["counts"]["unknown_tokens"] == 1
    said = capsys.readouterr().out
    assert "16.67% unknown tokens" in said and "are unknown" not in said
    assert "warning: 17% of the tokens are left out, in the last batch, which is not full" in said


@pytest.mark.parametrize("flags", [
    {"segments": "doc_sentences"}, {"masking": "dynamic"}, {"mask_shares": ["0.5", "0.5"]}])
def test_other_records_have_another_fingerprint(prepare, tmp_path, random_text, flags):
    prepare(random_text(2), dupe_factor=1)
    first = described(tmp_path)
    prepare(random_text(2), dupe_factor=1, **flags)
    second = described(tmp_path)
    assert first["fingerprint"] != second["fingerprint"] and first["shards"] != second["shards"]
    assert second["fingerprint"]["options"] == first["fingerprint"]["options"]


def test_settings_beside_the_vocabulary_are_in_the_fingerprint(prepare, tmp_path, vocab_file):
    found = []
    for settings in ("{}", '{"tokenize_chinese_chars": false}', '{"strip_accents": true}'):
        (vocab_file.parent / "tokenizer_config.json").write_text(settings)
        prepare("the caf\u00e9\n\u4e2d\u6587\n\nthe house\na b c\n", dupe_factor=1)
        found.append((described(tmp_path)["fingerprint"], *columns(
            tmp_path / "out/r.tfrecord")["input_ids"].ravel().tolist()))
    assert len(set(map(str, found))) == 3


def test_dynamic_records_hold_the_text(prepare, tmp_path):
    text = "".join(f"{'a b c d e f g h'[:1 + 2 * (i % 8)]}\n" for i in range(99))
    job = prepare(text, dupe_factor=1, masking="dynamic", segments="doc_sentences")
    found = columns(*job.output_file)
    with open(job.vocab_file, encoding="utf-8") as file:
        tokens = file.read().split("\n")
    shown = [tokens[index] for ids in found["input_ids"] for index in ids]
    assert sorted(token for token in shown if token.isalpha()) == sorted(text.split())
    assert not set(found) & MASKS


def test_the_report_speaks_of_what_there_is(prepare, random_text, capsys):
    prepare(random_text(5), masking="dynamic", segments="doc_sentences")
    output = capsys.readouterr().out
    assert "predictions" not in output and "random next" not in output
    assert "--dupe_factor=1 is enough" in output


def test_the_last_document_of_spanbert_needs_its_blank_line(prepare, tmp_path, random_text, capsys):
    text = random_text(1)
    for ending, is_noted in (("", True), ("\n", False)):
        prepare(text + ending, recipe="spanbert", max_seq_length=64, max_predictions_per_seq=10)
        assert ("its last document is left out" in capsys.readouterr().out) == is_noted
        counts = [int(count) for count in described(tmp_path)["token_counts"].split()]
        assert sum(counts) == described(tmp_path)["counts"]["tokens"]


def run(*flags):
    done = subprocess.run([sys.executable, "-m", "data_prep.create_pretraining_data", *flags],
                          capture_output=True, text=True, check=True)
    return done.stdout


def test_flags_come_before_the_recipe(tmp_path, vocab_file, random_text):
    (tmp_path / "text.txt").write_text(random_text(6), encoding="utf-8")
    common = [f"--input_file={tmp_path}/text.txt", f"--output_file={tmp_path}/out/r.tfrecord",
              f"--vocab_file={vocab_file}", "--recipe=bert_wwm", "--num_workers=1"]
    output = run(*common)
    assert "defaults from --recipe=bert_wwm (arXiv:1906.08101)" in output
    assert "--do_whole_word_mask=True" in output
    assert described(tmp_path)["recipe"]["corruption"]["units"] == "words"
    output = run(*common, "--nodo_whole_word_mask")
    assert "--do_whole_word_mask" not in output
    assert described(tmp_path)["recipe"]["corruption"]["units"] == "subwords"
    assert "--[no]do_whole_word_mask   (default: True" in run("--recipe=bert_wwm", "--help")


def test_every_feature_is_known():
    for recipe in recipes.RECIPES.values():
        for varied in (recipe, recipe.vary({"pairing": "doc_sentences"}),
                       recipe.vary({}, {"dynamic": True})):
            assert set(instances_of(varied).feature_names(varied)) <= set(features.KNOWN)


def test_short_sequences_have_a_share_of_the_predictions_of_long_ones():
    """XLNet's 85 are for 512 tokens."""
    for length, predictions in ((512, 85), (64, 10), (4, 1)):
        assert recipe_defaults({"recipe": "xlnet", "max_seq_length": length})[1][
            "max_predictions_per_seq"] == predictions


def test_defaults_of_a_recipe_name_what_the_recipe_has():
    assert recipe_defaults({"recipe": "bert"})[1]["random_next_sentence"] is True
    for task, copies in (("capitalization", 1), ("token_document", 1), ("knowledge_masking", 10),
                         ("sentence_reordering", 10)):
        found = recipe_defaults({"recipe": "ernie2", "task": task})[1]
        assert found.get("dupe_factor", 10) == copies
    for name in ("roberta", "electra"):     # which have no next sentence
        assert "random_next_sentence" not in recipe_defaults({"recipe": name})[1]


def test_a_number_of_steps_that_never_ends_is_not_printed(capsys):
    line = types.SimpleNamespace(
        source="a recipe", defaults={"num_warmup_steps": 1 << 30, "learning_rate": 0.5}, given=[],
        classes=[])
    program._call(lambda: None, (line, []))
    assert capsys.readouterr().out == "defaults from a recipe: --learning_rate=0.5\n"


@pytest.mark.parametrize("recipe, task, flags", [
    ("bert", "", {"segments": "doc_sentences"}), ("electra", "", {"segments": "doc_sentences"}),
    ("structbert", "", {"random_next_sentence": True}),
    *(("ernie2", task, {}) for task in recipes.find("ernie2").tasks)])
def test_defaults_of_a_recipe_are_not_refused_where_flags_vary_it(recipe, task, flags):
    given = {"recipe": recipe, "task": task, **flags}
    kind = create_pretraining_data.PretrainingDataFlags
    values = {**recipe_defaults(given)[1], **given}
    kind(["text"], ["records"], "vocab", **{
        name: values[name] for name in applicable([kind], values) if name in values}).resolve()
