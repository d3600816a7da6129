"""The flags of a fine-tuning run's model and head, and the model before it is built: reading it,
and writing the files next to it."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from bert_tf import training
from bert_tf.analysis import switch_off
from bert_tf.checkpoints import keras_file
from bert_tf.config import EncoderConfig
from bert_tf.config.quantisation import ACTIVATIONS, QUANTISATIONS, Quantisation
from bert_tf.errors import InputError
from bert_tf.files import absolute, exists
from bert_tf.flags import check, only, option, without
from bert_tf.heads import CHOICES
from bert_tf.opening import Model, check_apart, open_model
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.saved_task import TASK_FILE, SavedTask
from bert_tf.tasks.task import Task
from bert_tf.tokenization import check_case, default_case, find_vocabulary, open_tokenizer
from bert_tf.training.settings import FineTuneSettings

# The choices of bert_tf/objectives/lstms.py; flags are read before Keras is loaded.
FEATURE_LAYERS = ("embeddings", "second_to_last", "last", "weighted_sum_last_4", "concat_last_4",
                  "weighted_sum_all", "elmo", "elmo_top")
_NONE = "none"
# The keys of `Quantisation` that flags set.
_KEYS = {"weight_bits": "weight_bits", "weight_groups": "groups",
         "embedding_bits": "embedding_bits", "activation_ranges": "activations",
         "quantisation_start_step": "start_step"}
_of_rounding = only("quantisation", *QUANTISATIONS)
_of_lstms = only("feature_layers")


@dataclasses.dataclass
class JobFlags:
    """Model, and what to do with it."""

    do_train: bool = option(False, "Fine-tune, on the training files.")
    do_eval: bool = option(False, "Score the model, on the files that have labels.")
    do_predict: bool = option(False, "Predict the test files.")
    init_checkpoint: str = option(
        "", "The initial checkpoint, a folder or file of any format. Without --do_train: the "
        "fine-tuned model (default: the model in --output_dir).")
    bert_config_file: str = option(
        "", "The configuration of the model, such as bert_config.json; default: the file beside "
        "--init_checkpoint. Without --init_checkpoint, training starts from random weights.")
    vocab_file: str = option(
        "", "The vocabulary of the tokenizer; default: the file beside --init_checkpoint.")

    def check(self, settings: Any) -> None:
        """Raises InputError if there is nothing to do, or a value can't be."""
        check(self)
        if not (self.do_train or self.do_eval or self.do_predict):
            raise InputError("give --do_train, --do_eval, --do_predict or several of them.")


@dataclasses.dataclass
class QuantisationFlags:
    """Quantisation: numbers of a few bits."""

    quantisation: str | None = option(
        None, "Quantise the weights and inputs of layers, in training too. q8bert: 8 bits "
        "(arXiv:1910.06188). qbert: in groups, with an offset (arXiv:1909.05840). mobilebert: 8 "
        "bits for all tensors in its layers (arXiv:2004.02984). none: floats. (Default: as in the "
        "model's configuration.)", choices=(*QUANTISATIONS, _NONE), rare=True)
    weight_bits: list[str] = _of_rounding(
        [], "With --quantisation, bits of the weights of the encoder's layers, from 2 to 8, or 32 "
        "for floats. Give one number, or one for each layer (default: 8).", items=int)
    weight_groups: int | None = _of_rounding(
        None, "With --quantisation=qbert, number of groups into which the columns of a matrix are "
        "divided. Each group has a separate range. The number must divide the sizes of the "
        "layers (default: 128).", least=1)
    embedding_bits: int | None = _of_rounding(
        None, "With --quantisation, bits of the word embeddings (default: 8).")
    activation_ranges: str | None = _of_rounding(
        None, "With --quantisation, source of the range of a layer's input. ema: a moving average "
        "from training. dynamic: the batch itself. none: inputs are floats. (Default: ema.)",
        choices=ACTIVATIONS)
    quantisation_start_step: int | None = _of_rounding(
        None, "With --quantisation, number of training steps before rounding begins (default: 0).",
        least=0)

    def quantised(self, config: Any) -> Any:
        """A configuration with the quantisation of the flags. Raises InputError if the flags don't
        go together, or the network can't be rounded so."""
        check(self)
        if self.quantisation is None or self.quantisation == _NONE and not config.quantisation:
            return config
        if self.quantisation == _NONE:
            return dataclasses.replace(config, quantisation=None)
        if not config.can_be_rounded:
            raise InputError("--quantisation is for encoders of BERT and its relatives, not for "
                             f"{config.model_type}; leave the flag out.")
        keys = {key: getattr(self, flag) for flag, key in _KEYS.items()
                if getattr(self, flag) not in (None, [])}
        if "weight_bits" in keys:
            bits = tuple(map(int, keys["weight_bits"]))
            keys["weight_bits"] = bits[0] if len(bits) == 1 else bits
        return dataclasses.replace(config, quantisation=Quantisation(
            **{**QUANTISATIONS[self.quantisation], **keys}))


