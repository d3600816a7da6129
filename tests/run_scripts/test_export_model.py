"""The command bert-export-model, from flags to a model that answers."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import model_card
from bert_tf.config import EncoderConfig, T5Config
from bert_tf.errors import InputError
from bert_tf.opening import Model
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from bert_tf.tokenization import open_tokenizer
from run_scripts import export_model
from run_scripts.export_model import ExportFlags
from tests.test_fill_mask import CONFIG, LETTERS, write

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "hf_gelu"


def job(tmp_path, **options):
    return ExportFlags(**{"init_checkpoint": str(GOLDEN), "output": str(tmp_path / "out"),
                          **options})


def functions(flags):
    """The signatures of an export, which is not written: that takes longer than all else."""
    model = (bert_tf.fill_mask.open_masked_lm if flags.task == "masked_lm" else bert_tf.open_model)(
        flags.init_checkpoint)
    asked, flags = flags, export_model.resolve(flags, model)
    flags.check(asked, generates=False)
    return export_model.make_module(export_model.build(flags, model), flags, model).functions


def test_an_encoder_of_ids(tmp_path, capsys, as_program):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/flags.txt").write_text("of the model that lies here\n")
    export_model.main(as_program(job(tmp_path, format="ids", version=2)))
    assert (tmp_path / "out/flags.txt").read_text() == "of the model that lies here\n"
    assert (tmp_path / "out/2/flags.txt").read_text().endswith("\n--x=1\n")
    assert capsys.readouterr().out == f"{tmp_path}/out/2: signatures serving_default\n"
    expected = np.load(GOLDEN / "expected.npz")
    outputs = tf.saved_model.load(str(tmp_path / "out" / "2")).signatures["serving_default"](
        **{name: tf.constant(expected[name], tf.int32)
           for name in ("input_ids", "input_mask", "segment_ids")})
    assert np.allclose(outputs["pooled_output"], expected["pooled_output"], atol=1e-5)


@pytest.mark.parametrize("form", ["ids", "text"])
def test_an_encoder_without_a_pooler_gives_no_pooled_output(form, tmp_path, capsys):
    """Its pooler would have random weights."""
    save_file({name: tensor for name, tensor in load_file(GOLDEN / "model.safetensors").items()
               if "pooler" not in name}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((GOLDEN / "config.json").read_text())
    (tmp_path / "vocab.txt").write_text("\n".join([*WORDS, *map(str, range(93))]))
    serve = functions(job(tmp_path, init_checkpoint=str(tmp_path), format=form,
                          max_seq_length=8))["serving_default"]
    assert "note: pooled_output is left out, since" in capsys.readouterr().out
    outputs = serve.get_concrete_function().structured_outputs
    assert "sequence_output" in outputs and "pooled_output" not in outputs


def test_lite_in_a_new_folder(tmp_path, capsys, as_program, monkeypatch):
    for name in ("build", "make_module"):
        monkeypatch.setattr(export_model, name, lambda *_: None)
    monkeypatch.setattr(export_model.export, "save_lite", lambda module, path, int8: (
        pathlib.Path(path).touch()))
    export_model.main(as_program(job(tmp_path, format="lite_int8", max_seq_length=8,
                                     output=str(tmp_path / "new" / "m.tflite"))))
    assert sorted(os.listdir(tmp_path / "new")) == ["m.tflite", "m.tflite.flags.txt", "m.tflite.md"]
    assert "exported for LiteRT" in (tmp_path / "new" / "m.tflite.md").read_text()
    assert "m.tflite: " in capsys.readouterr().out


@pytest.mark.parametrize("options, message", [
    ({}, "--vocab_file, the model's vocabulary, must be given with --format=text"),
    ({"format": "ids", "task": "classification"}, "--labels or --num_labels must be given"),
    ({"format": "ids", "task": "multi_label"}, "--num_labels must be given"),
    ({"format": "ids", "labels": ["a", "b"]}, "--labels=a,b doesn't fit --task"),
    ({"format": "ids", "labels": ["a", "b"], "task": "tagging", "num_labels": 3}, "doesn't fit"),
    ({"format": "ids", "task": "classification", "num_labels": 2},
     "has no classification/dense/kernel, .* give a model that was trained for"),
    ({"format": "ids", "version": -1}, "--version is -1"),
    ({"format": "ids", "task": "regression", "num_labels": -1}, "--num_labels is -1; it must be"),
    ({"vocab_file": "v", "task": "answer_span", "max_query_length": 0},
     "--max_query_length is 0; it must be at least 1"),
    ({"vocab_file": "v", "task": "answer_span", "max_answer_length": 0},
     "--max_answer_length is 0; it must be at least 1"),
    ({"format": "lite", "version": 2}, "--version is for SavedModels"),
    ({"format": "ids", "num_labels": 2}, "--num_labels is for labels and numbers"),
    ({"format": "ids", "beams": 2}, "--beams is for --format=ids and models that write texts"),
    ({"format": "ids", "doc_stride": 9}, "--doc_stride is for --format=text and models that"),
    ({"format": "lite", "task": "multiple_choice"}, "export a model of --task=multiple_choice as"),
    ({"format": "lite", "max_seq_length": 1000}, "max_seq_length is 1000; it must be from 1 to"),
    ({"format": "lite", "max_seq_length": 0}, "max_seq_length is 0; it must be from 1 to"),
])
def test_bad_flags_leave_nothing_behind(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        export_model.main(job(tmp_path, **options))
    assert not os.listdir(tmp_path)


def test_weights_that_no_file_holds(tmp_path, monkeypatch):
    """TensorFlow can't freeze a graph of 2 GB, as of XLM-R-large, nor ONNX Runtime read a file."""
    monkeypatch.setattr(export_model, "_MOST_BYTES", 1000)
    with pytest.raises(InputError, match="at most 2 GB .*; give --format=ids"):
        export_model.main(job(tmp_path, format="lite_int8", max_seq_length=8))
    assert not os.listdir(tmp_path)


