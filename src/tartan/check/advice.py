"""Recommends a method to begin with, and warns of problems, by the tables in `advice.yaml`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml


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


def recommend(facts: Mapping[str, Any]) -> Recommendation:
    """Return the method of the first decision that applies, with the cautions that apply.

    Args:
        facts: values of the facts that `advice.yaml` names; those without a value have its own.
    """
    values = tables()["facts"] | facts
    frame = pd.DataFrame([values])

    def applies(row: dict[str, str]) -> bool:
        return len(frame.query(row["when"], engine="python")) > 0

    decision = next(row for row in tables()["decisions"] if applies(row))
    method, experiments = decision["method"], tables()["experiments"]
    values["dev_error"] = 100 * math.sqrt(1 / max(1, values["dev"]))
    warnings = [row["text"].format(**values) for row in tables()["cautions"] if applies(row)]
    if values["experiment"] in experiments.values():
        options = [f"+experiment={experiments[method]}"]
    else:
        options = [f"method={method}", *(_auxiliary(values) if method != "finetune" else [])]
    case = (
        f"the case: {decision['case']} (here: {values['train']:,} training, {values['dev']:,} dev, "
        f"{values['domain']:,} domain examples, {values['parameters'] / 1e6:,.0f} million "
        "parameters)"
    )
    return Recommendation(method, options, [decision["because"], case], warnings)


def _auxiliary(facts: Mapping[str, Any]) -> list[str]:
    """Return options for the auxiliary tasks that the command lacks."""
    if not facts["text"]:
        return [] if "domain" in facts["kinds"] else ["auxiliary=other_classes"]
    if facts["domain"]:
        return [] if "task" in facts["kinds"] else ["+auxiliary_task@auxiliary.tapt=mlm_task"]
    return [] if facts["kinds"] == "task" else ["auxiliary=tapt"]
