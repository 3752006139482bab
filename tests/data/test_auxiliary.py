"""How many examples an auxiliary task takes, which ones, and whether they suit the end task."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.auxiliary import choose_rows, size_of
from tartan.errors import UserError
from tartan.experiment.prepare import enabled_stages, prepare
from tests.in_process import config_of, toy


def choose(available=200, size=2.0, train=10, seed=0):
    return choose_rows(available, size, train, seed, "auxiliary.size", "made up").tolist()


@settings(max_examples=100)
@given(
    available=st.integers(1, 300),
    share=st.floats(0.01, 1),
    train=st.integers(1, 50),
    seed=st.integers(0, 1000),
)
def test_the_choice_is_so_many_different_rows_in_their_order(available, share, train, seed):
    count = max(1, round(share * available))
    rows = choose(available, count / train, train, seed)
    assert len(rows) == count
    assert rows == sorted(set(rows))
    assert 0 <= rows[0] <= rows[-1] < available


@settings(max_examples=50)
@given(sizes=st.lists(st.floats(0.1, 20), min_size=2, max_size=5), seed=st.integers(0, 1000))
def test_a_smaller_choice_is_part_of_a_larger_one(sizes, seed):
    parts = [set(choose(size=size, seed=seed)) for size in sorted(sizes)]
    for smaller, larger in itertools.pairwise(parts):
        assert smaller <= larger


def test_the_choice_is_a_function_of_the_seed():
    np.random.seed(0)
    first = choose(seed=1)
    np.random.seed(1)
    assert choose(seed=1) == first
    assert len({tuple(choose(seed=seed)) for seed in range(6)}) == 6


def test_every_row_is_chosen_as_often_as_any_other():
    counts = np.zeros(20)
    for seed in range(400):
        counts[choose(available=20, size=1, train=5, seed=seed)] += 1
    assert counts.sum() == 2000
    assert abs(counts - 100).max() < 5 * np.sqrt(75)  # five standard deviations


def test_as_much_as_there_is_can_be_chosen():
    assert choose(available=20, size=2, train=10) == list(range(20))


def test_more_than_there_is_is_an_error_with_the_largest_size_that_fits():
    with pytest.raises(UserError) as caught:
        choose(available=55, size=10, train=16)
    message = str(caught.value)
    for part in ("auxiliary.size=10", "160 examples", "10 x 16", "made up has 55", "at most 3.437"):
        assert part in message
    assert len(choose(available=55, size=3.437, train=16)) == 55


def test_a_choice_of_nothing_is_an_error():
    with pytest.raises(UserError, match=r"^auxiliary\.size=0\.04 asks for no examples"):
        choose(size=0.04)


@pytest.mark.parametrize(
    ("own", "default", "size", "option"),
    [
        (None, 3, 3.0, "auxiliary.size"),
        (None, "all", None, "auxiliary.size"),
        (2, 3, 2.0, "auxiliary.mine.size"),
        (0.5, "all", 0.5, "auxiliary.mine.size"),
        ("all", 3, None, "auxiliary.mine.size"),
    ],
)
def test_a_tasks_own_size_comes_before_that_for_all(own, default, size, option):
    assert size_of("mine", own, default) == (size, option)


@pytest.fixture
def prepared(data_dir, cache_dir):
    """What an experiment on text or on images shares, by its options."""

    def call(kind, *options):
        text = [o for o in toy(data_dir, cache_dir, "mt_tartan") if "auxiliary" not in o]
        images = ["+experiment=shared/images", "task=digits", "method=mt_tartan"]
        config = config_of([*(text if kind == "text" else images), *options])
        return prepare(config, enabled_stages(config))

    return call


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        ("images", ["auxiliary=tapt"], "auxiliary tapt needs an encoder of text"),
        ("images", ["+auxiliary_task@auxiliary.tapt=mlm_task"], "auxiliary tapt needs an encoder"),
        ("images", ["auxiliary=tapt", "encoder=tiny"], "of images"),
        ("text", ["auxiliary=other_classes"], "auxiliary other_classes needs an encoder of images"),
        (
            "text",
            ["+auxiliary_task@auxiliary.more=other_classes"],
            "auxiliary more needs an encoder of images",
        ),
    ],
    ids=str,
)
def test_images_and_text_do_not_mix(kind, options, named, prepared):
    with pytest.raises(UserError, match=named) as caught:
        prepared(kind, *options)
    assert "\n" not in str(caught.value)
