"""The effect of chance on a number that was measured for a few seeds."""

import lazy_loader

_scipy = lazy_loader.load("scipy")


def interval(error: float, seeds: int) -> float:
    """Returns how far the 95% interval of a mean over `seeds` reaches to each side, by Student's t,
    from the standard error. With few seeds this is much more than two standard errors.

    For the difference of two independent means of so many seeds it is at least as far as Welch's.
    """
    return float(_scipy.stats.t.ppf(0.975, seeds - 1)) * error
