"""Takes optimiser steps over several tasks, whose gradients a weighting combines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import SWALR

from tartan.core.body import SharedBody
from tartan.core.device import StepState, is_cpu, without_autocast
from tartan.core.gradients import dot
from tartan.core.meta_head import MetaHead
from tartan.core.passes import Passes, Purpose, trained
from tartan.core.seeding import seed_device, seed_for
from tartan.core.step import Step, StepRecord
from tartan.core.task import StepBatch, Task
from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.data.batches import BatchNeeds
from tartan.data.task_data import TaskData
from tartan.errors import UserError
from tartan.methods.applied_weights import AppliedWeights
from tartan.methods.classifier import EndTaskClassifier
from tartan.methods.optimisation import Optimisation
from tartan.methods.update import prepare_update


class TrainingStep(EndTaskClassifier):
    """Takes optimiser steps over several tasks, with manual optimisation.

    In each step, the gradient of each task with respect to the body is computed, the weighting
    combines them into one, and each head gets its own task's gradient, unweighted.

    `TaskMixing` makes the parts and keeps them under the names of its arguments.

    Attributes:
        heads: the tasks' heads by name; one that tasks share is stored once.
        applied: the task weights of the last step that was not skipped.
        doing: the purpose of the passes that are running; None outside a step.
        clock: returns a context manager that measures the passes and the update, which every step
            needs.
        shared: the body, as steps use it, and the processes that have the rest of each batch.
        logs_steps: whether losses and weights are sent to the Trainer's loggers.
        last_record: record of the last step; None before the first.
        last_finite: whether the last step's numbers were finite, a scalar on the device; None
            before the first.
        skipped: number of steps that were skipped because a number was not finite, a scalar.
    """

    tasks: list[Task]
    heads: nn.ModuleDict
    weighting: Weighting
    meta_head: MetaHead | None
    optimisation: Optimisation
    seed: int
    stage: str
    inner_products: torch.dtype
    sampled: int | None
    applied: AppliedWeights
    doing: Purpose | None
    clock: Callable[[], AbstractContextManager[object]]
    shared: SharedBody
    logs_steps: bool
    last_record: StepRecord | None
    last_finite: Tensor | None
    skipped: Tensor

    @property
    def batch_needs(self) -> BatchNeeds:
        """The batches that a step needs, for the data's loaders."""
        apart = self.meta_head.settings.extra_examples if self.meta_head is not None else 0
        return BatchNeeds(
            self.stage,
            tuple(task.name for task in self.tasks),
            meta=self.meta_head is not None,
            meta_head_examples=apart,
            second=self.weighting.needs.second_batches,
            sampled=self.sampled,
        )

    def given_data(self) -> TaskData | None:
        """Return the data that this call of the Trainer was given; None for loaders.

        `trainer.datamodule` may be of an earlier call.
        """
        given = self.trainer._data_connector._datahook_selector
        data = None if given is None else given.datamodule
        return data if isinstance(data, TaskData) else None

    @property
    def task_weights(self) -> dict[str, float]:
        """The weights `alpha` of the last step that was not skipped, by task; empty before it."""
        return self.applied.by_task()

    def new_optimiser(self) -> torch.optim.Optimizer:
        """Return a new optimiser of body and heads."""
        end_head = None if self.end_task is None else self.end_task.head
        others = [head for head in self.heads.values() if head is not end_head]
        return self.optimisation.optimiser(self.body, end_head, others)

    def training_step(self, batch: StepBatch, batch_idx: int) -> dict[str, Tensor]:
        """Take one optimiser step (Algorithm 1); its random draws depend on the step alone.

        The weighting's `mix` combines the tasks' gradients: of META-TARTAN, `Meta.mix`.

        Where a loss or the gradient is not finite, the step changes nothing except the schedule
        (and the memory of a TorchJD weighting, if only a head's gradient was not finite).

        Returns:
            `loss`, the weighted sum of the tasks' losses, a detached scalar, for callbacks.

        Raises:
            UserError: the batch is not one of this module's steps; or, in an epoch's first, the
                optimiser lacks a parameter that is trained.
        """
        if not isinstance(batch, StepBatch):
            raise UserError(
                "training takes the batches of TartanData: trainer.fit(module, datamodule=data)"
            )
        if batch_idx == 0:  # a callback may have unfrozen some
            self.check_optimised(self.trainer.optimizers[0])
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

    def _update(self, record: StepRecord, state: StepState) -> None:
        """Change what is trained by the gradients in `.grad`, unless a number is not finite."""
        norm = self.gradient_norm(record)
        numbers = (record.losses, record.weights)  # the mean's weights are not in the norm
        finite = norm.isfinite() & torch.cat(numbers).isfinite().all()
        if record.cosines is not None:
            # with order=step_then_update they enter the logits, but not this step's gradient
            finite = finite & record.cosines.isfinite().all()
        state.restore_unless(finite)
        optimiser = self.optimizers()
        assert not isinstance(optimiser, list)
        prepare_update(optimiser.optimizer, norm, self.optimisation.clip_norm, finite)
        with self.clock():
            optimiser.step()  # in any case: Lightning counts the steps by it
        optimiser.zero_grad(set_to_none=True)
        scheduler = self.lr_schedulers()
        # that of StochasticWeightAveraging counts epochs, and is missing until the next one begins
        # where a training goes on inside an epoch
        if scheduler is not None and (
            not isinstance(scheduler, SWALR) or self.trainer.is_last_batch
        ):
            scheduler.step()  # type: ignore[union-attr, call-arg]
        self.applied.follow(record, self.weighting.overall(), finite)
        self.skipped += ~finite
        self.last_record, self.last_finite = record, finite

    def fill_gradients(self, batch: StepBatch) -> StepRecord:
        """Compute the step's gradients into `.grad`, the body's combined by the weighting."""

        def seed(purpose: Purpose, part: int) -> None:
            names = (purpose.kind, purpose.task, batch.step, part)
            seed_device(seed_for(self.seed, self.stage, "dropout", *names), self.device)

        passes = _MeteredPasses(self.shared, seed, self._during)
        tasks = [task for task in self.tasks if task.name in batch.tasks]
        mix = self.weighting.mix
        if len(tasks) < len(self.tasks):
            mix = self.weighting.mix_sampled
        # the program's own draws go on where they were
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            record, gradients = Step(passes, tasks, batch, self.meta_head).run(mix)
        gradients.put()
        return record

    def check_optimised(self, optimiser: torch.optim.Optimizer) -> None:
        """Check that the optimiser has all parameters that are trained, as the clipping norm has.

        Raises:
            UserError: it lacks one.
        """
        known = {id(p) for group in optimiser.param_groups for p in group["params"]}
        # of a sharded body the shards, which it holds in place of gathered parameters from here on
        own = [*self.shared.parameters, *trained(self.heads)]
        lacking = next((p for p in own if id(p) not in known), None)
        if lacking is not None:
            name = next(name for name, p in self.named_parameters() if p is lacking)
            raise UserError(
                f"{name} is to be trained, but the optimiser does not have it; freeze it "
                "(requires_grad_(False)) before the training, or let new_optimiser() take it; what "
                "is unfrozen later is in no optimiser"
            )

    def gradient_norm(self, record: StepRecord) -> Tensor:
        """Return the norm of the gradients of body and heads together, a scalar."""
        heads = [p.grad for p in self.heads.parameters()]
        of_heads = dot(heads, heads, self.inner_products, record.squared_norm.device)
        return (record.squared_norm + of_heads).sqrt()

    @contextmanager
    def _during(self, purpose: Purpose) -> Iterator[None]:
        """Note the purpose of what is running, and measure its time if every step needs it."""
        self.doing = purpose
        needed = purpose.kind in ("task", "meta_gradient")
        try:
            with self.clock() if needed else nullcontext():
                yield
        finally:
            self.doing = None

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
            if self.is_logged(task)
        }

    def is_logged(self, task: str) -> bool:
        """Return whether a task is in every step: Lightning would repeat others' last values."""
        return self.sampled is None or task == END_TASK


class _MeteredPasses(Passes):
    """Passes of which `during` measures the cost by their purposes."""

    def __init__(
        self,
        body: SharedBody,
        seed: Callable[[Purpose, int], None],
        during: Callable[[Purpose], AbstractContextManager[object]],
    ) -> None:
        super().__init__(body, seed)
        self._during = during

    @contextmanager
    def computing(self, purpose: Purpose) -> Iterator[None]:
        """See `Passes.computing`."""
        with self._during(purpose), super().computing(purpose):
            yield
