"""Opens the records that a flag names."""

from typing import Any

from bert_tf import recipes
from bert_tf.data.batches.pipeline import RecordSet
from bert_tf.data.records import manifest
from bert_tf.errors import InputError


def open_records(patterns: str | list[str], flag: str) -> Any:
    """Returns the `RecordSet` of a flag; where manifests name tasks, the recipe's mixture of them.

    Raises:
        InputError: see `RecordSet.open`; or only some records belong to a task.
    """
    paths = manifest.record_files(patterns, flag)
    by_task: dict[str, list[str]] = {}
    manifests = manifest.find_manifests(paths)
    manifest.check_whole(manifests, patterns, flag)
    known = {path: recipes.of_manifest(record)
             for record, entries, _ in manifests for path in entries}
    for path in paths:
        by_task.setdefault(known[path].task if path in known else "", []).append(path)
    if not any(by_task):
        return RecordSet.open(patterns, flag)
    if "" in by_task:
        raise InputError(f"--{flag}: {by_task[''][0]} names no task, but other records do; train "
                         "on records of one recipe, with their manifests beside them.")
    recipe = next(iter(known.values()))
    return recipes.load(recipe.mixture)({
        name: RecordSet.open(by_task[name], flag) for name in recipe.tasks if name in by_task})
