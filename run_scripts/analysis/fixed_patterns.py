"""Compares BERT's learned heads with heads that attend to fixed positions.

    bert-analyze fixed-patterns --input_file=train.tfrecord --eval_input_file=held_out.tfrecord \\
        --bert_config_file=bert_config.json --output_dir=patterns --num_train_steps=2000

Patterns follow Raganato et al. (arXiv:2002.10260). Each variant is a masked LM that
bert-run-pretraining trains from scratch, on the same batches from the same seed: `learned`;
`fixed`, whose first seven heads have the seven patterns; `fixed_words`, whose patterns count words;
`all_fixed`, without any learned head, because the other heads attend to the end of the text.
Reports the loss on held-out records (also without the learned heads), the number of weights, and
the seconds per step. The same command resumes a stopped run.
"""

import dataclasses
import os
import time

import numpy as np

from bert_tf import analysis, checkpoints, data, flags, training
from bert_tf.config import PATTERNS, EncoderConfig, FixedPatternConfig
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.training.settings import TrainSettings
from run_scripts import run_pretraining
from run_scripts.pretraining.flags import PretrainingFlags, recipe_defaults
from run_scripts.pretraining.records import open_records

_VARIANTS = ("learned", "fixed", "fixed_words", "all_fixed")
_TIMED_STEPS = 10
_LOSS, _ACCURACY, _WITHOUT = "masked_lm/loss", "masked_lm/accuracy", "loss_without_learned"


@dataclasses.dataclass
class PatternsFlags:
    """The records, the sizes and the variants."""

    input_file: list[str] = option(REQUIRED, "Records to train on.")
    eval_input_file: list[str] = option(REQUIRED, "Held-out records.")
    bert_config_file: str = option(REQUIRED, "A configuration of BERT with at least 7 heads.")
    variants: list[str] = option(
        ["learned", "fixed", "all_fixed"], "Which to train; fixed_words needs records made with "
        "--masking=dynamic --do_whole_word_mask.", choices=_VARIANTS)
    num_seeds: int = option(
        1, "Number of runs of each variant, with successive seeds from --random_seed.", least=1)
    empty_rows: str = option(
        "end", "Where a head looks if its pattern points outside the text. end: the first or last "
        "token; zero: nothing.", choices=("end", "zero"))

    __post_init__ = flags.check


def make_jobs(job: PatternsFlags, output_dir: str) -> dict[str, PretrainingFlags]:
    """Checks all settings and returns each variant's flags for bert-run-pretraining."""
    config = checkpoints.read_config_file(job.bert_config_file)
    if type(config) is not EncoderConfig or config.model_type != EncoderConfig.model_type:
        raise InputError(f"--bert_config_file: {job.bert_config_file} is not a configuration of "
                         "BERT; give one, and its heads are replaced.")
    if config.num_attention_heads < len(PATTERNS):
        raise InputError(f"--bert_config_file: {job.bert_config_file} has "
                         f"{config.num_attention_heads} heads; seven patterns need at least 7.")
    sizes = data.RecordSet.open(job.input_file, "input_file").format.sizes
    lengths = {name: size for name, size in sizes.items() if name.startswith("max_")}
    _, defaults = recipe_defaults({"input_file": job.input_file})
    if "max_predictions_per_seq" in defaults:
        lengths.setdefault("max_predictions_per_seq", defaults["max_predictions_per_seq"])
    jobs: dict[str, PretrainingFlags] = {}
    configs: dict[str, EncoderConfig] = {}
    for variant in job.variants:
        configs[variant] = config
        if variant != "learned":
            others = 0      # heads beside the seven patterns that look at a fixed place
            if variant == "all_fixed":
                others = config.num_attention_heads - len(PATTERNS)
            configs[variant] = FixedPatternConfig.from_dict({
                **config.to_dict(), "fixed_heads": PATTERNS + ("end",) * others,
                "empty_rows": job.empty_rows,
                "pattern_units": "words" if variant == "fixed_words" else "tokens"})
        jobs[variant] = PretrainingFlags(
            input_file=job.input_file, eval_input_file=job.eval_input_file, do_train=True,
            bert_config_file=os.path.join(output_dir, f"{variant}.json"), terms=["masked_lm"],
            **lengths)
        for flag in ("input_file", "eval_input_file"):
            open_records(jobs[variant], getattr(job, flag), flag, configs[variant])
    make_folder(output_dir, "output_dir")
    for variant, described in configs.items():
        described.to_json_file(jobs[variant].bert_config_file)
    return jobs


