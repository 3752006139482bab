"""Quotes values for Hydra's command line, whose grammar has meanings for many characters."""

from __future__ import annotations

import re
from pathlib import Path

from hydra.core.override_parser.types import Quote, QuotedString

_PLAIN = re.compile(r"[\w./-]*/[\w./-]*", re.ASCII)
"""A path that Hydra reads as it is; one without `/` may be a number, or `null`."""


def quoted(text: str) -> str:
    """Return a value in quotes, which Hydra reads as this text, whatever is in it."""
    # backslashes before a reference count
    escaped = re.sub(r"(\\*)(\$\{)", lambda m: m[1] * 2 + "\\" + m[2], text)
    return QuotedString(escaped, Quote.single).with_quotes()


def quoted_path(path: Path) -> str:
    """Return a path as a value, in quotes only where it needs them: people read the command."""
    return str(path) if _PLAIN.fullmatch(str(path)) else quoted(str(path))