def resolve(flags):
    return export_model.resolve(flags, bert_tf.open_model(flags.init_checkpoint))


@pytest.mark.parametrize("name", ["roberta-base", "albert"])
def test_text_models_are_of_wordpiece(test_data, name):
    with pytest.raises(InputError, match=f"only hold a WordPiece .*{name}.* give --format=ids"):
        folder = str(test_data / "vocabs" / name)
        size = open_tokenizer(folder).vocabulary.size
        export_model.make_module(
            None, ExportFlags(init_checkpoint="c", output="o", task="encoder", vocab_file=folder),
            Model("c", bert_tf.EncoderConfig.preset("tiny", vocab_size=size)))


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "C"]


@pytest.fixture
def fine_tuned(tmp_path):
    def make(head, task, **settings):
        config = EncoderConfig(len(WORDS), 8, 1, 2, 8, max_position_embeddings=16)
        options = {"num_labels": len(task.labels)} if task.kind.labels_are_classes and (
            task.labels) else {}
        learner = bert_tf.Learner(bert_tf.BertEncoder(config),
                                  [getattr(bert_tf, head)(config, **options)])
        folder = tmp_path / "model"
        folder.mkdir()
        learner.save(folder / "model.keras")
        (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
        SavedTask(task, 9, False, settings).write(str(folder))
        return str(folder)
    return make


@pytest.mark.peer
def test_onnx_in_the_folder_of_a_library(fine_tuned, tmp_path, capsys):
    """Also of 8 bits, in the same folder."""
    session = pytest.importorskip("onnxruntime").InferenceSession
    pytest.importorskip("tf2onnx")
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("no", "maybe", "yes")))
    for form in ("onnx", "onnx_int8"):
        export_model.main(job(tmp_path, init_checkpoint=folder, format=form))
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert {"onnx/model.onnx", "onnx/model_quantized.onnx", "README.md", "config.json", "vocab.txt",
            "tokenizer_config.json", "special_tokens_map.json"} <= names
    assert not any(name.endswith(".safetensors") for name in names)
    values, special = (json.loads((tmp_path / "out" / name).read_text()) for name in (
        "config.json", "special_tokens_map.json"))
    assert values["id2label"] == {"0": "no", "1": "maybe", "2": "yes"}
    assert {name: getattr(special[name], "get", {"content": special[name]}.get)("content")
            for name in ("cls_token", "sep_token", "unk_token")} == {
        "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    batch = open_tokenizer(folder)(["a b", "a"])
    expected = bert_tf.Predictor(folder)(["a b", "a"])
    for name, tolerance in (("model", 1e-5), ("model_quantized", 0.05)):
        found = session(tmp_path / "out" / "onnx" / f"{name}.onnx")
        metadata = found.get_modelmeta().custom_metadata_map
        assert metadata.pop("onnx.infer", "onnxruntime.quant") == "onnxruntime.quant"
        assert metadata == {"task": "classification", "labels": '["no", "maybe", "yes"]',
                            "max_seq_length": "9"}
        probabilities, = found.run(["probabilities"], {
            "input_ids": np.asarray(batch["input_ids"], "int64"),
            "attention_mask": np.asarray(batch["input_mask"], "int64"),
            "token_type_ids": np.asarray(batch["segment_ids"], "int64")})
        for row, one in zip(probabilities, expected):
            assert np.allclose(row, [one["probabilities"][label] for label in (
                "no", "maybe", "yes")], atol=tolerance)
    with pytest.raises(InputError, match="--output: .* holds a model; give another folder"):
        export_model.main(job(tmp_path, init_checkpoint=folder, format="onnx", output=folder))


@pytest.mark.peer
def test_onnx_names_the_labels_of_a_multi_label_model(fine_tuned, tmp_path, capsys):
    """Of a fine-tuned folder, and of a library's, whose head a note names."""
    session = pytest.importorskip("onnxruntime").InferenceSession
    pytest.importorskip("tf2onnx")
    folder = fine_tuned("MultiLabel", Task("x", "multi_label", {}, ("a", "b", "c")))
    bert_tf.checkpoints.convert(folder, str(tmp_path / "hf"), "huggingface")
    resolve(job(tmp_path, init_checkpoint=str(tmp_path / "hf")))
    assert "--task=multi_label --num_labels=3\n" in capsys.readouterr().out
    for number, options in enumerate(({"init_checkpoint": folder}, {
            "init_checkpoint": str(tmp_path / "hf"), "task": "multi_label", "num_labels": 3})):
        path = f"{tmp_path}/{number}.onnx"
        export_model.main(job(tmp_path, format="onnx", output=path, **options))
        metadata = session(path).get_modelmeta().custom_metadata_map
        assert (metadata["task"], metadata["labels"]) == ("multi_label", '["a", "b", "c"]')


@pytest.mark.peer
def test_onnx_in_one_file_and_of_a_network_that_no_library_has(tmp_path, capsys):
    pytest.importorskip("tf2onnx")
    export_model.main(job(tmp_path, format="onnx", output=f"{tmp_path}/new/m.onnx"))
    assert sorted(os.listdir(tmp_path / "new")) == ["m.onnx", "m.onnx.md"]
    config = bert_tf.config.UniversalConfig(50, 32, 2, 2, 64, max_position_embeddings=64)
    model = bert_tf.networks.build(config)
    (tmp_path / "u").mkdir()
    model.save(tmp_path / "u" / "model.keras")
    export_model.main(job(tmp_path, init_checkpoint=f"{tmp_path}/u", format="onnx"))
    assert "gets no configuration and no tokenizer: " in capsys.readouterr().out
    assert sorted(os.listdir(tmp_path / "out")) == ["README.md", "onnx"]


@pytest.mark.parametrize("name", ["", "new/"])
def test_a_file_is_not_written_in_the_place_of_a_folder(name, tmp_path):
    with pytest.raises(InputError, match="--output: .* is a folder; name a file"):
        export_model.main(job(tmp_path, format="lite", output=f"{tmp_path}/{name}"))


def test_a_version_that_is_there_is_refused_before_the_model_is_read(tmp_path):
    (tmp_path / "out" / "1").mkdir(parents=True)
    with pytest.raises(InputError, match="out/1 is there already; give another version"):
        export_model.main(job(tmp_path, init_checkpoint="absent", format="text"))


def test_a_version_gets_its_name_last(tmp_path, monkeypatch, as_program):
    """A run that is killed then has written all that a later one, which is refused, would add."""
    replace = os.replace

    def stop(source, target):
        replace(source, target)
        if str(target).endswith("/1"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        export_model.main(as_program(job(tmp_path, format="ids")))
    assert {"flags.txt", "saved_model.pb"} <= {*os.listdir(tmp_path / "out/1")}
    assert "format `ids`" in (tmp_path / "out/README.md").read_text()


def test_what_a_fine_tuned_model_is_needs_no_flag(fine_tuned, tmp_path, monkeypatch):
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("no", "maybe", "yes")))
    export_model.main(job(tmp_path, init_checkpoint=folder))
    card = (tmp_path / "out" / "README.md").read_text()
    assert "exported for TensorFlow Serving: task `classification`, format `text`." in card
    assert "## Labels" in card
    assert f"bert-export-model \\\n        --init_checkpoint={os.path.basename(folder)}" in card
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", card, re.S)[1]
    seen: dict = {}
    exec(code.replace("A text.", "a b"), seen)
    found = seen["served"](text=tf.constant(["C b c", "a " * 20]))
    assert found["label"].numpy()[0] in (b"no", b"maybe", b"yes")
    # Cased, and cut to 9 tokens, as it was trained.
    assert found["input_ids"].numpy().tolist() == [
        [2, 7, 6, 1, 3, 0, 0, 0, 0], [2, 5, 5, 5, 5, 5, 5, 5, 3]]


