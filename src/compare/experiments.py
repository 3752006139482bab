"""Experiments of a comparison: a config file a method, which Hydra finds beside `conf/`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from src.compare.budget import METHODS, WITH_END_TASK
from src.run_folder.durable import write_durably


def experiment_of(
    method: str, batch_size: int, steps: Mapping[str, int] | None, evaluations: int
) -> dict[str, Any]:
    """The content of `conf/experiment/compare_METHOD.yaml`.

    Every stage has the same batch size, no early stop, and as many evaluations on dev, so that no
    method has more looks at dev than another.

    Args:
        steps: of each stage; None for as many as `max_steps` says.
    """
    stages: dict[str, dict[str, Any]] = {}
    for stage in METHODS[method]:
        options: dict[str, Any] = {"batch_size": batch_size, "patience": None}
        if steps is not None:
            options |= {"max_steps": steps[stage], "max_epochs": None}
            if stage in WITH_END_TASK:
                options["evaluate_every"] = math.ceil(steps[stage] / evaluations)
        stages[stage] = options
    return {"defaults": [{"override /method": method}], "method": {"stages": stages}}


def write_experiment(folder: Path, name: str, content: Mapping[str, Any]) -> None:
    """Write an experiment where `hydra.searchpath=[file://FOLDER]` finds it."""
    text = "# @package _global_\n# Written by python -m src.compare.\n"
    text += yaml.safe_dump(dict(content), sort_keys=False)
    path = folder / "experiment" / f"{name}.yaml"
    write_durably(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))