def train(job: PretrainingFlags, settings: TrainSettings) -> dict[str, float]:
    """Trains one variant and returns its figures."""
    trainer = run_pretraining.main(job, settings)
    encoder = trainer.learner.encoder
    held_out, _ = open_records(job, job.eval_input_file, "eval_input_file", encoder.config)
    evaluate = training.make_evaluation(trainer, settings, held_out)
    measured = evaluate()
    figures = {"weights": encoder.count_params(), _LOSS: measured[_LOSS],
               _ACCURACY: measured[_ACCURACY]}
    config = encoder.config
    if 0 < config.learned_heads < config.num_attention_heads:
        learned = range(config.num_attention_heads - config.learned_heads,
                        config.num_attention_heads)
        with analysis.disabled(encoder, [(layer, head) for layer in range(config.depth)
                                         for head in learned], "zero"):
            figures[_WITHOUT] = evaluate()[_LOSS]
    # Times steps alone, without reports and checkpoints. They change the weights, so they come
    # last.
    records, _ = open_records(job, job.input_file, "input_file", config)
    iterator = iter(trainer.distribute(lambda worker, workers, replicas: records.training_batches(
        settings.random_seed, 0, settings.train_batch_size, replicas)))
    trainer.train(iterator, _TIMED_STEPS)
    start = time.process_time()
    trainer.train(iterator, _TIMED_STEPS)
    figures["cpu_seconds_a_step"] = (time.process_time() - start) / _TIMED_STEPS
    return figures


def show(results: dict[str, dict[int, dict[str, float]]]) -> None:
    """Prints a table of the means over seeds."""
    print(f"\n{'held-out masked LM':<22}{'loss':>8}{'+-':>8}{'accuracy':>10}"
          f"{'encoder weights':>17}{'CPU s a step':>14}   (+-: standard deviation over seeds)")
    for variant, by_seed in results.items():
        runs = list(by_seed.values())
        mean = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
        spread = {name: np.std([run[name] for run in runs], ddof=1) if len(runs) > 1 else 0.0
                  for name in runs[0]}
        print(f"{variant:<22}{mean[_LOSS]:>8.4f}{spread[_LOSS]:>8.4f}{mean[_ACCURACY]:>10.1%}"
              f"{mean['weights']:>17,.0f}{mean['cpu_seconds_a_step']:>14.3f}")
        if _WITHOUT in mean:
            print(f"{'  learned heads off':<22}{mean[_WITHOUT]:>8.4f}{spread[_WITHOUT]:>8.4f}")


def main(job: PatternsFlags, settings: TrainSettings) -> None:
    jobs = make_jobs(job, settings.output_dir)
    flags.keep(job, settings.output_dir)
    results: dict[str, dict[int, dict[str, float]]] = {variant: {} for variant in jobs}
    for number in range(job.num_seeds):
        seed = settings.random_seed + number
        for variant, described in jobs.items():
            print(f"== {variant}, seed {seed}: {number * len(jobs) + list(jobs).index(variant) + 1}"
                  f" of {job.num_seeds * len(jobs)}", flush=True)
            folder = os.path.join(settings.output_dir, variant, f"seed{seed}")
            results[variant][seed] = train(described, dataclasses.replace(
                settings, output_dir=folder, random_seed=seed))
            write_json(os.path.join(settings.output_dir, "patterns.json"), results)
    show(results)
