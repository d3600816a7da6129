"""The settings of everything that trains, under the original's flag names."""

import dataclasses
import itertools
import os
import typing
from typing import Any

from bert_tf.data.batches.bucketing import steps_of_epoch
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, check, only, option, without
from bert_tf.training.optimizers.table import OPTIMIZERS, SCHEDULES, help_of

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


def _with_schedule(holds):
    """Returns an `option` for fields that exist with the schedules of some rows."""
    return only("learning_rate_schedule", *(name for name, row in SCHEDULES.items() if holds(row)))


_of_falling = _with_schedule(lambda row: row.decay != "constant" or row.tail)
_of_rising = _with_schedule(lambda row: row.warmup != "own")


@dataclasses.dataclass
class OptimizerSettings:
    """Optimizer and schedule of the learning rate."""

    optimizer: str = option(
        "adamw", f"The optimizer.\n{help_of(OPTIMIZERS)}", choices=tuple(OPTIMIZERS))
    learning_rate_schedule: str = option(
        "bert", f"Decay of the learning rate after the warm-up.\n{help_of(SCHEDULES)}",
        choices=tuple(SCHEDULES))
    weight_decay: float | None = only("optimizer", *(
        name for name, row in OPTIMIZERS.items() if row.decays))(
            None, "Weight decay; LayerNorm and biases are not decayed. Default: 0.01, with "
            "stable_adamw 1e-5.", least=0)
    warmup_init_lr: float = _of_rising(
        0.0, "Learning rate at the start of the warm-up.", least=0, rare=True)
    end_learning_rate: float = _of_falling(
        0.0, "Learning rate at --num_train_steps.", least=0, rare=True)
    num_decay_steps: int = _with_schedule(lambda row: row.tail)(
        0, "Last steps, up to --num_train_steps, in which the learning rate falls to "
        "--end_learning_rate; 0: a tenth of all steps.", least=0)
    poly_power: float = _of_falling(
        1.0, "Exponent of the polynomial decay of the learning rate; 1 is linear.", least=0,
        rare=True)
    start_warmup_step: int = _of_rising(0, "Step at which the warm-up begins.", least=0, rare=True)


_of_workers = only("distribution_strategy", "multi_worker")


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
    cluster: str = _of_workers(
        "tf_config", "How multi_worker finds the workers. tf_config: from TF_CONFIG. slurm: from "
        "srun. indexed_job: from --cluster_hosts and JOB_COMPLETION_INDEX.", choices=CLUSTERS)
    cluster_hosts: list[str] = only("cluster", "indexed_job")(
        [], "HOST or HOST:PORT of each worker, in order, for --cluster=indexed_job.")
    cluster_timeout: float = _of_workers(
        300, "Seconds to wait for the other workers.", above=0, most=1e6)
    tpu: str = option("", "Name or address of the TPU.", alias="tpu_name")
    jit_compile: str = option("auto", "Compile the step with XLA. auto: on GPU and TPU; of a "
                              "step on CPU only the update of large variables.",
                              choices=("auto", "true", "false"), rare=True)
    deterministic: bool = option(
        True, "Give the same bits in each run, stopped and resumed or not, at the cost of a little "
        "speed.", rare=True)
    use_tpu: bool = option(False, "The original's flag for --distribution_strategy=tpu.", rare=True)
    tpu_zone: str = only("tpu")("", "Google Cloud zone of the TPU.")
    gcp_project: str = only("tpu")("", "Google Cloud project of the TPU.")
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
        if self.tpu and self.distribution_strategy != "tpu":
            raise InputError("--tpu names a TPU, which --distribution_strategy="
                             f"{self.distribution_strategy} does not use; give "
                             "--distribution_strategy=tpu, or leave --tpu out.")
        check(self)

    def check_warmup(self) -> None:
        """Raises InputError if the rate would still rise at the end."""
        if (self.num_warmup_steps > self.num_train_steps
                and not SCHEDULES[self.learning_rate_schedule].outlasts):
            raise InputError(f"--num_warmup_steps ({self.num_warmup_steps}) is more than "
                             f"--num_train_steps ({self.num_train_steps}); give fewer.")
        if (self.num_decay_steps
                and self.num_warmup_steps + self.num_decay_steps > self.schedule_end):
            raise InputError(f"--num_warmup_steps ({self.num_warmup_steps}) and --num_decay_steps "
                             f"({self.num_decay_steps}) are together more than the steps of the "
                             f"schedule ({self.schedule_end}); give fewer.")

    @property
    def schedule_end(self) -> int:
        """The step at which the learning rate would reach --end_learning_rate."""
        return getattr(self, "schedule_steps", 0) or self.num_train_steps

    @property
    def last_step(self) -> int:
        return min(self.stop_at_step or self.num_train_steps, self.num_train_steps)

    def check_replicas(self, replicas: int, trains: bool = True, evaluates: bool = True) -> None:
        """Raises InputError if the batches can't be divided among `replicas`."""
        parts = replicas * self.gradient_accumulation_steps
        name = "train_batch_size"
        if getattr(self, "batch_size_warmup_min_size", 0):
            name = "batch_size_warmup_min_size"
        if trains and getattr(self, name) % parts:
            raise InputError(
                f"--{name} ({getattr(self, name)}) must be a multiple of the devices "
                f"({replicas}) times --gradient_accumulation_steps "
                f"({self.gradient_accumulation_steps}).")
        if evaluates and self.eval_batch_size % replicas:
            raise InputError(f"--eval_batch_size ({self.eval_batch_size}) must be a multiple of "
                             f"the devices ({replicas}).")


