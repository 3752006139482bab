"""Makes the parts of a module: tasks with their heads, weighting, meta head and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torchmetrics import Metric, classification

from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.task import Task
from tartan.core.weighting.base import Weighting
from tartan.encoders.base import Encoder
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics, check_higher_is_better, named_metric
from tartan.methods.nodes import Node, rebuilt, subclass_of
from tartan.objectives.base import TaskObjective, is_objective
from tartan.settings import TARGET

GivenWeighting = type[Weighting] | partial[Any] | Node
"""A weighting's class, with arguments in a `functools.partial`, or a node of a config."""
METRICS: Mapping[str, Node] = {
    f"{average}_f1": {
        TARGET: f"{classification.__name__}.MulticlassF1Score",
        "average": average,
    }
    for average in ("macro", "micro", "weighted")
}
"""Metrics of every evaluation unless others are given, as in `conf/config.yaml`."""


class TaskHeads(nn.ModuleDict):
    """The tasks' heads by name; one that tasks share is stored under the first one's name."""

    def __init__(self, tasks: Sequence[Task], labels: Sequence[str]) -> None:
        first = {id(task.head): task for task in reversed(tasks)}
        super().__init__({t.name: t.head for t in tasks if first[id(t.head)] is t})
        self.labels = tuple(labels)


def tasks_of(
    objectives: Mapping[str, TaskObjective[Any] | Node],
    heads: Mapping[str, nn.Module],
    encoder: Encoder,
) -> list[Task]:
    """Return tasks with their heads; those with the same `shared_head` share one.

    Tasks without one of `heads` get new ones; objectives are objects or nodes.
    """
    tasks: list[Task] = []
    shared: dict[str, nn.Module] = {}
    for name, given in objectives.items():
        objective = rebuilt(given, is_objective) if isinstance(given, Mapping) else given
        key = getattr(objective, "shared_head", None) or name
        if key not in shared and name in heads:
            with torch.random.fork_rng(devices=[]):  # a new head of another task is drawn the same
                objective.new_head(encoder).load_state_dict(heads[name].state_dict())
            shared[key] = heads[name]
        elif key not in shared:
            shared[key] = objective.new_head(encoder)
        tasks.append(Task(name, objective, shared[key]))
    return tasks


def keep_heads(tasks: Sequence[Task], encoder: Encoder) -> None:
    """Let the encoder keep a masked-LM head, the first task's, from which later tasks start."""
    for task in reversed(tasks):
        encoder.keep_head(task.head)


def weighting_of(node: Node, names: Sequence[str], precision: str = "32-true") -> Weighting:
    """Return a new weighting of the tasks `names`, its weights in Lightning's `precision`."""
    with parameters_in(precision):
        weighting: Weighting = rebuilt(node, subclass_of(Weighting), task_names=list(names))
    return weighting


@contextmanager
def parameters_in(precision: str) -> Iterator[None]:
    """Create tensors in the type in which `precision` keeps parameters, not rounded to float32."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if precision == "64-true" else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def meta_head_of(
    settings: MetaHeadSettings | Mapping[str, Any] | None, weighting: Weighting, end_head: nn.Module
) -> MetaHead | None:
    """Return the meta head, if the weighting needs one; `settings` None takes the usual ones."""
    if not weighting.needs.meta_gradient:
        if settings is not None:
            kind = type(weighting).__name__
            raise UserError(f"weighting {kind} needs no meta-gradient: omit meta_head")
        return None
    if not isinstance(settings, MetaHeadSettings):
        settings = MetaHeadSettings(**(settings or {}))
    return MetaHead(end_head, settings)


def metrics_of(nodes: Mapping[str, Node], monitor: str, classes: int) -> EndTaskMetrics:
    """Return the end task's metrics, `monitor` among them."""
    if "loss" in nodes:
        raise UserError("metrics: the mean loss is logged as `loss`; give another name")
    metrics: dict[str, Metric] = {
        name: rebuilt(node, subclass_of(Metric), num_classes=classes)
        for name, node in nodes.items()
    }
    if monitor in metrics:
        check_higher_is_better(monitor, metrics[monitor])
    else:
        metrics[monitor] = named_metric(monitor, classes)
    return EndTaskMetrics(metrics, monitor, classes)
