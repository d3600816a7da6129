"""The command bert-extract-features, beside the encoder called on one line at a time, unpadded."""

import functools
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import types

import numpy as np
import pytest

from bert_tf import checkpoints, networks
from bert_tf.checkpoints import sentence_modules
from bert_tf.config import EncoderConfig, MobileBertConfig, ModernBertConfig
from bert_tf.data.records.tfrecord import parse_example, read_records
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from bert_tf.training import reporting
from bert_tf.training.learners.learner import Learner
from bert_tf.training.train import save_model
from run_scripts import extract_features
from run_scripts.extract_features import ExtractFeaturesFlags
from tests.rounding import assert_same

pytestmark = pytest.mark.usefixtures("all_eagerly")
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
WORDS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *(f"##{word}" for word in WORDS)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a checkpoint of 2 layers and a vocabulary."""
    folder = tmp_path_factory.mktemp("model") / "google"
    shutil.copytree(GOLDEN / "google_gelu", folder)
    tokens = TOKENS + [f"[unused{i}]" for i in range(101 - len(TOKENS))]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    return folder


@pytest.fixture(scope="module")
def lines():
    """Lines of many lengths, some with two texts, some without any."""
    rng = random.Random(0)

    def text():
        return " ".join("".join(rng.choices(WORDS, k=rng.randint(1, 3)))
                        for _ in range(rng.choice([0, 1, 2, 5, 20])))
    return [text() if rng.random() < 0.6 else f"{text()} ||| {text()}" for _ in range(50)] + [""]


@pytest.fixture(scope="module")
def expected(model, lines):
    """For each line: its ids, and the encoder's outputs of this line alone."""
    tokenizer = WordpieceTokenizer(Vocabulary.from_file(str(model / "vocab.txt")))
    return [one_line(load(model), tokenizer, line, 24) for line in lines]


@functools.cache
def load(folder):
    encoder = BertEncoder(checkpoints.read_config(folder))
    checkpoints.load(folder, encoder)
    return encoder


def one_line(encoder, tokenizer, line, max_seq_length):
    vocabulary = tokenizer.vocabulary
    match = re.match(r"^(.*) \|\|\| (.*)$", line.strip())
    texts = [tokenizer.encode(text) for text in (match.groups() if match else [line])]
    texts = [text for number, text in enumerate(texts) if text or not number]
    while sum(map(len, texts)) + len(texts) + 1 > max_seq_length:
        (texts[0] if len(texts[0]) > len(texts[-1]) else texts[-1]).pop()
    ids, segments = [vocabulary.cls_id], [0]
    for number, text in enumerate(texts):
        ids += [*text, vocabulary.sep_id]
        segments += [number] * (len(text) + 1)
    outputs = encoder({"input_ids": np.array([ids]), "segment_ids": np.array([segments])})
    return ids, {-1: np.array(outputs["layer_outputs"][-1][0]),
                 0: np.array(outputs["layer_outputs"][0][0]),
                 "embeddings": np.array(outputs["embedding_output"][0]),
                 "pooler": np.array(outputs["pooled_output"][0])}


def run(tmp_path, model, lines, name, fill=lambda job: job, **options):
    """Runs the command on lines; returns the path of its output. `fill` is done to its flags."""
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    job = ExtractFeaturesFlags(**{
        "input_file": str(tmp_path / "in.txt"), "output_file": str(tmp_path / name),
        "init_checkpoint": str(model), "layers": ["-1", "0", "embeddings"],
        "max_seq_length": 24, "batch_size": 4, **options})
    extract_features.main(fill(job))
    return tmp_path / name


def test_the_last_layer_is_normed_as_in_transformers():
    """The layers have norms before their parts alone, so one follows the last."""
    config = ModernBertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16)
    built = []
    model = types.SimpleNamespace(config=config, load=lambda encoder: built.append(
        encoder) or types.SimpleNamespace(missing=[], source="model"))
    job = ExtractFeaturesFlags(input_file="", output_file="", init_checkpoint="")
    batch = {"input_ids": np.array([[3, 4, 5]], np.int32), "input_mask": np.ones((1, 3), np.int32)}
    found = extract_features.compile_model(job, model, [-1, 1, 0])(batch)
    outputs = built[0](batch)
    for vectors, expected in zip(found, (outputs["sequence_output"], outputs["sequence_output"],
                                         outputs["layer_outputs"][0]), strict=True):
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("piece_bytes", [20_000, 1])
def test_every_token_as_if_its_line_were_alone(
        tmp_path, model, lines, expected, piece_bytes, monkeypatch):
    monkeypatch.setattr(extract_features, "_PIECE_BYTES", piece_bytes)
    arrays = np.load(run(tmp_path, model, lines, "out.npz"))
    assert arrays["lengths"].tolist() == [len(ids) for ids, _ in expected]
    assert arrays["input_ids"].tolist() == [token for ids, _ in expected for token in ids]
    for name, layer in (("layer_-1", -1), ("layer_0", 0), ("embeddings", "embeddings")):
        wanted = np.concatenate([vectors[layer] for _, vectors in expected])
        np.testing.assert_allclose(arrays[name], wanted, rtol=0, atol=1e-5)


def test_json_lines_hold_the_same(tmp_path, model, lines, expected):
    out = run(tmp_path, model, lines, "out.jsonl", layers=["-1", "embeddings"])
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["linex_index"] for line in found] == list(range(len(lines)))
    for line, (ids, vectors) in zip(found, expected, strict=True):
        assert [TOKENS.index(feature["token"]) for feature in line["features"]] == ids
        for feature, last, first in zip(line["features"], vectors[-1], vectors["embeddings"]):
            assert [layer["index"] for layer in feature["layers"]] == [-1, "embeddings"]
            np.testing.assert_allclose(
                [layer["values"] for layer in feature["layers"]], [last, first], rtol=0, atol=2e-5)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_are_as_large_as_they_may_be(seed):
    rng = np.random.default_rng(seed)
    rows, most = rng.integers(1, 30, 60), int(rng.integers(1, 90))
    spans = list(extract_features.split(rows, most))
    assert [i for start, end in spans for i in range(start, end)] == list(range(60))
    for start, end in spans:
        assert end == start + 1 or rows[start:end].sum() <= most
        assert end == 60 or rows[start:end + 1].sum() > most


@pytest.mark.parametrize("pooling, of_one", [
    ("cls", lambda rows: rows[0]), ("mean", lambda rows: rows.mean(0)),
    ("max", lambda rows: rows.max(0))])
def test_a_vector_a_line(tmp_path, model, lines, expected, pooling, of_one, monkeypatch):
    monkeypatch.setattr(extract_features, "_PIECE_LINES", 13)
    wanted = np.array([of_one(vectors[-1]) for _, vectors in expected])
    records = run(tmp_path, model, lines, "out.tfrecord", pooling=pooling, layers=["-1"])
    examples = [parse_example(record) for record in read_records(records)]
    assert [example["unique_id"].item() for example in examples] == list(range(len(lines)))
    np.testing.assert_allclose([e["layer_-1"] for e in examples], wanted, rtol=0, atol=1e-5)
    unit = np.load(run(tmp_path, model, lines, "out.npz", pooling=pooling, normalize=True))
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(unit["layer_-1"], wanted, rtol=0, atol=1e-5)


def test_the_pooler(tmp_path, model, lines, expected):
    from safetensors.numpy import load_file
    arrays = load_file(run(tmp_path, model, lines, "out.safetensors", pooling="pooler"))
    assert list(arrays) == ["pooler"]
    np.testing.assert_allclose(arrays["pooler"], [vectors["pooler"] for _, vectors in expected],
                               rtol=0, atol=1e-5)


def test_half_the_digits(tmp_path, model, lines, expected):
    arrays = np.load(run(tmp_path, model, lines, "out.npz", pooling="mean", dtype="bfloat16"))
    wanted = np.array([vectors[-1].mean(0) for _, vectors in expected])
    assert arrays["layer_-1"].dtype == np.float32
    error = np.abs(arrays["layer_-1"] - wanted).max()
    assert 1e-5 < error < 0.1