def test_an_export_in_the_folder_of_a_model_leaves_its_card(fine_tuned, tmp_path):
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("no", "yes")))
    before = model_card.write_card(folder) and pathlib.Path(folder, "README.md").read_text()
    export_model.main(job(tmp_path, init_checkpoint=folder, output=folder, format="ids"))
    assert pathlib.Path(folder, "README.md").read_text() == before
    assert "exported for TensorFlow Serving" in pathlib.Path(folder, "1/README.md").read_text()


def test_a_model_that_reads_windows_is_exported_with_them(fine_tuned, tmp_path, capsys):
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("no", "yes")),
                        long_text="max")
    serve = functions(job(tmp_path, init_checkpoint=folder))["serving_default"]
    text = ["C b c", "a " * 20, "b"]
    found = serve(text=tf.constant(text))
    assert found["windows"].numpy().tolist() == [1, 4, 1]
    predicted = bert_tf.Predictor(folder)(text)
    assert [label.decode() for label in found["label"].numpy()] == [
        each["label"] for each in predicted]
    assert np.allclose(found["probabilities"], [
        list(each["probabilities"].values()) for each in predicted], atol=2e-6)
    for given in ({"format": "ids"}, {"task": "encoder"}, {"long_text": "truncate"}):
        assert resolve(job(tmp_path, init_checkpoint=folder, **given)).long_text == "truncate"
    for given in ({"format": "ids"}, {"task": "encoder"}):
        with pytest.raises(InputError, match="--long_text=mean is for --format=text and models of"):
            asked = job(tmp_path, init_checkpoint=folder, long_text="mean", **given)
            resolve(asked).check(asked, generates=False)
    # A head that can't be exported is left out, and with it the way to read long texts.
    saved = SavedTask.read(folder)
    dataclasses.replace(saved, options={"head": "attentive", "long_text": "mean"}).write(folder)
    capsys.readouterr()
    found = resolve(job(tmp_path, init_checkpoint=folder))
    found.check(job(tmp_path, init_checkpoint=folder), generates=False)
    assert (found.task, found.long_text) == ("encoder", "truncate")
    assert capsys.readouterr().out == (f"note: only the encoder is exported; the head of {folder}, "
                                       "attentive_classification, can't be exported.\n")
    resolve(job(tmp_path, init_checkpoint=folder, task="encoder"))
    assert not capsys.readouterr().out


