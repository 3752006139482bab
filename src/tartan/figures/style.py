"""Defines the style of all figures, readable for the colour-blind and in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#8C8C00",
)
"""Okabe and Ito's palette, its yellow darkened for a white background."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", "-.", ":", (0, (5, 1)))
_RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "axes.axisbelow": True,
    "svg.hashsalt": "report",
}


@dataclass(frozen=True)
class Style:
    """The colour and marker of a line, the same in every figure."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[int, ...]]


def style(index: int) -> Style:
    """Return the style of the `index`-th line: 64 pairs of colour and marker before one repeats."""
    other = index + index // len(COLOURS)
    return Style(
        COLOURS[index % len(COLOURS)],
        MARKERS[other % len(MARKERS)],
        LINES[other % len(LINES)],
    )


def styles_of(keys: Sequence[str]) -> Mapping[str, Style]:
    """Return a style for each key, in order."""
    return {key: style(index) for index, key in enumerate(keys)}


def figure(width: float, height: float, title: str = "") -> Figure:
    """Return an empty figure of this size [inches]; `title` is text from runs."""
    with mpl.rc_context(_RC):
        picture = Figure(figsize=(width, height), layout="constrained")
    if title:
        picture.suptitle(figure_text(title, 100), x=0.01, ha="left", fontweight="bold", fontsize=10)
    return picture


def axes_of(picture: Figure, rows: int = 1, columns: int = 1, **options: Any) -> list[Axes]:
    """Return the figure's axes, row by row."""
    with mpl.rc_context(_RC):
        grid = picture.subplots(rows, columns, squeeze=False, **options)
    return [axes for row in grid for axes in row]


def figure_text(text: str, longest: int = 60) -> str:
    """Return text from runs such that Matplotlib shows no formulas, and shortened."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return shown.replace("$", r"\$")


def legend_below(picture: Figure, columns: int = 2) -> None:
    """Draw one legend below the figure, with each label of any of its axes once."""
    entries: dict[str, Artist] = {}
    for axes in picture.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    picture.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(columns, max(1, len(entries))),
        frameon=False,
    )


def save(picture: Figure, folder: Path, name: str) -> None:
    """Write `NAME.png` (160 dots an inch) and `NAME.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_RC):
        picture.savefig(folder / f"{name}.png", dpi=160)
    save_svg(picture, folder / f"{name}.svg")


def save_svg(picture: Figure, path: Path) -> None:
    """Write an SVG whose bytes follow from the picture, without a date."""
    with mpl.rc_context(_RC):
        picture.savefig(path, metadata={"Date": None})
