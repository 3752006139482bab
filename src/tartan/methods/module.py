"""Defines the LightningModule that all methods share, made for given data or by its arguments."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, ClassVar, Self

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.data import AttributeDict
from lightning.pytorch.callbacks import StochasticWeightAveraging
from lightning.pytorch.trainer.states import TrainerFn
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from tartan.core.body import SharedBody
from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.seeding import seed_for
from tartan.core.task_names import END_TASK
from tartan.core.weighting.fixed import Uniform
from tartan.data.tartan_data import TartanData
from tartan.data.task_data import TaskData
from tartan.encoders.base import Encoder
from tartan.encoders.description import describe_encoder, encoder_from_description
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels
from tartan.methods.applied_weights import AppliedWeights
from tartan.methods.checkpoint import Checkpointed, ShownArguments
from tartan.methods.data_check import check_data
from tartan.methods.for_data import check_arguments, check_head_names, evaluation_of, objectives_for
from tartan.methods.given_metrics import METRICS, beside_the_usual, check_metrics, metrics_of
from tartan.methods.given_tasks import (
    check_head_labels,
    check_own_parameters,
    check_tasks,
    heads_of,
    objective_node,
    tasks_of,
)
from tartan.methods.given_weighting import (
    GivenWeighting,
    check_sampling,
    meta_settings_of,
    weighting_of,
)
from tartan.methods.monitored import check_monitored
from tartan.methods.non_finite import StopAtNonFinite
from tartan.methods.optimisation import Optimisation, check_schedule, set_rates
from tartan.methods.plain import Node, node_of, settings_of
from tartan.methods.replicas import ReplicatedBody
from tartan.methods.same_settings import data_settings
from tartan.methods.shards import ShardedBody, is_sharded, shard
from tartan.methods.stage import InnerProducts
from tartan.methods.strategy import ShardStrategy
from tartan.methods.subclass_hooks import remarks_on_hooks
from tartan.methods.trainer_options import check_trainer, keep_best, planned_steps
from tartan.objectives.base import TaskObjective
from tartan.settings import Count, Length, Natural, NonNegative, checked, without_numpy

log = logging.getLogger(__name__)
_TRAINED = ("body.", "heads.")
"""Beginnings of the names of parameters that an optimiser can hold."""


class TaskMixing(Checkpointed):
    """Trains a shared body on one or several tasks.

    A program makes a module for its data with `MetaTartan.for_data(data, lr=2e-4)`, and from a
    checkpoint with `MetaTartan.load_from_checkpoint(path)`: checkpoints hold all arguments as plain
    values.

    Args:
        encoder: the shared encoder, whose body `theta` is trained in place; or its description.
        tasks: the tasks' objectives by name, the end task's first where the method trains it.
        weighting: combines the body's gradients: its class, with arguments in a
            `functools.partial`, or a node of a config; None takes the class's usual one.
        optimisation: optimiser and schedule.
        seed: seed of every random draw.
        stage: the stage's name, which is part of every random draw's seed; None takes the class's
            own.
        labels: the end task's label names in index order.
        metric: the end task's metric by which a checkpoint is chosen.
        metrics: metrics by name, as nodes of a config; None takes the usual ones.
        max_length: maximum length of the end task's texts; None where inputs are not texts
            [tokens].
        columns: the training table's `text`, `text_pair` and `label`, which `save_pretrained`
            writes for `python -m src.predict`; None where they have no names.
        meta_head: settings of the meta head, for weightings that need the meta-gradient; None takes
            the usual ones there.
        inner_products: `float32` or `float64`, the type in which inner products of gradients are
            accumulated.
        heads: heads to continue training, by task; other tasks get new ones. Objectives with the
            same `shared_head` share one.
        sampled: number of auxiliary tasks that each step samples, which share one batch; None
            trains all of them in each step [tasks].

    Raises:
        UserError: an argument cannot be stored in a checkpoint, or was damaged in one; there is no
            task; the weighting needs a meta-gradient, and the method has none; or it needs none,
            and settings of a meta head are given.
    """

    trains_end_task: ClassVar[bool]
    trains_auxiliaries: ClassVar[bool]
    has_meta_head: ClassVar[bool] = False
    usual_weighting: ClassVar[GivenWeighting] = Uniform
    stage_name: ClassVar[str] = "joint"
    steps_before: int = -1
    """Optimiser steps before the current batch; -1 before the training."""
    logged_options: dict[str, Any]
    """Options that the Trainer's loggers record as hyper-parameters."""

    @checked
    def __init__(
        self,
        encoder: Encoder | Mapping[str, Any],
        tasks: Mapping[str, TaskObjective[Any] | Node],
        weighting: GivenWeighting | None = None,
        optimisation: Optimisation | Mapping[str, Any] | None = None,
        *,
        seed: Natural = 0,
        stage: str | None = None,
        labels: Sequence[str] = (),
        metric: str = "macro_f1",
        metrics: Mapping[str, Node] | None = None,
        max_length: Length | None = None,
        columns: Mapping[str, str | None] | None = None,
        meta_head: MetaHeadSettings | Mapping[str, Any] | None = None,
        inner_products: InnerProducts = "float32",
        heads: Mapping[str, nn.Module] | None = None,
        sampled: Count | None = None,
    ) -> None:
        names, stage = list(tasks), stage or self.stage_name
        check_tasks(type(self).__name__, names, labels)
        check_head_labels(heads or {}, labels)
        if isinstance(encoder, Mapping):
            description, whole = dict(encoder), encoder_from_description(encoder)
        else:
            description, whole = describe_encoder(encoder), encoder
        settings = settings_of(Optimisation, optimisation)
        weighting_node = node_of(type(self).usual_weighting if weighting is None else weighting)
        evaluated_by = METRICS if metrics is None else check_metrics(metrics)
        # a checkpoint holds no numbers of NumPy
        arguments: dict[str, Any] = without_numpy(
            {
                "encoder": description,
                "tasks": {name: objective_node(name, given) for name, given in tasks.items()},
                "weighting": weighting_node,
                "optimisation": asdict(settings),
                "seed": seed,
                "stage": stage,
                "labels": list(labels),
                "metric": metric,
                "metrics": {name: dict(node) for name, node in evaluated_by.items()},
                "max_length": max_length,
                "columns": None if columns is None else dict(columns),
                "inner_products": inner_products,
                "sampled": sampled,
            }
        )
        with torch.random.fork_rng(devices=[]):
            # not torch.manual_seed, which would seed the program's generators of GPUs too
            torch.default_generator.manual_seed(seed_for(seed, stage, "heads"))
            made = tasks_of(tasks, heads or {}, whole)
            mixing = weighting_of(weighting_node, names)
            check_sampling(mixing, len(names) - (END_TASK in names), sampled)
            meta_settings = meta_settings_of(
                meta_head, mixing, names, type(self).__name__, self.has_meta_head
            )
            fitted = None if meta_settings is None else MetaHead(made[0].head, meta_settings)
        arguments["meta_head"] = None if meta_settings is None else asdict(meta_settings)
        end_task = made[0] if made[0].name == END_TASK else None
        scores = None if end_task is None else metrics_of(evaluated_by, metric, len(labels))
        super().__init__(whole, end_task, scores, labels, max_length, columns)
        self.automatic_optimization = False
        self.tasks, self.heads = made, heads_of(made, labels)
        check_own_parameters(self.body, self.heads)
        self.weighting, self.meta_head, self.optimisation = mixing, fitted, settings
        self.seed, self.stage, self.sampled = seed, stage, sampled
        self.inner_products = getattr(torch, inner_products)
        self.applied = AppliedWeights(names)
        self.doing = self.last_record = self.last_finite = None
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64), persistent=False)
        self._begin_alone()
        for remark in remarks_on_hooks(type(self)):
            log.warning(remark)
        super().save_hyperparameters(arguments)
        self._hparams: Any = ShownArguments(self.hparams)
        # a tokenizer's files are nothing to look at in a logger
        self.logged_options = arguments | {"encoder": arguments["encoder"].get("name")}

    @classmethod
    @checked
    def for_data(
        cls,
        data: TaskData,
        *,
        lr: NonNegative | None = None,
        head_lr: NonNegative | None = None,
        optimisation: Optimisation | None = None,
        weighting: GivenWeighting | None = None,
        eta: float | None = None,
        tasks: Sequence[str] | None = None,
        heads: Mapping[str, nn.Module] | None = None,
        meta_head: MetaHeadSettings | None = None,
        stage: str | None = None,
        metrics: Mapping[str, Node | None] | None = None,
        inner_products: InnerProducts = "float32",
        sampled: Count | None = None,
    ) -> Self:
        """Return a module for `data`, whose encoder it trains in place.

        New heads are initialised with the data's seed. Arguments not named here are the class's.

        Args:
            data: labelled data, auxiliary tasks and encoder.
            lr: peak learning rate of the body and of the auxiliary heads.
            head_lr: peak learning rate of the end task's head; None takes the method's usual one.
            optimisation: all settings of the optimiser, instead of `lr` and `head_lr`.
            eta: learning rate of the task weights' logits, of `MetaTartan` without another
                `weighting` (the paper searches 1e-1, 5e-2, 3e-2 and 1e-2); None takes 5e-2.
            tasks: names of the auxiliary tasks to train; None for all.
            heads: pass an earlier module's `heads` to continue with them, of which those of other
                tasks are left out.
            metrics: further metrics, beside the F1 scores, by name, as nodes of a config; None
                leaves one of the F1 scores out.

        Raises:
            UserError: the data cannot be read, or do not fit the method; or an argument has no
                effect.
        """
        cls.check_trains()
        if not isinstance(data, TaskData):
            raise UserError(
                f"{cls.__name__}.for_data takes a TartanData, got {type(data).__name__}; give it "
                "TartanData(train, dev, ...)"
            )
        check_arguments(
            cls, lr, optimisation,
            head_lr=head_lr, meta_head=meta_head, weighting=weighting, eta=eta, tasks=tasks,
        )  # fmt: skip
        prepared = data.prepared
        check_head_names(heads or {}, prepared)
        module = cls(
            prepared.encoder,
            objectives_for(cls, prepared, tasks),
            weighting if eta is None else {**node_of(cls.usual_weighting), "eta": eta},
            optimisation if lr is None else cls._usual(lr, head_lr),
            seed=data.seed,
            stage=stage,
            metrics=beside_the_usual(metrics or {}),
            meta_head=meta_head,
            inner_products=inner_products,
            heads=heads,
            sampled=sampled,
            **evaluation_of(prepared),
        )
        module.train()  # also the body, which an earlier module's eval() may have left otherwise
        return module

    @classmethod
    def check_trains(cls) -> None:
        """Check that the class says what it trains.

        Raises:
            UserError: it does not, or trains nothing.
        """
        own = [getattr(cls, name, None) for name in ("trains_end_task", "trains_auxiliaries")]
        if None in own or not any(own):
            raise UserError(
                f"{cls.__name__} does not say what it trains; set trains_end_task and "
                "trains_auxiliaries in the class, one of them to True"
            )

    @classmethod
    def _usual(cls, lr: float, head_lr: float | None) -> Optimisation:
        """Return the method's usual settings (`conf/stage/`) with these learning rates."""
        return Optimisation(body_lr=lr, end_head_lr=1e-3 if head_lr is None else head_lr)

    def double(self) -> Self:
        """Convert parameters and buffers to float64.

        A weighting's weights that still have their initial values, for instance 1/3, are
        initialised anew in float64: those in float32 are rounded.
        """
        node, names = self.hparams["weighting"], [task.name for task in self.tasks]
        # Lightning calls this where new tensors are on a GPU, and the module is not there yet
        start = {name: v.cpu() for name, v in weighting_of(node, names).state_dict().items()}
        now = self.weighting.state_dict().items()
        untouched = all(v.cpu().equal(start[name]) for name, v in now)
        super().double()
        if untouched:
            self.weighting.load_state_dict(weighting_of(node, names, "64-true").state_dict())
        return self

    @property
    def hparams_initial(self) -> AttributeDict:
        """Return what the Trainer's loggers record (see `LightningModule.hparams_initial`)."""
        return AttributeDict(self.logged_options)

    def save_hyperparameters(self, *args: Any, **kwargs: Any) -> None:
        """Refuse, because a checkpoint would not be loaded with further arguments.

        Raises:
            UserError: always.
        """
        raise UserError(
            "save_hyperparameters: the arguments of a module are in its checkpoints already; "
            "options of a subclass are attributes of the class (docs/lightning.md)"
        )

    def configure_callbacks(self) -> list[pl.Callback]:
        """Check the Trainer's options, and return callbacks that every training needs.

        These end the training after numbers that are not finite. Where the only checkpoint
        callback does not say what to keep, as Lightning's own, it keeps the best checkpoint on dev
        instead of the last.

        Raises:
            UserError: the Trainer has an option that does not work here; the message names it and
                what to use instead.
        """
        if getattr(self, "_compiler_ctx", None) is not None:
            raise UserError(
                "torch.compile(module) does not work with manual optimisation; compile the body in "
                'place: module.body.compile(), with TartanData(..., sizes={"packed": False})'
            )
        check_trainer(self.trainer)
        keep_best(self.trainer, self.monitor)
        if self.trainer.state.fn == TrainerFn.FITTING:
            check_monitored(self.trainer, self)
        # in evaluations it does nothing, but Lightning looks for all callbacks of a checkpoint
        given = any(isinstance(callback, StopAtNonFinite) for callback in self.trainer.callbacks)
        return [] if given else [StopAtNonFinite()]

    def setup(self, stage: str) -> None:
        """Check that the Trainer's data fit the module.

        Raises:
            UserError: labels, tokenizers or tasks differ, or a batch is too small for the tasks
                that share it.
        """
        data = self.given_data()
        self.label_places = self.stored_steps = self.stored_frozen = None
        if stage == "fit":
            self.frozen_names = None
        if data is not None and stage != "predict":  # which gets texts
            self.label_places = check_data(self, data.prepared, trains=stage == "fit")
        if data is not None and stage == "fit" and (self.sampled or 0) > data.sizes.batch_size:
            raise UserError(
                f"sampled={self.sampled} tasks cannot share a batch of {data.sizes.batch_size}; "
                "use a larger batch_size"
            )
        if isinstance(data, TartanData):  # a run logs its whole config
            sizes = {k.removeprefix("TartanData."): v for k, v in data_settings(data).items()}
            self.logged_options = {**self.logged_options, "data": sizes}
        if data is not None and stage == "fit" and data.seed != self.seed:
            log.warning(
                "batches are drawn by the data's seed, %s, dropout by the module's, %s; a module "
                "made by for_data(data) has the same", data.seed, self.seed,
            )  # fmt: skip

    def configure_model(self) -> None:
        """Install the kernels for a CPU, or shard the body, as device and strategy ask."""
        with torch.random.fork_rng(devices=[]):
            use_kernels(self)
        if self._trainer is None:  # loaded by itself
            return
        if str(self.trainer.precision) == "64-true":
            self.double()  # Lightning does so after it has restored parameters, and would round
        if isinstance(self.trainer.strategy, ShardStrategy):
            shard(self.body, self.trainer.strategy.device_mesh["data_parallel"])

    def on_fit_start(self) -> None:
        """Connect to the other processes, which exist from now on.

        Raises:
            UserError: the weighting takes derivatives that do not work with a sharded body.
        """
        self._begin_alone()
        trained = any(parameter.requires_grad for parameter in self.body.parameters())
        needs = self.weighting.needs
        if (needs.meta_gradient or needs.second_batches) and not trained:
            raise UserError(
                "no parameter of the body is trained, and the weights of this weighting come from "
                "the body's gradients; use FineTuning, or MTTartan with another weighting"
            )
        self._warn_of_untrained()
        if is_sharded(self.body):
            if needs.example_weights:
                raise UserError(
                    "weighting=meta_examples takes forward derivatives, which a sharded body does "
                    "not have; use trainer=ddp (in a program ReplicaStrategy()), or weighting=meta"
                )
            self.shared = ShardedBody(self.body, self.inner_products)
        elif self.trainer.world_size > 1:
            self.shared = ReplicatedBody(self.body, self.inner_products)

    def _begin_alone(self) -> None:
        """Let steps run in one process, without the log and the meter of an earlier training."""
        self.logs_steps, self.clock = True, nullcontext
        self.shared = SharedBody(self.body, self.inner_products)

    def _warn_of_untrained(self) -> None:
        """Warn of parameters of a subclass, whose gradients no step computes."""
        known = {id(p) for part in (self.body, self.heads, self.meta_head) if part is not None
                 for p in part.parameters()}  # fmt: skip
        others = ((name, p) for name, p in self.named_parameters() if id(p) not in known)
        own = [name for name, p in others if p.requires_grad]
        if own:
            log.warning(
                "%s.%s is part of neither the body nor a head: no step computes its gradient; put "
                "it into the head of an objective",
                type(self).__name__, own[0],
            )  # fmt: skip

    def configure_optimizers(self) -> dict[str, Any]:
        """Return one optimiser, so that Lightning's `global_step` counts optimiser steps.

        Raises:
            UserError: nothing is to be trained; the optimiser computes gradients by itself, or
                lacks parameters that are trained; or the training goes on from a checkpoint, and
                trained others there.
        """
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise UserError(
                "no parameter is to be trained: each has requires_grad=False (after freeze(), "
                "call unfreeze())"
            )
        optimiser = self.new_optimiser()
        if isinstance(optimiser, torch.optim.LBFGS):
            raise UserError(
                f"new_optimiser() of {type(self).__name__} returns LBFGS, which computes several "
                "gradients in a step; return an optimiser that takes the one it is given"
            )
        self.check_optimised(optimiser)
        # without the meta head, which no optimiser holds and each step's fit sets to be trained
        self.frozen_names = [
            name
            for name, parameter in self.named_parameters()
            if name.startswith(_TRAINED) and not parameter.requires_grad
        ]
        self.check_frozen()
        data = self.given_data()
        epoch = None if data is None else data.epoch_steps(self.batch_needs)
        self.planned_steps = planned_steps(self.trainer, epoch)
        schedule = self.optimisation.schedule(optimiser, self.planned_steps)
        # a schedule of a subclass begins with the peak rates, not those of the first warm-up step,
        # which `on_train_start` sets for this one
        for group in optimiser.param_groups:
            group["lr"] = group["initial_lr"]
        return {"optimizer": optimiser, "lr_scheduler": schedule}

    def on_train_start(self) -> None:
        """Set the next step's rates by this training's schedule.

        A checkpoint holds those of the schedule that it was written with, which may be shorter.

        Raises:
            UserError: a subclass's `configure_optimizers` has left something out, or its schedule
                is that of a training of another length.
        """
        self.steps_before = self.trainer.global_step
        if not self.trainer.lr_scheduler_configs and any(
            isinstance(callback, StochasticWeightAveraging) for callback in self.trainer.callbacks
        ):
            return  # going on from a checkpoint, it brings its own schedule with the next epoch
        schedule = self.lr_schedulers() if hasattr(self, "planned_steps") else None
        frequencies = [config.frequency for config in self.trainer.lr_scheduler_configs]
        check_schedule(schedule, frequencies, type(self).__name__)
        if isinstance(schedule, LambdaLR):  # another one is a subclass's
            set_rates(schedule)
        elif self.stored_steps not in (None, self.planned_steps):
            raise UserError(
                f"the checkpoint's training had {self.stored_steps} steps, this one has "
                f"{self.planned_steps}, and a {type(schedule).__name__} is restored with its "
                "length: give the same max_steps, or use a LambdaLR"
            )

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Make an evaluation follow the last step.

        Lightning evaluates at multiples of an interval, and when training is about to stop.

        Raises:
            UserError: a subclass's `training_step` took no step, so that training would not end.
        """
        if self.trainer.global_step == self.steps_before:
            raise UserError(
                f"training_step of {type(self).__name__} took no step of the optimiser: call "
                "super().training_step(batch, batch_idx), or override fill_gradients "
                "(docs/lightning.md)"
            )
        self.steps_before = self.trainer.global_step
        if self.trainer.global_step >= self.planned_steps and self.monitor is not None:
            self.trainer.should_stop = True
