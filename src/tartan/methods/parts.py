"""Builds the parts of a module from its arguments: tasks with their heads, weighting, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torchmetrics import Metric, classification

from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.seeding import seed_for
from tartan.core.task import Task
from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.data.prepared import Prepared
from tartan.encoders.base import Encoder
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.evaluation.named_metrics import check_higher_is_better, named_metric
from tartan.methods.checks import check_heads, check_sampling, check_weighting
from tartan.methods.nodes import Node, node_of, rebuilt, subclass_of
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
    """The tasks' heads by name; one that tasks share is stored under the first one's name.

    Attributes:
        labels: the end task's label names in index order.
    """

    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parts:
    """What a module is made of, beside its encoder.

    Attributes:
        tasks: the tasks, the end task first where there is one.
        heads: their heads by name.
        weighting: combines the body's gradients.
        meta_head: the meta head; None where the weighting needs none.
        metrics: the end task's metrics; None without an end task.
    """

    tasks: list[Task]
    heads: TaskHeads
    weighting: Weighting
    meta_head: MetaHead | None
    metrics: EndTaskMetrics | None


def objective_node(objective: TaskObjective[Any] | Node) -> dict[str, Any]:
    """Return an objective as a node, of which the same one can be made."""
    node = node_of(objective)
    rebuilt(node, is_objective)
    return node


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


def heads_of(tasks: Sequence[Task], labels: Sequence[str]) -> TaskHeads:
    """Return the tasks' heads by name."""
    first = {id(task.head): task for task in reversed(tasks)}
    heads = TaskHeads({t.name: t.head for t in tasks if first[id(t.head)] is t})
    heads.labels = tuple(labels)
    return heads


def parts_of(
    arguments: Mapping[str, Any],
    objectives: Mapping[str, TaskObjective[Any] | Node],
    heads: Mapping[str, nn.Module],
    encoder: Encoder,
    meta_head: MetaHeadSettings | Mapping[str, Any] | None,
    has_meta_head: bool,
) -> Parts:
    """Return the parts of a module; new heads are drawn from the module's seed and stage.

    Args:
        arguments: the module's arguments, as a checkpoint holds them.
        objectives: the objectives by task, as objects or nodes.
        heads: heads to continue with, by task.
        encoder: the encoder.
        meta_head: settings of the meta head; None for the usual ones.
        has_meta_head: whether the module's class may have one.
    """
    names, labels = list(objectives), arguments["labels"]
    check_heads(heads, labels)
    with torch.random.fork_rng(devices=[]):
        # not torch.manual_seed, which would seed the program's generators of GPUs too
        seed = seed_for(arguments["seed"], arguments["stage"], "heads")
        torch.default_generator.manual_seed(seed)
        tasks = tasks_of(objectives, heads, encoder)
        weighting = weighting_of(arguments["weighting"], names)
        settings = meta_settings_of(meta_head, weighting, has_meta_head)
        fitted = None if settings is None else MetaHead(tasks[0].head, settings)
    check_weighting(weighting)
    check_sampling(weighting, len(names) - (END_TASK in names), arguments["sampled"])
    metrics = None
    if END_TASK in names:
        metrics = metrics_of(arguments["metrics"], arguments["metric"], len(labels))
    return Parts(tasks, heads_of(tasks, labels), weighting, fitted, metrics)


def keep_heads(tasks: Sequence[Task], encoder: Encoder) -> None:
    """Let the encoder keep the heads of pre-trained tasks, from which later tasks start.

    Of several masked-LM heads, an encoder of text keeps the first task's.
    """
    for task in reversed(tasks):
        encoder.keep_head(task.head)


def weighting_of(node: Node, names: Sequence[str], precision: str = "32-true") -> Weighting:
    """Return a new weighting of the tasks `names`, its weights in Lightning's `precision`."""
    with parameters_in(precision):
        weighting: Weighting = rebuilt(node, subclass_of(Weighting), task_names=list(names))
    return weighting


@contextmanager
def parameters_in(precision: str) -> Iterator[None]:
    """Create floating-point tensors in the type in which `precision` keeps parameters.

    Tensors that are created in float32 and converted later are rounded.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if precision == "64-true" else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def meta_settings_of(
    given: MetaHeadSettings | Mapping[str, Any] | None, weighting: Weighting, has_meta_head: bool
) -> MetaHeadSettings | None:
    """Return the settings of the meta head; None where the weighting needs none."""
    kind = type(weighting).__name__
    if not weighting.needs.meta_gradient:
        if given is not None:
            raise UserError(f"weighting {kind} needs no meta-gradient: omit meta_head")
        return None
    if not has_meta_head:
        raise UserError(f"weighting {kind} needs a meta-gradient; use MetaTartan")
    return MetaHeadSettings(**given) if isinstance(given, Mapping) else given or MetaHeadSettings()


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
