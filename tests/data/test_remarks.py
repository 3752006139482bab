"""What is said of texts before training: counted, in one line a kind, nothing where all is well."""

from __future__ import annotations

import logging

import pytest

from tartan.data.remarks import warn_of_imbalance, warn_of_texts

CLEAN = {
    "train": [("a", "A"), ("b", "B")],
    "dev": [("c", "A"), ("d", "B")],
    "test": [("e", "A"), ("f", "B")],
}
LABELS = ["caf\u00e9", "cafe\u0301", "None", "2", "10"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        ({"test": [("e", "A"), ("e", "B")]}, ["1 of 2 examples in test repeat a text"]),
        (
            {"dev": [("a", "A"), ("d", "B"), ("b", "B")]},
            ["2 of 3 examples in dev have a text of train"],
        ),
        ({"dev": [("c", "B")]}, ["no examples in dev of 'A'"]),
        (
            {"train": [(("a", ""), "A"), (("", " "), "B")]},
            ["1 of 2 examples in train have a blank"],
        ),
        (
            {split: [(f"{split}{one}", one) for one in LABELS] for split in CLEAN},
            [
                "labels that may mean a missing one: 'None'",
                "labels differ in case, spaces or Unicode form only: 'cafe\u0301', 'caf\u00e9'",
            ],
        ),
    ],
)
def test_oddities_of_texts_are_counted(changed, expected, caplog):
    with caplog.at_level(logging.WARNING):
        warn_of_texts("toy", {**CLEAN, **changed})
    lines = [record.getMessage().removeprefix("task toy: ") for record in caplog.records]
    for line, beginning in zip(lines, expected, strict=True):
        assert line.startswith(beginning)


def test_uneven_labels_are_told(caplog):
    warn_of_imbalance("toy", ["a", "b"], [5, 2])
    assert not caplog.records
    warn_of_imbalance("toy", ["a", "b"], [9, 3])
    assert "'a' has 75.0%, 'b' 25.0%" in caplog.text
