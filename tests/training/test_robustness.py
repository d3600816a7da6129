"""Adversarial training, averages of the weights and R-Adam: those of the originals' code
(golden/adversarial), and the same however a batch is shared out or a run is interrupted."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from bert_tf import checkpoints, networks, recipes
from bert_tf.compression.student import SoftTargets, Student
from bert_tf.compression.theseus import Theseus
from bert_tf.config.quantisation import Quantisation
from bert_tf.errors import InputError
from bert_tf.models.tinybert.objective import HiddenTransfer
from bert_tf.objectives.classification import Classification, MultiLabel, Regression
from bert_tf.objectives.conditional_span import ConditionalSpan
from bert_tf.objectives.divergences import DIVERGENCES
from bert_tf.recipes.distillation import DISTILLATIONS
from bert_tf.training import Learner, adversarial, make_optimizer
from bert_tf.training.learners.learner import Pass, Plain
from bert_tf.training.settings import CRITERIA, FineTuneSettings, RobustnessSettings
from bert_tf.training.trainer import Trainer
from tests.rounding import ROUNDED, off
from tests.training import tiny

CONFIG = {"model_type": "bert", "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2,
          "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 12,
          "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu"}
# Names of Hugging Face's weights, and ours of the same gradients.
GRADIENTS = {"bert.embeddings.word_embeddings.weight": "embeddings/word_embeddings",
             "bert.encoder.layer.0.attention.self.query.weight":
                 "encoder/layer_0/attention/self/query/kernel",
             "bert.encoder.layer.1.output.dense.bias": "encoder/layer_1/output/dense/bias",
             "classifier.weight": "classification/dense/kernel"}
# What the golden was made with.
SMART = {"inf_1": {"adv_noise_var": 1e-2},
         "inf_2": {"adv_noise_var": 3e-2, "adv_steps": 2, "adv_step_size": 0.1}}
FREELB = {"l2": {"adv_step_size": 0.3, "adv_init_mag": 0.2, "adv_max_norm": 0.35},
          "linf": {"adv_step_size": 0.1, "adv_init_mag": 0.05, "adv_max_norm": 0.12,
                   "adv_p_norm": "inf"},
          "free": {"adv_step_size": 0.1, "adv_init_mag": 0.0}}


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return dict(np.load(test_data / "golden" / "adversarial" / "steps_seed1.npz"))


@pytest.fixture(name="learner", scope="module")
def fixture_learner(golden, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file({name.removeprefix("weights/"): np.ascontiguousarray(value)
               for name, value in golden.items() if name.startswith("weights/")},
              folder / "model.safetensors")
    config = checkpoints.read_config(str(folder))
    learner = Learner(networks.build(config), [Classification(config, 3, dropout_rate=0.0)])
    assert not checkpoints.load(str(folder), learner).missing
    return learner


def one_pass(learner, golden):
    batch = {ours: tf.constant(golden[f"batch/{theirs}"].astype(np.int32)) for ours, theirs in (
        ("input_ids", "input_ids"), ("input_mask", "attention_mask"),
        ("segment_ids", "token_type_ids"), ("label_ids", "labels"))}
    return Pass(learner, batch, {"classification": tf.constant(4.0)}, 1.0)


def check_gradients(golden, prefix, learner, found, less=None):
    """That gradients, less others, are the golden's."""
    by_name = {v.path.removeprefix("bert/"): i for i, v in enumerate(learner.trainable_variables)}
    for theirs, ours in GRADIENTS.items():
        mine = tf.convert_to_tensor(found[by_name[ours]])
        mine = mine if less is None else mine - tf.convert_to_tensor(less[by_name[ours]])
        wanted = golden[f"{prefix}/gradient/{theirs}"]
        wanted = wanted.T if ours.endswith("kernel") else wanted
        assert off(mine, wanted) < 1e-5, ours


SEED = tf.constant([1, 2])


@pytest.fixture(name="begin")
def fixture_begin(monkeypatch):
    """function(kind, noise): where `kind` of adversarial training begins; returns a list that gets
    the noises of all passes."""
    def begin(kind, noise):
        seen, logits, noise = [], Pass.logits, tf.constant(noise)
        monkeypatch.setattr(kind, "_first", lambda *_: noise)
        monkeypatch.setattr(Pass, "logits", lambda self, seed, **noise: (
            seen.append(noise) or logits(self, seed, **noise)))
        return seen
    return begin


