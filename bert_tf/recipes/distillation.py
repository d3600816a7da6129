"""The ways to distil a fine-tuned model, a row each. A row may give a flag another default."""

import dataclasses
from typing import Any

from bert_tf.errors import InputError, choose_from, counted
from bert_tf.recipes.recipe import Term

# The divergences between soft targets, the names of `objectives.divergences.DIVERGENCES`.
FORMS = ("kl", "cross_entropy", "mse", "log_mse", "ns_kl", "sym_kl", "ns_sym_kl", "js", "hl")
# The ways to make further texts; see augmentation.py.
AUGMENTATIONS = ("none", "random_words", "masked_words")


@dataclasses.dataclass(frozen=True)
class Distillation:
    """A way of distillation.

    Attributes:
        terms: the losses against the teacher; classes of `bert_tf.compression.student.TERMS` or of
            `bert_tf.objectives`, which no saved model has.
        gold_weight: of the loss of gold labels, where examples have any.
        teaches: whether the teacher answers beforehand, and its answers are kept ("stored"), or in
            every step ("in_step").
        average: the values of several teachers that are averaged: "probabilities" or "logits".
        augmentation: the way to make further examples of the training file, one of `AUGMENTATIONS`.
    """

    name: str
    paper: str
    terms: tuple[Term, ...]
    gold_weight: float = 0.0
    teaches: str = "stored"
    average: str = "probabilities"
    augmentation: str = "none"
    defaults: dict[str, Any] = dataclasses.field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Returns the JSON value that identifies this row to a run, as all versions write it."""
        return {**dataclasses.asdict(self), "terms": [
            {name: getattr(term, name) for name in ("objective", "weight", "options")}
            for term in self.terms]}

    @property
    def trains_head(self) -> bool:
        """Whether the head of the task learns, not the network's layers alone."""
        return bool(self.gold_weight) or any(term.objective == "SoftTargets" for term in self.terms)

    def with_phases(self, steps: int) -> "Distillation":
        """This row with layers that begin to learn every so many steps, if it compares layers."""
        terms = list(self.terms)
        for number, term in enumerate(terms):
            if steps and "stacked" in term.options:
                terms[number] = dataclasses.replace(
                    term, options={**term.options, "phase_steps": steps})
        return dataclasses.replace(self, terms=tuple(terms))

    def with_soft(self, weight: float | None = None, gold: float | None = None,
                  **options: Any) -> "Distillation":
        """This row with another weight of its soft targets and of gold labels, and with other
        options of its soft targets; None leaves a value as it is."""
        changes = {name: value for name, value in options.items() if value is not None}
        terms = list(self.terms)
        for number, term in enumerate(terms):
            if term.objective == "SoftTargets":
                term = dataclasses.replace(term, options={**term.options, **changes})
                if weight is not None:
                    term = dataclasses.replace(term, weight=weight)
                terms[number] = term
        if gold is None:
            gold = self.gold_weight
        return dataclasses.replace(self, terms=tuple(terms), gold_weight=gold)


def _soft(form, weight=1.0, **options):
    return Term("SoftTargets", weight, {"form": form, **options})


DISTILLATIONS = {row.name: row for row in (
    # Soft targets and gold labels, half and half.
    Distillation("soft_labels", "arXiv:1503.02531", (_soft("kl", 0.5, temperature=2.0),), 0.5),
    # intersun/PKD-for-BERT-Model-Compression src/KD_loss.py; the mean over B x C.
    Distillation("pkd", "arXiv:1908.09355",
                 (_soft("kl", 0.7, temperature=5.0, mean_over="classes"),
                  Term("Patience", 100.0, {"layers": "skip"})), 0.3,
                 defaults={"optimizer": "pytorch_bert_adam", "learning_rate": 5e-5,
                           "num_train_epochs": 4.0, "train_batch_size": 32}),
    # huawei-noah/Pretrained-Language-Model TinyBERT/task_distill.py: the layers first, then, with
    # the result as the student, the logits; by the mean over B x C.
    Distillation("tinybert_layers", "arXiv:1909.10351",
                 (Term("AttentionTransfer"), Term("HiddenTransfer")), teaches="in_step",
                 defaults={"optimizer": "pytorch_bert_adam", "learning_rate": 5e-5,
                           "learning_rate_schedule": "constant", "warmup_proportion": 0.0,
                           "num_train_epochs": 20.0, "train_batch_size": 32}),
    Distillation("tinybert", "arXiv:1909.10351",
                 (_soft("cross_entropy", mean_over="classes", scales_gradient=False),),
                 defaults={"optimizer": "pytorch_bert_adam", "learning_rate": 3e-5,
                           "num_train_epochs": 3.0, "train_batch_size": 32}),
    # The layers one after the other, or each with those below it; then, with the result as the
    # student, another row's logits.
    *(Distillation(name, "arXiv:1910.03723",
                   (Term("InternalAttention", options={"stacked": stacked}),
                    Term("InternalCosine", options={"stacked": stacked})), teaches="in_step")
      for name, stacked in (("internal", False), ("internal_stacked", True))),
    # Turc et al.: no gold labels.
    Distillation("pre_trained", "arXiv:1908.08962", (_soft("cross_entropy"),)),
    # Tang et al.: the student is a BiLSTM.
    Distillation("bilstm_soft", "arXiv:1903.12136", (_soft("mse", mean_over="classes"),),
                 average="logits", augmentation="random_words",
                 defaults={"optimizer": "adadelta", "learning_rate": 1.0,
                           "learning_rate_schedule": "constant", "train_batch_size": 50,
                           "num_train_epochs": 30.0}),
    # A tagger: soft targets of each word.
    Distillation("minibert", "arXiv:1909.00100",
                 (_soft("cross_entropy", temperature=3.0, scales_gradient=False),)),
    # The mean of several teachers' probabilities, and gold labels, both with the weight 1.
    Distillation("mtdnn_kd", "arXiv:1904.09482", (_soft("kl"),), 1.0),
)}


def find_distillation(name: str) -> Distillation:
    """Returns the row of a name; InputError if there is none."""
    if name not in DISTILLATIONS:
        raise InputError(f"there is no recipe of distillation {name!r}; "
                         f"{choose_from(name, DISTILLATIONS)}")
    return DISTILLATIONS[name]


def patience_layers(choice: str, teacher_depth: int, student_depth: int) -> tuple[int, ...]:
    """The teacher's layers, from 0, with which a student's layers but the top one are compared.

    Args:
        choice: "skip", evenly over the teacher; "last", those below its top one; or their numbers
            with commas between.

    Raises:
        InputError: there are no such layers.
    """
    count = student_depth - 1
    if not count:
        raise InputError(f"--patience_layers={choice}: all layers of the student but the top one "
                         "are compared, and this student has one layer; name a deeper student, or "
                         "another --recipe.")
    if choice == "last":
        layers = tuple(range(teacher_depth - student_depth, teacher_depth - 1))
    elif choice == "skip":
        step = teacher_depth // student_depth
        layers = tuple(step * (layer + 1) - 1 for layer in range(count))
    else:
        try:
            layers = tuple(int(part) for part in choice.split(","))
        except ValueError:
            layers = ()
    if len(layers) != count or not all(0 <= i < teacher_depth for i in layers) or (
            choice == "skip" and teacher_depth % student_depth):
        raise InputError(f"--patience_layers={choice}: a student of {student_depth} layers "
                         f"compares {count} of them, all but the top one, with {count} of the "
                         f"teacher's {teacher_depth}; give {counted(count, 'number')} from 0 "
                         f"to {teacher_depth - 1}, or another student.")
    return layers
