"""Defines an interval of a score or of a difference."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An interval of 95 %, in the values' own unit."""

    low: float
    high: float
