"""MobileBERT learns of its teacher as google-research's mobilebert/run_pretraining.py has it
(golden/mobilebert of $BERT_TF_TEST_DATA)."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints, recipes
from bert_tf.checkpoints.weights import variables
from bert_tf.config import MobileBertConfig
from bert_tf.errors import InputError
from bert_tf.models.mobilebert.learner import KnowledgeTransfer
from bert_tf.models.mobilebert.settings import MobileBertSettings
from bert_tf.training import Learner, make_optimizer
from bert_tf.training.optimizers.schedules import WarmupLinearDecay
from bert_tf.training.trainer import Trainer
from tests.goldens import part
from tests.networks.test_mobilebert import TINY, learner_of, write_checkpoint
from tests.original_checkpoint import arrays_of

pytestmark = pytest.mark.usefixtures("eagerly")
LOSSES = {"feature_map_transfer": (100, "feature_map_transfer_loss"),
          "attention_map_transfer": (1, "attention_transfer_loss"),
          "mean_transfer": (5000, "mean_transfer_loss"),
          "variance_transfer": (5, "variance_transfer_loss")}


@pytest.fixture(name="golden", scope="module")
def fixture_golden(test_data):
    return np.load(test_data / "golden" / "mobilebert" / "distillation_seed1.npz")


@pytest.fixture(name="make", scope="module")
def fixture_make(golden, tmp_path_factory):
    """The learner of the reference file, with its weights."""
    path = tmp_path_factory.mktemp("mobilebert")
    weights = {name: value for name, value in part(golden, "w/").items()
               if not name.startswith("teacher/")}
    write_checkpoint(path / "student", str(golden["student_config"]), weights)
    write_checkpoint(path / "teacher", str(golden["teacher_config"]), part(golden, "w/teacher/"))

    def make(**settings):
        learner = KnowledgeTransfer.of_terms(
            checkpoints.read_config(path / "student"), recipes.find("mobilebert").terms,
            settings=MobileBertSettings(teacher=str(path / "teacher"), **settings))
        checkpoints.load(path / "student", learner)
        return learner
    return make


def batch_of(golden, step):
    return {name: tf.constant(value) for name, value in part(golden, f"batch{step % 4}/").items()}


def weights_of(learner, folder):
    """The weights under the original's names."""
    learner.parts()["model"].save(folder.with_suffix(".keras"))
    checkpoints.convert(str(folder.with_suffix(".keras")), str(folder), "google")
    return arrays_of(folder / "bert_model.ckpt")


def check_weights(golden, name, learner, folder, off, most):
    found, wanted = weights_of(learner, folder), part(golden, f"{name}/")
    moved = set(wanted.pop("moved").tolist())
    before = part(golden, "w/")
    assert {key for key in found if not np.array_equal(found[key], before[key])} == moved
    offs = np.concatenate([np.abs(found[key] - value).ravel() for key, value in wanted.items()])
    assert np.quantile(offs, 0.99) < off and offs.max() < most


def test_progressive_transfer_is_the_originals(golden, make, tmp_path):
    learner = make(layer_wise_warmup=True, num_distill_steps=6)
    before = [np.array(v) for v in learner.teacher.weights]
    trainer = Trainer(learner, make_optimizer("progressive_lamb", 1.5e-3,
                                              **learner.optimizer_options),
                      tf.distribute.get_strategy())
    for step in range(6):
        metrics = trainer.train(iter([batch_of(golden, step)]), 1)
        wanted = part(golden, f"transfer/step{step}/")
        for name, (factor, theirs) in LOSSES.items():
            np.testing.assert_allclose(factor * metrics[f"{name}/loss"], wanted[theirs], 1e-5)
        np.testing.assert_allclose(metrics["loss"], wanted["loss"], 1e-5)
        # A few tensors have gradients of nearly 0, which LAMB makes as large as any.
        if step in (1, 5):
            check_weights(golden, f"transfer/after{step + 1}", learner, tmp_path / str(step),
                          1e-5, 1e-4)
    assert all(np.array_equal(*pair) for pair in zip(before, learner.teacher.weights))
    # Together, or beside the teacher's own layers only, layers give other losses.
    batch = batch_of(golden, 0)
    paper = make(layer_wise_warmup=True, num_distill_steps=6, statistics_of_all_layers=False)
    ours, theirs = (one.measure(batch)["mean_transfer"]["loss"][0] for one in (make(
        layer_wise_warmup=True, num_distill_steps=6), paper))
    assert ours > 0 and theirs > 0 and ours != theirs


