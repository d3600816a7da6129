"""Pre-trains BERT with masked LM and next sentence prediction on records.

The records come from create_pretraining_data. The same command started again goes on where it
stopped, and ends with the very weights of a run that was never stopped. To go on with longer
sequences, as the original recipe does for its last tenth, give the other records and lengths with
the same --output_dir; the optimizer is carried over:

    bert-run-pretraining --input_file='/data/s128/*.tfrecord*' --max_seq_length=128 \\
        --max_predictions_per_seq=20 --num_train_steps=1000000 --stop_at_step=900000 ...
    bert-run-pretraining --input_file='/data/s512/*.tfrecord*' --max_seq_length=512 \\
        --max_predictions_per_seq=77 --num_train_steps=1000000 ...
"""

import dataclasses
import os

from bert_tf import flags, networks, objectives, training
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.files import make_folder
from bert_tf.flags import REQUIRED, option
from bert_tf.training.settings import TrainSettings


@dataclasses.dataclass
class Job:
    """What to train, from what, on what."""

    bert_config_file: str = option(REQUIRED, "The bert_config.json of the model.")
    input_file: list[str] = option(REQUIRED, "Records to train on: files, globs or folders.")
    eval_input_file: list[str] = option([], "Records to evaluate on; default: --input_file.")
    do_train: bool = option(False, "Train.")
    do_eval: bool = option(False, "Evaluate at the end, and every --eval_steps.")
    init_checkpoint: str = option(
        "", "Weights to begin with: a folder of Google's or Hugging Face's format, or a training "
        "checkpoint of another run (its file or --output_dir).")
    carry_optimizer: bool = option(
        False, "With a training checkpoint as --init_checkpoint: take over the optimizer and the "
        "step too, to go on in another --output_dir.")
    max_seq_length: int = option(128, "Length of the records' sequences.")
    max_predictions_per_seq: int = option(20, "Masked positions of the records.")


def open_records(job, patterns, flag, config):
    """The records of a flag, found to agree with the other flags and the configuration."""
    from bert_tf.data.pipeline import RecordSet  # pylint: disable=import-outside-toplevel
    return RecordSet.open(patterns, flag).check(
        flag, job.max_seq_length, job.max_predictions_per_seq, config.vocab_size)


def make_objectives(config, dtype):
    """Masked LM and next sentence prediction."""
    return [objectives.MaskedLM(config, dtype=dtype),
            objectives.SentencePrediction(config, dtype=dtype)]


def initialize(run, trainer, job):
    """Gives a new run the weights of --init_checkpoint."""
    from bert_tf import checkpoints  # pylint: disable=import-outside-toplevel
    from bert_tf.training import resume  # pylint: disable=import-outside-toplevel
    path = job.init_checkpoint
    found = resume.checkpoints(path)[-1:] if os.path.isdir(path) else (
        [path] if resume.is_checkpoint(path) else [])
    if found and job.carry_optimizer:
        run.restore(found[0])
    elif found:
        resume.restore(found[0], trainer, weights_only=True)
    elif job.carry_optimizer:
        raise InputError("--carry_optimizer needs a training checkpoint as --init_checkpoint; "
                         f"{path or 'none'} is not one.")
    elif path:
        print(checkpoints.load(path, trainer.learner), flush=True)
    elif not job.do_train:
        raise InputError("there is nothing to evaluate: --output_dir holds no checkpoint; train "
                         "first or give --init_checkpoint.")
    if found:
        print(f"initial weights from {found[0]}, at step {run.step:,}", flush=True)


def main(job, settings):
    """Checks everything, then trains and evaluates."""
    if not (job.do_train or job.do_eval):
        raise InputError("give --do_train, --do_eval or both.")
    config = EncoderConfig.from_json_file(job.bert_config_file)
    if job.max_seq_length > config.max_position_embeddings:
        raise InputError(f"--max_seq_length ({job.max_seq_length}) is more than "
                         f"max_position_embeddings ({config.max_position_embeddings}) in "
                         f"{job.bert_config_file}.")
    records = open_records(job, job.input_file, "input_file", config)
    eval_records = None
    if job.do_eval:
        eval_records = records if not job.eval_input_file else open_records(
            job, job.eval_input_file, "eval_input_file", config)
        hashes = records.vocab_hash, eval_records.vocab_hash
        if None not in hashes and hashes[0] != hashes[1]:
            raise InputError("--input_file and --eval_input_file were made with different "
                             "vocabularies, as their manifests say; make one of them again.")
    make_folder(settings.output_dir, "output_dir")

    # TensorFlow is imported only after the flags were found good.
    strategy = training.open_strategy(settings, evaluates=job.do_eval)
    with training.sole_writer(settings.output_dir, strategy):
        pretrain(job, settings, config, strategy, records, eval_records)


def pretrain(job, settings, config, strategy, records, eval_records):
    """Trains and evaluates, as the flags ask."""
    def make_learner(dtype):
        return training.Learner(networks.build(config, dtype=dtype),
                                make_objectives(config, dtype))

    trainer = training.make_trainer(strategy, settings, make_learner)
    run = training.Run(
        trainer, settings, records,
        training.make_evaluation(trainer, settings, eval_records) if job.do_eval else None)
    if not run.resume():
        initialize(run, trainer, job)
    print(f"{trainer.learner.count_params():,} weights, {records.size:,} records, "
          f"{trainer.strategy.num_replicas_in_sync} device(s)", flush=True)
    if job.do_train:
        run.train()
        run.save_model()
    if job.do_eval:
        run.report_evaluation()


def run():
    """The console entry point."""
    # TensorFlow says much on stderr that is of no use to who trains.
    flags.run(main, Job, TrainSettings)


if __name__ == "__main__":
    run()
