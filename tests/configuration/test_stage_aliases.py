"""A name that other tools use leads to the option of a stage."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from tartan.configuration.stage_aliases import _ALIASES, stage_option
from tests.in_process import config_of


@pytest.mark.parametrize(
    ("prefix", "name", "stages", "said"),
    [
        ("", "lr", ["finetune"], "method.stages.finetune.optimisation.body_lr=2e-5"),
        ("", "weight_decay", [], "method.stages.STAGE.optimisation.weight_decay=0.01"),
        ("", "epochs", ["a", "b"], "method.stages.STAGE.max_epochs=3 (STAGE: a, b)"),
        ("method.stages.b.", "lr", ["a", "b"], "method.stages.b.optimisation.body_lr=2e-5"),
        ("method.stages.b.optimisation.", "lr", [], "method.stages.b.optimisation.body_lr=2e-5"),
    ],
)
def test_the_option_is_named_with_its_stage(prefix, name, stages, said):
    answer = stage_option(prefix, name, stages)
    assert answer is not None
    assert answer.endswith(f" of a stage: {said}")


@pytest.mark.parametrize(("prefix", "name"), [("", "encodr"), ("weighting.", "lr")])
def test_other_names_are_not_answered(prefix, name):
    assert stage_option(prefix, name, ["finetune"]) is None


def test_every_answer_is_an_option_of_a_stage():
    stage = config_of(["method=finetune"]).method.stages.finetune
    for _, option in _ALIASES.values():
        assert OmegaConf.select(stage, option.partition("=")[0], throw_on_missing=True) is not None
