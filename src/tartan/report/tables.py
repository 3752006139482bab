"""Makes tables, as Markdown, LaTeX, CSV and for the terminal, and sentences from `templates`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from rich.markup import escape
from rich.table import Table

from tartan.evaluation.statistics import Interval
from tartan.files import escape_markdown, one_line
from tartan.report.comparison import (
    LEVEL,
    PART_LABELS,
    Benchmark,
    Comparison,
    Setting,
    comparisons_of,
    reference_of,
)
from tartan.runs.command_line import duration, titled_table
from tartan.runs.result import Part

_TEMPLATES = Path(__file__).parent / "templates"
_IN_TERMINAL = ["setting", "test", "difference", "95% interval", "p, two-sided"]


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and the numbers and runs behind it."""

    words: str
    setting: Setting | None = None  # None for the paper's numbers
    value: float | None = None  # of scores the mean over seeds, as a share of 1
    deviation: float | None = None
    seeds: int | None = None
    significant: bool = False  # whether it is significantly better than what it is compared with
    marks: str = ""


NOTHING = Cell("–")


@dataclass(frozen=True)
class ResultTable:
    """A table of a report about a part of test; `cells_of` makes its cells."""

    key: str
    title: str
    part: Part
    cells: pd.DataFrame
    notes: list[str]


Row = tuple[tuple[str, str, bool], dict[str, Cell]]
"""A row's name, whose numbers it has, whether these are published ones; and its cells by column."""


def cells_of(rows: Sequence[Row], heads: tuple[str, str]) -> pd.DataFrame:
    """Return the cells of a `ResultTable`; `heads` stand above the rows' names."""
    names, cells = zip(*rows, strict=True)
    index = pd.MultiIndex.from_tuples(names, names=[*heads, "published"])
    return pd.DataFrame(list(cells), index=index, dtype=object)


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


def overview(bench: Benchmark, part: Part) -> ResultTable:
    """Return the settings in the paper's order, each compared with the best baseline."""
    compared = {one.ours.key: one for one in comparisons_of(bench, part)}
    rows: list[Row] = []
    for setting in bench.settings:
        cells = _overview_cells(setting, part, compared.get(setting.key))
        rows.append(((setting.label, plural(len(setting.runs), "seed"), False), cells))
    reference = reference_of(bench, part)
    notes = sentences("overview_notes.txt", bench=bench, reference=reference, level=LEVEL)
    title = f"{bench.label}: {PART_LABELS[part]}, {bench.metric_label}"
    return ResultTable(bench.key, title, part, cells_of(rows, ("setting", "runs")), notes)


def _overview_cells(setting: Setting, part: Part, comparison: Comparison | None) -> dict[str, Cell]:
    score, dev = score_of(setting, part), setting.dev_mean
    flops = [run.result.flops for run in setting.runs if run.result.flops is not None]
    seconds = fmean(run.result.seconds for run in setting.runs)
    difference = [Cell("reference" if score.seeds else "–")]
    if comparison is not None:
        score = replace(score, significant=comparison.significant)
        difference = _difference_cells(comparison, part)
    spent = Cell("not counted")
    if len(flops) == len(setting.runs):
        spent = Cell(f"{fmean(flops):.2e}", setting, fmean(flops))
    names = ("difference", "95% interval", "p, two-sided", "p, one-sided")
    return {
        "dev": Cell(f"{100 * dev:.2f}", setting, dev),
        "test": score,
        **dict(zip(names, [*difference, *[NOTHING] * 3], strict=False)),
        "training FLOPs": spent,
        "time": Cell(duration(seconds), setting, seconds),
    }


def _difference_cells(comparison: Comparison, part: Part) -> list[Cell]:
    effect, test, ours = comparison.effect, comparison.test, comparison.ours
    if effect is None or test is None or comparison.p is None:
        return [Cell(comparison.needs)]
    words = f"{100 * effect.difference:+.2f}"
    sides = (len(side.scores(part)) for side in (ours, comparison.theirs))
    if comparison.paired and any(count != comparison.seeds[0] for count in sides):
        words += f" ({plural(comparison.seeds[0], 'pair')})"
    return [
        Cell(words, ours, effect.difference),
        Cell("–" if effect.interval is None else interval_words(effect.interval), ours),
        Cell(p_words(comparison.p, comparison.family), ours, comparison.p),
        Cell(p_words(test.one_sided), ours, test.one_sided),
    ]


def _text(
    table: ResultTable, escaped: Callable[[str], str], bold: str = "{}", italic: str = "{}"
) -> pd.DataFrame:
    """Return a table's text in a markup language; `bold` and `italic` are patterns with `{}`."""

    def shown(cell: Cell) -> str:
        words = (bold if cell.significant else "{}").replace("{}", escaped(cell.words))
        return f"{words} {escaped(cell.marks)}".rstrip()

    frame = table.cells.map(shown).reset_index()
    patterns = [italic if one else "{}" for one in frame.pop("published")]
    for name in frame.columns[:2]:
        texts = map(escaped, frame[name])
        frame[name] = [one.replace("{}", text) for one, text in zip(patterns, texts, strict=True)]
    return frame.rename(columns=escaped)


