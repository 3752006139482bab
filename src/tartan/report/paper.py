"""Makes the paper's tables (`paper_tables.yaml`): our runs, and below them the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from tartan.files import Plain
from tartan.report.comparison import (
    LEVEL,
    Comparison,
    ComparisonOptions,
    adjust,
    compare,
    ranking_of,
)
from tartan.report.settings import PART_LABELS, Benchmark, Setting, plural
from tartan.report.tables import (
    NOTHING,
    Cell,
    ResultTable,
    Row,
    p_words,
    score_cell,
    score_of,
)
from tartan.runs.identity import corpora_of
from tartan.runs.result import Part


class Column(Plain):
    """A column of a table, and which settings belong in it; None admits any."""

    label: str
    method: str
    auxiliaries: list[Literal["task", "domain"]] | None = None
    size: float | Literal["all"] | None = None
    weighting: str | None = None
    without: dict[str, Any] = Field(default_factory=dict)

    def holds(self, setting: Setting) -> bool:
        """Return whether the setting belongs in this column: none with a module of one's own."""
        result = setting.result
        kinds = sorted(a.kind for a in result.auxiliaries.values())
        sizes = {a.size for a in result.auxiliaries.values() if a.kind == "domain"}
        return (
            result.method == self.method
            and not setting.variant
            and (self.auxiliaries is None or kinds == sorted(self.auxiliaries))
            and (self.size is None or sizes == {self.size})
            and (self.weighting is None or result.weighting == self.weighting)
            and all(setting.options.get(name) != value for name, value in self.without.items())
        )


class Published(Plain):
    """A row of the paper."""

    scores: dict[str, tuple[float, float]]
    p: dict[str, float] = Field(default_factory=dict)


class PaperTable(Plain):
    """A table of the paper; `paper_tables.yaml` says what its entries are."""

    key: str
    paper: str
    title: str
    columns: dict[str, Column]
    encoder: str
    encoder_names: list[str]
    seeds: int
    against: list[str] = Field(default_factory=list)
    tested: list[str] = Field(default_factory=list)
    published: dict[str, Published]


def paper_tables() -> list[PaperTable]:
    """Return all tables, in the paper's order."""
    content = yaml.safe_load(Path(__file__).with_name("paper_tables.yaml").read_text("utf-8"))
    # a table may have its own instead
    shared = {name: content[name] for name in ("encoder", "encoder_names", "seeds")}
    return [PaperTable.model_validate(shared | own, strict=False) for own in content["tables"]]


@dataclass(frozen=True)
class _OurRow:
    """Our numbers of a benchmark: cells and settings by column, and the tested columns' p."""

    bench: Benchmark
    cells: dict[str, Cell] = field(default_factory=dict)
    tested: dict[str, Comparison] = field(default_factory=dict)
    corpora: dict[str, None] = field(default_factory=dict)


def paper_table(
    table: PaperTable, benches: Sequence[Benchmark], part: Part, choice: ComparisonOptions
) -> ResultTable | None:
    """Return the table for a part of test; None if no run belongs in it."""
    fitting = [bench for bench in benches if bench.result.task in table.published]
    ours = [_our_row(table, bench, part, choice) for bench in fitting]
    ours = [row for row in ours if any(cell.seeds for cell in row.cells.values())]
    if not ours:
        return None
    if choice.holm:
        places = [(row.tested, name) for row in ours for name in row.tested]
        adjusted = adjust([tested[name] for tested, name in places])
        for (tested, name), comparison in zip(places, adjusted, strict=True):
            tested[name] = comparison
    rows: list[Row] = []
    for row in ours:
        rows.append(_shown(table, row))
        rows.append(_published(table, row.bench.result.task, part, row.bench.result.encoder))
    shown = {row.bench.result.task for row in ours}
    rows += [_published(table, task, part) for task in table.published if task not in shown]
    columns = [column.label for column in table.columns.values()]
    columns += [f"p, {table.columns[name].label}" for name in table.tested]
    metrics = " or ".join(sorted({row.bench.metric_label for row in ours}))
    title = f"{table.title} (the paper's {table.paper}): {PART_LABELS[part]}, {metrics}"
    notes = tuple(_notes(table, ours, part, choice))
    return ResultTable(table.key, title, part, ("task", "runs"), tuple(columns), tuple(rows), notes)


