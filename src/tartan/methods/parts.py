"""Makes a module of its parts, which its checkpoints describe by plain values."""

import dataclasses
import importlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Literal

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric, Metric, classification

from tartan.core.body import SharedBody
from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.seeding import seed_for
from tartan.core.task import Task
from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.core.weighting.fixed import Uniform
from tartan.data.kinds import kind_of
from tartan.data.task_kind import TaskKind
from tartan.encoders.base import Encoder, describe_encoder, encoder_from_description
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics, check_higher_is_better
from tartan.methods.optimisation import Optimisation
from tartan.methods.strategy import Agreement
from tartan.objectives.base import TaskObjective, is_objective
from tartan.settings import TARGET, check, hints_of

Node = Mapping[str, Any]
"""The name of a class in `_target_`, and its arguments."""
_IMPORTED = ("tartan.", "torchmetrics.classification.", "torchmetrics.regression.")
"""Beginnings of what a node may import."""
_LIBRARIES = ("torchmetrics", "transformers", "torch", "lightning", "datasets", "hydra", "pydantic")
"""Packages whose other classes are never parts of a module, though the program imports them."""
GivenWeighting = type[Weighting] | partial[Any] | Node
"""A weighting's class, with arguments in a `functools.partial`, or a node of a config."""
METRICS: Mapping[str, Node] = {
    f"{average}_f1": {TARGET: f"{classification.__name__}.MulticlassF1Score", "average": average}
    for average in ("macro", "micro", "weighted")
}
"""Metrics of every evaluation unless others are given, as in `conf/config.yaml`."""


class TaskModule(pl.LightningModule):
    """A shared body with tasks and their heads, a weighting, a meta head and metrics.

    Arguments that are None are the class's usual ones.

    Args:
        encoder: the shared encoder, whose body `theta` is trained in place; or its description.
        tasks: the tasks' objectives by name, the end task's first where the method trains it.
        weighting: combines the body's gradients: its class, with arguments in a
            `functools.partial`, or a node of a config.
        optimisation: optimiser and schedule.
        seed: seed of every random draw.
        stage: the stage's name, which is part of every random draw's seed.
        labels: the end task's label names in index order.
        metric: the end task's metric by which a checkpoint is chosen.
        metrics: metrics by name, as nodes of a config.
        max_length: maximum length of the end task's texts; None for images [tokens].
        columns: the training table's `text`, `text_pair` and `label`, which `save_pretrained`
            writes for `tartan predict`.
        meta_head: settings of the meta head, for weightings that need the meta-gradient.
        inner_products: the type in which inner products of gradients are accumulated.
        heads: heads to continue training, by task; other tasks get new ones. Objectives with the
            same `shared_head` share one.
        sampled: number of auxiliary tasks that each step samples, which share one batch; None
            trains all of them in each step.

    Attributes:
        tasks: the tasks with their heads, the end task first where it is trained.
        heads: the heads by task; one that tasks share is stored once.
        shared: the body, as steps use it, and the processes that have the rest of each batch.
        skipped: number of steps that were skipped because a number was not finite, a scalar.
        kind: the kind of end task that its objective trains.
        applied_weights: the weights of all tasks in the last step that was not skipped, `(tasks,)`.
        logged_options: options that the Trainer's loggers record as hyper-parameters.
    """

    trains_end_task: ClassVar[bool]
    trains_auxiliaries: ClassVar[bool]
    has_meta_head: ClassVar[bool] = False
    usual_weighting: ClassVar[GivenWeighting] = Uniform
    usual_head_lr: ClassVar[float | None] = 1e-3
    """Peak learning rate of the end task's head; None takes the body's."""
    usual_weight_decay: ClassVar[float] = 0.1
    stage_name: ClassVar[str] = "joint"
    kind: TaskKind = TaskKind()
    skipped: Tensor
    applied_weights: Tensor

    def __init__(
        self,
        encoder: Encoder | Mapping[str, Any],
        tasks: Mapping[str, TaskObjective[Any] | Node],
        weighting: GivenWeighting | None = None,
        optimisation: Optimisation | Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        stage: str | None = None,
        labels: Sequence[str] = (),
        metric: str = "macro_f1",
        metrics: Mapping[str, Node] | None = None,
        max_length: int | None = None,
        columns: Mapping[str, str | None] | None = None,
        meta_head: MetaHeadSettings | Mapping[str, Any] | None = None,
        inner_products: Literal["float32", "float64"] = "float32",
        heads: Mapping[str, nn.Module] | None = None,
        sampled: int | None = None,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        if isinstance(encoder, Mapping):
            description, encoder = dict(encoder), encoder_from_description(encoder)
        else:
            description = describe_encoder(encoder)
        if not isinstance(optimisation, Optimisation):
            optimisation = Optimisation(**(optimisation or {}))
        self.encoder, self.body, self.optimisation = encoder, encoder.body, optimisation
        self.seed, self.stage, self.sampled = seed, stage or self.stage_name, sampled
        self.labels, self.max_length, self.columns = tuple(labels), max_length, columns
        metrics = METRICS if metrics is None else metrics
        arguments: dict[str, Any] = {
            "tasks": {name: node_of(objective) for name, objective in tasks.items()},
            "weighting": node_of(weighting or type(self).usual_weighting),
            "optimisation": asdict(optimisation),
            "seed": seed,
            "stage": self.stage,
            "labels": list(labels),
            "metric": metric,
            "metrics": {name: node_of(node) for name, node in metrics.items()},
            "max_length": max_length,
            "columns": None if columns is None else dict(columns),
            "inner_products": inner_products,
            "sampled": sampled,
        }
        try:
            json.dumps(arguments)
        except TypeError as error:
            raise UserError(f"an argument cannot be stored in a checkpoint: {error}") from error
        self._make_parts(arguments, tasks, heads or {}, meta_head)
        self.shared = SharedBody(self.body, getattr(torch, inner_products))
        self.agreement = Agreement()
        # NaN stays NaN: by default it is left out, and "disable" ignores the weights as well
        self.evaluation_loss = MeanMetric(nan_strategy=math.nan)
        self.register_buffer("applied_weights", torch.zeros(len(tasks), dtype=torch.float64))
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64))
        arguments["meta_head"] = None if self.meta_head is None else asdict(self.meta_head.settings)
        self.save_hyperparameters({**arguments, "encoder": description})
        # a tokenizer's files are nothing to look at in a logger
        self.logged_options: dict[str, Any] = {**arguments, "encoder": description["name"]}

    def _make_parts(
        self,
        arguments: Mapping[str, Any],
        objectives: Mapping[str, TaskObjective[Any] | Node],
        heads: Mapping[str, nn.Module],
        meta_head: MetaHeadSettings | Mapping[str, Any] | None,
    ) -> None:
        """Make tasks and heads, weighting and meta head, drawn from seed and stage, and metrics."""
        names, trains = list(objectives), (self.trains_end_task, self.trains_auxiliaries)
        if not names or trains != (names[0] == END_TASK, set(names) != {END_TASK}):
            ours = ", ".join(names) or "no task"
            raise UserError(f"{type(self).__name__} does not train {ours}, in this order")
        with torch.random.fork_rng(devices=[]):
            # not torch.manual_seed, which would seed the program's generators of GPUs too
            torch.default_generator.manual_seed(seed_for(self.seed, self.stage, "heads"))
            self.tasks = tasks_of(objectives, heads, self.encoder)
            first = {task.head: task.name for task in reversed(self.tasks)}
            # one that tasks share is stored under the first one's name
            self.heads = nn.ModuleDict(
                {t.name: t.head for t in self.tasks if first[t.head] == t.name}
            )
            self.weighting = weighting_of(arguments["weighting"], names)
            auxiliaries = len(names) - (END_TASK in names)
            check_weighting(self.weighting, type(self), auxiliaries, self.sampled)
            self.meta_head: MetaHead | None = None
            if self.weighting.needs.meta_gradient:
                if not isinstance(meta_head, MetaHeadSettings):
                    meta_head = MetaHeadSettings(**(meta_head or {}))
                self.meta_head = MetaHead(self.tasks[0].head, meta_head)
            elif meta_head is not None:
                kind = type(self.weighting).__name__
                raise UserError(f"weighting {kind} needs no meta-gradient: omit meta_head")
        owners = dict.fromkeys(self.body.parameters(), "the body")
        for name, head in self.heads.items():
            for parameter in head.parameters():
                owner = owners.setdefault(parameter, name)
                if owner != name:  # one of the two gradients would be lost
                    raise UserError(
                        f"the head of task {name} holds a parameter of {owner}: let losses() read "
                        "the body's from its argument `body`, and tasks share a whole head by "
                        "shared_head"
                    )
        self.end_task: Task | None = None
        self.metrics: EndTaskMetrics | None = None
        if END_TASK in names:
            self.end_task, classes = self.tasks[0], len(self.labels)
            self.kind = kind_of(self.end_task.objective)
            if classes < self.kind.least_labels:
                raise UserError(f"the end task needs at least two labels, got {list(self.labels)}")
            nodes, monitor = arguments["metrics"], arguments["metric"]
            self.metrics = metrics_of(nodes, monitor, classes, self.kind)


def check_weighting(
    weighting: Weighting, module: Any, auxiliaries: int, sampled: int | None
) -> None:
    """Check that a module's class and steps, sampled or not, are what a weighting needs."""
    kind = type(weighting).__name__
    for name, _ in weighting.named_parameters():
        raise UserError(
            f"weighting {kind} has a parameter {name!r}, which no optimiser trains; make it a "
            "buffer, and change it in mix(step)"
        )
    if weighting.needs.meta_gradient and not module.has_meta_head:
        raise UserError(f"weighting {kind} needs the meta-gradient; use MetaTartan")
    if weighting.needs.one_batch != (sampled is not None):
        needed = "all" if sampled else "sampled=N of the"
        raise UserError(f"weighting {kind} needs steps with {needed} auxiliary tasks")
    if sampled is not None and sampled > auxiliaries:
        raise UserError(f"sampled={sampled} of {auxiliaries} auxiliary tasks cannot be sampled")


def tasks_of(
    objectives: Mapping[str, TaskObjective[Any] | Node],
    heads: Mapping[str, nn.Module],
    encoder: Encoder,
) -> list[Task]:
    """Return tasks with `heads` or new ones; those with the same `shared_head` share one."""
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


def weighting_of(node: Node, names: Sequence[str]) -> Weighting:
    """Return a new weighting of the tasks `names`."""
    weighting: Weighting = rebuilt(
        node, lambda kind: issubclass(kind, Weighting), task_names=list(names)
    )
    return weighting


def metrics_of(
    nodes: Mapping[str, Node], monitor: str, classes: int, kind: TaskKind
) -> EndTaskMetrics:
    """Return the end task's metrics, `monitor` among them."""
    if "loss" in nodes:
        raise UserError("metrics: the mean loss is logged as `loss`; give another name")
    metrics: dict[str, Metric] = {
        name: rebuilt(node, lambda found: issubclass(found, Metric), **kind.sizes(classes))
        for name, node in kind.metrics(nodes).items()
    }
    if monitor in metrics:
        check_higher_is_better(monitor, metrics[monitor])
    else:
        metrics[monitor] = kind.named[monitor](**kind.sizes(classes))
    return kind.evaluator(metrics, monitor, classes)


def node_of(thing: object) -> dict[str, Any]:
    """Return the node of a dataclass's instance; of a class, perhaps in a `partial`; or a node."""
    if isinstance(thing, Mapping):
        return dict(thing)
    if isinstance(thing, partial) and isinstance(thing.func, type) and not thing.args:
        return {**node_of(thing.func), **thing.keywords}
    if isinstance(thing, type):
        return {TARGET: f"{thing.__module__}.{thing.__qualname__}"}
    if not dataclasses.is_dataclass(thing):
        raise UserError(
            f"{thing!r} cannot be stored in a checkpoint; give its class, or "
            "functools.partial(CLASS, NAME=VALUE, ...)"
        )
    fields = [field.name for field in dataclasses.fields(thing) if field.init]
    values = {name: getattr(thing, name) for name in fields}
    nested = {n: node_of(v) for n, v in values.items() if dataclasses.is_dataclass(v)}
    return {**node_of(type(thing)), **values, **nested}


def rebuilt(node: Node, is_kind: Callable[[type], bool], **arguments: Any) -> Any:
    """Return the object that a node describes, of a class for which `is_kind`, with `arguments`.

    Checkpoints, which hold nodes, are not trusted: the class is one of this project, of
    torchmetrics' classification metrics, or of a module that the program has imported itself, and
    nothing else is called. Nodes within a node become dataclasses based on this project's, or on
    those of the node's own package.
    """
    target = str(node.get(TARGET))
    kind = _class_of(target)
    if kind is None or not is_kind(kind):
        raise UserError(
            f"{target} is not a class that can stand here; if it is one of your own, import the "
            "module that defines it first"
        )
    packages = {"tartan", kind.__module__.partition(".")[0]}

    def is_field(nested: type) -> bool:
        bases = {base.__module__.partition(".")[0] for base in nested.__mro__}
        return dataclasses.is_dataclass(nested) and bool(packages & bases)

    hints = hints_of(kind) if target.startswith("tartan.") else {}
    values = {}
    for name, value in node.items():
        if isinstance(value, Mapping) and TARGET in value:
            values[name] = rebuilt(value, is_field)
        elif name != TARGET:
            values[name] = check(value, hints.get(name, Any), name)
    return kind(**values, **arguments)


def _class_of(target: str) -> type | None:
    folder, _, name = target.rpartition(".")
    module = None
    if target.startswith(_IMPORTED):
        module = importlib.import_module(folder)
    elif target.partition(".")[0] not in _LIBRARIES:
        module = sys.modules.get(folder)
    kind = getattr(module, name, None)
    return kind if isinstance(kind, type) else None
