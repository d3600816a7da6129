"""The optimizers against their papers' formulas, written out in NumPy."""

import contextlib
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.training.optimizers.adam import (
    AdamWeightDecay,
    LayerwiseAdaptiveMoments,
    WarmupLinearDecay,
    make_optimizer,
)
from bert_tf.training.optimizers.table import OPTIMIZERS, PROGRESSIVE
from tests.rounding import assert_same

RATE, DECAY, EPSILON, STEPS = 0.1, 0.01, 1e-6, 4


def variables():
    """A kernel, a bias and a gamma of LayerNorm, with their gradients of each step."""
    rng = np.random.default_rng(0)
    named = {}
    for name, shape in (("dense/kernel", (3, 4)), ("dense/bias", (4,)), ("LayerNorm/gamma", (4,))):
        with keras.name_scope(name.split("/")[0]):
            named[name] = keras.Variable(rng.normal(size=shape).astype("float32"),
                                         name=name.split("/")[1])
    grads = [[rng.normal(size=v.shape).astype("float32") for v in named.values()]
             for _ in range(STEPS)]
    return named, grads


def adam(value, grads, decay, bias_correction, trust_ratio=False, beta_2=0.999):
    """Adam's and LAMB's algorithm in float64."""
    value, m, v = value.astype(float), 0.0, 0.0
    for t, grad in enumerate(grads, 1):
        m, v = 0.9 * m + 0.1 * grad, beta_2 * v + (1 - beta_2) * grad.astype(float)**2
        corrected = (m / (1 - 0.9**t), v / (1 - beta_2**t)) if bias_correction else (m, v)
        delta = corrected[0] / (np.sqrt(corrected[1]) + EPSILON) + decay * value
        ratio = np.sqrt((value**2).sum() / (delta**2).sum()) if trust_ratio else 1.0
        value = value - RATE * ratio * delta
    return value


def fairseq_adam(value, grads):
    """fairseq optim/adam.py: epsilon comes before the correction, and everything is decayed."""
    value, m, v = value.astype(float), 0.0, 0.0
    for t, grad in enumerate(grads, 1):
        m, v = 0.9 * m + 0.1 * grad, 0.98 * v + 0.02 * grad.astype(float)**2
        value = value - RATE * DECAY * value
        value -= RATE * np.sqrt(1 - 0.98**t) / (1 - 0.9**t) * m / (np.sqrt(v) + EPSILON)
    return value


def test_fairseq_adam_where_epsilon_counts():
    named, grads = variables()
    grads = [[grad * EPSILON for grad in step] for step in grads]
    before = [v.numpy() for v in named.values()]
    optimizer = make_optimizer("fairseq_adam", RATE, weight_decay=DECAY)
    optimizer.build(list(named.values()))
    for step in grads:
        optimizer.apply([tf.constant(g) for g in step], list(named.values()))
    for i, variable in enumerate(named.values()):
        assert np.allclose(variable, fairseq_adam(before[i], [g[i] for g in grads]), rtol=1e-4,
                           atol=1e-6)


@pytest.mark.parametrize("name", ["adamw", "bert_adamw", "distilbert_adam", "lamb", "albert_lamb"])
def test_updates_are_those_of_the_papers(name):
    named, grads = variables()
    before = {key: v.numpy() for key, v in named.items()}
    optimizer = make_optimizer(name, RATE, weight_decay=DECAY, clip_norm=0.0)
    optimizer.build(list(named.values()))
    for step in grads:
        optimizer.apply([tf.constant(g) for g in step], list(named.values()))
    for i, (key, variable) in enumerate(named.items()):
        is_decayed = key == "dense/kernel"      # LayerNorm and biases are not
        expected = adam(before[key], [g[i] for g in grads], DECAY * is_decayed,
                        name not in ("bert_adamw", "albert_lamb"),
                        name.endswith("lamb") and is_decayed,
                        0.98 if name == "distilbert_adam" else 0.999)
        assert np.allclose(variable.numpy(), expected, rtol=1e-4, atol=1e-6), key


@pytest.mark.parametrize("shape", [(), (2, 3, 4), (2, 1, 3, 2)])
def test_lamb_takes_variables_of_any_number_of_axes(shape):
    """Such as the segments of XLNet, [2, N, D], and the scale of ELMo's features."""
    rng = np.random.default_rng(1)
    value, *grads = (rng.normal(size=shape).astype("float32") for _ in range(1 + STEPS))
    variable = keras.Variable(value, name="segments")
    optimizer = make_optimizer("lamb", RATE, weight_decay=DECAY, clip_norm=0.0)
    optimizer.build([variable])
    for grad in grads:
        optimizer.apply([tf.constant(grad)], [variable])
    assert np.allclose(variable, adam(value, grads, DECAY, True, trust_ratio=True), rtol=1e-4)


