"""The rows of docs/moving_between_libraries.md that are about the libraries of these tests. A test
that fails says that a library has changed: then the page changes too."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.peer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Paris", "par", "##is", "is", "naive",
          "naïve", "今", "天", "好"]


@pytest.fixture
def transformers():
    return pytest.importorskip("transformers", reason="transformers isn't installed")


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch isn't installed")


@pytest.fixture
def vocabulary(tmp_path):
    """A folder with a cased vocab.txt."""
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    return tmp_path


def tiny(transformers, name, **settings):
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **settings)
    return getattr(transformers, name)(config).eval()


def test_a_lone_cased_vocabulary_is_lower_cased(transformers, vocabulary):
    lower = transformers.AutoTokenizer.from_pretrained(vocabulary).tokenize("Paris is")
    (vocabulary / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    cased = transformers.AutoTokenizer.from_pretrained(vocabulary).tokenize("Paris is")
    assert (lower, cased) == (["par", "##is", "is"], ["Paris", "is"])


def test_the_normalizer_of_tokenizer_json_does_not_count(transformers, vocabulary):
    saved = transformers.BertTokenizer.from_pretrained(vocabulary, do_lower_case=False)
    saved.save_pretrained(vocabulary)
    settings = json.loads((vocabulary / "tokenizer_config.json").read_text())
    del settings["do_lower_case"]
    (vocabulary / "tokenizer_config.json").write_text(json.dumps(settings))
    assert saved.tokenize("Paris") == ["Paris"]
    assert transformers.AutoTokenizer.from_pretrained(vocabulary).tokenize("Paris") == [
        "par", "##is"]


def test_touching_tokens_are_one_word(transformers, torch, vocabulary):
    tokenizer = transformers.BertTokenizer.from_pretrained(vocabulary)
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, whole_word_mask=True)
    text = tokenizer("今天好今天好", return_offsets_mapping=True)
    counts = set()
    for seed in range(40):
        torch.manual_seed(seed)
        np.random.seed(seed)
        counts.add(int((collator([dict(text)])["labels"] != -100).sum()))
    assert counts == {0, 6}


def test_a_mixed_file_takes_the_type_of_its_first_tensor(transformers, torch, tmp_path):
    torch_files = pytest.importorskip("safetensors.torch")
    tiny(transformers, "BertModel").save_pretrained(tmp_path)
    weights = torch_files.load_file(tmp_path / "model.safetensors")
    weights[min(weights)] = weights[min(weights)].half()
    torch_files.save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    del config["dtype"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    read = transformers.AutoModel.from_pretrained(tmp_path)
    assert {weight.dtype for weight in read.parameters()} == {torch.float16}
    assert "position_embedding_type" not in config


def test_an_untied_masked_lm_loses_its_bias(transformers, torch, tmp_path):
    torch_files = pytest.importorskip("safetensors.torch")
    tiny(transformers, "BertForMaskedLM", tie_word_embeddings=False).save_pretrained(tmp_path)
    weights = torch_files.load_file(tmp_path / "model.safetensors")
    del weights["cls.predictions.decoder.bias"]
    weights["cls.predictions.bias"] = torch.ones(30)
    torch_files.save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    read = transformers.BertForMaskedLM.from_pretrained(tmp_path)
    assert not read.cls.predictions.decoder.bias.any()


@pytest.mark.parametrize("change", [np.transpose, np.asfortranarray, lambda values: values[:, ::2]])
def test_safetensors_saves_other_numbers(change, tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    values = change(np.arange(6.0).reshape(2, 3))
    numpy_files.save_file({"values": values}, tmp_path / "file")
    assert (numpy_files.load_file(tmp_path / "file")["values"] != values).any()


def test_keras_hub_ignores_the_activation(transformers, torch, vocabulary):
    keras_hub = pytest.importorskip("keras_hub", reason="keras-hub isn't installed")
    ids = np.array([[2, 5, 8, 3]])
    differences = []
    for activation in ("gelu", "relu"):
        model = tiny(transformers, "BertModel", hidden_act=activation, initializer_range=0.5)
        model.save_pretrained(vocabulary)
        transformers.BertTokenizer.from_pretrained(vocabulary).save_pretrained(vocabulary)
        (vocabulary / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
        backbone = keras_hub.models.BertBackbone.from_preset(str(vocabulary))
        vectors = backbone({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1})
        with torch.no_grad():
            wanted = model(torch.tensor(ids)).last_hidden_state.numpy()
        differences.append(np.abs(np.asarray(vectors["sequence_output"]) - wanted).max())
    # It has GELU's tanh form, where Hugging Face's gelu is the exact one.
    assert 1e-5 < differences[0] < 1e-3 < 1e-2 < differences[1]


def test_keras_hub_keeps_accents():
    keras_hub = pytest.importorskip("keras_hub", reason="keras-hub isn't installed")
    tokenizer = keras_hub.tokenizers.BertTokenizer(TOKENS, lowercase=True)
    assert np.asarray(tokenizer("Naïve")).tolist() == [TOKENS.index("naïve")]


def test_keras_counts_the_parts_of_a_batch():
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([3], [1.0, 0.0])
    weight = keras.Variable(np.zeros(1, "float32"))
    optimizer = keras.optimizers.SGD(rate, gradient_accumulation_steps=4)
    optimizer.build([weight])
    for _ in range(16):             # four updates, of which three are before the fall
        optimizer.apply([tf.ones(1)])
    assert weight.numpy() == [-1]


def test_remat_draws_another_dropout_in_the_backward_pass():
    gradients = []
    for through in (lambda function: function, keras.remat):
        dropout = keras.layers.Dropout(0.5, seed=1)
        kernel = tf.Variable(tf.ones((4, 8)))
        run = through(lambda values, dropout=dropout, kernel=kernel: dropout(
            values @ kernel, training=True))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(run(tf.ones((2, 4))) ** 2)
        gradients.append((float(loss), tape.gradient(loss, kernel).numpy()))
    (loss, plain), (loss_of_remat, other) = gradients
    assert loss == loss_of_remat and (plain != other).any()


def test_lora_before_the_weights_trains_nothing(tmp_path):
    def dense():
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    dense().save_weights(tmp_path / "plain.weights.h5")
    model = dense()
    model.layers[0].enable_lora(1)
    model.load_weights(tmp_path / "plain.weights.h5")
    assert not model.layers[0].lora_kernel_a.numpy().any()
    assert not model.layers[0].lora_kernel_b.numpy().any()


def test_add_loses_the_mask():
    tokens = keras.layers.Embedding(9, 3, mask_zero=True)(tf.constant([[1, 2, 0]]))
    positions = keras.layers.Embedding(3, 3)(tf.constant([[0, 1, 2]]))
    assert tokens._keras_mask is not None
    assert getattr(keras.layers.Add()([tokens, positions]), "_keras_mask", None) is None


def test_muon_takes_attention_biases_for_matrices():
    layer = keras.layers.MultiHeadAttention(2, 4)
    layer(tf.ones((1, 3, 8)), tf.ones((1, 3, 8)))
    optimizer = keras.optimizers.Muon()
    taken = {weight.path.split("/", 1)[1] for weight in layer.trainable_variables
             if not optimizer._should_use_adamw(weight)}
    assert taken == {"query/bias", "key/bias", "value/bias"}


def test_seeded_numbers_of_tf_data_repeat_with_each_pass():
    data = tf.data.Dataset.range(8).map(lambda _: tf.random.uniform([], seed=5))
    assert [float(value) for value in data] == [float(value) for value in data]


def test_xla_draws_other_numbers():
    draws = [tf.function(lambda: tf.random.stateless_uniform([4], [1, 2]), jit_compile=jit)()
             for jit in (False, True)]
    assert (draws[0] != draws[1]).numpy().all()