def _our_row(table: PaperTable, bench: Benchmark, part: Part, choice: ComparisonOptions) -> _OurRow:
    row, settings = _OurRow(bench), {}
    paired = choice.on(bench).paired

    def rank(setting: Setting) -> tuple[bool, int, float]:
        # on the domain text that belongs to the task, with more seeds, better on dev: test decides
        # nothing here
        return not corpora_of(setting.result, setting.options), len(setting.runs), setting.dev_mean

    for name, column in table.columns.items():
        fitting = sorted(filter(column.holds, bench.settings), key=rank, reverse=True)
        row.cells[name] = Cell("no runs")
        if fitting:
            settings[name] = fitting[0]
            corpora = corpora_of(fitting[0].result, fitting[0].options)
            row.corpora.update(dict.fromkeys(corpora.values()))
            marks = " ".join(["‡"] * (len(fitting) > 1) + ["§"] * bool(corpora))
            row.cells[name] = replace(score_of(fitting[0], part), marks=marks)
    most = max((cell.seeds or 0 for cell in row.cells.values()), default=0)
    for name, cell in row.cells.items():
        if cell.seeds and cell.seeds < most:
            row.cells[name] = replace(cell, marks=f"({cell.seeds})† {cell.marks}".rstrip())
    against = {settings[n].key: settings[n] for n in table.against if n in settings}
    ranked, _ = ranking_of(list(against.values()), part, paired=paired)
    if ranked:
        best = against[ranked[0].key]
        for name in table.tested:
            if name in settings:
                row.tested[name] = compare(settings[name], best, part, paired=paired, directed=True)
    return row


def _shown(table: PaperTable, row: _OurRow) -> Row:
    cells = []
    for name in table.columns:
        significant = name in row.tested and row.tested[name].significant
        cells.append(replace(row.cells[name], significant=significant))
    seeds = sorted({cell.seeds for cell in cells if cell.seeds})
    counted = plural(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    for name in table.tested:
        comparison = row.tested.get(name)
        if comparison is None:
            cells.append(NOTHING)
        elif comparison.p is None:
            cells.append(Cell(comparison.needs))
        else:
            words = p_words(comparison.p, adjusted=comparison.adjusted is not None)
            cells.append(Cell(words, comparison.ours, comparison.p))
    return Row(row.bench.label, f"ours, {counted}", tuple(cells))


def _published(table: PaperTable, task: str, part: Part, encoder: str = "") -> Row:
    """Return the paper's row of a task, to stand below one of ours with `encoder` (empty: none).

    It is of the whole test split, also beside our numbers of the unseen part.
    """
    row = table.published[task]
    cells = [NOTHING] * len(table.columns)
    for place, name in enumerate(table.columns):
        if name in row.scores:
            mean, deviation = row.scores[name]
            cells[place] = score_cell(mean / 100, deviation / 100, table.seeds)
    p_values = [row.p.get(name) for name in table.tested]
    cells += [NOTHING if p is None else Cell(p_words(p), value=p) for p in p_values]
    another = " (another encoder)" if encoder and encoder not in table.encoder_names else ""
    whose = f"paper, {table.encoder}{another}, {table.seeds} seeds"
    whose += "" if part == "whole" else f", {PART_LABELS['whole']}"
    return Row(task, whose, tuple(cells), from_paper=True)


def _notes(
    table: PaperTable, rows: Sequence[_OurRow], part: Part, choice: ComparisonOptions
) -> list[str]:
    notes = ["Mean ± standard deviation over seeds, in percent."]
    if table.tested:
        labels = [table.columns[name].label for name in table.against]
        against = " or ".join(labels) + ", whichever is better and has enough seeds"
        against = against if len(labels) > 1 else labels[0]
        paired = [choice.on(row.bench).paired for row in rows]
        how = " of paired seeds" if any(paired) else ""
        how += " (where each seed draws its own data)" if any(paired) and not all(paired) else ""
        adjusted = ", after Holm's correction over the table" if choice.holm else ""
        notes.append(
            f"p: one-sided permutation test{how} against {against}{adjusted}; "
            f"bold: p below {LEVEL}."
        )
    of = "" if part == "whole" else f" of the {PART_LABELS['whole']}"
    notes.append(f"Rows marked 'paper' are its published numbers{of}, with {table.encoder}.")
    marks = " ".join(cell.marks for row in rows for cell in row.cells.values())
    corpora = dict.fromkeys(name for row in rows for name in row.corpora)
    explained = {
        "†": "fewer seeds than its neighbours.",
        "‡": "one of several settings that belong there: on the task's own domain text, if any is, "
        "then with most seeds, then the best on dev.",
        "§": f"with domain text of one's own: {', '.join(corpora)}.",
    }
    return notes + [f"{mark}: {words}" for mark, words in explained.items() if mark in marks]
