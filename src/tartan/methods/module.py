"""Defines the LightningModule that all methods share, made for data or by its arguments."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.data import AttributeDict
from lightning.pytorch.trainer.states import TrainerFn
from torch import nn
from torchmetrics import MeanMetric

from tartan.core.meta_head import MetaHeadSettings
from tartan.core.seeding import seed_for
from tartan.core.task_names import END_TASK
from tartan.core.weighting.fixed import Uniform
from tartan.data.given import encoder_of
from tartan.data.prepared import TEXT, Prepared
from tartan.data.tartan_data import TartanData
from tartan.data.task_data import TaskData
from tartan.encoders.base import Encoder, describe_encoder, encoder_from_description
from tartan.encoders.safe_loading import check_finite_weights
from tartan.errors import UserError
from tartan.methods import checks, parts
from tartan.methods.best_weights import keep_best
from tartan.methods.checkpoint import check_same_training, data_settings
from tartan.methods.nodes import Node, check_storable, node_of
from tartan.methods.non_finite import StopAtNonFinite
from tartan.methods.optimisation import Optimisation
from tartan.methods.parts import METRICS, GivenWeighting
from tartan.methods.strategy import Agreement
from tartan.methods.training_step import TrainingStep
from tartan.objectives.base import TaskObjective

log = logging.getLogger(__name__)


class TaskMixing(TrainingStep):
    """Trains a shared body on one or several tasks.

    A program makes a module for its data with `MetaTartan.for_data(data, lr=2e-4)`, and from a
    checkpoint with `MetaTartan.load_from_checkpoint(path)`: checkpoints hold all arguments as plain
    values. Arguments that are None are the class's usual ones.

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
            writes for `python -m src.predict`.
        meta_head: settings of the meta head, for weightings that need the meta-gradient.
        inner_products: the type in which inner products of gradients are accumulated.
        heads: heads to continue training, by task; other tasks get new ones. Objectives with the
            same `shared_head` share one.
        sampled: number of auxiliary tasks that each step samples, which share one batch; None
            trains all of them in each step.
    """

    trains_end_task: ClassVar[bool]
    trains_auxiliaries: ClassVar[bool]
    has_meta_head: ClassVar[bool] = False
    usual_weighting: ClassVar[GivenWeighting] = Uniform
    usual_head_lr: ClassVar[float | None] = 1e-3
    """Peak learning rate of the end task's head; None takes the body's."""
    usual_weight_decay: ClassVar[float] = 0.1
    stage_name: ClassVar[str] = "joint"
    logged_options: dict[str, Any]
    """Options that the Trainer's loggers record as hyper-parameters."""

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
        if isinstance(encoder, Mapping):
            description, encoder = dict(encoder), encoder_from_description(encoder)
        else:
            description = describe_encoder(encoder)
        if not isinstance(optimisation, Optimisation):
            optimisation = Optimisation(**(optimisation or {}))
        metrics = METRICS if metrics is None else metrics
        arguments: dict[str, Any] = {
            "tasks": {name: node_of(objective) for name, objective in tasks.items()},
            "weighting": node_of(weighting or self.usual_weighting),
            "optimisation": asdict(optimisation),
            "seed": seed,
            "stage": stage or self.stage_name,
            "labels": list(labels),
            "metric": metric,
            "metrics": {name: node_of(node) for name, node in metrics.items()},
            "max_length": max_length,
            "columns": None if columns is None else dict(columns),
            "inner_products": inner_products,
            "sampled": sampled,
        }
        check_storable(arguments)
        checks.check_tasks(type(self), list(tasks), labels)
        self.optimisation, self.seed, self.stage = optimisation, seed, arguments["stage"]
        self.labels, self.max_length, self.columns = tuple(labels), max_length, columns
        self.inner_products = {"float32": torch.float32, "float64": torch.float64}[inner_products]
        self.encoder, self.body, self.sampled = encoder, encoder.body, sampled
        self._make_parts(arguments, tasks, heads or {}, meta_head)
        self.automatic_optimization = False
        self._begin_alone()
        meta_settings = None if self.meta_head is None else asdict(self.meta_head.settings)
        arguments["meta_head"] = meta_settings
        super().save_hyperparameters({**arguments, "encoder": description})
        # a tokenizer's files are nothing to look at in a logger
        self.logged_options = {**arguments, "encoder": description["name"]}

    def _make_parts(
        self,
        arguments: Mapping[str, Any],
        objectives: Mapping[str, TaskObjective[Any] | Node],
        heads: Mapping[str, nn.Module],
        meta_head: MetaHeadSettings | Mapping[str, Any] | None,
    ) -> None:
        """Make tasks and heads, weighting and meta head, drawn from seed and stage, and metrics."""
        with torch.random.fork_rng(devices=[]):
            # not torch.manual_seed, which would seed the program's generators of GPUs too
            torch.default_generator.manual_seed(seed_for(self.seed, self.stage, "heads"))
            self.tasks = parts.tasks_of(objectives, heads, self.encoder)
            self.heads = parts.TaskHeads(self.tasks, self.labels)
            self.weighting = parts.weighting_of(arguments["weighting"], list(objectives))
            self.meta_head = parts.meta_head_of(meta_head, self.weighting, self.tasks[0].head)
        checks.check_parts(self, heads)
        self.end_task, self.metrics = None, None
        if END_TASK in objectives:
            self.end_task, classes = self.tasks[0], len(self.labels)
            self.metrics = parts.metrics_of(arguments["metrics"], arguments["metric"], classes)
        # NaN stays NaN: by default it is left out, and "disable" ignores the weights as well
        self.evaluation_loss = MeanMetric(nan_strategy=math.nan)
        self.agreement = Agreement()
        self.register_buffer("applied_weights", torch.zeros(len(objectives), dtype=torch.float64))
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64))

    @classmethod
    def for_data(
        cls,
        data: TaskData,
        *,
        lr: float | None = None,
        head_lr: float | None = None,
        optimisation: Optimisation | None = None,
        weighting: GivenWeighting | None = None,
        eta: float | None = None,
        tasks: Sequence[str] | None = None,
        meta_head: MetaHeadSettings | None = None,
        metrics: Mapping[str, Node | None] | None = None,
        **arguments: Any,
    ) -> Self:
        """Return a module for `data`, whose encoder it trains in place.

        Args:
            data: labelled data, auxiliary tasks and encoder.
            lr: peak learning rate of the body and of the auxiliary heads.
            head_lr: peak learning rate of the end task's head.
            optimisation: all settings of the optimiser, instead of `lr` and `head_lr`.
            weighting: see the class.
            eta: learning rate of the task weights' logits, of `MetaTartan` without another
                `weighting` (the paper searches 1e-1, 5e-2, 3e-2 and 1e-2); None takes 5e-2.
            tasks: names of the auxiliary tasks to train; None for all.
            meta_head: see the class.
            metrics: further metrics, beside the F1 scores, by name, as nodes of a config; None
                leaves one of the F1 scores out.
            arguments: `heads`, `stage`, `inner_products` and `sampled`, see the class.
        """
        checks.check_arguments(
            cls, lr=lr, optimisation=optimisation, head_lr=head_lr, weighting=weighting, eta=eta,
            tasks=tasks, meta_head=meta_head,
        )  # fmt: skip
        if optimisation is None and lr is not None:
            usual = lr if cls.usual_head_lr is None else cls.usual_head_lr
            end_head_lr = usual if head_lr is None else head_lr
            optimisation = Optimisation(lr, end_head_lr, cls.usual_weight_decay)
        prepared = data.prepared
        module = cls(
            prepared.encoder,
            {name: prepared.objective(name) for name in cls._task_names(prepared, tasks)},
            weighting if eta is None else {**node_of(cls.usual_weighting), "eta": eta},
            optimisation,
            seed=data.seed,
            metrics={n: m for n, m in {**METRICS, **(metrics or {})}.items() if m is not None},
            meta_head=meta_head,
            **_of_evaluation(prepared),
            **arguments,
        )
        module.train()  # also the body, which an earlier module's eval() may have left otherwise
        return module

    @classmethod
    def _task_names(cls, prepared: Prepared, auxiliaries: Sequence[str] | None) -> list[str]:
        """Return the names of the tasks that the class trains, of `auxiliaries` None all."""
        if prepared.held_out is not None:
            return [TEXT]
        names = [END_TASK] if cls.trains_end_task else []
        if cls.trains_auxiliaries:
            names += prepared.auxiliaries if auxiliaries is None else auxiliaries
        return names

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *args: Any, **kwargs: Any) -> Self:
        """Return the module that a checkpoint holds, a file or an address.

        Lightning would unpickle anything from an address, and build the module with the function
        that the checkpoint names as `_instantiator`; this does neither. Further arguments are those
        of Lightning's own method, or of the class; `encoder` in any form that `TartanData` takes.
        """
        if "encoder" in kwargs and not isinstance(kwargs["encoder"], Mapping):
            kwargs["encoder"] = encoder_of(kwargs["encoder"])
        safely: dict[str, Any] = {**kwargs, "weights_only": True, "_instantiator": None}
        module: Self = super().load_from_checkpoint(checkpoint_path, *args, **safely)
        check_finite_weights(module, Path(str(checkpoint_path)))
        return module

    def save_hyperparameters(self, *args: Any, **kwargs: Any) -> None:
        """Refuse, because a checkpoint would not be loaded with further arguments."""
        raise UserError("a module's arguments are in its checkpoints without save_hyperparameters")

    @property
    def hparams_initial(self) -> AttributeDict:
        """Return what the Trainer's loggers record."""
        return AttributeDict(self.logged_options)

    # Lightning's hooks, in the order in which a training calls them

    def configure_callbacks(self) -> list[pl.Callback]:
        """Check the Trainer's options, and end trainings after numbers that are not finite.

        Where the only checkpoint callback does not say what to keep, as Lightning's own, it keeps
        the best checkpoint on dev instead of the last.
        """
        checks.check_trainer(self.trainer, self)
        if self.monitor is not None and self.trainer.limit_val_batches:
            keep_best(self.trainer, f"dev/{self.monitor.name}", self.monitor.mode)
        # in evaluations it does nothing, but Lightning looks for all callbacks of a checkpoint
        given = any(isinstance(callback, StopAtNonFinite) for callback in self.trainer.callbacks)
        return [] if given else [StopAtNonFinite()]

    def setup(self, stage: str) -> None:
        """Check that the Trainer's data fit the module."""
        data, self.label_places = self.given_data(), None
        if stage == "fit" and data is None:
            raise UserError(
                "training takes the batches of TartanData: trainer.fit(module, datamodule=data)"
            )
        if data is None or stage == "predict":  # which gets texts
            return
        self.label_places = checks.check_data(self, data, trains=stage == "fit")
        if isinstance(data, TartanData):  # a run logs its whole config
            sizes = {"seed": data.seed, **asdict(data.sizes)}
            self.logged_options = {**self.logged_options, "data": sizes}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what a training that goes on has to have in common with this one."""
        checkpoint["progress"] = {
            "processes": self.trainer.world_size,
            "data": data_settings(self.given_data()),
            # of a sharded module, Lightning leaves out what is no tensor of a buffer
            "weighting": self.weighting.state_dict(),
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the module may take over a checkpoint."""
        if self._trainer is None:  # loaded by itself
            parts.keep_heads(self.tasks, self.encoder)  # whose values Lightning loads next
            return
        if checkpoint["hyper_parameters"]["labels"] != list(self.labels):
            raise UserError(f"the checkpoint has other labels than {list(self.labels)}")
        if self.trainer.state.fn == TrainerFn.FITTING:
            check_same_training(checkpoint, self.hparams, self.given_data())
            self.weighting.load_state_dict(checkpoint["progress"]["weighting"])
            before, now = checkpoint["progress"]["processes"], self.trainer.world_size
            if before != now:
                log.warning(
                    "stage %s continues in %s process(es), was in %s", self.stage, now, before
                )


def _of_evaluation(prepared: Prepared) -> dict[str, Any]:
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
