"""The recommended method and the options that select it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tartan.check.recommendation import recommend
from tartan.check.table_experiments import EXPERIMENTS
from tests.check.fine import FINE
from tests.conftest import ROOT


def of(**changes):
    return recommend(replace(FINE, **changes))


def test_few_labels_and_domain_text_call_for_meta_tartan_on_both():
    found = of()
    assert found.options == ("method=meta_tartan",)
    assert found.warnings == []
    assert "10,000 texts of the domain" in " ".join(found.reasons)


def test_without_domain_text_the_tasks_own_is_the_auxiliary():
    found = of(domain=0, configured=frozenset())
    assert found.options == ("method=mt_tartan", "auxiliary=tapt")
    assert "no domain text" in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        (
            {"configured": frozenset({"domain"})},
            ["method=meta_tartan", "+auxiliary_task@auxiliary.tapt=mlm_task"],
        ),
        ({"domain": 0, "configured": frozenset({"task"})}, ["method=mt_tartan"]),
        # a corpus that cannot be read is named by the config: it has to go
        (
            {"domain": 0, "configured": frozenset({"task"}), "unusable": True},
            ["method=mt_tartan", "auxiliary=tapt"],
        ),
    ],
)
def test_the_command_is_told_what_it_lacks(changes, options):
    assert list(of(**changes).options) == options


def test_images_have_other_classes_as_the_auxiliary_task():
    images = {"text": False, "masks": False, "cut": {}, "more_pieces": None}
    assert of(**images, configured=frozenset({"domain"})).options == ("method=meta_tartan",)
    found = of(**images, configured=frozenset())
    assert found.options == ("method=meta_tartan", "auxiliary=other_classes")
    assert of(**images, domain=0).method == "finetune"


@pytest.mark.parametrize(
    ("experiment", "changes", "options"),
    [
        ("custom", {}, ("+experiment=custom",)),
        ("custom", {"train": 6000}, ("+experiment=custom_finetune",)),
        ("custom_finetune", {"dev": 20}, ("+experiment=custom_mt",)),
        ("custom_dapt", {}, ("+experiment=custom",)),
        ("custom_aang_static", {}, ("+experiment=custom",)),
        ("scierc_meta", {"train": 6000}, ("method=finetune",)),
    ],
)
def test_on_a_table_of_ones_own_it_names_the_experiment(experiment, changes, options):
    """Options of stages that an experiment brings do not fit another method."""
    assert of(experiment=experiment, **changes).options == options


@pytest.mark.parametrize(
    ("experiment", "is_said"), [("", False), ("custom_dapt", False), ("acl_arc_dapt", True)]
)
def test_another_method_than_the_commands_is_said_first(experiment, is_said):
    warning = of(method="dapt", experiment=experiment, dev=20).warnings[0]
    assert warning.startswith("the command trains method=dapt, not what is recommended")
    assert (f"where +experiment={experiment} sets options" in warning) is is_said


def test_every_experiment_for_tables_of_ones_own_is_known():
    there = {path.stem for path in (ROOT / "conf" / "experiment").glob("custom*.yaml")}
    assert there == set(EXPERIMENTS.values())
