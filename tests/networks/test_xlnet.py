"""XLNet computes what zihangdai/xlnet computes with the same weights."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints, objectives
from bert_tf.bert.objective import MaskedLM
from bert_tf.checkpoints.weights import variables
from bert_tf.config import XLNetConfig
from bert_tf.models.xlnet import layers
from bert_tf.models.xlnet.network import XLNet
from bert_tf.models.xlnet.objective import PermutationLM
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import WarmupLinearDecay, make_optimizer
from bert_tf.training.trainer import Trainer
from bert_tf.training.transfer import layer_decay_factors
from tests.goldens import at_hand
from tests.original_xlnet import (
    batch_of,
    config_of,
    inputs_of,
    orders_of,
    weights_of,
    write_checkpoint,
)
from tests.rounding import ROUNDED, off, off_steps

pytestmark = pytest.mark.usefixtures("eagerly")


@pytest.fixture(name="load", scope="module")
def fixture_load(test_data, tmp_path_factory):
    """A reference file, and a Learner with its weights, read from a checkpoint of the original."""
    def load(name, make=PermutationLM, weights=None):
        folder = test_data / "golden" / "xlnet"
        golden = np.load(folder / f"{name}_seed1.npz")
        source = np.load(folder / f"{weights or name}_seed1.npz")
        config = config_of(source)
        learner = Learner(XLNet(config), [make(config)])
        path = tmp_path_factory.mktemp("original")
        write_checkpoint(path, weights_of(source), config)
        account = checkpoints.load(path, learner)
        assert not account.ignored and {name.split("/")[0] for name in account.missing} <= {
            "pooler", "embeddings"}
        learner.epsilon = 0.0
        return golden, learner
    return load


def close(found, wanted, most=ROUNDED):
    assert off(np.array(found), wanted) < most


def by_time(x):
    return np.swapaxes(np.array(x), 0, 1)


def check_step(golden, step, outputs, logits, network, used):
    """All tensors of a step that a reference file has; those of slots that are `used` [P, B]."""
    out = {name.split("/out/")[1]: golden[name] for name in golden.files
           if name.startswith(f"step{step}/out/")}
    if "hidden" in out:
        close(by_time(outputs["embedding_output"]), out["word_emb/0"])
        for layer in range(network.config.n_layer):
            close(by_time(outputs["layer_outputs"][layer]), out[f"ffn/{2 * layer + 1}"])
            close(by_time(outputs["query_layer_outputs"][layer])[used],
                  out[f"ffn/{2 * layer}"][used])
        close(by_time(outputs["query_output"])[used], out["hidden"][used])
        close(by_time(logits)[used], out["logits"][used])
    for layer in range(network.config.n_layer if network.carries else 0):
        close(by_time(outputs["carried"]["memory"][:, layer]), out[f"new_mems/{layer}"])


@pytest.mark.parametrize("name", at_hand("golden/xlnet/{}_seed1.npz", (
    "forward_bi_mem", "forward_uni_plain", "forward_uni_mem_short")))
def test_streams_memories_and_gradients_are_the_originals(name, load):
    golden, learner = load(name)
    network, (head,) = learner.encoder, learner.objectives
    steps = sum(key.endswith("in/input_k") for key in golden.files)
    rows = len(golden["step0/in/input_k"])
    carried = {key: tf.zeros([rows, *shape]) for key, shape in network.carries.items()}
    for step in range(steps):
        batch = batch_of(inputs_of(golden, step), json.loads(str(golden["flags"]))["bi_data"])
        with tf.GradientTape() as tape:
            outputs = network({**batch, **({"carried": carried} if carried else {})})
            logits = head(outputs, batch, network.embedding_table)
            measures = {head.name: head.measure(logits, *head.targets(batch))}
            loss = learner.total_loss(measures)
        close(loss, golden[f"step{step}/out/loss"])
        used = np.array(batch["masked_lm_weights"]).T > 0
        check_step(golden, step, outputs, logits, network, used)
        carried = outputs.get("carried", {})
        if f"step{step}/grad/model/lm_loss/bias" in golden.files:
            check_gradients(golden, f"step{step}/grad/model/", learner, tape, loss)


def check_gradients(golden, prefix, learner, tape, loss):
    """Some of each kind: those of stacked biases, turned matrices and the table."""
    named = variables(learner)
    found = {name: np.array(tf.convert_to_tensor(gradient)) for name, gradient in zip(
        named, tape.gradient(loss, [v.value for v in named.values()],
                             unconnected_gradients="zero"))}
    theirs = prefix + "transformer/"
    for layer in range(learner.encoder.config.n_layer):
        own, block = f"encoder/layer_{layer}/", f"{theirs}layer_{layer}/"
        for ours, wanted in (("self/r_w", golden[f"{theirs}r_w_bias"][layer]),
                             ("self/r_r", golden[f"{theirs}r_r_bias"][layer]),
                             ("self/r_s", golden[f"{theirs}r_s_bias"][layer]),
                             ("self/seg_embed", golden[f"{theirs}seg_embed"][layer])):
            close(found[f"{own}attention/{ours}"], wanted)
        output = golden[f"{block}rel_attn/o/kernel"]
        for part in ("query", "key", "value"):
            wanted = golden[f"{block}rel_attn/{part[0]}/kernel"].reshape(len(output), -1)
            close(found[f"{own}attention/self/{part}/kernel"], wanted)
        close(found[f"{own}attention/output/dense/kernel"], output.reshape(len(output), -1).T)
        close(found[f"{own}attention/self/position/kernel"],
              golden[f"{block}rel_attn/r/kernel"].reshape(len(output), -1))
        close(found[f"{own}intermediate/dense/kernel"], golden[f"{block}ff/layer_1/kernel"])
    close(found["embeddings/word_embeddings"], golden[f"{theirs}word_embedding/lookup_table"])
    close(found["embeddings/mask_emb"], golden[f"{theirs}mask_emb/mask_emb"][0, 0])
    close(found["permutation_lm/output_bias"], golden[f"{prefix}lm_loss/bias"])


@pytest.mark.parametrize("name, optimizer, form", at_hand("golden/xlnet/{}_seed1.npz", (
    ("steps_adam_poly", "xlnet_adam", "roberta"),
    ("steps_adamwd_cos", "bert_adamw", "xlnet_cosine"),
    ("steps_layer_decay", "xlnet_adam", "roberta"))))
def test_steps_of_training_are_the_originals(name, optimizer, form, load, test_data, tmp_path):
    golden, learner = load(name, weights="steps_adam_poly")
    given = np.load(test_data / "golden" / "xlnet" / "steps_adam_poly_seed1.npz")
    flags, config = json.loads(str(golden["flags"])), learner.encoder.config
    rate = flags["learning_rate"]
    schedule = WarmupLinearDecay(rate, flags["train_steps"], flags["warmup_steps"], form,
                                 end=rate * flags["min_lr_ratio"])
    trainer = Trainer(learner, make_optimizer(
        optimizer, schedule, weight_decay=flags["weight_decay"], epsilon=flags["adam_epsilon"],
        gradient_factors=layer_decay_factors(config, flags["lr_layer_decay_rate"], 0, "gradient")),
        tf.distribute.get_strategy(), batch_size=len(given["step0/in/input_k"]))
    for step in range(4):
        inputs = inputs_of(given, step)
        batch = {**batch_of(inputs, True), **orders_of(inputs["perm_mask"], 16)}
        del batch["perm_mask"]
        close(trainer.optimizer.learning_rate, golden["learning_rate"][step], 1e-9)
        measures = trainer.train(iter([batch]), 1)
        close(measures["loss"], golden["loss"][step])
        close(measures["grad_norm"], golden["gnorm"][step])
    after = {key.removeprefix("step3/after/"): golden[key] for key in golden.files
             if key.startswith("step3/after/")}
    write_checkpoint(tmp_path, after, config)
    wanted = Learner(XLNet(config), [PermutationLM(config)])
    missing = checkpoints.load(tmp_path, wanted).missing
    assert len(after) > 30
    wanted = variables(wanted)
    for name, variable in variables(learner).items():
        if name not in missing:
            close(variable, np.array(wanted[name]), off_steps(rate, 4))


@pytest.mark.parametrize("name, make", at_hand("golden/xlnet/finetune_{}_seed1.npz", (
    *((f"classify_{kind}", lambda config: objectives.Classification(config, 3))
      for kind in ("last", "first_noproj", "mean", "attn")),
    ("regress", objectives.Regression), ("race", objectives.MultipleChoice),
    *((f"qa_{kind}", lambda config: objectives.ConditionalSpan(
        config, "xlnet", num_starts=3, num_ends=4)) for kind in ("train", "predict")))))
def test_heads_are_the_originals(name, make, load):
    golden, learner = load(f"finetune_{name}", make)
    given = {key[3:]: golden[key] for key in golden.files if key.startswith("in/")}
    out = {key[4:]: golden[key] for key in golden.files if key.startswith("out/")}
    batch = {key: tf.constant(given[key], tf.int32) for key in (
        "input_ids", "segment_ids", "start_positions", "end_positions", "is_impossible")
        if key in given}
    # Theirs is 1 for padding.
    batch["input_mask"] = tf.constant(1 - given["input_mask"], tf.int32)
    if "label_ids" in given:
        batch["label_ids"] = tf.constant(given["label_ids"])
    if name == "race":
        batch |= {key: tf.reshape(value, [2, 4, -1]) for key, value in batch.items()
                  if key != "label_ids"}
    (head,) = learner.objectives
    logits = learner(batch)[head.name]
    if "total_loss" in out:
        total, count = head.measure(logits, *head.targets(batch))["loss"]
        close(total / count, out["total_loss"])
    if "logits" in out:
        close(np.reshape(logits, out["logits"].shape), out["logits"])
    if "cls_logits" in out:
        close(logits["answerable"], out["cls_logits"])
    if name == "qa_predict":
        for key in ("start_top_index", "start_top_log_probs", "end_top_index", "end_top_log_probs"):
            close(np.reshape(logits[key], out[key].shape), out[key])


def test_published_sizes():
    # Without the summary of a sequence.
    assert XLNetConfig.preset("base").num_weights - 769 * 768 == 116_718_336
    assert XLNetConfig.preset("large").num_weights - 1025 * 1024 == 360_268_800
    assert XLNetConfig.from_dict({"n_token": 50, "d_head": 64}).vocab_size == 50


def test_padding_on_either_side_and_hidden_tokens_have_no_influence():
    config = XLNetConfig.preset("tiny", vocab_size=50, d_model=16, n_head=2, d_head=6, d_inner=20)
    network, rng = XLNet(config), np.random.default_rng(3)
    ids = rng.integers(5, 50, (2, 7)).astype("int32")
    plain = network({"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": ids * 0})
    for before, after in ((3, 0), (0, 4)):
        padded = {name: np.pad(value, [(0, 0), (before, after)], constant_values=fill)
                  for name, value, fill in (("input_ids", ids, 9), ("segment_ids", ids * 0, 4),
                                            ("input_mask", np.ones_like(ids), 0))}
        found = network(padded)
        close(found["sequence_output"][:, before:before + 7], plain["sequence_output"], 2e-6)
        close(found["pooled_output"], plain["pooled_output"], 2e-6)
    # A query sees neither itself nor what comes later; empty slots change nothing.
    orders = {"query_order": np.array([[0, 1, 0, 2, 0, 0, 3]] * 2), "key_order": np.array(
        [[-1, 1, -1, 2, -1, -1, 3]] * 2)}
    queries = {"masked_lm_positions": np.array([[1, 3, 6, 0, 0]] * 2, "int32"),
               "masked_lm_weights": np.array([[1, 1, 1, 0, 0]] * 2, "float32")}
    results = [network({"input_ids": changed, "segment_ids": ids * 0, **orders, **queries})[
        "query_output"] for changed in (ids, np.where(np.arange(7) == 3, 5, ids))]
    differs = np.abs(np.array(results[0]) - results[1]).max((0, 2)) > 1e-6
    assert differs.tolist()[:3] == [False, False, True]


def test_denoising_is_berts_masked_lm_on_this_network():
    """Table 6, "DAE + Transformer-XL": BERT's loss by its formula, of vectors that see both sides
    and the memory, and no query stream."""
    config = XLNetConfig.preset("tiny", vocab_size=50, d_model=16, n_head=2, d_head=6, d_inner=20,
                                mem_len=4, dropout=0.0, dropatt=0.0, initializer_range=0.3)
    learner, rng = Learner(XLNet(config), [MaskedLM(config)]), np.random.default_rng(3)
    head, network = learner.objectives[0], learner.encoder
    for variable in head.weights:
        variable.assign(rng.normal(size=variable.shape))
    batch = {"input_ids": rng.integers(5, 50, (2, 7)).astype("int32"),
             "segment_ids": np.array([[0, 0, 0, 0, 1, 1, 2]] * 2, "int32"),
             "is_backward": np.array([[0], [1]], "int32"),
             "masked_lm_positions": np.array([[3, 5, 0]] * 2, "int32"),
             "masked_lm_ids": rng.integers(5, 50, (2, 3)).astype("int32"),
             "masked_lm_weights": np.array([[1, 1, 0]] * 2, "float32"),
             "carried": {"memory": rng.normal(size=(2, *learner.carries["memory"])).astype("f4")}}
    outputs, weights = network(batch), {v.path.split("masked_lm/")[-1]: np.array(v)
                                        for v in head.weights}
    assert "query_output" not in outputs and learner.carries
    x = np.array(outputs["sequence_output"])[:, [3, 5, 0]]
    x = x @ weights["transform/dense/kernel"] + weights["transform/dense/bias"]
    x = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    x = x * weights["transform/LayerNorm/gamma"] + weights["transform/LayerNorm/beta"]
    logits = x @ np.array(network.embedding_table).T + weights["output_bias"]
    losses = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(
        logits, batch["masked_lm_ids"][..., None], 2)[..., 0]
    measures = learner.measure(batch)
    close(learner.total_loss(measures), losses[:, :2].mean(), 1e-5)
    # The vector at position 3 depends on every token and on the memory.
    for place in range(7):
        changed = {**batch, "input_ids": np.where(np.arange(7) == place, 7, batch["input_ids"])}
        assert off(np.array(network(changed)["sequence_output"])[:, 3],
                   outputs["sequence_output"][:, 3]) > 1e-4 or (
            changed["input_ids"] == batch["input_ids"]).all()
    forgotten = network({**batch, "carried": {"memory": 0 * batch["carried"]["memory"]}})
    assert off(np.array(forgotten["sequence_output"])[:, 3],
               outputs["sequence_output"][:, 3]) > 1e-4


def test_no_sum_of_gradients_depends_on_what_other_threads_have_read():
    """AddN adds all inputs to the first one that nothing else reads any more at that moment. With
    one of the first two the bits are the same; so one of these must have no other reader."""
    config = XLNetConfig.preset("tiny", vocab_size=50, d_model=16, n_head=2, d_head=6, d_inner=20)
    learner, ids = Learner(XLNet(config), [PermutationLM(config)]), np.ones((2, 7), "int32")
    batch = {"input_ids": ids, "segment_ids": ids, "query_order": ids, "key_order": ids,
             "masked_lm_positions": ids[:, :3]}

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            logits = learner(batch, training=True, dropout_seed=tf.constant([1, 2]))
        return tape.gradient(logits, [v.value for v in learner.trainable_variables])

    def readers(tensor):
        return sum(readers(op.outputs[0]) if op.type in ("Identity", "Reshape") else 1
                   for op in tensor.consumers())

    def written(tensor):        # these operations pass their input's memory on
        return written(tensor.op.inputs[0]) if tensor.op.type in ("Identity", "Reshape") else tensor

    sums = [op for op in gradients.get_concrete_function().graph.get_operations()
            if op.type == "AddN" and len(op.inputs) > 2]
    assert sums and all(min(readers(written(term)) for term in op.inputs[:2]) == 1 for op in sums)


@pytest.mark.parametrize("summary", ["last", "attn"])
def test_rows_with_one_head_are_read_as_alone(summary):
    """oneDNN is wrong or crashes on AVX-512 where several rows share the other factor of a product
    in [B, 1, S, D]."""
    config = XLNetConfig(vocab_size=50, d_model=16, n_layer=1, n_head=1, d_head=16, d_inner=32,
                         initializer_range=0.5, summary_type=summary)
    network, rng = XLNet(config), np.random.default_rng(0)
    batch = {"input_ids": rng.integers(5, 50, (8, 64)).astype("int32"),
             "segment_ids": rng.integers(0, 2, (8, 64)).astype("int32")}
    found = network(batch)
    alone = [network({name: values[row:row + 1] for name, values in batch.items()})
             for row in range(8)]
    for name in ("sequence_output", "pooled_output"):
        close(found[name], np.concatenate([one[name] for one in alone]), 1e-5)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 21])
@pytest.mark.parametrize("is_known, on_tpu", [(True, False), (True, True), (False, True)])
def test_scores_of_queries_anywhere_are_shifted_by_their_positions(
        length, is_known, on_tpu, monkeypatch):
    monkeypatch.setattr(layers, "on_tpu", lambda: on_tpu)
    rng, memory = np.random.default_rng(length), 5
    scores = rng.normal(size=(3, 2, 4, memory + 2 * length)).astype("float32")
    places = rng.integers(0, length, (3, 4)).astype("int32")
    keys = np.arange(memory + length)
    wanted = [[[scores[row, head, query, length - places[row, query] + keys] for query in range(4)]
               for head in range(2)] for row in range(3)]
    size = scores.shape[-1] if is_known else None
    found = tf.function(lambda x, places: layers.shift(x, len(keys) if is_known else
                                                       tf.shape(x)[-1] - length, places),
                        [tf.TensorSpec([3, 2, 4, size]), tf.TensorSpec([3, 4], tf.int32)])
    assert (np.array(found(scores, places)) == np.array(wanted)).all()
