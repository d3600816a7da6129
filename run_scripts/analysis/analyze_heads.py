"""Shows what each attention head is for: the score of a fine-tuned model without it.

    bert-analyze-heads --model_dir=mrpc --task=mrpc --data_dir=glue/MRPC --output_dir=heads

A head is switched off in one of two ways: it looks at all tokens alike (Kovaleva et al.,
arXiv:1908.08593), or gives nothing (Michel et al., arXiv:1905.10650). Each head is tried alone,
then each layer as a whole. A head that layers share, as ALBERT's do, is off in all of them. Writes
heads.json and heads.png.
"""

import dataclasses
import os
from collections.abc import Sequence

import numpy as np

from bert_tf import analysis, flags, metrics
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.heads import HEADS
from bert_tf.tasks import named
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.task import SavedTask
from bert_tf.tokenization import open_tokenizer
from run_scripts.analysis.model import Progress, check_least

_KINDS = {"classification": "label", "regression": "value", "multiple_choice": "choice"}


@dataclasses.dataclass
class HeadsFlags:
    """The model, the task, and how heads are switched off."""

    model_dir: str = option(REQUIRED, "The --output_dir of run_classifier or run_multiple_choice.")
    task: str = option(REQUIRED, "The task's name, as --task of those commands has it.")
    data_dir: str = option(REQUIRED, "Folder of the task's files.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    split: str = option("dev", "The split to score on.")
    examples: int = option(0, "How many examples, the first of the split; 0: all.")
    form: str = option("uniform", "uniform: the head looks at all tokens alike; zero: it gives "
                       "nothing.", choices=("uniform", "zero"))
    batch_size: int = option(32, "Examples that the model reads at a time.")

    def __post_init__(self):
        check_least(self, examples=0, batch_size=1)


class Scorer:
    """Scores a model on the examples of a split, as it is at the time.

    Attributes:
        encoder: the model's.
        metric: name of the metric, the task's headline.
    """

    def __init__(self, job: HeadsFlags):
        import bert_tf
        saved = SavedTask.read(job.model_dir)
        if not saved:
            raise InputError(f"--model_dir: there is no task.json in {job.model_dir}; name the "
                             "--output_dir of a model that was fine-tuned.")
        self._task = task = saved.task
        if task.kind.name not in _KINDS:
            raise InputError(f"--model_dir: a model of the kind {task.kind} can't be taken, only "
                             f"one of {', '.join(_KINDS)}.")
        known = named.find_task(job.task)
        if known.kind.name != task.kind.name:
            raise InputError(f"--task={job.task} is of the kind {known.kind.name}, but the model "
                             f"was trained for {task.kind.name}; give the task it was trained for.")
        known = dataclasses.replace(known, labels=task.labels)
        self.metric = task.headline
        path = known.path(job.data_dir, job.split)
        self._examples = list(read_examples(known, job.split, path))[:job.examples or None]
        head, options = task.kind.head(task, saved.options)
        learner = getattr(bert_tf, HEADS[head].objective).from_pretrained(job.model_dir, **options)
        self.encoder = learner.encoder
        config = self.encoder.config
        if job.form == "uniform" and config.learned_heads < config.num_attention_heads:
            raise InputError(f"--model_dir: some heads of {job.model_dir} look at fixed places, "
                             "whatever their queries are; give --form=zero.")
        self._predictor = bert_tf.Predictor.from_learner(
            learner, open_tokenizer(job.model_dir, saved.do_lower_case), saved, job.batch_size)

    def __call__(self) -> float:
        """The score, times 100."""
        name = _KINDS[self._task.kind.name]
        answers = [answer[name] for answer in self._predictor(
            [tuple(example.texts) for example in self._examples])]
        if name == "label":
            answers = [self._task.labels.index(answer) for answer in answers]
        labels = self._task.kind.targets(self._task, self._examples)
        return 100 * metrics.compute([self.metric], labels, np.array(answers))[self.metric]

    @property
    def examples(self) -> int:
        """How many there are."""
        return len(self._examples)


def try_all(scorer: Scorer, form: str) -> tuple[float, np.ndarray, np.ndarray]:
    """The score of the whole model, [R, N] without each head, and [R] without all heads of a row:
    R is L, or fewer where layers share their heads."""
    encoder, rows = scorer.encoder, analysis.sharing(scorer.encoder)
    count = encoder.config.num_attention_heads
    progress = Progress("scores", len(rows) * (count + 1) + 1)
    whole = scorer()
    progress()
    heads, layers = np.zeros((len(rows), count)), np.zeros(len(rows))

    def score(group, off):
        with analysis.disabled(encoder, [(layer, head) for layer in group for head in off], form):
            found = scorer()
        progress()
        return found

    print(f"{scorer.metric} on {scorer.examples:,} examples: {whole:.2f}; without a head, the "
          "difference (last column: without the layer's)\n   layer"
          + "".join(f"{head + 1:>7}" for head in range(count)) + "      all", flush=True)
    for row, group in enumerate(rows):
        heads[row] = [score(group, [head]) for head in range(count)]
        layers[row] = score(group, range(count))
        print(f"{name_of_row(group):>8}" + "".join(f"{each - whole:>+7.2f}" for each in heads[row])
              + f"{layers[row] - whole:>+9.2f}", flush=True)
    return whole, heads, layers


def name_of_row(group: Sequence[int]) -> str:
    """The number of a layer, or of the first and last that share their heads."""
    return "-".join(str(layer + 1) for layer in dict.fromkeys((group[0], group[-1])))


def draw(path: str, title: str, rows: Sequence[str], whole: float, heads: np.ndarray,
         layers: Sequence[float]) -> None:
    """Draws the differences as a table of colours, a row for each of the names `rows`; without all
    heads of a row at the right."""
    from bert_tf.analysis.pictures import picture
    differences = np.concatenate([heads, np.reshape(layers, (-1, 1))], 1) - whole
    most = max(np.abs(differences[:, :-1]).max(), 0.1)
    size = (max(1.2 + 0.6 * differences.shape[1], 7), 1.2 + 0.45 * len(heads))
    with picture(path, 1, 1, size) as (_, axes):
        axis = axes[0, 0]
        axis.imshow(differences, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
        for (row, column), value in np.ndenumerate(differences):
            axis.text(column, row, f"{value:+.1f}", ha="center", va="center", fontsize=8,
                      color="white" if abs(value) > 0.6 * most else "black")
        names = [*range(1, heads.shape[1] + 1), "all"]
        axis.set(title=title, xlabel="head", ylabel="layer", xticks=range(len(names)),
                 xticklabels=names, yticks=range(len(heads)),
                 yticklabels=rows)


def main(job: HeadsFlags) -> None:
    """Runs the command."""
    make_folder(job.output_dir, "output_dir")
    scorer = Scorer(job)
    whole, heads, layers = try_all(scorer, job.form)
    rows = [name_of_row(group) for group in analysis.sharing(scorer.encoder)]
    best, worst = (np.unravel_index(index, heads.shape)
                   for index in (heads.argmax(), heads.argmin()))
    print(f"most gained without layer {rows[best[0]]} head {best[1] + 1}: "
          f"{heads[best] - whole:+.2f}; most lost without layer {rows[worst[0]]} head "
          f"{worst[1] + 1}: {heads[worst] - whole:+.2f}; "
          f"{(heads >= whole).mean():.0%} of the heads cost nothing")
    write_json(os.path.join(job.output_dir, "heads.json"), {
        "metric": scorer.metric, "examples": scorer.examples, "form": job.form, "score": whole,
        "layers": rows, "without_head": heads.tolist(), "without_layer": layers.tolist()})
    draw(os.path.join(job.output_dir, "heads.png"),
         f"{job.task}: {scorer.metric} {whole:.1f} on {scorer.examples:,} examples, change without "
         "a head", rows, whole, heads, layers)


def run() -> None:
    """The console entry point."""
    flags.run(main, HeadsFlags)


if __name__ == "__main__":
    run()
