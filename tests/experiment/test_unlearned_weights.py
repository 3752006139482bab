"""META-TARTAN with a weighting that a file chose, and that learns nothing, is warned of."""

from __future__ import annotations

import logging

import pytest
from hydra.core.hydra_config import HydraConfig

from tartan.experiment.unlearned_weights import warn_of_unlearned_weights
from tartan.settings import build
from tests.in_process import config_of, given_on_command_line

FIXED = (
    "method=meta_tartan trains with the fixed weights of weighting=end_task_share, which a file "
    "chose; give weighting=meta to learn the weights, or weighting=aang with method=aang"
)


@pytest.fixture
def said(caplog, monkeypatch):
    """What is said of a method with the weighting that the command line's options compose."""

    def call(*options):
        given_on_command_line(options, monkeypatch)
        return warned(config_of(options))

    def warned(config):
        weighting = build(config.weighting, "weighting", task_names=["end_task", "tapt"])
        with caplog.at_level(logging.WARNING):
            warn_of_unlearned_weights(config.method.name, weighting)
        return [record.getMessage() for record in caplog.records]

    call.in_a_program = lambda *options: warned(config_of(options))
    return call


def test_fixed_weights_of_an_experiment_are_warned_of(said):
    assert said("+experiment=custom_mt", "method=meta_tartan") == [FIXED]


def test_a_weighting_of_a_methods_own_file_is_warned_of(said, tmp_path):
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "mine.yaml").write_text(
        "# @package _global_\ndefaults:\n  - /stage@method.stages.joint: meta_joint\n"
        "  - override /weighting: dwa\nmethod:\n  name: mine\n"
    )
    assert said(f"hydra.searchpath=[file://{tmp_path}]", "method=mine") == [
        "method=mine trains with weighting=dwa, which a file chose; give weighting=meta to learn "
        "the weights, or weighting=aang with method=aang"
    ]


@pytest.mark.parametrize(
    "options",
    [
        ["+experiment=custom"],
        ["method=meta_tartan"],
        ["+experiment=custom_mt", "method=meta_tartan", "weighting=meta"],
        ["+experiment=custom_mt", "method=meta_tartan", "weighting=end_task_share"],
        ["+experiment=custom", "weighting=uniform"],
        [
            "+experiment=custom_mt",
            "method=meta_tartan",
            "weighting._target_=tartan.core.weighting.fixed.Uniform",
            "~weighting.share",
        ],
    ],
)
def test_what_learns_or_was_asked_for_is_not(options, said):
    assert said(*options) == []


def test_a_program_that_composes_its_config_is_not(said, monkeypatch):
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    assert said.in_a_program("+experiment=custom_mt", "method=meta_tartan") == []
