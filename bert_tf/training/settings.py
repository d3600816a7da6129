"""The settings of everything that trains, under the original's flag names."""

import dataclasses
import itertools
import os

from bert_tf.data.batches.bucketing import steps_of_epoch
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option
from bert_tf.training.optimizers.table import OPTIMIZERS, SCHEDULES, help_of

DISCRIMINATORS = ("replaced_token", "replaced_token_written", "replace_mlm", "all_tokens_mlm")
NEW_LAYERS = ("copied", "identity", "random")
STRATEGIES = ("one_device", "mirrored", "multi_worker", "tpu")
# Keras names of the policies: computation in the type, weights in float32.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
_LEAST = {"train_batch_size": 1, "eval_batch_size": 1, "learning_rate": 0, "num_train_steps": 1,
          "warmup_init_lr": 0, "end_learning_rate": 0, "num_warmup_steps": 0, "stop_at_step": 0,
          "save_checkpoints_steps": 1,
          "keep_checkpoint_max": 1, "iterations_per_loop": 1, "eval_steps": 0, "max_eval_steps": 0,
          "random_seed": 0, "weight_decay": 0, "poly_power": 0, "start_warmup_step": 0,
          "gradient_accumulation_steps": 1}


@dataclasses.dataclass
class TrainSettings:
    """How to train: batches, rates, checkpoints and devices."""

    output_dir: str = option(REQUIRED, "Folder for checkpoints, curves and the model.")
    train_batch_size: int = option(32, "Records per step, over all devices.")
    eval_batch_size: int = option(8, "Records per evaluation step, over all devices.")
    learning_rate: float = option(5e-5, "Peak of the learning rate.")
    num_train_steps: int = option(
        100000, "Steps of the whole run; the learning rate falls to --end_learning_rate there.")
    num_warmup_steps: int = option(10000, "Steps in which the learning rate rises.")
    stop_at_step: int = option(
        0, "Stop at this step, before --num_train_steps; 0: train to the end.")
    save_checkpoints_steps: int = option(1000, "Steps between checkpoints.")
    keep_checkpoint_max: int = option(5, "Checkpoints to keep.")
    iterations_per_loop: int = option(100, "Steps between reports, run in one call.")
    eval_steps: int = option(0, "Steps between evaluations while training; 0: evaluate at the end.")
    max_eval_steps: int = option(100, "Maximum steps of an evaluation; 0: all records.")
    random_seed: int = option(12345, "Seed of initial weights, order of records and dropout.")
    optimizer: str = option(
        "adamw", help_of(OPTIMIZERS), choices=tuple(OPTIMIZERS))
    learning_rate_schedule: str = option(
        "bert", f"Decay of the learning rate after the warm-up. {help_of(SCHEDULES)}",
        choices=tuple(SCHEDULES))
    warmup_init_lr: float = option(0.0, "Learning rate at the start of the warm-up.")
    end_learning_rate: float = option(0.0, "Learning rate at --num_train_steps.")
    poly_power: float = option(
        1.0, "Exponent of the polynomial decay of the learning rate; 1 is linear.")
    start_warmup_step: int = option(0, "Step at which the warm-up begins.")
    weight_decay: float = option(0.01, "Weight decay; LayerNorm and biases are not decayed.")
    gradient_accumulation_steps: int = option(
        1, "Number of parts in which each device processes its share of a batch, to save memory.")
    dtype: str = option("float32", "Type of the computation. Weights are kept in float32.",
                        choices=tuple(POLICIES))
    jit_compile: str = option("auto", "Compile the step with XLA; auto: on GPU and TPU.",
                              choices=("auto", "true", "false"))
    deterministic: bool = option(
        True, "Give up a little speed so that the same run gives the same bits, whether or not it "
        "was stopped and started again.")
    distribution_strategy: str = option("one_device", "Where to train.", choices=STRATEGIES)
    use_tpu: bool = option(False, "The original's flag for --distribution_strategy=tpu.")
    tpu: str = option("", "Name or address of the TPU.", alias="tpu_name")
    tpu_zone: str = option("", "Google Cloud zone of the TPU.")
    gcp_project: str = option("", "Google Cloud project of the TPU.")
    master: str = option("", "Accepted for old command lines of TensorFlow 1; has no effect.")
    num_tpu_cores: int = option(8, "Accepted like --master: TensorFlow 2 finds the cores itself.")

    def __post_init__(self):
        if self.use_tpu:
            self.distribution_strategy = "tpu"
        self.check()

    def check(self) -> None:
        """Raises InputError if a flag can't be used."""
        self.check_least(_LEAST)
        self.check_warmup()
        if self.random_seed >= 1 << 31:
            raise InputError(f"--random_seed is {self.random_seed}; it must be below 2**31.")

    def check_least(self, bounds: dict[str, float]) -> None:
        """Raises InputError if a flag that has a value is below its bound, given by name."""
        for name, bound in bounds.items():
            value = getattr(self, name)
            if value is not None and not value >= bound:
                raise InputError(f"--{name} is {value}; it must be at least {bound}.")

    def check_warmup(self) -> None:
        """Raises InputError if the rate would still rise at the end."""
        if (self.num_warmup_steps > self.num_train_steps
                and not SCHEDULES[self.learning_rate_schedule].outlasts):
            raise InputError(f"--num_warmup_steps ({self.num_warmup_steps}) is more than "
                             f"--num_train_steps ({self.num_train_steps}); give fewer.")

    @property
    def last_step(self) -> int:
        """The step at which this invocation ends."""
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


