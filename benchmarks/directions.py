"""Measures the effect of two directions and of sentence prediction, at small size.

This is table 5 of BERT's paper. Four systems are trained on the same text, with the same sizes and
steps: BERT; the same without next sentence prediction; a left-to-right network that predicts every
next token, without sentence prediction; and that network with a bidirectional LSTM on top in
fine-tuning. Each is fine-tuned on MRPC, on one sentence at a time (the second ones of SNLI: are
they entailed or contradicted by a text that the model does not see?) and on questions in the form
of SQuAD. The table also has the published results, whose second task was SST-2. The losses of
pre-training are not compared: one system predicts 15% of the tokens, the other all.

The same command started again runs only what is missing.

Example:
    bert-benchmark directions --input_file=text.txt --mrpc_dir=glue/MRPC --snli_dir=snli \\
        --squad_train_file=train.json --squad_predict_file=dev.json --output_dir=/tmp/directions
"""

import csv
import dataclasses
import functools
import os
import statistics

from benchmarks.programs import check_width
from bert_tf import flags
from bert_tf.config import EncoderConfig
from bert_tf.files import make_folder, write_aside
from bert_tf.finetuning.model import ModelFlags
from bert_tf.flags import REQUIRED, option
from bert_tf.options import read_json
from bert_tf.tasks.named import find_task
from bert_tf.tasks.reading import read_examples
from bert_tf.tasks.task_flags import SquadFlags, TaskFlags
from bert_tf.tokenization.base import open_tokenizer
from bert_tf.training.settings import FineTuneSettings, TrainSettings
from data_prep import build_vocab, create_pretraining_data
from run_scripts import run_classifier, run_pretraining, run_squad
from run_scripts.kept_results import KeptComparison

# arXiv:1810.04805, table 5: accuracy on MRPC and SST-2, F1 on SQuAD; the dev sets, BERT-Base.
PUBLISHED = {"BERT": (86.7, 92.7, 88.5), "No NSP": (86.5, 92.6, 87.9),
             "LTR & No NSP": (77.5, 92.1, 77.8), "+ BiLSTM": (75.7, 91.6, 84.9)}
# Of each system: flags of its pre-training, and whether an LSTM is added in fine-tuning.
SYSTEMS = {"BERT": ({"recipe": "bert"}, False),
           "No NSP": ({"recipe": "bert", "terms": ["masked_lm"]}, False),
           "LTR & No NSP": ({"recipe": "ltr"}, False),
           "+ BiLSTM": ({"recipe": "ltr"}, True)}
TASKS = ("MRPC", "sentence", "SQuAD")
_SENTENCE_LABELS = ("contradiction", "entailment")
_QUERY = 24         # most tokens of a question


@dataclasses.dataclass
class DirectionsFlags(KeptComparison):
    """The material, the sizes, and how long to train."""

    input_file: list[str] = option(REQUIRED, "Text to pre-train on, as create_pretraining_data "
                                             "takes it.")
    mrpc_dir: str = option(REQUIRED, "Folder of MRPC's official files.")
    snli_dir: str = option(REQUIRED, "Folder of SNLI's official files.")
    squad_train_file: str = option(REQUIRED, "Questions to train on, in the form of SQuAD v1.1.")
    squad_predict_file: str = option(
        REQUIRED, "Questions to answer and to score, in the form of SQuAD v1.1.")
    output_dir: str = option(REQUIRED, "Folder for all files.")
    vocab_size: int = option(
        8000, "Maximum size of the vocabulary, which is learned from the text.")
    num_hidden_layers: int = option(2, "Layers.", least=1)
    hidden_size: int = option(128, "Width; heads are 64 wide.")
    max_seq_length: int = option(128, "Length of all sequences.")
    num_train_steps: int = option(1000, "Steps of pre-training.", least=1)
    train_batch_size: int = option(16, "Records per step of pre-training.", least=1)
    learning_rate: float = option(1e-3, "Peak of the learning rate in pre-training.")
    finetuning_learning_rate: float = option(3e-4, "Peak of the learning rate in fine-tuning.")
    num_train_epochs: float = option(3.0, "Number of epochs on MRPC.")
    sentence_epochs: float = option(2.0, "Number of epochs on single sentences.")
    squad_epochs: float = option(1.0, "Number of epochs on questions.")
    num_trials: int = option(
        1, "Number of seeds of each fine-tuning; the table has their mean.", least=1)


    def check(self) -> None:
        """Raises InputError for values that can't work."""
        super().check()
        check_width(self.hidden_size)


def prepare(job: DirectionsFlags) -> None:
    """Makes the vocabulary, the records without masks, the configuration and the sentences."""
    vocab, config = job.path("vocab.txt"), job.path("bert_config.json")
    if not os.path.exists(vocab):
        build_vocab.main(build_vocab.BuildVocabFlags(
            input_file=job.input_file, output_file=vocab, vocab_size=job.vocab_size))
    create_pretraining_data.main(create_pretraining_data.PretrainingDataFlags(
        input_file=job.input_file, output_file=[job.path("records", "text.tfrecord")],
        vocab_file=vocab, max_seq_length=job.max_seq_length, masking="dynamic", dupe_factor=1,
        num_workers=1, max_predictions_per_seq=_predictions(job)))
    size = open_tokenizer(vocab).vocabulary.size
    EncoderConfig(
        vocab_size=size, hidden_size=job.hidden_size, num_hidden_layers=job.num_hidden_layers,
        num_attention_heads=job.hidden_size // 64, intermediate_size=4 * job.hidden_size,
        max_position_embeddings=job.max_seq_length, type_vocab_size=2).to_json_file(config)
    write_sentences(job)


