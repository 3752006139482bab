"""Prints the findings as tables of 80 columns."""

import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich import markup
from rich.console import Console

from tartan.check.advice import tables
from tartan.check.findings import Findings
from tartan.errors import printable
from tartan.runs.command_line import duration, titled_table

_MOST_ROWS = {"same": 3, "near": 3}
"""Number of rows that are shown of a table, if not 20."""
_MOST_CHARACTERS = 60
_HEADS = {"seconds": "time", "step_time": "seconds a step"}


def print_findings(findings: Findings) -> None:
    """Print all tables, then the recommendation."""
    console, advice = Console(), findings.advice
    console.print(f"[bold]{escape(findings.title)}: what would be trained on[/bold]\n")
    for name, (title, note) in tables()["tables"].items():
        frame = findings.tables[name]
        if len(frame):
            shown = frame.head(_MOST_ROWS.get(name, 20))
            more = f" ({len(shown)} of {len(frame):,})" if len(shown) < len(frame) else ""
            _print_table(console, title + more, shown)
            console.print(f"[dim]{escape(note)}[/dim]\n" if note else "", highlight=False)
    total = duration(findings.tables["stages"]["seconds"].sum())
    console.print(f"up to {total} in all; the machine has {findings.memory_gib:.1f} GiB")
    _print_items(console, f"Begin with {' '.join(advice.options)}", advice.reasons)
    _print_items(console, "Look out", advice.warnings)


def escape(text: str) -> str:
    """Return text with markup and control characters made harmless for the terminal."""
    return markup.escape(printable(text))


def _print_table(console: Console, title: str, frame: pd.DataFrame) -> None:
    heads = (_HEADS.get(str(name), str(name).replace("_", " ")) for name in frame.columns)
    table = titled_table(title, "", *heads)
    for name, row in frame.iterrows():
        title = escape(name) if isinstance(name, str) else ""  # rows without a name are numbered
        table.add_row(title, *map(_cell, frame.columns, row))
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
        console.print(f"- {escape(text)}", highlight=False)
