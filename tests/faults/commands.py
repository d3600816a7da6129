"""The commands that are disturbed, each on a tiny job, and the files that they work on."""

import dataclasses
import json
import os
import random
import shutil

from tests.faults.processes import Running

_WORDS = ("good fine bad poor a film was the seen tree house river stone cloud road cat dog bird "
          "fish and then near far day night he she it they saw heard came went back").split()
_VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *_WORDS]
_LENGTH, _PREDICTIONS = 32, 5
_MODEL = {"vocab_size": len(_VOCABULARY), "hidden_size": 16, "num_hidden_layers": 1,
          "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": _LENGTH,
          "type_vocab_size": 2}


@dataclasses.dataclass(frozen=True)
class Command:
    """A command and its flags; in these, IN and OUT mean folders.

    Attributes:
        inputs: the files and folders of the material that it reads.
        is_warm: whether it uses TensorFlow.
        cheapness: how many times as many random moments are tried as of others.
        has_children: whether it works in several processes of one machine.
        workers: how many processes of a cluster work on it.
        checkpoint: the model that it reads, or "own" for its own state in OUT.
        records: where records are that it reads or mends, as the end of their names in IN or OUT.
        half: a file that is there when half of the work is done.
    """

    module: str
    flags: dict[str, object]
    inputs: tuple[str, ...]
    is_warm: bool = True
    cheapness: int = 1
    has_children: bool = False
    workers: int = 1
    checkpoint: str = ""
    records: str = ""
    half: str = ""

    def start(self, folders: dict[str, str], log: str, environment: dict[str, str],
              **changes) -> Running:
        """Starts the command; `folders` replace IN and OUT."""
        flags = {**self.flags, **changes}
        for name, folder in folders.items():
            flags = {flag: value.replace(name, folder) if isinstance(value, str) else value
                     for flag, value in flags.items()}
        return Running(self.module, flags, log, environment, self.is_warm)


_SHEETS = {"data_dir": "IN", "train_file": "train.csv", "dev_file": "dev.csv",
          "text_a_column": "text", "label_column": "label"}
_STEPS = {"train_batch_size": 8, "learning_rate": 1e-2, "num_warmup_steps": 2}
_PRETRAINING = {
    "input_file": "IN/records/*.tfrecord*", "bert_config_file": "IN/config.json", **_STEPS,
    "output_dir": "OUT", "do_train": True, "num_train_steps": 12, "save_checkpoints_steps": 2,
    "iterations_per_loop": 2, "max_seq_length": _LENGTH, "max_predictions_per_seq": _PREDICTIONS}
_RECORDS = {
    "input_file": "IN/text.txt", "vocab_file": "IN/vocab.txt", "output_file": "OUT/r.tfrecord",
    "max_seq_length": _LENGTH, "max_predictions_per_seq": _PREDICTIONS, "dupe_factor": 2,
    "piece_bytes": 5000, "num_workers": 2}
_FINETUNING = {**_SHEETS, **_STEPS, "vocab_file": "IN/vocab.txt", "do_train": True, "do_eval": True,
               "bert_config_file": "IN/config.json", "init_checkpoint": "IN/model.keras",
               "num_train_epochs": 1.0, "max_seq_length": 24, "output_dir": "OUT"}

