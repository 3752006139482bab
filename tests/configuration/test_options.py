"""Declared types are checked where an object is made, and said in the words of one place."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, MultipleOf

from tartan.configuration.did_you_mean import did_you_mean
from tartan.configuration.options import (
    Below1,
    Checked,
    Count,
    Fraction,
    Natural,
    NonNegative,
    Part,
    Positive,
    Share,
    Size,
    Temperature,
    Text,
    checked,
)
from tartan.configuration.values import check, validated
from tartan.configuration.words import words
from tartan.core.weighting.meta import Meta
from tartan.data import TartanData
from tartan.errors import UserError
from tartan.methods.meta_tartan import MetaTartan
from tartan.methods.optimisation import Optimisation

INF, NAN = float("inf"), float("nan")
WORDS = {
    "a whole number of at least 0": (Natural, [0, 7], [-1, 1.0, True, None, "1", NAN]),
    "a whole number of at least 1": (Count, [1, 10**13], [0]),
    "a finite number of at least 0": (NonNegative, [0, 0.5, np.float64(2)], [-1e-9, INF, NAN]),
    "a finite number above 0": (Positive, [1e-9], [0, INF]),
    "a number above 0": (Temperature, [1e-9, INF], [0, NAN]),
    "a number in (0, 1]": (Share, [1, 0.1], [0, 1.1]),
    "a number in (0, 1)": (Part, [0.1], [0, 1, NAN]),
    "a number in [0, 1)": (Below1, [0], [1, -0.1]),
    "a number in [0, 1]": (Fraction, [0, 1], [1.1]),
    "a finite number above 0 or all": (Size, [1, "all"], [0, "10", True, None]),
    "non-empty text": (Text, ["a"], ["", " ", 5, None]),
    "true, false or null": (bool | None, [True, None], [1, "true"]),
    "linear or constant": (Literal["linear", "constant"], ["linear"], ["cosine", None, ["linear"]]),
    "a list of whole numbers of at least 1": (Sequence[Count], [[], [1], (2,)], [1, [0], "1"]),
    "a mapping of names to finite numbers": (Mapping[str, float], [{"a": 1}], [[1], 5]),
    "a whole number of at least 2, a multiple of 2": (
        Annotated[int, Ge(2), MultipleOf(2)], [4], [3, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", WORDS)
def test_what_is_checked_is_what_is_said(said):
    hint, right, wrong = WORDS[said]
    assert words(hint) == said
    for value in right:
        check(value, hint, "option")
    for value in wrong:
        with pytest.raises(UserError, match=r"^option must be .*, got ") as caught:
            check(value, hint, "option")
        assert said in str(caught.value)


def test_a_list_where_one_file_is_taken_is_told_what_to_do():
    for given in (["a.csv", "b.csv"], ["a.csv"]):
        with pytest.raises(
            UserError, match=r"got .*; it takes one file: join them into one first$"
        ):
            check(given, str | None, "task.train")
    for given in (["a", "b"], [1, 2], []):
        with pytest.raises(UserError, match=r"must be text or null, got \[.*\]$"):
            check(given, str | None, "task.train")


def test_what_is_not_plain_is_left_to_its_class():
    for hint in (object, Any, np.ndarray, Sequence[np.ndarray], np.ndarray | None):
        check("anything", hint, "option")


def test_one_of_several_types_that_are_not_all_plain_is_left_to_its_class_too():
    for value in ({}, {"a": 1}, None):
        assert validated(value, Mapping[str, Any] | None, "option") == value


@dataclass(frozen=True)
class Inner(Checked):
    rate: Below1 = 0.5
    name: str = "a"


@dataclass(frozen=True)
class Outer(Inner):
    inner: Inner = field(default_factory=Inner)
    size: Size = "all"


def test_a_dataclass_checks_what_it_inherits_and_what_it_adds():
    assert Outer(0.1, size=3).size == 3
    for bad, said in (
        ({"rate": 1}, "^rate must be a number"),
        ({"size": 0}, "^size must be a"),
    ):
        with pytest.raises(UserError, match=said):
            Outer(**bad)


def test_a_mapping_becomes_the_dataclass_with_paths_in_messages():
    filled = validated({"rate": 0, "inner": {"name": "b"}}, Outer, "group")
    assert filled == Outer(0.0, inner=Inner(name="b"))
    for values, said in (
        ({"inner": {"rate": 2}}, r"^group\.inner\.rate must be a number in \[0, 1\), got 2$"),
        (
            {"inner": {"rat": 2}},
            r"^there is no option group\.inner\.rat; did you mean group",
        ),
        ({"inner": 3}, r"^group\.inner must be a mapping of options, got 3$"),
        ({"name": "???"}, r"^group\.name is missing; it must be text$"),
    ):
        with pytest.raises(UserError, match=said):
            validated(values, Outer, "group")


@checked
def call(first: Count, *, second: str = "a", other: object = None) -> tuple[int, str]:
    """Say so."""
    return first, second


def test_a_function_checks_its_arguments_by_name_and_stays_what_it_is():
    assert call(1, second="b", other=5) == (1, "b")
    assert call.__doc__ == "Say so."
    assert list(inspect.signature(call).parameters) == ["first", "second", "other"]
    with pytest.raises(UserError, match=r"^first must be a whole number"):
        call(0)
    with pytest.raises(TypeError, match="positional"):
        call(1, 5)
    with pytest.raises(UserError, match=r"^second must be text, got 5$"):
        call(1, second=5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Meta(["end_task"], eta=-1), r"^eta must be a finite number of at .*, got -1$"),
        (lambda: Optimisation(warmup=2), r"^warmup must be a number in \[0, 1\], got 2$"),
        (lambda: TartanData("a.csv", batch_size=0), r"^batch_size must be a whole number of"),
        (lambda: TartanData("a.csv", dropout=1), r"^dropout must be a number in \[0, 1\), got 1$"),
        (lambda: TartanData("a.csv", size="most"), r"^size must be a finite number above 0 or all"),
        (
            lambda: MetaTartan.for_data(TartanData("a.csv"), lr="fast"),
            r"^lr must be a finite number of at least 0 or null, got 'fast'$",
        ),
        (
            lambda: MetaTartan.for_data(TartanData("a.csv"), lr=1e-3, inner_products="float16"),
            r"^inner_products must be float32 or float64, got 'float16'; did you mean float64\?$",
        ),
    ],
)  # fmt: skip
def test_a_program_is_told_the_arguments_name_before_anything_is_read(make, said):
    with pytest.raises(UserError, match=said):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TartanData("a.csv", encodr="tiny"), r"^TartanData\(\): .*'encodr'; did you mean"),
        (lambda: Meta(), r"^Meta\(\): missing a required argument: 'task_names'$"),
    ],
)
def test_unknown_and_missing_arguments_name_the_function(make, said):
    with pytest.raises(TypeError, match=said):
        make()


def test_the_word_that_is_like_another_or_all_there_are():
    assert did_you_mean("sede", ["seed", "size"], "a.") == "; did you mean a.seed?"
    assert did_you_mean("ab", ["ab c"], "a=") == "; did you mean 'a=\"ab c\"'?"
    assert did_you_mean("Grösse", ["Größe"], "a=") == "; did you mean 'a=\"Größe\"'?"
    assert did_you_mean("ab", ["ab c"]) == "; did you mean ab c?"
    assert did_you_mean("x", ["b", "a"]) == "; there are a, b"
    assert did_you_mean("x", ["a"]) == "; there is only a"
    assert did_you_mean("x", ["b", "a"], listed=False) == did_you_mean("x", []) == ""