@dataclasses.dataclass
class StepSettings(SharedSettings):
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
    keep_checkpoint_max: int = option(5, "Checkpoints to keep.", least=1, rare=True)
    iterations_per_loop: int = option(
        100, "Steps between reports, run in one call.", least=1, rare=True)

    def __post_init__(self):
        super().__post_init__()
        self.check_warmup()


@dataclasses.dataclass
class TrainSettings(StepSettings):
    """Records of pre-training."""

    max_eval_steps: int = option(100, "Maximum steps of an evaluation; 0: evaluate "
                                      "on all records.", least=0)
    file_shares: int = option(
        0, "Number of shares to divide the files into. Each batch takes equally many records from "
        "each share, and each worker reads only its share. 0: one share per worker where the files "
        "allow it; a resumed run keeps the number.", least=0, rare=True)
    batch_size_warmup_min_size: int = option(
        0, "Records per step at the start; batches grow by this number until they have "
        "--train_batch_size records, which must be a multiple of it. 0: batches do not grow.",
        least=0, rare=True)
    batch_size_warmup_tokens: int = only("batch_size_warmup_min_size")(
        0, "Tokens, without padding, after which batches have --train_batch_size records.", least=0)

    def __post_init__(self):
        super().__post_init__()
        least = self.batch_size_warmup_min_size
        if least and self.train_batch_size % least:
            raise InputError(f"--train_batch_size ({self.train_batch_size}) must be a multiple of "
                             f"--batch_size_warmup_min_size ({least}).")
        if least and not self.batch_size_warmup_tokens:
            raise InputError("--batch_size_warmup_min_size needs --batch_size_warmup_tokens, the "
                             "tokens after which batches have --train_batch_size records.")


_with_decay = only("layer_decay")


@dataclasses.dataclass
class LayerSettings:
    """Layers that are treated apart."""

    layer_decay: float = option(
        1.0, "Multiply the learning rate by this factor from each layer to the layer below.",
        above=0, most=1, rare=True)
    layer_decay_top: int = _with_decay(
        1, "Exponent of --layer_decay for the top layer.", least=0)
    layer_decay_of: str = _with_decay(
        "rate", "What --layer_decay multiplies. rate: the learning rate. gradient: the clipped "
        "gradients; under Adam this has almost no effect.",
        choices=("rate", "gradient"))
    reinit_layers: int = option(
        0, "Number of top layers to start from random weights, together with the pooler.",
        least=0, rare=True)
    frozen_layers: int = option(
        0, "Number of lowest layers to freeze, together with the embeddings; -1: the whole "
        "encoder.", least=-1, rare=True)


