"""The archive of predictions that the server of a suite takes."""

import os
import zipfile
from collections.abc import Iterable, Mapping

from bert_tf.files import exists, open_file, replace_aside
from bert_tf.tasks.named import OF_SUITES
from bert_tf.tasks.suites import SUITES, Suite

NAME = "submission.zip"
_DATE = (1980, 1, 1, 0, 0, 0)       # of files in the archive, so that equal runs give equal bytes


def write_archive(folder: str, suite: Suite, folders: Mapping[str, str]
                  ) -> tuple[list[str], list[str]]:
    """Writes submission.zip to a folder; returns the names of its files, and the names of official
    files that are missing. Without a file there is no archive.

    Args:
        folders: of a task's file, by the name of the task.
    """
    # The task of each file that the server takes, in the suite's order.
    tasks = {layout.submission: row.task for row in suite.rows if not row.is_first
             for layout in OF_SUITES[row.task].splits.values() if layout.submission}
    files = {name: path for name, task in tasks.items() if task in folders
             and exists(path := os.path.join(folders[task], name))}
    if files:
        with (replace_aside(os.path.join(folder, NAME)) as aside,
              zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive):
            for name, path in sorted(files.items()):
                with open_file(path, "rb") as file:
                    archive.writestr(zipfile.ZipInfo(name, _DATE), file.read(),
                                     zipfile.ZIP_DEFLATED)
    return sorted(files), [name for name in tasks if name not in files]


def describe(folder: str, names: list[str], missing: list[str]) -> str:
    """Returns a line on the files of the archive in a folder, and on the server's missing files."""
    return f"wrote {os.path.join(folder, NAME)} with {', '.join(names)}" + (
        f"; the server also wants {', '.join(missing)}" if missing else "")


def write_archives(folder: str, suites: Iterable[str]) -> None:
    """Writes the archives of suites whose files are in a folder, and reports on them."""
    for suite in (SUITES[name] for name in sorted(suites)):
        print(describe(folder, *write_archive(
            folder, suite, {row.task: folder for row in suite.rows})), flush=True)
