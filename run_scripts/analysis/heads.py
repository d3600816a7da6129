"""Shows each head's effect: the score of a fine-tuned model without it.

    bert-analyze heads --model_dir=mrpc --task=mrpc --data_dir=glue/MRPC --output_dir=heads

A head that is switched off attends to all tokens equally (Kovaleva et al., arXiv:1908.08593), or
outputs 0 (Michel et al., arXiv:1905.10650). Each head is tried alone, then each layer as a whole.
--reverse_head_mask also tries each layer with only its best head on --choose_split. Each difference
has a p-value. A head that layers share, as in ALBERT, is switched off in all of them. T5 has three
kinds of attention: in the encoder, from the decoder to the encoder ("cross"), and in the decoder.
For T5, --task is a task of bert-finetune. Of other models the command also shows the
entropy of each head's attention, as transformers' run_bertology.py does. Writes heads.json and
heads.png. scores.json keeps each score; run the same command again to resume.
"""

import dataclasses
import json
import os
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from bert_tf import analysis, compression, flags
from bert_tf.config import T5Config
from bert_tf.errors import InputError, counted
from bert_tf.files import make_folder, normal_path, write_json
from bert_tf.flags import REQUIRED, only, option
from bert_tf.networks import attentions
from bert_tf.opening import open_model
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.reporting import TimeLeft
from run_scripts.analysis.model import SHOWN
from run_scripts.finetuning.scoring import kept_scores, open_scored

_RARE = 0.01    # probabilities below this are called significant, as in the paper
_CHOSEN_ON = 200        # examples


@dataclasses.dataclass
class HeadsFlags:
    """The model, and how heads are switched off."""

    model_dir: str = option(REQUIRED, "The --output_dir of a fine-tuning command.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    split: str = option(
        "", "The split to score on (default: the first labelled split other than train).")
    examples: int = option(0, "Number of examples of the split, from its start; 0: all.", least=0)
    form: str = option("uniform", "What a head does when it is off. uniform: it attends to all "
                       "tokens equally. zero: its output is 0.", choices=("uniform", "zero"))
    reverse_head_mask: bool = option(False, "Also score each layer with only one of its heads.")
    choose_split: str = only("reverse_head_mask")(
        "train", "The split whose first 200 examples choose the best head of a layer.")
    batch_size: int = option(32, "Examples per batch.", least=1)

    __post_init__ = flags.check


class Scorer:
    """Scores a `ScoredModel`, or one for texts, with parts switched off on the examples of a split;
    `whole` is the score of the whole model, times 100."""

    def __init__(self, task_flags: TaskFlags, job: HeadsFlags):
        SavedTask.require(job.model_dir, "model_dir")
        config: Any = open_model(job.model_dir).config      # before records are made
        if not isinstance(config, SHOWN) or config.pruned_heads or config.shares_values:
            raise InputError(f"--model_dir: {job.model_dir}, of the type {config.model_type}, is "
                             "not an encoder like BERT's, ModernBERT, EuroBERT, XLNet or T5 with "
                             "all its heads, and values of each; name another model.")
        if job.form == "uniform" and analysis.looks_at_distances(config):
            raise InputError(f"--model_dir: the heads of {job.model_dir} also look at distances, "
                             "which no query changes; give --form=zero.")
        if job.form == "uniform" and config.learned_heads < config.num_attention_heads:
            raise InputError(f"--model_dir: some heads of {job.model_dir} look at fixed places, "
                             "which no query changes; give --form=zero.")
        splits = {f"--split={job.split}": job.split}
        if job.reverse_head_mask:
            splits[f"--choose_split={job.choose_split}"] = job.choose_split
        self.model: Any = open_scored(job.model_dir, task_flags, job.output_dir, job.batch_size,
                                      splits)
        self.name = os.path.basename(normal_path(job.model_dir))
        self.encoder, self._form = self.model.learner.encoder, job.form
        self.split = self.model.split(job.split, job.examples)
        self._kept = kept_scores(job.output_dir, job.model_dir, self.split, form=job.form)
        self.progress: Any = None       # called after each score
        self.chosen_on: Any = None      # opened before scores take their time
        if job.reverse_head_mask:
            self.chosen_on = self.model.split(job.choose_split, _CHOSEN_ON)
        self._answers = self.split.answer()
        self.whole = self.split.score(self._answers)

    def without(self, layers: Collection[int], heads: Collection[int], split: Any = None
                ) -> tuple[float, float]:
        """Returns the score without some heads of each of some layers, and the probability of the
        difference: 1 where answers are not compared, as on another split."""
        off = sorted((layer, head) for layer in layers for head in heads)

        def measure():
            with analysis.disabled(self.encoder, off, self._form):
                answers = (split or self.split).answer()
            if split:
                return {"score": split.score(answers), "p": 1.0}
            chance = self.split.chance(self._answers, answers)
            return {"score": self.split.score(answers), "p": 1.0 if chance is None else chance}

        key = " ".join(f"{layer + 1}:{head + 1}" for layer, head in off)
        if split:       # another file may have as many examples
            key = f"{split.name} {json.dumps(split.identity())} {key}"
        result = self._kept.get("scores", key, measure=measure)
        self.progress()
        return result["score"], result["p"]


