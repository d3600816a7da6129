"""Scores of a fine-tuned model without some of its parts, and the smaller model that is left."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert_tf import analysis, compression, flags, training
from bert_tf.config import EncoderConfig, EuroBertConfig, ModernBertConfig, T5Config
from bert_tf.errors import InputError
from bert_tf.files import make_folder, normal_path, write_json
from bert_tf.finetuning.model import parse_heads
from bert_tf.model_card import write_card
from bert_tf.networks import attentions
from bert_tf.opening import open_model
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import open_tokenizer
from bert_tf.training.reporting import TimeLeft
from run_scripts.finetuning.scoring import ScoredModel, kept_scores, open_scored, weights_bytes

PARTS = ("heads", "units", "layers")
# The last three are by importance too, of T5's heads of one kind alone.
KINDS = ("encoder", "cross", "decoder")
ORDERS = ("importance", "oracle", "random", "reverse", *KINDS)
BY_IMPORTANCE = ("importance", "reverse", *KINDS)
_FILE = "prune.json"
# Batches of the importance: as in the paper's code.
_BATCH = 32


class Curve:
    """Scores of a model with more and more parts switched off.

    A part is a pair: (layer, head or unit), from 0; of a layer (layer, 0). Heads are numbered by
    the layers of `networks.attentions`. Every score is kept. `whole` is the score of the whole
    model, times 100, and `total` the number of parts."""

    def __init__(self, job: Any, task_flags: TaskFlags) -> None:
        self.job = job
        SavedTask.require(job.model_dir, "model_dir")
        self.config = open_model(job.model_dir).config      # before records are made
        is_t5 = isinstance(self.config, T5Config)
        if not is_t5 and (kinds := sorted({*KINDS}.intersection(job.orders))):
            raise InputError(f"--orders={kinds[0]} is for T5, which has three kinds of attention; "
                             "leave the flag out.")
        if self.config.shares_layers or self.config.shares_values or not isinstance(
                self.config, (EncoderConfig, EuroBertConfig, ModernBertConfig, T5Config)):
            raise InputError(f"--model_dir: {job.model_dir} has the type {self.config.model_type}, "
                             "whose parts can't be removed; name a BERT whose layers and heads "
                             "share no weights.")
        if type(self.config) is not EncoderConfig and (
                job.parts != "heads" or job.actually_prune or job.prune_heads):
            raise InputError(f"in a network of the type {self.config.model_type}, heads can only "
                             "be switched off (--orders), not removed; leave out --parts, "
                             "--actually_prune and --prune_heads.")
        removes = job.actually_prune or job.parts == "layers"
        orders = {*BY_IMPORTANCE}.intersection(() if job.prune_heads else job.orders)
        if self.config.quantisation and (removes or orders):
            raise InputError(f"--model_dir: {job.model_dir} is quantised, so its parts can't be "
                             "removed or ordered by importance; prune the model before "
                             "quantisation, or give only --orders=oracle or random.")
        self._named: list = []
        if job.prune_heads not in ([], ["dead"]):
            self._named = parse_heads(job.prune_heads, self.config, "prune_heads")
        self.model: Any = open_scored(
            job.model_dir, task_flags, job.output_dir, job.batch_size,
            {f"--split={job.split}": job.split,
             **{f"--orders={order}": "train" for order in sorted(orders)}})
        self._names = list(attentions(self.model.learner.encoder))
        if is_t5:
            self._check_texts()
        self.total = sum(map(len, self._every()))
        if job.actually_prune:
            _check_removes(self)
        self.split = self.model.split(job.split, job.examples)
        self.metric, self.examples = self.model.metric, self.split.size
        self.name = os.path.basename(normal_path(job.model_dir))
        self._kept = kept_scores(job.output_dir, job.model_dir, self.split, parts=job.parts)
        self._answer_of_all = self.split.answer()
        self.whole = self.split.score(self._answer_of_all)
        self._of_whole: list = []       # the importance of all parts while none is off

    def _check_texts(self):
        if self.job.importance != "paper":
            raise InputError(f"--importance={self.job.importance} is for models with one sequence "
                             "of tokens, and T5 has two; leave the flag out.")
        for kind in {*KINDS}.intersection(self.job.orders):
            if not any(name.startswith(kind) for name in self._names):
                raise InputError(f"--orders={kind}: --model_dir={self.job.model_dir} is a "
                                 f"{self.config.architecture}, which has no such attention; leave "
                                 "the flag out.")

    def given(self) -> list[tuple[int, int]]:
        """The heads of --prune_heads."""
        return self._named or compression.dead_heads(self.model.learner.encoder)

    @property
    def _least(self):
        """The parts that stay in each layer."""
        return {"heads": self.job.at_least_x_heads_per_layer, "units": 1, "layers": 0}[
            self.job.parts]

    def counts(self, order: str) -> list[int]:
        """The number of parts that are off after each step."""
        counts = compression.steps_of(self.job.percents, self._sizes(order), self._least)
        if self.job.parts == "layers":
            counts = [count for count in dict.fromkeys(counts) if 0 < count < self.total]
        return counts

    def _every(self) -> list[list[int]]:
        layers = range(self.config.depth)
        if self.job.parts == "layers":
            return [[0] for _ in layers]
        if self.job.parts == "units":
            return [list(range(self.config.feed_forward_size(layer))) for layer in layers]
        if isinstance(self.config, T5Config):
            return [list(range(self.config.num_heads)) for _ in self._names]
        return [self.config.kept_heads(layer) for layer in layers]

    def total_of(self, order: str) -> int:
        return sum(self._sizes(order))

    def _sizes(self, order):
        every = self._every()
        if order in KINDS:
            return [len(parts) for parts, name in zip(every, self._names) if name.startswith(order)]
        return list(map(len, every))

    def save(self, lines: dict[str, list[dict]], **more: Any) -> None:
        write_json(os.path.join(self.job.output_dir, _FILE), {
            "metric": self.metric, "score": self.whole, "examples": self.examples,
            "total": self.total, "curves": lines, **more})

    def options(self, off: Sequence[tuple[int, int]]) -> dict[str, list]:
        """`off` as an argument of `compression.cut`."""
        layers = self.job.parts == "layers"
        return {self.job.parts: [layer for layer, _ in off] if layers else list(off)}

    def measure(self, off: Sequence[tuple[int, int]]) -> dict:
        """The score without some parts, and the probability that the difference is chance."""
        def measure():
            if self.job.parts == "layers":
                left = compression.cut(self.model.learner, **self.options(off))
                answers = self.split.answer(self.model.trainer_of(left))
            else:
                with analysis.disabled(self.model.learner.encoder, **self.switched(off)):
                    answers = self.split.answer()
            return {"score": self.split.score(answers),
                    "p": self.split.chance(self._answer_of_all, answers)}

        key = " ".join(f"{layer + 1}:{part + 1}" for layer, part in sorted(off))
        if len(key) > 1000:     # units are too many to be written down
            key = hashlib.sha256(key.encode()).hexdigest()
        return self._kept.get("scores", key, measure=measure)

    def switched(self, off):
        """`off` as arguments of `analysis.disabled`."""
        return {"heads": off, "form": "zero"} if self.job.parts == "heads" else {"units": off}

    def _importance(self, off):
        if not off and self._of_whole:
            return self._of_whole
        if not hasattr(self, "_train"):
            self._train = self.model.split("train", self.job.importance_examples)
        encoder = self.model.learner.encoder
        with analysis.disabled(encoder, **self.switched(off)):
            scores = compression.importance(self.model.learner, self._train.batches(_BATCH),
                                            self.job.parts[:-1], self.job.importance)
        if self.job.normalize_pruning_by_layer:
            scores = compression.normalised(scores)
        if not off:
            self._of_whole = scores
        return scores

    def _scores(self, order, off):
        every = self._every()
        if order == "random":
            rng = np.random.default_rng(self.job.seed)
            return [rng.random(len(parts)) for parts in every]
        if order == "oracle":
            progress = TimeLeft("scores", self.total)
            return [self.whole - np.array([self.measure([(layer, part)])["score"]
                                           for part in progress.over(parts)])
                    for layer, parts in enumerate(every)]
        scores = self._importance(off)
        return [-of_layer for of_layer in scores] if order == "reverse" else scores

    def points(self, order: str) -> Iterator[dict]:
        """Yields {"off", "parts", "score", "p"} of each step of an order."""
        if order == "given":
            self.last = off = self.given()
            yield {"off": len(off), "parts": off, **self.measure(off)}
            return
        every, job = self._every(), self.job
        # Heads of other kinds are out of the question.
        others = [(layer, place) for layer, parts in enumerate(every) for place in range(len(parts))
                  if order in KINDS and not self._names[layer].startswith(order)]
        scores, off = None, []
        for count in self.counts(order):
            if scores is None or (job.exact_pruning and order in BY_IMPORTANCE):
                scores = self._scores(order, off)
            gone = [(layer, every[layer].index(part)) for layer, part in off]
            ranked = compression.order_of(scores, [*gone, *others], self._least)
            off = off + [(layer, every[layer][place])
                         for layer, place in ranked[:max(count - len(off), 0)]]
            self.last = off
            yield {"off": len(off), "parts": off if job.parts != "units" else [],
                   **self.measure(off)}


def _check_removes(curve):
    """Raises InputError if no part will be off, before the model is scored."""
    job = curve.job
    if job.prune_heads:     # dead
        off, advice = curve.given(), (
            "no gate of the model is closed; fine-tune it longer, or with a larger "
            "--concrete_coef or --concrete_learning_rate")
    else:
        off, advice = curve.counts(job.orders[-1])[-1:], "give a larger --prune_percent"
    if not any(off):
        raise InputError("--actually_prune: nothing is switched off, so nothing can be removed; "
                         f"{advice}.")


def write_smaller(curve: Curve, lines: dict[str, list[dict]], task_flags: TaskFlags) -> None:
    """Removes the parts that the last step of the last order switched off; writes and compares."""
    job, folder = curve.job, os.path.join(curve.job.output_dir, "model")
    off = curve.last
    smaller = compression.cut(curve.model.learner, **curve.options(off))
    make_folder(folder, "output_dir")
    saved = SavedTask.require(job.model_dir, "model_dir")
    saved.write(folder)
    open_tokenizer(job.model_dir, saved.do_lower_case).save(folder)
    training.save_model(folder, smaller)
    again = ScoredModel(folder, task_flags, curve.job.output_dir, job.batch_size)
    whole = curve.split.timed()
    left = curve.split.timed(again.trainer)
    sizes = {"off": len(off), "parameters": [curve.model.learner.count_params(),
                                             again.learner.count_params()],
             "seconds": [whole[1], left[1]],
             "bytes": [weights_bytes(path) for path in (job.model_dir, folder)]}
    if job.parts != "layers":
        with analysis.disabled(curve.model.learner.encoder, **curve.switched(off)):
            masked = curve.split.timed(runs=0)[0]
        sizes["difference"] = max(float(np.abs(masked[name] - left[0][name]).max())
                                  for name in masked)
        print(f"its outputs differ by at most {sizes['difference']:.1e} from the outputs of the "
              "model with the same parts switched off")
    for name, shown, form, scale in (
            ("parameters", "parameters", ",", 1), ("bytes", "bytes", ",", 1),
            ("seconds", "ms of CPU an example", ".2f", 1000)):
        before, after = sizes[name]
        print(f"  {shown}: {scale * before:{form}} -> {scale * after:{form}} "
              f"({after / before - 1:+.1%})", flush=True)
    whole, left = sizes["parameters"]
    write_card(folder, job.model_dir, flags.command_line("bert-prune", task_flags, job),
               note=f"{len(off)} of {curve.total} {job.parts} are removed; {left:,} of "
               f"{whole:,} weights are left.")
    curve.save(lines, removed=sizes)
