"""Intervals against scipy's own test, contrasts by hand, and when a statement is decided."""

from __future__ import annotations

from itertools import product

import pytest

from studies.estimate import answer, contrast_of, expected_best
from studies.part import Contrast, Question
from tests.studies.made_up_rows import rows

PAIR = Contrast(plus=["1x/ours"], minus=["1x/theirs"])


def question(margin=0.0, of="test", **contrasts):
    return Question(statement="s", of=of, margin=margin, contrasts=contrasts or {"pair": PAIR})


@pytest.mark.parametrize("ours", [[0.62, 0.62, 0.62], [0.6, 0.7, 0.8]])
def test_equal_differences_have_no_interval_and_decide_nothing(ours):
    theirs = [value - 0.1 for value in ours]  # equal but for rounding
    own = rows({"ours": ours, "theirs": theirs})
    found = contrast_of(PAIR, own, "test")
    assert found.interval is None
    assert answer(question(), own) == "not decided"
    assert answer(question(margin=0.2), own) == "not decided"


def test_a_contrast_is_taken_seed_by_seed_over_the_seeds_that_all_cells_have():
    own = rows({"ours": [0.6, 0.7, 0.8], "theirs": [0.5, 0.4]})
    found = contrast_of(PAIR, own, "test")
    assert found.values == pytest.approx({0: 0.1, 1: 0.3})
    assert contrast_of(PAIR, own, "dev").mean == pytest.approx(0.2)
    assert contrast_of(PAIR, rows({"ours": [0.5]}), "test") is None


@pytest.mark.parametrize(
    ("ours", "margin", "verdict"),
    [
        ([0.61, 0.62, 0.63], 0.0, "holds"),
        ([0.41, 0.42, 0.43], 0.0, "does not hold"),
        ([0.41, 0.62, 0.5], 0.0, "not decided"),
        ([0.61, 0.62, 0.63], 0.2, "does not hold"),
        ([0.49, 0.492, 0.494], -0.05, "holds"),  # hardly worse
        ([0.61, 0.62], 0.0, "not decided"),  # two seeds
    ],
)
def test_a_statement_is_decided_where_the_interval_lies_on_one_side(ours, margin, verdict):
    own = rows({"ours": ours, "theirs": [0.5] * len(ours)})
    assert answer(question(margin), own) == verdict


def test_a_statement_needs_all_of_its_contrasts_and_fails_with_one():
    own = rows({"good": [0.61, 0.62, 0.63], "bad": [0.41, 0.42, 0.43], "theirs": [0.5] * 3})
    good, bad, absent = (
        Contrast(plus=[f"1x/{name}"], minus=["1x/theirs"]) for name in ("good", "bad", "absent")
    )
    assert answer(question(good=good), own) == "holds"
    assert answer(question(good=good, absent=absent), own) == "not decided"
    assert answer(question(good=good, absent=absent, bad=bad), own) == "does not hold"


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_the_expected_best_is_the_mean_over_all_ways_to_draw_that_many(trials):
    values = [0.4, 0.1, 0.4, 0.3]
    drawn = [max(chosen) for chosen in product(values, repeat=trials)]
    assert expected_best(values, trials) == pytest.approx(sum(drawn) / len(drawn))