_of_gates = only("concrete_coef")


@dataclasses.dataclass
class LossSettings:
    """The loss of fine-tuning, and batches that it is computed of."""

    loss_reduction: str = option(
        "mean", "Take the gradient of the mean of the examples' losses, or of their sum. Reports "
        "show means.", choices=("mean", "sum"), rare=True)
    lm_coef: float = option(
        0.0, "Weight of the next-token loss that a causal model learns beside the task.",
        least=0, rare=True)
    concrete_coef: float = option(
        0.0, "Give each attention head a gate, and add the mean number of open gates per layer to "
        "the loss with this weight (arXiv:1905.09418). docs/smaller.md shows how the heads with "
        "closed gates are then removed. 0: no gates.", least=0, rare=True)
    concrete_learning_rate: float = _of_gates(
        0.0, "Learning rate of the gates, on the same schedule as the other weights; 0: "
        "--learning_rate. In short training, gates only close with a much larger learning rate, "
        "such as 0.05.", least=0)
    concrete_temperature: float = _of_gates(
        0.33, "Temperature of the gates in training; a lower temperature moves gates closer to 0 "
        "or 1.", above=0)
    concrete_stretch: list[str] = _of_gates(
        ["-0.1", "1.1"], "Range from which gates are drawn before they are clipped to 0 and 1.",
        items=float)
    label_smoothing: float = option(
        0.0, "Label smoothing: the probability that is spread evenly over all labels.", least=0,
        most=0.99, rare=True)
    class_weights: list[str] = option(
        [], "Weight of each label in the loss, in the order of the labels; or balanced, which "
        "gives all labels the same total weight.", rare=True)
    pad_to_max_length: bool = option(
        False, "Pad every batch to --max_seq_length, as the original does; by default a batch is "
        "only as long as its longest example needs.", rare=True)


_of_grid = only("grid")
# The settings that a grid tries: their types, and their names in names of trials.
GRID = {"train_batch_size": (int, "batch"), "learning_rate": (float, "rate"),
        "num_train_epochs": (float, "epochs")}
# Steps of ascent and their size by default, and the norms that each way knows.
_ASCENT = {"smart": (1, 1e-3, ("inf", "l2", "l1")), "freelb": (3, 0.04, ("l2", "inf"))}
# The least noise that changes numbers near 1 in a type of computation.
_SEEN = {"float32": 0.0, "bfloat16": 0.01, "float16": 0.001}
# The divergences of `objectives.divergences` that SMART can take.
CRITERIA = ("sym_kl", "ns_sym_kl", "js", "hl", "kl", "ns_kl", "mse")
_of_smart, _of_freelb, _of_both = (only("adv_train", *ways) for ways in (
    ("smart",), ("freelb",), tuple(_ASCENT)))


