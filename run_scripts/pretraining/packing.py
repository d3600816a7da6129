"""Whether the records of a pre-training run share rows (--pack)."""

from bert_tf import data, training
from bert_tf.errors import InputError
from bert_tf.training.settings import TrainSettings
from run_scripts.pretraining.flags import PretrainingFlags

# Sharing rows has a price, which larger shares of the rows than this don't pay back.
_WORTHWHILE = 0.93


def pack(job: PretrainingFlags, settings: TrainSettings, trainer: "training.Trainer", records):
    """Returns the records, packed where --pack asks for it, or where it is not given and pays.

    Raises:
        InputError: --pack is given, and these records or this network don't allow it.
    """
    obstacle = _obstacle(trainer.learner, records)
    if obstacle and job.pack:
        raise InputError(f"--pack: {obstacle}; leave it out.")
    packs = job.pack
    if packs is None:
        packs = training.resume.newest_run(settings.output_dir).get("pack")
        # A TPU would compile the step for several numbers of rows; whether that pays is not known.
        if packs is None and training.needs_static_shapes(trainer.strategy):
            packs = False
    if obstacle or packs is False or not job.do_train:
        return records
    parts = trainer.strategy.num_replicas_in_sync * settings.gradient_accumulation_steps
    packed = data.PackedRecords.of(records, parts)
    with training.named_errors(records):
        share = packed.share(settings.train_batch_size)
    if packs is None and share > _WORTHWHILE:
        return records
    print(f"records share rows, so only {share:.0%} of the rows are computed (--pack=false gives "
          "each record its own row)", flush=True)
    return packed


def _obstacle(learner, records):
    """Why records can't share rows; empty if they can."""
    if not learner.packs:
        return "this network or its objectives read each record in a row of its own"
    if type(records) is not data.RecordSet or records.rows:
        return "these records are read in an order of their own"
    if "sequence_ids" in records.format.names:
        return "these records are rows of several sequences already"
    return ""
