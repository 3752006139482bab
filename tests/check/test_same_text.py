"""Texts that occur more than once, and where they stand."""

from __future__ import annotations

from tartan.check.same_text import same_texts
from tartan.data.text_task import LabelledTexts

LABELS = ("A", "B")


def found(**splits):
    return same_texts(splits, LABELS)


def test_places_are_lines_of_the_files_and_contradictions_come_first():
    train = LabelledTexts(["a b", "c", " ", "A  b"], [0, 1, 0, 0], [False] * 4, None, [2, 3, 4, 9])
    dev = LabelledTexts(["C ", "only here"], [0, 1], [True] * 2, None, [2, 3])
    same = found(train=train, dev=dev)
    assert [(one.text, one.contradictory) for one in same] == [
        ("c", True), (" ", False), ("a b", False),
    ]  # fmt: skip
    assert [str(place) for place in same[0].places] == ["line 3 (train, B)", "line 2 (dev, A)"]
    assert [place.number for place in same[2].places] == [2, 9]


def test_where_lines_are_not_known_examples_are_counted():
    (same,) = found(train=LabelledTexts(["x", "x"], [0, 1], [False] * 2))
    assert [str(place) for place in same.places] == ["example 1 (train, A)", "example 2 (train, B)"]


def test_texts_that_differ_are_not_named():
    assert found(train=LabelledTexts(["x", "y"], [0, 1], [False] * 2)) == []
