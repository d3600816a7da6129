"""The settings of everything that trains, under the original's flag names."""

import dataclasses
import itertools
import os
import typing
from collections.abc import Mapping
from typing import Any

from bert_tf.data.batches.bucketing import steps_of_epoch
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, Scope, check, check_used, option
from bert_tf.training.optimizers.table import OPTIMIZERS, SCHEDULES, help_of
from bert_tf.training.robustness_settings import RobustnessSettings

STRATEGIES = ("one_device", "mirrored", "multi_worker", "tpu")
CLUSTERS = ("tf_config", "slurm", "indexed_job")
# Keras names of the policies: computation in the type, weights in float32.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


@dataclasses.dataclass
class OutputSettings:
    """Output: checkpoints and reports."""

    output_dir: str = option(REQUIRED, "Folder for checkpoints, curves and the model.")
    save_checkpoints_steps: int = option(1000, "Steps between checkpoints.", least=1)
    stop_at_step: int = option(
        0, "Stop at this step, before --num_train_steps; 0: train to the end.", least=0, rare=True)
    random_seed: int = option(
        12345, "Seed of initial weights, order of records and dropout.", least=0,
        most=(1 << 31) - 1)


_FALLING = Scope("a --learning_rate_schedule that falls", "constant".__ne__,
                 "learning_rate_schedule")
_RISING = Scope("a --learning_rate_schedule whose warm-up is a line from one rate to another",
                lambda name: SCHEDULES[name].warmup != "own", "learning_rate_schedule")
_ENDING = Scope("a --learning_rate_schedule that ends at some step",
                lambda name: SCHEDULES[name].ends, "learning_rate_schedule")
_DECAYED = Scope("an --optimizer with weight decay", lambda name: OPTIMIZERS[name].decays,
                 "optimizer", off=0)


@dataclasses.dataclass
class OptimizerSettings:
    """Optimizer and schedule of the learning rate."""

    optimizer: str = option("adamw", help_of(OPTIMIZERS), choices=tuple(OPTIMIZERS))
    learning_rate_schedule: str = option(
        "bert", f"Decay of the learning rate after the warm-up. {help_of(SCHEDULES)}",
        choices=tuple(SCHEDULES))
    weight_decay: float = option(
        0.01, "Weight decay; LayerNorm and biases are not decayed.", least=0, for_=_DECAYED)
    warmup_init_lr: float = option(
        0.0, "Learning rate at the start of the warm-up.", least=0, for_=_RISING, rare=True)
    end_learning_rate: float = option(
        0.0, "Learning rate at --num_train_steps.", least=0, for_=_FALLING, rare=True)
    poly_power: float = option(
        1.0, "Exponent of the polynomial decay of the learning rate; 1 is linear.", least=0,
        for_=_FALLING, rare=True)
    start_warmup_step: int = option(0, "Step at which the warm-up begins.", least=0, for_=_RISING,
                                    rare=True)


_WORKERS = Scope("--distribution_strategy=multi_worker", "multi_worker".__eq__,
                 "distribution_strategy")


@dataclasses.dataclass
class DeviceSettings:
    """Devices and precision."""

    gradient_accumulation_steps: int = option(
        1, "Split each device's share of a batch into this many parts, to save memory.", least=1)
    rematerialize: bool = option(
        False, "Compute each layer again in the backward pass, instead of keeping its activations: "
        "this needs less memory, and about a third more computation.", rare=True)
    dtype: str = option("float32", "Data type of the computation; the weights stay in float32.",
                        choices=tuple(POLICIES))
    distribution_strategy: str = option("one_device", "Where to train.", choices=STRATEGIES)
    cluster: str = option(
        "tf_config", "How multi_worker finds the workers. tf_config: from TF_CONFIG. slurm: from "
        "srun. indexed_job: from --cluster_hosts and JOB_COMPLETION_INDEX.", choices=CLUSTERS,
        for_=_WORKERS, rare=True)
    cluster_hosts: list[str] = option(
        [], "HOST or HOST:PORT of each worker, in order, for --cluster=indexed_job.", rare=True,
        for_=Scope("--cluster=indexed_job", "indexed_job".__eq__, "cluster"))
    cluster_timeout: float = option(
        300, "Seconds to wait for the other workers.", above=0, most=1e6, for_=_WORKERS, rare=True)
    tpu: str = option("", "Name or address of the TPU.", alias="tpu_name")
    jit_compile: str = option("auto", "Compile the step with XLA. auto: on GPU and TPU; of a "
                              "step on CPU only the update of large variables.",
                              choices=("auto", "true", "false"), rare=True)
    deterministic: bool = option(
        True, "Give the same bits in each run, stopped and resumed or not, at the cost of a little "
        "speed.", rare=True)
    use_tpu: bool = option(False, "The original's flag for --distribution_strategy=tpu.", rare=True)
    tpu_zone: str = option("", "Google Cloud zone of the TPU.", rare=True)
    gcp_project: str = option("", "Google Cloud project of the TPU.", rare=True)
    master: str = option(
        "", "Accepted for old command lines of TensorFlow 1; has no effect.", rare=True)
    num_tpu_cores: int = option(
        8, "Accepted like --master: TensorFlow 2 finds the cores itself.", rare=True)


