"""Makes tables: of all settings of a benchmark; as Markdown, LaTeX, CSV and for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import pandas as pd
from rich.markup import escape
from rich.table import Table

from tartan.evaluation.statistics import Interval
from tartan.files import escape_markdown, one_line
from tartan.report.comparison import (
    LEVEL,
    Comparison,
    ComparisonOptions,
    comparisons_of,
    reference_of,
)
from tartan.report.settings import PART_LABELS, Benchmark, Setting, plural
from tartan.runs.command_line import duration
from tartan.runs.result import Part

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "§": r"\S{}",
}
_IN_TERMINAL = ["setting", "test", "difference", "95% interval", "p, two-sided"]


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and the numbers and runs behind it.

    Attributes:
        setting: the setting behind it; None for the paper's numbers.
        value: the number that it shows; of scores the mean over seeds, as a share of 1.
        seeds: number of seeds of a score; None for other cells.
        significant: whether it is significantly better than what it is compared with.
        marks: marks that the table's notes explain.
    """

    words: str
    setting: Setting | None = None
    value: float | None = None
    deviation: float | None = None
    seeds: int | None = None
    significant: bool = False
    marks: str = ""


NOTHING = Cell("–")


@dataclass(frozen=True)
class Row:
    """A row: its name, where its numbers are from, and its cells."""

    name: str
    whose: str
    cells: tuple[Cell, ...]
    from_paper: bool = False


@dataclass(frozen=True)
class ResultTable:
    """A table of a report: about a part of test, with two columns of names before `columns`."""

    key: str
    title: str
    part: Part
    heads: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def score_cell(
    mean: float, deviation: float | None, seeds: int, setting: Setting | None = None
) -> Cell:
    """Return the cell of a score, in percent."""
    words = f"{100 * mean:.2f}" + ("" if deviation is None else f" ± {100 * deviation:.2f}")
    return Cell(words, setting, mean, deviation, seeds)


def score_of(setting: Setting, part: Part) -> Cell:
    """Return mean and deviation over a setting's seeds."""
    values = list(setting.scores(part).values())
    if not values:
        return Cell("no such texts", setting)
    deviation = stdev(values) if len(values) > 1 else None
    return score_cell(fmean(values), deviation, len(values), setting)


def p_words(p: float, adjusted: bool = False) -> str:
    """Return a p-value in words, e.g. `0.040`, `<0.001`; adjusted ones are marked."""
    return (f"{p:.3f}" if p >= 0.001 else "<0.001") + (" (Holm)" if adjusted else "")


def interval_words(interval: Interval, signed: bool = False) -> str:
    """Return an interval of shares in points, e.g. `-1.20 to 3.40`."""
    form = "+.2f" if signed else ".2f"
    return f"{100 * interval.low:{form}} to {100 * interval.high:{form}}"


def overview(bench: Benchmark, part: Part, choice: ComparisonOptions) -> ResultTable:
    """Return the settings in the paper's order, each compared with the best baseline."""
    choice = choice.on(bench)
    reference, left_out = reference_of(bench.settings, part, paired=choice.paired)
    compared = {one.ours.key: one for one in comparisons_of(bench, part, choice)}
    rows = []
    for setting in bench.settings:
        cells = _overview_cells(setting, part, compared.get(setting.key))
        rows.append(Row(setting.label, plural(len(setting.runs), "seed"), cells))
    return ResultTable(
        key=bench.key,
        title=f"{bench.label}: {PART_LABELS[part]}, {bench.metric_label}",
        part=part,
        heads=("setting", "runs"),
        columns=(
            "dev", "test", "difference", "95% interval", "superiority", "p, two-sided",
            "p, one-sided", "training FLOPs", "time",
        ),
        rows=tuple(rows),
        notes=tuple(_overview_notes(reference, left_out, choice)),
    )  # fmt: skip


def _overview_cells(
    setting: Setting, part: Part, comparison: Comparison | None
) -> tuple[Cell, ...]:
    score = score_of(setting, part)
    score = replace(score, significant=comparison is not None and comparison.significant)
    difference = [Cell("reference" if score.seeds else "–"), *[NOTHING] * 4]
    if comparison is not None:
        difference = _difference_cells(comparison)
    flops = [run.result.flops for run in setting.runs]
    counted = [value for value in flops if value is not None]
    spent = Cell("not counted")
    if len(counted) == len(flops):
        spent = Cell(f"{fmean(counted):.2e}", setting, fmean(counted))
    seconds = fmean(run.result.seconds for run in setting.runs)
    dev = setting.dev_mean
    return (
        Cell(f"{100 * dev:.2f}", setting, dev),
        score,
        *difference,
        spent,
        Cell(duration(seconds), setting, seconds),
    )


def _difference_cells(comparison: Comparison) -> list[Cell]:
    effect, test, ours = comparison.effect, comparison.test, comparison.ours
    if effect is None or test is None or comparison.p is None:
        return [Cell(comparison.needs), *[NOTHING] * 4]
    words = f"{100 * effect.difference:+.2f}"
    sides = (len(side.scores(comparison.part)) for side in (ours, comparison.theirs))
    if comparison.paired and any(count != comparison.seeds[0] for count in sides):
        words += f" ({plural(comparison.seeds[0], 'pair')})"
    interval = effect.interval
    return [
        Cell(words, ours, effect.difference),
        Cell("–" if interval is None else interval_words(interval, signed=True), ours),
        Cell(f"{effect.superiority:.2f}", ours, effect.superiority),
        Cell(p_words(comparison.p, comparison.adjusted is not None), ours, comparison.p),
        Cell(p_words(test.one_sided), ours, test.one_sided),
    ]


