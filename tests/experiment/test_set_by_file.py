"""An option that does not exist, and that a file sets, is named with how to drop it."""

from __future__ import annotations

import pytest
from hydra.core.hydra_config import HydraConfig

from tartan.errors import UserError
from tartan.experiment.prepare import enabled_stages
from tests.in_process import config_of, given_on_command_line

DROP = "take it out of the file, or add '~weighting.eta'"
ETA = "weighting:\n  eta: 0.1\n"
SET = "there is no option weighting.eta, which a file sets (experiment=reviews), with "


@pytest.fixture
def composed(tmp_path, monkeypatch):
    """The config of an experiment of one's own, by the rest of its file and by options."""

    def call(content, *options):
        folder = tmp_path / "experiment"
        folder.mkdir(exist_ok=True)
        head = "# @package _global_\ndefaults:\n  - "
        (folder / "reviews.yaml").write_text(f"{head}custom\n{content}")
        (folder / "child.yaml").write_text(f"{head}reviews\n")
        given = [f"hydra.searchpath=[file://{tmp_path}]", "task.train=labels.csv", *options]
        given_on_command_line(given, monkeypatch)
        return config_of(given)

    return call


def error_of(config) -> str:
    with pytest.raises(UserError) as caught:
        enabled_stages(config)
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        (["weighting=uniform"], "weighting=uniform"),
        (["weighting=end_task_share"], "weighting=end_task_share; there is only share"),
        (["weighting=static"], "weighting=static; there is only values"),
    ],
)
def test_the_experiment_and_the_choice_it_does_not_fit_are_named(options, listed, composed):
    assert error_of(composed(ETA, "+experiment=reviews", *options)) == f"{SET}{listed}; {DROP}"
    assert enabled_stages(
        composed(ETA, "+experiment=reviews", "weighting=uniform", "~weighting.eta")
    )


def test_a_file_that_is_not_known_is_not_named(composed):
    assert error_of(composed(ETA, "+experiment=child", "weighting=uniform")) == (
        "there is no option weighting.eta, which a file sets, with weighting=uniform; take it "
        "out of the file, or add '~weighting.eta'"
    )


def test_what_resembles_an_option_is_mended_in_the_file(composed):
    assert error_of(composed(ETA.replace("eta", "etaa"), "+experiment=reviews")) == (
        "there is no option weighting.etaa, which a file sets (experiment=reviews); did you mean "
        "weighting.eta?"
    )


def test_an_option_of_a_stage_is_named_with_the_stage(composed):
    stage = "method:\n  stages:\n    joint:\n      bogus: 1\n"
    message = error_of(composed(stage, "+experiment=reviews"))
    start = "there is no option method.stages.joint.bogus, which a file sets (experiment=reviews)"
    assert message.startswith(f"{start}, with stage@method.stages.joint=meta_joint; there are ")
    assert message.endswith(", or add '~method.stages.joint.bogus'")


@pytest.mark.parametrize(
    "typed",
    ["+weighting.bogus=1", "++weighting.bogus=1", "+weighting={bogus:1}", "+weighting.bogus.x=1"],
)
def test_what_is_typed_is_not_a_files(typed, composed):
    message = error_of(composed("", "+experiment=reviews", "weighting=uniform", typed))
    assert message == "there is no option weighting.bogus; leave it out"


def test_in_a_program_nobody_knows_what_was_typed(composed, monkeypatch):
    config = composed(ETA, "+experiment=reviews", "weighting=end_task_share")
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    assert error_of(config) == "there is no option weighting.eta; there is only share"