def try_all(scorer: Scorer) -> dict[str, np.ndarray]:
    """Returns scores and probabilities [R, N] without each head, and [R] without all heads of a
    row. R is L, or fewer where layers share their heads."""
    encoder, rows = scorer.encoder, analysis.sharing(scorer.encoder)
    count = encoder.config.num_attention_heads
    scorer.progress = TimeLeft("scores", len(rows) * (count + 1))
    scores = {"without_head": np.zeros((2, len(rows), count)),
              "without_layer": np.zeros((2, len(rows)))}
    print(f"{scorer.model.metric} on {counted(scorer.split.size, 'example')}: {scorer.whole:.2f}; "
          "without a head, the difference (last column: without the layer's)\n     layer"
          + "".join(f"{head + 1:>7}" for head in range(count)) + "      all", flush=True)
    for row, group in enumerate(rows):
        scores["without_head"][:, row] = np.transpose([scorer.without(group, [head])
                                                       for head in range(count)])
        scores["without_layer"][:, row] = scorer.without(group, range(count))
        print(f"{name_of_row(scorer.encoder, group):>10}" + "".join(
            f"{each - scorer.whole:>+7.2f}" for each in scores["without_head"][0, row])
            + f"{scores['without_layer'][0, row] - scorer.whole:>+9.2f}", flush=True)
    return scores


def try_alone(scorer: Scorer) -> list[dict]:
    """Returns, for each row of layers that share heads, the head that is best alone on
    --choose_split, and the score with it alone."""
    chosen_on = scorer.chosen_on
    count, rows = scorer.encoder.config.num_attention_heads, []
    sharing = analysis.sharing(scorer.encoder)
    scorer.progress = TimeLeft("scores", len(sharing) * (count + 1))
    others = [[other for other in range(count) if other != head] for head in range(count)]
    print(f"each layer with only one head, the best on "
          f"{counted(chosen_on.size, 'example')} of {chosen_on.name}", flush=True)
    for group in sharing:
        scores = [scorer.without(group, heads, chosen_on)[0] for heads in others]
        best, name = int(np.argmax(scores)), name_of_row(scorer.encoder, group)
        alone, chance = scorer.without(group, others[best])
        print(f"{name:>10}  head {best + 1:>2}  {alone - scorer.whole:+.2f}  p {chance:.3f}",
              flush=True)
        rows.append({"layer": name, "head": best + 1, "score": alone, "p": chance,
                     "scores_to_choose": scores})
    return rows


def name_of_row(network: Any, group: Sequence[int]) -> str:
    """Returns a layer's name, or the first and the last of layers that share heads."""
    names = list(attentions(network))
    return "-".join(names[layer] for layer in dict.fromkeys((group[0], group[-1])))


