"""Prints the findings as tables of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
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
        "scaled from 3 steps of each stage; it takes less where patience ends a stage early",
    ),
}
"""Title and explanation of each table."""
_MOST_LABELS, _PLACES, _TEXTS, _START = 20, 4, 3, 40
"""Maximum numbers of labels, of a text's places, of repeated texts, and of their characters."""


def print_findings(found: Findings) -> None:
    """Print all tables, then the recommendation."""
    console = Console()
    console.print(f"[bold]{escape(found.title)}: what would be trained on[/bold]\n")
    for name, (title, note) in TITLES.items():
        frame = found.tables[name]
        if len(frame):
            _print_table(console, title, _short(frame))
            console.print(f"[dim]{escape(note)}[/dim]\n" if note else "", highlight=False)
        if name == "repeats":
            for line in _repeated_texts(found):
                console.print(escape(line), highlight=False, soft_wrap=True)
    total = duration(found.tables["stages"]["seconds"].sum() * (2 if found.with_baseline else 1))
    baseline = " (with fine-tuning at equal cost)" if found.with_baseline else ""
    console.print(f"up to {total} in all{baseline}; the machine has {found.memory_gib:.1f} GiB")
    _print_items(console, f"Begin with {' '.join(found.advice.options)}", found.advice.reasons)
    _print_items(console, "Look out", found.advice.warnings)
    _print_items(console, "Remarks of the run itself", found.remarks)


def escape(text: str) -> str:
    """Return text with markup and control characters made harmless for the terminal."""
    return markup.escape(printable(text))


def _repeated_texts(found: Findings) -> Iterator[str]:
    """Yield the texts that repeat or nearly do, with their places."""
    if found.same:
        several = sum(one["labels"] > 1 for one in found.same)
        labels = f", {several:,} with different labels" if several else ""
        yield f"{len(found.same):,} texts repeat or are blank{labels} (output=FILE has all):"
    for one in found.same[:_TEXTS]:
        places = ", ".join(_place(**place) for place in one["places"][:_PLACES])
        more = ", ..." if len(one["places"]) > _PLACES else ""
        yield f"  {places}{more}: {_start(one['text'])}"
    near = found.tables["near"]
    if len(near):
        yield f"{len(near):,} dev and test texts are nearly equal to one of train:"
    for _, row in near.head(_TEXTS).iterrows():
        places = f"{_place(row['split'], row['line'])}, {_place('train', row['train_line'])}"
        yield f"  {row['similarity']:.0%} the same: {places}: {_start(row['text'])}"


def _place(split: str, line: Any, label: str = "") -> str:
    where = split if pd.isna(line) else f"{split} line {line}"
    return f"{where} ({label})" if label else where


def _start(text: str) -> str:
    return " ".join(text.split())[:_START] or "(blank)"


def _short(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first and last rows of a long table."""
    if len(frame) <= _MOST_LABELS:
        return frame
    half, rest = _MOST_LABELS // 2, len(frame) - _MOST_LABELS
    gap = pd.DataFrame("", index=[f"... {rest:,} more"], columns=frame.columns)
    return pd.concat([frame.iloc[:half], gap, frame.iloc[-half:]])


def _print_table(console: Console, title: str, frame: pd.DataFrame) -> None:
    table = titled_table(title, "", *(str(name).replace("_", " ") for name in frame.columns))
    for name, row in frame.iterrows():
        table.add_row(escape(str(name)), *map(_cell, frame.columns, row))
    console.print(table)


def _cell(column: str, value: Any) -> str:
    if isinstance(value, str):
        return escape(value)
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
