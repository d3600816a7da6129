"""Losses of distillation and steps of BERT-PKD are those of the originals (golden/distillation and
golden/mtdnn of $BERT_TF_TEST_DATA)."""

import re

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.compression import MultiTaskStudent, Patience, SoftTargets, Student, make_terms
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.models.mtdnn.batches import SharedFeatures, of_task
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.classification import Classification, MultiLabel, Regression
from bert_tf.objectives.tagging import Tagging
from bert_tf.recipes import DISTILLATIONS, patience_layers
from bert_tf.recipes.distillation import find_distillation
from bert_tf.training.optimizers.adam import make_optimizer
from bert_tf.training.optimizers.schedules import WarmupLinearDecay
from tests.rounding import ROUNDED, off, off_steps

pytestmark = pytest.mark.usefixtures("eagerly")
SIZES = EncoderConfig.preset("tiny", hidden_size=8, num_hidden_layers=3, num_attention_heads=2)


def test_a_row_is_described_as_trials_on_disk_have_it():
    assert DISTILLATIONS["pkd"].describe() == {
        "name": "pkd", "paper": "arXiv:1908.09355", "terms": [
            {"objective": "SoftTargets", "weight": 0.7, "options": {
                "form": "kl", "temperature": 5.0, "mean_over": "classes"}},
            {"objective": "Patience", "weight": 100.0, "options": {"layers": "skip"}}],
        "gold_weight": 0.3, "teaches": "stored", "average": "probabilities",
        "augmentation": "none", "defaults": {
            "optimizer": "pytorch_bert_adam", "learning_rate": 5e-5, "num_train_epochs": 4.0,
            "train_batch_size": 32}}


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return lambda name: np.load(test_data / "golden" / f"{name}_seed1.npz")


def mean_loss(objective, student, teacher):
    total, count = objective.loss(student, tf.constant(teacher), tf.ones(student.shape[0]))
    return total / count


def loss_and_gradient(function, student):
    student = tf.constant(student)
    with tf.GradientTape() as tape:
        tape.watch(student)
        loss = function(student)
    return float(loss), tape.gradient(loss, student).numpy()


DISTILLATION = ("distillation/losses", "student_logits", "teacher_logits")
MTDNN = ("mtdnn/losses", "pair/logits", "pair/other_logits")
T5 = {"temperature": 5.0}
BY_CLASS = {"mean_over": "classes"}
CROSS = {"form": "cross_entropy", "scales_gradient": False, **BY_CLASS}


def test_the_teachers_numbers_are_learned_as_labels_are():
    numbers = np.array([[120.0], [250.0]], np.float32)
    head = Regression(SIZES, scale=30.0, mean=180.0)
    soft, = make_terms(find_distillation("soft_labels"), SIZES, head)
    labels, _ = soft.targets({"teacher_logits": numbers, "soft_weights": np.ones(2)})
    gold, _ = head.targets({"label_ids": numbers, "is_real_example": np.ones(2)})
    assert np.allclose(labels, gold) and np.allclose(labels, [[-2], [7 / 3]])
    assert np.allclose(head.answers(labels)["values"], numbers)


@pytest.mark.parametrize("source, expected, gradient_of, gold, weight, options", [
    (DISTILLATION, "pkd_total", "pkd_grad", 0.3, 0.7, {**T5, **BY_CLASS}),
    (DISTILLATION, "intel_kl", "intel_kl_grad", 1.0, 0.1, T5),
    (DISTILLATION, "intel_mse", "intel_mse_grad", 1.0, 0.1,
     {"form": "log_mse", **T5, **BY_CLASS}),
    (DISTILLATION, "tiny_soft_T1", "tiny_soft_T1_grad", 0.0, 1.0, CROSS),
    (DISTILLATION, "tiny_soft_T5", "tiny_soft_T5_grad", 0.0, 1.0, {**T5, **CROSS}),
    *((MTDNN, f"pair/{name}Criterion/loss", f"pair/{name}Criterion/grad", 0.0, 1.0, {"form": form})
      for name, form in (("Mse", "mse"), ("Kl", "kl"), ("NsKl", "ns_kl"), ("SymKl", "sym_kl"),
                         ("NsSymKl", "ns_sym_kl"), ("JS", "js"))),
])
def test_losses_of_logits(source, expected, gradient_of, gold, weight, options, golden):
    system, student, teacher = source
    tensors = golden(system)
    soft, hard = SoftTargets(SIZES, "classification", **options), Classification(SIZES, 3)

    def loss(logits):
        found = weight * mean_loss(soft, logits, tensors[teacher])
        return found + (gold * mean_loss(hard, logits, tensors["labels"]) if gold else 0.0)

    found, gradient = loss_and_gradient(loss, tensors[student])
    assert found == pytest.approx(float(tensors[expected]), rel=ROUNDED)
    assert off(gradient, tensors[gradient_of]) < ROUNDED


