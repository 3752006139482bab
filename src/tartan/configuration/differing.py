"""Compares what was stored with what is now, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def differing(stored: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Return the sorted names whose values differ, or that only one of the two has."""
    names = sorted(stored.keys() | own.keys())
    return [name for name in names if stored.get(name) != own.get(name)]
