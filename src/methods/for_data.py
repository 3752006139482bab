"""Chooses the objectives and metrics of a module for given data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from src.core.task_names import END_TASK
from src.data.prepared import TEXT, Prepared
from src.errors import UserError
from src.objectives.base import TaskObjective


def objectives_for(
    prepared: Prepared,
    auxiliaries: Sequence[str] | None,
    *,
    method: str,
    trains_end_task: bool,
    trains_auxiliaries: bool,
) -> dict[str, TaskObjective[Any]]:
    """Return the objectives that a method trains, by task, the end task's first.

    Args:
        prepared: the data.
        auxiliaries: names of the auxiliary tasks to train; None for all.
        method: the method's name, for messages.
        trains_end_task: whether the method trains the end task.
        trains_auxiliaries: whether the method trains auxiliary tasks.

    Raises:
        UserError: an auxiliary task does not exist, or there is none for a method that needs one.
    """
    names = list(prepared.auxiliaries) if auxiliaries is None else list(auxiliaries)
    unknown = sorted(set(names) - set(prepared.auxiliaries))
    if unknown:
        raise UserError(
            f"the data have no auxiliary task {unknown[0]}, only {list(prepared.auxiliaries)}"
        )
    found: dict[str, TaskObjective[Any]] = {}
    if trains_end_task:
        found[END_TASK] = prepared.classification
    if prepared.held_out is not None:
        found[TEXT] = prepared.objective(TEXT)
    elif trains_auxiliaries:
        if not names:
            reason = 'the data have none; give them some: auxiliaries={"tapt": "task"}'
            if prepared.auxiliaries:
                reason = f"tasks is empty; the data have {list(prepared.auxiliaries)}"
            raise UserError(f"{method} trains auxiliary tasks, and {reason}")
        found |= {name: prepared.objective(name) for name in names}
    return found


def check_head_names(heads: Mapping[str, nn.Module], prepared: Prepared) -> None:
    """Check that heads to continue with are those of tasks that the data have.

    Of an earlier module's `heads` some may belong to other tasks.

    Raises:
        UserError: a name is unknown.
    """
    known = {END_TASK, TEXT, *prepared.auxiliaries}
    unknown = [name for name in heads if name not in known]
    if unknown and (not isinstance(heads, nn.ModuleDict) or len(unknown) == len(heads)):
        raise UserError(
            f"heads has {unknown[0]!r}, which is not a task of the data: {sorted(known - {TEXT})}"
        )


def evaluation_of(prepared: Prepared) -> dict[str, Any]:
    """Return a module's arguments about the data and metric of its evaluation."""
    if prepared.held_out is not None:
        return {"held_out": True}
    end_task = prepared.end_task
    return {
        "labels": end_task.labels,
        "metric": end_task.metric,
        "max_length": end_task.max_length,
    }
