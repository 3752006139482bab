"""Makes a table in the paper's form: our runs, and below them the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tartan.report.labels import PART_LABELS, plural
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.reading.read_options import given_corpora
from tartan.report.tables.paper import PaperTable, Published, candidates
from tartan.report.tables.table import (
    NO_RUNS,
    Cell,
    ResultTable,
    Row,
    Score,
    Words,
    p_words,
    score_of,
)
from tartan.report.verdicts.comparison import LEVEL, Comparison, ComparisonOptions, adjust, compare
from tartan.report.verdicts.ranking import ranking_of
from tartan.run_folder.result import Part


@dataclass(frozen=True)
class _OurRow:
    bench: Benchmark
    cells: dict[str, Cell]
    tested: dict[str, Comparison]
    left_out: tuple[Setting, ...] = ()


def paper_table(
    table: PaperTable, benches: Sequence[Benchmark], part: Part, choice: ComparisonOptions
) -> ResultTable | None:
    """Return the table for a part of test; None if no run belongs in it."""
    ours = [_our_row(table, bench, part, choice) for bench in benches if table.takes(bench)]
    ours = [row for row in ours if any(isinstance(c, Score) for c in row.cells.values())]
    if not ours:
        return None
    if choice.holm:
        _adjust(ours)
    rows: list[Row] = []
    for row in ours:
        rows.append(_shown(table, row))
        rows.append(_published(table, row.bench.task, part, row.bench.encoder))
    shown = {row.bench.task for row in ours}
    others = [task for task in table.published if task not in shown]
    rows += [_published(table, task, part) for task in others]
    columns = [column.label for column in table.columns.values()]
    columns += [f"p, {table.columns[name].label}" for name in table.tested]
    metrics = " or ".join(sorted({row.bench.metric_label for row in ours}))
    return ResultTable(
        key=table.key,
        title=f"{table.title} (the paper's {table.paper}): {PART_LABELS[part]}, {metrics}",
        part=part,
        heads=("task", "runs"),
        columns=tuple(columns),
        rows=tuple(rows),
        notes=tuple(_notes(table, ours, part, choice)),
    )


def _our_row(table: PaperTable, bench: Benchmark, part: Part, choice: ComparisonOptions) -> _OurRow:
    cells: dict[str, Cell] = {}
    settings: dict[str, Setting] = {}
    for name, column in table.columns.items():
        cells[name] = NO_RUNS
        if found := candidates(column, bench.settings):
            settings[name] = found[0]
            # named where readers could take it for other domain text: where it is not the paper's,
            # and where the benchmark has settings on several
            corpora = given_corpora(found[0].runs[0]) | dict(found[0].corpora)
            named = tuple(dict.fromkeys(corpora.values()))
            cells[name] = score_of(found[0], part, others=len(found) - 1, corpora=named)
    scores = {name: cell for name, cell in cells.items() if isinstance(cell, Score)}
    most = max((score.seeds for score in scores.values()), default=0)
    for name, score in scores.items():
        cells[name] = replace(score, fewer=score.seeds < most)
    paired = choice.on(bench).paired
    against = {settings[name].key: settings[name] for name in table.against if name in scores}
    ranking = ranking_of(list(against.values()), part, paired=paired)
    tested = {}
    if ranking.settings:
        best = against[ranking.settings[0].key]
        tested = {
            name: compare(settings[name], best, part, paired=paired, directed=True)
            for name in table.tested
            if name in settings
        }
    return _OurRow(bench, cells, tested, ranking.left_out)


def _adjust(rows: Sequence[_OurRow]) -> None:
    """Adjust the rows' p-values, in place, by Holm's correction over the whole table."""
    places = [(row.tested, name) for row in rows for name in row.tested]
    adjusted = adjust([tested[name] for tested, name in places])
    for (tested, name), comparison in zip(places, adjusted, strict=True):
        tested[name] = comparison


def _shown(table: PaperTable, row: _OurRow) -> Row:
    names = list(table.columns)
    cells = [row.cells[name] for name in names]
    for place, name in enumerate(names):
        score = cells[place]
        if isinstance(score, Score) and name in row.tested and row.tested[name].significant:
            cells[place] = replace(score, significant=True)
    cells += [_p_cell(row.tested.get(name)) for name in table.tested]
    seeds = sorted({cell.seeds for cell in cells if isinstance(cell, Score)})
    counted = plural(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    return Row(row.bench.label, f"ours, {counted}", tuple(cells))


def _p_cell(comparison: Comparison | None) -> Cell:
    if comparison is None:
        return Words("–")
    if comparison.p is None:
        return Words(comparison.reason)
    words = p_words(comparison.p, adjusted=comparison.adjusted is not None)
    return Words(words, comparison.ours, comparison.p)


def _published(table: PaperTable, task: str, part: Part, encoder: str = "") -> Row:
    """Return the paper's row of a task, to stand below one of ours with `encoder` (empty: none).

    It is of the whole test split, also beside our numbers of the unseen part.
    """
    row: Published = table.published[task]
    cells: list[Cell] = []
    for name in table.columns:
        if name in row.scores:
            mean, deviation = row.scores[name]
            cells.append(Score(mean / 100, deviation / 100, table.seeds))
        else:
            cells.append(Words("–"))
    cells += [
        Words(p_words(row.p[name]), value=row.p[name]) if name in row.p else Words("–")
        for name in table.tested
    ]
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
        against = labels[0] if len(labels) == 1 else f"the better of {' and '.join(labels)}"
        paired = [choice.on(row.bench).paired for row in rows]
        how = " of paired seeds" if any(paired) else ""
        how += " (where each seed draws its own data)" if any(paired) and not all(paired) else ""
        if len(labels) > 1 and any(row.left_out for row in rows):
            against += " (of those with enough seeds)"
        adjusted = ", after Holm's correction over the table" if choice.holm else ""
        notes.append(
            f"p: one-sided permutation test{how} against {against}{adjusted}; "
            f"bold: p below {LEVEL}."
        )
    same = all(row.bench.encoder in table.encoder_names for row in rows)
    of = "" if part == "whole" else f" of the {PART_LABELS['whole']}"
    notes.append(
        f"Rows marked 'paper' are its published numbers{of}, with {table.encoder}"
        + ("." if same else ": another encoder than that of runs named otherwise.")
    )
    cells = [cell for row in rows for cell in row.cells.values() if isinstance(cell, Score)]
    if any(cell.fewer for cell in cells):
        notes.append("†: fewer seeds than its neighbours.")
    if any(cell.others for cell in cells):
        notes.append(
            "‡: one of several settings that belong there: the one with most seeds, then the "
            "best on dev (on the task's own domain text, if any is)."
        )
    named = dict.fromkeys(name for cell in cells for name in cell.corpora)
    if named:
        notes.append(f"§: with domain text of one's own: {', '.join(named)}.")
    return notes