@dataclasses.dataclass
class RobustnessSettings:
    """Adversarial training, and averages of the weights."""

    adv_train: str = option(
        "none", "Adversarial training: add noise to the embeddings in the direction that raises "
        "the loss. smart: add the divergence between the predictions with and without noise to the "
        "loss (arXiv:1911.03437); each step has two more forward and backward passes. freelb: "
        "average the gradients of --adv_steps passes, and move the noise after each pass "
        "(arXiv:1909.11764).", choices=("none", *_ASCENT), rare=True)
    adv_steps: int = _of_both(
        0, "Number of steps that change the noise; 0: 1 for smart, 3 for freelb. Each takes a "
        "forward and a backward pass.", alias="adv_k", least=0)
    adv_step_size: float = _of_both(
        0.0, "Size of a step of the noise; 0: 0.001 for smart, 0.04 for freelb.", alias="adv_lr",
        least=0)
    adv_p_norm: str = _of_both(
        "auto", "With smart, norm of a token's noise (default: inf). With freelb, norm of a step "
        "of an example's noise (default: l2).",
        choices=("auto", "inf", "l2", "l1"))
    adv_norm_of: str = _of_smart(
        "noise", "What is scaled to the norm 1. noise: a token's whole noise after each "
        "step, as in its authors' code. step: each step, which then has the length "
        "--adv_step_size; with --adv_max_norm=1e-5, this is SMART's paper.",
        choices=("noise", "step"))
    adv_alpha: float = _of_smart(1.0, "Weight of the divergence.", least=0)
    adv_loss: str = _of_smart(
        "sym_kl", "The divergence. ns_kl, ns_sym_kl, js and hl: NsKl, NsSymKl, JS and HL of its "
        "authors' code. In regression, always the squared difference.", choices=CRITERIA)
    adv_noise_var: float = _of_smart(
        1e-5, "Standard deviation of the first noise. bfloat16 needs at least 0.01 and float16 "
        "0.001, since smaller noise is lost in rounding.", above=0)
    adv_epsilon: float = _of_smart(
        1e-6, "A small number that is added to the norm before the noise is divided by it.",
        above=0)
    adv_init_mag: float = _of_freelb(
        0.05, "Norm of the first noise of an example.", least=0)
    adv_max_norm: float = _of_both(
        0.0, "Maximum norm of the noise: per token with smart, per example with freelb; 0: no "
        "bound.", least=0)
    weight_average: str = only("optimizer", *(
        name for name in OPTIMIZERS if name != "averaged_adam"))(
        "none", "Evaluate and save averages of the weights over the steps. ema: recent steps count "
        "more. swa: all steps from --average_start on count equally (arXiv:1803.05407). This needs "
        "memory for one more copy of the weights.", choices=("none", "ema", "swa"), rare=True)
    average_decay: float = only("weight_average", "ema")(
        0.999, "Decay of --weight_average=ema: the share of the average that each step keeps. At "
        "step n it is at most (1 + n) / (10 + n).",
        least=0, below=1)
    average_start: float | None = only("weight_average", "ema", "swa")(
        None, "Share of the steps after which averaging starts (default: 0 for ema, 0.5 for swa).",
        least=0, below=1)

    def check_robustness(self) -> None:
        """Raises InputError if the settings contradict each other."""
        if self.adv_train == "none":
            return
        norms, dtype = _ASCENT[self.adv_train][2], getattr(self, "dtype", "float32")
        if self.adv_p_norm not in ("auto", *norms):
            raise InputError(f"--adv_p_norm={self.adv_p_norm}: with --adv_train={self.adv_train}, "
                             f"choose from {', '.join(norms)}.")
        lengths = {"adv_noise_var": self.adv_noise_var}
        if self.adv_norm_of == "step":
            lengths["adv_step_size"] = self.ascent[1]
        if self.adv_max_norm:
            lengths["adv_max_norm"] = self.adv_max_norm
        for name, length in lengths.items():
            if self.adv_train == "smart" and length < _SEEN[dtype]:
                raise InputError(f"--{name} is {length:g}, which --dtype={dtype} rounds to 0; give "
                                 f"at least {_SEEN[dtype]:g}.")

    def average_options(self, steps: int) -> dict:
        """Returns the options of an optimizer that keeps averages in a run of `steps` steps."""
        if self.weight_average == "none":
            return {}
        start = self.average_start
        if start is None:
            start = 0.5 * (self.weight_average == "swa")
        return {"average": self.weight_average, "average_decay": self.average_decay,
                "average_start": int(start * steps)}

    @property
    def ascent(self) -> tuple[int, float, str]:
        """The number of steps of ascent, their size, and the norm."""
        steps, size, norms = _ASCENT[self.adv_train]
        return (self.adv_steps or steps, self.adv_step_size or size,
                norms[0] if self.adv_p_norm == "auto" else self.adv_p_norm)


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
    grid_train_batch_size: list[str] = _of_grid(
        ["16", "32"], "Batch sizes of --grid.", items=int, above=0)
    grid_learning_rate: list[str] = _of_grid(
        ["5e-5", "3e-5", "2e-5"], "Learning rates of --grid.", items=float, above=0)
    grid_num_train_epochs: list[str] = _of_grid(
        ["2", "3", "4"], "Epochs of --grid.", items=float, above=0)