@pytest.mark.parametrize("kind, options, reason", [
    ("similarity", {}, "reads each pair of texts in both orders"),
    ("multiple_choice", {"max_qa_length": 3}, "was trained with --max_qa_length"),
    ("classification", {"hypothesis_first": True}, "was trained with --hypothesis_first")])
def test_texts_are_refused_that_are_packed_in_another_way(fine_tuned, tmp_path, kind, options,
                                                          reason):
    folder = fine_tuned("Classification", Task("x", kind, {}, ("no", "yes")), **options)
    with pytest.raises(InputError, match=f"{folder} {reason}.* give --format=ids"):
        resolve(job(tmp_path, init_checkpoint=folder))
    for given in ({"format": "ids"}, {"task": "encoder"}):
        resolve(job(tmp_path, init_checkpoint=folder, **given))


def test_no_order_of_texts_matters_to_a_tagger(fine_tuned, tmp_path):
    """All models of several tasks have the option."""
    folder = fine_tuned("Tagging", Task("x", "tagging", {}, ("O", "B-A")), hypothesis_first=True)
    assert resolve(job(tmp_path, init_checkpoint=folder)).task == "tagging"


def test_flags_come_before_what_was_saved(fine_tuned, tmp_path):
    folder = fine_tuned("AnswerSpan", Task("x", "span", {}), max_query_length=5,
                        max_answer_length=6)
    saved = resolve(job(tmp_path, init_checkpoint=folder))
    assert (saved.task, saved.max_seq_length, saved.max_query_length, saved.max_answer_length,
            saved.do_lower_case) == ("answer_span", 9, 5, 6, False)
    given = resolve(job(
        tmp_path, init_checkpoint=os.path.join(folder, "model.keras"), task="encoder",
        max_seq_length=8, max_query_length=3, do_lower_case=True, vocab_file="other.txt"))
    assert (given.task, given.max_seq_length, given.max_query_length, given.max_answer_length,
            given.do_lower_case, given.vocab_file) == ("encoder", 8, 3, 6, True, "other.txt")
    plain = resolve(job(tmp_path))
    longest = bert_tf.open_model(str(GOLDEN)).config.max_position_embeddings
    assert (plain.task, plain.max_seq_length) == ("encoder", longest) and longest < 128


