"""How trials went: which is the best, and what they say together.

A result is a dict: `metrics` by name, whether it is `degenerate`, the `seconds` that it took.
"""

import math
import statistics

from bert_tf.training.reporting import duration


def rank(result, headline):
    """By which results are sorted, the best last; those that are degenerate come first."""
    value = result["metrics"].get(headline, -math.inf)
    return (not result["degenerate"], value)


def summarize(results, headline):
    """Mean, deviation (of a sample) and best of a dict of results by the trial's name."""
    metrics = {}
    for name in next(iter(results.values()))["metrics"]:
        values = [result["metrics"][name] for result in results.values()]
        metrics[name] = {"mean": statistics.fmean(values),
                         "stdev": statistics.stdev(values) if len(values) > 1 else 0.0,
                         "best": (max if "loss" not in name else min)(values)}
    return {"headline": headline,
            "best": max(results, key=lambda name: rank(results[name], headline)),
            "degenerate": [name for name, result in results.items() if result["degenerate"]],
            "metrics": metrics, "trials": results}


def describe_one(result, headline):
    """The line in which a result is told."""
    value = result["metrics"].get(headline)
    said = "trained" if value is None else f"{headline} {value:.4f}"
    mark = "  DEGENERATE: it gives all examples one answer" if result["degenerate"] else ""
    return f"{said}, in {duration(result['seconds'])}{mark}"


def describe(summary):
    """The sentences in which a summary is told."""
    lines = [f"{name}: mean {m['mean']:.4f}, standard deviation {m['stdev']:.4f}, best "
             f"{m['best']:.4f}" for name, m in summary["metrics"].items()]
    if summary["degenerate"]:
        lines.append(f"DEGENERATE, of one answer to all: {', '.join(summary['degenerate'])}")
    return "\n".join([*lines, f"best trial: {summary['best']}"])
