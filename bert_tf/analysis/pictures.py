"""PNG pictures of this package's measures."""

import contextlib
import typing
import warnings
from collections.abc import Iterator, Mapping

import numpy as np

from bert_tf.analysis import patterns
from bert_tf.analysis.statistics import KINDS
from bert_tf.errors import warn
from bert_tf.files import replace_aside

if typing.TYPE_CHECKING:        # it needs TensorFlow, which pictures do not
    from bert_tf.analysis.identifiability import Identification

_COLORS = {"cls": "#4269d0", "sep": "#efb118", "punctuation": "#ff725c", "rest": "#6cc5b0"}


@contextlib.contextmanager
def picture(path: str, rows: int, columns: int, size: tuple[float, float], **options) -> Iterator:
    """Gives a figure and its axes [rows, columns]; the file appears when the block ends."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(rows, columns, figsize=(size[0] * columns, size[1] * rows),
                                   squeeze=False, layout="constrained", **options)
    try:
        yield figure, axes
        with replace_aside(path) as aside, warnings.catch_warnings(
                record=True, action="always") as said:
            figure.savefig(aside, dpi=110)
        if any("missing from font" in str(each.message) for each in said):
            warn(f"{path} shows boxes for letters that matplotlib's font lacks; install one with "
                 "them, and name it in a file matplotlibrc, such as font.family: DejaVu Sans, Noto "
                 "Sans CJK SC.")
    finally:
        pyplot.close(figure)


def draw_identifiability(path: str, title: str, head_size: int,
                         by_length: Mapping[int, Mapping[str, np.ndarray]],
                         identification: "Identification", attribution: Mapping[str, np.ndarray],
                         titles: Mapping[str, str]) -> None:
    """Draws correlation and attention by length, tokens identified by layer, and contributions.

    `head_size` is D; longer texts' attention is not identifiable. `by_length` has the figures of
    `compare_maps` by n, `attribution` of `summarize_attribution`; for `titles` see `statistics`."""
    with picture(path, 2, 4, (4.4, 3.6)) as (figure, axes):
        figure.suptitle(title, parse_math=False)
        lengths = list(by_length)
        _draw_correlation(axes[0, 0], lengths, by_length, head_size)
        for axis, name, label in ((axes[0, 1], "raw", "raw attention"),
                                  (axes[0, 2], "effective", "effective attention"),
                                  (axes[0, 3], "share", "magnitude of effective attention")):
            for kind in (kind for kind in KINDS if f"{name} {kind}" in by_length[lengths[0]]):
                axis.plot(lengths, [by_length[n][f"{name} {kind}"].mean() for n in lengths], "o-",
                          markersize=4, color=_COLORS[kind], label=titles[kind])
            axis.axvline(head_size, color="gray", linestyle=":")
            axis.set(title=label + ", by token", xlabel="tokens", xscale="log", ylim=(-0.02, 1))
            _plain_ticks(axis, lengths)
            axis.legend(fontsize=8)
        for name, values in identification.shares.items():
            axes[1, 0].plot(range(len(values)), values, "o-", markersize=4, label=name)
        axes[1, 0].set(title="tokens identified", xlabel="layer", ylim=(0, 1.02),
                       xticks=range(len(identification.across)))
        axes[1, 0].legend(fontsize=8, loc="lower left")
        across = identification.across
        layers = range(len(across))
        axes[1, 1].imshow(across, cmap="viridis", vmin=0, vmax=1, aspect="auto")
        axes[1, 1].set(title="identified by another layer's probe", xlabel="vectors of layer",
                       ylabel="probe of layer", xticks=layers, yticks=layers)
        if len(across) <= 8:
            for (row, column), value in np.ndenumerate(across):
                axes[1, 1].text(column, row, f"{value:.0%}", ha="center", va="center", fontsize=8,
                                color="black" if value > 0.6 else "white")
        layers = range(1, 1 + len(attribution["own"]))
        axes[1, 2].plot(layers, attribution["own"], "o-", label="contribution to itself")
        axes[1, 2].plot(layers, attribution["own_largest"], "o-",
                        label="tokens whose own is the largest")
        axes[1, 2].set(title="attribution to the own token", xlabel="layer", xticks=layers,
                       ylim=(0, 1.05))
        axes[1, 2].legend(fontsize=8, loc="lower left")
        _draw_distances(axes[1, 3], attribution["by_distance"])
        for axis in (*axes[0], axes[1, 0], *axes[1, 2:]):
            axis.grid(alpha=0.3)


def _draw_correlation(axis, lengths, by_length, head_size):
    layers = len(by_length[lengths[0]]["correlation"])
    for layer, color in enumerate(_ramp(layers)):
        for name, line, label in (("correlation", "o-", f"layer {layer + 1}"),
                                  ("sums_to_one correlation", "--", None)):
            axis.plot(lengths, [by_length[n][name][layer].mean() for n in lengths], line,
                      markersize=4, color=color, label=label)
    axis.plot([], [], "--", color="gray", label="rows sum to 1")
    axis.axvline(head_size, color="gray", linestyle=":", label=f"head size {head_size}")
    axis.set(title="correlation of raw and effective", xlabel="tokens", xscale="log",
             ylim=(min(0, axis.get_ylim()[0]), 1.02))
    _plain_ticks(axis, lengths)
    axis.legend(fontsize=7)


def _draw_distances(axis, by_distance):
    reach = by_distance.shape[1] // 2
    for layer, (values, color) in enumerate(zip(by_distance, _ramp(len(by_distance))), 1):
        others = np.where(np.arange(-reach, reach + 1) == 0, np.nan, values)
        axis.plot(range(-reach, reach + 1), others, "o-", markersize=3, color=color,
                  label=f"layer {layer}")
    axis.set(title="contribution of neighbours", xlabel="distance", ylim=(0, None),
             xticks=range(-reach, reach + 1, 5))
    axis.legend(fontsize=7)


def _ramp(count):
    from matplotlib import colormaps
    return [colormaps["viridis"](0.9 * i / max(count - 1, 1)) for i in range(count)]


def _plain_ticks(axis, values):
    axis.set_xticks(values, [str(value) for value in values], fontsize=7)
    axis.minorticks_off()


def draw_statistics(path: str, title: str, statistics: Mapping[str, np.ndarray],
                    uniform_entropy: float, titles: Mapping[str, str]) -> None:
    """Draws each head's attention by layer: a point a head, and a line through the layers' means.
    `statistics` are `Statistics.result`, `titles` `statistics.titles`; `uniform_entropy` is of a
    head that attends to all tokens alike."""
    groups = {name: keys for name, keys in {
        "attention to kinds of tokens": ("cls", "sep", "punctuation"),
        "attention to itself and its neighbours": ("self", "left", "right"),
        "entropy (nats)": ("entropy",)}.items() if not statistics.keys().isdisjoint(keys)}
    with picture(path, 1, len(groups), (4.8, 4)) as (figure, axes):
        figure.suptitle(title, parse_math=False)
        for axis, (name, group) in zip(axes.flat, groups.items()):
            for shift, (key, color) in enumerate(zip(group, _COLORS.values())):
                if key not in statistics:
                    continue
                values = statistics[key]
                layers = 1 + np.arange(len(values))
                axis.plot(np.repeat(layers, values.shape[1]) + 0.1 * (shift - len(group) // 2),
                          values.ravel(), ".", color=color, alpha=0.55)
                axis.plot(layers, values.mean(1), color=color, label=titles[key])
            axis.set(title=name, xlabel="layer", xticks=layers)
            axis.grid(alpha=0.3)
        axes[0, -1].axhline(uniform_entropy, color="gray", linestyle=":", label="uniform")
        for axis in axes.flat:
            axis.set_ylim(0, None)
            axis.legend(fontsize=8)


def draw_heads(path: str, title: str, attention: np.ndarray) -> None:
    """Draws the map of every head of a text, float [L, N, m, n]: a row a layer; rows attend to
    columns. A cell shows the root of its largest weight."""
    layers, heads = attention.shape[:2]
    side = max(1.1, 6 / heads)      # wide enough for the title
    with picture(path, layers, heads, (side, side + 0.05)) as (figure, axes):
        figure.suptitle(title, fontsize=10, parse_math=False)
        for (layer, head), axis in np.ndenumerate(axes):
            axis.imshow(patterns.picture(attention[layer, head], 64), cmap="Blues", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
            if not head:
                axis.set_ylabel(f"layer {layer + 1}", fontsize=8)
            if not layer:
                axis.set_title(f"head {head + 1}", fontsize=8)


def draw_plane(path: str, title: str, points: np.ndarray, statistics: Mapping[str, np.ndarray],
               titles: Mapping[str, str]) -> None:
    """Draws heads as points, float [L * N, 2], as far apart as their maps, coloured by
    `Statistics.result` as in the original; `titles` are `statistics.titles`."""
    layers, heads = statistics["entropy"].shape
    rules = (("entropy", 3.8, "broad", "#9498a0"), ("right", 0.5, "next", "#4269d0"),
             ("left", 0.5, "previous", "#3ca951"), ("sep", 0.6, titles["sep"], "#efb118"),
             ("punctuation", 0.6, ". ,", "#ff725c"), ("cls", 0.6, titles["cls"], "#a463f2"))
    kinds = np.full(layers * heads, -1)
    for number, (name, least, *_) in enumerate(rules):
        if name in statistics:
            kinds[statistics[name].ravel() > least] = number
    with picture(path, 1, 2, (5.6, 5)) as (figure, axes):
        figure.suptitle(title, parse_math=False)
        numbers = np.repeat(np.arange(layers), heads)
        for layer, color in enumerate(_ramp(layers)):
            axes[0, 0].scatter(*points[numbers == layer].T, color=color, s=26,
                               label=f"layer {layer + 1}")
        axes[0, 0].set_title("heads by layer")
        others = kinds < 0
        axes[0, 1].scatter(*points[others].T, color="#d5d8de", s=26, label="other")
        for number, (_, _, label, color) in enumerate(rules):
            if (kinds == number).any():
                axes[0, 1].scatter(*points[kinds == number].T, color=color, s=26, label=label)
        axes[0, 1].set_title("heads by where they look")
        for axis in axes.flat:
            axis.set(xticks=[], yticks=[])
            axis.legend(fontsize=8)
