"""GPT computes and learns what openai/finetune-transformer-lm does."""

import contextlib
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from bert_tf import checkpoints
from bert_tf.checkpoints.weights import variables
from bert_tf.config import GPTConfig
from bert_tf.data.records.features import pack_pairs, truncate_pairs
from bert_tf.errors import InputError
from bert_tf.models.gpt.network import GPT
from bert_tf.models.gpt.objective import TiedLM
from bert_tf.models.gpt.tokenizer import LAYOUT, split_words
from bert_tf.objectives.classification import Classification, MultipleChoice
from bert_tf.tokenization import open_tokenizer
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from data_prep import build_vocab
from tests.processes import full_disk
from tests.rounding import assert_same

pytestmark = pytest.mark.usefixtures("eagerly")
TINY = GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=32, max_position_embeddings=6)


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    with np.load(test_data / "golden" / "gpt" / "finetune_seed1.npz") as file:
        return dict(file)


def config_of(sizes):
    return GPTConfig(
        vocab_size=sizes["n_vocab"] + sizes["n_special"], hidden_size=sizes["n_embd"],
        num_hidden_layers=sizes["n_layer"], num_attention_heads=sizes["n_head"],
        intermediate_size=4 * sizes["n_embd"], max_position_embeddings=sizes["n_ctx"],
        hidden_dropout_prob=sizes["resid_pdrop"], attention_probs_dropout_prob=sizes["attn_pdrop"],
        embedding_dropout_prob=sizes["embd_pdrop"])


def our_values(golden, prefix, config):
    """The original's variables by our names."""
    def theirs(name):
        return golden[f"{prefix}/model/{name}"]

    found = {"multiple_choice/dense/kernel": theirs("clf/w"),
             "multiple_choice/dense/bias": theirs("clf/b")}
    found["embeddings/word_embeddings"], found["embeddings/position_embeddings"] = np.split(
        theirs("we"), [config.vocab_size])
    for i in range(config.num_hidden_layers):
        layer = f"encoder/layer_{i}"
        for end, name, axis in (("w", "kernel", 1), ("b", "bias", 0)):
            for part, value in zip(("query", "key", "value"), np.split(
                    theirs(f"h{i}/attn/c_attn/{end}").reshape((-1, 3 * config.hidden_size))
                    if end == "w" else theirs(f"h{i}/attn/c_attn/b"), 3, axis)):
                found[f"{layer}/attention/self/{part}/{name}"] = value
            for ours, module in (("attention/output", "attn/c_proj"),
                                 ("intermediate", "mlp/c_fc"), ("output", "mlp/c_proj")):
                value = theirs(f"h{i}/{module}/{end}")
                found[f"{layer}/{ours}/dense/{name}"] = value[0] if end == "w" else value
        for ours, norm in (("attention/output", "ln_1"), ("output", "ln_2")):
            for end, name in (("g", "gamma"), ("b", "beta")):
                found[f"{layer}/{ours}/LayerNorm/{name}"] = theirs(f"h{i}/{norm}/{end}")
    return found


def batch_of(golden, step):
    ids = golden[f"step{step}/ids"].astype("int32")
    assert (ids[..., 1] - ids[..., 1].min() == np.arange(ids.shape[2])).all()
    return {"input_ids": ids[..., 0], "input_mask": golden[f"step{step}/mask"].astype("int32"),
            "label_ids": golden[f"step{step}/labels"]}