@dataclasses.dataclass
class FineTuneSettings(TrialSettings, RobustnessSettings, LossSettings, LayerSettings,
                       SharedSettings):
    """Fine-tuning: batches, learning rate and epochs; the task has the defaults."""

    train_batch_size: int = without("grid")(
        0, "Examples per step, over all devices; 0: the task's default (GLUE: 32).", least=0)
    eval_batch_size: int = option(32, "Examples per step of evaluation and prediction.",
                                  alias="predict_batch_size", least=1)
    learning_rate: float | None = without("grid")(
        None, "Peak of the learning rate. Default: the task's default (GLUE: 2e-5).", least=0)
    num_train_epochs: float | None = without("grid")(
        None, "Number of epochs. Default: the task's default (GLUE: 3). 0: evaluate the model "
        "without training.", least=0)
    warmup_proportion: float = option(
        0.1, "Share of the steps in which the learning rate rises.", least=0, most=1)
    early_stopping: int = option(
        0, "Stop after this many evaluations in which the headline metric did not improve, and "
        "keep the best weights; 0: train to the end.", least=0)
    eval_steps: int = option(0, "Steps between evaluations while training; 0: evaluate at the end, "
                                "or after every epoch with --early_stopping.", least=0)
    num_train_steps: int = without("grid")(
        0, "Steps, instead of --num_train_epochs.", least=0, rare=True)
    num_warmup_steps: int | None = option(
        None, "Steps in which the learning rate rises, instead of --warmup_proportion.", least=0,
        rare=True)
    schedule_steps: int = _with_schedule(lambda row: row.ends)(
        0, "Step at which the learning rate would reach --end_learning_rate; 0: the last step of "
        "the training.", least=0, rare=True)
    iterations_per_loop: int = option(
        50, "Steps between reports, run in one call.", least=1, rare=True)
    keep_checkpoint_max = 1     # while a run is not finished

    def __post_init__(self):
        super().__post_init__()
        self.check_robustness()
        if self.random_seed + self.num_trials > 1 << 31:
            raise InputError(f"--random_seed is {self.random_seed}; it must be at most "
                             f"{(1 << 31) - self.num_trials} with --num_trials={self.num_trials}.")

    def resolve(self, defaults, examples: int) -> "FineTuneSettings":
        """Returns these settings with the task's defaults and the steps for so many examples."""
        batch = self.train_batch_size or defaults.train_batch_size
        rate, epochs, steps = self.learning_rate, self.num_train_epochs, self.num_train_steps
        if rate is None:
            rate = defaults.learning_rate
        if epochs is None and not steps:
            epochs = defaults.num_train_epochs
        if epochs and not steps:    # fewer examples than a batch come again until it is full
            steps = max(int(max(examples / batch, 1) * epochs), 1)
        warmup: Any = self.num_warmup_steps
        if warmup is None:
            warmup = steps * self.warmup_proportion
            if SCHEDULES[self.learning_rate_schedule].warmup != "product":      # as a factor
                warmup = int(warmup)
        every = steps_of_epoch(examples, batch) if self.early_stopping else 0
        return self._trial(
            train_batch_size=batch, num_train_epochs=epochs, num_train_steps=steps,
            learning_rate=rate, eval_steps=self.eval_steps or every, num_warmup_steps=warmup)

    def trials(self) -> dict[str, "FineTuneSettings"]:
        """Returns the settings of each trial, under a name that no other trial has."""
        trials = {}
        grid = [[(name, kind(value)) for value in getattr(self, f"grid_{name}")]
                for name, (kind, _) in GRID.items() if self.grid]
        for chosen in itertools.product(*grid):
            prefix = "".join(f"{GRID[name][1]}{value:g}-" for name, value in chosen)
            for seed in range(self.random_seed, self.random_seed + self.num_trials):
                name = f"{prefix}seed{seed}"
                trials[name] = self._trial(
                    **dict(chosen), random_seed=seed,
                    output_dir=os.path.join(self.output_dir, "trials", name))
        return trials

    def _trial(self, **values):
        """These settings with other values, of one trial."""
        return dataclasses.replace(self, **vars(TrialSettings()), **values)