def test_a_phase_may_have_a_single_step():
    optimizer = make_optimizer("progressive_lamb", 1.0, phase_steps=1)
    factors = []
    for step in range(4):
        optimizer.iterations.assign(step)
        factors.append([float(optimizer.factor(layer)) for layer in range(2)])
    np.testing.assert_allclose(factors, [[0, 0], [3, 0], [0.3, 3], [0.3, 0.3]])


def test_pre_training_with_soft_labels_is_the_originals(golden, make, tmp_path):
    learner = make()
    flags = json.loads(str(golden["flags"]))
    rate = WarmupLinearDecay(flags["learning_rate"], flags["train_steps"], flags["warmup_steps"],
                             end=flags["learning_rate"] * 1e-4)
    trainer = Trainer(learner, make_optimizer("albert_lamb", rate), tf.distribute.get_strategy())
    for step in range(2):
        metrics = trainer.train(iter([batch_of(golden, step)]), 1)
        wanted = part(golden, f"pretrain/step{step}/")
        soft = (metrics["masked_lm/loss"] + metrics["prediction_transfer/loss"]) / 2
        np.testing.assert_allclose(soft, wanted["masked_lm_loss"], 1e-5)
        np.testing.assert_allclose(metrics["next_sentence/loss"], wanted["next_sentence_loss"],
                                   1e-5)
        np.testing.assert_allclose(metrics["loss"], wanted["loss"], 1e-5)
    check_weights(golden, "pretrain/after2", learner, tmp_path / "after", 1e-5, 1e-5)


def test_a_student_begins_with_what_fits_of_its_teacher(tmp_path):
    student = MobileBertConfig(**TINY, normalization_type="no_norm")
    teacher = MobileBertConfig(**{**TINY, "key_query_shared_bottleneck": False,
                                  "intra_bottleneck_size": 24, "num_feedforward_networks": 1})
    learner_of(teacher).save(tmp_path / "teacher.keras")
    settings = MobileBertSettings(teacher=str(tmp_path / "teacher.keras"))
    found = KnowledgeTransfer.of_terms(student, recipes.find("mobilebert").terms, settings=settings)
    theirs = variables(found.teacher)
    taken = {name.split("/")[0] for name, variable in variables(found).items()
             if name in theirs and theirs[name].shape == variable.shape and len(variable.shape) > 1
             and np.array_equal(variable, theirs[name])}
    assert taken == {"embeddings", "pooler", "masked_lm"}
    assert type(found.parts()["model"]) is Learner
    for values, message in (({"num_hidden_layers": 1}, "num_hidden_layers"),
                            ({"vocab_size": 50}, "vocab_size")):
        with pytest.raises(InputError, match=message):
            KnowledgeTransfer.of_terms(MobileBertConfig(**{**TINY, **values}),
                                       recipes.find("mobilebert").terms, settings=settings)
    with pytest.raises(InputError, match="needs a teacher"):
        MobileBertSettings(layer_wise_warmup=True)
    with pytest.raises(InputError, match="no --distill_temperature without --teacher"):
        KnowledgeTransfer.of_terms(student, recipes.find("mobilebert").terms,
                                   settings=MobileBertSettings(distill_temperature=2.0))
    with pytest.raises(InputError, match="fewer than the 2 layers"):
        KnowledgeTransfer.of_terms(student, recipes.find("mobilebert").terms, settings=(
            MobileBertSettings(teacher=settings.teacher, layer_wise_warmup=True,
                             num_distill_steps=1)))
