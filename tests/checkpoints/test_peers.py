"""What we write loads in the other systems' own loaders and computes the same there."""

import pathlib
import warnings

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import checkpoints
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.encoding import encode_pairs

pytestmark = pytest.mark.peer

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
TOLERANCE = 1e-5


@pytest.fixture(params=["google_gelu", "google_deep", "hf_gelu_new"])
def expected(request):
    """A golden checkpoint and what an independent implementation makes of it."""
    return GOLDEN / request.param, dict(np.load(GOLDEN / request.param / "expected.npz"))


def assert_equal(found, wanted):
    assert np.abs(np.asarray(found) - wanted).max() <= TOLERANCE


def at_positions(logits, positions):
    return np.asarray(logits)[np.arange(len(positions))[:, None], positions]


@pytest.mark.parametrize("name", ["hf_gelu", "hf_relu", "hf_narrow_heads", "google_gelu",
                                  "google_deep"])
def test_transformers(name, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    wanted = dict(np.load(GOLDEN / name / "expected.npz"))
    checkpoints.convert(GOLDEN / name, tmp_path / "hf", "huggingface")
    model, info = transformers.BertForPreTraining.from_pretrained(
        tmp_path / "hf", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    inputs = {theirs: torch.from_numpy(wanted[ours]).long() for theirs, ours in (
        ("input_ids", "input_ids"), ("attention_mask", "input_mask"),
        ("token_type_ids", "segment_ids"))}
    with torch.no_grad():
        out = model.eval()(**inputs, output_hidden_states=True)
        bare = transformers.AutoModel.from_pretrained(tmp_path / "hf").eval()(**inputs)
    for layer, value in zip(out.hidden_states[1:], wanted["layer_outputs"], strict=True):
        assert_equal(layer, value)
    assert_equal(bare.pooler_output, wanted["pooled_output"])
    assert_equal(at_positions(out.prediction_logits, wanted["masked_lm_positions"]),
                 wanted["masked_lm"])
    assert_equal(out.seq_relationship_logits, wanted["next_sentence"])


# The class of transformers, without "BertFor" and the like, for each objective of ours.
TASKS = [
    ("SequenceClassification", bert_tf.Classification, {"num_labels": 4}),
    ("SequenceClassification", bert_tf.MultiLabel, {"num_labels": 3}),
    ("SequenceClassification", bert_tf.Regression, {}),
    ("TokenClassification", bert_tf.Tagging, {"num_labels": 5}),
    ("QuestionAnswering", bert_tf.AnswerSpan, {}),
    ("MultipleChoice", bert_tf.MultipleChoice, {}),
    ("MaskedLM", bert_tf.MaskedLM, {}),
    ("MaskedLM", bert_tf.MaskedLM, {"tied": False}),
    ("NextSentencePrediction", bert_tf.SentencePrediction, {}),
    ("PreTraining", bert_tf.ReplacedToken, {}),
]
FAMILIES = {"Bert": {}, "Roberta": {"hidden_act": "relu"},
            "Albert": {"embedding_size": 16, "num_hidden_groups": 2},
            "Electra": {"embedding_size": 16, "hidden_act": "silu"}}
# The classes that have other heads than ours, or are not there.
MISSING = {"Electra": ("NextSentencePrediction",),
           **dict.fromkeys(("Roberta", "Albert"), ("NextSentencePrediction", "PreTraining")),
           "Bert": ("PreTraining",)}


@pytest.mark.parametrize("family, kind, objective, options", [
    (family, *task) for family in FAMILIES for task in TASKS
    if task[0] not in MISSING[family]])
def test_heads_of_transformers(family, kind, objective, options, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    torch = pytest.importorskip("torch", reason="torch isn't installed")

    torch.manual_seed(3)
    make = getattr(transformers, f"{family}For{kind}")
    theirs = make(getattr(transformers, f"{family}Config")(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=40, max_position_embeddings=16, initializer_range=0.3,
        num_labels=options.get("num_labels", 1 if objective is bert_tf.Regression else 2),
        # As training in transformers leaves it: the shapes alone don't show it.
        problem_type="multi_label_classification" if objective is bert_tf.MultiLabel else None,
        tie_word_embeddings=options.get("tied", True), **FAMILIES[family])).eval()
    theirs.save_pretrained(tmp_path / "hf", max_shard_size="10KB")      # several files
    assert len(list((tmp_path / "hf").glob("*.safetensors"))) > 1
    ids = np.random.default_rng(0).integers(2, 50, (3, 8))
    if kind == "MultipleChoice":
        ids = ids[:, None, :].repeat(2, axis=1) + np.array([0, 1])[None, :, None] * (ids[0] > 40)
    batch = {"input_ids": ids, "masked_lm_positions": np.tile(np.arange(8), (3, 1))}
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(ids))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)    # of a pooler that some classes don't have
        learner = objective.from_pretrained(tmp_path / "hf", **options)
    name = learner.objectives[0].name
    found = np.asarray(learner(batch)[name])
    for ours, name_of_theirs in ((found[:, 0], "start_logits"), (found[:, -1], "end_logits"),
                                 (found, "logits")):
        if name_of_theirs in wanted:
            assert_equal(ours, wanted[name_of_theirs].numpy())

    account = checkpoints.convert(tmp_path / "hf", tmp_path / "out", "huggingface")
    assert f"{name}/" in " ".join(account.mapped)
    again, info = make.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    for key, value in theirs.state_dict().items():
        assert torch.equal(value, again.state_dict()[key]), key
    assert again.config.problem_type == {
        "multi_label": "multi_label_classification", "regression": "regression"}.get(name)


def test_tensorflow_under_the_original_names(expected, tmp_path):
    folder, _ = expected
    checkpoints.convert(folder, tmp_path / "tf1", "google")
    names = dict(tf.train.list_variables(str(tmp_path / "tf1" / "bert_model.ckpt")))
    assert names["bert/encoder/layer_0/attention/self/query/kernel"]
    assert names["cls/seq_relationship/output_weights"][0] == 2
    if "google" in folder.name:
        before = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
        after = tf.train.load_checkpoint(str(tmp_path / "tf1" / "bert_model.ckpt"))
        for name in names:
            assert before.get_tensor(name).tobytes() == after.get_tensor(name).tobytes()


def garden_gelu(x):
    """The GELU of the original."""
    import tf_keras
    return tf_keras.activations.gelu(x, approximate=True)


def make_garden_encoder(kind, config):
    """An encoder of the Model Garden, of one of its two classes."""
    from official.nlp.modeling import networks

    options = {
        "BertEncoder": {"intermediate_size": config.intermediate_size, "activation": garden_gelu,
                        "dict_outputs": True},
        "BertEncoderV2": {"inner_dim": config.intermediate_size,
                          "inner_activation": garden_gelu}}[kind]
    return getattr(networks, kind)(
        vocab_size=config.vocab_size, hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers, num_attention_heads=config.num_attention_heads,
        max_sequence_length=config.max_position_embeddings,
        type_vocab_size=config.type_vocab_size, **options)


@pytest.mark.parametrize("kind", ["BertEncoder", "BertEncoderV2"])
def test_the_model_garden(kind, expected, tmp_path):
    pytest.importorskip("official.nlp", reason="tf-models-official isn't installed")
    import tf_keras
    from official.nlp.modeling import layers, models

    folder, wanted = expected
    checkpoints.convert(folder, tmp_path / "mg", "model_garden")
    prefix = str(tmp_path / "mg" / "bert_model.ckpt")
    config = checkpoints.read_config(folder)
    encoder = make_garden_encoder(kind, config)
    model = models.BertPretrainerV2(
        encoder, mlm_activation=garden_gelu, classification_heads=[
            layers.ClassificationHead(config.hidden_size, 2, name="next_sentence")])
    inputs = {"input_word_ids": wanted["input_ids"], "input_mask": wanted["input_mask"],
              "input_type_ids": wanted["segment_ids"],
              "masked_lm_positions": wanted["masked_lm_positions"]}
    model(inputs)
    for items in ({"model": model}, {"encoder": encoder}, model.checkpoint_items):
        tf.train.Checkpoint(**items).read(prefix).assert_existing_objects_matched()
    out = model(inputs)
    assert_equal(encoder(inputs)["pooled_output"], wanted["pooled_output"])
    assert_equal(out["mlm_logits"], wanted["masked_lm"])
    assert_equal(out["next_sentence"], wanted["next_sentence"])

    optimizers = [tf_keras.optimizers.legacy.Adam(), tf_keras.optimizers.Adam()]
    for optimizer in optimizers:
        optimizer.apply_gradients([(tf.zeros_like(v), v) for v in model.trainable_variables])
    steps = {"global_step": tf.Variable(3)}
    for name, items in (("model", {"model": model, "optimizer": optimizers[0], **steps}),
                        ("new", {"model": model, "optimizer": optimizers[1]}),
                        ("encoder", {"encoder": encoder}),
                        ("both", {"encoder": encoder, "model": model}),
                        ("bare", {"model": encoder}), ("items", model.checkpoint_items)):
        theirs = tmp_path / name
        tf.train.Checkpoint(**items).save(str(theirs / "ckpt"))
        config.to_json_file(theirs / "bert_config.json")
        found = checkpoints.convert(theirs, theirs / "hf", "huggingface")
        assert len(found.mapped) >= 5 + 16 * config.num_hidden_layers + 2


@pytest.mark.parametrize("kind", ["BertEncoder", "BertEncoderV2"])
@pytest.mark.parametrize("name, objective, options, field", [
    ("BertClassifier", bert_tf.Classification, {"num_labels": 3}, "num_classes"),
    ("BertClassifier", bert_tf.MultiLabel, {"num_labels": 3}, "num_classes"),
    ("BertClassifier", bert_tf.Regression, {"num_labels": 1}, "num_classes"),
    ("BertTokenClassifier", bert_tf.Tagging, {"num_labels": 4}, "num_classes"),
    ("BertSpanLabeler", bert_tf.AnswerSpan, {}, "")])
def test_models_of_the_model_garden(kind, name, objective, options, field, tmp_path):
    pytest.importorskip("official.nlp", reason="tf-models-official isn't installed")
    from official.nlp.modeling import models

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)    # of the head, which is new
        learner = objective.from_pretrained(GOLDEN / "google_gelu", **options)
    config = learner.encoder.config
    for variable in learner.objectives[0].weights:
        variable.assign(np.random.default_rng(2).normal(size=variable.shape))
    learner.save(tmp_path / "model.keras")
    head = learner.objectives[0].name
    checkpoints.convert(tmp_path / "model.keras", tmp_path / "mg", "model_garden")

    model = getattr(models, name)(make_garden_encoder(kind, config),
                                  **({field: options["num_labels"]} if field else {}))
    tf.train.Checkpoint(model=model).read(
        str(tmp_path / "mg" / "bert_model.ckpt")).assert_existing_objects_matched()
    inputs = dict(np.load(GOLDEN / "google_gelu" / "expected.npz"))
    found = model({"input_word_ids": inputs["input_ids"], "input_mask": inputs["input_mask"],
                   "input_type_ids": inputs["segment_ids"]}, training=False)
    wanted = np.asarray(learner(inputs)[head])
    if name == "BertSpanLabeler":
        found = np.stack(found, axis=1)
    found = found["logits"] if isinstance(found, dict) else found
    assert_equal(found, wanted)

    tf.train.Checkpoint(model=model).write(str(tmp_path / "theirs" / "ckpt"))
    config.to_json_file(tmp_path / "theirs" / "bert_config.json")
    again = objective.from_pretrained(tmp_path / "theirs", **options)
    for one, other in zip(learner.trainable_variables, again.trainable_variables, strict=True):
        assert np.array_equal(one, other)


