"""Settings of adversarial training and of averages of the weights."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import only, option

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
        "noise", "What is scaled to the norm 1. noise: a token's whole noise after each step, as "
        "in mt-dnn since August 2020. step: each step, which then has the length --adv_step_size; "
        "with --adv_max_norm=1e-5, this is SMART's paper.",
        choices=("noise", "step"))
    adv_alpha: float = _of_smart(1.0, "Weight of the divergence.", least=0)
    adv_loss: str = _of_smart(
        "sym_kl", "The divergence, as in --soft_loss of bert-distill; in regression, the squared "
        "difference.", choices=CRITERIA)
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
    weight_average: str = option(
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
        if self.weight_average != "none" and getattr(self, "optimizer", "") == "averaged_adam":
            raise InputError("--optimizer=averaged_adam already averages the weights; leave out "
                             "--weight_average.")
        if self.adv_train == "none":
            return
        norms, dtype = _ASCENT[self.adv_train][2], getattr(self, "dtype", "float32")
        if self.adv_p_norm not in ("auto", *norms):
            raise InputError(f"--adv_p_norm={self.adv_p_norm}: with --adv_train={self.adv_train}, "
                             f"choose from {', '.join(norms)}.")
        lengths = {"adv_noise_var": self.adv_noise_var, **(
            {"adv_step_size": self.ascent[1]} if self.adv_norm_of == "step" else {}), **(
            {"adv_max_norm": self.adv_max_norm} if self.adv_max_norm else {})}
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
            start = 0.5 if self.weight_average == "swa" else 0.0
        return {"average": self.weight_average, "average_decay": self.average_decay,
                "average_start": int(start * steps)}

    @property
    def ascent(self) -> tuple[int, float, str]:
        """The number of steps of ascent, their size, and the norm."""
        steps, size, norms = _ASCENT[self.adv_train]
        return (self.adv_steps or steps, self.adv_step_size or size,
                norms[0] if self.adv_p_norm == "auto" else self.adv_p_norm)