COMMANDS = {
    "create_pretraining_data": Command(
        "data_prep.create_pretraining_data", _RECORDS, ("text.txt", "vocab.txt"), False, 6, True,
        records="OUT/r"),
    "create_finetuning_data": Command(
        "data_prep.create_finetuning_data", {
            **_SHEETS, "vocab_file": "IN/vocab.txt", "max_seq_length": 24, "num_workers": 2,
            "output_dir": "OUT"}, ("train.csv", "dev.csv", "vocab.txt"), False, 6, True,
        records="OUT/train"),
    "run_pretraining": Command(
        "run_scripts.run_pretraining", _PRETRAINING, ("config.json", "records"),
        checkpoint="own", records="IN/records/r", half="checkpoint-000000006.safetensors"),
    "run_pretraining on two workers": Command(
        "run_scripts.run_pretraining", {**_PRETRAINING, "distribution_strategy": "multi_worker",
                                        "cluster_timeout": 30},
        ("config.json", "records"), workers=2),
    "fine-tuning": Command(
        "run_scripts.finetune", _FINETUNING,
        ("train.csv", "dev.csv", "vocab.txt", "config.json", "model.keras"),
        checkpoint="model.keras", records="OUT/records/train",
        half="records/dev.manifest.json"),
    "distillation": Command(
        "run_scripts.distill", {
            **_SHEETS, **_STEPS, "teacher": "IN/teacher", "student": "IN/config.json",
            "recipe": "mtdnn_kd", "vocab_file": "IN/vocab.txt", "output_dir": "OUT",
            "num_train_epochs": 1.0},
        ("train.csv", "dev.csv", "vocab.txt", "config.json", "teacher"),
        checkpoint="teacher/model.keras", records="OUT/records/train",
        half="records/dev.manifest.json"),
    "conversion": Command(
        "run_scripts.convert_checkpoint", {
            "input": "IN/model.keras", "output": "OUT/hf", "output_format": "huggingface"},
        ("model.keras",), checkpoint="model.keras"),
    "export": Command(
        "run_scripts.export_model", {
            "init_checkpoint": "IN/teacher", "vocab_file": "IN/vocab.txt", "output": "OUT/served",
            "version": 1}, ("teacher", "vocab.txt"), checkpoint="teacher/model.keras"),
}


# Material

def _lines(drawing, count):
    return [" ".join(drawing.choices(_WORDS, k=drawing.randint(4, 12))) + " ."
            for _ in range(count)]


def _text():
    drawing = random.Random(1)
    return "\n\n".join("\n".join(_lines(drawing, drawing.randint(5, 12))) for _ in range(90)) + "\n"


def _table(seed, count):
    return "text,label\n" + "".join(
        f"{line},{'yes' if 'good' in line or 'fine' in line else 'no'}\n"
        for line in _lines(random.Random(seed), count))


_FILES = {"text.txt": _text, "vocab.txt": lambda: "".join(f"{token}\n" for token in _VOCABULARY),
          "config.json": lambda: json.dumps(_MODEL),
          "other.json": lambda: json.dumps({**_MODEL, "hidden_size": 24}),
          "train.csv": lambda: _table(2, 64), "dev.csv": lambda: _table(3, 16)}
_ONE_WORKER = {"num_workers": 1, "dupe_factor": 1, "piece_bytes": 20_000}
# Folders that commands make, with the flags that are changed.
_MADE: dict[str, tuple[str, dict[str, object]]] = {
    "records": ("create_pretraining_data", _ONE_WORKER),
    "other_records": ("create_pretraining_data", {**_ONE_WORKER, "random_seed": 9}),
    "other_examples": ("create_finetuning_data", {"num_workers": 1, "max_seq_length": 22}),
    "pretrained": ("run_pretraining", {}),
    "other_model": ("run_pretraining", {"bert_config_file": "IN/other.json", "stop_at_step": 6}),
    "teacher": ("fine-tuning", {})}


class Material:
    """The input of the commands; each file and folder is made when it is first asked for, by
    commands that may take `limit` seconds."""

    def __init__(self, folder: str, limit: float) -> None:
        self._folder, self._limit = folder, limit
        os.makedirs(folder, exist_ok=True)

    def path(self, name: str) -> str:
        path = os.path.join(self._folder, name)
        if os.path.exists(path):
            return path
        if name in _FILES:
            with open(path, "w", encoding="utf-8") as file:
                file.write(_FILES[name]())
        elif name == "model.keras":
            shutil.copy(os.path.join(self.path("pretrained"), name), path)
        else:
            self._make(path, *_MADE[name])
        return path

    def _make(self, path, name, changes):
        command = COMMANDS[name]
        for needed in (*command.inputs, *(["other.json"] if "other" in path else ())):
            self.path(needed)
        log, aside = f"{path}.log", f"{path}.unfinished"
        shutil.rmtree(aside, ignore_errors=True)
        end = command.start({"IN": self._folder, "OUT": aside}, log, {}, **changes).end(self._limit)
        assert end.kind == "done", f"{command.module} failed before it was disturbed, see {log}"
        os.rename(aside, path)