@dataclasses.dataclass
class ModelFlags(QuantisationFlags, JobFlags):
    """How the model reads texts, and its head."""

    ensemble: list[str] = without("do_train")(
        [], "Folders of fine-tuned models, instead of --init_checkpoint. Their predicted "
        "probabilities or numbers are averaged, scored and written.", rare=True)
    keep_head: bool | None = only("init_checkpoint")(
        None, "Train the head of --init_checkpoint further; false: begin with a new head. Default: "
        "further, if the model was fine-tuned for the same kind of task with the same labels; with "
        "several tasks, a new head.")
    do_lower_case: bool | None = option(
        None, "Lower-case the text. Default: as in pre-training, if the files beside the model say "
        "so; else true, unless the vocabulary has capital letters.")
    max_seq_length: int | None = option(
        None, "Maximum tokens of a sequence, special tokens included. Default: as in the "
        "fine-tuned model, else the task's default (GLUE: 128).")
    records_dir: str = option(
        "", "Folder of the records; missing records are made. Default: "
        "records in --output_dir.", rare=True)
    encoder_dropout: float | None = option(
        None, "Dropout in the encoder, for hidden vectors and attention. Default: as in the "
        "model's configuration.", rare=True, least=0, below=1)
    classifier_dropout: float | None = option(
        None, "Dropout before a classifier's last layer (default: 0.1).", rare=True, least=0,
        below=1)
    bilstm_size: int | None = option(
        None, "Put a bidirectional LSTM of this width per direction between the model and the head "
        '(arXiv:1810.04805, table 5, "+ BiLSTM"); 0: no LSTM. Default: as in training, else 0.',
        rare=True, least=0, most=1 << 16)
    num_workers: int = option(
        0, "Processes that make records; 0: one per core.", rare=True, least=0, most=4096)
    attention_mask_heads: list[str] = without("do_train")(
        [], "Attention heads whose output is set to 0 in scoring and prediction "
        "(arXiv:1905.10650): layer:head, both from 1, such as 1:3,1:5,4:12.")
    reverse_head_mask: bool = only("attention_mask_heads")(
        False, "In the layers that --attention_mask_heads names, switch off all other heads "
        "instead.")

    def check(self, settings: FineTuneSettings) -> None:
        """See `JobFlags`; also if trials would be compared by a score that no flag asks for."""
        if self.do_train and not self.do_eval and (
                settings.num_trials > 1 or settings.grid or settings.early_stopping):
            raise InputError("--num_trials, --grid and --early_stopping choose by the score; give "
                             "--do_eval too.")
        super().check(settings)
        settings.trials()
        if self.ensemble and (self.init_checkpoint or self.keep_head):
            raise InputError("--ensemble names models that are fine-tuned already; leave out "
                             "--init_checkpoint and --keep_head.")


def _of_heads(flag):
    return only("head", *(name for name, head in CHOICES.items() if flag in head.choice.flags))


@dataclasses.dataclass
class ClassifierFlags:
    """The head; by default as the model was trained."""

    head: str | None = option(
        None, " ".join(["Head that classifies a text.", *(
            f"{name}: {head.choice.help}" for name, head in CHOICES.items())]),
        choices=tuple(CHOICES))
    head_size: int | None = _of_heads("head_size")(
        None, "Width of the head's hidden layer (default: see --head).", least=0)
    label_gain: bool | None = _of_heads("label_gain")(
        None, "Train the classifier at every token, with more weight on later tokens (default: "
        "False).")
    feature_layers: str | None = _of_heads("feature_layers")(
        None, "Layers that give the features (default: elmo, the sum of all layers with learned "
        "weights).", choices=FEATURE_LAYERS)
    lstm_size: int | None = _of_heads("lstm_size")(
        None, "Width of each direction of the head's LSTMs (default: see --head).", least=1)
    lstm_layers: int | None = _of_heads("lstm_layers")(
        None, "Number of the head's stacked LSTMs (default: see --head).", least=1, most=4)

    def options(self) -> dict:
        check(self)
        return dataclasses.asdict(self)

    def frozen(self, settings: FineTuneSettings) -> FineTuneSettings:
        """The settings of training, with the encoder frozen if it only gives features."""
        if self.head and CHOICES[self.head].choice.freezes:
            return frozen(settings, f"head={self.head}")
        return settings


