"""The report of a table: Markdown, JSON and a picture, with published figures next to ours."""

import collections
import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.errors import counted
from bert_tf.files import write_aside, write_json
from bert_tf.flags.options import changed, shown_default
from papers.tables.table import Difference, Table


def lines(table: Table, figures: Mapping[str, Mapping[str, dict]],
          compared: Sequence[Difference], job: Any) -> list[str]:
    """The lines in Markdown."""
    titles, seeds = [column.title for column in table.columns], job.seeds
    places = [place for row in figures.values() for place in row.values()]
    text = [f"# {table.title}", "", f"    {command(table, job)}", "",
            f"Ours: mean ± standard deviation, (median), of {seeds} seed{'s' if seeds > 1 else ''}"
            + (("; in brackets the published figure, of " if table.published else "; published: ")
               + table.source) * bool(table.source) + "."
            + " A figure without ± is one measurement, which all seeds share."
            * (seeds > 1 and any(place["stdev"] is None for place in places)),
            *_grid(titles, figures)]
    for part in dict.fromkeys(part for place in places for part in place.get("parts", ())):
        text += ["", f"{part}:", *_grid(titles, {
            row: {title: place["parts"].get(part) for title, place in columns.items()}
            for row, columns in figures.items()})]
    if compared:
        counts = collections.Counter(each.verdict for each in compared)
        kind = "published difference" if table.published else "difference"
        text += ["", f"{counted(len(compared), kind)} to {compared[0].baseline}: "
                 + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + "."
                 + " A difference is not distinguished from 0 if its 95% interval, by Student's t, "
                 "has 0 in it."
                 * any(each.error is not None for each in compared)
                 + " One measurement says nothing about chance."
                 * any(each.error is None for each in compared), ""]
        text += [f"- {each}" for each in compared]
    notes = [*["`--smoke` trains too little to measure anything."] * job.smoke, *table.notes]
    return text + ["", *(f"{note}\n" for note in notes)]


def _grid(titles, figures):
    """A table in Markdown, after an empty line."""
    return ["", f"| | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|",
            *(f"| {row} | " + " | ".join(_place(places.get(title)) for title in titles) + " |"
              for row, places in figures.items())]


def _place(place):
    if not place:
        return ""
    text = f"{place['mean']:.1f}"
    if place["stdev"] is not None:
        text += f" ± {place['stdev']:.1f} ({place['median']:.1f})"
    return text + (f" [{place['published']:g}]" if "published" in place else "")


def command(table: Table, job: Any) -> str:
    """The command line of the table."""
    return " ".join([f"bert-benchmark {table.name}", *(
        shlex.quote(f"--{name}={shown_default(value)}") for name, value in changed(job).items()
        if not (job.smoke and value == job.little.get(name)))])


def write(table: Table, figures: Mapping[str, Mapping[str, dict]],
          compared: Sequence[Difference], job: Any) -> None:
    """Writes NAME.json, NAME.md and NAME.png to the output folder, and prints the table."""
    path = os.path.join(job.output_dir, table.name)
    write_json(f"{path}.json", {
        "title": table.title, "source": table.source, "settings": dataclasses.asdict(job),
        "rows": figures, "differences": [
            {**dataclasses.asdict(each), "verdict": each.verdict} for each in compared],
        "notes": list(table.notes)})
    text = lines(table, figures, compared, job)
    with write_aside(f"{path}.md") as file:
        file.writelines(f"{line}\n" for line in text)
    print("\n".join(text[6:]), flush=True)
    draw(f"{path}.png", table, figures)
    print(f"wrote {path}.md, {path}.json and {path}.png", flush=True)


def draw(path: str, table: Table, figures: Mapping[str, Mapping[str, dict]]) -> None:
    """Draws the means with their deviations as PNG, and published figures on an axis of their own.
    """
    from bert_tf.analysis.pictures import picture
    titles = [column.title for column in table.columns]
    if table.over:
        with picture(path, 1, 1, (6, 4)) as (figure, axes):
            figure.suptitle(table.title, fontsize=10)
            _draw_curves(axes[0, 0], table, figures, titles)
        return
    with picture(path, 1, len(titles), (2.4 + 2 / len(titles), 1.2 + 0.4 * len(table.rows)),
                 sharey=True) as (figure, axes):
        figure.suptitle(table.title, fontsize=10)
        for axis, title in zip(axes[0], titles):
            _draw_column(axis, table, figures, title)
        axes[0, 0].set_yticks(range(len(table.rows)), table.rows)
        axes[0, 0].invert_yaxis()


def _draw_curves(axis, table, figures, titles):
    for row in table.rows:
        points = [figures[row][title] for title in titles if title in figures[row]]
        axis.errorbar([float(title) for title in titles if title in figures[row]],
                      [point["mean"] for point in points],
                      [point["stdev"] or 0 for point in points], marker="o", capsize=3, label=row)
    axis.set_xlabel(table.over)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)


def _draw_column(axis, table, figures, title):
    """Ours on the lower axis, and published figures on the upper one."""
    places = [(number, figures[row][title]) for number, row in enumerate(table.rows)
              if title in figures[row]]
    axis.errorbar([place["mean"] for _, place in places], [number for number, _ in places],
                  xerr=[place["stdev"] or 0 for _, place in places], fmt="o", capsize=3)
    axis.set_xlabel(f"{title}: ours", color="C0", fontsize=8)
    axis.grid(alpha=0.3, axis="x")
    if published := [(number, place["published"]) for number, place in places
                     if "published" in place]:
        other = axis.twiny()
        other.plot([value for _, value in published], [number for number, _ in published], "D",
                   color="C1", fillstyle="none")
        other.set_xlabel("published", color="C1", fontsize=8)
