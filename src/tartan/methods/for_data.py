"""Checks the arguments of `TaskMixing.for_data`, and chooses a module's parts for its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from tartan.core.task_names import END_TASK
from tartan.data.prepared import TEXT, Prepared
from tartan.errors import UserError
from tartan.objectives.base import TaskObjective

if TYPE_CHECKING:
    from tartan.methods.module import TaskMixing


def check_arguments(
    method: type[TaskMixing], lr: float | None, optimisation: object, **others: object
) -> None:
    """Check that the rates are given once, and that each of `others` has an effect if it is given.

    Raises:
        UserError: an argument has no effect, or there is no learning rate.
    """
    if (lr is None) == (optimisation is None):
        raise UserError("give a learning rate, lr=2e-4, or all settings: optimisation=...")
    if others["head_lr"] is not None and optimisation is not None:
        raise UserError("head_lr is part of optimisation=Optimisation(end_head_lr=...)")
    if others["eta"] is not None and others["weighting"] is not None:
        raise UserError("eta is that of the usual weighting; give one of them, eta or weighting")
    auxiliaries = (method.trains_auxiliaries, "trains no auxiliary tasks")
    effects = {
        "head_lr": (method.trains_end_task, "trains no end task's head"),
        "meta_head": (method.has_meta_head, "has no meta head"),
        "weighting": auxiliaries,
        "eta": (method.has_meta_head, "learns no task weights"),
        "tasks": auxiliaries,
    }
    for name, (has_effect, why) in effects.items():
        if others[name] is not None and not has_effect:
            raise UserError(f"{method.__name__} {why}: omit {name}")


def objectives_for(
    method: type[TaskMixing], prepared: Prepared, auxiliaries: Sequence[str] | None
) -> dict[str, TaskObjective[Any]]:
    """Return the objectives that a method trains, by task, the end task's first.

    Args:
        method: the class of the module.
        prepared: the data.
        auxiliaries: names of the auxiliary tasks to train; None for all.

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
    if method.trains_end_task:
        found[END_TASK] = prepared.classification
    if prepared.held_out is not None:
        found[TEXT] = prepared.objective(TEXT)
    elif method.trains_auxiliaries:
        if not names:
            reason = 'the data have none; give them some: auxiliaries={"tapt": "task"}'
            if prepared.auxiliaries:
                reason = f"tasks is empty; the data have {list(prepared.auxiliaries)}"
            raise UserError(f"{method.__name__} trains auxiliary tasks, and {reason}")
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
        "columns": end_task.notes.get("columns"),
    }