def test_what_it_says(tmp_path, model, lines, capsys, monkeypatch):
    monkeypatch.setattr(reporting.TimeLeft, "SECONDS", 0)
    monkeypatch.setattr(extract_features, "_PIECE_LINES", 20)
    lengths = np.load(run(tmp_path, model, lines, "whole.npz", max_seq_length=40))["lengths"]
    assert lengths.max() > 24
    capsys.readouterr()
    tokens = np.load(run(tmp_path, model, lines, "out.npz"))["lengths"].sum()
    said = capsys.readouterr().out
    assert re.search(r"^20/51 lines, about \d+ s left$", said, re.M)
    assert f"\n{sum(lengths > 24)} lines cut to 24 tokens\n" in said
    assert re.search(rf"^51 lines, {tokens:,} tokens in [\d.]+ s and [\d.]+ CPU s: ", said, re.M)


def test_files_that_do_not_stand_together_and_gzip(tmp_path, model, lines):
    apart = tmp_path / "apart"
    apart.mkdir()
    shutil.copy(model / "vocab.txt", apart / "v.txt")
    shutil.copy(model / "bert_config.json", apart / "c.json")
    for file in model.glob("bert_model*"):
        shutil.copy(file, apart)
    (tmp_path / "in.gz").write_bytes(gzip.compress("\n".join(lines[:9]).encode()))
    one = np.load(run(tmp_path, model, lines[:9], "a.npz", pooling="cls"))
    other = np.load(run(tmp_path, apart, [], "b.npz", pooling="cls",
                        input_file=str(tmp_path / "in.gz"), vocab_file=str(apart / "v.txt"),
                        bert_config_file=str(apart / "c.json")))
    assert_same(dict(other), dict(one))


@pytest.mark.parametrize("text, options, message", [
    (b"", {}, "in.txt is empty; it must hold one text per line"),
    (b"a\nb\xff\n", {}, "in.txt, line 2, byte 2 is not UTF-8"),
    (b"a", {"input_file": "no.txt"}, "--input_file: there is no file no.txt"),
    (b"a", {"output_file": "x.txt"}, "--output_file: no format has the extension of x.txt"),
    (b"a", {"output_file": ".", "output_format": "npz"}, "--output_file: '.' is a folder; name"),
    (b"a", {"layers": ["-3"]}, "there is no layer -3; the model has 2, from 0 or -2 to 1 or -1"),
    (b"a", {"layers": ["2"]}, "there is no layer 2"),
    (b"a", {"layers": ["last"]}, "'last' must be a number, or embeddings"),
    (b"a", {"layers": ["-1", "0", "-1"]}, "--layers names -1 twice"),
    (b"a", {"layers": []}, "--layers names no layer"),
    (b"a", {"max_seq_length": 41}, "--max_seq_length is 41, but the model reads at most 40"),
    (b"a", {"max_seq_length": 2}, "--max_seq_length is 2; it must be at least 3"),
    (b"a", {"batch_size": 0}, "--batch_size is 0"),
])
def test_what_cannot_be_done(tmp_path, model, text, options, message, monkeypatch):
    (tmp_path / "in.txt").write_bytes(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(message)):
        extract_features.main(ExtractFeaturesFlags(**{
            "input_file": "in.txt", "output_file": "out.npz", "init_checkpoint": str(model),
            "layers": ["-1"], "max_seq_length": 8, **options}))
    assert os.listdir(tmp_path) == ["in.txt"]


def test_a_checkpoint_without_a_pooler(tmp_path, model, as_program):
    from bert_tf import checkpoints
    bare = tmp_path / "bare"
    checkpoints.convert(str(model), str(bare), "huggingface",
                       checkpoints.Changes(leave_out=("pooler", "next_sentence")))
    run(tmp_path, bare, ["a"], "out.npz", as_program, pooling="mean")
    with pytest.raises(InputError, match="has no pooler/dense/.*; give another --pooling"):
        run(tmp_path, bare, ["a"], "other.npz", as_program, pooling="pooler")
    (kept,) = tmp_path.glob("*flags.txt")
    assert kept.name == "out.npz.flags.txt" and kept.read_text().endswith("\n--x=1\n")


