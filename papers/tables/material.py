"""Flags and cells that the tables share; the cells make text, vocabulary and records, pre-train,
and fine-tune on a task."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf.errors import InputError
from bert_tf.files import absolute, is_file
from bert_tf.flags import changed, option
from papers.tables.cells import Cell, Made
from papers.tables.making import RunFlags
from papers.tables.table import Column

# The task and the metric of each column; SQuAD is given by its files.
COLUMNS = {
    "MNLI-m": ("mnli", "dev_matched/accuracy"),
    "QNLI": ("qnli", "dev/accuracy"),
    "MRPC": ("mrpc", "dev/accuracy"),
    "SST-2": ("sst-2", "dev/accuracy"),
    "QQP": ("qqp", "dev/accuracy"),
    "RTE": ("rte", "dev/accuracy"),
    "WNLI": ("wnli", "dev/accuracy"),
    "CoLA": ("cola", "dev/matthews"),
    "STS-B": ("sts-b", "dev/pearson"),
    "SNLI": ("snli", "dev/accuracy"),
    "RACE": ("race", "dev/accuracy"),
    "NER": ("conll2003", "dev/entity_f1"),
    "SQuAD": ("", "squad/f1"),
    "SQuAD EM": ("", "squad/exact_match"),
    "SQuAD2.0": ("", "squad/f1"),
    "SQuAD2.0 EM": ("", "squad/exact"),
}
GLUE = ("MNLI-m", "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC", "RTE", "WNLI")
PERPLEXITY = Column("LM (ppl)", "masked_lm_perplexity", 1.0)
_QUERY = 24         # most tokens of a question


@dataclasses.dataclass(kw_only=True)
class TableFlags(RunFlags):
    """The material, the sizes, and how long to train."""

    little: ClassVar = {
        **RunFlags.little, "num_train_steps": 12, "finetuning_steps": 4, "num_hidden_layers": 1,
        "hidden_size": 64, "max_seq_length": 64, "vocab_size": 1000, "max_megabytes": 0.3,
        "train_batch_size": 8}

    squad_train_file: str = option("", "Questions to train on, in the form of SQuAD v1.1.")
    squad_predict_file: str = option("", "Questions to answer and to score, in the same form.")
    squad_v2_train_file: str = option(
        "", "Questions to train on, some without an answer, in the form of SQuAD v2.0.")
    squad_v2_predict_file: str = option("", "Questions to answer and to score, in the same form.")
    input_file: list[str] = option(
        [], "Text to pre-train on, in a format of bert-extract-text. Default: the documentation of "
        "the installed packages.")
    max_megabytes: float = option(
        20.0, "Maximum size of the documentation.", above=0)
    eval_share: float = option(0.03, "Share of the text that is held out.", above=0, below=1)
    do_lower_case: bool = option(True, "Lower-case all text.")
    pretraining_seeds: int = option(
        0, "Number of seeds of pre-training; the seeds of fine-tuning are distributed over them. "
        "0: as many as --seeds.", least=0)
    vocab_size: int = option(
        8000, "Maximum size of the vocabulary, which is learned from the text.")
    num_hidden_layers: int = option(2, "Layers.", least=1)
    hidden_size: int = option(128, "Width; heads are 64 wide.")
    max_seq_length: int = option(128, "Length of all sequences.")
    num_train_steps: int = option(1000, "Steps of pre-training.", least=1)
    train_batch_size: int = option(32, "Records per step of pre-training.", least=1)
    learning_rate: float = option(2e-3, "Peak of the learning rate in pre-training.")
    first_weights: str = option(
        "neighbours", "First weights of pre-training. With neighbours, small models learn within "
        "hundreds of steps.", choices=("original", "neighbours"))
    finetuning_steps: int = option(300, "Steps of each fine-tuning.", least=1)
    finetuning_batch_size: int = option(32, "Examples per step of fine-tuning.", least=1)
    finetuning_learning_rate: float = option(5e-4, "Peak of the learning rate in fine-tuning.")

    def __init_subclass__(cls) -> None:
        cls.__doc__ = cls.__doc__ or TableFlags.__doc__     # of the page of help

    def __post_init__(self) -> None:
        super().__post_init__()
        check_width(self.hidden_size)

    def pretraining_seed(self, seed: int) -> int:
        """The seed of the pre-training that a fine-tuning begins with."""
        return (seed - 1) % (self.pretraining_seeds or self.seeds) + 1

    def find(self, column: str) -> str:
        """The folder of a column's task, of SQuAD "."; "" if its files are not there."""
        task, metric = COLUMNS[column]
        if not task:
            return "." if all(map(is_file, self.squad_files(column))) else ""
        return self.folder(task, "train", metric.partition("/")[0])

    def squad_files(self, column: str) -> list[str]:
        """The files to train on and to score of a column of SQuAD."""
        version = "_v2" if column.startswith("SQuAD2.0") else ""
        return [getattr(self, f"squad{version}_{part}_file") for part in ("train", "predict")]