def test_hellinger_is_mt_dnns_and_has_a_gradient(golden):
    tensors = golden("mtdnn/losses")
    soft = SoftTargets(SIZES, "classification", form="hl")
    found, gradient = loss_and_gradient(
        lambda logits: mean_loss(soft, logits, tensors["pair/other_logits"]),
        tensors["pair/logits"])
    assert found == pytest.approx(float(tensors["pair/HLCriterion/loss"]), rel=ROUNDED)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("form", ["sym_kl", "ns_kl", "ns_sym_kl", "js", "hl", "mse", "log_mse"])
def test_padding_is_no_place_of_an_answer(form):
    soft = SoftTargets(SIZES, "answer_span", form=form, of_positions=True)
    rng = np.random.default_rng(1)
    student, teacher = (rng.normal(size=(2, 2, 6)).astype("float32") for _ in range(2))
    labels, weights = soft.targets({
        "teacher_logits": tf.constant(teacher), "soft_weights": tf.ones([2, 2]),
        "input_mask": tf.constant([[1] * 4 + [0] * 2] * 2)})
    if form in ("sym_kl", "js"):
        cut = SoftTargets(SIZES, "classification", form=form)
        wanted, _ = cut.loss(tf.constant(student[..., :4]), tf.constant(teacher[..., :4]), weights)
        assert float(soft.loss(tf.constant(student), labels, weights)[0]) == pytest.approx(
            float(wanted), rel=ROUNDED)
    found, gradient = loss_and_gradient(
        lambda logits: soft.loss(logits, labels, weights)[0], student)
    assert 0 <= found < 100 and np.isfinite(gradient).all()
    if form == "mse":
        assert found == pytest.approx(np.square(student - teacher)[..., :4].sum(), rel=ROUNDED)
        assert not gradient[..., 4:].any()


@pytest.mark.parametrize("normalizes", [True, False])
def test_patience(normalizes, golden):
    tensors = golden("distillation/losses")
    name = f"pkd_patience_{'normalised' if normalizes else 'plain'}"
    objective = Patience(SIZES, normalizes=normalizes)
    found, gradient = loss_and_gradient(
        lambda vectors: mean_loss(objective, vectors, tensors["teacher_cls"]),
        tensors["student_cls"])
    assert found == pytest.approx(float(tensors[name]), rel=ROUNDED)
    assert off(gradient, tensors[f"{name}_grad"]) < ROUNDED


@pytest.mark.parametrize("head, labels", [
    (Classification(SIZES, 2), [[1], [0], [1], [0]]), (Regression(SIZES), [[1.0]] * 4),
    (MultiLabel(SIZES, 3), [[1.0] * 3] * 4)])
def test_patience_is_the_mean_over_examples_whatever_their_labels(head, labels):
    objective = Patience(SIZES, normalizes=False)
    learner = Student(BertEncoder(SIZES), [head, objective])
    student, teacher = np.random.default_rng(1).normal(size=(2, 4, 2, 8)).astype("float32")
    batch = {"label_ids": labels, "is_real_example": np.array([[1], [1], [1], [0]]),
             "teacher_cls": teacher.reshape(4, -1)}
    found = learner.batch_for(objective, {name: tf.constant(x) for name, x in batch.items()})
    total, count = objective.loss(tf.constant(student), *objective.targets(found))
    assert float(total / count) == pytest.approx(
        np.square(student - teacher)[:3].mean(), rel=ROUNDED)
    assert float(count) == float(objective.count(found)) == 3 * 2 * 8