class SharedSettings(DeviceSettings, OptimizerSettings, OutputSettings):
    """Settings that pre-training and fine-tuning share, and values that both compute from them."""

    if typing.TYPE_CHECKING:
        train_batch_size: int
        eval_batch_size: int
        learning_rate: Any
        num_train_steps: int
        num_warmup_steps: Any
        keep_checkpoint_max: int
        iterations_per_loop: int
        eval_steps: int
        max_eval_steps: int

    def __post_init__(self):
        if self.use_tpu:
            self.distribution_strategy = "tpu"
        check(self)

    def check_warmup(self) -> None:
        """Raises InputError if the rate would still rise at the end."""
        if (self.num_warmup_steps > self.num_train_steps
                and not SCHEDULES[self.learning_rate_schedule].outlasts):
            raise InputError(f"--num_warmup_steps ({self.num_warmup_steps}) is more than "
                             f"--num_train_steps ({self.num_train_steps}); give fewer.")

    @property
    def last_step(self) -> int:
        """The last step of this invocation."""
        return min(self.stop_at_step or self.num_train_steps, self.num_train_steps)

    def check_replicas(self, replicas: int, trains: bool = True, evaluates: bool = True) -> None:
        """Raises InputError if the batches can't be divided among `replicas`."""
        parts = replicas * self.gradient_accumulation_steps
        if trains and self.train_batch_size % parts:
            raise InputError(
                f"--train_batch_size ({self.train_batch_size}) must be a multiple of the devices "
                f"({replicas}) times --gradient_accumulation_steps "
                f"({self.gradient_accumulation_steps}).")
        if evaluates and self.eval_batch_size % replicas:
            raise InputError(f"--eval_batch_size ({self.eval_batch_size}) must be a multiple of "
                             f"the devices ({replicas}).")


@dataclasses.dataclass
class TrainSettings(SharedSettings):
    """Training: batches, learning rate and steps."""

    train_batch_size: int = option(32, "Records per step, over all devices.", least=1)
    eval_batch_size: int = option(8, "Records per evaluation step, over all devices.", least=1)
    learning_rate: float = option(5e-5, "Peak of the learning rate.", least=0)
    num_train_steps: int = option(
        100000, "Steps of the whole run; the learning rate falls to --end_learning_rate there.",
        least=1)
    num_warmup_steps: int = option(10000, "Steps in which the learning rate rises.", least=0)
    eval_steps: int = option(
        0, "Steps between evaluations while training; 0: evaluate at the end.", least=0)
    max_eval_steps: int = option(100, "Maximum steps of an evaluation; 0: evaluate "
                                      "on all records.", least=0)
    keep_checkpoint_max: int = option(5, "Checkpoints to keep.", least=1, rare=True)
    iterations_per_loop: int = option(
        100, "Steps between reports, run in one call.", least=1, rare=True)
    file_shares: int = option(
        0, "Number of shares to divide the files into. Each batch takes equally many records from "
        "each share, and each worker reads only its share. 0: one share per worker where the files "
        "allow it; a resumed run keeps the number.", least=0, rare=True)

    def __post_init__(self):
        super().__post_init__()
        self.check_warmup()


_DECAYING = Scope("a --layer_decay below 1", (1.0).__ne__, "layer_decay")