@dataclasses.dataclass(frozen=True)
class GeneratorSettings:
    """ELECTRA's generator, and what the network learns from it; for recipes that have one."""

    generator_hidden_size: float = option(
        0.25, "Width of the generator as a share of the model's; 1/4 to 1/2 work best.")
    generator_layers: float = option(1.0, "Layers of the generator as a share of the model's.")
    untied_generator_embeddings: bool = option(
        False, "The generator has embeddings of its own, as wide as its layers.")
    untied_generator: bool = option(
        True, "The generator is a separate network; if false, it is the model itself.")
    uniform_generator: bool = option(
        False, "There is no generator: all tokens are drawn with the same probability.")
    electra_objective: bool = option(
        True, "Learn which tokens were replaced; if false, the model learns masked tokens alone.")
    disallow_correct: bool = option(False, "The original token is never drawn.")
    temperature: float = option(1.0, "Temperature of the draws from the generator.")
    gen_weight: float | None = option(None, "Weight of the generator's loss; default: 1.")
    disc_weight: float | None = option(
        None, "Weight of the model's loss; default: 50, or 1 if --discriminator predicts tokens.")
    discriminator: str = option(
        "replaced_token", "What the model learns. replaced_token: whether each token was "
        "replaced. replaced_token_written: the same, at the generator's positions alone (ELECTRA "
        "15%). replace_mlm: the original tokens at those positions. all_tokens_mlm: the original "
        "tokens at all positions.", choices=DISCRIMINATORS)

    def __post_init__(self):
        for name in ("generator_hidden_size", "generator_layers", "temperature"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"--{name} is {getattr(self, name)}; it must be above 0.")


