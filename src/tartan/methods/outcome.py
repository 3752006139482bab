"""Stores the outcome of a finished stage, so that it is not trained again."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tartan.errors import UserError
from tartan.files import is_whole, remove, write_with_checksum
from tartan.methods.checkpoint_io import load_whole
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


_FOREIGN = (KeyError, TypeError, ValueError, RuntimeError, AttributeError)
"""What reading another version's file may raise."""


def store_outcome(outcome: StageOutcome, folder: Path) -> None:
    """Record in the stage's checkpoint folder that it is finished, with its outcome.

    Resume points are removed, because they are not needed any more.
    """
    entries = {f.name: getattr(outcome, f.name) for f in fields(outcome) if f.name != "module"}
    entries["cost"] = asdict(outcome.cost)
    write_with_checksum(
        folder / OUTCOME, lambda path: path.write_text(json.dumps(entries, indent=1) + "\n")
    )
    for name in ("resume", "slurm"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in folder.glob("best-*.ckpt"):  # best.ckpt is a copy of the best of them
        remove(path)


def stored_outcome(module: TaskMixing, folder: Path) -> StageOutcome | None:
    """Return a finished stage's outcome, its weights in `module`; None if not finished.

    Raises:
        UserError: the weights are damaged, or the outcome is of another version.
    """
    path = folder / OUTCOME
    if not is_whole(path):
        return None
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        entries["evaluations"] = [(step, value) for step, value in entries["evaluations"]]
        entries["cost"] = StageCost(**entries["cost"])
        outcome = StageOutcome(**entries, module=module)
        weights = folder / ("last.ckpt" if outcome.dev is None else "best.ckpt")
        module.load_state_dict(load_whole(weights)["state_dict"])
    except _FOREIGN as error:  # its checksum is right: another version's, or a stranger's
        raise UserError(
            f"{folder} holds no stage of this version ({type(error).__name__}); remove {folder}, "
            "and the same command trains it again"
        ) from error
    return outcome
