"""Hugging Face's types of models beside BERT, against their own code's files and outputs."""

import itertools
import json
import math
import pathlib
import re
import shutil
import warnings

import numpy as np
import pytest
import tokenizers
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints, training
from bert_tf.checkpoints import convert
from bert_tf.checkpoints.huggingface_config import read_config
from bert_tf.config import (
    EncoderConfig,
    GPTConfig,
    MobileBertConfig,
    XLNetConfig,
    config_from_dict,
)
from bert_tf.errors import InputError
from bert_tf.layers.functions import ACTIVATIONS
from bert_tf.models.gpt import huggingface as huggingface_gpt
from bert_tf.networks import build
from bert_tf.opening import open_model
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad import Paragraph, Question
from bert_tf.tokenization import byte_bpe, open_tokenizer
from tests.rounding import ROUNDED, off

POSITIONS = "roberta.embeddings.position_embeddings.weight"


@pytest.fixture
def roberta(test_data):
    return test_data / "golden" / "roberta" / "hf_roberta_tiny_seed1"


def test_roberta_computes_what_fairseq_does(roberta):
    wanted = dict(np.load(roberta / "expected.npz"))
    batch = {name: wanted[name] for name in ("input_ids", "input_mask")}
    tokens = batch["input_mask"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)    # of the pooler, which is new
        learner = bert_tf.MaskedLM.from_pretrained(roberta)
    outputs = learner.encoder({**batch, "segment_ids": batch["input_mask"]})    # has no segments
    everywhere = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    found = {"embedding_output": outputs["embedding_output"],
             **{f"layer_{i}": layer for i, layer in enumerate(outputs["layer_outputs"], 1)},
             "mlm_logits": learner({**batch, "masked_lm_positions": everywhere})["masked_lm"]}
    for name in found.keys() & wanted:
        assert off(np.asarray(found[name])[tokens], wanted[name][tokens]) < ROUNDED, name
    assert learner.encoder.config == EncoderConfig(
        301, 32, 2, 4, 64, "gelu_erf", max_position_embeddings=40, type_vocab_size=1,
        layer_norm_eps=1e-5, model_type="roberta")


@pytest.mark.parametrize("kind", ["roberta", "electra", "bert"])
@pytest.mark.parametrize("activation", ["relu", "gelu_erf"])
def test_a_head_with_another_activation_in_transformers_is_named(kind, activation, tmp_path):
    """RobertaLMHead and ElectraGeneratorPredictions of transformers apply GELU in any model."""
    config = EncoderConfig(9, 4, 1, 1, 4, activation, max_position_embeddings=8,
                           type_vocab_size=1, model_type=kind)
    bert_tf.Learner(bert_tf.BertEncoder(config), [bert_tf.MaskedLM(config)]).save(
        tmp_path / "model.keras")
    told = "has the exact GELU in transformers"
    account = convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    assert str(account).count(told) == (activation == "relu" and kind != "bert")
    for form in ("huggingface", "keras"):
        read = convert(tmp_path / "hf", tmp_path / form, form)
        assert str(read).count(told) == str(account).count(told)
    # A file of transformers does not say what its class does.
    path = tmp_path / "hf" / "config.json"
    values = json.loads(path.read_text())
    values.pop("prediction_act", None)
    path.write_text(json.dumps(values))
    head, = bert_tf.MaskedLM.from_pretrained(tmp_path / "hf").objectives
    assert head.transform.transform.activation is ACTIVATIONS[
        activation if kind == "bert" else "gelu_erf"]
    assert told not in str(convert(tmp_path / "hf", tmp_path / "again", "huggingface"))


