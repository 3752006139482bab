"""Prints the findings as tables of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich import markup
from rich.console import Console

from tartan.check.findings import Findings
from tartan.errors import printable
from tartan.runs.command_line import duration, titled_table

TITLES = {
    "labels": ("examples of each label", ""),
    "lengths": (
        "lengths of texts before they are cut, in tokens",
        "enough: the max_length at which less than 1 % of the texts are cut",
    ),
    "repeats": (
        "texts that occur more than once, regardless of case and white space",
        "other label: train has the same text, with other labels only",
    ),
    "same": ("texts that repeat or are blank", "output=FILE has all of them"),
    "near": ("texts that nearly equal one of train", "output=FILE has all of them"),
    "corpora": (
        "unlabelled texts, and dev and test texts among them",
        "sharing: 13 words in a row with dev or test; auxiliary.decontaminate=true leaves them out",
    ),
    "vocabulary": (
        "how the encoder's vocabulary breaks words into pieces",
        "pieces: of a word; broken: in 3 or more; times: as many as in everyday English",
    ),
    "stages": (
        "estimated time and memory on this machine",
        "scaled from a few steps; without evaluations, and less where patience ends a stage early",
    ),
}
"""Title and explanation of each table."""
_EXAMPLES = {"same": 3, "near": 3}
"""Number of rows of the tables that show examples."""
_MOST_ROWS, _MOST_CHARACTERS = 20, 60


def print_findings(findings: Findings) -> None:
    """Print all tables, then the recommendation."""
    console, stages = Console(), findings.tables["stages"]
    console.print(f"[bold]{escape(findings.title)}: what would be trained on[/bold]\n")
    for name, (title, note) in TITLES.items():
        frame = findings.tables[name]
        if len(frame):
            title = f"{len(frame):,} {title}" if name in _EXAMPLES else title
            _print_table(console, title, _short(frame, _EXAMPLES.get(name)))
            console.print(f"[dim]{escape(note)}[/dim]\n" if note else "", highlight=False)
    total = duration(stages["seconds"].sum() * (2 if findings.with_baseline else 1))
    baseline = " (with fine-tuning at equal cost)" if findings.with_baseline else ""
    console.print(f"up to {total} in all{baseline}; the machine has {findings.memory_gib:.1f} GiB")
    advice = findings.advice
    _print_items(console, f"Begin with {' '.join(advice.options)}", advice.reasons)
    _print_items(console, "Look out", advice.warnings)
    _print_items(console, "Remarks of the run itself", findings.remarks)


def escape(text: str) -> str:
    """Return text with markup and control characters made harmless for the terminal."""
    return markup.escape(printable(text))


def _short(frame: pd.DataFrame, most: int | None) -> pd.DataFrame:
    """Return the first `most` rows; or of a long table the first and last ones."""
    if most is not None or len(frame) <= _MOST_ROWS:
        return frame.head(most or _MOST_ROWS)
    half = _MOST_ROWS // 2
    gap = pd.DataFrame("", [f"... {len(frame) - _MOST_ROWS:,} more"], frame.columns)
    return pd.concat([frame.head(half), gap, frame.tail(half)])


def _print_table(console: Console, title: str, frame: pd.DataFrame) -> None:
    table = titled_table(title, "", *(str(name).replace("_", " ") for name in frame.columns))
    for name, row in frame.iterrows():
        table.add_row(escape(str(name)), *map(_cell, frame.columns, row))
    console.print(table)


def _cell(column: str, value: Any) -> str:
    if isinstance(value, str):
        return escape(textwrap.shorten(value, _MOST_CHARACTERS, placeholder="...")) or "(blank)"
    if pd.isna(value):
        return ""
    if column.endswith("seconds"):
        return duration(value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _print_items(console: Console, title: str, items: Sequence[str]) -> None:
    if items:
        console.print(f"\n[bold]{escape(title)}[/bold]", highlight=False)
    for text in items:
        wrapped = textwrap.fill(
            text, console.width - 1, initial_indent="- ", subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        # already wrapped, and an option must not be broken, so that it can be copied
        console.print(escape(wrapped), highlight=False, soft_wrap=True)