@dataclasses.dataclass
class TaggerFlags:
    """The head, which predicts a word's tag; by default as the model was trained."""

    document_context: bool | None = option(
        None, "Fill sequences up with neighbouring sentences of the document (default: False).",
        rare=True)
    feature_layers: str | None = option(
        None, "Train LSTMs on the vectors of these layers, and keep the encoder frozen "
        "(arXiv:1810.04805, table 7). The defaults are then --learning_rate=1e-3 and "
        "--train_batch_size=32.", choices=FEATURE_LAYERS)
    lstm_size: int | None = _of_lstms(
        None, "Width of each direction of the LSTMs of --feature_layers (default: 768).", least=1)
    lstm_layers: int | None = _of_lstms(
        None, "Number of stacked LSTMs of --feature_layers (default: 2).", least=1, most=4)

    options = ClassifierFlags.options

    def frozen(self, settings: FineTuneSettings) -> FineTuneSettings:
        return frozen(settings, "feature_layers") if self.feature_layers else settings


def frozen(settings: FineTuneSettings, flag: str) -> FineTuneSettings:
    """Settings of training where the network only gives features. Raises InputError if a flag
    trains a part of the network."""
    for name, allowed in (("frozen_layers", (0, -1)), ("reinit_layers", (0,))):
        if getattr(settings, name) not in allowed:
            raise InputError(f"--{name} is {getattr(settings, name)}, but --{flag} keeps the whole "
                             "encoder as it is; leave out one of the two flags.")
    return dataclasses.replace(
        settings, frozen_layers=-1,
        learning_rate=1e-3 if settings.learning_rate is None else settings.learning_rate,
        train_batch_size=settings.train_batch_size or 32)


def open_beginning(flags: Any, output_dir: str) -> Model:
    """The `bert_tf.opening.Model` that a run begins with. `output_dir`: the run's output folder; ""
    if the run writes no model. Raises InputError if there is no such model, or training would
    overwrite it."""
    path = flags.init_checkpoint
    if not flags.do_train and not path:
        path = os.path.join(output_dir, keras_file.NAME)
        if not exists(path):
            raise InputError(f"there is no {keras_file.NAME} in {output_dir}: train first, with "
                             "--do_train, or name a fine-tuned model with --init_checkpoint.")
    if flags.do_train and path and output_dir:
        check_apart("init_checkpoint", path, output_dir)
    return open_model(path, flags.bert_config_file, flags.vocab_file)


def open_encoder(flags: "ModelFlags", output_dir: str, default_length: int, task_dir: str = "",
                 find_head: Callable[[Model], SavedTask | None] | None = None) -> Model:
    """The model that flags name, an encoder that takes heads, with its length. Raises InputError if
    there is no such model, or the flags, the vocabulary and the model disagree.

    Args:
        output_dir: the run's output folder; "" if the run writes no model.
        default_length: S if neither the flag nor a saved model gives it; at most the model's
            positions are taken.
        task_dir: where a run in `output_dir` would have its task; "": in `output_dir`.
        find_head: function of the model that returns the task whose head is trained further, or
            None; by default --keep_head decides alone.
    """
    if flags.do_train and output_dir:
        there = os.path.join(output_dir, keras_file.NAME)
        # A student whose layers alone learned has trials, and no task.
        if exists(there) and not (exists(os.path.join(task_dir or output_dir, TASK_FILE))
                                  or not task_dir and training.trials.kept_trials(output_dir)):
            raise InputError(f"--output_dir: {there} is not a fine-tuned model, and it would be "
                             "overwritten; name another folder.")
    model = open_beginning(flags, output_dir)
    model.config.check_takes_heads(model.path or flags.bert_config_file)
    model.config.check_reads_texts(model.path or flags.bert_config_file)
    config = flags.quantised(model.config)
    if flags.encoder_dropout is not None and flags.do_train:
        config = dataclasses.replace(
            config, **dict.fromkeys(config.dropout_keys, flags.encoder_dropout))
    saved = model.saved
    if flags.do_train and find_head:
        saved = find_head(model)
    elif flags.do_train and not flags.keep_head:
        saved = None
    # A run that was begun keeps its length and its tokens, whatever the defaults are now.
    run, begun_task = "", None
    if flags.do_train and (task_dir or output_dir):
        run = task_dir or output_dir
        begun_task = SavedTask.read(run)
    most = config.max_position_embeddings
    model.max_seq_length = flags.max_seq_length or next(
        (task.max_seq_length for task in (saved, begun_task) if task and task.max_seq_length),
        min(default_length, most))
    if not 4 <= model.max_seq_length <= most:
        raise InputError(f"--max_seq_length is {model.max_seq_length}; it must be from 4 to {most},"
                         " the model's max_position_embeddings.")
    model.config, model.saved = config, saved
    beginning = model.path and absolute(model.path)
    if not run or all(trial["settings"]["init_checkpoint"] != beginning
                      for trial in training.trials.kept_trials(output_dir).values()):
        begun_task = None
    _settle_tokens(model, flags, run, begun_task)
    return model