def test_roberta_there_and_back(roberta, tmp_path):
    account = str(convert(roberta, tmp_path / "hf", "huggingface"))
    assert f"{POSITIONS}: the first 2 of 42 rows are left out" in account
    assert "begins with 2 rows that no token uses" in account
    assert str(convert(roberta, tmp_path / "dry", "huggingface", dry_run=True)) == account
    before, after = (load_file(folder / "model.safetensors") for folder in (
        roberta, tmp_path / "hf"))
    assert before.keys() == after.keys()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    theirs, ours = (json.loads((folder / "config.json").read_text()) for folder in (
        roberta, tmp_path / "hf"))
    assert {key: theirs[key] for key in ours.keys() & theirs} == {
        key: ours[key] for key in ours.keys() & theirs}
    assert ours["max_position_embeddings"] == 42 and ours["pad_token_id"] == 1

    # The rows that no token has are lost on the way through a network.
    convert(roberta, tmp_path / "keras", "keras")
    convert(tmp_path / "keras", tmp_path / "back", "huggingface")
    back = load_file(tmp_path / "back" / "model.safetensors")
    assert not back[POSITIONS][:2].any()
    before[POSITIONS][:2] = 0
    assert all(before[name].tobytes() == back[name].tobytes() for name in before)


@pytest.mark.parametrize("end, two_layers", [
    ("SequenceClassification", True), ("TokenClassification", False)])
def test_classifiers_of_roberta(end, two_layers, roberta, tmp_path):
    folder = pathlib.Path(shutil.copytree(roberta, tmp_path / "hf"))
    tensors = {name: value for name, value in load_file(folder / "model.safetensors").items()
               if not name.startswith("lm_head")}
    draw = np.random.default_rng(0).normal
    layers = {"roberta.pooler.dense": 32} | (
        {"classifier.dense": 32, "classifier.out_proj": 3} if two_layers else {"classifier": 3})
    for name, rows in layers.items():
        tensors |= {f"{name}.weight": draw(size=(rows, 32)).astype("f"),
                    f"{name}.bias": draw(size=rows).astype("f")}
    save_file(tensors, folder / "model.safetensors")
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**values, "architectures": [f"RobertaFor{end}"]}))

    weights = checkpoints.read(folder)
    pooler = "classifier.dense" if two_layers else "roberta.pooler.dense"
    head = "classification" if two_layers else "tagging"
    last = "classifier.out_proj" if two_layers else "classifier"
    assert np.array_equal(weights.tensors["pooler/dense/kernel"].read().T,
                          tensors[f"{pooler}.weight"])
    assert np.array_equal(weights.tensors[f"{head}/dense/bias"].read(), tensors[f"{last}.bias"])
    assert set(weights.ignored) == ({"roberta.pooler.dense.weight", "roberta.pooler.dense.bias"}
                                    if two_layers else set())
    convert(folder, tmp_path / "out", "huggingface")
    back = load_file(tmp_path / "out" / "model.safetensors")
    assert back.keys() == tensors.keys() - weights.ignored
    assert all(back[name].tobytes() == tensors[name].tobytes() for name in back)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == [
        f"RobertaFor{end}"]
    # Of a fork, whose class has other layers than transformers' of the same name.
    other = "TokenClassification" if two_layers else "SequenceClassification"
    (folder / "config.json").write_text(
        json.dumps({**values, "architectures": [f"RobertaFor{other}"]}))
    with pytest.raises(InputError, match="has no place for tensor 'classifier[.]"):
        checkpoints.read(folder)