def _overview_notes(
    reference: Setting | None, left_out: Sequence[Setting], choice: ComparisonOptions
) -> list[str]:
    notes = ["Mean ± standard deviation over seeds, and differences, in percent."]
    if reference is not None:
        paired = " of paired seeds" if choice.paired else ""
        holm = ", the two-sided one after Holm's correction over the table" if choice.holm else ""
        notes.append(f"Differences are to {reference.label}, the best that is no joint training.")
        if reference.result.is_joint:
            notes[-1] = f"Differences are to {reference.label}: all methods train tasks together."
        if left_out:
            labels = ", ".join(setting.label for setting in left_out)
            notes.append(f"Not considered for that, as too few of its seeds compare: {labels}.")
        notes += [
            f"p: permutation test{paired}, two-sided (different) and one-sided (better){holm}; "
            f"bold: better, two-sided p below {LEVEL}.",
            f"Interval: {'Student' if choice.paired else 'Welch'}'s, of the difference; none where "
            "the values do not vary. Superiority: the share of pairs of runs in which this "
            "setting's is the better.",
        ]
    notes.append("FLOPs: of training passes, mean over seeds. Time: of all stages, with dev.")
    return notes


def to_markdown(table: ResultTable) -> str:
    """Return title, table, notes; significant scores in bold, the paper's rows in italics."""
    text = markdown_of(_frame(table, escape_markdown, "**{}**", "*{}*"), left=2)
    notes = "\n".join(escape_markdown(note) + "  " for note in table.notes)
    return f"### {escape_markdown(table.title)}\n\n{text}\n\n{notes}\n"


def markdown_of(frame: pd.DataFrame, left: int) -> str:
    """Return a frame of Markdown as a table; all columns but the first `left` are numbers."""
    widths = [max([len(head) + 2, *map(len, frame[head])]) for head in frame.columns]

    def line(texts: Sequence[str]) -> str:
        first = [text.ljust(width) for text, width in zip(texts, widths, strict=True)][:left]
        rest = [text.rjust(width) for text, width in zip(texts, widths, strict=True)][left:]
        return f"| {' | '.join(first + rest)} |"

    rules = [f":{'-' * (width + 1)}" for width in widths[:left]]
    rules += [f"{'-' * (width + 1)}:" for width in widths[left:]]
    rows = map(line, frame.itertuples(index=False))
    return "\n".join([line(list(frame.columns)), f"|{'|'.join(rules)}|", *rows])


def to_latex(table: ResultTable) -> str:
    """Return a `table` environment of `booktabs`, with bold and italics as `to_markdown`."""
    frame = _frame(table, escape_latex, r"\textbf{{}}", r"\textit{{}}")
    body = frame.to_latex(index=False, escape=False, column_format="ll" + "r" * len(table.columns))
    notes = " ".join(escape_latex(note) for note in table.notes)
    return (
        "\\begin{table}\n\\centering\n\\small\n"
        f"\\caption{{{escape_latex(table.title)}}}\n\\label{{tab:{table.key}-{table.part}}}\n"
        f"{body}\\par\\smallskip\\footnotesize {notes}\n\\end{{table}}\n"
    )


def to_terminal(table: ResultTable) -> Table:
    """Return the columns of an overview that tell which setting is best, and how certainly."""
    shown = Table(title=escape(one_line(table.title)), title_justify="left", title_style="bold")
    for place, column in enumerate(_IN_TERMINAL):
        # a long name is folded, so that settings stay apart; half a number would be a wrong one
        if place:
            shown.add_column(column, justify="right", overflow="ellipsis")
        else:
            shown.add_column(column, overflow="fold")
    frame = _frame(table, lambda text: escape(one_line(text)), "[bold]{}[/bold]", "{}")
    for row in frame[_IN_TERMINAL].itertuples(index=False):
        shown.add_row(*row)
    return shown


def to_csv(table: ResultTable) -> str:
    """Return a CSV with one row for each cell, scores as shares of 1."""
    rows = [
        {
            "table": table.key,
            "part": "whole" if row.from_paper else table.part,
            "row": escape_csv_cell(row.name),
            "whose": escape_csv_cell(row.whose),
            "column": escape_csv_cell(column),
            "value": cell.value,
            "deviation": cell.deviation,
            "seeds": cell.seeds,
            "significant": cell.significant if cell.seeds else None,
            "text": escape_csv_cell(cell.words),
            "folders": escape_csv_cell(
                "; ".join(run.name for run in cell.setting.runs) if cell.setting else ""
            ),
        }
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    frame = pd.DataFrame(rows).astype({"seeds": "Int64"})
    return str(frame.to_csv(index=False, lineterminator="\n"))


def _frame(
    table: ResultTable, escaped: Callable[[str], str], bold: str, italic: str
) -> pd.DataFrame:
    """Return a table's text in a markup language; `bold` and `italic` are patterns with `{}`."""
    rows = []
    for row in table.rows:
        names = [escaped(name) for name in (row.name, row.whose)]
        shown = [italic.replace("{}", name) for name in names] if row.from_paper else names
        for cell in row.cells:
            words = escaped(cell.words)
            words = bold.replace("{}", words) if cell.significant else words
            shown.append(f"{words} {escaped(cell.marks)}".rstrip())
        rows.append(shown)
    return pd.DataFrame(rows, columns=[escaped(head) for head in (*table.heads, *table.columns)])


def escape_latex(text: str) -> str:
    """Return the text on one line, with all LaTeX syntax escaped."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def escape_csv_cell(text: str) -> str:
    """Return the text on one line, with an apostrophe before what a spreadsheet would compute."""
    text = one_line(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