def draw(path: str, title: str, rows: Sequence[str], whole: float, heads: np.ndarray,
         layers: Sequence[float]) -> None:
    """Draws the differences as a table of colours, and a histogram of the heads' scores. The table
    has a row for each of `rows`, with the whole row's result at the right."""
    from bert_tf.analysis.pictures import picture
    differences = np.concatenate([heads, np.reshape(layers, (-1, 1))], 1) - whole
    most = max(np.abs(differences[:, :-1]).max(), 0.1)
    size = (max(1.2 + 0.6 * differences.shape[1], 7), max(1.2 + 0.45 * len(heads), 2.4))
    with picture(path, 2, 1, size) as (_, axes):
        axis = axes[0, 0]
        axis.imshow(differences, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
        for (row, column), value in np.ndenumerate(differences):
            axis.text(column, row, f"{value:+.1f}", ha="center", va="center", fontsize=8,
                      color="white" if abs(value) > 0.6 * most else "black")
        names = [*range(1, heads.shape[1] + 1), "all"]
        axis.set(title=title, xlabel="head", ylabel="layer", xticks=range(len(names)),
                 xticklabels=names, yticks=range(len(heads)), yticklabels=rows)
        axes[1, 0].hist(heads.ravel(), bins=30, color="#4269d0")
        axes[1, 0].axvline(whole, color="gray", linestyle=":")
        axes[1, 0].set(xlabel="score without one head", ylabel="heads")


def main(task_flags: TaskFlags, job: HeadsFlags) -> None:
    make_folder(job.output_dir, "output_dir")
    scorer = Scorer(task_flags, job)
    flags.keep(job, job.output_dir, trains=False)
    scores = try_all(scorer)
    (heads, chances), whole = scores["without_head"], scorer.whole
    entropies = {}
    if not isinstance(scorer.encoder.config, T5Config):
        by_layer = compression.attention_entropy(scorer.model.learner,
                                                 scorer.split.batches(job.batch_size))
        print("entropy of each head's attention in nats, mean over tokens")
        for name, values in zip(attentions(scorer.encoder), by_layer):
            print(f"{name:>10}" + "".join(f"{each:>7.2f}" for each in values))
        entropies = {"attention_entropy": [values.tolist() for values in by_layer]}
    rows = [name_of_row(scorer.encoder, group) for group in analysis.sharing(scorer.encoder)]
    best, worst = (np.unravel_index(index, heads.shape)
                   for index in (heads.argmax(), heads.argmin()))
    if heads[best] > heads[worst]:
        print(f"best without layer {rows[best[0]]} head {best[1] + 1}: "
              f"{heads[best] - whole:+.2f}; worst without layer {rows[worst[0]]} head "
              f"{worst[1] + 1}: {heads[worst] - whole:+.2f}; "
              f"{(heads >= whole).mean():.0%} of the heads cost nothing")
    else:
        print(f"the score without any one head is the same: {heads[best] - whole:+.2f}")
    print(f"significant at p < {_RARE} (layer:head): " + (", ".join(
        f"{rows[row]}:{head + 1} {heads[row, head] - whole:+.2f} (p {chances[row, head]:.3f})"
        for row, head in np.argwhere(chances < _RARE)) or "none"))
    described = {
        "metric": scorer.model.metric, "examples": scorer.split.size, "form": job.form,
        "score": whole, "layers": rows, "without_head": heads.tolist(),
        "p_without_head": chances.tolist(), "without_layer": scores["without_layer"][0].tolist(),
        "p_without_layer": scores["without_layer"][1].tolist(), **entropies}
    if job.reverse_head_mask:
        described["one_head_alone"] = try_alone(scorer)
    write_json(os.path.join(job.output_dir, "heads.json"), described)
    draw(os.path.join(job.output_dir, "heads.png"),
         f"{scorer.name}: {scorer.model.metric} {whole:.1f} on {scorer.split.size:,} examples, "
         "change without a head", rows, whole, heads, scores["without_layer"][0])
