"""Ratios of paired measurements, the order of measurements, and rates."""

from __future__ import annotations

import pytest
import torch

from benchmarks.measure import Ratio, measure_matrix_rate, ratio, time_interleaved

CPU = torch.device("cpu")


def test_a_ratio_is_the_median_of_the_pairs_ratios():
    found = ratio([2.0, 6.0, 30.0], [1.0, 2.0, 3.0])
    assert found == Ratio(median=3.0, low=2.5, high=6.5, pairs=3)
    assert str(found) == "3.000 (2.500 to 6.500)"


@pytest.mark.parametrize(("times", "of"), [([], []), ([1.0], [1.0, 2.0])])
def test_unequal_numbers_of_measurements_are_refused(times, of):
    with pytest.raises(ValueError, match="cannot pair"):
        ratio(times, of)


def test_functions_are_timed_in_both_orders_after_a_round_that_is_not_counted():
    calls = []
    parts = {name: lambda name=name: calls.append(name) for name in ("a", "b", "c")}
    times = time_interleaved(parts, 3, CPU)
    assert calls == ["c", "b", "a", "a", "b", "c", "c", "b", "a", "a", "b", "c"]
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 3, "b": 3, "c": 3}
    assert all(second >= 0 for seconds in times.values() for second in seconds)


def test_the_rate_of_large_products_is_plausible():
    assert 1e8 < measure_matrix_rate(CPU, torch.float32, seconds=0.05) < 1e16
