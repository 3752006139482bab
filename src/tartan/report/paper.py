"""Makes the paper's tables (`paper_tables.yaml`): our runs, and below them the paper's numbers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from tartan.files import Plain
from tartan.report.comparison import (
    LEVEL,
    PART_LABELS,
    Benchmark,
    Comparison,
    Setting,
    adjust,
    compare,
    ranking_of,
)
from tartan.report.tables import (
    NOTHING,
    Cell,
    ResultTable,
    Row,
    cells_of,
    p_words,
    plural,
    score_cell,
    score_of,
    sentences,
)
from tartan.runs.identity import corpora_of, variant_of
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
            and not variant_of(result, setting.options)
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


Chosen = dict[str, Setting]
"""The setting of each column, by the column's name."""


def paper_tables() -> list[PaperTable]:
    """Return all tables, in the paper's order."""
    content = yaml.safe_load(Path(__file__).with_name("paper_tables.yaml").read_text("utf-8"))
    # a table may have its own instead
    shared = {name: content[name] for name in ("encoder", "encoder_names", "seeds")}
    return [PaperTable.model_validate(shared | own, strict=False) for own in content["tables"]]


def paper_table(table: PaperTable, benches: Sequence[Benchmark], part: Part) -> ResultTable | None:
    """Return the table for a part of test; None if no run belongs in it."""
    chosen = [(bench, settings) for bench in benches if (settings := _chosen(table, bench, part))]
    if not chosen:
        return None
    compared = [_compared(table, bench, settings, part) for bench, settings in chosen]
    holm = chosen[0][0].holm
    if holm:
        adjusted = iter(adjust([one for of_bench in compared for one in of_bench.values()]))
        compared = [{name: next(adjusted) for name in of_bench} for of_bench in compared]
    rows: list[Row] = []
    for (bench, settings), of_bench in zip(chosen, compared, strict=True):
        rows.append(_ours(table, bench, settings, of_bench, part))
        rows.append(_published(table, bench.result.task, part, bench.result.encoder))
    shown = {bench.result.task for bench, _ in chosen}
    rows += [_published(table, task, part) for task in table.published if task not in shown]
    notes = sentences(
        "paper_notes.txt",
        table=table,
        paired=any(bench.paired for bench, _ in chosen),
        part=part,
        holm=holm,
        level=LEVEL,
        marks=" ".join(cell.marks for _, cells in rows for cell in cells.values()),
    )
    metrics = " or ".join(sorted({bench.metric_label for bench, _ in chosen}))
    title = f"{table.title} (the paper's {table.paper}): {PART_LABELS[part]}, {metrics}"
    return ResultTable(table.key, title, part, cells_of(rows, ("task", "runs")), notes)


def _chosen(table: PaperTable, bench: Benchmark, part: Part) -> Chosen:
    """Return the settings, first by `rank`: scores on test decide nothing; none without a score."""

    def rank(setting: Setting) -> tuple[bool, int, float]:
        return not corpora_of(setting.result, setting.options), len(setting.runs), setting.dev_mean

    if bench.result.task not in table.published:
        return {}
    fitting = {n: [*filter(c.holds, bench.settings)] for n, c in table.columns.items()}
    chosen = {name: max(settings, key=rank) for name, settings in fitting.items() if settings}
    return chosen if any(setting.scores(part) for setting in chosen.values()) else {}


def _compared(
    table: PaperTable, bench: Benchmark, settings: Chosen, part: Part
) -> dict[str, Comparison]:
    """Compare tested columns with the best of the others; it is known which has to be better."""
    against = [settings[name] for name in table.against if name in settings]
    ranked = ranking_of(against, part, paired=bench.paired)
    best = [setting for setting in against if ranked and setting.key == ranked[0].key]
    return {
        name: compare(settings[name], best[0], part, paired=bench.paired, directed=True)
        for name in table.tested
        if best and name in settings
    }


def _ours(
    table: PaperTable,
    bench: Benchmark,
    settings: Chosen,
    compared: dict[str, Comparison],
    part: Part,
) -> Row:
    scores = {name: score_of(setting, part) for name, setting in settings.items()}
    seeds = [score.seeds for score in scores.values() if score.seeds]
    cells = {}
    for name, column in table.columns.items():
        cell = scores.get(name, Cell("no runs"))
        marks = [f"({cell.seeds})†"] if cell.seeds and cell.seeds < max(seeds) else []
        marks += ["‡"] if sum(map(column.holds, bench.settings)) > 1 else []
        if cell.setting and corpora_of(cell.setting.result, cell.setting.options):
            marks.append("§")
        significant = name in compared and compared[name].significant
        cells[column.label] = replace(cell, significant=significant, marks=" ".join(marks))
    for name in table.tested:
        one = compared.get(name)
        cell = NOTHING if one is None else Cell(one.needs)
        if one is not None and one.p is not None:
            cell = Cell(p_words(one.p, one.family), one.ours, one.p)
        cells[f"p, {table.columns[name].label}"] = cell
    counted = f"{min(seeds)} to " * (min(seeds) < max(seeds)) + plural(max(seeds), "seed")
    return (bench.label, f"ours, {counted}", False), cells


def _published(table: PaperTable, task: str, part: Part, encoder: str = "") -> Row:
    """Return the paper's row of a task, of the whole test split, below ours with `encoder`."""
    published, cells = table.published[task], {}
    for name, column in table.columns.items():
        mean, deviation = published.scores.get(name, (None, 0.0))
        score = mean is not None and score_cell(mean / 100, deviation / 100, table.seeds)
        cells[column.label] = score or NOTHING
    for name in table.tested:
        p = published.p.get(name)
        label = f"p, {table.columns[name].label}"
        cells[label] = NOTHING if p is None else Cell(p_words(p), value=p)
    another = " (another encoder)" if encoder and encoder not in table.encoder_names else ""
    whose = f"paper, {table.encoder}{another}, {table.seeds} seeds"
    whose += "" if part == "whole" else f", {PART_LABELS['whole']}"
    return (task, whose, True), cells
