"""Tables of papers: cells are done once and resume, reports are right, command lines are taken."""

import contextlib
import dataclasses
import importlib
import inspect
import json
import pathlib
import re
import shlex
import statistics
import threading

import numpy as np
import pytest

from benchmarks.flops import flops_of
from bert_tf import kept, recipes
from bert_tf.config import T5Config, config_from_dict
from bert_tf.data.masking import find
from bert_tf.data.records.manifest import manifest_path
from bert_tf.errors import InputError
from bert_tf.files import locked
from bert_tf.flags import REQUIRED
from bert_tf.flags.options import defaults_of
from bert_tf.tasks.named import TASKS
from bert_tf.tokenization import open_tokenizer
from bert_tf.tokenization.vocabulary import check_fits
from papers import (
    albert_ablations,
    albert_shapes,
    encoder_patterns,
    first_weights,
    history,
    masking_rates,
    model_sizes,
    multitask,
    robust_finetuning,
    student_sizes,
    training_flops,
    training_steps,
    xlnet_ablations,
)
from papers.tables import report
from papers.tables.cells import Cell, Cells, Made
from papers.tables.making import make
from papers.tables.material import Material
from papers.tables.table import Column, Difference, Table, differences, fill
from run_scripts import commands

FILES = {"translate_de_en": ("train.tsv", "dev.tsv"),
         "MNLI": ("train.tsv", "dev_matched.tsv"), "MRPC": ("train.tsv", "dev.tsv"),
         "SST-2": ("train.tsv", "dev.tsv"), "conll2003": ("eng.train", "eng.testa"), "SNLI": (),
         "STS-B": ("train.tsv", "dev.tsv")}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SQUAD = {f"squad{version}_{part}_file": f"{part}{version}.json"
         for version in ("", "_v2") for part in ("train", "predict")}
# The published figures again, as the papers print them, row after row.
PRINTED = {
    "masking-rates": "84.2 95.4 94.9 84.3 94.9 94.0 84.1 95.2 94.6 84.4 95.2 94.7 83.7 94.8 94.6 "
                     "83.6 94.9 94.6",
    "directions": "84.4 88.4 86.7 92.7 88.5 83.9 84.9 86.5 92.6 87.9 82.1 84.3 77.5 92.1 77.8 "
                  "82.1 84.1 75.7 91.6 84.9",
    "model-sizes": "5.84 77.9 79.8 88.4 5.24 80.6 82.2 90.7 4.68 81.9 84.8 91.3 3.99 84.4 86.7 "
                   "92.9 3.54 85.7 86.9 93.3 3.23 86.6 87.8 93.7",
    "sentence-order": "54.9 52.4 53.3 88.6 81.5 78.1 75.3 81.5 89.9 61.7 54.5 90.5 52.0 88.4 81.5 "
                      "77.2 74.6 81.6 91.1 62.3 54.0 78.9 86.5 89.3 82.3 80.0 77.1 82.0 90.3 64.0",
    "static-masks": "84.3 92.5 78.3 84.0 92.9 78.7",
    "feature-based": "96.6 92.8 96.4 92.4 91.0 95.6 94.9 95.9 96.1 95.5",
    "input-formats": "90.4 78.7 84.0 92.9 64.2 88.7 76.2 82.9 92.1 63.0 90.4 79.1 84.7 92.5 64.8 "
                     "90.6 79.7 84.7 92.7 65.6",
    "xlnet-ablations": "64.3 76.30 73.66 84.34 92.78 65.03 79.56 76.80 84.88 92.60 66.05 81.33 "
                       "78.46 85.84 92.66 66.66 80.98 78.18 85.63 93.35 65.55 80.15 77.27 85.32 "
                       "92.78 65.95 80.61 77.91 85.49 93.12 66.34 80.65 77.87 85.31 92.66 66.76 "
                       "79.83 76.94 85.32 92.89",
}
# ALBERT's averages, which its other figures must give: F1 and exact match of SQuAD are one score.
AVERAGES = {
    "albert-shapes": "82.3 85.2 80.1 82.4 85.5 88.7",
    "albert-ablations": "81.3 81.7 81.8 82.3 81.7 81.6 80.2 79.5 79.0 80.1 79.6 79.8",
    "sentence-order": "79.0 79.2 80.1",
}
PAPERS = [name for name, module in commands.programs("bert-benchmark").items()
          if module.startswith("papers.")]


RECIPES_OF_CURVES = next(field.metadata["choices"] for field in dataclasses.fields(
    first_weights.FirstWeightsFlags) if field.name == "recipe")


@pytest.fixture(name="data_dir")
def fixture_data_dir(tmp_path):
    """Folders with files of the tasks' names; SQuAD's too."""
    for task, files in FILES.items():
        (tmp_path / "data" / task).mkdir(parents=True)
        for file in files:
            (tmp_path / "data" / task / file).touch()
    for name in SQUAD.values():
        (tmp_path / name).write_text("{}")
    for split in ("train", "dev"):
        (tmp_path / "data" / "SNLI" / TASKS["snli"].splits[split].files[0]).write_text(
            "gold_label\tsentence1\tsentence2\n" + "entailment\ta\tOne.\nneutral\tb\tTwo.\n"
            "contradiction\tc\tThree.\n-\td\tFour.\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.keras").touch()
    return tmp_path / "data"


