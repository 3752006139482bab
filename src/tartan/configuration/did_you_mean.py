"""Suggests the valid name that is nearest to an invalid one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], prefix: str = "", *, listed: bool = True) -> str:
    """Return the end of a message: the known name that resembles `name`, or all if `listed`.

    After a `prefix` that ends with `=`, a value that shell or Hydra would divide is quoted for
    both.
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        plain = not prefix.endswith("=") or re.fullmatch(r"[\w./-]+", near[0], re.ASCII)
        meant = f"{prefix}{near[0]}" if plain else f"'{prefix}\"{near[0]}\"'"
        return f"; did you mean {meant}?"
    if not known or not listed:
        return ""
    return f"; there are {', '.join(known)}" if len(known) > 1 else f"; there is only {known[0]}"