def test_layers_of_patience():
    assert patience_layers("skip", 12, 6) == (1, 3, 5, 7, 9)
    assert patience_layers("skip", 12, 3) == (3, 7)
    assert patience_layers("last", 12, 6) == (6, 7, 8, 9, 10)
    assert patience_layers("last", 12, 3) == (9, 10)
    assert patience_layers("skip", 24, 6) == (3, 7, 11, 15, 19)
    for wrong in (("skip", 12, 5), ("1,2", 12, 6), ("a", 12, 3), ("5,12", 12, 3), ("skip", 4, 1)):
        with pytest.raises(InputError, match="--patience_layers"):
            patience_layers(*wrong)


def named(tensors, prefix):
    """The weights of PyTorch under our names."""
    found = {}
    for name in tensors.files:
        if name.startswith(prefix):
            ours = re.sub(r"layer/(\d+)", r"layer_\1",
                          name[len(prefix):].removeprefix("bert.").replace(".", "/"))
            value = tensors[name]
            if "LayerNorm" in ours:
                ours = ours.replace("weight", "gamma").replace("bias", "beta")
            elif "_embeddings" in ours:
                ours = ours.removesuffix("/weight")
            elif ours.endswith("weight"):
                ours, value = ours.replace("weight", "kernel"), value.T
            found[ours.replace("classifier/", "classification/dense/")] = value
    return found


