"""Whether arrays are the same; how far rounding may take two computations of one thing apart."""

import numpy as np

# A number that a network of a few layers, some ten wide, computes has been rounded some hundred
# times on its way, each time by at most half an ulp of float32, which is this share of a number.
HALF_ULP = 2.0**-24
ROUNDED = 256 * HALF_ULP


def assert_same(found, wanted, what=""):
    """Raises AssertionError unless dicts or lists of arrays have equal names, shapes and values; a
    NaN equals nothing."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), what
        for name in wanted:
            assert_same(found[name], wanted[name], f"{what} {name}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), what
        for index, one in enumerate(wanted):
            assert_same(found[index], one, f"{what} {index}")
    else:
        assert np.array_equal(found, wanted), what


def off(found, wanted):
    """The largest difference, as a share of the largest value (of 1, if all are smaller): sums
    are rounded by what their addends measure, whatever is left of them."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert wanted.size == 1 or found.shape == wanted.shape
    return np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max())


def off_steps(rate, steps):
    """What weights may differ by after some steps of Adam or a relative, whose length the rate
    bounds: rounding changes directions by a thousandth, since it decides those of gradients near 0.
    """
    return 1e-3 * rate * steps
