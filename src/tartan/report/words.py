"""Puts numbers and names into words; longer texts are templates, in the folder `templates`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tartan.evaluation.statistics import Interval
from tartan.files import escape_markdown, one_line
from tartan.runs.command_line import duration

_TEMPLATES = Path(__file__).parent / "templates"


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
