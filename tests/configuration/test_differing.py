"""What differs between two mappings, by name."""

from __future__ import annotations

from tartan.configuration.differing import differing


def test_changed_missing_and_new_entries_are_named_in_order():
    assert differing({"c": 1, "a": 2, "same": 3}, {"b": 0, "c": 2, "same": 3}) == ["a", "b", "c"]
    assert differing({"a": [1]}, {"a": [1]}) == []