def _settle_tokens(model, flags, run, begun):
    """Gives a model its case and its tokenizer. If a run with the task `begun` continues, they come
    from its folder `run`; else from the flags and the files."""
    model.do_lower_case = flags.do_lower_case
    path = model.vocab_file or (model.weights and model.weights.vocab_file)
    if model.saved:
        model.do_lower_case = None
    elif path and flags.do_lower_case is None:
        model.do_lower_case = begun.do_lower_case if begun else default_case(path)
    if begun and find_vocabulary(run):
        tokenizer = open_tokenizer(run, model.tokenizer.do_lower_case)
        if tokenizer.vocabulary.agrees(model.tokenizer.vocabulary):
            model.tokenizer = tokenizer
    check_case(model.tokenizer, flags.vocab_file or model.weights.vocab_file)


def check_task(folder: str, task: Task, model: Model, options: dict) -> None:
    """Raises InputError if a folder holds a model of another task. `options`: the options that must
    not differ."""
    saved = SavedTask.read(folder)
    if saved is None:
        return
    options = {"max_seq_length": model.max_seq_length,
               "do_lower_case": model.tokenizer.do_lower_case, **options}
    before = {**saved.options, **vars(saved)}
    others = [f"--{name} ({before.get(name)}, now {value})" for name, value in options.items()
              if before.get(name) != value]
    as_saved = dataclasses.replace(task, metrics=saved.task.metrics)
    if {*as_saved.metrics} != {*task.metrics} or not saved.is_of(as_saved):
        others.insert(0, "task or other labels")
    elif saved.task.headline != task.headline:      # which chose the weights so far
        others.insert(0, f"--headline ({saved.task.headline}, now {task.headline})")
    if others:
        raise InputError(f"--output_dir: {os.path.join(folder, TASK_FILE)} has another "
                         f"{', '.join(others)}; give the same, name another folder, or remove that "
                         "file.")


def save_task(folder: str, task: Task, model: Model, options: dict) -> None:
    """Writes the files that the use of a model needs, `task.json` and the vocabulary. `options`:
    all options that are kept with the model."""
    columns = {} if task.name in TASKS else task.columns
    SavedTask(task, model.max_seq_length, model.tokenizer.do_lower_case, options,
              task.kind.num_texts(task), columns).write(folder)
    model.tokenizer.save(folder)


def masked_heads(flags: Any, config: Any) -> list[tuple[int, int]]:
    """The (layer, head), both from 0, that flags name. `flags`: has --attention_mask_heads and
    --reverse_head_mask. Raises InputError if a head does not exist, or the network is not BERT's
    encoder."""
    heads = parse_heads(flags.attention_mask_heads, config, "attention_mask_heads")
    if not flags.reverse_head_mask:
        return heads
    return [(layer, head) for layer in sorted({layer for layer, _ in heads})
            for head in _heads(config, layer) if (layer, head) not in heads]


def parse_heads(pairs: list[str], config: Any, flag: str) -> list[tuple[int, int]]:
    """The (layer, head), both from 0, of "layer:head", both from 1. Raises InputError if a head
    does not exist, or the network is not BERT's encoder."""
    if pairs and not isinstance(config, EncoderConfig):
        raise InputError(f"--{flag} is for BERT's encoder, not for {config.model_type}; leave the "
                         "flag out.")
    heads = []
    for pair in pairs:
        layer, _, head = pair.partition(":")
        if not (layer.isdecimal() and head.isdecimal() and 1 <= int(layer) <= config.depth
                and int(head) - 1 in _heads(config, int(layer) - 1)):
            raise InputError(f"--{flag}: {pair!r} names no head; give layer:head, from 1:1 to "
                             f"{config.depth}:{config.num_attention_heads}"
                             f"{', that was not pruned' if config.pruned_heads else ''}.")
        heads.append((int(layer) - 1, int(head) - 1))
    return sorted(set(heads))


def _heads(config, layer):
    return config.kept_heads(config.layer_weights[layer][0])


def mask(flags: Any, encoder: Any) -> None:
    if heads := masked_heads(flags, encoder.config):
        switch_off(encoder, heads)
        print("without the heads " + ", ".join(f"{layer + 1}:{head + 1}" for layer, head in heads),
              flush=True)
