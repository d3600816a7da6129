"""Shows how many attention heads a fine-tuned model needs, and removes the others.

    bert-prune --model_dir=mrpc --task=mrpc --data_dir=glue/MRPC --output_dir=pruned \\
        --orders=importance,oracle,random
    bert-prune --model_dir=mrpc --task=mrpc --data_dir=glue/MRPC --output_dir=half \\
        --prune_percent=50 --actually_prune

Heads are switched off step by step, and the model is scored after each, without any training
(Michel, Levy, Neubig, arXiv:1905.10650). --parts takes units of the feed-forward networks or whole
layers instead. Each score has a p-value of the difference. The command writes prune.json, the curve
prune.png, and each score into scores.json. Run the same command again to resume.

--actually_prune removes the parts that the last step switches off, and writes the smaller model
into the folder "model" of --output_dir. Every command that takes a fine-tuned model takes this
model too. Its outputs and speed are compared with the model whose parts are only switched off.
"""

import dataclasses
import os
from collections.abc import Iterator

from bert_tf import flags
from bert_tf.errors import InputError, counted
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, only, option, without
from bert_tf.tasks.task_flags import TaskFlags
from run_scripts.finetuning.pruning import BY_IMPORTANCE, ORDERS, PARTS, Curve, write_smaller

_by_importance = only("orders", *BY_IMPORTANCE)


@dataclasses.dataclass
class PruneFlags:
    """Model, and the parts to remove, in their order."""

    model_dir: str = option(REQUIRED, "The --output_dir of a fine-tuning command.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    parts: str = option(
        "heads", "What is removed: attention heads, units of feed-forward networks, or layers.",
        choices=PARTS)
    orders: list[str] = without("prune_heads")(
        [], "Orders of removal. importance, the default: the parts on which the loss depends least "
        "come first. oracle: the parts whose removal costs the least score come first. random: in "
        "random order. reverse: the most important parts come first. encoder, cross, decoder: only "
        "T5's heads of this kind, by importance. For layers, only oracle, which is their default.")
    importance: str = _by_importance(
        "paper", "How importance is computed. paper: the mean over examples of |d loss / d factor "
        "of a head|. code: as in the paper's code, with a factor for each token. bertology: as in "
        "transformers' run_bertology.py, which sums gradients over batches.",
        choices=("paper", "code", "bertology"))
    normalize_pruning_by_layer: bool = _by_importance(
        False, "Scale the importance of each layer to the length 1.")
    exact_pruning: bool = _by_importance(False, "Compute the importance again before each step.")
    at_least_x_heads_per_layer: int = only("parts", "heads")(
        0, "Number of heads to keep in each layer; the most important heads stay.", least=0)
    prune_percent: list[str] = without("prune_heads")(
        [str(share) for share in range(10, 101, 10)], "Percentages of the parts to switch off, one "
        "for each step.", items=float, least=0, most=100)
    prune_heads: list[str] = only("parts", "heads")(
        [], "Switch off these heads, instead of --orders: layer:head, both from 1. Or dead: the "
        "heads with closed gates, whose output is 0 (bert-finetune --concrete_coef).")
    actually_prune: bool = option(False, "Write a smaller model, without the parts that the last "
                                         "step of the last order switches off.")
    split: str = option(
        "", "The split to score on (default: the first labelled split other than train).")
    examples: int = option(0, "Number of examples of the split, from its start; 0: all.", least=0)
    importance_examples: int = _by_importance(
        0, "Compute importance on this many examples from the start of the training "
        "file; 0: all.", least=0)
    batch_size: int = option(32, "Examples per batch.", least=1)
    seed: int = only("orders", "random")(0, "Seed of --orders=random.", least=0)

    def __post_init__(self):
        self.orders = self.orders or _defaults(vars(self))[1]["orders"]
        flags.check(self)
        if self.prune_heads and self.at_least_x_heads_per_layer:
            raise InputError("--at_least_x_heads_per_layer is for --orders; --prune_heads switches "
                             "off the heads that it names, so leave one of the two flags out.")
        known = ("oracle",) if self.parts == "layers" else ORDERS
        for order in self.orders:
            if order not in known:
                raise InputError(f"--orders={order}: choose from {', '.join(known)}.")
        if not self.prune_percent:
            raise InputError("--prune_percent must be given: numbers from 0 to 100.")

    @property
    def percents(self) -> list[float]:
        """The steps."""
        return sorted(map(float, self.prune_percent))


def show(curve: Curve, order: str) -> Iterator[dict]:
    """Yields the points of an order, and prints them."""
    print("heads of --prune_heads:" if order == "given" else f"by {order}:", flush=True)
    total, shown = curve.total_of(order), None
    for point in curve.points(order):
        if point["off"] != shown:       # of few parts, several steps switch off as many
            share = 100 * point["off"] / total
            chance = "-" if point["p"] is None else f"{point['p']:.3f}"
            print(f"  {point['off']:>6,} of {total:,} off ({share:3.0f} %): {point['score']:6.2f} "
                  f"({point['score'] - curve.whole:+.2f}, p {chance})", flush=True)
        shown = point["off"]
        yield point


def draw(path: str, curve: Curve, lines: dict[str, list[dict]]) -> None:
    """Draws the score by the share of parts that are off, a line for each order."""
    from bert_tf.analysis.pictures import picture
    with picture(path, 1, 1, (6.4, 4.2)) as (_, axes):
        axis = axes[0, 0]
        for order, points in lines.items():
            total = curve.total_of(order)
            shares = [0.0, *(100 * point["off"] / total for point in points)]
            axis.plot(shares, [curve.whole, *(point["score"] for point in points)], "o-",
                      markersize=4, label=order)
        axis.axhline(curve.whole, color="gray", linestyle=":")
        axis.set(title=f"{curve.name}: {curve.whole:.1f} with all {curve.job.parts}",
                 xlabel=f"{curve.job.parts} off, per cent", ylabel=curve.metric)
        axis.legend(fontsize=8)


def main(task_flags: TaskFlags, job: PruneFlags) -> None:
    """Runs the command."""
    make_folder(job.output_dir, "output_dir")
    curve = Curve(job, task_flags)
    flags.keep(job, job.output_dir, trains=False)       # not if the model is refused
    print(f"{curve.metric} on {counted(curve.examples, 'example')}: {curve.whole:.2f}", flush=True)
    lines = {order: list(show(curve, order))
             for order in (["given"] if job.prune_heads else job.orders)}
    curve.save(lines)
    if any(lines.values()):
        draw(os.path.join(job.output_dir, "prune.png"), curve, lines)
    if job.actually_prune:
        write_smaller(curve, lines, task_flags)


def _defaults(typed):
    if typed.get("prune_heads"):
        return "--parts", {"orders": []}
    return "--parts", {"orders": ["oracle"] if typed.get("parts") == "layers" else [ORDERS[0]]}


def run() -> None:
    flags.run(main, TaskFlags, PruneFlags, defaults=_defaults)


if __name__ == "__main__":
    run()