def test_keras_hub(expected, tmp_path):
    keras_hub = pytest.importorskip("keras_hub", reason="keras-hub isn't installed")
    folder, wanted = expected
    checkpoints.convert(folder, tmp_path / "hub", "keras_hub")
    backbone = keras_hub.models.BertBackbone.from_preset(str(tmp_path / "hub"))
    out = backbone({"token_ids": wanted["input_ids"], "padding_mask": wanted["input_mask"],
                    "segment_ids": wanted["segment_ids"]})
    assert_equal(out["pooled_output"], wanted["pooled_output"])
    backbone.save_to_preset(str(tmp_path / "again"))
    account = checkpoints.convert(tmp_path / "again", tmp_path / "tf1", "google")
    assert account.missing == ["masked_lm", "next_sentence"]


@pytest.fixture(params=[True, False], ids=["uncased", "cased"])
def with_vocabulary(request, tmp_path):
    """Our tokenizer, and the changes that give a golden checkpoint its vocabulary."""
    words = ["hello", "##s", "cafe"] if request.param else ["Hello", "##s", "café"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "!", "中"]
    path = tmp_path / "words.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    tokenizer = bert_tf.WordpieceTokenizer(bert_tf.Vocabulary.from_file(path), request.param)
    # That they lower-case or not is guessed from the words.
    return tokenizer, checkpoints.Changes(vocab_file=str(path))