@pytest.mark.parametrize("settings, ids", [
    ({}, [6, 7, 1]), ({"do_lower_case": True}, [6, 1, 6]),
    ({"do_lower_case": False, "strip_accents": True}, [6, 7, 6])])
def test_an_encoder_has_the_tokenizer_that_its_files_describe(
        eagerly, fine_tuned, tmp_path, settings, ids):
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("no", "yes")))
    os.remove(os.path.join(folder, "task.json"))
    pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(settings))
    assert bert_tf.open_model(folder).tokenizer.encode("b C b\u0301") == ids
    serve = functions(job(tmp_path, init_checkpoint=folder, max_seq_length=9))["serving_default"]
    assert serve(text=tf.constant(["b C b\u0301"]))["input_ids"].numpy()[0, :5].tolist() == [
        2, *ids, 3]


def test_added_tokens_are_refused(fine_tuned, tmp_path):
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("no", "yes")))
    pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(
        {"added_tokens_decoder": {"5": {"content": "a"}}}))
    with pytest.raises(InputError, match="added to .*vocab.txt in texts; give --format=ids, or"):
        export_model.main(job(tmp_path, init_checkpoint=folder))


def test_breaks_of_lines_are_blanks_as_in_training(eagerly, fine_tuned, tmp_path):
    folder = fine_tuned("Classification", Task("imdb", "classification", {}, ("neg", "pos")))
    texts = ["a<br />b", " b C <br /><br /> a ", "a <br> b"]
    for task, ids in (("classification", [2, 5, 6, 3]), ("encoder", [2, 5, 1, 1])):
        serve = functions(job(tmp_path, init_checkpoint=folder, task=task))["serving_default"]
        found = serve(text=tf.constant(texts))
        assert found["input_ids"].numpy()[0, :4].tolist() == ids
        if task == "classification":
            assert np.allclose(found["probabilities"], [
                list(each["probabilities"].values()) for each in bert_tf.Predictor(folder)(texts)],
                atol=2e-6)