@dataclasses.dataclass(frozen=True)
class StackingSettings:
    """Progressive stacking: a shallow network is trained first, then a deeper one made of it."""

    stack_layers: list[str] = option(
        [], "Number of layers in each stage, such as 3,6,12. Each must be a multiple of the one "
        "before, and the last must be that of the configuration. Default: all layers from the "
        "start.")
    stack_steps: list[str] = option(
        [], "Steps of each stage but the last. The last stage ends when all stages together have "
        "--num_train_steps.")
    stack_learning_rates: list[str] = option(
        [], "Learning rate at the start of each stage, after its warm-up, and at the end of the "
        "last stage. In each stage the rate goes from its own value to the next. Default: "
        "--learning_rate for all stages, --end_learning_rate at the end.")
    stack_warmup_steps: list[str] = option(
        [], "Warm-up steps of each stage. Default: --num_warmup_steps in each.")
    stack_new_layers: str = option(
        "copied", "Initial weights of the layers that are added above the L trained ones. copied: "
        "layer i has the weights of layer i mod L. identity: weights with which the new layers "
        "change nothing at first. random: the usual random weights.", choices=NEW_LAYERS)
    stack_optimizer: str = option(
        "reset", "State of the optimizer in a new stage. reset: its moments begin at 0. copied: "
        "they are copied with the layers. Its step count begins at 0 in both cases.",
        choices=("reset", "copied"))