@pytest.mark.parametrize("case", SMART)
def test_smoothness_is_that_of_mt_dnn(eagerly, golden, learner, case, begin):
    settings, of = RobustnessSettings("smart", **SMART[case]), one_pass(learner, golden)
    seen = begin(adversarial.Smart, golden[f"smart_{case}/first_noise"])
    measures, grads, found = adversarial.make(settings).gradients(of, SEED)
    assert len(seen) == 2 + settings.ascent[0]
    assert off(found["classification"], golden[f"smart_{case}/logits"]) < ROUNDED
    is_token = golden["batch/attention_mask"][:, :, None]
    assert off(seen[-1]["embedding_noise"] * is_token,
               golden[f"smart_{case}/noise"] * is_token) < 1e-5
    loss, count = measures["smoothness"]["loss"]
    assert float(loss / count) == pytest.approx(float(golden[f"smart_{case}/loss"]), rel=1e-5)
    _, plain, _ = Plain().gradients(of, SEED)
    check_gradients(golden, f"smart_{case}", learner, grads, plain)


@pytest.mark.parametrize("norm", ["inf", "l2", "l1"])
def test_steps_of_smart_have_their_size_and_go_uphill_in_the_divergence(
        eagerly, golden, learner, norm, begin):
    """SMART's paper, algorithm 1; the divergence is written out, its slope is numerical."""
    of, first = one_pass(learner, golden), golden["smart_inf_1/first_noise"] * 3
    logits, seen = Pass.logits, begin(adversarial.Smart, first)
    adversarial.make(RobustnessSettings(
        "smart", adv_norm_of="step", adv_step_size=0.02, adv_p_norm=norm)).gradients(of, SEED)
    step = seen[-1]["embedding_noise"].numpy() - first
    tokens = golden["batch/attention_mask"].astype(bool)
    lengths = {"inf": np.abs(step).max(-1), "l2": np.linalg.norm(step, axis=-1),
               "l1": np.abs(step).max(-1)}[norm]
    assert lengths[tokens] == pytest.approx(0.02, rel=5e-3)

    def divergences(row, noises):
        """Of one text with each of the noises."""
        many = Pass(learner, {name: tf.repeat(value[row:row + 1], len(noises), 0)
                                          for name, value in of.batch.items()}, of.counts, 1.0)
        after, before = (tf.nn.softmax(tf.cast(logits(many, SEED, **given)["classification"],
                                               tf.float64)).numpy()
                         for given in ({"embedding_noise": tf.constant(noises)}, {}))
        return (before * np.log(before / after)).sum(-1)

    rng = np.random.default_rng(1)
    for row, place in rng.permutation(np.argwhere(tokens))[:2]:
        steps = 0.01 * np.eye(step.shape[-1], dtype=first.dtype)
        noises = np.repeat(first[row:row + 1], 2 * len(steps), 0)
        noises[:, place] += [*steps, *-steps]
        slope = np.subtract(*np.split(divergences(row, noises), 2))
        if norm == "l1":
            large = np.abs(slope) > 0.1 * np.abs(slope).max()
            assert np.array_equal(np.sign(slope)[large], np.sign(step[row, place])[large])
        else:
            assert np.corrcoef(slope, step[row, place])[0, 1] > 0.98


@pytest.mark.parametrize("norm", ["inf", "l2", "l1"])
def test_noise_of_smart_is_kept_within_its_bound(eagerly, golden, learner, norm, begin):
    """SMART's paper, algorithm 1: the nearest point within the bound of the embeddings."""
    seen = begin(adversarial.Smart, golden["smart_inf_1/first_noise"])
    for most in (0.0, 0.01):
        adversarial.make(RobustnessSettings(
            "smart", adv_norm_of="step", adv_step_size=0.02, adv_p_norm=norm,
            adv_max_norm=most)).gradients(one_pass(learner, golden), SEED)
    free, bound = seen[2]["embedding_noise"].numpy(), seen[5]["embedding_noise"].numpy()
    if norm == "l2":
        length = np.linalg.norm(free, axis=-1, keepdims=True)
        wanted = np.where(length > 0.01, 0.01 * free / np.maximum(length, 1e-30), free)
    else:
        wanted = np.minimum(np.maximum(free, -0.01), 0.01)
    assert np.allclose(bound, wanted, rtol=1e-6, atol=0) and not np.allclose(bound, free)


