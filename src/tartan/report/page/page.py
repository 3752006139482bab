"""Makes the HTML page, which loads nothing else and shows text from runs as plain text."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from tartan.figures.style import PALETTE
from tartan.files import one_line
from tartan.report.figures.pictures import Picture
from tartan.report.page.interactive import (
    anchor,
    as_html,
    cost_figure,
    curves_figure,
    seeds_figure,
)
from tartan.report.reading.grouping import differing_options
from tartan.report.report import BenchmarkReport, Report
from tartan.report.tables.table import ResultTable
from tartan.run_folder.duration import duration

_HERE = Path(__file__).parent
_REDRAWN = ("seeds-whole", "seeds-unseen", "learning", "cost")
"""Kinds of static figures of which the page has interactive versions."""


def page_of(report: Report, figures: Path) -> str:
    """Return the page's HTML.

    Args:
        report: the report.
        figures: the folder in which the static figures were written as SVG.

    Raises:
        OSError: a figure cannot be read.
    """
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"one_line": one_line, "duration": duration, "anchor": anchor}
    interactive = {part.bench.key: _interactive(part) for part in report.benches}
    page: str = environment.get_template("template.html").render(
        report=report,
        written=time.strftime("%Y-%m-%d %H:%M", time.localtime(report.found.at)),
        style=Markup(_style()),
        script=Markup((_HERE / "script.js").read_text(encoding="utf-8")),
        plotly=Markup(get_plotlyjs()) if any(interactive.values()) else None,
        interactive=interactive,
        static=[p for p in report.pictures if p.kind not in _REDRAWN],
        image=lambda picture: _image(picture, figures),
        differing=lambda bench: differing_options(bench.settings),
        same_as_before=_same_as_before,
    )
    return page


def _style() -> str:
    """Return the style sheet, with the figures' palette as its variables."""
    palette = " ".join(f"--{name}: {colour};" for name, colour in PALETTE.items())
    return f":root {{ {palette} }}\n" + (_HERE / "style.css").read_text(encoding="utf-8")


def _interactive(part: BenchmarkReport) -> list[tuple[str, Markup]]:
    """Return each interactive figure's caption and HTML."""
    bench = part.bench
    figures: list[tuple[str, str, go.Figure | None]] = [
        ("seeds", "Every run on test; a click leads to it", seeds_figure(bench)),
        ("steps", "Learning curves: thin lines are seeds", curves_figure(bench, "steps")),
        ("seconds", "Dev by time spent", curves_figure(bench, "seconds")),
        ("flops", "Dev by computation spent", curves_figure(bench, "flops")),
        ("cost", "Test by computation spent in all", cost_figure(bench)),
    ]
    return [
        (caption, Markup(as_html(figure, f"plot-{name}-{bench.key}")))
        for name, caption, figure in figures
        if figure is not None
    ]


def _image(picture: Picture, figures: Path) -> str:
    """Return an SVG as a data URI: as an image it can neither run scripts nor load anything."""
    content = (figures / f"{picture.name}.svg").read_bytes()
    return "data:image/svg+xml;base64," + base64.b64encode(content).decode("ascii")


def _same_as_before(tables: Sequence[ResultTable], place: int) -> bool:
    """Return whether a table has the same cells as the one before it."""
    words = [
        [[cell.words for cell in row.cells] for row in table.rows]
        for table in tables[max(0, place - 1) : place + 1]
    ]
    return len(words) == 2 and words[0] == words[1]