def declared(name, data_dir, **values):
    """The table of a program."""
    module = importlib.import_module(f"papers.{name.replace('-', '_')}")
    kind, = commands.describe(f"bert-benchmark {name}").classes
    model = str(data_dir.parent / "model")
    needed = {"init_checkpoint": model, "mtdnn_checkpoint": model, "task": "mrpc",
              "tasks": ["mrpc", "mnli"], "models": [f"teacher={model}", f"q8bert={model}+{model}"]}
    given = {field.name: needed[field.name] for field in dataclasses.fields(kind)
             if field.name in needed and {field.default, field.default_factory} == {REQUIRED}}
    return inspect.unwrap(module.main)(flags_for(kind, data_dir, **{**given, **values}))


def flags_for(kind, data_dir, **values):
    squad = {name: str(data_dir.parent / file) for name, file in SQUAD.items()
             if name in defaults_of(kind)}
    return kind(output_dir=str(data_dir.parent / "out"), data_dir=[str(data_dir)], **squad,
                **values)


# Cells

@pytest.fixture(name="done")
def fixture_done(monkeypatch):
    """Command lines that were carried out, none of which trains: each writes its seed."""
    done = []

    def parse(arguments):
        def main(values):
            done.append(shlex.join(arguments))
            if values.get("fails") == "true" and len(done) < 3:
                raise KeyboardInterrupt
            folder = values["output_dir"]
            with open(f"{folder}/metrics.json", "w", encoding="utf-8") as file:
                json.dump({"metrics": {"dev/accuracy": float(values["seed"]) / 10}}, file)
            with open(f"{folder}/model.keras", "w", encoding="utf-8") as file:
                file.write("weights")
        return main, [dict(part.removeprefix("--").split("=", 1) for part in arguments
                           if part.startswith("--"))]

    monkeypatch.setattr(commands, "parse", parse)
    return done


def two_rows(fails=False):
    """A table of two rows that share what comes before them."""
    first = Cell("first", "bert-first", {"output_dir": Made("."), "seed": 0}, is_kept=True)

    def cell(row, column, seed):
        return Cell(row, "bert-second", {
            "model": first / "model.keras", "output_dir": Made("."), "fails": fails,
            "seed": seed + 3 * (row == "b"), "absent": None})

    return Table("two", "Two rows", "a paper", ["a", "b"], [Column("task", "dev/accuracy")], cell,
                 {"a": {"task": 80.0}, "b": {"task": 79.0}})


def test_each_cell_is_done_once_and_a_killed_run_resumes(tmp_path, done):
    with pytest.raises(KeyboardInterrupt):
        fill(two_rows(True), Cells(str(tmp_path / "cells")), [1, 2, 3])
    assert len(done) == 2       # the model, and the cell that was killed
    found = fill(two_rows(True), Cells(str(tmp_path / "cells")), [1, 2, 3])
    assert len(done) == 2 + 6 and done[1] in done[2:]
    assert found["a"]["task"]["values"] == pytest.approx({"1": 10, "2": 20, "3": 30})
    assert "absent" not in done[-1] and "first-" in done[-1]
    again = fill(two_rows(True), Cells(str(tmp_path / "cells")), [1, 2, 3])
    assert again == found and len(done) == 8
    kept_files = {path.parent.name[0]: path for path in tmp_path.rglob("model.keras")}
    assert set(kept_files) == {"f"}     # of cells that are not kept the results alone stay


def test_a_cell_with_another_flag_is_another(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("a")

    def names(**flags):
        first = Cell("a", "bert-first", {"input_file": [str(text)], **flags})
        return first.folder, Cell("b", "bert-second", {"model": first / "model"}).folder

    before = names(seed=1)
    assert before == names(seed=1)
    assert not set(before) & set(names(seed=2))
    text.write_text("another")
    assert not set(before) & set(names(seed=1))


def test_cells_of_another_process_are_waited_for(tmp_path, done, monkeypatch):
    """The cell that another one holds is done last, by that one."""
    cells, table = Cells(str(tmp_path)), two_rows()
    first, held = (table.cell("a", table.columns[0], seed) for seed in (1, 2))
    cells.carry_out([first])
    folder = cells.path(held)
    waiting, has_lock = threading.Event(), threading.Event()

    def other():
        kept.make_folder(folder, "output_dir")
        with locked(folder, "other"):
            has_lock.set()
            waiting.wait()
            kept.write_json(cells.path(held, kept.CELL), {"results": {"dev/accuracy": 0.5}})

    def sleep(seconds):
        waiting.set()
        thread.join()

    monkeypatch.setattr(kept, "locked", refuse_if(has_lock, waiting, locked))
    monkeypatch.setattr(kept.time, "sleep", sleep)
    thread = threading.Thread(target=other)
    thread.start()
    has_lock.wait()
    cells.carry_out([held, table.cell("b", table.columns[0], 1)])
    assert len(done) == 3 and cells.result(held) == {"dev/accuracy": 0.5}


def refuse_if(has_lock, waiting, locked):
    """`locked` as another process meets it: locks of one process do not exclude each other."""
    def held(path, what):
        if has_lock.is_set() and not waiting.is_set() and path.split("/")[-1].startswith("a-"):
            raise kept.Held("another process is at work")
        return locked(path, what)
    return held


def test_an_error_names_the_cell(tmp_path, monkeypatch):
    def parse(arguments):
        raise InputError("--seed is 0.")

    monkeypatch.setattr(commands, "parse", parse)
    cell = Cell("a", "bert-first", {})
    with pytest.raises(InputError, match=f"{cell.folder}, bert-first: --seed is 0"):
        Cells(str(tmp_path)).carry_out([cell])


@pytest.mark.parametrize("content", ["", "{", "\xff", "[]", "{}", '{"results": []}'])
def test_damaged_results_are_named(tmp_path, content):
    cell = Cell("a", "bert-first", {})
    path = tmp_path / cell.folder / kept.CELL
    path.parent.mkdir()
    path.write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=f"{re.escape(str(path))}.*; remove it"):
        Cells(str(tmp_path)).carry_out([cell])