def test_a_head_without_weight_does_not_steer_the_noise_of_smart(
        eagerly, golden, learner, begin, monkeypatch):
    first = golden["smart_inf_1/first_noise"]
    found = begin(adversarial.Smart, first)
    head, config = learner.objectives[0], learner.encoder.config
    noises = {}
    for name, weights in (("alone", []), ("silent", [0.0]), ("steering", [1.0]), ("none", None)):
        other = [Classification(config, 3, name="other", dropout_rate=0.0, loss_weight=weight)
                 for weight in weights or ()]
        keras.utils.set_random_seed(1)
        both = Learner(learner.encoder, [head, *other])
        for variable in other[0].trainable_variables if other else ():
            variable.assign(60.0 * variable)
        of = one_pass(both, golden)
        of.counts = dict.fromkeys(("classification", "other"), tf.constant(4.0))
        monkeypatch.setattr(head, "loss_weight", 0.0 if weights is None else 1.0)
        adversarial.make(RobustnessSettings("smart", adv_noise_var=1e-2)).gradients(of, SEED)
        noises[name] = found[-1]["embedding_noise"].numpy()
    assert np.array_equal(noises["alone"], noises["silent"])
    assert off(noises["steering"], noises["alone"]) > 1e-3
    length = np.abs(first).max(-1, keepdims=True) + 1e-6
    assert off(noises["none"], first / length) < ROUNDED      # no slope: the first noise


@pytest.mark.parametrize("case", FREELB)
def test_freelb_is_its_own_code(eagerly, golden, learner, case, begin):
    noises = golden[f"freelb_{case}/noises"]
    seen = begin(adversarial.FreeLB, noises[0])
    way = adversarial.make(RobustnessSettings("freelb", **FREELB[case]))
    measures, grads, _ = way.gradients(one_pass(learner, golden), SEED)
    assert off(np.stack([noise["word_noise"] for noise in seen]), noises) < 1e-5
    loss, count = measures["classification"]["loss"]
    assert float(loss / count) == pytest.approx(float(golden[f"freelb_{case}/loss"]), rel=1e-5)
    check_gradients(golden, f"freelb_{case}", learner, grads)


@pytest.mark.parametrize("norm, wanted", [("l2", 0.3), ("inf", 0.3)])
def test_first_noise_of_freelb_is_as_long_as_said_and_none_is_at_padding(
        eagerly, golden, learner, norm, wanted):
    of = one_pass(learner, golden)
    way = adversarial.make(RobustnessSettings("freelb", adv_init_mag=wanted, adv_p_norm=norm))
    noise = way._first(of, of.mask(), SEED).numpy()
    assert not noise[golden["batch/attention_mask"] == 0].any()
    lengths = (np.sqrt(np.square(noise).sum((1, 2))) * np.sqrt(3) if norm == "l2"
               else np.abs(noise).max((1, 2)))      # of uniform numbers, the square's mean is 1/3
    assert np.all(np.abs(lengths / wanted - 1) < 0.15)
    assert np.array_equal(noise, way._first(of, of.mask(), SEED).numpy())


def test_r_adam_is_its_own_code(eagerly, golden):
    variable = keras.Variable(golden["radam/weights"][0])
    optimizer = make_optimizer("radam", 0.5, clip_norm=0.0, not_decayed=())
    for gradient, wanted in zip(golden["radam/gradients"], golden["radam/weights"][1:]):
        optimizer.apply([tf.constant(gradient)], [variable])
        assert off(variable, wanted) < ROUNDED
    assert off(variable, golden["radam/weights"][0]) > 0.01