def test_a_network_without_a_pooler(tmp_path):
    """ELECTRA's pooled output is the vector of [CLS], which no layer was trained on."""
    folder = tmp_path / "model"
    folder.mkdir()
    save_model(folder, Learner(networks.build(EncoderConfig(
        len(TOKENS), 16, 2, 2, 32, pooler_type="first_token")), []))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    with pytest.raises(InputError, match="has no trained layer on top .*; give another --pooling"):
        run(tmp_path, folder, ["a"], "out.npz", pooling="pooler")


@pytest.mark.parametrize("config, width", [
    (MobileBertConfig(len(TOKENS), 16, 2, 2, 32, embedding_size=8, trigram_input=True), 16),
    (EncoderConfig(len(TOKENS), 16, 2, 2, 32, embedding_size=8), 8)])
def test_embeddings_of_their_own_width(tmp_path, config, width):
    """MobileBERT's are widened before they are an output, ALBERT's and ELECTRA's after it."""
    folder = tmp_path / "model"
    folder.mkdir()
    network = networks.build(config)
    save_model(folder, Learner(network, []))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    found = np.load(run(tmp_path, folder, ["a b c"], "out.npz"))
    wanted = network({"input_ids": found["input_ids"][None]})["embedding_output"]
    assert found["embeddings"].shape == (5, width)
    np.testing.assert_allclose(found["embeddings"], wanted[0], rtol=1e-6, atol=1e-6)


def test_the_outputs_of_the_original(test_data):
    folder = test_data / "weights" / "bert-tiny-question-classifier"
    golden = np.load(test_data / "golden" / "bert_tiny_forward_seed1.npz")
    job = ExtractFeaturesFlags(input_file="", output_file="", init_checkpoint=str(folder))
    names = {-1: "layer_1", -2: "layer_0", "embeddings": "embedding_output"}
    outputs = extract_features.compile_model(job, job.open(), list(names))(golden)
    is_token = golden["input_mask"] == 1
    for name, vectors in zip(names.values(), outputs, strict=True):
        np.testing.assert_allclose(vectors[is_token], golden[name][is_token], rtol=0, atol=1e-5)