TEXT = "Hellos hello, café Café! 中中"


def test_the_tokenizer_of_transformers(with_vocabulary, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    ours, changes = with_vocabulary
    checkpoints.convert(GOLDEN / "google_gelu", tmp_path / "hf", "huggingface", changes)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert theirs(TEXT, add_special_tokens=False).input_ids == ours.encode(TEXT)


def test_the_segments_of_transformers(test_data, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    tokenizer = open_tokenizer(test_data / "vocabs" / "albert" / "spiece.model")
    config = bert_tf.EncoderConfig(tokenizer.vocabulary.size, 8, 1, 1, 8, model_type="albert")
    bert_tf.BertEncoder(config).save(tmp_path / "model.keras")
    tokenizer.save(tmp_path)
    checkpoints.convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")("A text.", "Another.")
    ours, _ = encode_pairs([("A text.", "Another.")], tokenizer, None)
    assert theirs.input_ids == ours["input_ids"][0].tolist()
    assert theirs.token_type_ids == ours["segment_ids"][0].tolist()


def test_the_tokenizer_of_keras_hub(with_vocabulary, tmp_path):
    keras_hub = pytest.importorskip("keras_hub", reason="keras-hub isn't installed")
    ours, changes = with_vocabulary
    checkpoints.convert(GOLDEN / "google_gelu", tmp_path / "hub", "keras_hub", changes)
    theirs = keras_hub.models.BertTokenizer.from_preset(str(tmp_path / "hub"))
    assert np.asarray(theirs(TEXT)).tolist() == ours.encode(TEXT)


def test_the_byte_level_bpe_of_transformers(test_data, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    vocab_file = test_data / "vocabs" / "roberta-base" / "vocab.json"
    vocabulary = open_tokenizer(vocab_file).vocabulary
    config = bert_tf.EncoderConfig(vocabulary.size, 8, 1, 1, 8, model_type="roberta",
                                   max_position_embeddings=6, type_vocab_size=1)
    bert_tf.Learner(bert_tf.BertEncoder(config), [bert_tf.MaskedLM(config)]).save(
        tmp_path / "model.keras")
    checkpoints.convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface",
                        checkpoints.Changes(vocab_file=str(vocab_file)))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert theirs(TEXT, add_special_tokens=False).input_ids == open_tokenizer(
        tmp_path / "hf").encode(TEXT)
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "hf")
    assert model.config.max_position_embeddings == 8 and model.config.pad_token_id == 1
