"""Takes optimiser steps over several tasks, whose gradients a weighting combines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Self

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from tartan.core.body import SharedBody
from tartan.core.device import StepState, is_cpu, without_autocast
from tartan.core.gradients import dot
from tartan.core.passes import Passes, Purpose
from tartan.core.seeding import seed_device, seed_for
from tartan.core.step import Step, StepRecord
from tartan.core.task import StepBatch
from tartan.core.task_names import END_TASK
from tartan.data.batches import BatchNeeds
from tartan.data.task_data import TaskData
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels
from tartan.methods.checks import check_optimised, check_processes
from tartan.methods.classifier import EndTaskClassifier
from tartan.methods.optimisation import Optimisation, prepare_update, set_rates
from tartan.methods.parts import weighting_of
from tartan.methods.replicas import ReplicatedBody
from tartan.methods.shards import ShardedBody, fresh_casts, is_sharded, shard
from tartan.methods.strategy import ShardStrategy


class TrainingStep(EndTaskClassifier):
    """Takes optimiser steps over several tasks, with manual optimisation.

    In each step, the gradient of each task with respect to the body is computed, the weighting
    combines them into one, and each head gets its own task's gradient, unweighted.

    Attributes:
        shared: the body, as steps use it, and the processes that have the rest of each batch.
        passes: makes the object that takes a step's passes, which a callback may measure.
        logs_steps: whether losses and weights are sent to the Trainer's loggers.
        last_record: record of the last step; None before the first.
        last_finite: whether the last step's numbers were finite, a scalar on the device.
        skipped: number of steps that were skipped because a number was not finite, a scalar.
        applied_weights: the weights of all tasks in the last step that was not skipped, `(tasks,)`.
        planned_steps: number of optimiser steps of the training.
    """

    optimisation: Optimisation
    seed: int
    stage: str
    inner_products: torch.dtype
    sampled: int | None
    shared: SharedBody
    passes: Callable[..., Passes] = Passes
    logs_steps: bool = True
    last_record: StepRecord | None = None
    last_finite: Tensor | None = None
    skipped: Tensor
    applied_weights: Tensor
    planned_steps: int

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
            names = [task.name for task in self.tasks]
            initial = weighting_of(self.hparams["weighting"], names, "64-true")
            self.weighting.load_state_dict(initial.state_dict())
        return self

    def on_fit_start(self) -> None:
        """Connect to the other processes, which exist from now on."""
        self._begin_alone()
        check_processes(self, self.trainer)
        if is_sharded(self.body):
            self.shared = ShardedBody(self.body, self.inner_products)
        elif self.trainer.world_size > 1:
            self.shared = ReplicatedBody(self.body, self.inner_products)

    def _begin_alone(self) -> None:
        """Let steps run in one process, without the log and the meter of an earlier training."""
        self.logs_steps, self.passes = True, Passes
        self.shared = SharedBody(self.body, self.inner_products)

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

        The weighting's `mix` combines the tasks' gradients: of META-TARTAN, `Meta.mix`.

        Where a loss or the gradient is not finite, the step changes nothing except the schedule
        (and the memory of a TorchJD weighting, if only a head's gradient was not finite).

        Returns:
            `loss`, the weighted sum of the tasks' losses, a detached scalar, for callbacks.
        """
        if batch_idx == 0:  # a callback may have unfrozen some
            check_optimised(self, self.trainer.optimizers[0])
        meta_head = [] if self.meta_head is None else [self.meta_head]
        state = StepState(
            [self.body, self.weighting, self.heads, *meta_head],
            [parameter for head in meta_head for parameter in head.parameters()],
        )
        record = self.fill_gradients(batch)
        with without_autocast(self.device):
            self._update(record, state)
        self._log_step(record)
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
            passes = self.passes(self.shared, seed)
            record, gradients = Step(passes, tasks, batch, self.meta_head).run(self.weighting.mix)
        gradients.put()
        return record

    def gradient_norm(self, record: StepRecord) -> Tensor:
        """Return the norm of the gradients of body and heads together, a scalar."""
        heads = [p.grad for p in self.heads.parameters()]
        of_heads = dot(heads, heads, self.inner_products, record.squared_norm.device)
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
        self.applied_weights.copy_(
            torch.where(finite, self._weights_of_all(record), self.applied_weights)
        )
        self.skipped += ~finite
        self.last_record, self.last_finite = record, finite

    def _weights_of_all(self, record: StepRecord) -> Tensor:
        """Return the weights of all tasks, `(tasks,)`; those not sampled keep their last ones."""
        overall = self.weighting.overall()
        if overall is not None:
            return overall.to(self.applied_weights)
        weights = self.applied_weights.clone()
        for place, task in enumerate(self.tasks):
            if task.name in record.tasks:
                weights[place] = record.weights[record.tasks.index(task.name)]
        return weights

    def _log_step(self, record: StepRecord) -> None:
        to_loggers = self.logs_steps and bool(self.trainer.loggers)
        # Lightning reads what is for the bar in every step, and so would wait for a GPU
        to_bar = is_cpu(self.device)
        for name, value in self.step_metrics(record).items():
            self.log(name, value, prog_bar=to_bar, logger=to_loggers, batch_size=1)

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
