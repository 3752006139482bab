"""Defines an interval of a score or of a difference."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """An interval of 95 %, in the values' own unit."""

    low: float
    high: float