def test_three_steps_of_pkd(golden):
    tensors = golden("distillation/pkd_steps")
    sizes = EncoderConfig(
        vocab_size=61, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=40, max_position_embeddings=20, type_vocab_size=2, hidden_act="gelu_erf",
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    head = Classification(sizes, 2, dropout_rate=0.0, loss_weight=0.3)
    learner = Student(BertEncoder(sizes), [head, SoftTargets(
        sizes, head.name, temperature=5.0, mean_over="classes", loss_weight=0.7),
        Patience(sizes, loss_weight=100.0)])
    weights = {v.path.removeprefix("bert/"): v for v in learner.trainable_variables}
    for name, value in {**named(tensors, "student/"),
                        **named(tensors, "student_classifier/")}.items():
        weights[name].assign(value)
    # The rate of the original's warm-up in these three steps: 0, 5e-4, 1e-3.
    optimizer = make_optimizer("pytorch_bert_adam", WarmupLinearDecay(1e-3, 20, 2, "roberta"))
    for step in range(3):
        batch = {name: tf.constant(tensors[f"step{step}/{name}"]) for name in (
            "input_ids", "input_mask", "segment_ids", "label_ids", "teacher_logits")}
        batch["teacher_cls"] = tf.constant(tensors[f"step{step}/teacher_cls"].reshape(4, -1))
        with tf.GradientTape() as tape:
            measures = learner.measure_logits(learner(batch), batch)
            loss = learner.total_loss(measures)
        optimizer.apply(tape.gradient(loss, [v.value for v in weights.values()]),
                        list(weights.values()))
        soft, hard, patience = (
            float(total / count) for total, count in
            (measures[name]["loss"] for name in ("soft_targets", head.name, "patience")))
        # The original rounds the patience to float16, times its weight.
        rounded = float(np.float16(100) * np.float16(patience))
        # Of logits that are nearly equal, whose rounding is that of numbers near 1.
        assert soft == pytest.approx(float(tensors[f"step{step}/soft"]), abs=ROUNDED)
        assert 0.7 * soft + 0.3 * hard + rounded == pytest.approx(
            float(tensors[f"step{step}/loss"]), rel=ROUNDED)
    for name, value in named(tensors, "after3/").items():
        assert off(weights[name], value) < off_steps(1e-3, 3), name


def test_examples_without_labels_or_teacher_have_no_part():
    sizes = EncoderConfig.preset("tiny", vocab_size=20, hidden_size=8, num_attention_heads=2,
                                 intermediate_size=8, max_position_embeddings=8)
    head = Classification(sizes, 2)
    learner = Student(BertEncoder(sizes), [head, SoftTargets(sizes, head.name)])
    batch = {"input_ids": np.arange(8).reshape(2, 4), "label_ids": np.array([[1], [0]]),
             "is_real_example": np.ones([2, 1], "int32"),
             "is_labelled": np.array([[1], [0]]),
             "teacher_logits": np.array([[1.0, 2.0], [0.5, 0.0]], "float32")}
    batch = {name: tf.constant(value) for name, value in batch.items()}
    assert {name: float(count) for name, count in learner.counts(batch).items()} == {
        "classification": 1, "soft_targets": 2}
    del batch["teacher_logits"]
    measures = learner.measure(batch)
    assert float(measures["soft_targets"]["loss"][1]) == 0
    assert np.isfinite(float(learner.total_loss(measures)))
    assert [one.name for one in learner.parts()["model"].objectives] == ["classification"]


def test_starts_and_ends_of_answers():
    """DistilBERT's second distillation: the mean of both divergences, each over the positions."""
    rng = np.random.default_rng(1)
    student, teacher = rng.normal(size=(2, 3, 2, 6)).astype("float32")
    is_token = np.arange(6) < [[6], [4], [5]]
    objective = SoftTargets(SIZES, "answer_span", temperature=2.0, of_positions=True)
    labels, weights = objective.targets({
        "teacher_logits": tf.constant(teacher), "input_mask": tf.constant(is_token, "int32"),
        "soft_weights": tf.ones([3, 2])})
    total, count = objective.loss(tf.constant(student), labels, weights)
    divergences = []
    for end in range(2):
        q = np.exp(student[:, end] / 2)
        p = np.exp(teacher[:, end] / 2) * is_token
        p, q = (x / x.sum(1, keepdims=True) for x in (p, q))
        logs = np.log(np.where(is_token, p / q, 1.0))
        divergences.append(np.sum(p * logs) / 3)
    assert float(total / count) == pytest.approx(4 * np.mean(divergences), rel=1e-6, abs=1e-6)
    assert float(objective.count_of(labels, weights)) == float(count) == 6


@pytest.mark.parametrize("form", ["mse", "kl"])
def test_the_mean_over_decisions_is_reported_as_it_is_learned(form):
    rng = np.random.default_rng(1)
    student, teacher = rng.normal(size=(2, 3, 4)).astype("float32")
    soft = SoftTargets(SIZES, "multi_label", form=form, mean_over="classes", is_binary=True)
    total, count = soft.loss(*map(tf.constant, (student, teacher)), tf.ones([3, 4]))
    p, q = (1 / (1 + np.exp(-x)) for x in (teacher, student))
    expected = {"mse": np.square(student - teacher),
                "kl": p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))}[form]
    assert float(total / count) == pytest.approx(expected.mean(), rel=ROUNDED)
    assert float(count) == float(soft.count_of(tf.constant(teacher), tf.ones([3, 4]))) == 12


