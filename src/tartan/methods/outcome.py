"""Stores the outcome of a finished stage, so that it is not trained again."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from tartan.errors import UserError
from tartan.files import write_text_durably
from tartan.methods.checkpoint import load_checkpoint
from tartan.methods.cost import StageCost
from tartan.methods.module import TaskMixing

OUTCOME = "outcome.json"
"""File in the checkpoint folder of a finished stage."""


@dataclass
class StageOutcome:
    """The outcome of a stage.

    Attributes:
        name: the stage's name.
        steps: number of optimiser steps taken.
        best_step: the step whose weights were kept.
        skipped: number of updates that were skipped because a number was not finite.
        cost: the cost of its training.
        task_weights: the final weights by task; empty where one task was trained alone.
        evaluations: `(step, dev metric)`, in order; empty without an evaluation.
        dev: metrics of the kept weights on dev, by name; None without an evaluation.
        module: the module with the kept weights.
    """

    name: str
    steps: int
    best_step: int
    skipped: int
    cost: StageCost
    task_weights: dict[str, float]
    evaluations: list[tuple[int, float]]
    dev: dict[str, float] | None
    module: TaskMixing


def store_outcome(outcome: StageOutcome, folder: Path) -> None:
    """Record in the stage's checkpoint folder that it is finished, with its outcome.

    Resume points are removed, because they are not needed any more.
    """
    entries = {**vars(outcome), "cost": asdict(outcome.cost)}
    del entries["module"]
    write_text_durably(folder / OUTCOME, json.dumps(entries, indent=1) + "\n")
    for name in ("resume", "slurm"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in folder.glob("best-*.ckpt"):  # best.ckpt is a copy of the best of them
        path.unlink()


def stored_outcome(module: TaskMixing, folder: Path) -> StageOutcome | None:
    """Return a finished stage's outcome, its weights in `module`; None if not finished."""
    path = folder / OUTCOME
    if not path.is_file():
        return None
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        entries["evaluations"] = [(step, value) for step, value in entries["evaluations"]]
        entries["cost"] = StageCost(**entries["cost"])
        outcome = StageOutcome(**entries, module=module)
        weights = folder / ("last.ckpt" if outcome.dev is None else "best.ckpt")
        state = load_checkpoint(weights)["state_dict"]
        if any(v.dtype == torch.float64 for n, v in state.items() if n.startswith("body.")):
            module.double()  # as it was when the stage ended; the next stage starts from it
        module.load_state_dict(state)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise UserError(
            f"{folder} holds no stage of this version ({type(error).__name__}); remove {folder}, "
            "and the same command trains it again"
        ) from error
    return outcome
