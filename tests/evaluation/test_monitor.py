"""Which value of a metric is better."""

from __future__ import annotations

import math

import pytest

from tartan.evaluation.monitor import PERPLEXITY, Monitor


@pytest.mark.parametrize(("name", "best"), [("macro_f1", 0.7), (PERPLEXITY, 0.5)])
def test_nan_is_never_the_best(name, best):
    monitor = Monitor(name)
    for values in ([math.nan, 0.5, 0.7], [0.7, 0.5, math.nan]):
        assert max(values, key=monitor.merit) == best