def test_words_of_several_tasks():
    """MiniBERT's loss is that of each word that a teacher has tagged, of one task a batch."""
    sizes = EncoderConfig.preset("tiny", vocab_size=20, hidden_size=8, num_attention_heads=2,
                                 intermediate_size=8, max_position_embeddings=8)
    rng = np.random.default_rng(1)
    heads = [Tagging(sizes, 3, name="names", dropout_rate=0.0, loss_weight=0.0),
             Tagging(sizes, 2, name="verbs", dropout_rate=0.0),
             Classification(sizes, 2, name="mood", dropout_rate=0.0)]
    learner = MultiTaskStudent(BertEncoder(sizes), [*heads, SoftTargets(
        sizes, "names", "cross_entropy", 3.0, scales_gradient=False, name="names_soft")])
    records = {"input_ids": rng.integers(1, 20, (2, 4)), "is_real_example": np.ones([2, 1], int),
               "label_ids": np.array([[0, 2, 1, 0], [0, 2, 0, 0]]),
               "is_labelled": np.ones([2, 4], int),
               "label_weights": np.array([[0, 1, 1, 0], [0, 1, 0, 0]]),
               "teacher_logits": rng.normal(size=(2, 3, 4)).astype("float32")}
    shared = SharedFeatures(words=True, soft_tags=3)

    def measures(task, names):
        batch = {name: tf.constant(value, tf.float32 if value.dtype == "float32" else tf.int32)
                 for name, value in of_task({name: records[name] for name in names}, task,
                                            shared).items()}
        batch["label_ids"] = tf.cast(batch["label_ids"], tf.float32)
        logits = learner(batch)
        found = learner.measure_logits(logits, batch)
        assert {name: float(count) for name, count in learner.counts(batch).items()} == {
            name: float(part["loss"][1]) for name, part in found.items()}
        return found, float(learner.total_loss(found)), {
            name: np.array(tf.nn.log_softmax(value / 3)) for name, value in logits.items()}

    found, total, student = measures(0, records)
    p = np.array(tf.nn.softmax(np.moveaxis(records["teacher_logits"], 1, 2) / 3))
    is_word = records["label_weights"] > 0
    assert total == pytest.approx(-np.sum((p * student["names"])[is_word]) / 3, rel=1e-6, abs=1e-6)
    counts = {name: float(part["loss"][1]) for name, part in found.items()}
    assert counts == {"names": 3, "verbs": 0, "mood": 0, "names_soft": 3}
    plain = [name for name in records if name not in ("teacher_logits", "is_labelled")]
    records["label_ids"] %= 2
    found, *_ = measures(1, plain)
    counts = {name: float(part["loss"][1]) for name, part in found.items()}
    assert counts == {"names": 0, "verbs": 3, "mood": 0, "names_soft": 0}
    records["label_ids"] = np.array([[1], [0]])
    found, *_ = measures(2, [name for name in plain if name != "label_weights"])
    counts = {name: float(part["loss"][1]) for name, part in found.items()}
    assert counts == {"names": 0, "verbs": 0, "mood": 2, "names_soft": 0}


def test_tasks_with_and_without_teachers():
    sizes = EncoderConfig.preset("tiny", vocab_size=20, hidden_size=8, num_attention_heads=2,
                                 intermediate_size=8, max_position_embeddings=8)
    heads = [Classification(sizes, labels, name=name, dropout_rate=0.0)
             for name, labels in (("three", 3), ("two", 2))]
    learner = MultiTaskStudent(BertEncoder(sizes), [*heads, SoftTargets(
        sizes, "two", name="two_soft")])
    logits = np.array([[1.0, -1.0, 0.0], [0.5, 0.0, 0.0]], "float32")

    def loss(task, **taught):
        batch = {"input_ids": np.arange(1, 9).reshape(2, 1, 4), "label_ids": [[1.0], [0.0]],
                 "is_real_example": np.ones([2, 1], "int32"),
                 "task_number": np.full([2, 1], task, "int32"), **taught}
        batch = {name: tf.constant(value) for name, value in batch.items()}
        found = learner(batch)
        measures = learner.measure_logits(found, batch)
        counts = {name: float(count) for name, count in learner.counts(batch).items()}
        assert counts == {name: float(part["loss"][1]) for name, part in measures.items()}
        return float(learner.total_loss(measures)), {
            name: tf.nn.log_softmax(found[name]).numpy() for name in ("three", "two")}, counts

    ones = np.ones([2, 1], "int32")
    taught = {"teacher_logits": logits, "is_labelled": ones, "is_taught": ones}
    found, student, counts = loss(1, **taught)
    log_q, log_p = student["two"], tf.nn.log_softmax(logits[:, :2]).numpy()
    hard = -(log_q[0, 1] + log_q[1, 0]) / 2
    assert found == pytest.approx(hard + np.sum(np.exp(log_p) * (log_p - log_q)) / 2, abs=1e-5)
    assert counts == {"three": 0, "two": 2, "two_soft": 2}
    plain, student, counts = loss(0, **{**taught, "is_taught": 0 * ones})
    assert plain == pytest.approx(-(student["three"][0, 1] + student["three"][1, 0]) / 2, abs=1e-5)
    assert counts == {"three": 2, "two": 0, "two_soft": 0}
    scored, *_ = loss(1)
    assert scored == pytest.approx(hard, rel=1e-5, abs=1e-5)
