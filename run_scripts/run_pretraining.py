"""Pre-trains BERT, or a relative of BERT, on records.

    bert-run-pretraining --bert_config_file=bert_config.json --do_train --do_eval \\
        --input_file=train.tfrecord --eval_input_file=held_out.tfrecord --output_dir=run

The records come from bert-create-pretraining-data. Their manifest names the recipe, so you need not
give --recipe again. Run the same command again to resume; it ends with the weights of an
uninterrupted run.

To teach a published model your text, give --init_checkpoint=MODEL --input_file=text.txt.

To continue with longer sequences, as the original recipe does for its last tenth, stop the run with
--stop_at_step, and give the other records and lengths with the same --output_dir; the state of the
optimizer stays.
"""

import dataclasses
import functools
from typing import Any

from bert_tf import checkpoints, data, flags, recipes, training
from bert_tf.errors import InputError, counted, warn
from bert_tf.files import is_folder, make_folder
from bert_tf.model_card import write_card
from bert_tf.training.growth import StackSettings
from bert_tf.training.settings import TrainSettings
from run_scripts.pretraining.flags import (
    PretrainingFlags,
    compare_vocabularies,
    find_tokenizer,
    keep_model_files,
    read_network,
    recipe_defaults,
    settings_of,
    text_flags,
)
from run_scripts.pretraining.records import (
    beside_teacher,
    check_labels,
    choose_terms,
    describe,
    keep_labels,
    open_eval_records,
    open_records,
    pack,
)

# Tokens whose neighbours are counted for --first_weights=neighbours, and the rows of their batches.
_COUNTED, _ROWS = 1 << 23, 512