@pytest.mark.parametrize("figure", ["NaN", "Infinity"])
def test_results_that_are_no_numbers_are_named(tmp_path, figure):
    table, cells = two_rows(), Cells(str(tmp_path))
    for seed in (1, 2):
        path = tmp_path / table.cell("b", table.columns[0], seed).folder / kept.CELL
        path.parent.mkdir()
        path.write_text(f'{{"results": {{"dev/accuracy": {figure if seed == 2 else 0.5}}}}}')
    with pytest.raises(InputError, match=f"{re.escape(str(path))}: dev/accuracy is .*; leave"):
        fill(table.only(["b"], []), cells, [1, 2])


@pytest.mark.parametrize("tokens, rows", [(1000, 1000), (873, 896), (872, 872), (300, 384)])
def test_a_model_has_rows_for_the_vocabulary_that_was_made(tmp_path, monkeypatch, tokens, rows):
    """Rows that no tokenizer refuses, and no records: their tokens, or the next multiple of 128."""
    def parse(arguments):
        def main():
            if arguments[0] == "bert-build-vocab":
                with open(arguments[1].split("=")[1], "w", encoding="utf-8") as file:
                    file.write("\n".join([*SPECIAL, *map(str, range(tokens - len(SPECIAL)))]))
        return main, []

    monkeypatch.setattr(commands, "parse", parse)
    made = Cell("v", "bert-build-vocab", {"output_file": Made("vocab.txt")}, is_kept=True)
    records = Cell("r", "bert-first", {"vocab_file": made / "vocab.txt"}, is_kept=True)
    sizes = {"vocab_size": 1000, "hidden_size": 2}
    model = Cell("m", "bert-second", {"input_file": records / "r.tfrecord"},
                 files={"sizes.json": sizes, "other.json": {"a": 1}}, is_kept=True)
    cells = Cells(str(tmp_path))
    cells.carry_out([model])
    assert kept.read_json(cells.path(model, "sizes.json")) == {**sizes, "vocab_size": rows}
    assert kept.read_json(cells.path(model, "other.json")) == {"a": 1}
    check_fits(open_tokenizer(cells.path(made, "vocab.txt")).vocabulary, rows)


# Reports

def test_reports_have_means_deviations_medians_and_directions(tmp_path, done):
    job = flags_for(masking_rates.TableFlags, tmp_path, seeds=3)
    make(two_rows(), job)
    values = json.loads((tmp_path.parent / "out" / "two.json").read_text())["rows"]["b"]["task"]
    assert values["mean"] == statistics.fmean([40, 50, 60])
    assert (values["median"], values["stdev"], values["published"]) == (50, 10, 79)
    text = (tmp_path.parent / "out" / "two.md").read_text()
    assert "| b | 50.0 ± 10.0 (50.0) [79] |" in text and "--seeds" not in text
    assert "task, b less a: -1.0 published, +30.00 ± 0.00 here: the direction differs" in text
    assert "1 the direction differs" in text
    assert (tmp_path.parent / "out" / "two.png").stat().st_size > 5000


@pytest.mark.parametrize("published, ours, error, verdict", [
    (1.0, 2.2, 0.5, "as published"), (-1.0, 2.2, 0.5, "the direction differs"),
    (1.0, 2.1, 0.5, "not distinguished from 0"), (1.0, -2.0, None, "one measurement"),
    (1.0, 2.0, 0.0, "as published"), (1.0, 0.0, 0.0, "not distinguished from 0"),
    (0.0, 2.0, None, "one measurement"), (0.0, 2.2, 0.5, "higher"),
    (0.0, -2.2, 0.5, "lower"), (0.0, 0.4, 0.5, "not distinguished from 0")])
def test_verdicts(published, ours, error, verdict):
    """Of three seeds: Student's t of two degrees of freedom is 4.30."""
    assert Difference("b", "a", "task", published, ours, error, 3).verdict == verdict


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_one_equal_pair_in_twenty_is_told_apart(seeds):
    draws = np.random.default_rng(0).normal(size=(1000, seeds))
    verdicts = [Difference("b", "a", "task", 1.0, each.mean(), each.std(ddof=1) / seeds ** 0.5,
                           seeds).verdict for each in draws]
    assert 0.03 < 1 - verdicts.count("not distinguished from 0") / len(draws) < 0.07


@pytest.mark.parametrize("models, error, verdict", [
    (1, None, "one measurement"), (2, 5, "not distinguished from 0"),
    (3, 10 / 3 ** 0.5, "the direction differs")])
def test_a_cell_that_seeds_share_is_one_measurement(tmp_path, done, models, error, verdict):
    """Row a scores 10, 20, 30 for three models; row b 40, 60, 80."""
    one = two_rows()

    def cell(row, column, seed):
        seed = 1 if column.title == "gain" else (seed - 1) % models + 1
        return one.cell("a", column, seed if row == "a" else 2 * seed + 2)

    table = dataclasses.replace(one, cell=cell, columns=[
        *one.columns, Column("gain", "dev/accuracy", 1.0, ratio="gain")])
    make(table, flags_for(masking_rates.TableFlags, tmp_path))
    report_of = json.loads((tmp_path.parent / "out" / "two.json").read_text())
    place, gain = (report_of["rows"]["a"][title] for title in ("task", "gain"))
    assert place["values"] == pytest.approx({str(seed): 10 * seed for seed in range(1, models + 1)})
    assert place["stdev"] == (None if models == 1 else pytest.approx(
        statistics.stdev(place["values"].values())))
    assert gain["stdev"] is None
    found, = report_of["differences"]
    assert (found["error"], found["verdict"]) == (error and pytest.approx(error), verdict)
    text = (tmp_path.parent / "out" / "two.md").read_text()
    assert "A figure without ± is one measurement, which all seeds share." in text
    assert f"1 published difference to a: 1 {verdict}." in text
    assert ("One measurement says nothing about chance." in text) == (models == 1)
    assert ("by Student's t" in text) == (models > 1)