@pytest.mark.parametrize("beta_2", [0.98, 0.999, 0.9999, 0.99999])
def test_r_adam_has_the_papers_factor_from_the_papers_step(eagerly, beta_2):
    variable, moved = keras.Variable([0.0]), 0.0
    optimizer = make_optimizer(
        "radam", 1.0, clip_norm=0.0, weight_decay=0.0, beta_2=beta_2, epsilon=1e-12)
    longest = 2 / (1 - beta_2) - 1
    for step in range(1, 9):
        length = longest - 2 * step * beta_2**step / (1 - beta_2**step)
        if length >= 5:
            moved += np.sqrt((length - 4) * (length - 2) * longest
                             / ((longest - 4) * (longest - 2) * length))
        optimizer.apply([tf.constant([1.0])], [variable])
        assert -float(variable[0]) == pytest.approx(moved, rel=1e-4), step


@pytest.mark.parametrize("beta_2", [0.9, 0.98, 0.999])
def test_late_steps_of_r_adam_are_adams(eagerly, beta_2):
    variable = keras.Variable([0.0])
    optimizer = make_optimizer("radam", 1.0, clip_norm=0.0, weight_decay=0.0, beta_2=beta_2)
    optimizer.build([variable])
    optimizer.iterations.assign(10**6)
    factor = optimizer._delta(0, variable, 1.0, 1.0, (1.0, None), None)
    assert float(factor[0]) == pytest.approx(1, abs=2e-6)


@pytest.mark.parametrize("optimizer", ["adamw", "adamax", "adafactor", "huggingface_adamw"])
@pytest.mark.parametrize("kind, start", [("ema", 0), ("swa", 2)])
def test_averages_are_those_of_the_weights_after_each_step(eagerly, optimizer, kind, start):
    rng = np.random.default_rng(1)
    variable = keras.Variable(rng.normal(size=(3, 4)).astype("float32"))
    made = make_optimizer(optimizer, 0.1, average=kind, average_decay=0.4, average_start=start)
    made.build([variable])
    variable.assign(variable + 1)       # as weights are loaded
    seen = []
    for _ in range(5):
        made.apply([tf.constant(rng.normal(size=(3, 4)).astype("float32"))], [variable])
        seen.append(variable.numpy())
    if kind == "swa":
        wanted = np.mean(seen[start:], 0)
    else:
        wanted = seen[0]
        for step, value in enumerate(seen[1:], 1):
            kept = min(0.4, (1 + step) / (10 + step))
            wanted = kept * wanted + (1 - kept) * value
    assert off(made.averages[0], wanted) < ROUNDED


@pytest.mark.parametrize("optimizer, options", [
    ("adamw", {"average": "ema"}), ("adamw", {"average": "swa"}), ("averaged_adam", {})])
def test_averages_of_skipped_steps_are_the_weights(eagerly, optimizer, options):
    """float16 begins with steps whose gradient is not finite."""
    variable = keras.Variable(np.ones([3, 4], "float32"))
    made = make_optimizer(optimizer, 0.1, skip_nonfinite=True, **options)
    made.build([variable])
    variable.assign(variable + 1)       # as weights are loaded
    for _ in range(2):
        made.apply([tf.fill([3, 4], np.nan)], [variable])
        assert np.array_equal(variable, np.full([3, 4], 2.0))
        assert np.array_equal(made.averages[0], variable)
    made.apply([tf.ones([3, 4])], [variable])
    low, high = np.array(variable).min(), 2.0
    assert low < high and np.all((made.averages[0] >= low) & (made.averages[0] <= high))


# The trainer

ROWS = 8
WAYS = {"smart": RobustnessSettings("smart", adv_noise_var=0.01),
        "freelb": RobustnessSettings("freelb")}


