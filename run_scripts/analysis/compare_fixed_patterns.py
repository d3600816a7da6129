"""Pre-trains BERT with learned heads and with heads that look at fixed places (Raganato et al.,
arXiv:2002.10260), and compares them.

    bert-compare-fixed-patterns --input_file=train.tfrecord --eval_input_file=held_out.tfrecord \\
        --bert_config_file=bert_config.json --output_dir=patterns --num_train_steps=2000

Each variant is a masked LM, trained from scratch on the same batches from the same seed: `learned`;
`fixed`, whose first seven heads have the seven patterns; `all_fixed`, whose last head looks at the
end of the text too, so that none learns. The command reports the loss on held-out records, that of
`fixed` without its learned head, the weights, and the seconds of a step.
"""

import dataclasses
import functools
import os
import time
from collections.abc import Callable

from bert_tf import analysis, data, flags, networks, objectives, training
from bert_tf.config import EncoderConfig, read_config
from bert_tf.errors import InputError
from bert_tf.files import make_folder, write_json
from bert_tf.flags import REQUIRED, option
from bert_tf.training.settings import TrainSettings

_VARIANTS = ("learned", "fixed", "all_fixed")
_TIMED_STEPS = 10


@dataclasses.dataclass
class PatternsFlags:
    """The records, the sizes and the variants."""

    input_file: list[str] = option(REQUIRED, "Records to train on.")
    eval_input_file: list[str] = option(REQUIRED, "Held-out records.")
    bert_config_file: str = option(REQUIRED, "The sizes; at least 7 heads.")
    variants: list[str] = option(list(_VARIANTS), "Which to train.")
    empty_rows: str = option("end", "What a token looks at where its pattern has nothing: end, the "
                             "first or last token; zero, nothing.", choices=("end", "zero"))

    def __post_init__(self):
        if unknown := set(self.variants) - set(_VARIANTS):
            raise InputError(f"--variants: there is no {unknown.pop()!r}; choose from "
                             f"{', '.join(_VARIANTS)}.")


def make_encoder(variant: str, config: EncoderConfig, empty_rows: str, dtype: str) -> object:
    """The encoder of a variant, with initial weights."""
    if variant == "learned":
        return networks.build(config, dtype=dtype)
    from bert_tf.analysis.fixed_patterns import FixedPatternEncoder
    from bert_tf.layers.fixed_patterns import PATTERNS
    names = PATTERNS if variant == "fixed" else PATTERNS + ("end",) * (
        config.num_attention_heads - len(PATTERNS))
    return FixedPatternEncoder(config, fixed_heads=names, empty_rows=empty_rows, dtype=dtype)


def train(settings: TrainSettings, make_learner: Callable, records: object, held_out: object
          ) -> dict[str, float]:
    """Trains one variant; returns its figures."""
    strategy = training.open_strategy(settings)
    with training.sole_writer(settings.output_dir, strategy):
        trainer = training.make_trainer(strategy, settings, make_learner)
        run = training.Run(trainer, settings, records, None)
        run.resume()
        run.train()
        run.save_model()
    evaluate = training.make_evaluation(trainer, settings, held_out)
    encoder = trainer.learner.encoder
    found = {"weights": encoder.count_params(), **evaluate()}
    heads = range(len(getattr(encoder, "fixed_heads", ())), encoder.config.num_attention_heads)
    if heads and heads[0]:
        pairs = [(layer, head) for layer in range(len(encoder.layers_)) for head in heads]
        with analysis.disabled(encoder, pairs, "zero"):
            found["loss_without_learned"] = evaluate()["masked_lm/loss"]
    # Steps alone, without reports and checkpoints; these change the weights, so they come last.
    iterator = iter(trainer.distribute(lambda worker, workers, replicas: records.training_batches(
        settings.random_seed, 0, settings.train_batch_size, replicas)))
    trainer.train(iterator, _TIMED_STEPS)
    start = time.process_time()
    trainer.train(iterator, _TIMED_STEPS)
    found["cpu_seconds_a_step"] = (time.process_time() - start) / _TIMED_STEPS
    return found


def main(job: PatternsFlags, settings: TrainSettings) -> None:
    """Runs the command."""
    config = read_config(job.bert_config_file)
    if config.num_attention_heads < 7:
        raise InputError(f"--bert_config_file: {job.bert_config_file} has "
                         f"{config.num_attention_heads} heads; seven patterns need 7 or more.")
    records = data.RecordSet.open(job.input_file, "input_file")
    held_out = data.RecordSet.open(job.eval_input_file, "eval_input_file")
    make_folder(settings.output_dir, "output_dir")

    def make(dtype, variant):
        encoder = make_encoder(variant, config, job.empty_rows, dtype)
        return training.Learner(encoder, [objectives.MaskedLM(config, dtype=dtype)])

    results = {}
    for variant in job.variants:
        folder = os.path.join(settings.output_dir, variant)
        print(f"== {variant}", flush=True)
        results[variant] = train(dataclasses.replace(settings, output_dir=folder),
                                 functools.partial(make, variant=variant), records, held_out)
        write_json(os.path.join(settings.output_dir, "patterns.json"), results)
    print(f"\n{'held-out masked LM':<22}{'loss':>8}{'accuracy':>10}{'encoder weights':>17}"
          f"{'CPU s a step':>14}")
    for variant, found in results.items():
        print(f"{variant:<22}{found['masked_lm/loss']:>8.4f}{found['masked_lm/accuracy']:>10.1%}"
              f"{found['weights']:>17,}{found['cpu_seconds_a_step']:>14.3f}")
        if "loss_without_learned" in found:
            print(f"{'  learned head off':<22}{found['loss_without_learned']:>8.4f}")


def run() -> None:
    """The console entry point."""
    flags.run(main, PatternsFlags, TrainSettings)


if __name__ == "__main__":
    run()
