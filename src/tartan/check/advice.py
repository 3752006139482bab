"""Recommends a method to begin with, and warns of problems, by the tables in `advice.yaml`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml


@dataclass(frozen=True)
class Facts:
    """The facts about a run that the tables ask for.

    Attributes:
        text: whether the end task is on text.
        masks: whether the encoder can be trained by masked language modelling.
        parameters: number of parameters of the encoder's body.
        train: number of training examples.
        dev: number of validation examples.
        missing_in_dev: number of labels of train of which dev has no example.
        domain: number of auxiliary texts that are not the task's own, or images of other classes.
        unlabelled: number of the task's texts without a label.
        method: the configured method.
        experiment: the experiment that the command names; empty for none.
        kinds: kinds (`domain`, `task`) of the configured auxiliary tasks, joined.
        rarest_label: the label with the fewest training examples.
        rarest: their number.
        contradicted: share of the training examples whose text has several labels.
        test_in_dev: number of test texts that are in dev too.
        near: share of dev or test that nearly equals a text of train, the larger.
        cut: share of texts that are cut, the largest of all sources.
        cut_source: the source with this share.
        enough: a length at which less than 1 % of its texts are cut.
        longest_read: the longest input that the encoder reads.
        unknown: share of words that the encoder's vocabulary lacks, the largest of all sources.
        more_pieces: pieces per word of train, relative to general English.
        memory: share of the machine's memory that the run takes.
        meta_batch: batch size of META-TARTAN's stage if it fits the meta head on its own batch.
    """

    text: bool
    masks: bool
    parameters: int
    train: int
    dev: int
    missing_in_dev: int
    domain: int
    unlabelled: int
    method: str
    experiment: str = ""
    kinds: str = ""
    rarest_label: str = ""
    rarest: int = 100
    contradicted: float = 0.0
    test_in_dev: int = 0
    near: float = 0.0
    cut: float = 0.0
    cut_source: str = ""
    enough: int = 0
    longest_read: int = 1 << 30
    unknown: float = 0.0
    more_pieces: float = math.nan
    memory: float = 0.0
    meta_batch: int = 0


@dataclass(frozen=True)
class Recommendation:
    """A recommended method: the options that select it, reasons, and warnings in any case."""

    method: str
    options: list[str]
    reasons: list[str]
    warnings: list[str]


@cache
def tables() -> dict[str, Any]:
    """Return the content of `advice.yaml`."""
    content = Path(__file__).with_name("advice.yaml").read_text(encoding="utf-8")
    parsed: dict[str, Any] = yaml.safe_load(content)
    return parsed


def recommend(facts: Facts) -> Recommendation:
    """Return the method of the first decision that applies, with the cautions that apply."""
    frame = pd.DataFrame([asdict(facts)])

    def applies(row: dict[str, str]) -> bool:
        return len(frame.query(row["when"], engine="python")) > 0

    decision = next(row for row in tables()["decisions"] if applies(row))
    method, experiments = decision["method"], tables()["experiments"]
    frame = frame.assign(recommended=facts.method == method)
    values = asdict(facts) | {"dev_error": 100 * math.sqrt(1 / max(1, facts.dev))}
    warnings = [row["text"].format(**values) for row in tables()["cautions"] if applies(row)]
    if facts.experiment in experiments.values():
        options = [f"+experiment={experiments[method]}"]
    else:
        options = [f"method={method}", *(_auxiliary(facts) if method != "finetune" else [])]
    millions = f"{facts.parameters / 1e6:,.0f} million parameters"
    counts = f"{facts.train:,} training, {facts.dev:,} dev, {facts.domain:,} domain"
    case = f"the case: {decision['case']} (here: {counts} examples, {millions})"
    return Recommendation(method, options, [decision["because"], case], warnings)


def _auxiliary(facts: Facts) -> list[str]:
    """Return options for the auxiliary tasks that the command lacks."""
    if not facts.text:
        return [] if "domain" in facts.kinds else ["auxiliary=other_classes"]
    if facts.domain:
        return [] if "task" in facts.kinds else ["+auxiliary_task@auxiliary.tapt=mlm_task"]
    return [] if facts.kinds == "task" else ["auxiliary=tapt"]