def test_repeated_embedding_rows_count_as_one_gradient():
    for rows in (tf.IndexedSlices(tf.constant([[1.0], [3.0]]), tf.constant([2, 2]),
                                  tf.constant([4, 1])),
                 tf.constant([[0.0], [0.0], [4.0], [0.0]])):
        table = keras.Variable(np.zeros((4, 1), "float32"))
        optimizer = AdamWeightDecay(RATE, clip_norm=0.0)
        optimizer.build([table])
        optimizer.apply([rows], [table])
        assert optimizer._velocities[0].numpy().ravel() == pytest.approx([0, 0, 0.016, 0])


def test_gradients_are_clipped_by_their_global_norm():
    named, grads = variables()
    optimizer = AdamWeightDecay(RATE, clip_norm=0.5)
    optimizer.build(list(named.values()))
    norm = optimizer.apply([tf.constant(g) for g in grads[0]], list(named.values()))
    expected = np.sqrt(sum((g**2).sum() for g in grads[0]))
    assert float(norm) == pytest.approx(expected, rel=1e-6)
    for m, g in zip(optimizer._momentums, grads[0]):
        assert np.allclose(m.numpy(), 0.1 * g * 0.5 / expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_variables_may_have_rates_of_their_own(name):
    factors = (("LayerNorm/", 0.0), ("/kernel", 0.25), (".", 0.5), ("bias", 9.0))
    after = []
    for options in ({}, {"rate_factors": factors}):
        named, grads = variables()
        before = [v.numpy() for v in named.values()]
        optimizer = make_optimizer(name, RATE, **options)
        optimizer.build(list(named.values()))
        optimizer.apply([tf.constant(g) for g in grads[0]], list(named.values()))
        after.append([v.numpy() - old for v, old in zip(named.values(), before)])
    for plain, scaled, factor in zip(*after, (0.25, 0.5, 0.0)):
        assert np.allclose(scaled, factor * plain, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.0}, {"not_clipped": ["LayerNorm"]}])
def test_skip_nonfinite_leaves_everything_as_it_was(bad, options):
    """Also what is not clipped, and what else there is if that alone is not finite."""
    named, grads = variables()
    optimizer = AdamWeightDecay(RATE, skip_nonfinite=True, **options)
    optimizer.build(list(named.values()))
    before = {key: v.numpy() for key, v in named.items()}
    grads[0][2][1] = bad
    norm = optimizer.apply([tf.constant(g) for g in grads[0]], list(named.values()))
    assert not np.isfinite(float(norm))
    assert all(np.array_equal(before[key], v.numpy()) for key, v in named.items())
    assert not any(np.any(m.numpy()) for m in optimizer._momentums + optimizer._velocities)


@pytest.mark.parametrize("path, is_decayed", [
    ("media_bias/dense/kernel", True), ("media_bias/dense/bias", False),
    ("LayerNorm_LayerNorm/attention/query/kernel", True), ("bias/output_weights", True),
    ("masked_lm/output_bias", False), ("span_boundary/LayerNorm_0/gamma", False),
    ("encoder/layer_0/output/LayerNorm/ranges/gamma_low", False),
    ("t5/encoder/block/layer_norm/weight", False), ("LayerNorm/gamma", False), ("bias", False),
    ("t5/decoder/relative_attention_bias/weight", False)])
def test_the_name_of_a_task_decides_no_decay(path, is_decayed):
    *scopes, name = path.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        variable = keras.Variable(np.ones(2), name=name)
    optimizer = make_optimizer("adamw", RATE)
    optimizer.build([variable])
    assert variable.path == path and optimizer._is_decayed == [is_decayed]


@pytest.mark.parametrize("form, at_10, at_55", [
    ("bert", 9e-4, 4.5e-4), ("roberta", 1e-3, 5e-4),
    ("cosine", 1e-3, 5e-4 * (1 + np.cos(0.55 * np.pi)))])
