"""Defines the LightningModule that all methods share: it trains with manual optimisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.data import AttributeDict
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from tartan.core.body import SharedBody
from tartan.core.device import StepState, is_cpu, without_autocast
from tartan.core.gradients import dot
from tartan.core.meta_head import MetaHeadSettings
from tartan.core.passes import Passes, Purpose
from tartan.core.seeding import seed_device, seed_for
from tartan.core.step import Step, StepRecord
from tartan.core.task import StepBatch
from tartan.core.task_names import END_TASK
from tartan.data.batches import BatchNeeds
from tartan.data.prepared import TEXT, Prepared
from tartan.data.tartan_data import TartanData, encoder_of
from tartan.data.task_data import TaskData
from tartan.encoders.safe_loading import check_finite_weights
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels
from tartan.methods import checks
from tartan.methods.checkpoint import check_same_training, data_settings, keep_best
from tartan.methods.classifier import EndTaskClassifier
from tartan.methods.non_finite import StopAtNonFinite
from tartan.methods.optimisation import Optimisation, prepare_update, set_rates
from tartan.methods.parts import METRICS, GivenWeighting, Node, keep_heads, node_of, weighting_of
from tartan.methods.shards import ShardedBody, fresh_casts, is_sharded, shard
from tartan.methods.strategy import ReplicatedBody, ShardStrategy


class TaskMixing(EndTaskClassifier):
    """Trains a shared body on one or several tasks.

    In each step, the gradient of each task with respect to the body is computed, the weighting
    combines them into one, and each head gets its own task's gradient, unweighted.

    A program makes a module for its data with `MetaTartan.for_data(data, lr=2e-4)`, and from a
    checkpoint with `MetaTartan.load_from_checkpoint(path)`: checkpoints hold all arguments as plain
    values. The arguments are those of `TaskModule`.

    Attributes:
        passes: takes the passes of the last step; None before the first.
        logs_steps: whether losses and weights are sent to the Trainer's loggers.
        last_record: record of the last step; None before the first.
        last_finite: whether the last step's numbers were finite, a scalar on the device.
        planned_steps: number of optimiser steps of the training.
    """

    passes: Passes | None = None
    logs_steps: bool = True
    last_record: StepRecord | None = None
    last_finite: Tensor | None = None
    planned_steps: int

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
            weighting: see `TaskModule`.
            eta: learning rate of the task weights' logits, of `MetaTartan` without another
                `weighting` (the paper searches 1e-1, 5e-2, 3e-2 and 1e-2); None takes 5e-2.
            tasks: names of the auxiliary tasks to train; None for all.
            meta_head: see `TaskModule`.
            metrics: further metrics, beside the F1 scores, by name, as nodes of a config; None
                leaves one of the F1 scores out.
            arguments: `heads`, `stage`, `inner_products` and `sampled`, see `TaskModule`.
        """
        checks.check_arguments(
            cls, optimisation=optimisation, lr=lr, head_lr=head_lr, weighting=weighting, eta=eta,
            tasks=tasks,
        )  # fmt: skip
        if optimisation is None:
            if lr is None:
                raise UserError("give a learning rate, lr=2e-4, or all settings: optimisation=...")
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

        Unlike Lightning's own, it neither unpickles nor calls the checkpoint's `_instantiator`.
        Further arguments are the class's; `encoder` in any form that `TartanData` takes.
        """
        if "encoder" in kwargs and not isinstance(kwargs["encoder"], Mapping):
            kwargs["encoder"] = encoder_of(kwargs["encoder"])
        safely: dict[str, Any] = {**kwargs, "weights_only": True, "_instantiator": None}
        module: Self = super().load_from_checkpoint(checkpoint_path, *args, **safely)
        check_finite_weights(module, Path(str(checkpoint_path)))
        return module

    @property
    def hparams_initial(self) -> AttributeDict:
        """What the Trainer's loggers record."""
        return AttributeDict(self.logged_options)

    @property
    def task_weights(self) -> dict[str, float]:
        """The weights `alpha` of the last step that was not skipped, by task; empty before it."""
        values = self.applied_weights.tolist()
        if not any(values):
            return {}
        return {task.name: value for task, value in zip(self.tasks, values, strict=True)}

    @property
    def batch_needs(self) -> BatchNeeds:
        """The batches that a step needs, for the data's loaders."""
        return BatchNeeds(
            self.stage,
            tuple(task.name for task in self.tasks),
            meta=self.meta_head is not None,
            meta_head_examples=self.meta_head.settings.extra_examples if self.meta_head else 0,
            second=self.weighting.needs.second_batches,
            sampled=self.sampled,
        )

    def given_data(self) -> TaskData | None:
        """Return the data of this call of the Trainer, not an earlier one's; None for loaders."""
        selector = self.trainer._data_connector._datahook_selector
        data = None if selector is None else selector.datamodule
        return data if isinstance(data, TaskData) else None

    # Lightning's hooks, in the order in which a training calls them

    def configure_callbacks(self) -> list[pl.Callback]:
        """Check the Trainer's options, keep the best checkpoint, and stop at non-finite numbers."""
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

    def double(self) -> Self:
        """Convert to float64; weights that are still initial, as 1/3, are not rounded before."""
        super().double()
        if not self.applied_weights.any():
            usual = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            names = [task.name for task in self.tasks]
            initial = weighting_of(self.hparams["weighting"], names)
            torch.set_default_dtype(usual)
            self.weighting.load_state_dict(initial.state_dict())
        return self

    def on_fit_start(self) -> None:
        """Connect to the other processes, and log steps, unless a callback of this fit does."""
        self.logs_steps = True
        kind = SharedBody
        if is_sharded(self.body):
            kind = ShardedBody
        elif self.trainer.world_size > 1:
            kind = ReplicatedBody
        self.shared = kind(self.body, self.shared.product_dtype)

    def new_optimiser(self) -> torch.optim.Optimizer:
        """Return a new optimiser of body and heads."""
        end_head = None if self.end_task is None else self.end_task.head
        others = [head for head in self.heads.values() if head is not end_head]
        return self.optimisation.optimiser(self.body, end_head, others)

    def configure_optimizers(self) -> dict[str, Any]:
        """Return one optimiser, so that Lightning's `global_step` counts optimiser steps."""
        optimiser = self.new_optimiser()
        self.planned_steps = self._count_steps()
        schedule = self.optimisation.schedule(optimiser, self.planned_steps)
        # a schedule of a subclass begins with the peak rates, not those of the first warm-up step,
        # which `on_train_start` sets for this one
        for group in optimiser.param_groups:
            group["lr"] = group["initial_lr"]
        return {"optimizer": optimiser, "lr_scheduler": schedule}

    def _count_steps(self) -> int:
        # not `trainer.estimated_stepping_batches`, which drops the state of a checkpoint's loaders
        trainer, data = self.trainer, self.given_data()
        if trainer.global_step and not trainer.ckpt_path:
            raise UserError("this Trainer has trained already; make a new one, or give ckpt_path")
        steps, epochs = int(trainer.max_steps), trainer.max_epochs
        if epochs in (-1, None):
            return steps
        assert data is not None  # see `setup`
        epoch, limit = data.epoch_steps(self.batch_needs), trainer.limit_train_batches
        epoch = min(epoch, limit) if isinstance(limit, int) else int(epoch * limit)
        by_epochs = max(epoch, 1) * int(epochs)
        return by_epochs if steps == -1 else min(steps, by_epochs)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the module may take over a checkpoint."""
        if self._trainer is None:  # loaded by itself
            keep_heads(self.tasks, self.encoder)  # whose values Lightning loads next
            return
        if checkpoint["hyper_parameters"]["labels"] != list(self.labels):
            raise UserError(f"the checkpoint has other labels than {list(self.labels)}")
        if self.trainer.state.fn == TrainerFn.FITTING:
            check_same_training(checkpoint, self.hparams, self.given_data())
            self.weighting.load_state_dict(checkpoint["progress"]["weighting"])

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what a training that goes on has to have in common with this one."""
        checkpoint["progress"] = {
            "data": data_settings(self.given_data()),
            # of a sharded module, Lightning leaves out what is no tensor of a buffer
            "weighting": self.weighting.state_dict(),
        }

    def on_train_start(self) -> None:
        # a checkpoint holds the rates of the schedule that it was written with
        schedule = self.lr_schedulers()
        if isinstance(schedule, LambdaLR):  # another one is a subclass's
            set_rates(schedule)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Make an evaluation follow the last step, as Lightning does when training is to stop."""
        if self.trainer.global_step >= self.planned_steps and self.monitor is not None:
            self.trainer.should_stop = True

    def training_step(self, batch: StepBatch, batch_idx: int) -> dict[str, Tensor]:
        """Take one optimiser step (Algorithm 1); its random draws depend on the step alone.

        Where a loss or the gradient is not finite, it changes nothing except the schedule (and the
        memory of a TorchJD weighting, if only a head's gradient was not finite). The returned
        `loss` is the weighted sum of the tasks' losses, a detached scalar, for callbacks.
        """
        meta_head = [] if self.meta_head is None else [self.meta_head]
        state = StepState(
            [self.body, self.weighting, self.heads, *meta_head],
            [parameter for head in meta_head for parameter in head.parameters()],
        )
        record = self.fill_gradients(batch)
        with without_autocast(self.device):
            self._update(record, state)
        to_loggers = self.logs_steps and bool(self.trainer.loggers)
        # Lightning reads what is for the bar in every step, and so would wait for a GPU
        to_bar = is_cpu(self.device)
        for name, value in self.step_metrics(record).items():
            self.log(name, value, prog_bar=to_bar, logger=to_loggers, batch_size=1)
        return {"loss": (record.losses * record.weights).sum()}

    def fill_gradients(self, batch: StepBatch) -> StepRecord:
        """Compute the step's gradients into `.grad`, the body's combined by the weighting."""

        def seed(purpose: Purpose, part: int) -> None:
            names = (purpose.kind, purpose.task, batch.step, part)
            seed_device(seed_for(self.seed, self.stage, "dropout", *names), self.device)

        tasks = [task for task in self.tasks if task.name in batch.tasks]
        # the program's own draws go on where they were
        fork = torch.random.fork_rng([self.device] if self.device.type == "cuda" else [])
        with fork, fresh_casts(self.device) if is_sharded(self.body) else nullcontext():
            self.passes = Passes(self.shared, seed)
            step = Step(self.passes, tasks, batch, self.meta_head)
            record, gradients = step.run(self.weighting.mix)
        gradients.put()
        return record

    def gradient_norm(self, record: StepRecord) -> Tensor:
        """Return the norm of the gradients of body and heads together, a scalar."""
        heads = [p.grad for p in self.heads.parameters()]
        of_heads = dot(heads, heads, self.shared.product_dtype, record.squared_norm.device)
        return (record.squared_norm + of_heads).sqrt()

    def _update(self, record: StepRecord, state: StepState) -> None:
        """Change what is trained by the gradients in `.grad`, unless a number is not finite."""
        norm = self.gradient_norm(record)
        numbers = [record.losses, record.weights]  # the mean's weights are not in the norm
        if record.cosines is not None:
            # with order=step_then_update they enter the logits, but not this step's gradient
            numbers.append(record.cosines)
        finite = norm.isfinite() & torch.cat(numbers).isfinite().all()
        state.restore_unless(finite)
        optimiser = self.optimizers()
        assert not isinstance(optimiser, list)
        prepare_update(optimiser.optimizer, norm, self.optimisation.clip_norm, finite)
        optimiser.step()  # in any case: Lightning counts the steps by it
        optimiser.zero_grad(set_to_none=True)
        schedule: Any = self.lr_schedulers()
        if schedule is not None:
            schedule.step()
        weights = self.weighting.overall()
        weights = (record.weights if weights is None else weights).to(self.applied_weights)
        self.applied_weights.copy_(torch.where(finite, weights, self.applied_weights))
        self.skipped += ~finite
        self.last_record, self.last_finite = record, finite

    def step_metrics(self, record: StepRecord) -> dict[str, Tensor]:
        """Return a step's `loss/TASK` and, where there are several tasks, `weight/TASK`."""
        kinds = {"loss": record.losses}
        if len(self.tasks) > 1:
            kinds["weight"] = record.weights
        return {
            f"{kind}/{task}": value
            for kind, values in kinds.items()
            for task, value in zip(record.tasks, values, strict=True)
            # Lightning would repeat the last values of tasks that are not in every step
            if self.sampled is None or task == END_TASK
        }


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
