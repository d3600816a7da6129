"""Label smoothing and class weights, against their formulas in NumPy and SciPy."""

import numpy as np
import pytest
from scipy.special import log_expit, log_softmax

from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.classification import Classification, MultiLabel, MultipleChoice, Regression
from bert_tf.objectives.tagging import Tagging
from bert_tf.training.learners.learner import Learner

CONFIG = EncoderConfig.preset("tiny", vocab_size=40, hidden_size=24, num_attention_heads=2,
                              intermediate_size=32, max_position_embeddings=8)
WEIGHTS = [0.5, 3.0, 1.0]
RNG = np.random.default_rng(0)
B, S, K = 5, 7, 3
REAL = np.array([1, 1, 0, 1, 1], "float32")


def logits_of(*shape):
    return RNG.normal(size=shape).astype("float32") * 2


def cross_entropy(logits, labels, counted, smoothing, weights):
    """The sum and the count of torch.nn.CrossEntropyLoss(weights, label_smoothing=smoothing)."""
    weights = np.ones(logits.shape[-1]) if weights is None else np.array(weights)
    target = np.eye(logits.shape[-1])[labels] * (1 - smoothing) + smoothing / logits.shape[-1]
    losses = -(target * weights * log_softmax(logits.astype(float), axis=-1)).sum(-1)
    return (losses * counted).sum(), (weights[labels] * counted).sum()


CASES = {
    "classification": (lambda **options: Classification(CONFIG, K, **options),
                       logits_of(B, K), RNG.integers(0, K, B), REAL),
    "tagging": (lambda **options: Tagging(CONFIG, K, **options), logits_of(B, S, K),
                RNG.integers(0, K, (B, S)), RNG.integers(0, 2, (B, S)).astype("float32")),
    "multiple_choice": (lambda **options: MultipleChoice(CONFIG, **options),
                        logits_of(B, K), RNG.integers(0, K, B), REAL),
}


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("case, weights", [
    *((case, None) for case in CASES), ("classification", WEIGHTS), ("tagging", WEIGHTS)])
def test_the_loss_of_classes(case, weights, smoothing):
    make, logits, labels, counted = CASES[case]
    options = {"class_weights": weights} if weights else {}
    found = make(label_smoothing=smoothing, **options).loss(logits, labels, counted)
    assert np.allclose(found, cross_entropy(logits, labels, counted, smoothing, weights), rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_loss_of_several_labels(weights, smoothing):
    logits, labels = logits_of(B, K), RNG.integers(0, 2, (B, K)).astype("float32")
    counted = np.tile(REAL[:, None], (1, K))
    target = labels * (1 - smoothing) + smoothing / 2
    losses = -(np.array(weights or 1.0) * target * log_expit(logits)
               + (1 - target) * log_expit(-logits))
    head = MultiLabel(CONFIG, K, label_smoothing=smoothing, class_weights=weights)
    assert np.allclose(head.loss(logits, labels, counted), ((losses * counted).sum(), 4 * K),
                       rtol=1e-5)


def test_counts_are_those_of_the_loss_and_the_accuracy_has_its_own():
    learner = Learner(BertEncoder(CONFIG), [
        Classification(CONFIG, K, class_weights=WEIGHTS, label_smoothing=0.1),
        MultiLabel(CONFIG, K, class_weights=WEIGHTS)])
    labels = np.array([[0, 1, 1]] * B)      # of the second; the first takes one of them
    batch = {"input_ids": RNG.integers(1, 40, (B, S)), "is_real_example": REAL}
    learner.objectives[0].reads = ("label",)
    batch |= {"label_ids": labels, "label": np.array([0, 1, 1, 2, 0])}
    measures, counts = learner.measure(batch), learner.counts(batch)
    wanted = {"classification": (0.5 + 3 + 1 + 0.5, 4), "multi_label": (4 * K, 4 * K)}
    for name, (in_loss, in_accuracy) in wanted.items():
        assert float(measures[name]["loss"][1]) == float(counts[name]) == in_loss
        assert float(measures[name]["accuracy"][1]) == in_accuracy
        assert float(measures[name]["accuracy"][0]) <= in_accuracy


@pytest.mark.parametrize("make, message", [
    (lambda: Classification(CONFIG, 3, class_weights=[1, 2]), "are 1.0, 2.0; they must be 3 num"),
    (lambda: Tagging(CONFIG, 2, class_weights=[1, -1]), "numbers of 0 or more"),
    (lambda: MultiLabel(CONFIG, 2, class_weights=[1, np.nan]), "numbers of 0 or more"),
    (lambda: Classification(CONFIG, 2, class_weights=[0, 0]), "not all 0"),
    (lambda: Classification(CONFIG, 2, label_smoothing=1.0), "label_smoothing is 1.0"),
    (lambda: MultipleChoice(CONFIG, label_smoothing=-0.1), "label_smoothing is -0.1"),
])
def test_impossible_numbers_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_numbers_to_be_predicted_take_neither():
    for option in ({"label_smoothing": 0.1}, {"class_weights": [1.0]}):
        with pytest.raises(ValueError, match="Unrecognized keyword"):
            Regression(CONFIG, **option)


def test_they_are_kept_in_configurations():
    for head in (Classification(CONFIG, 2, label_smoothing=0.1, class_weights=np.array([1, 2])),
                 Tagging(CONFIG, 2, class_weights=[1, 2]), MultiLabel(CONFIG, 2),
                 MultipleChoice(CONFIG, label_smoothing=0.2)):
        same = type(head).from_config(head.get_config())
        assert same.get_config() == head.get_config()
        assert (same.label_smoothing, same.class_weights) == (
            head.label_smoothing, head.class_weights)