def test_learning_rate_warms_up_and_decays_as_in_the_original(form, at_10, at_55):
    rate = WarmupLinearDecay(1e-3, 100, 10, form)
    for step, expected in ((0, 0.0), (5, 5e-4), (10, at_10), (55, at_55), (100, 0.0), (150, 0.0)):
        assert float(rate(step)) == pytest.approx(expected, abs=1e-9)
    assert float(WarmupLinearDecay(1e-3, 100, 0, form)(0)) == pytest.approx(1e-3)
    assert float(WarmupLinearDecay(1e-3, 10, 10, form)(9)) == pytest.approx(9e-4)


@pytest.mark.parametrize("form, settings, case", [
    ("warmup_stable_decay", {"warmup_steps": 30, "decay_steps": 100, "start": 2e-10}, ""),
    ("warmup_stable_decay", {"warmup_steps": 30, "start": 2e-10, "end": 0.2}, "_default_floor"),
    ("one_minus_sqrt", {"decay_steps": 100}, ""),
    ("one_minus_sqrt", {"decay_steps": 1000, "end": 0.002}, "_whole"),
    ("cosine_inverse_sqrt", {"warmup_steps": 30, "decay_steps": 100, "end": 0.2}, "")])
def test_schedules_with_a_tail_are_those_of_modernbert(form, settings, case, test_data):
    path = test_data / "golden" / "modernbert" / "schedules.json"
    golden = json.loads(path.read_text())["schedules"][form + case]
    rate = WarmupLinearDecay(2.0, 1000, form=form, **settings)
    for step, expected in zip(golden["time"], golden["multiplier"]):
        assert float(rate(step)) == pytest.approx(2 * expected, rel=5e-7, abs=3e-7), step
    assert float(rate(0)) == pytest.approx(2 * golden["multiplier"][0], rel=1e-6)


@pytest.mark.parametrize("optimizer", [
    AdamWeightDecay(WarmupLinearDecay(1e-3, 10, 2, power=2.0, warmup_start=1), weight_decay=0.3,
                    bias_correction=False),
    make_optimizer("stable_adamw", WarmupLinearDecay(
        1e-3, 10, form="one_minus_sqrt", decay_steps=3)),
    LayerwiseAdaptiveMoments(1e-3, clip_norm=2.0, rate_factors=(("embeddings/", 0.5),))])
def test_configurations_survive_serialisation(optimizer):
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is type(optimizer)
    assert keras.optimizers.serialize(again) == keras.optimizers.serialize(optimizer)


def test_adadelta_is_that_of_its_paper():
    """arXiv:1212.5701, algorithm 1, with PyTorch's learning rate."""
    rng = np.random.default_rng(2)
    variable = keras.Variable(rng.normal(size=(3, 2)).astype("float32"), name="x")
    expected, squares, steps = variable.numpy().astype(float), 0.0, 0.0
    optimizer = make_optimizer("adadelta", 0.5)
    for _ in range(4):
        gradient = 100 * rng.normal(size=(3, 2))
        optimizer.apply([tf.constant(gradient, tf.float32)], [variable])
        squares = 0.95 * squares + 0.05 * gradient**2
        step = gradient * np.sqrt(steps + 1e-6) / np.sqrt(squares + 1e-6)
        steps = 0.95 * steps + 0.05 * step**2
        expected -= 0.5 * step
    assert np.allclose(variable, expected, rtol=1e-5)


@pytest.mark.parametrize("case", ["coupled", "decoupled", "defaults", "gradients_times_1e-6"])
def test_stable_adamw_is_the_original(case, test_data):
    golden = np.load(test_data / "golden" / "modernbert" / "stable_adamw.npz")
    settings = json.loads(str(golden["settings"])).get(
        case, {"lr": 0.01, "betas": [0.9, 0.98], "weight_decay": 0.01, "decouple_lr": False})
    named = [keras.Variable(golden[f"start/{i}"], name="kernel") for i in range(3)]
    optimizer = make_optimizer(
        "stable_adamw", settings["lr"], weight_decay=settings["weight_decay"],
        beta_2=settings["betas"][1], max_lr=None if settings["decouple_lr"] else 1.0)
    optimizer.build(named)
    scale = 1e-6 if case.endswith("1e-6") else 1.0
    for step, multiplier in enumerate(golden["multiplier"]):
        optimizer.learning_rate = multiplier * settings["lr"]
        optimizer.apply([tf.constant(golden[f"gradient/{step}/{i}"] * np.float32(scale))
                         for i in range(3)], named)
        for i, variable in enumerate(named):
            np.testing.assert_allclose(variable.numpy(), golden[f"after/{case}/{step}/{i}"],
                                       rtol=3e-7, atol=1e-7)


