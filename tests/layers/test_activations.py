"""Activations: the two GELUs are kept apart."""

import math

import numpy as np
import pytest

from bert_tf import config
from bert_tf.layers.activations import ACTIVATIONS


def test_every_name_of_the_configuration_is_built():
    assert tuple(ACTIVATIONS) == config.ACTIVATIONS


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 0.7, 2.5])
def test_gelu_is_the_tanh_form_and_gelu_erf_the_exact_one(x):
    tanh_form = 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    erf_form = 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    value = np.array([x], "float32")
    assert np.allclose(ACTIVATIONS["gelu"](value), tanh_form, atol=1e-6)
    assert np.allclose(ACTIVATIONS["gelu_erf"](value), erf_form, atol=1e-6)