def test_forward_losses_gradients_and_steps_are_the_originals(golden):
    sizes = json.loads(str(golden["sizes"]).replace("'", '"').replace("False", "false"))
    config = config_of(sizes)
    learner = Learner(GPT(config), [
        MultipleChoice(config, dropout_rate=sizes["clf_pdrop"]),
        TiedLM(config, by_row=True, auxiliary=True, loss_weight=sizes["lm_coef"])])
    named = variables(learner)
    start = our_values(golden, "initial", config)
    assert named.keys() == start.keys()
    for name, variable in named.items():
        variable.assign(start[name].reshape(variable.shape))
    total = sizes["n_updates_total"]
    optimizer = make_optimizer("gpt_adam", WarmupLinearDecay(
        sizes["lr"], total, sizes["lr_warmup"] * total, "gpt"), weight_decay=sizes["l2"])
    optimizer.build(learner.trainable_variables)
    learner.epsilon = 0.0
    for step in range(4):
        batch = batch_of(golden, step)
        with tf.GradientTape() as tape:
            logits = learner(batch, training=True)
            measures = learner.measure_logits(logits, batch)
            loss = learner.total_loss(measures)
        grads = [tf.convert_to_tensor(g) for g in tape.gradient(
            loss, [v.value for v in learner.trainable_variables])]
        # The bias of the head, which has no part in the loss, drifts by noise.
        margins = [np.diff(values) for values in (logits["multiple_choice"],
                                                  golden[f"step{step}/logits"])]
        assert np.abs(margins[0] - margins[1]).max() < 2e-5
        row_means = (np.array(logits["tied_lm"])[..., 0]
                     * np.array(learner.targets(batch)["tied_lm"][1])).sum(1)
        assert np.abs(row_means - golden[f"step{step}/lm_losses"]).max() < 1e-5
        assert abs(float(loss) - golden[f"step{step}/clf_losses"].mean()
                   - sizes["lm_coef"] * golden[f"step{step}/lm_losses"].mean()) < 1e-5
        if step == 0:
            rows = {name: batch[name].reshape(-1, sizes["n_ctx"])
                    for name in ("input_ids", "input_mask")}
            for number, layer in enumerate(learner.encoder(rows)["layer_outputs"]):
                assert np.abs(layer - golden[f"layer{number}"]).max() < 1e-5
            wanted, found = our_values(golden, "grad", config), dict(zip(named, grads))
            for name, value in found.items():
                assert np.abs(value - wanted[name].reshape(value.shape)).max() < 3e-6, name
        optimizer.apply(grads, learner.trainable_variables)
        if f"after{step + 1}/model/we" in golden:
            wanted = our_values(golden, f"after{step + 1}", config)
            for name, variable in named.items():
                # These have a gradient of 0, by which Adam moves them anyhow.
                if "key/bias" not in name and name != "multiple_choice/dense/bias":
                    difference = np.abs(variable.numpy() - wanted[name].reshape(variable.shape))
                    # A gradient near epsilon is noise that Adam's first steps enlarge.
                    assert difference.max() < 1e-4, (step, name)
                    assert np.quantile(difference, 0.99) < 1e-5, (step, name)


def test_dropout_is_that_of_the_table_and_the_softmax_has_positions():
    keras.utils.set_random_seed(1)
    network = GPT(TINY)
    ids = {"input_ids": np.array([[3, 3, 4, 5]], "int32"), "input_mask": np.ones((1, 4), "int32")}
    outputs = network(ids, training=True)
    table = np.array(outputs["output_table"])
    assert table.shape == (17, 8) and (table == 0).any()
    assert np.allclose(outputs["embedding_output"][0], table[[3, 3, 4, 5]] + table[11:15])
    with pytest.raises(ValueError, match="tokens long, but max_position_embeddings is"):
        network({"input_ids": np.ones((1, 7), "int32")})


def test_the_released_size_is_the_published_one():
    # Words and positions, and three special tokens.
    assert GPTConfig().num_weights == 116_534_784 + 3 * 768
    with pytest.raises(InputError, match="unknown key 'type_vocab_size'"):
        GPTConfig.from_dict({"type_vocab_size": 2})


# Weights

