"""Recommends a method to begin with, the options that select it, and warnings."""

from __future__ import annotations

from dataclasses import dataclass

from src.check.cautions import cautions
from src.check.decisions import decide
from src.check.facts import Facts

_EXPERIMENTS = {
    "finetune": "custom_finetune",
    "tapt": "custom_tapt",
    "mt_tartan": "custom_mt",
    "meta_tartan": "custom",
}
"""The experiment for tables of your own of each method; its stages' options fit that method."""
_FOR_TABLES = {*_EXPERIMENTS.values(), "custom_aang", "custom_aang_static", "custom_dapt"}


@dataclass(frozen=True)
class Recommendation:
    """A recommended method, with reasons and cautions.

    Attributes:
        method: its name in `conf/method`.
        options: the options that select it on the command line.
        reasons: why it is recommended, most important first.
        warnings: problems to look out for, whatever the method.
    """

    method: str
    options: tuple[str, ...]
    reasons: list[str]
    warnings: list[str]


def recommend(facts: Facts) -> Recommendation:
    """Return the decision table's method for a task, with warnings."""
    decision = decide(facts)
    method, reasons = decision.method, [*decision.details(facts), decision.because]
    warnings = list(cautions(facts, method))
    if facts.method != method:
        other = f"the command trains method={facts.method}, not what is recommended"
        warnings.insert(0, other + _beside(facts.experiment))
    if facts.experiment in _FOR_TABLES:
        options = [f"+experiment={_EXPERIMENTS[method]}"]
    else:
        options = [f"method={method}"]
        if method != "finetune":
            options += _auxiliary_option(facts)
    return Recommendation(method, tuple(options), reasons, warnings)


def _beside(experiment: str) -> str:
    """Return what to do where the experiment's options may not fit another method."""
    if not experiment or experiment in _FOR_TABLES:
        return ""
    return (
        f"; if +experiment={experiment} has options of its method's stages, another method= is an "
        "error beside it: give the experiment's other options in its place"
    )


def _auxiliary_option(facts: Facts) -> list[str]:
    """Return options for the recommended auxiliary tasks, if the command does not have them."""
    if not facts.text:
        return [] if "domain" in facts.configured else ["auxiliary=other_classes"]
    if facts.domain:
        missing = "+auxiliary_task@auxiliary.tapt=mlm_task"
        return [] if "task" in facts.configured else [missing]
    return [] if facts.configured == {"task"} and not facts.unusable else ["auxiliary=tapt"]