def _predictions(job):
    return int(0.15 * job.max_seq_length) + 1


def write_sentences(job: DirectionsFlags) -> None:
    """The second sentences of SNLI that are entailed or contradicted, with their labels, as TSV."""
    task = find_task("snli")
    for split in ("train", "dev"):
        examples = read_examples(task, split, task.path(job.snli_dir, split))
        rows = [(example.texts[1], task.labels[example.label]) for example in examples]
        make_folder(job.path("sentences"), "output_dir")
        with write_aside(job.path("sentences", f"{split}.tsv")) as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(("sentence", "label"))
            writer.writerows(row for row in rows if row[1] in _SENTENCE_LABELS)


def pretrain(job: DirectionsFlags, system: str) -> str:
    """Pre-trains a system, once for all that differ in fine-tuning alone; returns its model."""
    options, _ = SYSTEMS[system]
    first = next(name for name, (others, _) in SYSTEMS.items() if others == options)
    folder = job.path("pretrained", str(list(SYSTEMS).index(first)))
    model = os.path.join(folder, "model.keras")
    if not os.path.exists(model):
        run_pretraining.main(
            run_pretraining.PretrainingFlags(
                input_file=[job.path("records")], bert_config_file=job.path("bert_config.json"),
                do_train=True, max_seq_length=job.max_seq_length,
                max_predictions_per_seq=_predictions(job), **options),
            TrainSettings(
                output_dir=folder, train_batch_size=job.train_batch_size,
                learning_rate=job.learning_rate, num_train_steps=job.num_train_steps,
                num_warmup_steps=job.num_train_steps // 10, iterations_per_loop=50,
                save_checkpoints_steps=100, keep_checkpoint_max=1))
    return model


def fine_tune(job: DirectionsFlags, system: str, task: str, seed: int) -> float:
    """The score of a system in a task, in percent."""
    bilstm = job.hidden_size if SYSTEMS[system][1] else 0
    folder = job.path("tasks", task, f"{list(SYSTEMS).index(system)}-seed{seed}")
    epochs = {"MRPC": job.num_train_epochs, "sentence": job.sentence_epochs,
              "SQuAD": job.squad_epochs}[task]
    model = ModelFlags(
        do_train=True, do_eval=True, init_checkpoint=pretrain(job, system), num_workers=1,
        vocab_file=job.path("vocab.txt"), max_seq_length=job.max_seq_length,
        bilstm_size=bilstm, records_dir=job.path("tasks", task, "records"))
    settings = FineTuneSettings(
        output_dir=folder, random_seed=seed, num_train_epochs=epochs, train_batch_size=32,
        learning_rate=job.finetuning_learning_rate, eval_batch_size=64)
    if task == "SQuAD":
        run_squad.main(SquadFlags(
            train_file=job.squad_train_file, predict_file=job.squad_predict_file,
            max_query_length=_QUERY, doc_stride=3 * job.max_seq_length // 4), model, settings)
        return read_json(os.path.join(folder, "metrics.json"))["metrics"]["squad/f1"]
    own = {"data_dir": job.path("sentences"), "train_file": "train.tsv", "dev_file": "dev.tsv",
           "text_a_column": "sentence", "label_column": "label", "labels": list(_SENTENCE_LABELS)}
    run_classifier.main(TaskFlags(**(
        own if task == "sentence" else {"task": "MRPC", "data_dir": job.mrpc_dir})),
        model, settings)
    return 100 * read_json(os.path.join(folder, "metrics.json"))["metrics"]["dev/accuracy"]


def print_table(table: dict[str, dict[str, list[float]]]) -> None:
    """Prints a line for each system: the means of its scores and the published ones."""
    print(f"\n{'':<16}" + "".join(f"{task:>12}" for task in TASKS)
          + "   published: MRPC, SST-2, SQuAD")
    for system, scores in table.items():
        cells = (f"{statistics.fmean(scores[task]):>12.1f}" for task in TASKS)
        print(f"{system:<16}" + "".join(cells)
              + "   " + "".join(f"{value:>8.1f}" for value in PUBLISHED[system]))
    print("accuracy in percent, of SQuAD F1", flush=True)


def main(job: DirectionsFlags) -> None:
    """Runs what is missing, and prints the table."""
    job.check()
    results = job.open_results()
    prepare(job)
    table: dict[str, dict[str, list[float]]] = {}
    for system in SYSTEMS:
        found = table.setdefault(system, {task: [] for task in TASKS})
        for task in TASKS:
            for seed in range(1, job.num_trials + 1):
                score = results.get(system, task, str(seed), measure=functools.partial(
                    fine_tune, job, system, task, seed))
                found[task].append(score)
                print(f"== {system}, {task}, seed {seed}: {score:.1f}", flush=True)
    print_table(table)


def run() -> None:
    flags.run(main, DirectionsFlags)


if __name__ == "__main__":
    run()