@pytest.fixture(name="released")
def fixture_released(tmp_path):
    """The files of the original of a tiny model, and the arrays in them."""
    rng, width, folder = np.random.default_rng(2), 8, tmp_path / "released"
    folder.mkdir()
    shapes = [[6, width], [11, width]]      # positions, words
    for _ in range(2):
        shapes += [[1, width, 24], [24], [1, width, width], [width], [width], [width],
                   [1, width, 32], [32], [1, 32, width], [width], [width], [width]]
    arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]
    flat = np.concatenate([array.ravel() for array in arrays])
    for number, part in enumerate(np.array_split(flat, 10)):
        np.save(folder / f"params_{number}.npy", part)
    (folder / "params_shapes.json").write_text(json.dumps(shapes))
    return folder, arrays


def test_released_weights_come_in_and_out(released, tmp_path):
    folder, arrays = released
    config = checkpoints.read_config(folder)
    assert (config.vocab_size, config.hidden_size, config.num_hidden_layers) == (14, 8, 2)
    network = GPT(config)
    account = checkpoints.load(folder, network)
    assert not account.missing and "3 rows of words are reinitialised" in str(account)
    values = {name: variable.numpy() for name, variable in variables(network).items()}
    assert np.array_equal(values["embeddings/position_embeddings"], arrays[0])
    assert np.array_equal(values["embeddings/word_embeddings"][:11], arrays[1])
    for number, part in enumerate(("query", "key", "value")):
        assert np.array_equal(values[f"encoder/layer_1/attention/self/{part}/kernel"],
                              arrays[14][0][:, 8 * number:8 * number + 8])
    assert np.array_equal(values["encoder/layer_0/output/dense/kernel"], arrays[10][0])
    for form in ("keras", "huggingface", "openai"):
        source = {"openai": tmp_path / "huggingface"}.get(form, folder)
        checkpoints.convert(str(source), str(tmp_path / form), form)
        again = GPT(config)
        checkpoints.load(tmp_path / form, again)
        assert_same({name: v.numpy() for name, v in variables(again).items()}, values)
    assert (tmp_path / "openai" / "params_9.npy").read_bytes() == (
        folder / "params_9.npy").read_bytes()
    with pytest.raises(InputError, match="model_type is openai-gpt"):
        checkpoints.convert(str(folder), str(tmp_path / "google"), "google")
    with full_disk(500), pytest.raises(OSError, match=f"File too large: '{tmp_path}/full"):
        checkpoints.convert(str(folder), str(tmp_path / "full"), "openai")


def test_heads_of_a_conversion(tmp_path):
    learner = Learner(GPT(TINY), [MultipleChoice(TINY)])
    learner.save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path), str(tmp_path / "hf"), "huggingface")
    again = Learner(GPT(TINY), [MultipleChoice(TINY)])
    account = checkpoints.load(tmp_path / "hf", again)
    assert not account.missing
    assert_same(again.get_weights(), learner.get_weights())
    with pytest.raises(InputError, match="can.t hold multiple_choice.*--leave_out"):
        checkpoints.convert(str(tmp_path), str(tmp_path / "npy"), "openai")


@pytest.mark.parametrize("factor, values, told", [
    (1, {}, ""), (1, {"summary_activation": ""}, ""),
    (2, {}, "tensor 'lm_head.weight' differs from 'transformer.tokens_embed.weight'"),
    (1, {"summary_type": "first"}, "config.json: summary_type must be 'cls_index', not 'first'"),
    (1, {"summary_activation": "tanh"}, "summary_activation must be None, not 'tanh'"),
    (1, {"n_embd": None}, "config.json: n_embd must be"), (1, {"n_embd": [8]}, "n_embd must be")])
def test_other_heads_of_transformers_are_refused(factor, values, told, tmp_path):
    Learner(GPT(TINY), [MultipleChoice(TINY)]).save(tmp_path / "model.keras")
    checkpoints.convert(str(tmp_path), str(tmp_path / "hf"), "huggingface")
    path, config = (tmp_path / "hf" / name for name in ("model.safetensors", "config.json"))
    tensors = load_file(path)
    save_file({**tensors, "lm_head.weight": factor * tensors["transformer.tokens_embed.weight"]},
              path)
    config.write_text(json.dumps({**json.loads(config.read_text()), **values}))
    with pytest.raises(InputError, match=told) if told else contextlib.nullcontext():
        assert checkpoints.read(tmp_path / "hf").heads == ["multiple_choice"]