def test_a_place_is_the_mean_over_tasks(tmp_path, done):
    """Task "t" scores 10, 20 and 30 in row a, task "u" twice as much."""
    one = two_rows()
    table = dataclasses.replace(
        one, cell=lambda row, column, seed, task: one.cell(row, column, seed), published={},
        tasks=[Column("t", "dev/accuracy"), Column("u", "dev/accuracy", 200.0)],
        subsets={"without t": ["u", "v"]})
    make(table, flags_for(masking_rates.TableFlags, tmp_path))
    place = json.loads((tmp_path.parent / "out" / "two.json").read_text())["rows"]["a"]["task"]
    assert place["values"] == pytest.approx({"1": 15, "2": 30, "3": 45})
    assert {name: part["mean"] for name, part in place["parts"].items()} == pytest.approx(
        {"t": 20, "u": 40, "without t": 40})
    text = (tmp_path.parent / "out" / "two.md").read_text()
    assert "| a | 30.0 ± 15.0 (30.0) |" in text
    assert text.index("\nwithout t:\n") < text.index("\nt:\n")


def test_averages_and_gains(tmp_path, done):
    """A gain is the baseline's number by the row's; F1 and exact match count as one score."""
    one = two_rows()
    columns = [*(Column(title, "dev/accuracy", factor) for title, factor in (
        ("F1", 100.0), ("EM", 200.0), ("task", 500.0))),
        Column("gain", "dev/accuracy", 1.0, ratio="gain"),
        Column("Avg", "", mean_of=(("F1", "EM"), ("absent",), ("task",)))]
    table = dataclasses.replace(
        one, columns=columns, baseline="b",
        published={row: {"F1": value, "EM": value + 2, "task": 3 * value}
                   for row, value in (("a", 10.0), ("b", 20.0))})
    found = fill(table, Cells(str(tmp_path)), [1, 2, 3])
    assert len(done) == 1 + 6       # what columns share is done once
    # Seeds score 10, 20, 30 in row a, and 40, 50, 60 in row b.
    assert found["a"]["Avg"]["values"] == pytest.approx({"1": 32.5, "2": 65, "3": 97.5})
    assert found["a"]["gain"]["values"] == pytest.approx({"1": 4, "2": 2.5, "3": 2})
    assert found["b"]["gain"]["mean"] == 1
    assert [found[row]["Avg"]["published"] for row in "ab"] == [20.5, 40.5]
    average = differences(table, found)[-1]
    assert (average.column, average.published) == ("Avg", -20.0)
    assert [column.title for column in table.only([], ["Avg"]).columns] == [
        "F1", "EM", "task", "Avg"]


def test_rows_without_published_figures_are_compared_all_the_same():
    table = dataclasses.replace(two_rows(), published={})
    found = {row: {"task": {"values": dict(enumerate(values))}}
             for row, values in {"a": [10, 20, 30], "b": [12, 23, 34]}.items()}
    one, = differences(table, found)
    assert str(one) == "task, b less a: +3.00 ± 0.58 here: higher"
    assert not differences(dataclasses.replace(table, published={"b": {"task": 1.0}}), found)


def test_unknown_rows_are_refused(tmp_path):
    job = flags_for(masking_rates.TableFlags, tmp_path, rows=["c"])
    with pytest.raises(InputError, match="--rows: there is no 'c'"):
        make(two_rows(), job)


def test_curves_are_drawn(tmp_path):
    table = dataclasses.replace(two_rows(), columns=[Column("0", "m"), Column("20", "m")],
                                over="steps")
    place = {"mean": 1.0, "stdev": None}
    report.draw(str(tmp_path / "a.png"), table, {row: {"0": place, "20": place} for row in "ab"})
    assert (tmp_path / "a.png").stat().st_size > 5000


# The tables

def cells_of(table, seed=1):
    tasks = [[task] for task in table.tasks] or [[]]
    columns = [column for column in table.columns if not column.mean_of]
    return [cell for row in table.rows for column in columns for task in tasks
            if (cell := table.cell(row, column, seed, *task))]


@pytest.mark.parametrize("name", PAPERS)
def test_all_command_lines_are_taken(name, data_dir):
    """All flags of all cells, and of those that they need, are flags of their programs."""
    table, seen = declared(name, data_dir), {}

    def visit(cell):
        if cell.folder not in seen:
            seen[cell.folder] = cell
            for need in cell.needs:
                visit(need)

    for cell in cells_of(table):
        visit(cell)
    assert len(seen) >= len(table.rows)
    for cell in seen.values():
        arguments = cell.arguments(str(data_dir.parent), ".")
        main, configs = commands.parse([*cell.command.split(), *arguments])
        given = {name: value for config in configs for name, value in vars(config).items()}
        assert callable(main) and all(
            argument.partition("=")[0].removeprefix("--") in given for argument in arguments)


@pytest.mark.parametrize("kind, columns, missing", [
    ("model-sizes", [], "MNLI-m, MRPC, SST-2"), ("model-sizes", ["MRPC"], "MRPC"),
    ("model-sizes", ["LM (ppl)", "MRPC"], "MNLI-m, MRPC, SST-2"),
    # Steps have all tasks, and an average too.
    ("training-steps", ["1200"], "MNLI-m"),
    ("albert-ablations", ["Avg", "SST-2"], ", ".join(albert_ablations.TASKS))])