@dataclasses.dataclass
class LayerSettings:
    """Layers that are treated apart."""

    layer_decay: float = option(
        1.0, "Multiply the learning rate by this factor from each layer to the layer below.",
        above=0, most=1, rare=True)
    layer_decay_top: int = option(
        1, "Exponent of --layer_decay for the top layer; 2 in ELECTRA's code, 0 in XLNet's paper.",
        least=0, for_=_DECAYING, rare=True)
    layer_decay_of: str = option(
        "rate", "What --layer_decay multiplies. rate: the learning rate. gradient: the clipped "
        "gradients, as in XLNet's code; under Adam this has almost no effect.",
        choices=("rate", "gradient"), for_=_DECAYING, rare=True)
    reinit_layers: int = option(
        0, "Number of top layers to start from random weights, together with the pooler.",
        least=0, rare=True)
    frozen_layers: int = option(
        0, "Number of lowest layers to freeze, together with the embeddings; -1: the whole "
        "encoder.", least=-1, rare=True)


_GATED = Scope("gates, which --concrete_coef gives to heads", bool, "concrete_coef")


@dataclasses.dataclass
class LossSettings:
    """The loss of fine-tuning, and batches that it is computed of."""

    loss_reduction: str = option(
        "mean", "Take the gradient of the mean of the examples' losses, or of their sum as in "
        "ELECTRA's code. Reports show means.", choices=("mean", "sum"), rare=True)
    lm_coef: float = option(
        0.0, "Weight of the next-token loss that GPT learns beside the task; GPT's code uses 0.5.",
        least=0, rare=True)
    concrete_coef: float = option(
        0.0, "Give each attention head a gate, and add the mean number of open gates per layer to "
        "the loss with this weight (arXiv:1905.09418). bert-prune --prune_heads=dead then removes "
        "the heads with closed gates. 0: no gates.", least=0, rare=True)
    concrete_learning_rate: float = option(
        0.0, "Learning rate of the gates, on the same schedule as the other weights; 0: "
        "--learning_rate. In short training, gates only close with a much larger learning rate, "
        "such as 0.05.", least=0, for_=_GATED, rare=True)
    concrete_temperature: float = option(
        0.33, "Temperature of the gates in training; a lower temperature moves gates closer to 0 "
        "or 1.", above=0, for_=_GATED, rare=True)
    concrete_stretch: list[str] = option(
        ["-0.1", "1.1"], "Range from which gates are drawn before they are clipped to 0 and 1.",
        items=float, for_=_GATED, rare=True)
    label_smoothing: float = option(
        0.0, "Label smoothing: the probability that is spread evenly over all labels.", least=0,
        most=0.99, rare=True)
    class_weights: list[str] = option(
        [], "Weight of each label in the loss, in the order of the labels; or balanced, which "
        "gives all labels the same total weight.", rare=True)
    pad_to_max_length: bool = option(
        False, "Pad every batch to --max_seq_length, as the original does; by default a batch is "
        "only as long as its longest example needs.", rare=True)


_TRIED = Scope("--grid", bool, "grid")


@dataclasses.dataclass
class TrialSettings:
    """Trials; the best is kept."""

    num_trials: int = option(
        1, "Number of runs, with consecutive seeds from --random_seed; the best model is kept.",
        least=1)
    grid: bool = option(
        False, "Try all combinations of --grid_train_batch_size, --grid_learning_rate and "
        "--grid_num_train_epochs (default: the batch sizes, learning rates and epochs of BERT's "
        "paper), and keep the best model.")
    grid_train_batch_size: list[str] = option(
        ["16", "32"], "Batch sizes of --grid.", items=int, above=0, for_=_TRIED, rare=True)
    grid_learning_rate: list[str] = option(
        ["5e-5", "3e-5", "2e-5"], "Learning rates of --grid.", items=float, above=0,
        below=float("inf"), for_=_TRIED, rare=True)
    grid_num_train_epochs: list[str] = option(
        ["2", "3", "4"], "Epochs of --grid.", items=float, above=0, below=float("inf"), for_=_TRIED,
        rare=True)