def test_tokens_of_long_texts_come_from_the_window_with_most_context(tmp_path, model, lines):
    """Against windows that are found, read and joined one by one."""
    rng = random.Random(4)
    texts = [" ".join(rng.choices(WORDS, k=count)) for count in (7, 23, 60, 22)]
    texts += ["a b ||| c", " ".join(rng.choices(WORDS, k=41))]
    tokenizer = WordpieceTokenizer(Vocabulary.from_file(str(model / "vocab.txt")))
    wanted, all_ids = [], []
    for text in texts:
        ids = tokenizer.encode(text)
        if "|||" in text or len(ids) <= 22:
            its, vectors = one_line(load(model), tokenizer, text, 24)
            wanted.append(vectors[-1])
            all_ids += its
            continue
        count = -(-(len(ids) - 22) // 11) + 1
        starts = [round(number * (len(ids) - 22) / (count - 1)) for number in range(count)]
        parts = [" ".join(text.split()[start:start + 22]) for start in starts]
        seen = [one_line(load(model), tokenizer, part, 24)[1][-1] for part in parts]
        best = []
        for place in range(len(ids)):
            context = [min(place - start, start + 21 - place) for start in starts]
            window = context.index(max(context))
            best.append(seen[window][1 + place - starts[window]])
        wanted.append(np.stack([seen[0][0], *best, seen[-1][-1]]))
        all_ids += [2, *ids, 3]
    arrays = np.load(run(tmp_path, model, texts, "out.npz", long_text="windows"))
    assert arrays["input_ids"].tolist() == all_ids
    # Batches of other shapes round otherwise; another window changes much more.
    np.testing.assert_allclose(arrays["layer_-1"], np.concatenate(wanted), rtol=0, atol=1e-5)
    short = np.load(run(tmp_path, model, lines, "short.npz", long_text="windows"))
    before = np.load(run(tmp_path, model, lines, "before.npz"))
    fits = short["lengths"] == before["lengths"]
    assert 0 < (~fits).sum() < 10
    for name in ("input_ids", "layer_-1"):
        ours, theirs = (np.split(found[name], np.cumsum(found["lengths"])[:-1])
                        for found in (short, before))
        assert all(np.allclose(ours[n], theirs[n], atol=1e-6) for n in np.flatnonzero(fits))
    with pytest.raises(InputError, match="--pooling=none"):
        run(tmp_path, model, texts, "out.npz", long_text="windows", pooling="mean")


@pytest.mark.parametrize(("pooling", "flags", "differs"), [
    ({"pooling_mode": "mean"}, {"pooling": "mean", "normalize": True, "max_seq_length": 40}, []),
    ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "include_prompt": False},
     {"pooling": "mean", "normalize": True, "max_seq_length": 40},
     ["its pooling is cls", "its pooling leaves these beginnings out"]),
    ({"pooling_mode_weightedmean_tokens": True}, {"pooling": "mean"}, [
        "its pooling is weightedmean", "it normalises vectors (--normalize)",
        "it reads up to 40 tokens (--max_seq_length)"]),
    ({"pooling_mode": "lasttoken"}, {"pooling": "last", "normalize": True, "max_seq_length": 40},
     ["it lower-cases texts (--do_lower_case)"]),
    ({"pooling_mode": ["mean", "max"]}, {"pooling": "mean", "normalize": True,
                                         "max_seq_length": 40},
     ["its pooling is mean and max", "it takes the first 8 numbers of a vector"]),
])
def test_what_sentence_transformers_does_besides(tmp_path, capsys, pooling, flags, differs):
    modules = ["models.Transformer", "models.Pooling", "models.Normalize"]
    prompts = {"document": ""}
    mode = pooling.get("pooling_mode")
    if not mode:
        modules.append("models.Dense")
        prompts["query"] = "query: "
        differs = [*differs, "its layer 3_Dense is not computed here",
                   "for query, it begins a text with 'query: '"]
    (tmp_path / "1_Pooling").mkdir()
    texts = {"prompts": prompts}
    if isinstance(mode, list):
        texts["truncate_dim"] = 8
    for name, content in {
            "modules.json": [{"type": f"sentence_transformers.{kind}", "path":
                              f"{number}_{kind.rpartition('.')[2]}" if number else ""}
                             for number, kind in enumerate(modules)],
            "1_Pooling/config.json": pooling,
            "sentence_bert_config.json": {"do_lower_case": mode == "lasttoken"},
            "tokenizer_config.json": {"model_max_length": 10**30},
            "config_sentence_transformers.json": texts}.items():
        (tmp_path / name).write_text(json.dumps(content))
    model = types.SimpleNamespace(folder=str(tmp_path),
                                  config=types.SimpleNamespace(max_position_embeddings=40),
                                  tokenizer=types.SimpleNamespace(do_lower_case=False))
    extract_features.warn_of_modules(ExtractFeaturesFlags(
        init_checkpoint="", input_file="", output_file="", **flags), model)
    said = capsys.readouterr().err.partition("vectors: ")[2].removesuffix(".\n")
    assert sorted(filter(None, said.split("; "))) == sorted(differs)
    # As versions before 2 wrote the network.
    (tmp_path / "modules.json").write_text('[{"type": "x.Transformer", "path": "0_Transformer"}]')
    assert sentence_modules.read(f"{tmp_path}/0_Transformer") == {}
    assert "0_Transformer is a part of the model of sentence-trans" in capsys.readouterr().err
    assert sentence_modules.read(f"{tmp_path}/trained_further") == {}
    assert not capsys.readouterr().err
