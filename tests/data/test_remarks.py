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

SHARED = "examples have a text of train (metrics are given without them as well): 2 of 3 in dev"


@pytest.fixture
def said(caplog):
    """The warnings of a call."""

    def call(function, *arguments):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tartan.data.remarks"):
            function(*arguments)
        return [record.getMessage().removeprefix("task toy: ") for record in caplog.records]

    return call


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        (
            {"train": [("a", "A"), ("a", "A"), ("b", "B")], "test": [("e", "A"), ("e", "B")]},
            ["examples repeat a text of their own split: 1 of 3 in train, 1 of 2 in test"],
        ),
        (
            {"dev": [("a", "A"), ("d", "B"), ("b", "B")]},
            [SHARED],
        ),
        (
            {"dev": [("c", "B")], "test": [("e", "A")]},
            ["no examples in dev of 'A'", "no examples in test of 'B'"],
        ),
        (
            {"train": [("", "A"), (("a", ""), "A"), (("", " "), "B")]},
            ["examples have a blank text: 2 of 3 in train"],
        ),
    ],
)
def test_oddities_of_texts_are_counted(changed, expected, said):
    assert said(warn_of_texts, "toy", {**CLEAN, **changed}) == expected


def test_labels_that_look_alike_or_mean_none_are_told(said):
    labels = ["caf\u00e9", "cafe\u0301", "None", "NaN", "1", "01", "1.0", "2", "10"]
    train = [(f"t{i}", label) for i, label in enumerate(labels)]
    other = [(f"e{i}", label) for i, label in enumerate(labels)]
    found = said(warn_of_texts, "toy", {"train": train, "dev": other, "test": other})
    assert found[0] == "labels that may mean a missing one: 'NaN', 'None'"
    assert {line.partition("only: ")[2] for line in found[1:]} == {
        "'cafe\u0301', 'caf\u00e9'", "'01', '1', '1.0'",
    }  # fmt: skip


def test_uneven_labels_are_told(said):
    assert said(warn_of_imbalance, "toy", ["a", "b"], [5, 2]) == []
    (line,) = said(warn_of_imbalance, "toy", ["a", "b"], [9, 3])
    assert line.startswith("labels are uneven in train: 'a' 75.0%, 'b' 25.0%")
