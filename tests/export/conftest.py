"""A model of random weights for each task, and what Python gives for texts."""

import functools

import keras
import numpy as np
import pytest

from bert_tf.bert.network import Bert
from bert_tf.bert.objective import MaskedLM
from bert_tf.config import EncoderConfig
from bert_tf.models.mtdnn.objective import StochasticAnswer
from bert_tf.models.recurrent.objective import StepClassification
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.classification import Classification, MultiLabel, MultipleChoice, Regression
from bert_tf.objectives.conditional_span import ConditionalSpan
from bert_tf.objectives.tagging import Tagging
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from bert_tf.training.learners.learner import Learner

HEADS = {"classification": lambda config: Classification(config, 3),
         "multi_label": lambda config: MultiLabel(config, 3), "regression": Regression,
         "masked_lm": MaskedLM, "answer_span": AnswerSpan, "conditional_span": ConditionalSpan,
         "tagging": lambda config: Tagging(config, 3), "multiple_choice": MultipleChoice,
         "step_classification": lambda config: StepClassification(config, 3),
         "stochastic_answer": lambda config: StochasticAnswer(config, 3)}


@pytest.fixture(scope="session")
def vocabulary():
    """A small `Vocabulary`."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789éßσς中文😀ا½™²각"
    return Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,-!?[]'#", *letters,
                       *(f"##{letter}" for letter in letters), "the", "plain", "##ing", "word"])


@pytest.fixture(scope="session")
def make_model():
    """A function that gives the model of a task ("encoder" or one of `HEADS`), built once."""
    @functools.cache
    def make(task, size, hidden_act="gelu"):
        keras.utils.set_random_seed(3)
        config = EncoderConfig.preset("tiny", vocab_size=size, num_hidden_layers=1, hidden_size=32,
                                      num_attention_heads=2, intermediate_size=64,
                                      max_position_embeddings=64, initializer_range=0.2,
                                      hidden_act=hidden_act)
        encoder = BertEncoder(config)
        return encoder if task == "encoder" else Learner(encoder, [HEADS[task](config)])
    return make


def features_of(tokenizer, texts, longest):
    """The features of texts or pairs, as the original makes them."""
    vocabulary, rows = tokenizer.vocabulary, []
    for text_a, text_b in texts:
        a, b = tokenizer.encode(text_a), tokenizer.encode(text_b)
        while len(a) + len(b) > longest - (3 if b else 2):
            (a if len(a) > len(b) else b).pop()
        first = [vocabulary.cls_id, *a, vocabulary.sep_id]
        rows.append((first, [*b, vocabulary.sep_id] if b else []))
    shape = len(rows), max(len(first) + len(second) for first, second in rows)
    features = {name: np.zeros(shape, "int32")
                for name in ("input_ids", "input_mask", "segment_ids")}
    for row, (first, second) in enumerate(rows):
        length = len(first) + len(second)
        features["input_ids"][row, :length] = first + second
        features["input_mask"][row, :length] = 1
        features["segment_ids"][row, len(first):length] = 1
    return features


@pytest.fixture(scope="session")
def check_equal():
    """A function that compares what an exported model gave for (text_a, text_b) with Python."""
    def check(outputs, model, tokenizer, texts, longest=64):
        features = features_of(tokenizer, texts, longest)
        length = features["input_ids"].shape[1]
        assert np.array_equal(outputs["input_ids"][:, :length], features["input_ids"])
        assert not np.any(outputs["input_ids"][:, length:])
        for name, value in named(model(features), model).items():
            assert np.abs(outputs[name][:, :value.shape[1]] - value).max() < 1e-5, name
    return check


def named(outputs, model):
    """What the Python model says, under the names of the export."""
    if isinstance(model, Bert):
        outputs = {name: outputs[name] for name in ("sequence_output", "pooled_output")}
    else:
        objective, = model.objectives
        outputs = objective.answers(outputs[objective.name])
    return {name: np.array(value) for name, value in outputs.items()}


@pytest.fixture(scope="session")
def tokenizer(vocabulary):
    """Of the small vocabulary."""
    return WordpieceTokenizer(vocabulary)