# Texts

def test_text_becomes_pieces_and_special_tokens(tmp_path):
    (tmp_path / "text.txt").write_text("the well-known house isn't (here) or there.\n" * 9)
    build_vocab.main(build_vocab.BuildVocabFlags(
        input_file=[str(tmp_path / "text.txt")], output_file=str(tmp_path / "vocab.json"),
        tokenizer="gpt_bpe", vocab_size=60))
    tokenizer = open_tokenizer(str(tmp_path))
    assert tokenizer.name == "gpt_bpe" and tokenizer.vocabulary.tokens[-3:] == [
        "_start_", "_delimiter_", "_classify_"]
    text = "The HOUSE \u2014 isn\u2019t here\u2026"
    words = "".join(tokenizer.tokenize(text)).split("</w>")
    assert words == ["the", "house", "-", "is", "n't", "here", "...", ""] or "<unk>" in words[-2]
    ids, offsets = tokenizer.encode_with_offsets(text)
    assert ids == tokenizer.encode(text)
    assert text[offsets[0][0]:offsets[0][1]].lower() in "the"
    starts = ~tokenizer.continuations([text], np.array(ids), np.array([len(ids)]))
    assert starts.sum() == len(split_words(text))
    cut = " ".join(split_words(
        "don't (it's) U.S. end. a.m. $3.50 I'm (Cannot) didnt gonna etc. Messrs. a\\b wants canny "
        "what?! ((no)) -- said.'' 5km 2. 9% x=y a= 'em 5\u00b0C"))
    assert cut == (     # as spaCy 3.8 has it
        "do n't ( it 's ) u.s. end . a.m. $ 3.50 i 'm ( can not ) did nt gon na etc . messrs. "
        "a\\b wants canny what ? ! ( ( no ) ) -- said . '' 5 km 2 . 9 % x = y a= 'em 5 \u00b0 c")


def test_stories_are_transformed_as_the_original_does(golden):
    class Words:
        layout, start_id, sep_id, cls_id, pad_id = LAYOUT, 40, 41, 42, 0

    for row in range(4):
        story, *endings = (json.loads(str(golden[f"step0/{name}"][row]))
                           for name in ("story", "first", "second"))
        for choice, ending in enumerate(endings):
            tokens = np.array([*story, *ending], np.int32)
            kept = truncate_pairs(np.array([len(story)]), np.array([len(ending)]), 14, LAYOUT)
            found = pack_pairs(tokens, [0], kept[0], [len(story)], kept[1], 14, Words)
            mask = golden["step0/mask"][row, choice]
            ids = golden["step0/ids"][row, choice, :, 0]
            assert np.array_equal(found["input_mask"][0], mask)
            assert np.array_equal(found["input_ids"][0] * mask, ids * mask)


def test_pairs_are_read_in_both_orders():
    head = Classification(TINY, 2, orders=2)
    learner, rng = Learner(GPT(TINY), [head]), np.random.default_rng(1)
    batch = {"input_ids": rng.integers(1, 11, (3, 2, 6)).astype("int32"),
             "input_mask": np.ones((3, 2, 6), "int32")}
    turned = {name: value[:, ::-1] for name, value in batch.items()}
    found = np.array(learner(batch)["classification"])
    assert found.shape == (3, 2)
    assert np.allclose(found, learner(turned)["classification"], atol=1e-6)
    pooled = np.array(learner.encoder({name: value.reshape(6, 6) for name, value in batch.items()})
                      ["pooled_output"]).reshape(3, 2, -1).sum(1)
    assert np.allclose(found, head.classifier(pooled), atol=1e-5)
    assert type(head).from_config(head.get_config()).orders == 2