@dataclasses.dataclass
class FineTuneSettings(TrainSettings):
    """How to fine-tune; the task decides what no flag does (`bert_tf.tasks.task.Defaults`)."""

    train_batch_size: int = option(0, "Examples per step, over all devices; 0: the task's own.")
    eval_batch_size: int = option(32, "Examples per step of evaluation and prediction.",
                                  alias="predict_batch_size")
    learning_rate: float | None = option(
        None, "Peak of the learning rate; default: the task's own.")
    num_train_epochs: float | None = option(
        None, "Number of epochs; default: the task's own. 0: no training, the model is evaluated "
        "as it is.")
    num_train_steps: int = option(0, "Steps, instead of --num_train_epochs.")
    warmup_proportion: float = option(0.1, "Share of the steps in which the learning rate rises.")
    num_warmup_steps: int = option(
        0, "Steps in which the learning rate rises, instead of --warmup_proportion.")
    schedule_steps: int = option(
        0, "Step at which the schedule of the learning rate would reach --end_learning_rate; 0: "
        "the last step of the training.")
    iterations_per_loop: int = option(50, "Steps between reports, run in one call.")
    keep_checkpoint_max: int = option(1, "Checkpoints to keep of a run that is not finished.")
    eval_steps: int = option(0, "Steps between evaluations while training; 0: evaluate at the end, "
                                "or after every epoch with --early_stopping.")
    max_eval_steps: int = option(0, "Has no effect in fine-tuning: all examples are evaluated.")
    early_stopping: int = option(
        0, "Stop after this many evaluations without a better headline metric, and keep the "
           "weights of the best; 0: train to the end.")
    layer_decay: float = option(
        1.0, "Learning rate of each layer as a multiple of that of the layer above.")
    layer_decay_top: int = option(
        1, "Exponent of --layer_decay for the top layer; 2 in ELECTRA's code, 0 in XLNet's paper.")
    layer_decay_of: str = option(
        "rate", "What --layer_decay multiplies. rate: the learning rate. gradient: the clipped "
        "gradients, as in XLNet's code; under Adam this has almost no effect.",
        choices=("rate", "gradient"))
    loss_reduction: str = option(
        "mean", "How the losses of a batch's examples are combined before gradients are taken and "
        "clipped: their mean or, as in ELECTRA's code, their sum. Reports show means.",
        choices=("mean", "sum"))
    reinit_layers: int = option(
        0, "Number of top layers that start from random weights, and the pooler with them.")
    frozen_layers: int = option(
        0, "Number of lowest layers that are not trained, and the embeddings with them; -1: the "
        "whole encoder.")
    lm_coef: float = option(
        0.0, "Weight of a loss on the next token, which GPT may learn beside the task; 0.5 in its "
        "code.")
    concrete_coef: float = option(
        0.0, "Give each attention head a gate, and add the number of open gates, mean over "
        "layers, to the loss with this weight (arXiv:1905.09418). bert-prune --prune_heads=dead "
        "then removes the heads whose gates are closed. 0: no gates.")
    concrete_learning_rate: float = option(
        0.0, "Learning rate of the gates, on the same schedule as the other weights; 0: "
        "--learning_rate. In a short training the gates close only at a much larger rate, such as "
        "0.05.")
    label_smoothing: float = option(0.0, "Probability that is spread evenly over all labels.")
    class_weights: list[str] = option(
        [], "Weight of each label in the loss, in the order of the labels; or balanced, which "
        "makes all labels count the same.")
    pad_to_max_length: bool = option(
        False, "Pad every batch to --max_seq_length, as the original does; by default a batch is "
        "only as long as its longest example needs.")
    num_trials: int = option(
        1, "Number of runs, with consecutive seeds from --random_seed; the best one is kept.")
    grid: bool = option(False, "Try all combinations of the three lists below, and keep the best.")
    grid_train_batch_size: list[str] = option(["16", "32"], "Batch sizes of --grid.")
    grid_learning_rate: list[str] = option(["5e-5", "3e-5", "2e-5"], "Learning rates of --grid.")
    grid_num_train_epochs: list[str] = option(["2", "3", "4"], "Epochs of --grid.")

    def check(self) -> None:
        self.check_least({**_LEAST, "train_batch_size": 0, "num_train_steps": 0,
                          "num_train_epochs": 0, "early_stopping": 0, "num_trials": 1,
                          "layer_decay_top": 0, "lm_coef": 0, "concrete_coef": 0,
                          "concrete_learning_rate": 0,
                          "schedule_steps": 0})
        for name, most in (("warmup_proportion", 1), ("label_smoothing", 0.99),
                           ("random_seed", (1 << 31) - self.num_trials)):
            if not 0 <= getattr(self, name) <= most:
                raise InputError(f"--{name} is {getattr(self, name)}; it must be from 0 to {most}.")
        for name, kind in _GRID.items():
            try:
                if not all(kind(value) > 0 for value in getattr(self, f"grid_{name}")):
                    raise ValueError
            except ValueError:
                raise InputError(f"--grid_{name} is {','.join(getattr(self, f'grid_{name}'))}; "
                                 "give numbers above 0 with commas between.") from None

    def resolve(self, defaults, examples: int) -> "FineTuneSettings":
        """These settings, with the number of steps and everything that the task decides.

        Args:
            defaults: `bert_tf.tasks.task.Defaults`.
            examples: how many there are to train on.
        """
        batch = self.train_batch_size or defaults.train_batch_size
        rate, epochs = (getattr(defaults if getattr(self, name) is None else self, name)
                        for name in ("learning_rate", "num_train_epochs"))
        # Fewer examples than a batch come again until it is full.
        steps = self.num_train_steps or (
            max(int(max(examples / batch, 1) * epochs), 1) if epochs else 0)
        every = steps_of_epoch(examples, batch) if self.early_stopping else 0
        return dataclasses.replace(
            self, train_batch_size=batch, num_train_epochs=epochs, num_train_steps=steps,
            learning_rate=rate,
            num_warmup_steps=self.num_warmup_steps or self._warmup(steps),
            eval_steps=self.eval_steps or every)

    def _warmup(self, steps):
        """The steps of the warm-up by their share; the codes of ELECTRA and GPT do not round."""
        warmup = steps * self.warmup_proportion
        is_rounded = SCHEDULES[self.learning_rate_schedule].warmup != "product"
        return int(warmup) if is_rounded else warmup

    def trials(self) -> dict[str, "FineTuneSettings"]:
        """The settings of each trial, under a name that no other trial has.

        Raises:
            InputError: --num_train_steps is given, so that the grid's epochs would not count.
        """
        if self.grid and self.num_train_steps:
            raise InputError("--grid tries several numbers of epochs: leave out --num_train_steps.")
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


_GRID = {"train_batch_size": int, "learning_rate": float, "num_train_epochs": float}
_SHORT = {"train_batch_size": "batch", "learning_rate": "rate", "num_train_epochs": "epochs"}