@pytest.mark.parametrize("network", ["albert", "xlnet"])
def test_the_tokenizer_gives_the_segments(network, test_data, tmp_path):
    """The class of transformers leaves them out by default."""
    vocab_file = str(test_data / "vocabs" / "albert" / "spiece.model")
    config = EncoderConfig(30000, 8, 1, 1, 8, model_type="albert") if network == "albert" else (
        XLNetConfig(30000, d_model=8, n_layer=1, n_head=1, d_head=8, d_inner=8, untie_r=True))
    build(config).save(tmp_path / "model.keras")
    convert(tmp_path, tmp_path / "hf", "huggingface", checkpoints.Changes(vocab_file=vocab_file))
    settings = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())
    assert settings["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]


def test_the_files_of_a_tokenizer_go_with_the_weights(roberta, tmp_path):
    first = [*byte_bpe.ANGLE_ROLES.values(), *byte_bpe.byte_characters()]
    tokens = dict(zip([*first, "he", "hel"], range(len(first) + 2)))
    source = tmp_path / "tokenizer"
    source.mkdir()
    (source / "vocab.json").write_text(json.dumps(tokens))
    (source / "merges.txt").write_text("#version: 0.2\nh e\nhe l\n")
    changes = checkpoints.Changes(vocab_file=str(source / "vocab.json"))
    for before, after, form in ((roberta, "hf", "huggingface"), ("hf", "keras", "keras"),
                                ("keras", "back", "huggingface")):
        convert(tmp_path / before, tmp_path / after, form, changes)
        changes = checkpoints.Changes()
        for name in ("vocab.json", "merges.txt"):
            assert (tmp_path / after / name).read_bytes() == (source / name).read_bytes()
        assert not (tmp_path / after / "vocab.txt").exists()
    settings = json.loads((tmp_path / "back" / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == "RobertaTokenizer" and not settings["add_prefix_space"]
    assert settings["model_input_names"] == ["input_ids", "attention_mask"]     # no segments
    (tmp_path / "back" / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    convert(tmp_path / "back", tmp_path / "kept", "keras")
    convert(tmp_path / "kept", tmp_path / "again", "huggingface")
    assert json.loads((tmp_path / "again" / "tokenizer_config.json").read_text()) == {
        **settings, "add_prefix_space": True}
    del tokens["hel"]
    (source / "vocab.json").write_text(json.dumps(tokens))
    (source / "merges.txt").write_text("#version: 0.2\nh e\n")
    with pytest.raises(InputError, match="words can only be added to a WordPiece vocabulary"):
        convert(tmp_path / "hf", tmp_path / "other", "huggingface",
                checkpoints.Changes(vocab_file=str(source / "vocab.json")))


@pytest.mark.parametrize("end, head, layers", [
    ("SequenceClassification", "regression", ["classifier.dense", "classifier.out_proj"]),
    ("MultipleChoice", "multiple_choice", ["sequence_summary.summary", "classifier"])])
def test_a_classifier_of_electra_with_a_hidden_layer(end, head, layers, tmp_path):
    """ElectraClassificationHead and SequenceSummary of transformers: an exact GELU on the vector of
    the first token; tests/checkpoints/test_peers.py compares them with transformers."""
    config = EncoderConfig(9, 4, 1, 1, 4, max_position_embeddings=8, type_vocab_size=1,
                           hidden_act="gelu_erf", model_type="electra")
    bert_tf.Learner(bert_tf.BertEncoder(config), []).save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    tensors, random = load_file(tmp_path / "hf" / "model.safetensors"), np.random.default_rng(0)
    more = {f"{layer}.{part}": random.normal(size=shape).astype("f")
            for layer, width in zip(layers, (4, 1))
            for part, shape in (("weight", (width, 4)), ("bias", width))}
    save_file({name if name.startswith("electra.") else f"electra.{name}": value
               for name, value in tensors.items()} | more, tmp_path / "hf" / "model.safetensors")
    path = tmp_path / "hf" / "config.json"
    values = {**json.loads(path.read_text()), "architectures": [f"ElectraFor{end}"]}
    path.write_text(json.dumps({**values, "summary_type": "last"}))
    if head == "regression":        # no key of a summary says anything of it
        convert(tmp_path / "hf", tmp_path / "kept", "huggingface")
        assert json.loads((tmp_path / "kept" / "config.json").read_text())["summary_type"] == "last"
    else:
        with pytest.raises(InputError, match="summary_type must be 'first', not 'last'"):
            checkpoints.read(tmp_path / "hf")
    path.write_text(json.dumps(values))
    model = checkpoints.read(tmp_path / "hf")
    assert model.config.pooler_type == "first_token_gelu" and not model.ignored
    learner = (bert_tf.Regression if head == "regression" else bert_tf.MultipleChoice
               ).from_pretrained(tmp_path / "hf")
    ids = np.array([[2, 5, 6, 3]])
    first = np.asarray(learner.encoder({"input_ids": ids})["sequence_output"])[:, 0]
    weights = [more[f"{layer}.{part}"] for layer in layers for part in ("weight", "bias")]
    hidden = first @ weights[0].T + weights[1]
    gelu = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
    batch = {"input_ids": ids[:, None] if head == "multiple_choice" else ids}
    np.testing.assert_allclose(np.asarray(learner(batch)[head]).ravel(),
                               (gelu @ weights[2].T + weights[3]).ravel(), atol=1e-6)
    convert(tmp_path / "hf", tmp_path / "again", "huggingface")
    again = load_file(tmp_path / "again" / "model.safetensors")
    assert all(np.array_equal(again[name], more[name]) for name in more)
    with pytest.raises(InputError, match="pooler"):
        convert(tmp_path / "hf", tmp_path / "no", "google")


@pytest.mark.parametrize("names, padding, is_told", [
    (["[CLS]", "a", "[PAD]", "[SEP]", "[UNK]", "[MASK]"], 2, False),        # as klue/roberta-base
    (["[CLS]", "a", "[SEP]", "[UNK]", "[MASK]"], 1, True)])
def test_padding_is_where_the_vocabulary_has_it(names, padding, is_told, tmp_path):
    """The first token's position in transformers is the one after the id of padding."""
    config = EncoderConfig(len(names), 4, 1, 1, 4, max_position_embeddings=8, type_vocab_size=1,
                           model_type="roberta")
    bert_tf.Learner(bert_tf.BertEncoder(config), []).save(tmp_path / "model.keras")
    (tmp_path / "vocab.txt").write_text("\n".join(names))
    account = str(convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface"))
    values = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert (values["pad_token_id"], values["max_position_embeddings"]) == (padding, padding + 9)
    assert ("no padding: transformers takes token 1, 'a', for it" in account) == is_told


def converted_roberta(folder, objective, *arguments):
    """Makes a small RoBERTa, and converts it to `folder`/hf; returns the account."""
    tokens = [*byte_bpe.ANGLE_ROLES.values(), *byte_bpe.byte_characters(), "he"]
    (folder / "vocab.json").write_text(json.dumps(dict(zip(tokens, range(len(tokens))))))
    (folder / "merges.txt").write_text("#version: 0.2\nh e\n")
    config = EncoderConfig(len(tokens), 4, 1, 1, 4, "gelu_erf", max_position_embeddings=72,
                           type_vocab_size=1, model_type="roberta")
    bert_tf.Learner(bert_tf.BertEncoder(config), [objective(config, *arguments)]).save(
        folder / "model.keras")
    return str(convert(folder / "model.keras", folder / "hf", "huggingface"))


def test_the_first_word_of_a_tagger_of_roberta_follows_a_blank_in_transformers_too(tmp_path):
    assert "no blank before" not in converted_roberta(tmp_path, bert_tf.Tagging, 3)
    words = ["he", "said", "hehe."]
    ids, _ = open_tokenizer(tmp_path / "hf").encode_words(words)
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    assert library.encode(" ".join(words), add_special_tokens=False).ids == ids.tolist()
    settings = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())
    assert settings["add_prefix_space"]     # what files without tokenizer.json are read with


def test_passages_of_roberta_are_read_as_transformers_reads_them(tmp_path):
    """As one text: the first word follows no blank, and all blanks count."""
    account = converted_roberta(tmp_path, bert_tf.AnswerSpan)
    assert "no blank before the first word of a passage" in account
    model = open_model(tmp_path / "hf", finetuned=True)
    context = "he  said\nhehe."
    question = Question("0", "he?", answer="said", start=4)
    spans = cut_spans([Paragraph(context.split(), [question], [], context)], model.tokenizer,
                      SpanOptions(72, squad_style=model.saved.options["squad_style"]))
    assert spans.passages.ids.tolist() == model.tokenizer.encode(context)
    text = spans.passages.text_of(0, model.tokenizer)
    assert (text(0, 0), text(*spans.answers[0])) == ("he", "said")
    assert text(0, len(spans.passages.ids) - 1) == context
    assert bert_tf.Predictor(tmp_path / "hf")(("he?", context))["answer"] in context
    convert(tmp_path / "hf", tmp_path / "ours", "keras")
    model.saved.write(tmp_path / "ours")
    for source in ("hf", "ours"):
        account = convert(tmp_path / source, tmp_path / f"hf of {source}", "huggingface")
        assert "no blank before" not in str(account)


def test_a_roberta_whose_tokenizer_tells_texts_apart_is_refused(tmp_path):
    config = EncoderConfig(7, 4, 1, 1, 4, "gelu_erf", max_position_embeddings=8,
                           type_vocab_size=2, model_type="roberta")
    bert_tf.BertEncoder(config).save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    assert checkpoints.read(tmp_path / "hf").config == config
    (tmp_path / "hf/vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    with pytest.raises(InputError, match="config.json: type_vocab_size is 2, .*vocab.txt tells"):
        checkpoints.read(tmp_path / "hf")
    (tmp_path / "hf/tokenizer_config.json").write_text(
        '{"model_input_names": ["input_ids", "attention_mask"]}')
    assert checkpoints.read(tmp_path / "hf").config == config


# The backend is named by transformers 5, whose class for ALBERT gives no segments; that for
# XLM-RoBERTa, which a BERT of many languages has, never gave any.
@pytest.mark.parametrize("settings, is_told", [
    ({"model_input_names": ["input_ids", "attention_mask"]}, True),
    ({"model_input_names": ["input_ids", "token_type_ids"]}, False),
    ({"tokenizer_class": "AlbertTokenizer", "backend": "tokenizers"}, True),
    ({"tokenizer_class": "AlbertTokenizer"}, False),
    ({"tokenizer_class": "XLMRobertaTokenizer"}, True),
    ({"tokenizer_class": "BertTokenizer", "backend": "tokenizers"}, False)])
def test_a_tokenizer_that_does_not_tell_the_texts_of_a_bert_apart_is_named(
        tmp_path, capsys, settings, is_told):
    config = EncoderConfig(7, 4, 1, 1, 4, "gelu_erf", max_position_embeddings=8, type_vocab_size=2)
    bert_tf.BertEncoder(config).save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    (tmp_path / "hf/vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    (tmp_path / "hf/tokenizer_config.json").write_text(json.dumps(settings))
    assert checkpoints.read(tmp_path / "hf").config == config
    assert ("tokenizer_config.json: model_input_names has no token_type_ids, so transformers "
            "gives both" in capsys.readouterr().err) == is_told


def test_a_key_that_a_type_does_not_have_changes_nothing():
    known = {"vocab_size": 9, "dim": 8, "n_heads": 2, "hidden_dim": 16, "n_layers": 1}
    odd = {**known, "layer_norm_eps": 0.05, "type_vocab_size": 7}
    assert read_config(odd, "distilbert", "config.json") == read_config(
        known, "distilbert", "config.json")
    bert = {"vocab_size": 9, "layer_norm_eps": 0.05}
    assert read_config(bert, "bert", "config.json").layer_norm_eps == 0.05


SIZES = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 8, "max_position_embeddings": 12}
TYPES = {
    **dict.fromkeys(("bert", "roberta", "electra", "modernbert", "mpnet", "deberta-v2", "eurobert",
                     "neobert", "nomic_bert"), SIZES),
    "albert": {**SIZES, "num_hidden_groups": 1}, "mobilebert": {**SIZES, "embedding_size": 4},
    "distilbert": {**SIZES, "type_vocab_size": 1, "pooler_type": "first_token_relu"},
    "openai-gpt": {**SIZES, "vocab_size": 12, "intermediate_size": 32},
    "xlnet": {"vocab_size": 9, "d_model": 8, "n_layer": 1, "n_head": 2, "d_head": 4, "d_inner": 8},
    "t5": {"vocab_size": 9, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}}


@pytest.mark.parametrize("kind", TYPES)
def test_an_error_names_the_key_of_the_file(kind, tmp_path):
    """Whatever it is called here."""
    build(config_from_dict({**TYPES[kind], "model_type": kind})).save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    path = tmp_path / "hf" / "config.json"
    values, refused = json.loads(path.read_text()), set()
    for key, value in itertools.product(values.keys() - {"model_type"}, ("x", None, -1)):
        path.write_text(json.dumps({**values, key: value}))
        try:
            checkpoints.read(path.parent)
        except InputError as error:
            # A default in place of null may be of another network than the weights.
            if value is not None or "config.json: " in str(error):
                assert re.search(rf"config.json: .*\b{key}\b", str(error)), (key, value)
                refused.add(key)
    assert len(refused) > 7


def test_padding_that_gives_positions_is_a_number():
    sizes = {"vocab_size": 9, "max_position_embeddings": 20}
    lengths = [read_config({**sizes, "pad_token_id": padding}, "roberta", "config.json")
               .max_position_embeddings for padding in (None, 0, 1, 3)]
    assert lengths == [18, 19, 18, 16]
    # Whose code counts positions by token 1.
    assert read_config({**sizes, "pad_token_id": None}, "mpnet", "").max_position_embeddings == 18
    for padding in ("0", -1, True):
        with pytest.raises(InputError, match="config.json: pad_token_id must be a whole number fr"):
            read_config({**sizes, "pad_token_id": padding}, "roberta", "config.json")


def test_an_activation_is_named_as_in_the_file():
    with pytest.raises(InputError, match="hidden_act must be one of silu, not 'gelu_new'"):
        read_config({"hidden_act": "gelu_new"}, "nomic_bert", "config.json")


@pytest.mark.parametrize("act", ["silu", ["gelu"], {}])
def test_an_activation_of_gpt_that_is_none_is_named(act, tmp_path):
    with pytest.raises(InputError, match="afn must be one of gelu, relu, not"):
        huggingface_gpt.read(str(tmp_path / "model.safetensors"), {"afn": act}, {})


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_positions_of_gpt_that_old_versions_saved_are_no_weights(prefix, tmp_path):
    """In transformers 4.27, `position_ids` is a buffer that is saved (modeling_openai.py)."""
    network = build(GPTConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1,
                              num_attention_heads=2, intermediate_size=32,
                              max_position_embeddings=16))
    training.Learner(network, []).save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    path = tmp_path / "hf" / "model.safetensors"
    tensors = {f"{prefix}{name}": value for name, value in load_file(path).items()}
    held = checkpoints.read(tmp_path / "hf").tensors.keys()
    save_file({**tensors, f"{prefix}position_ids": np.arange(16)}, path)
    weights = checkpoints.read(tmp_path / "hf")
    assert weights.tensors.keys() == held
    assert weights.ignored == {f"{prefix}position_ids": "a constant, not a weight"}
    # OpenAIGPTDoubleHeadsModel of transformers 5 has the words as lm_head.
    tensors["lm_head.weight"] = tensors.pop(f"{prefix}tokens_embed.weight")
    save_file({**tensors, "score.weight": np.zeros((2, 8), "float32")}, path)
    weights = checkpoints.read(tmp_path / "hf")
    assert weights.tensors.keys() == held and weights.ignored.keys() == {"score.weight"}


def test_a_layer_that_a_mobilebert_does_not_use_is_left_out(tmp_path):
    """transformers makes it always, and calls it for trigrams or for narrow embeddings alone."""
    network = build(MobileBertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=8, type_vocab_size=2, use_bottleneck=True,
        intra_bottleneck_size=4, key_query_shared_bottleneck=True, normalization_type="no_norm"))
    network.save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    path, name = tmp_path / "hf" / "model.safetensors", "embeddings.embedding_transformation"
    save_file({**load_file(path), f"{name}.weight": np.eye(8, dtype="float32"),
               f"{name}.bias": np.zeros(8, "float32")}, path)
    ignored = checkpoints.read(tmp_path / "hf").ignored
    assert ignored == dict.fromkeys([f"{name}.weight", f"{name}.bias"], ignored[f"{name}.bias"])


@pytest.mark.parametrize("values, name, message", [
    *(({"model_type": kind}, "x", f"model_type '{kind}' can't be read, .* t5, xlnet, or open this "
       "one with transformers") for kind in ("modernbert-decoder", "jina_embeddings_v3", "ibert")),
    ({"model_type": "xlm-roberta", "position_embedding_type": "rotary"}, "x",
     "position_embedding_type must be 'absolute', not 'rotary', .* take another model"),
    *(({"model_type": kind, key: None}, "x", f"config.json: {key} is null; write its value")
      for kind, key in (("albert", "num_hidden_groups"), ("electra", "embedding_size"),
                        ("mobilebert", "intra_bottleneck_size"), ("distilbert", "dim"))),
    ({"model_type": "t5", "tie_word_embeddings": False}, "x", "has no place for tensor 'x'"),
    ({"model_type": "xlnet"}, "lm_loss.weight", "has no place for tensor 'lm_loss.weight'")])
def test_another_network_and_other_tensors_are_refused(values, name, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(values))
    save_file({name: np.zeros((2, 2), np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=message):
        checkpoints.read(tmp_path)