def train(strategy=None, way=None, dtype=None, steps=2, network=None, head=Classification,
          average=None, labels=None, **options):
    """Trains on eight random texts; returns the trainer and the last metrics."""
    strategy = strategy or tf.distribute.get_strategy()
    config = network or tiny.config(num_hidden_layers=1, initializer_range=0.3)
    rng = np.random.default_rng(3)
    mask = np.arange(tiny.LENGTH) < rng.integers(4, tiny.LENGTH + 1, (ROWS, 1))
    batch = {"input_ids": rng.integers(1, tiny.VOCAB, mask.shape) * mask, "input_mask": mask,
             "segment_ids": mask * (np.arange(tiny.LENGTH) > 6),
             "label_ids": rng.integers(0, 2, (ROWS, 1)) if labels is None else labels}
    batch = {name: tf.constant(value, tf.int32) for name, value in batch.items()}
    keras.utils.set_random_seed(5)
    with strategy.scope():
        learner = Learner(networks.build(config, dtype=dtype),
                          [head(config, 2, dropout_rate=0.0, dtype=dtype)])
        # An epsilon of 1 makes no full steps of the rounding of gradients near 0.
        optimizer = make_optimizer("adamw", 1e-2, epsilon=1.0, average=average,
                                   skip_nonfinite=dtype == "mixed_float16")
    trainer = Trainer(learner, optimizer, strategy, way=adversarial.make(way), **options)
    batches = iter(trainer.distribute(
        lambda worker, workers, replicas: tf.data.Dataset.from_tensor_slices(batch).repeat().batch(
            ROWS // replicas, drop_remainder=True)))
    return trainer, trainer.train(batches, steps)


class Fixed:
    """The same noise for every part of a batch, which replicas do not have."""

    def __init__(self, monkeypatch):
        for kind, name in ((adversarial.Smart, "embedding_noise"),
                           (adversarial.FreeLB, "word_noise")):
            monkeypatch.setattr(kind, "_first", lambda self, of, *_, name=name: 0.1 * tf.cos(
                tf.cast(of.batch["input_ids"], tf.float32))[:, :, None] * tf.ones(
                    [1, 1, adversarial.width(of.learner, name)]))


@pytest.mark.parametrize("way", WAYS)
def test_replicas_and_parts_change_nothing(eagerly, way, mirrored, monkeypatch):
    Fixed(monkeypatch)
    one, metrics = train(way=WAYS[way], average="ema")
    other, found = train(mirrored, WAYS[way], average="ema", accumulation=2)
    with one.averaged(), other.averaged():
        assert tiny.largest_difference(tiny.weights(one), tiny.weights(other)) < 1e-6
    assert found["loss"] == pytest.approx(metrics["loss"], rel=1e-5)
    assert ("smoothness/loss" in metrics) == (way == "smart")


@pytest.mark.parametrize("way, dtype", [("smart", "mixed_bfloat16"), ("freelb", "mixed_float16")])
def test_other_types_find_nearly_the_same(eagerly, way, dtype, monkeypatch):
    Fixed(monkeypatch)
    _, metrics = train(way=WAYS[way], steps=1)
    trainer, found = train(way=WAYS[way], dtype=dtype, steps=1)
    assert found["loss"] == pytest.approx(metrics["loss"], rel=0.03)
    if way == "smart":
        assert found["smoothness/loss"] == pytest.approx(metrics["smoothness/loss"], rel=0.2)
    assert all(np.isfinite(value).all() for value in tiny.weights(trainer).values())


def test_a_compiled_step_is_the_same(eagerly, monkeypatch):
    Fixed(monkeypatch)
    one, _ = train(way=WAYS["smart"], steps=1)
    tf.config.run_functions_eagerly(False)
    other, _ = train(way=WAYS["smart"], jit_compile=True, steps=1)
    assert tiny.largest_difference(tiny.weights(one), tiny.weights(other)) < 1e-6


def test_class_weights_keep_the_smoothness_a_mean(eagerly, learner, golden, monkeypatch):
    """Equal texts have equal divergences, whatever their labels and weights."""
    Fixed(monkeypatch)
    whole = one_pass(learner, golden).batch
    batch = {name: tf.repeat(value[:1], 4, 0) for name, value in whole.items()}
    batch["label_ids"] = tf.constant([0, 1, 1, 2])
    found = []
    for weights in (None, (1.0, 3.0, 0.5)):
        head = Classification(learner.encoder.config, 3, class_weights=weights, dropout_rate=0.0)
        head.set_weights(learner.objectives[0].get_weights())
        learner = Learner(learner.encoder, [head])
        of = Pass(learner, batch, learner.counts(batch), 1.0)
        measures, grads, _ = adversarial.make(WAYS["smart"]).gradients(of, SEED)
        _, plain, _ = Plain().gradients(of, SEED)
        found.append([measures["smoothness"]["loss"][0],
                      *(tf.convert_to_tensor(a) - tf.convert_to_tensor(b)
                        for a, b in zip(grads, plain))])
    assert float(found[0][0]) > 1e-6
    for one, other in zip(*found):
        largest = max(np.abs(one).max(), 1e-2)      # a difference of gradients of about 1
        assert np.abs(np.array(one) - other).max() < 1e-3 * largest


def test_loss_is_that_of_the_task_and_smoothness_has_the_weights_of_heads(eagerly, monkeypatch):
    """In a student's training too, where the weight of gold labels is a flag."""
    Fixed(monkeypatch)
    config = tiny.config(num_hidden_layers=1, initializer_range=0.3)
    ids = tf.random.stateless_uniform([4, tiny.LENGTH], [1, 2], 1, tiny.VOCAB, tf.int32)
    batch = {"input_ids": ids, "input_mask": tf.ones_like(ids), "segment_ids": ids * 0,
             "label_ids": tf.constant([0, 1, 1, 0]), "teacher_logits": tf.zeros([4, 2])}
    found = {}
    for weight in (0.25, 1.0):
        keras.utils.set_random_seed(5)
        learner = Student(networks.build(config), [
            Classification(config, 2, dropout_rate=0.0, loss_weight=weight),
            SoftTargets(config, "classification", loss_weight=0.5)])
        trainer = Trainer(learner, make_optimizer("adamw", 0.0), tf.distribute.get_strategy(),
                          way=adversarial.make(WAYS["smart"]))
        found[weight] = trainer.train(iter([batch]), 1)
    assert found[0.25]["smoothness/loss"] > 0
    assert found[0.25]["smoothness/loss"] == pytest.approx(found[1.0]["smoothness/loss"] / 4)
    for weight, metrics in found.items():
        assert metrics["loss"] == pytest.approx(weight * metrics["classification/loss"]
                                                + 0.5 * metrics["soft_targets/loss"])


@pytest.mark.parametrize("recipe", ["xlnet", "gpt", "mobilebert"])
def test_noise_reaches_other_networks(eagerly, recipe):
    sizes = {"initializer_range": 0.3, "num_hidden_layers": 1}
    config = tiny.config_of(recipes.find(recipe), **sizes)
    keras.utils.set_random_seed(5)
    learner = Learner(networks.build(config), [MultiLabel(config, 3), Regression(config)])
    ids = tf.random.stateless_uniform([2, tiny.LENGTH], [1, 2], 1, tiny.VOCAB, tf.int32)
    batch = {"input_ids": ids, "input_mask": tf.ones_like(ids), "segment_ids": ids * 0}
    plain = learner(batch)
    for name in ("word_noise", "embedding_noise"):
        noise = tf.zeros([2, tiny.LENGTH, adversarial.width(learner, name)])
        for scale, moves in ((0.0, False), (0.5, True)):
            moved = learner({**batch, name: noise + scale * tf.cos(tf.range(
                noise.shape[-1], dtype=tf.float32))})
            for head, logits in plain.items():
                assert (off(moved[head], logits) > 1e-4) == moves


def test_noise_goes_where_its_token_does_in_shared_rows(eagerly):
    config = tiny.config(initializer_range=0.3, num_hidden_layers=1)
    network = networks.build(config)
    ids = tf.constant([[4, 5, 6, 0], [7, 8, 9, 3]][::-1])
    mask = tf.cast(ids > 0, "int32")
    noise = {name: 0.3 * tf.random.stateless_normal([2, 4, 32], [1, seed])
             for seed, name in enumerate(("word_noise", "embedding_noise"))}
    batch = {"input_ids": ids, "input_mask": mask, **noise}
    shared = {**batch, "packed_from": tf.constant([[4, 5, 6, -1], [0, 1, 2, 3]]),
              "packed_at": tf.constant([[4, 5, 6, 7], [0, 1, 2, 0]])}
    one, other = (network(features)["sequence_output"].numpy() for features in (batch, shared))
    assert off(other * mask.numpy()[:, :, None], one * mask.numpy()[:, :, None]) < ROUNDED


def test_divergence_is_0_between_equals_and_above_0_else(eagerly):
    config = tiny.config(num_hidden_layers=1)
    one, other = (tf.random.stateless_normal([4, 3], [seed, 1]) for seed in (1, 2))
    for form in CRITERIA:
        for head, weights in ((Classification(config, 3), tf.ones(4)),
                              (MultiLabel(config, 3), tf.ones([4, 3]))):
            assert abs(head.divergence(one, one, weights, form)) < 1e-5
            assert head.divergence(one, other, weights, form) > 1e-2
    span = ConditionalSpan(config)
    logits = [{"start": x, "end": x, "answerable": x[:, 0]} for x in (one, other)]
    assert span.divergence(*logits, tf.ones(4), "sym_kl") > 1e-2
    assert set(CRITERIA) <= set(DIVERGENCES)


def test_divergences_of_mt_dnn_that_are_means_over_classes(eagerly):
    """namisan/mt-dnn, mt_dnn/loss.py, MseCriterion and HLCriterion: torch's mse_loss of all."""
    logits = np.random.default_rng(0).normal(size=[2, 5, 3]).astype("float32")
    roots = np.sqrt(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))
    head = Classification(tiny.config(num_hidden_layers=1), 3)
    for form, (one, other) in (("mse", logits), ("hl", roots)):
        found = head.divergence(*map(tf.constant, logits), tf.ones(5), form) / 5
        assert np.isclose(found, np.mean((one - other) ** 2), rtol=1e-5)


# Settings

@pytest.mark.parametrize("settings, message", [
    ({"adv_train": "freelb", "adv_p_norm": "l1"}, "--adv_p_norm=l1"),
    ({"adv_train": "smart", "dtype": "bfloat16"}, "--adv_noise_var is 1e-05")])
def test_settings_that_do_not_fit(settings, message):
    with pytest.raises(InputError, match=message):
        FineTuneSettings(output_dir="out", **settings)


def test_networks_that_take_no_noise():
    settings = FineTuneSettings(output_dir="out", adv_train="freelb")
    config = tiny.config(quantisation=Quantisation())
    with pytest.raises(InputError, match="a quantised network, .* give --quantisation=none"):
        adversarial.check(settings, networks.network_of(config), config, Learner)
    with pytest.raises(InputError, match="a T5, to whose embeddings"):
        adversarial.check(settings, networks.T5, config, Learner)
    gates = FineTuneSettings(output_dir="out", adv_train="smart", concrete_coef=0.1)
    with pytest.raises(InputError, match="gates"):
        adversarial.check(gates, networks.BertEncoder, tiny.config(), Learner)


def test_smart_needs_heads_that_learn_from_labels_and_one_network():
    config, way = tiny.config(num_hidden_layers=1), adversarial.make(WAYS["smart"])
    network, head = networks.build(config), Classification(config, 2)
    hidden = HiddenTransfer(config, config.hidden_size)
    for objectives in ([hidden], [Classification(config, 2, loss_weight=0.0), hidden]):
        with pytest.raises(InputError, match="auxiliary or have the weight 0"):
            Trainer(Learner(network, objectives), make_optimizer("adamw", 1e-2),
                    tf.distribute.get_strategy(), way=way)
    way.check(Learner(network, [head, hidden]))
    successor = Theseus(network, [head], networks.build(
        tiny.config(num_hidden_layers=2), name="predecessor"))
    with pytest.raises(InputError, match="which of its layers are replaced"):
        way.check(successor)
    adversarial.make(WAYS["freelb"]).check(successor)


def test_smart_needs_a_weight_of_gold_labels():
    rows = [DISTILLATIONS[name] for name in ("minibert", "tinybert")]
    with pytest.raises(InputError, match="weight is 0 in minibert, tinybert; give --gold_weight"):
        adversarial.check_gold(WAYS["smart"], rows)
    for others in ([None], [DISTILLATIONS["mtdnn_kd"]], [rows[0].with_soft(gold=0.5)]):
        adversarial.check_gold(WAYS["smart"], [*rows, *others])
    adversarial.check_gold(WAYS["freelb"], rows)