def test_columns_that_are_not_wanted_are_not_named_as_missing(kind, columns, missing, tmp_path,
                                                              capsys):
    with contextlib.suppress(InputError):       # no task is left
        declared(kind, tmp_path, columns=columns)
    assert capsys.readouterr().out.partition("have their files: ")[2].strip() == missing


@pytest.mark.parametrize("name", PRINTED)
def test_published_figures_are_those_printed(name, data_dir):
    published = declared(name, data_dir).published
    assert [value for row in published.values() for value in row.values()] == list(
        map(float, PRINTED[name].split()))


@pytest.mark.parametrize("name", AVERAGES)
def test_published_figures_give_the_averages_that_are_printed(name, data_dir):
    figures = declared(name, data_dir).published.values()
    for row, wanted in zip(figures, map(float, AVERAGES[name].split()), strict=True):
        f1, exact, f1_v2, exact_v2, *rest = (row[title] for title in albert_shapes.TASKS)
        scores = [(f1 + exact) / 2, (f1_v2 + exact_v2) / 2, *rest]
        assert statistics.fmean(scores) == pytest.approx(wanted, abs=0.051)


def test_shapes_of_albert(data_dir):
    """Layers, widths and embeddings of the paper, scaled; what is shared decides the weights."""
    job = flags_for(albert_shapes.AlbertShapesFlags, data_dir)
    table = inspect.unwrap(albert_shapes.main)(job)
    assert [column.title for column in table.columns] == [
        "SQuAD", "SQuAD EM", "SQuAD2.0", "SQuAD2.0 EM", "MNLI-m", "SST-2", "Avg", "Speedup"]
    cells = {row: table.cell(row, table.columns[-1], 1) for row in table.rows}
    configs = {row: config_from_dict(cell.files["sizes.json"]) for row, cell in cells.items()}
    assert [(config.depth, config.hidden_size, config.embedding_width, config.num_hidden_groups)
            for config in configs.values()] == [
        (2, 96, 96, None), (4, 128, 128, None), (2, 96, 32, 1), (4, 128, 32, 1), (4, 256, 32, 1),
        (2, 512, 32, 1)]
    assert "ALBERT base: 2 x 96 with 12, 0.38 [12]" in table.notes[0]
    tuned = table.cell("ALBERT base", table.columns[2], 1)
    assert tuned.flags["version_2_with_negative"] and tuned.flags["train_file"].endswith("_v2.json")
    assert tuned.folder == table.cell("ALBERT base", table.columns[3], 1).folder
    with pytest.raises(InputError, match="--layer_scale=5 and --width_scale=8: BERT base has 12"):
        dataclasses.replace(job, layer_scale=5)
    ablations = declared("albert-ablations", data_dir)
    weights = {row: config_from_dict(ablations.cell(
        row, ablations.columns[0], 1).files["sizes.json"]).num_weights for row in ablations.rows}
    assert sorted(weights, key=weights.get)[:3] == [
        f"all shared: E {width}" for width in (64, 128, 256)]
    for width in (128, 768):
        found = [weights[f"{shared} shared: E {width}"] for shared in (
            "all", "feed-forward", "attention", "nothing")]
        assert found == sorted(set(found))


