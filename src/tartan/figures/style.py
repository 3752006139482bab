"""Defines the style of all figures, readable for the colour-blind and in grey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C00",
)  # fmt: skip
"""Okabe and Ito's palette, its yellow darkened for a white background."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = ("-", "--", "-.", ":", (0, (5, 1)))
_RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "axes.axisbelow": True,
    "svg.hashsalt": "report",
}


def style(index: int) -> dict[str, Any]:
    """Return the style of the `index`-th line: 64 pairs of colour and marker before one repeats."""
    other = index + index // len(COLOURS)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": _MARKERS[other % len(_MARKERS)],
        "linestyle": _LINES[other % len(_LINES)],
    }


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
        return list(picture.subplots(rows, columns, squeeze=False, **options).flat)


def figure_text(text: str, longest: int = 60) -> str:
    """Return text from runs such that Matplotlib shows no formulas; a long one lacks its middle.

    Labels that begin alike often differ at the end.
    """
    half = longest // 2
    shown = text if len(text) <= longest else f"{text[: half - 1]}…{text[-half:]}"
    return shown.replace("$", r"\$")


def legend_below(picture: Figure, columns: int = 2) -> None:
    """Draw one legend below the figure, with each label of any of its axes once."""
    entries: dict[str, Artist] = {}
    for axes in picture.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    columns = min(columns, max(1, len(entries)))
    picture.legend(
        entries.values(), entries, loc="outside lower center", ncols=columns, frameon=False
    )


def save(picture: Figure, *paths: Path) -> None:
    """Write images; the bytes of an SVG follow from the picture, without a date."""
    with mpl.rc_context(_RC):
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            metadata = {"Date": None} if path.suffix == ".svg" else None
            picture.savefig(path, dpi=160, metadata=metadata)