def test_stable_adamw_takes_the_peak_from_its_schedule():
    made = make_optimizer("stable_adamw", WarmupLinearDecay(3e-4, 10, 2))
    assert made.max_lr == 3e-4 and (made.decay, made.beta_2, made.clip_norm) == (1e-5, 0.98, 0.0)
    other = keras.optimizers.schedules.CosineDecay(1e-3, 10)
    with pytest.raises(InputError, match="give StableAdamW its max_lr"):
        make_optimizer("stable_adamw", other)
    assert make_optimizer("stable_adamw", other, max_lr=1e-3).max_lr == 1e-3


def test_the_largest_variable_is_updated_last():
    """Then the gradients of the others are no longer in memory."""
    named = [keras.Variable(np.zeros((width, 600), "float32")) for width in (900, 500, 700)]
    optimizer = AdamWeightDecay(1e-3)
    optimizer.build(named)
    step = tf.function(lambda *grads: optimizer.apply(list(grads), named), autograph=False)
    graph = step.get_concrete_function(*[tf.TensorSpec(v.shape) for v in named]).graph

    def assigned(op, seen):
        """The updates that end before an operation begins."""
        for before in {*op.control_inputs, *(tensor.op for tensor in op.inputs)} - seen:
            seen.add(before)
            assigned(before, seen)
        return {each for each in seen if each.type == "AssignSubVariableOp"}

    weights = {id(graph_input): v.shape[0] for (outside, graph_input) in graph.captures
               for v in named if outside is v.value.handle}
    widths = {op: weights[id(tensor)] for op in graph.get_operations() for tensor in op.inputs
              if op.type == "AssignSubVariableOp" and id(tensor) in weights}
    order = sorted(widths, key=lambda op: len(assigned(op, set())))
    assert [widths[op] for op in order] == [500, 700, 900]
    assert len(assigned(order[-1], set())) > len(assigned(order[0], set()))


@pytest.mark.parametrize("name, options", [
    ("adamw", {}), ("adamw", {"clip_norm": 0.0}),
    ("adamw", {"rate_factors": [("kernel", 0.3)], "average": "ema", "skip_nonfinite": True}),
    ("adamw", {"gradient_factors": [("kernel", 0.3)], "not_clipped": ["bias"]}),
    ("bert_adamw", {}), ("fairseq_adam", {}), ("xlnet_adam", {}), ("gpt_adam", {}),
    ("pytorch_bert_adam", {}), ("averaged_adam", {}), ("lamb", {}), ("radam", {})])
def test_compiled_updates_have_the_bits_of_the_operations_one_by_one(name, options):
    shape = (600, 500)

    def train(compiles):
        rng = np.random.default_rng(0)
        variables = [keras.Variable(rng.normal(size=shape).astype("float32") * scale, name=name)
                     for name, scale in (("kernel", 0.02), ("bias", 1.0))]
        optimizer = make_optimizer(name, 1e-3, **options)
        optimizer.compiles = compiles
        optimizer.build(variables)
        step = tf.function(lambda grads: optimizer.apply(grads, variables), autograph=False)
        for size in (1e-4, 1.0, 1e-2, 0.0):
            step([tf.constant(rng.normal(size=shape).astype("float32") * size) for _ in variables])
        compiled = any(op.type == "XlaLaunch" or "_XlaMustCompile" in op.node_def.attr
                       for op in step.get_concrete_function(
                           [tf.TensorSpec(shape)] * 2).graph.get_operations())
        return compiled, [v.numpy() for v in (*variables, *optimizer.variables)]

    (is_compiled, found), (_, expected) = train(True), train(False)
    assert is_compiled == (name not in ("lamb", "radam"))
    assert_same(found, expected)


def test_optimizers_decay_weights_as_the_table_says():
    for name, row in OPTIMIZERS.items():
        if name == PROGRESSIVE:
            continue        # takes phases of layers
        found = []
        for decay in (0.0, 0.5):
            weight = keras.Variable([[1.0, 2.0]], name="kernel")
            optimizer = make_optimizer(name, 0.1, weight_decay=decay)
            optimizer.build([weight])
            for _ in range(8):      # R-Adam does not begin at once
                optimizer.apply([tf.constant([[0.1, -0.2]])], [weight])
            found.append(weight.numpy().tolist())
        assert (found[0] != found[1]) == row.decays, name
