"""Of the run's own warnings those are told again that the tables do not have."""

from __future__ import annotations

import logging

from tartan.check.findings import _remarks
from tartan.data.remarks import (
    Truncation,
    warn,
    warn_of_imbalance,
    warn_of_texts,
    warn_of_truncation,
)


def test_oddities_that_no_table_shows_are_kept_apart_from_other_warnings(capsys):
    train = [(" ", "a"), ("x", "a "), ("x", "nan"), ("y", "a")]
    with _remarks() as (said, odd):
        warn_of_texts("own", {"train": train, "dev": [("x", "a")], "test": [("y", "a")]})
        warn_of_imbalance("own", ["a", "b"], [9, 1])
        warn_of_truncation("own", "max_length=8", {"train": Truncation(1, 1, 9, 1)})
        warn("in_corpus", "auxiliary dapt: 1 of 2 dev and test texts are in corpus.txt")
        logging.getLogger("tartan.methods").warning("batches of %d", 8)
    assert said == ["batches of 8"]
    assert odd == [
        "task own: examples have a blank text: 1 of 4 in train; fill them in, or remove them",
        "task own: labels differ in case, spaces, Unicode form or the spelling of a number only: "
        "'a' and 'a '",
        "task own: labels that may stand for a missing one: 'nan'",
    ]
    assert capsys.readouterr().err == ""
