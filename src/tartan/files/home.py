"""Hides the home folder in text that is published: its name is often its owner's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path


def without_home(text: str) -> str:
    """Return the text with `~` in the place of the home folder, as a whole or before a path."""
    return "~".join(_parts(text))


def shell_command(arguments: Sequence[str]) -> str:
    """Return the command line of arguments, with `"$HOME"` in the place of the home folder."""
    words = (
        '"$HOME"'.join(shlex.quote(part) if part else "" for part in _parts(argument))
        for argument in arguments
    )
    return " ".join(word or "''" for word in words)


def _parts(text: str) -> list[str]:
    """Return what is before, between and after the occurrences of the home folder."""
    home = str(Path.home())
    if home == "/":
        return [text]
    return re.split(rf"(?<![\w.~-]){re.escape(home)}(?![\w-])", text)
