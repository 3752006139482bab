"""Formats scores, differences and tables for the page of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import pandas as pd

from studies.estimate import LEAST_SEEDS, SeedMean
from tartan.evaluation.statistics import Interval, permutation_test
from tartan.files import escape_markdown as escape
from tartan.report.tables import markdown_of, p_words

NONE = "–"
"""Entry of a table for a value that is not known."""


def markdown_table(rows: Sequence[Mapping[str, str]], left: int) -> str:
    """Return rows of equal columns as a table; all columns but the first `left` are numbers."""
    return markdown_of(pd.DataFrame([{k: escape(v) for k, v in row.items()} for row in rows]), left)


def mean_words(estimate: SeedMean) -> str:
    """Return a mean in percent, with its standard deviation from two seeds on."""
    deviation = estimate.deviation
    spread = "" if deviation is None else f" ± {100 * deviation:.1f}"
    return f"{100 * estimate.mean:.1f}{spread}"


def interval_words(
    estimate: SeedMean, times: float = 100, lowest: float = 0.0, highest: float = 1.0
) -> str:
    """Return a mean's interval, in percent; a dash where too few seeds give one.

    No value lies outside of `lowest` and `highest`.
    """
    interval = estimate.interval
    if interval is None:
        return NONE
    low, high = max(lowest, interval.low), min(highest, interval.high)
    return f"{times * low:.1f} to {times * high:.1f}"


def signed(estimate: SeedMean | None, points: bool = True) -> str:
    """Return a difference with its interval, in points or as it is; a dash for None."""
    if estimate is None:
        return NONE
    by, digits = (100, 1) if points else (1, 2)
    words = f"{by * estimate.mean:+.{digits}f}"
    if estimate.interval is None:
        return words
    low, high = bounds(estimate.interval, by, digits, "+")
    return f"{words} ({low} to {high})"


def bounds(interval: Interval, by: float = 100, digits: int = 1, sign: str = "") -> tuple[str, str]:
    """Return the bounds of a difference, times `by`.

    A bound that would be printed as 0 has a digit more if the interval excludes 0.
    """
    excludes = interval.low * interval.high > 0

    def words(bound: float) -> str:
        text = f"{by * bound:{sign}.{digits}f}"
        return f"{by * bound:{sign}.{digits + 1}f}" if excludes and not float(text) else text

    return words(interval.low), words(interval.high)


def p_of(estimate: SeedMean | None) -> str:
    """Return the one-sided p of a difference; a dash where too few seeds give one.

    The signs of the differences are exchanged, as the two values of each pair would be.
    """
    if estimate is None or len(estimate.values) < LEAST_SEEDS:
        return NONE
    values = list(estimate.values.values())
    return p_words(permutation_test(values, [0.0] * len(values), paired=True).one_sided)


def mean_of(values: Sequence[float | None], form: str, times: float = 1) -> str:
    """Return the mean of those that are known, or a dash."""
    known = [value for value in values if value is not None]
    return format(times * fmean(known), form) if known else NONE
