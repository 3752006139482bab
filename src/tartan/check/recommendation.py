"""Recommends a method to begin with, the options that select it, and warnings."""

from __future__ import annotations

from dataclasses import dataclass

from tartan.check.cautions import cautions
from tartan.check.decisions import DECISIONS
from tartan.check.facts import Facts
from tartan.check.table_experiments import EXPERIMENTS, is_for_tables


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
    decision = next(row for row in DECISIONS if row.applies(facts))
    method, reasons = decision.method, [*decision.details(facts), decision.because]
    warnings = list(cautions(facts, method))
    if facts.method != method:
        other = f"the command trains method={facts.method}, not what is recommended"
        warnings.insert(0, other + _beside(facts.experiment))
    if is_for_tables(facts.experiment):
        options = [f"+experiment={EXPERIMENTS[method]}"]
    else:
        options = [f"method={method}"]
        if method != "finetune":
            options += _auxiliary_option(facts)
    return Recommendation(method, tuple(options), reasons, warnings)


def _beside(experiment: str) -> str:
    """Return what to do where the experiment's options may not fit another method."""
    if not experiment or is_for_tables(experiment):
        return ""
    return (
        f"; where +experiment={experiment} sets options of its own method's stages, it refuses "
        "another method=: leave the experiment out, and give its task=, encoder= and auxiliary= "
        "yourself"
    )


def _auxiliary_option(facts: Facts) -> list[str]:
    """Return options for the recommended auxiliary tasks, if the command does not have them."""
    if not facts.text:
        return [] if "domain" in facts.configured else ["auxiliary=other_classes"]
    if facts.domain:
        missing = "+auxiliary_task@auxiliary.tapt=mlm_task"
        return [] if "task" in facts.configured else [missing]
    return [] if facts.configured == {"task"} and not facts.unusable else ["auxiliary=tapt"]