def initialize(run: "training.Run", trainer: "training.Trainer", job: PretrainingFlags,
               records: "data.RecordSet") -> None:
    """Gives a new run the weights of --init_checkpoint or of --first_weights."""
    resume, path = training.resume, job.init_checkpoint
    if job.first_weights == "neighbours":
        if path:
            raise InputError(f"--first_weights=neighbours and --init_checkpoint={path} both set "
                             "the first weights; give one of the two flags.")
        from bert_tf.networks import first_weights  # with Keras
        rows = min(records.size, _COUNTED // job.max_seq_length)
        batches = records.training_batches(run.seed, 0, _ROWS, 1).take(-(-rows // _ROWS))
        first_weights.give_learner(trainer.learner, run.seed, batches)
        training.make_alike(trainer.strategy, [trainer.learner.encoder.embedding_table])
        print("first weights: heads look at neighbouring tokens, and words are like those that "
              "stand near the same words", flush=True)
    saved = []
    if is_folder(path):
        saved = resume.checkpoints(path)[-1:]
    elif resume.is_checkpoint(path):
        saved = [path]
    if saved and not (job.carry_optimizer or checkpoints.training_checkpoint.find(path)):
        saved = []      # the model of a run that stops early has its best weights
    if saved and job.carry_optimizer:
        run.restore(saved[0])
    elif saved:
        resume.restore(saved[0], trainer, weights_only=True, averaged=not job.do_train)
    elif job.carry_optimizer:
        raise InputError("--carry_optimizer needs a training checkpoint as --init_checkpoint, not "
                         f"{path or 'none'}.")
    elif path:
        print(checkpoints.load(path, trainer.learner), flush=True)
    elif not job.do_train:
        raise InputError("there is nothing to evaluate: --output_dir holds no checkpoint; train "
                         "first or give --init_checkpoint.")
    if saved:
        print(f"initial weights from {saved[0]}, at step {run.step:,}", flush=True)


def check_start(job: PretrainingFlags, output_dir: str) -> PretrainingFlags:
    """Returns the job, which also trains if its input is text that no model is to be scored on.
    InputError if training would overwrite a model that it reads."""
    if any(text_flags(job).values()) and not job.do_eval:
        job = dataclasses.replace(job, do_train=True)
    if not job.do_train:
        return job
    for flag, path in (("init_checkpoint", job.init_checkpoint),
                       ("teacher", job.setting("teacher", ""))):
        if path and not training.resume.is_checkpoint(path):      # a run may go on from its own
            from bert_tf.opening import check_apart  # with all formats of weights
            check_apart(flag, path, output_dir)
    return job


def check_batches(job: PretrainingFlags, settings: TrainSettings, records: "data.RecordSet",
                  eval_records: "data.RecordSet | None") -> None:
    """Checks that records in rows have the batches of the flags; warns of less than one batch to
    train on. An evaluation takes each record once, however few."""
    of_eval = "eval_input_file" if job.eval_input_file else "input_file"
    for each, which, flag in ((records, "train", "input_file"), (eval_records, "eval", of_eval)):
        batch = getattr(settings, f"{which}_batch_size")
        if not getattr(job, f"do_{which}"):
            continue
        if getattr(each, "rows", 0):
            each.check_batch(batch, f"{which}_batch_size", flag)
        elif which == "train" and each.size < batch:
            warn(f"--{flag} has {counted(each.size, 'record')}, less than one batch of "
                 f"--train_batch_size={batch}, so the results mean little; give more text or "
                 "records.")


def main(job: PretrainingFlags, settings: TrainSettings, stack: StackSettings | None = None,
         *further: Any) -> "training.Trainer | None":
    """Checks everything, trains and evaluates; returns the trainer of the last stage reached.
    `further` are objects of the dataclasses that the recipe's row names."""
    job = check_start(dataclasses.replace(job, further=further), settings.output_dir)
    if any(text_flags(job).values()):
        from run_scripts.pretraining import adapting  # with the data job and all formats of weights
        job = adapting.complete(job, settings)
    if not (job.do_train or job.do_eval):
        raise InputError("give --do_train, --do_eval or both.")
    config = read_network(job)
    if job.max_seq_length > config.max_position_embeddings:
        raise InputError(f"--max_seq_length ({job.max_seq_length}) is more than "
                         f"max_position_embeddings ({config.max_position_embeddings}) in "
                         f"{job.bert_config_file or job.model_size or job.init_checkpoint}.")
    records, recipe = open_records(job, job.input_file, "input_file", config)
    eval_records = open_eval_records(job, records, config, recipe) if job.do_eval else None
    if not job.do_train:
        check_labels(job.init_checkpoint or settings.output_dir, job, eval_records)
    check_batches(job, settings, records, eval_records)
    stack = stack or StackSettings()
    own = next(iter(further), None)
    records = schedule(job, settings, stack, records)
    if job.do_train and settings.batch_size_warmup_min_size:
        training.growing_batches.check_records(records)
    records = beside_teacher(job, recipe, config, own, records)
    terms = choose_terms(recipe, job.terms, records, config)
    stages = [training.growth.Stage(config, settings)]
    if job.do_train and stack.stack_layers:
        learner = recipes.load(recipe.learner)
        stages = training.growth.plan(settings, stack, config,
                                      lambda sizes: learner.configs(sizes, own))
    tokenizer = find_tokenizer(job)
    compare_vocabularies(tokenizer, _models(job, terms))
    make_folder(settings.output_dir, "output_dir")

    print(describe(job, recipe, records, terms), flush=True)
    identities = {"input_file": records.identity()}
    if eval_records:
        identities["eval_input_file"] = eval_records.identity()
    strategy = training.open_strategy(
        settings, evaluates=job.do_eval, records=identities, others=(
            dataclasses.replace(job, further=()), stack, *further))
    begin = functools.partial(_keep, job, settings, tokenizer, stages[-1].config, records)
    with training.sole_writer(settings.output_dir, strategy):
        trainer = None
        for stage in stages[training.resume.newest_stage(stages):]:
            if not stage.is_reached:
                print(f"--stop_at_step={settings.stop_at_step} is before {stage.name}", flush=True)
                break
            trainer = pretrain(
                job, stack, stage, lambda dtype, config=stage.config: recipes.load(
                    recipe.learner).of_terms(config, terms, dtype, own),
                strategy, records, eval_records, begin if training.is_chief(strategy) else None)
        return trainer


def _models(job, terms):
    """The models that read the records' ids, {flag: path}, "" for none."""
    models = {"init_checkpoint": job.init_checkpoint}
    if not any(term.objective == "WeightProjection" for term in terms):     # of weights alone
        models["teacher"] = job.setting("teacher", "")
    return models


def _keep(job, settings, tokenizer, config, records):
    flags.keep(settings, settings.output_dir, trains=job.do_train)
    keep_model_files(tokenizer, config, settings.output_dir)
    if job.do_train:
        keep_labels(records, settings.output_dir)
    if job.do_train and job.init_checkpoint:
        from bert_tf.checkpoints import sentence_modules
        from bert_tf.opening import folder_of
        sentence_modules.copy(folder_of(job.init_checkpoint), settings.output_dir, config)


def schedule(job: PretrainingFlags, settings: TrainSettings, stack: StackSettings,
             records: "data.RecordSet") -> "data.RecordSet":
    """Returns the records; records of several tasks with their schedule."""
    if records.tasks and stack.stack_layers:
        raise InputError("--stack_layers and --task_schedule can't both set the stages; leave "
                         "--stack_layers out, or train on records of another recipe.")
    if records.tasks:
        return records.scheduled(job.setting("task_schedule") or ["continual"],
                                 settings.num_train_steps)
    return records


def pretrain(job, stack, stage, make, strategy, records, eval_records, begin=None):
    """Trains and evaluates a stage, as the flags ask; returns the trainer. Without --stack_layers
    there is one stage. `begin` is called when the folder is known to be this run's."""
    settings = stage.settings
    if stage.name:
        import keras
        print(stage.name, flush=True)
        make_folder(settings.output_dir, "output_dir")
        keras.backend.clear_session()       # names of layers are as in a command that resumes here
    trainer = training.make_trainer(strategy, settings, make)
    records = pack(job, settings, trainer, records)
    evaluate = training.make_evaluation(trainer, settings, eval_records) if job.do_eval else None
    # What neither the learner nor the records describe.
    noticed = {"first_weights": job.first_weights,
               "pack": isinstance(records, data.PackedRecords)}     # it draws other dropout
    if stack.stack_layers:
        noticed |= {"stack_new_layers": stack.stack_new_layers,
                    "stack_optimizer": stack.stack_optimizer}
    if "is_masked" in records.format.names:
        noticed["perm_size"] = job.setting("perm_size", 0)
    evaluated_on = "records"
    if job.do_train:
        evaluated_on = training.evaluated_on(job.input_file, job.eval_input_file or job.input_file)
    run = training.Run(trainer, settings, records, evaluate, more=noticed,
                       evaluated_on=evaluated_on)
    run.init_checkpoint = job.init_checkpoint
    if not run.resume():
        if stage.below:
            training.wait_for_workers(strategy)     # the chief may still be writing
            print(training.growth.grow(stage.below, trainer, stack), flush=True)
            run.save()
        else:
            initialize(run, trainer, job, records)
    if begin:
        begin()
    encoder = trainer.learner.encoder
    if not run.step and hasattr(encoder, "take_counts"):
        if job.init_checkpoint:     # its embeddings were learned with these
            print("the model keeps the word frequencies of --init_checkpoint", flush=True)
        else:
            encoder.take_counts(data.manifest.token_counts(records.manifest))
    print(f"{trainer.learner.count_params():,} weights, {counted(records.size, 'record')}, "
          f"{counted(trainer.strategy.num_replicas_in_sync, 'device')}", flush=True)
    if job.do_train:
        run.train()
        run.save_model()
        if begin:
            begin()     # in the folders of further saved models, too
    if job.do_eval:
        run.report_evaluation()
    if begin and job.do_train:
        base = run.init_checkpoint or None
        if run.init_checkpoint is None:
            base = job.init_checkpoint
        write_card(settings.output_dir, base)
    return trainer


def run() -> None:
    flags.run(main, PretrainingFlags, TrainSettings, StackSettings, defaults=recipe_defaults,
              adds=settings_of)


if __name__ == "__main__":
    run()