def check_width(hidden_size: int) -> None:
    """Raises InputError if heads that are 64 wide don't fill it."""
    if hidden_size % 64 or hidden_size < 64:
        raise InputError(f"--hidden_size is {hidden_size}; it must be a multiple of 64.")


def refuse_sizes(job: TableFlags) -> None:
    """Raises InputError if a table whose rows have scaled shapes is given other sizes."""
    for name in ("num_hidden_layers", "hidden_size"):
        if name in changed(job):
            raise InputError(f"--{name}: the rows have the paper's shapes; give --layer_scale and "
                             "--width_scale.")


def scaled(job: Any, layers: int, width: int, heads: int) -> dict[str, Any]:
    """The sizes of a shape of a paper, scaled down by --layer_scale and --width_scale."""
    return {"num_hidden_layers": layers // job.layer_scale, "hidden_size": width // job.width_scale,
            "num_attention_heads": heads, "intermediate_size": 4 * (width // job.width_scale)}


@dataclasses.dataclass
class Material:
    """The cells that a table's flags describe."""

    job: TableFlags

    def columns(self, *titles: str, may_lack: bool = False) -> list[Column]:
        """The columns whose tasks are there.

        Raises:
            InputError: none is, and the table has no others.
        """
        if not titles:
            raise InputError("--tasks is empty; name a task.")
        known, missing = [], []
        for title in titles:
            (known if self.job.find(title) else missing).append(title)
        # Another name among --columns can be steps or an average, which have further tasks.
        if self.job.columns and COLUMNS.keys() >= {*self.job.columns}:
            missing = [title for title in missing if title in self.job.columns]
        if missing:
            print("left out, as --data_dir or the flags of SQuAD's files do not have their files: "
                  f"{', '.join(missing)}", flush=True)
        if not (known or may_lack):
            raise InputError(f"--data_dir has none of the tasks {', '.join(titles)}; put the "
                             "official files of one into a subfolder of its name.")
        return [Column(title, COLUMNS[title][1], 1.0 if title.startswith("SQuAD") else 100.0)
                for title in known]

    def averaged(self, *titles: str) -> list[Column]:
        """`columns`, and the mean of their tasks, where there are several; F1 and exact match of
        SQuAD are one."""
        columns = self.columns(*titles, may_lack=True)
        tasks: dict[str, list[str]] = {}
        for column in columns:
            tasks.setdefault(column.title.removesuffix(" EM"), []).append(column.title)
        mean = Column("Avg", "", mean_of=tuple(map(tuple, tasks.values())))
        return [*columns, *[mean] * (len(tasks) > 1)]

    @property
    def held_out(self) -> Made:
        """Records of the text that is held out."""
        return self.records("held-out", "held_out.txt")

    @property
    def text(self) -> Cell:
        """text.txt and held_out.txt."""
        job = self.job
        return Cell("text", "bert-extract-text", {
            "input_file": list(map(absolute, job.input_file)), "output_file": Made("text.txt"),
            "eval_file": Made("held_out.txt"), "eval_share": job.eval_share,
            "max_megabytes": None if job.input_file else job.max_megabytes}, is_kept=True)

    def vocabulary(self, name: str = "vocab", **flags: Any) -> Made:
        """The vocabulary of the text; WordPiece unless flags say otherwise."""
        file = "spiece.model" if "sentencepiece_style" in flags else "vocab.txt"
        return Cell(name, "bert-build-vocab", {
            "input_file": self.text / "text.txt", "output_file": Made(file),
            "vocab_size": self.job.vocab_size, "do_lower_case": self.job.do_lower_case, **flags},
            is_kept=True) / file

    @property
    def slots(self) -> int:
        """The predictions of a sequence."""
        return int(0.15 * self.job.max_seq_length) + 1

    def records(self, name: str = "text", of: str = "text.txt", **flags: Any) -> Made:
        """Records of the text, or of `held_out.txt`; BERT's with dynamic masks unless flags say
        otherwise."""
        job = self.job
        return Cell(f"records-{name}", "bert-create-pretraining-data", {
            "input_file": self.text / of, "output_file": Made("r.tfrecord"),
            "vocab_file": self.vocabulary(), "do_lower_case": job.do_lower_case,
            "max_seq_length": job.max_seq_length,
            "max_predictions_per_seq": self.slots, "dupe_factor": 1,
            "masking": "dynamic", "num_workers": 1, **flags}, is_kept=True) / "r.tfrecord"

    def config(self, **sizes: Any) -> dict[str, Any]:
        """The bert_config.json; a model that reads its text a few times needs no dropout."""
        job = self.job
        width = sizes.get("hidden_size", job.hidden_size)
        return {"vocab_size": job.vocab_size, "hidden_size": width,
                "num_hidden_layers": job.num_hidden_layers, "num_attention_heads": width // 64,
                "intermediate_size": 4 * width, "max_position_embeddings": job.max_seq_length,
                "type_vocab_size": 2, "hidden_dropout_prob": 0.0,
                "attention_probs_dropout_prob": 0.0, **sizes}

    def pretrained(self, name: str, records: Made, seed: int, held_out: Made | None = None,
                   sizes: Mapping[str, Any] | None = None, **flags: Any) -> Cell:
        """A pre-trained model, evaluated on held-out records where they are given."""
        job, steps = self.job, self.job.num_train_steps
        return Cell(f"pretrained-{name}", "bert-run-pretraining", {
            "input_file": records, "bert_config_file": Made("sizes.json"), "output_dir": Made("."),
            "do_train": True, "do_eval": held_out is not None, "eval_input_file": held_out,
            "max_seq_length": job.max_seq_length, "train_batch_size": job.train_batch_size,
            "max_predictions_per_seq": self.slots, "eval_batch_size": 32, "max_eval_steps": 0,
            "learning_rate": job.learning_rate,
            "num_train_steps": steps, "num_warmup_steps": steps // 10, "iterations_per_loop": 50,
            "save_checkpoints_steps": max(100, steps // 4), "keep_checkpoint_max": 1,
            "first_weights": job.first_weights, "random_seed": job.pretraining_seed(seed),
            **flags}, files={"sizes.json": self.config(**(sizes or {}))}, is_kept=True)

    def scored(self, name: str, model: Cell, records: Made, **flags: Any) -> Cell:
        """A pre-trained model's losses, accuracies and perplexities on records."""
        job = self.job
        return Cell(f"scored-{name}", "bert-run-pretraining", {
            "input_file": records, "bert_config_file": model / "bert_config.json",
            "init_checkpoint": model / "model.keras", "output_dir": Made("."), "do_eval": True,
            "max_seq_length": job.max_seq_length, "eval_batch_size": 32, "max_eval_steps": 0,
            "max_predictions_per_seq": self.slots, **flags})

    def tuned(self, title: str, model: Made | None, seed: int, **flags: Any) -> Cell:
        """The score of a model after fine-tuning on the task of a column."""
        title = title.removesuffix(" EM")       # a number of the same cell
        return Cell(f"{title.lower()}-seed{seed}", "bert-finetune", {
            **self._task(title), "init_checkpoint": model, "vocab_file": self.vocabulary(),
            "do_lower_case": self.job.do_lower_case, "do_train": True, "do_eval": True,
            "output_dir": Made("."), "max_seq_length": self.job.max_seq_length,
            **self._finetuning(), "encoder_dropout": 0.1, "random_seed": seed, "num_workers": 1,
            **flags})

    def distilled(self, title: str, teacher: Cell, student: Made, seed: int, **flags: Any) -> Cell:
        """The score of a student that has learned the task of a column from a fine-tuned teacher,
        whose answers all students share."""
        return Cell(f"{title.lower()}-student-seed{seed}", "bert-distill", {
            **self._task(title), "teacher": teacher / ".", "student": student,
            "output_dir": Made("."), "records_dir": teacher / "answers", **self._finetuning(),
            "random_seed": seed, **flags})

    def _task(self, title):
        job = self.job
        if title not in COLUMNS:
            return {}
        if task := COLUMNS[title][0]:
            return {"task": task, "data_dir": job.find(title)}
        train, predict = map(absolute, job.squad_files(title))
        return {"train_file": train, "predict_file": predict, "max_query_length": _QUERY,
                "doc_stride": 3 * job.max_seq_length // 4,
                **({"version_2_with_negative": True} if title == "SQuAD2.0" else {})}

    def _finetuning(self):
        job = self.job
        return {"num_train_steps": job.finetuning_steps,
                "train_batch_size": job.finetuning_batch_size,
                "learning_rate": job.finetuning_learning_rate, "eval_batch_size": 64}
