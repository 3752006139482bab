"""Durations are told in fitting units."""

from __future__ import annotations

import pytest

from tartan.run_folder.duration import duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.2, "0 s"),
        (99, "99 s"),
        (99.6, "2 min"),
        (5960, "99 min"),
        (5990, "1.7 h"),
        (47.9 * 3600, "47.9 h"),
        (48 * 3600, "2.0 d"),
    ],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown
