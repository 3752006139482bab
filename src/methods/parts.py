"""Builds the parts of a module from a program's objects or from a checkpoint's plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn
from torchmetrics import Metric

from src.configuration.values import TARGET, without_numpy
from src.core.meta_head import MetaHeadSettings
from src.core.task import Task
from src.core.task_names import END_TASK
from src.core.weighting.base import Weighting
from src.encoders.base import Encoder
from src.errors import UserError
from src.evaluation.metrics import EndTaskMetrics
from src.evaluation.named_metrics import check_higher_is_better, named_metric
from src.methods.plain import Node, node_of, rebuilt, subclass_of
from src.methods.precision import parameters_in
from src.objectives.base import TaskObjective
from src.objectives.own import check_objective, is_objective

S = TypeVar("S")
GivenWeighting = type[Weighting] | partial[Any] | Node
"""A weighting's class, with arguments in a `functools.partial`, or a node of a config."""

METRICS: Mapping[str, Node] = {
    f"{average}_f1": {
        TARGET: "torchmetrics.classification.MulticlassF1Score",
        "average": average,
    }
    for average in ("macro", "micro", "weighted")
}
"""Metrics of every evaluation unless others are given, as in `conf/config.yaml`."""


def settings_of(kind: type[S], given: S | Mapping[str, Any] | None) -> S:
    """Return settings of type `kind`, the usual ones where none were given."""
    return kind(**given) if isinstance(given, Mapping) else given or kind()


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


def heads_of(tasks: Sequence[Task]) -> nn.ModuleDict:
    """Return the tasks' heads by name.

    A head that tasks share is stored once, under the name of the first of them.
    """
    owners = {id(task.head): task for task in reversed(tasks)}
    return nn.ModuleDict({t.name: t.head for t in tasks if owners[id(t.head)] is t})


def keep_heads(tasks: Sequence[Task], encoder: Encoder) -> None:
    """Let the encoder keep the heads of pre-trained tasks, from which later tasks start.

    Of several masked-LM heads, an encoder of text keeps the first task's.
    """
    for task in reversed(tasks):
        encoder.keep_head(task.head)


def weighting_of(node: Node, names: Sequence[str], precision: str = "32-true") -> Weighting:
    """Return a new weighting of the tasks `names`.

    Args:
        node: its class and arguments.
        names: names of the tasks.
        precision: Lightning's name of the precision of its parameters.

    Raises:
        UserError: `node` does not name a weighting, its `__init__` takes no `task_names`, or the
            weighting has parameters.
    """
    try:
        with parameters_in(precision):
            weighting: Weighting = rebuilt(
                node, subclass_of(Weighting), "weighting", task_names=list(names)
            )
    except TypeError as error:
        if "'task_names'" not in str(error):
            raise
        raise UserError(
            f"weighting {node[TARGET]}: its __init__ has to take task_names, a list of names, "
            "and to pass it on: super().__init__(task_names)"
        ) from error
    check_weighting(weighting)
    return weighting


def check_weighting(weighting: object) -> None:
    """Check that an object is a weighting whose state its own steps change.

    Raises:
        UserError: it is not.
    """
    kind = type(weighting).__name__
    if not isinstance(weighting, Weighting):
        raise UserError(f"{kind} is not a subclass of Weighting (src/core/weighting/base.py)")
    for name, _ in weighting.named_parameters():
        raise UserError(
            f"weighting {kind} has a parameter {name!r}, which no optimiser trains; make it a "
            "buffer (register_buffer), and change it in mix(step)"
        )


def check_sampling(
    weighting: Weighting, auxiliaries: int, sampled: int | None, option: str = "sampled"
) -> None:
    """Check that steps can sample as many auxiliary tasks, and that the weighting allows it.

    Args:
        weighting: the weighting of the tasks.
        auxiliaries: number of auxiliary tasks.
        sampled: number of them that a step samples; None for all.
        option: the name of `sampled` in messages.

    Raises:
        UserError: they cannot, or it does not.
    """
    kind = type(weighting).__name__
    if sampled is not None and sampled > auxiliaries:
        raise UserError(
            f"{option}={sampled} is more than the stage's auxiliary tasks, of which "
            f"there are {auxiliaries}"
        )
    if weighting.needs.one_batch and sampled is None:
        raise UserError(
            f"weighting {kind} needs steps that sample auxiliary tasks: set {option}, or use "
            "method=aang or aang_static"
        )
    if sampled is not None:
        _check_per_task(weighting)
    if weighting.needs.every_task and sampled is not None:
        raise UserError(
            f"weighting {kind} follows every task from step to step, but {option}="
            f"{sampled} takes others in each; use another weighting, or {option}=null"
        )


def _check_per_task(weighting: Weighting) -> None:
    """Check that a weighting says which of its buffers have an entry for each task."""
    kind, buffers = type(weighting).__name__, [name for name, _ in weighting.named_buffers()]
    if weighting.per_task is None and buffers and not weighting.needs.every_task:
        raise UserError(
            f"steps that sample tasks need to know which of the buffers of weighting {kind} "
            f"({', '.join(buffers)}) have an entry for each task; name them in the class, "
            f"per_task = ({buffers[0]!r},), or set per_task = () if none has"
        )
    unknown = sorted(set(weighting.per_task or ()) - set(buffers))
    if unknown:
        raise UserError(f"weighting {kind}: per_task names {unknown[0]!r}, which is no buffer")


def meta_settings_of(
    given: MetaHeadSettings | Mapping[str, Any] | None,
    weighting: Weighting,
    tasks: Sequence[str],
    method: str,
    has_meta_head: bool,
) -> MetaHeadSettings | None:
    """Return the settings of the meta head; None where the weighting needs none.

    Args:
        given: the settings, the usual ones if None; or what a checkpoint has of them.
        weighting: the weighting of the tasks.
        tasks: names of the tasks.
        method: name of the module's class, for messages.
        has_meta_head: whether that class may have a meta head.

    Raises:
        UserError: the weighting needs a meta-gradient, and there is no meta head or end task; or it
            needs none, and settings are given.
    """
    kind = type(weighting).__name__
    if not weighting.needs.meta_gradient:
        if isinstance(given, MetaHeadSettings):
            raise UserError(f"weighting {kind} needs no meta-gradient: omit meta_head")
        return None  # earlier versions wrote unused settings into their checkpoints
    learns = f"weighting {kind} learns weights by the meta-gradient of the end task"
    # `on_load_checkpoint` names the class that a checkpoint of another one is of
    if not has_meta_head and not isinstance(given, Mapping):
        raise UserError(f"{learns}, which {method} does not have; use MetaTartan")
    if tasks[0] != END_TASK:
        raise UserError(f"{learns}, which is not among the tasks {', '.join(tasks)}")
    return settings_of(MetaHeadSettings, given)


def beside_the_usual(metrics: Mapping[str, Node | None]) -> dict[str, Node]:
    """Return the usual metrics and further ones; None leaves a usual one out.

    Raises:
        UserError: one is an object, which a checkpoint cannot hold.
    """
    if not isinstance(metrics, Mapping):
        raise UserError(
            "metrics must name each metric, with its class and arguments: "
            '{"mcc": {"_target_": "torchmetrics.classification.MulticlassMatthewsCorrCoef"}}; got '
            f"{metrics!r:.80}"
        )
    every = {**METRICS, **metrics}
    return dict(check_metrics({name: node for name, node in every.items() if node is not None}))


def check_metrics(nodes: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return metrics after checking that each is a node.

    Raises:
        UserError: one is an object, which a checkpoint cannot hold.
    """
    for name, node in nodes.items():
        if not isinstance(node, Mapping) or TARGET not in node:
            raise UserError(
                f"metrics[{name!r}] must be the name of a class, with its arguments: "
                '{"_target_": "torchmetrics.classification.MulticlassMatthewsCorrCoef"}, '
                f"got {type(node).__name__}"
            )
    return nodes


def metrics_of(nodes: Mapping[str, Node], monitor: str, classes: int) -> EndTaskMetrics:
    """Return the end task's metrics, `monitor` among them.

    Raises:
        UserError: a node does not name a metric, or higher values of `monitor` are not better.
    """
    metrics: dict[str, Metric] = {
        name: rebuilt(node, subclass_of(Metric), "metrics", num_classes=classes)
        for name, node in nodes.items()
    }
    if monitor in metrics:
        check_higher_is_better(monitor, metrics[monitor])
    else:
        metrics[monitor] = named_metric(monitor, classes)
    return EndTaskMetrics(metrics, monitor, classes)