@dataclasses.dataclass
class FineTuneSettings(TrialSettings, RobustnessSettings, LossSettings, LayerSettings,
                       SharedSettings):
    """Fine-tuning: batches, learning rate and epochs; the task has the defaults."""

    train_batch_size: int = option(
        0, "Examples per step, over all devices; 0: the task's default (GLUE: 32).", least=0)
    eval_batch_size: int = option(32, "Examples per step of evaluation and prediction.",
                                  alias="predict_batch_size", least=1)
    learning_rate: float | None = option(
        None, "Peak of the learning rate. Default: the task's default (GLUE: 2e-5).", least=0,
        below=float("inf"))
    num_train_epochs: float | None = option(
        None, "Number of epochs. Default: the task's default (GLUE: 3). 0: evaluate the model "
        "without training.", least=0, below=float("inf"))
    warmup_proportion: float = option(
        0.1, "Share of the steps in which the learning rate rises.", least=0, most=1)
    early_stopping: int = option(
        0, "Stop after this many evaluations in which the headline metric did not improve, and "
        "keep the best weights; 0: train to the end.", least=0)
    eval_steps: int = option(0, "Steps between evaluations while training; 0: evaluate at the end, "
                                "or after every epoch with --early_stopping.", least=0)
    num_train_steps: int = option(0, "Steps, instead of --num_train_epochs.", least=0, rare=True)
    num_warmup_steps: int | None = option(
        None, "Steps in which the learning rate rises, instead of --warmup_proportion.", least=0,
        rare=True)
    schedule_steps: int = option(
        0, "Step at which the learning rate would reach --end_learning_rate; 0: the last step of "
        "the training.", least=0, for_=_ENDING, rare=True)
    iterations_per_loop: int = option(
        50, "Steps between reports, run in one call.", least=1, rare=True)
    keep_checkpoint_max: int = option(
        1, "Checkpoints to keep while a run is not finished.", least=1, rare=True)
    max_eval_steps: int = option(
        0, "Has no effect in fine-tuning: all examples are evaluated.", least=0, rare=True)

    def __post_init__(self):
        super().__post_init__()
        if self.random_seed + self.num_trials > 1 << 31:
            raise InputError(f"--random_seed is {self.random_seed}; it must be at most "
                             f"{(1 << 31) - self.num_trials} with --num_trials={self.num_trials}.")

    def resolve(self, defaults, examples: int) -> "FineTuneSettings":
        """Returns these settings with the task's defaults and the steps for so many examples."""
        batch = self.train_batch_size or defaults.train_batch_size
        rate, epochs = (getattr(defaults if getattr(self, name) is None else self, name)
                        for name in ("learning_rate", "num_train_epochs"))
        # Fewer examples than a batch come again until it is full.
        steps = self.num_train_steps or (
            max(int(max(examples / batch, 1) * epochs), 1) if epochs else 0)
        every = steps_of_epoch(examples, batch) if self.early_stopping else 0
        return dataclasses.replace(
            self, train_batch_size=batch, num_train_epochs=epochs, num_train_steps=steps,
            learning_rate=rate, eval_steps=self.eval_steps or every, num_warmup_steps=(
                self._warmup(steps) if self.num_warmup_steps is None else self.num_warmup_steps))

    def _warmup(self, steps):
        """The steps of the warm-up by their share; the codes of ELECTRA and GPT do not round."""
        warmup = steps * self.warmup_proportion
        is_rounded = SCHEDULES[self.learning_rate_schedule].warmup != "product"
        return int(warmup) if is_rounded else warmup

    def trials(self) -> dict[str, "FineTuneSettings"]:
        """Returns the settings of each trial, under a name that no other trial has."""
        if self.grid and self.num_train_steps:
            raise InputError("--grid tries several numbers of epochs: leave out --num_train_steps.")
        check_used(self, *((name, not self.grid, f"runs without --grid, which tries --grid_{name}")
                           for name in _GRID))
        found = {}
        grid = [[(name, kind(value)) for value in getattr(self, f"grid_{name}")]
                for name, kind in _GRID.items()] if self.grid else []
        for chosen in itertools.product(*grid):
            prefix = "".join(f"{_SHORT[name]}{value:g}-" for name, value in chosen)
            for seed in range(self.random_seed, self.random_seed + self.num_trials):
                name = f"{prefix}seed{seed}"
                found[name] = dataclasses.replace(
                    self, **dict(chosen), random_seed=seed,
                    output_dir=os.path.join(self.output_dir, "trials", name))
        return found


def without_tried(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns defaults by option, without the values that --grid tries if it is given."""
    return {name: value for name, value in values.items()
            if not (given.get("grid") and name in _GRID)}


_GRID = {"train_batch_size": int, "learning_rate": float, "num_train_epochs": float}
_SHORT = {"train_batch_size": "batch", "learning_rate": "rate", "num_train_epochs": "epochs"}
