"""Builds a module's tasks and heads from arguments or a checkpoint's plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tartan.core.task import Task
from tartan.core.task_names import END_TASK
from tartan.encoders.base import Encoder
from tartan.errors import UserError
from tartan.methods.plain import Node, node_of, rebuilt
from tartan.objectives.base import TaskObjective, check_objective, is_objective
from tartan.settings import without_numpy


def check_tasks(method: str, names: Sequence[str], labels: Sequence[str]) -> None:
    """Check the names of a module's tasks, and that the end task has labels.

    Raises:
        UserError: there is no task, or the end task has fewer than two labels.
        ValueError: the end task is not the first.
    """
    if END_TASK in names and len(labels) < 2:
        raise UserError(
            f"{method}: labels has {len(labels)} names; give those of the end "
            "task's labels, at least two, e.g. labels=data.prepared.end_task.labels"
        )
    if not names:
        raise UserError(
            f"{method}: tasks is empty; give it an objective by task, the end "
            f"task's first: {{{END_TASK!r}: ...}}"
        )
    if END_TASK in names[1:]:
        raise ValueError("the end task must come first")


def objective_node(name: str, objective: TaskObjective[Any] | Node) -> dict[str, Any]:
    """Return an objective as a checkpoint holds it, after making the objective of it once more.

    Raises:
        UserError: it is no objective, or would come back from a checkpoint as another one.
    """
    if isinstance(objective, Mapping):
        return dict(objective)
    check_objective(objective, f"tasks[{name!r}]")
    node: dict[str, Any] = without_numpy(node_of(objective))
    again = node_of(rebuilt(node, is_objective, "tasks"))
    for field, value in node.items():
        if again[field] != value:
            raise UserError(
                f"tasks[{name!r}]: field `{field}` of {type(objective).__name__} is {value!r}, and "
                f"{again[field]!r} in one that is made with it; a checkpoint would not give the "
                "same objective back"
            )
    return node


def tasks_of(
    given: Mapping[str, TaskObjective[Any] | Node], heads: Mapping[str, nn.Module], encoder: Encoder
) -> list[Task]:
    """Return tasks with their heads; objectives with the same `shared_head` share one.

    Args:
        given: objectives by task.
        heads: heads to continue training, by task; other tasks get new ones.
        encoder: the encoder.

    Raises:
        UserError: an objective cannot be built, or a head has other weights than the task's.
    """
    found: list[Task] = []
    shared: dict[str, nn.Module] = {}
    for name, entry in given.items():
        objective: Any = entry
        if isinstance(entry, Mapping):
            objective = rebuilt(entry, is_objective, "tasks")
        weights = getattr(objective, "class_weights", None)
        if isinstance(weights, str | Mapping):
            raise UserError(
                f"tasks[{name!r}]: class_weights={weights!r} needs the training examples: give "
                "TartanData(class_weights=...), or here a weight for each label in their order"
            )
        key = getattr(objective, "shared_head", None) or name
        if key not in shared:
            shared[key] = (
                _fitting(heads[name], objective, encoder, name)
                if name in heads
                else objective.new_head(encoder)
            )
        found.append(Task(name, objective, shared[key]))
    return found


def _fitting(head: nn.Module, objective: Any, encoder: Encoder, name: str) -> nn.Module:
    """Return a head, after comparing the shapes of its weights with those of a new one."""
    with torch.random.fork_rng(devices=[]):  # a new head of another task is drawn the same
        usual = objective.new_head(encoder)
    shapes = [{n: tuple(v.shape) for n, v in h.state_dict().items()} for h in (head, usual)]
    if shapes[0] != shapes[1]:
        place = next(n for n in {**shapes[0], **shapes[1]} if shapes[0].get(n) != shapes[1].get(n))
        given, wanted = (shape.get(place, "nothing of this name") for shape in shapes)
        raise UserError(
            f"heads[{name!r}] does not fit the task, whose {place} is {wanted}, not {given}; omit "
            "it, and the task gets a new head"
        )
    return head


class TaskHeads(nn.ModuleDict):
    """The tasks' heads by name.

    A head that tasks share is stored once, under the name of the first of them.

    Attributes:
        labels: the end task's label names in index order.
    """

    labels: tuple[str, ...] = ()


def heads_of(tasks: Sequence[Task], labels: Sequence[str]) -> TaskHeads:
    """Return the tasks' heads by name."""
    owners = {id(task.head): task for task in reversed(tasks)}
    heads = TaskHeads({t.name: t.head for t in tasks if owners[id(t.head)] is t})
    heads.labels = tuple(labels)
    return heads


def check_own_parameters(body: nn.Module, heads: TaskHeads) -> None:
    """Check that the body and each head have parameters of their own.

    Their gradients are computed apart, and one would replace the other.

    Raises:
        UserError: a head has a parameter of the body or of another head.
    """
    known = {id(parameter): "the body" for parameter in body.parameters()}
    for name, head in heads.items():
        for parameter in head.parameters():
            owner = known.setdefault(id(parameter), f"the head of task {name}")
            if owner != f"the head of task {name}":
                raise UserError(
                    f"the head of task {name} holds a parameter of {owner}: let losses() read the "
                    "body's from its argument `body`, and tasks share a whole head by shared_head"
                )


def check_head_labels(heads: Mapping[str, nn.Module], labels: Sequence[str]) -> None:
    """Check that a head to continue with has been trained on the same labels.

    Raises:
        UserError: it has others, or in another order.
    """
    trained = heads.labels if isinstance(heads, TaskHeads) and END_TASK in heads else ()
    if trained and labels and trained != tuple(labels):
        raise UserError(
            f"heads are those of a module with the labels {list(trained)}, and the end task has "
            f"{list(labels)}; give those of the auxiliary tasks alone, heads={{NAME: ...}}"
        )


def keep_heads(tasks: Sequence[Task], encoder: Encoder) -> None:
    """Let the encoder keep the heads of pre-trained tasks, from which later tasks start.

    Of several masked-LM heads, an encoder of text keeps the first task's.
    """
    for task in reversed(tasks):
        encoder.keep_head(task.head)
