"""Tells durations in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a duration in words, e.g. `45 s`, `12 min`, `3.4 h`, `2.1 d`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 99.5:
        return f"{minutes:.0f} min"
    hours = minutes / 60
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} d"