@pytest.mark.parametrize("options, shown, hidden", [
    ({}, ["| `max_seq_length` | 9 |", "| `long_text` | mean |", "`0` (no), `1` (yes)",
          "Measured with the model before it was exported.\n\n| score", "| dev/f1 | 0.5000 |"], []),
    ({"max_seq_length": 8, "labels": ["bad", "good"], "long_text": "truncate"},
     ["| `max_seq_length` | 8 |", "| `long_text` | truncate |", "`bad`, `good`", "| dev/f1 |"],
     ["(no)"]),
    ({"task": "encoder", "format": "lite_int8", "max_seq_length": 7},
     ["| `max_seq_length` | 7 |", "task `encoder`"], ["## Labels", "## Scores"]),
])
def test_the_card_is_of_the_export(options, shown, hidden, fine_tuned, tmp_path, monkeypatch):
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("0", "1"),
                                               label_names=("no", "yes")), long_text="mean")
    pathlib.Path(folder, "metrics.json").write_text('{"metrics": {"dev/f1": 0.5}}')
    monkeypatch.setattr(export_model, "build", lambda *_: None)
    monkeypatch.setattr(export_model, "make_module", lambda *_: types.SimpleNamespace(functions=()))
    monkeypatch.setattr(export_model.export, "save_model", lambda module, path, version, describe: (
        describe(f"{path}/{version}")))
    monkeypatch.setattr(export_model.export, "save_lite", lambda module, path, int8: (
        pathlib.Path(path).touch()))
    export_model.main(job(tmp_path, init_checkpoint=folder, **options))
    (path,) = tmp_path.rglob("out*.md") if "format" in options else [tmp_path / "out/README.md"]
    card = path.read_text()
    for part in shown:
        assert part in card, card
    assert not [part for part in hidden if part in card]


@pytest.mark.parametrize("kind, labels", [
    ("multiple_choice", ()), ("ranking", ("entailment", "not_entailment"))])
def test_multiple_choice(eagerly, fine_tuned, tmp_path, kind, labels):
    folder = fine_tuned("MultipleChoice", Task("x", kind, {}, labels))
    serve = functions(job(tmp_path, init_checkpoint=folder))["serving_default"]
    found = serve(context=tf.constant(["a b"]), choices=tf.constant([["a", "C", "b b"]]))
    assert found["probabilities"].shape == (1, 3) and found["choice"].shape == (1,)


def test_the_log_is_shown_on_request_and_a_start_imports_and_collects_no_more_than_it_needs(
        tmp_path):
    """All in one process, since a start of TensorFlow takes long."""
    flags = [f"--init_checkpoint={GOLDEN}", f"--output={tmp_path / 'out'}", "--format=ids"]
    code = """
import gc, sys
from absl.flags import FLAGS
from bert_tf.flags import parsing
from run_scripts import commands
try:
    commands.start("run_scripts.export_model")
except SystemExit as end:
    assert not end.code
print("between", file=sys.stderr, flush=True)
assert gc.isenabled() and gc.get_freeze_count() > 300_000      # the objects of TensorFlow's import
from run_scripts import export_model
FLAGS.verbosity, FLAGS.version = 1, 2
export_model.main(parsing.read(export_model.ExportFlags, FLAGS))
import bert_tf.metrics, keras
print(*sorted({'matplotlib', 'sklearn'} & sys.modules.keys()))
import matplotlib, sklearn.metrics      # ours are there afterwards
"""
    done = subprocess.run([sys.executable, "-c", code, *flags, "--version=1"],
                          capture_output=True, text=True, check=True, cwd=GOLDEN.parents[2])
    assert done.stdout.splitlines() == [
        *(f"{tmp_path / 'out' / version}: signatures serving_default" for version in "12"), ""]
    quiet, _, loud = done.stderr.partition("between")
    assert not quiet and "Assets written" in loud


@pytest.mark.parametrize("num_texts, said", [
    (1, "1 text; call its signature serving_default"), (2, "2 texts; call its signature pair"),
    (None, "")])
def test_the_signature_for_what_the_model_was_trained_on_is_named(tmp_path, capsys, num_texts,
                                                                  said):
    task = Task("own", "classification", {}, ("no", "yes"))
    export_model.resolve(job(tmp_path), Model("c", None, None, SavedTask(
        task, 16, True, {}, num_texts)))
    out = capsys.readouterr().out
    assert said in out and bool(said) == bool(out)


def test_a_head_without_its_task_is_named(fine_tuned, tmp_path, capsys):
    folder = fine_tuned("Classification", Task("x", "classification", {}, ("no", "maybe", "yes")))
    bert_tf.checkpoints.convert(folder, str(tmp_path / "hf"), "huggingface")
    os.remove(os.path.join(folder, "task.json"))
    assert resolve(job(tmp_path, init_checkpoint=folder)).task == "encoder"
    assert capsys.readouterr().out == (
        f"note: only the encoder is exported; {folder}/model.keras has a head too: "
        "--task=classification --num_labels=NUMBER\n")
    resolve(job(tmp_path, init_checkpoint=str(tmp_path / "hf")))
    assert "--task=classification --labels=no,maybe,yes\n" in capsys.readouterr().out


