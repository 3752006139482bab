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

PALETTE = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "olive": "#8C8C00",
}
"""Okabe and Ito's palette, its yellow darkened for a white background."""
COLOURS = tuple(PALETTE.values())
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


def styles_of(keys: Sequence[str]) -> Mapping[str, Style]:
    """Return a style for each key, in order."""
    return {key: style(index) for index, key in enumerate(keys)}


def style(index: int) -> Style:
    """Return the style of the `index`-th line.

    There are 64 pairs of colour and marker before one repeats.
    """
    other = index + index // len(COLOURS)
    return Style(
        COLOURS[index % len(COLOURS)],
        MARKERS[other % len(MARKERS)],
        LINES[other % len(LINES)],
    )


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size [inches]."""
    with mpl.rc_context(_RC):
        return Figure(figsize=(width, height), layout="constrained")


def axes_of(picture: Figure, rows: int = 1, columns: int = 1, **options: Any) -> list[Axes]:
    """Return the figure's axes, row by row."""
    with mpl.rc_context(_RC):
        grid = picture.subplots(rows, columns, squeeze=False, **options)
    return [axes for row in grid for axes in row]


def plain(text: str, longest: int = 60) -> str:
    """Return text from runs such that Matplotlib shows no formulas, and shortened."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return shown.replace("$", r"\$")


def legend_below(picture: Figure, columns: int = 2) -> None:
    """Draw one legend below the figure, with each label of any of its axes once."""
    entries: dict[str, Artist] = {}
    for axes in picture.axes:
        handles, labels = axes.get_legend_handles_labels()
        for label, handle in zip(labels, handles, strict=True):
            entries.setdefault(label, handle)
    picture.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(columns, max(1, len(entries))),
        frameon=False,
    )


def title(axes: Axes, text: str) -> None:
    """Set the title of a figure with one pair of axes."""
    axes.set_title(plain(text, 90), loc="left", fontweight="bold", fontsize=10)


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
