"""Suggests the valid name that is nearest to an invalid one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], prefix: str = "", *, listed: bool = True) -> str:
    """Return the end of a message: the known name that resembles `name`, or all if `listed`."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"; did you mean {prefix}{near[0]}?"
    if not known or not listed:
        return ""
    return f"; there are {', '.join(known)}" if len(known) > 1 else f"; there is only {known[0]}"