def test_rows_of_xlnet_differ_in_what_their_names_say(data_dir):
    """The flags of records and of training, beside those of K = 6."""
    table = declared("xlnet-ablations", data_dir)

    def flags_of(row):
        model, = (need for need in table.cell(row, table.columns[0], 1).needs
                  if need.name.startswith("pretrained"))
        found = {**model.flags["input_file"].cell.flags, **model.flags, "input_file": None}
        return {name: value for name, value in found.items()
                if not isinstance(value, Made) or value.cell}

    base = flags_of("XLNet K = 6")
    assert base["max_predictions_per_seq"] == 128 // 6
    changes = {row: {name: value for name, value in flags_of(row).items()
                     if value != base.get(name)} for row in table.rows if row != "BERT"}
    assert changes == {
        "DAE + Transformer-XL": {"terms": ["masked_lm"]},
        "XLNet K = 7": {"mask_alpha": 7, "max_predictions_per_seq": 128 // 7},
        "XLNet K = 6": {}, "- memory": {"mem_len": 0}, "- span-based pred": {"max_gram": 1},
        "- bidirectional data": {"bi_data": False},
        "+ next-sent pred": {"terms": ["permutation_lm", "next_sentence"]}}
    assert base["vocab_file"].path == "spiece.model"
    with pytest.raises(InputError, match="--train_batch_size must be even"):
        xlnet_ablations.XLNetAblationsFlags(output_dir="out", train_batch_size=7)


def test_models_that_differ_in_fine_tuning_alone_are_pretrained_once(data_dir):
    table = declared("directions", data_dir)
    folders = {row: {cell.folder for cell in table.cell(row, table.columns[0], 1).needs
                     if cell.name.startswith("pretrained")} for row in table.rows}
    assert folders["LTR & No NSP"] == folders["+ BiLSTM"]
    assert len(set.union(*folders.values())) == 3
    rates = declared("masking-rates", data_dir)
    models = {cell.needs[0].folder for cell in cells_of(rates)}
    assert len(models) == 6
    spread = [rates.cell(rates.rows[0], rates.columns[0], seed).needs[0].folder
              for seed in (1, 2, 3)]
    assert len(set(spread)) == 3
    shared = declared("masking-rates", data_dir, pretraining_seeds=1)
    assert len({shared.cell(rates.rows[0], rates.columns[0], seed).needs[0].folder
                for seed in (1, 2, 3)}) == 1


def test_figure_5_begins_with_kept_checkpoints(data_dir):
    job = flags_for(training_steps.TrainingStepsFlags, data_dir)
    table = inspect.unwrap(training_steps.main)(job)
    assert [column.title for column in table.columns] == [
        "0", "200", "400", "600", "800", "1000", "1200"]
    task, = table.tasks
    lines = [table.cell("masked LM", column, 1, task).line("", "") for column in table.columns]
    assert "--init_checkpoint" not in lines[0] and "checkpoint-000000400.safetensors" in lines[2]
    models = {need.folder for column in table.columns
              for need in table.cell("masked LM", column, 1, task).needs if "steps" in need.name}
    assert len(models) == 1
    with pytest.raises(InputError, match="multiple of --points"):
        flags_for(training_steps.TrainingStepsFlags, data_dir, points=7)


def test_curves_of_first_weights_score_kept_checkpoints(data_dir):
    table = declared("first-weights", data_dir, recipe="electra", points=2)
    assert [column.title for column in table.columns] == ["600", "1200"]
    lines = {row: [table.cell(row, column, 1, *table.tasks) for column in table.columns]
             for row in table.rows}
    assert all(cell.command == "bert-run-pretraining" and "checkpoint-" in cell.line("", "")
               for cells in lines.values() for cell in cells)
    models = {row: next(need for need in cells[0].needs if need.name.startswith("pretrained"))
              for row, cells in lines.items()}
    given = {row: dict(model.flags) for row, model in models.items()}
    assert given["original"].pop("first_weights") == "original"
    assert given["neighbours"].pop("first_weights") == "neighbours"
    assert [given[row]["recipe"] for row in given] == ["electra", "electra"]
    tuned = declared("first-weights", data_dir, tasks=["MRPC"], points=2)
    assert [column.title for column in tuned.columns] == ["0", "600", "1200"]


@pytest.mark.parametrize("recipe", RECIPES_OF_CURVES)
def test_first_weights_of_each_recipe(recipe, data_dir):
    """Data preparation can make the records, and the score is a measure of the recipe's terms."""
    table = declared("first-weights", data_dir, recipe=recipe)
    cell = table.cell("original", table.columns[0], 1, *table.tasks)
    for need in (need for need in cell.needs if need.name.startswith("records")):
        given = dict(need.flags)
        masks = find(recipes.RECIPES[given.get("recipe", "bert")].corruption)
        assert given.get("masking") != "dynamic" or masks.can_be_dynamic
    # A model is scored by the recipe of the flags, or else of the records.
    scored = recipes.RECIPES[dict(cell.flags).get("recipe", given.get("recipe", "bert"))]
    assert scored.name == recipe
    column, = table.tasks
    assert column.metric == f"{scored.terms[0].options.get('metrics_name', 'masked_lm')}_accuracy"


def test_fixed_heads_of_a_translator(data_dir, tmp_path):
    """Seven patterns and a learned head by depth."""
    job = flags_for(encoder_patterns.EncoderPatternsFlags, data_dir, depths=["2+1"])
    table = inspect.unwrap(encoder_patterns.main)(job)
    sizes = [table.cell(row, table.columns[0], 1).files["sizes.json"] for row in table.rows]
    configs = [T5Config.from_dict(size) for size in sizes]
    assert [config.learned_heads for config in configs] == [8, 1]
    assert [config.stacks for config in configs] == [{"encoder": 2, "decoder": 1}] * 2
    with pytest.raises(InputError, match="'two' is not a depth"):
        encoder_patterns.layers("two")
    with pytest.raises(InputError, match="--hidden_size is 100"):
        dataclasses.replace(job, hidden_size=100)
    with pytest.raises(InputError, match="no folder translate_de_en"):
        flags_for(encoder_patterns.EncoderPatternsFlags, tmp_path / "none").pairs()


def test_points_of_equal_operations(data_dir):
    """A title has the operations that bert-benchmark flops counts for the steps of each model."""
    job = flags_for(training_flops.TrainingFlopsFlags, data_dir, num_train_steps=100, points=2)
    table = inspect.unwrap(training_flops.main)(job)
    assert [task.title for task in table.tasks] == ["MNLI-m", "SST-2", "MRPC"]
    sizes = {**Material(job).config(), "model_type": "electra"}
    counted, found = flops_of(config_from_dict(sizes), 128, 0.15), {}
    for row in table.rows:
        cell = table.cell(row, table.columns[-1], 1, table.tasks[0])
        step = int(re.search(r"checkpoint-(\d+)", cell.line("", ""))[1])
        model, = (need for need in cell.needs if need.name.startswith("pretrained"))
        assert step == model.flags["num_train_steps"]
        assert model.flags["input_file"].cell.flags["recipe"] == "electra"  # other segments
        found[row] = step
    assert found["ELECTRA"] == 100 < found["masked LM"]
    assert counted.training(32, found["masked LM"]) == pytest.approx(
        float(table.columns[-1].title), rel=0.02)


def test_students_share_a_teachers_answers(data_dir):
    """Only where a way begins, and with whom it learns, differs."""
    table = declared("student-sizes", data_dir)
    assert [float(column.title) for column in table.columns] == sorted(
        float(column.title) for column in table.columns)
    cells = {row: table.cell(row, table.columns[0], 1, table.tasks[0]) for row in table.rows}
    random, taught, tuned, both = (cells[row].flags for row in student_sizes.ROWS)
    assert random["init_checkpoint"] is None and "bert_config_file" not in tuned
    assert random["bert_config_file"].cell.folder == tuned["init_checkpoint"].cell.folder
    assert taught["student"].path == "bert_config.json" and both["student"].path == "."
    assert taught["student"].cell.folder == both["student"].cell.folder
    teacher = taught["teacher"].cell
    assert teacher.is_kept and teacher.folder == both["records_dir"].cell.folder
    with pytest.raises(InputError, match="'2' is not a size"):
        student_sizes.shape("2")
    with pytest.raises(InputError, match="--sizes: 1x64 and 01x64 both have 0.57 million"):
        declared("student-sizes", data_dir, sizes=["1x64", "2x64", "01x64"])


@pytest.mark.parametrize("name", ["training-steps", "training-flops", "first-weights",
                                  "student-sizes"])
def test_tables_of_no_task_are_refused(name, data_dir):
    with pytest.raises(InputError, match="--tasks is empty"):
        declared(name, data_dir, tasks=[])


@pytest.mark.parametrize("by_order, by_next, verdict", [
    ([70, 66], [50, 56], "holds"), ([70, 56], [50, 50], "does not hold"),
    ([70, 70], [50, 70], "does not hold")])
def test_the_claim_on_the_order_of_sentences(data_dir, tmp_path, by_order, by_next, verdict):
    """1,000 held-out pairs, 550 of one label: two standard errors above 55% are 58.1%."""
    table = declared("sentence-order", data_dir)
    cells, columns = Cells(str(tmp_path)), {column.title: column for column in table.columns}
    for row, asked in (("SOP", "NSP"), ("NSP", "SOP")):
        records, = (need for need in table.cell(row, columns[asked], 1).needs
                    if need.name.startswith("records-held_out"))
        kept.make_folder(cells.path(records), "output_dir")
        kept.write_json(manifest_path(cells.path(records, "r.tfrecord")),
                        {"counts": {"instances": 1000, "random_next": 450}})
    found = {row: {asked: {"values": dict(enumerate(values))}} for row, asked, values in (
        ("SOP", "NSP", by_order), ("NSP", "SOP", by_next))}
    *claims, last = table.remark(found, cells)
    told = sum(value > 58.2 for value in by_order)
    assert f"tells next sentences in {told} of 2 seeds" in claims[0]
    assert "has 55.0%, and 58.1% is" in claims[0]
    assert last == f"The paper's claim {verdict} here."


def test_smoke_changes_only_flags_that_are_not_given(data_dir):
    job = flags_for(masking_rates.TableFlags, data_dir, smoke=True, num_train_steps=7)
    assert (job.num_train_steps, job.seeds) == (7, 1)
    line = report.command(inspect.unwrap(masking_rates.main)(job), job)
    assert "--num_train_steps=7" in line and "--seeds" not in line and "--smoke=True" in line


def test_sizes_of_a_paper_are_not_given():
    with pytest.raises(InputError, match="--hidden_size.*--width_scale"):
        model_sizes.ModelSizesFlags(output_dir="out", hidden_size=64)
    assert model_sizes.ModelSizesFlags(output_dir="out", smoke=True).hidden_size == 64


def test_columns_without_files_are_left_out(tmp_path, capsys):
    job = masking_rates.TableFlags(output_dir=str(tmp_path), data_dir=[str(tmp_path)])
    with pytest.raises(InputError, match="none of the tasks MNLI-m, NER"):
        inspect.unwrap(masking_rates.main)(job)
    table = inspect.unwrap(model_sizes.main)(model_sizes.ModelSizesFlags(output_dir=str(tmp_path)))
    assert [column.title for column in table.columns] == ["LM (ppl)"]
    assert "left out" in capsys.readouterr().out


@pytest.mark.parametrize("name, title, file", [
    ("masking-rates", "MNLI-m", "MNLI/dev_matched.tsv"),
    ("masking-rates", "NER", "conll2003/eng.testa"),
    ("feature-based", "test F1", "conll2003/eng.testb")])
def test_columns_without_a_file_to_score_are_left_out(name, title, file, data_dir, capsys):
    """Before anything is trained."""
    path = data_dir / file
    path.touch()
    assert title in [column.title for column in declared(name, data_dir).columns]
    assert "left out" not in capsys.readouterr().out
    path.unlink()
    left = [column.title for column in declared(name, data_dir).columns]
    assert left and not [each for each in left if each.startswith(title)]
    assert title in capsys.readouterr().out.partition("left out")[2]


def test_masking_rates_are_those_of_the_rows(data_dir):
    """tests/data/test_dynamic_masks.py finds that records and training realise such shares."""
    table = declared("masking-rates", data_dir)
    for row, (masked, _, random) in masking_rates.ROWS.items():
        records = table.cell(row, table.columns[0], 1).needs[0].flags["input_file"].cell.flags
        assert [float(share) for share in records["mask_shares"]] == pytest.approx(
            [masked / 100, random / 100])


# Rows that begin with a given model

def flags_of(table, row, column=0, seed=1):
    return table.cell(row, table.columns[column], seed).flags


def test_mtdnn_and_its_parts(data_dir):
    """Each row's command, where its score is, and the model that all tasks share."""
    table = declared("multitask", data_dir, train_fraction=0.5, num_train_epochs=2.5)
    assert [column.title for column in table.columns] == ["mrpc f1", "mnli accuracy", "mean"]
    bert, single, untuned, tuned = (table.cell(row, table.columns[0], 2) for row in multitask.ROWS)
    assert (bert.flags["train_fraction"], bert.flags["train_fraction_seed"],
            bert.flags["early_stopping"], bert.scored_by) == (0.5, 2, 4, None)
    assert single.scored_by.metric == "mrpc_dev_f1" and single.flags["tasks"] == ["mrpc"]
    assert single.files["tasks.json"]["mrpc"]["train_fraction"] == 0.5
    assert untuned.is_kept and list(untuned.files["tasks.json"]) == ["mrpc", "mnli"]
    assert untuned.folder == table.cell(multitask.UNTUNED, table.columns[1], 2).folder
    assert tuned.flags["keep_head"] and tuned.needs[0].folder == untuned.folder
    assert table.published["MT-DNN"] == {"mrpc f1": 91.0, "mnli accuracy": 87.1}
    with pytest.raises(InputError, match="names a task twice"):
        declared("multitask", data_dir, tasks=["mrpc", "MRPC"])
    with pytest.raises(InputError, match="no folder with the files of rte"):
        declared("multitask", data_dir, tasks=["rte"])


def test_adaptation_draws_equal_shares(data_dir):
    table = declared("adaptation", data_dir, train_fractions=["1", "0.5"])
    assert [column.title for column in table.columns] == ["1", "3"]
    rows = [table.cell(row, table.columns[0], 3).files["tasks.json"] for row in table.rows]
    assert rows[0] == rows[1] and rows[0]["snli"]["train_fraction_seed"] == 3
    assert table.published["BERT"]["549"] == 52.5
    for wrong in (["0"], ["2"], ["a"], []):
        with pytest.raises(InputError, match="--train_fractions must be shares"):
            declared("adaptation", data_dir, train_fractions=wrong)


def test_ways_of_fine_tuning_differ_by_their_flags(data_dir):
    table = declared("robust-finetuning", data_dir)
    plain = {**flags_of(table, "plain"), "output_dir": None}
    for row, flags in robust_finetuning.ROWS.items():
        assert {**flags_of(table, row), "output_dir": None} == {**plain, **flags}


def test_smaller_models_are_measured_anew_with_other_weights(data_dir):
    before = declared("compression", data_dir)
    assert before.published["q8bert"] == {"times smaller": 4, "% kept": 99}
    first = before.cell("q8bert", before.columns[0], 1).folder
    assert before.cell("q8bert", before.columns[0], 2).folder == first      # the same weights
    (data_dir.parent / "model" / "model.keras").write_text("other")
    assert before.cell("q8bert", before.columns[0], 1).folder != first
    for models, message in ((["a"], "NAME=FOLDER"), (["a=absent"], "no folder absent")):
        with pytest.raises(InputError, match=message):
            declared("compression", data_dir, models=models)
    with pytest.raises(InputError, match="no folder with the files of mrpc; .* the folder above"):
        declared("compression", data_dir / "MRPC", models=[f"a={data_dir.parent / 'model'}"])


def test_shares_are_compared_with_the_one_measurement(tmp_path, done):
    one = two_rows()

    def cell(row, column, seed):
        return one.cell(row, column, 1 if row == "a" else seed)

    table = dataclasses.replace(one, cell=cell, baseline="a", columns=[
        Column("kept", "dev/accuracy", ratio="share")])
    found = fill(table, Cells(str(tmp_path)), [1, 2])
    assert found["b"]["kept"]["values"] == pytest.approx({"1": 400, "2": 500})


def test_systems_of_history(data_dir):
    """Each vocabulary, its records and its model; T5 reads and writes text."""
    table = declared("history", data_dir, pretraining_steps=list("123456"))
    steps = {row: flags_of(table, row)["init_checkpoint"] for row in table.rows}
    assert steps.pop("LSTM") is None and [
        model.cell.flags["num_train_steps"] for model in steps.values()] == [1, 2, 3, 4, 5, 6]
    assert flags_of(table, "BERT")["text_a_column"] == "sentence"
    assert flags_of(table, "T5")["train_file"].endswith("sentences/sentence_train.txt")
    assert [table.cell("T5", column, 1).scored_by.metric for column in table.columns] == [
        "pairs/exact_match", "pairs/exact_match", "conll2003/entity_f1"]
    sentences = data_dir.parent / "out" / "sentences"
    assert (sentences / "dev.tsv").read_text().splitlines()[:3] == [
        "sentence\tlabel", "One.\tentailment", "Three.\tcontradiction"]
    assert (sentences / "pair_dev.txt").read_text().startswith("pair a: a pair b: One.\tentail")
    for row in history.SYSTEMS:     # the sizes are of a configuration
        model = table.cell(row, table.columns[0], 1)
        model = steps[row].cell if row in steps else model
        config_from_dict(model.files["sizes.json"])
    with pytest.raises(InputError, match="--pretraining_steps: give 6 numbers"):
        declared("history", data_dir, pretraining_steps=["1"])


def test_a_column_of_sentences_has_files_of_its_own(data_dir):
    table = declared("directions", data_dir)
    flags = flags_of(table, "+ BiLSTM", -1)
    assert table.columns[-1].title == "sentence" and "task" not in flags
    assert flags["bilstm_size"] == 128 and flags["data_dir"].endswith("sentences")


def test_the_page_of_results_has_a_row_for_each_file():
    """The first line of a docstring, and the sentence after "Result:"."""
    rows = []
    for name in PAPERS:
        doc = commands.describe(f"bert-benchmark {name}").doc
        result = re.search(r"\n\nResult: (.*?)\n\n", doc, re.S)[1]
        rows.append(f"| `{name}` | {doc.partition('.')[0]} | {' '.join(result.split())} |")
    page = (pathlib.Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `[a-z-]+` \| .*", page, re.M) == rows