def to_markdown(table: ResultTable) -> str:
    """Return title, table, notes; significant scores in bold, the paper's rows in italics."""
    text = markdown_of(_text(table, escape_markdown, "**{}**", "*{}*"), left=2)
    notes = "\n".join(escape_markdown(note) + "  " for note in table.notes)
    return f"### {escape_markdown(table.title)}\n\n{text}\n\n{notes}\n"


def markdown_of(frame: pd.DataFrame, left: int) -> str:
    """Return a frame of Markdown as a table; all columns but the first `left` are numbers."""
    widths = [max([len(head) + 2, *map(len, frame[head])]) for head in frame.columns]
    padding = [str.ljust] * left + [str.rjust] * (len(widths) - left)
    rules = [f":{'-' * (width + 1)}" for width in widths[:left]]
    rules += [f"{'-' * (width + 1)}:" for width in widths[left:]]
    lines = [
        f"| {' | '.join(pad(*one) for pad, *one in zip(padding, row, widths, strict=True))} |"
        for row in (frame.columns, *frame.itertuples(index=False))
    ]
    return "\n".join([lines[0], f"|{'|'.join(rules)}|", *lines[1:]])


def to_latex(table: ResultTable) -> str:
    """Return a `tabular` of `booktabs`, with significant scores in bold."""
    frame = _text(table, one_line)
    bold = table.cells.map(lambda cell: "textbf:--rwrap" if cell.significant else "")
    bold = bold.reset_index(drop=True).reindex(columns=frame.columns, fill_value="")
    styled = frame.style.hide().format(escape="latex").format_index(escape="latex", axis=1)
    columns = "ll" + "r" * (len(frame.columns) - 2)
    return str(styled.apply(lambda _: bold, axis=None).to_latex(hrules=True, column_format=columns))


def to_terminal(table: ResultTable) -> Table:
    """Return the columns of an overview that tell which setting is best, and how certainly."""
    shown = titled_table(escape(one_line(table.title)), *_IN_TERMINAL)
    frame = _text(table, lambda text: escape(one_line(text)), "[bold]{}[/bold]")
    for row in frame[_IN_TERMINAL].itertuples(index=False):
        shown.add_row(*row)
    return shown


def to_csv(table: ResultTable) -> str:
    """Return a CSV with one row for each cell, scores as shares of 1."""
    rows = [
        {
            "table": table.key,
            "part": "whole" if published else table.part,
            "row": name,
            "whose": whose,
            "column": column,
            "value": cell.value,
            "deviation": cell.deviation,
            "seeds": cell.seeds,
            "significant": cell.significant if cell.seeds else None,
            "text": cell.words,
            "folders": "; ".join(run.name for run in cell.setting.runs) if cell.setting else "",
        }
        for (name, whose, published), cells in table.cells.iterrows()
        for column, cell in cells.items()
    ]
    frame = pd.DataFrame(rows).astype({"seeds": "Int64"})
    texts = ["row", "whose", "column", "text", "folders"]
    frame[texts] = frame[texts].map(escape_csv_cell)
    return str(frame.to_csv(index=False, lineterminator="\n"))


def escape_csv_cell(text: str) -> str:
    """Return the text on one line, with an apostrophe before what a spreadsheet would compute."""
    text = one_line(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def plural(count: int, noun: str) -> str:
    """Return a number with its noun, e.g. `1 seed`, `3 seeds`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def p_words(p: float, adjusted: bool | int = False) -> str:
    """Return a p-value in words, e.g. `0.040`, `<0.001`; adjusted ones are marked."""
    return (f"{p:.3f}" if p >= 0.001 else "<0.001") + (" (Holm)" if adjusted else "")


def interval_words(interval: Interval) -> str:
    """Return an interval of a difference of shares, in points, e.g. `-1.20 to +3.40`."""
    return f"{100 * interval.low:+.2f} to {100 * interval.high:+.2f}"


def rendered(template: str, **values: Any) -> str:
    """Return a filled template; HTML shows text from runs as text."""
    html = template.endswith(".html")
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: one_line(value) if html and type(value) is str else value,
    )
    filters = {"duration": duration, "md": escape_markdown, "plural": plural}
    environment.filters |= filters | {"p": p_words, "interval": interval_words}
    if html:
        for name in ("style.css", "script.js"):
            values[Path(name).stem] = Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
    return environment.get_template(template).render(**values)


def sentences(template: str, **values: Any) -> list[str]:
    """Return the lines of a filled template, without empty ones."""
    lines = rendered(template, **values).splitlines()
    return [line.strip() for line in lines if line.strip()]
