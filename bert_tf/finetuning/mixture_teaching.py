"""Teachers of the tasks of a model of several tasks."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import compression
from bert_tf.errors import InputError
from bert_tf.recipes.distillation import DISTILLATIONS, Distillation, find_distillation
from bert_tf.tasks.task import Task

# How tasks learn unless their row names another way.
MTDNN = DISTILLATIONS["mtdnn_kd"]


def teachers_of(row: Mapping[str, Any], name: str, task: Task) -> tuple[str, ...]:
    """The folders of the teachers of a task, from its row.

    Raises:
        InputError: they are not folders, or the task can have none.
    """
    folders = tuple(row.get("teachers", ()))
    if folders and any(feature.axis == "C*S" for feature in task.kind.features):
        raise InputError(f"teachers of {name}: give folders of classification "
                         "or regression models.")
    return folders


def distillation_of(row: Mapping[str, Any], name: str) -> Distillation:
    """Returns the `Distillation` of a task, from its row."""
    distillation = find_distillation(row.get("distillation", MTDNN.name))
    if [term.objective for term in distillation.terms] != ["SoftTargets"]:
        raise InputError(f"distillation of {name}: {distillation.name} compares more than logits; "
                         "give one that compares only logits, such as mtdnn_kd or minibert.")
    return distillation


def taught_records(member, folder: str) -> "compression.TaughtRecords":
    """The training records of a task, a `Member`, that its teachers answer, for a folder."""
    source = member.splits.sources["train"]
    teachers = compression.Teachers(tuple(map(compression.Teacher, member.teachers)))
    teachers.check(member.task)
    own = {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}
    return compression.TaughtRecords(
        compression.TransferSource(**own), member.task.kind.record_options(*member.of_input),
        member.model.tokenizer, folder, teachers)


def described(taught: Mapping[str, Distillation]) -> dict[str, Any]:
    """Describes the `Distillation`s of tasks, if one of them is not MT-DNN's."""
    rows = {name: row.describe() for name, row in taught.items() if row != MTDNN}
    return {"distillation": rows} if rows else {}


def shared_features(members: Sequence) -> Any:
    """The `SharedFeatures` of some tasks, which are `Member`s."""
    of_words = {member.name for member in members if member.task.kind.name == "tagging"}
    soft = {is_word: max((len(member.task.labels) or 1 for member in members if member.teachers
                          and (member.name in of_words) == is_word), default=0)
            for is_word in (False, True)}
    from bert_tf.models.mtdnn.batches import SharedFeatures
    return SharedFeatures(bool(of_words), soft[False], soft[True])
