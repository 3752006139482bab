"""The least that `result.json` may hold."""

from __future__ import annotations

from typing import Any

from tartan.runs.result import SCHEMA, Result

SCORES = {"examples": 4, "metrics": {"macro_f1": 0.5}}
SMALL: dict[str, Any] = {
    "schema": SCHEMA,
    "task": "toy",
    "method": "finetune",
    "encoder": "tiny",
    "seed": 0,
    "metric": "macro_f1",
    "labels": ["A", "B"],
    "auxiliaries": {},
    "train": {"examples": 8},
    "dev": {"whole": SCORES, "unseen": SCORES},
    "stages": [{"name": "finetune", "steps": 3, "measured": {"seconds": 1.5}}],
}


def small_result(**changes: Any) -> Result:
    """`SMALL` with other entries."""
    return Result.model_validate(SMALL | changes, strict=False)
