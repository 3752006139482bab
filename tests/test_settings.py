"""Declared types are checked strictly where an object is made; messages name the option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, MultipleOf
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from tartan.errors import UserError
from tartan.methods.stage import Stage
from tartan.settings import (
    Count,
    Natural,
    NonNegative,
    Part,
    Share,
    Size,
    Text,
    build,
    check,
    checked,
    quoted,
    typed,
)

INF, NAN = float("inf"), float("nan")
META = "tartan.core.weighting.meta.Meta"


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (Natural, [0, 7, np.int64(3)], [-1, 1.0, True, None, "1", NAN]),
        (NonNegative, [0, 0.5, np.float64(2)], [-1e-9, INF, NAN]),
        (Share, [1, 0.1], [0, 1.1]),
        (Part, [0.1], [0, 1, NAN]),
        (Size, [1, "all"], [0, "10", True, None]),
        (Text, ["a"], ["", " ", 5, None]),
        (bool | None, [True, None], [1, "true"]),
        (Literal["linear", "constant"], ["linear"], ["cosine", None, ["linear"]]),
        (Sequence[Count], [[], [1], (2,)], [1, [0], "1"]),
        (Mapping[str, float], [{"a": 1}], [[1], 5]),
        (Annotated[int, Ge(2), MultipleOf(2)], [4], [3, 0]),
        (np.ndarray, ["left to its class"], []),
    ],
)
def test_a_value_has_the_declared_type(hint, right, wrong):
    for value in right:
        assert check(value, hint, "option") == value
    for value in wrong:
        with pytest.raises(UserError, match=r"^option(\.\w+)*: "):
            check(value, hint, "option")


@checked
def call(first: Count, *, second: str = "a", other: object = None) -> tuple[int, str]:
    """Say so."""
    return first, second


def test_a_function_checks_its_arguments_and_stays_what_it_is():
    assert call(1, second="b", other=5) == (1, "b")
    assert call.__doc__ == "Say so."
    with pytest.raises(UserError, match=r"^first: "):
        call(0)
    with pytest.raises(TypeError, match="positional"):
        call(1, 5)


def stage(**values: Any) -> Stage:
    node = {"module": "tartan.methods.fine_tuning.FineTuning", "max_steps": 3, **values}
    return typed(OmegaConf.create({"lr": 0.5, "stage": node}).stage, Stage, "method.stages.s")


def test_a_node_becomes_the_dataclass_and_those_within():
    made = stage(optimisation={"body_lr": 1, "weight_decay": "${lr}"}, meta_head={"steps": 2})
    rates = (made.optimisation.body_lr, made.optimisation.weight_decay)
    assert (*rates, made.meta_head.steps, made.batch_size) == (1.0, 0.5, 2, 16)


def test_build_makes_the_class_with_plain_containers():
    weighting = build(OmegaConf.create({"_target_": META, "eta": 0.5}), "w", task_names=["a", "b"])
    assert (weighting.eta, weighting.task_names) == (0.5, ["a", "b"])
    made = build(OmegaConf.create({"_target_": "builtins.dict", "inner": {"list": [1]}}), "option")
    assert type(made["inner"]) is dict
    assert type(made["inner"]["list"]) is list


def fail(task_names: list[str]) -> None:
    raise ValueError("first\nsecond")


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"gamma": 3}, "option names no class"),
        ({"_target_": META, "bogus": 1}, "option: "),
        ({"_target_": META, "eta": "fast"}, "option.eta: "),
        ({"_target_": META, "eta": -1}, "option.eta: "),
        ({"_target_": META, "eta": "${nowhere}"}, "eta: "),
        ({"_target_": "tartan.data.file_task.FileTask", "train": "???"}, "train: "),
        ({"_target_": "no_such_package.Logger"}, "option: "),
        ({"_target_": f"{__name__}.fail"}, "option: first"),
        ({"_target_": "builtins.dict", "a": {"_target_": META, "eta": -1}}, "option.a.eta: "),
    ],
)
def test_what_cannot_be_built_is_one_line_with_its_option(node, said):
    with pytest.raises(UserError) as caught:
        build(OmegaConf.create(node), "option", task_names=["a"])
    assert str(caught.value).startswith(said)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["a b", "it's", '"', "a,b=c", "${x}", r"a\${x}", "null", "Größe"])
def test_a_quoted_text_is_read_as_itself(text):
    override = OverridesParser.create().parse_override(f"a={quoted(text)}")
    assert OmegaConf.create({"a": override.value(), "x": 1}).a == text