def test_a_network_that_makes_sequences(tmp_path, capsys):
    config = T5Config(vocab_size=20, d_model=8, d_kv=3, d_ff=12, num_layers=1, num_heads=2)
    network = bert_tf.networks.T5(config)
    network.save(tmp_path / "model.keras")
    export_model.main(job(tmp_path, init_checkpoint=str(tmp_path), format="ids",
                          max_target_length=3))
    assert capsys.readouterr().out.endswith("out/1: signatures serving_default, logits\n")
    functions = tf.saved_model.load(str(tmp_path / "out" / "1")).signatures
    tokens = tf.constant([[5, 6, 1], [7, 1, 0]])
    found = functions["serving_default"](encoder_input_tokens=tokens)["output_ids"]
    assert np.array_equal(found, network.generate(tokens, 3)) and found.shape == (2, 3)
    targets = tf.constant([[0, 4], [0, 3]])
    outputs = network({"encoder_input_tokens": tokens, "decoder_input_tokens": targets})
    logits = functions["logits"](encoder_input_tokens=tokens, decoder_input_tokens=targets)
    assert np.allclose(logits["logits"], network.logits(outputs["sequence_output"]), atol=1e-5)
    with pytest.raises(InputError, match="--beams is 0"):
        export_model.main(job(tmp_path, init_checkpoint=str(tmp_path), format="ids", beams=0,
                              version=2))


def test_sequences_are_made_as_the_task_says(tmp_path, monkeypatch):
    config = T5Config(vocab_size=20, d_model=8, d_kv=3, d_ff=12, num_layers=1, num_heads=2)
    network = bert_tf.networks.T5(config)
    network.save(tmp_path / "model.keras")
    SavedTask(Task("x", "text_to_text", {}), 8, False, {
        "max_target_length": 4, "beams": 3, "alpha": 1.5}).write(str(tmp_path))
    given = job(tmp_path, init_checkpoint=str(tmp_path), format="ids")
    monkeypatch.setattr(export_model.export, "GenerationModel", lambda *given: given)
    assert export_model.make_module(network, resolve(given), bert_tf.open_model(tmp_path)) == (
        network, 4, 3, 1.5)


def test_a_masked_lm_answers_as_fill_mask(eagerly, tmp_path):
    model = tmp_path / "run"
    write(model, bert_tf.Learner(bert_tf.BertEncoder(CONFIG), [
        bert_tf.MaskedLM(CONFIG), bert_tf.SentencePrediction(CONFIG)]))
    texts = ["a [MASK] c", "[MASK] b[MASK]d", "a b"]
    flags = {form: ExportFlags(init_checkpoint=str(model), task="masked_lm", format=form,
                               output=str(tmp_path / form), max_seq_length=16)
             for form in ("text", "ids")}
    served = functions(flags["text"])["serving_default"](text=tf.constant(texts))
    found = {name: value.numpy() for name, value in served.items()}
    assert found["masks"].tolist() == [1, 2, 0]
    wanted = [mask for answer in bert_tf.FillMask(model)(texts[:2], top_k=10)
              for mask in answer["masks"]]
    rows = [(0, 0), (1, 0), (1, 1)]
    for row, guesses in zip(rows, wanted, strict=True):
        assert [guess["id"] for guess in guesses] == found["ids"][row].tolist()
        assert [guess["token"].encode() for guess in guesses] == found["tokens"][row].tolist()
        assert np.allclose([guess["probability"] for guess in guesses],
                           found["probabilities"][row], atol=1e-6)
    ids, zeros = tf.constant([[2, 5, 4, 7, 3]]), tf.zeros([1, 5], tf.int32)
    by_ids = functions(flags["ids"])["serving_default"](ids, zeros + 1, zeros, tf.constant([[2]]))
    assert by_ids["logits"].numpy()[0, 0, :len(LETTERS)].argsort()[::-1][:10].tolist() == (
        found["ids"][0, 0].tolist())
