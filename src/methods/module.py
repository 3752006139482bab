"""The LightningModule that all methods share: one training step over a set of tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric

from src.core.body import Body
from src.core.gradients import dot
from src.core.meta_head import MetaHead, MetaHeadSettings
from src.core.passes import Passes, Purpose, Surroundings
from src.core.processes import Alone, Processes
from src.core.step import Step, StepRecord
from src.core.task import MicroBatch, StepBatch, Task
from src.core.weighting.base import Weighting
from src.core.without_waiting import StepState
from src.cpu.kernels import use_cpu_kernels
from src.cpu.row_gradients import RowAddingBody
from src.distributed.agreement import Agreement
from src.distributed.replicas import Replicas
from src.distributed.shards import ShardedBody, Shards, shard
from src.distributed.states import is_sharded
from src.distributed.strategy import ShardStrategy
from src.errors import UserError
from src.evaluation.metrics import EndTaskMetrics
from src.evaluation.monitor import Monitor
from src.methods.optimisation import Optimisation
from src.methods.update import prepare_update
from src.seeding import seed_device, seed_for

log = logging.getLogger(__name__)


class TaskMixing(pl.LightningModule):
    """Trains a shared body on one or several tasks, with manual optimisation.

    In each step every task's gradient with respect to the body is computed, the weighting mixes
    them into one, and each head gets its own task's gradient unweighted.

    Args:
        body: the shared encoder `theta`.
        tasks: the tasks; the end task, if it takes part, comes first and is named by `end_task`.
        weighting: mixes the body's gradients.
        optimisation: optimiser and schedule.
        seed: the run's seed.
        stage: the stage's name, part of every random draw's seed.
        end_task: name of the end task among `tasks`; None for pre-training alone.
        metrics: the end task's metrics; needed with `end_task`.
        meta_head: settings of the meta head, for weightings that need the meta-gradient.
        inner_products: type in which products of gradients are accumulated.

    Attributes:
        doing: what the passes that a step is in are for; None between them.
        clock: entered for the passes and the update that no step can do without.
        shared: the body, as steps use it.
        processes: those that have the rest of each batch.
        agreement: what they tell each other.

    Raises:
        ValueError: the weighting needs a meta-gradient, and the method has none.
    """

    trains_end_task: ClassVar[bool]
    trains_auxiliaries: ClassVar[bool]
    has_meta_head: ClassVar[bool] = False
    skipped: Tensor

    def __init__(
        self,
        body: nn.Module,
        tasks: list[Task],
        weighting: Weighting,
        optimisation: Optimisation,
        *,
        seed: int,
        stage: str,
        end_task: str | None = None,
        metrics: EndTaskMetrics | None = None,
        meta_head: MetaHeadSettings | None = None,
        inner_products: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.body = body
        # one that tasks share is kept once, under the first one's name
        owners = {id(task.head): task for task in reversed(tasks)}
        self.heads = nn.ModuleDict({t.name: t.head for t in tasks if owners[id(t.head)] is t})
        self.weighting = weighting
        self.tasks = tasks
        self.end_task = tasks[0] if end_task is not None else None
        if end_task is not None and tasks[0].name != end_task:
            raise ValueError("the end task must come first")
        self.optimisation = optimisation
        self.seed, self.stage = seed, stage
        self.inner_products = inner_products
        self.metrics = metrics
        self.evaluation_loss = MeanMetric()
        self.meta_head: MetaHead | None = None
        if weighting.needs.meta_gradient:
            if self.end_task is None or meta_head is None:
                raise ValueError("this weighting needs a meta head and the end task")
            self.meta_head = MetaHead(self.end_task.head, meta_head)
        self.last_record: StepRecord | None = None
        self._last_weights: list[float] = []
        self._applied: Tensor | None = None
        self.last_finite: Tensor | None = None
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64), persistent=False)
        self.doing: Purpose | None = None
        self.clock: AbstractContextManager[object] = nullcontext()
        self.shared: Body = RowAddingBody(body, inner_products)
        self.processes: Processes = Alone()
        self.agreement = Agreement()

    @property
    def monitor(self) -> Monitor | None:
        """The metric on dev by which weights are kept; None where nothing is evaluated."""
        return None if self.metrics is None else Monitor(self.metrics.monitor)

    @property
    def uses_meta_gradient(self) -> bool:
        """Whether a step needs a batch of the end task's validation split."""
        return self.meta_head is not None

    def configure_model(self) -> None:
        """Put on the kernels for a CPU, and shard the body, where that is the strategy."""
        use_cpu_kernels(self)
        if isinstance(self.trainer.strategy, ShardStrategy):
            shard(self.body, self.trainer.strategy.device_mesh["data_parallel"])

    def on_fit_start(self) -> None:
        """Find the other processes, which exist from now on.

        Raises:
            UserError: the weighting takes derivatives that a sharded body has not.
        """
        self.shared, self.processes = RowAddingBody(self.body, self.inner_products), Alone()
        if is_sharded(self.body):
            if self.weighting.needs.example_weights:
                raise UserError(
                    "weighting=meta_examples takes forward derivatives, which a sharded body has "
                    "not; use trainer=ddp, or weighting=meta"
                )
            self.shared, self.processes = ShardedBody(self.body, self.inner_products), Shards()
        elif self.trainer.world_size > 1:
            self.processes = Replicas()

    def configure_optimizers(self) -> dict[str, Any]:
        """One optimiser, so that Lightning's `global_step` counts optimiser steps."""
        optimiser = self.new_optimiser()
        schedule = self.optimisation.schedule(optimiser, int(self.trainer.max_steps))
        return {"optimizer": optimiser, "lr_scheduler": schedule}

    def new_optimiser(self) -> torch.optim.AdamW:
        """An optimiser of body and heads that has taken no step."""
        end_head = None if self.end_task is None else self.end_task.head
        others = [head for head in self.heads.values() if head is not end_head]
        return self.optimisation.optimiser(self.body, end_head, others)

    def training_step(self, batch: StepBatch, batch_idx: int) -> None:
        """One optimiser step (paper: Algorithm 1); nothing in it depends on earlier draws.

        Where a loss or the gradient is not finite, it changes nothing but the schedule (and what a
        TorchJD weighting remembers, if only a head's gradient was not finite).
        """
        meta_head = [] if self.meta_head is None else list(self.meta_head.parameters())
        state = StepState([self.body, self.weighting], meta_head)
        record = self.fill_gradients(batch)
        norm = self.gradient_norm(record)
        finite = norm.isfinite() & record.losses.isfinite().all()
        if record.cosines is not None:
            # with order=step_then_update they enter the logits, but not this step's gradient
            finite = finite & record.cosines.isfinite().all()
        state.restore_unless(finite)
        optimiser = self.optimizers()
        assert not isinstance(optimiser, list)
        prepare_update(optimiser.optimizer, norm, self.optimisation.clip_norm, finite)
        with self.clock:
            optimiser.step()  # in any case: Lightning counts the steps by it
        optimiser.zero_grad(set_to_none=True)
        scheduler = self.lr_schedulers()
        scheduler.step()  # type: ignore[union-attr, call-arg]
        self.last_finite = finite
        now = self._weights_of_all(record)
        before = now if self._applied is None else self._applied
        self._applied = torch.where(finite, now, before)
        self.skipped += ~finite
        self._show(record)

    def fill_gradients(self, batch: StepBatch) -> StepRecord:
        """Leave the step's gradients in `.grad`, of the body mixed by the weighting."""

        def seed(purpose: Purpose, part: int) -> None:
            names = (purpose.kind, purpose.task, batch.step, part)
            seed_device(seed_for(self.seed, self.stage, "dropout", *names), self.device)

        passes = Passes(self.shared, Surroundings(self.processes, seed, self._during))
        tasks = [task for task in self.tasks if task.name in batch.tasks]
        mix = self.weighting.mix
        if len(tasks) < len(self.tasks):
            mix = self.weighting.mix_sampled
        return Step(passes, tasks, batch, self.meta_head).run(mix)

    def _weights_of_all(self, record: StepRecord) -> Tensor:
        """What all tasks weigh, `(tasks,)`; one that the step has not sampled what it did last."""
        overall = self.weighting.overall()
        if overall is not None or len(record.tasks) == len(self.tasks):
            return record.weights if overall is None else overall
        names = [task.name for task in self.tasks]
        places = [names.index(name) for name in record.tasks]
        before = record.weights.new_zeros(len(names)) if self._applied is None else self._applied
        return before.index_copy(0, torch.tensor(places, device=before.device), record.weights)

    @contextmanager
    def _during(self, purpose: Purpose) -> Iterator[None]:
        """Tell what the step is doing, and take the time of what no step can do without."""
        self.doing = purpose
        needed = purpose.kind in ("task", "meta_gradient")
        try:
            with self.clock if needed else nullcontext():
                yield
        finally:
            self.doing = None

    def gradient_norm(self, record: StepRecord) -> Tensor:
        """Norm of the gradients of body and heads together, a scalar."""
        heads = [p.grad for p in self.heads.parameters()]
        of_heads = dot(heads, heads, self.inner_products, record.squared_norm.device)
        return (record.squared_norm + of_heads).sqrt()

    def _show(self, record: StepRecord) -> None:
        self.last_record = record
        shown = record.tasks if len(record.tasks) == len(self.tasks) else record.tasks[:1]
        for index, task in enumerate(shown):
            self.log(f"loss/{task}", record.losses[index], prog_bar=True, logger=False)
            if len(self.tasks) > 1:
                self.log(f"weight/{task}", record.weights[index], prog_bar=True, logger=False)

    def validation_step(self, batch: MicroBatch, batch_idx: int) -> None:
        """Count a batch of the end task's dev split."""
        self._evaluate(batch)

    def test_step(self, batch: MicroBatch, batch_idx: int) -> None:
        """Count a batch of the end task's test split."""
        self._evaluate(batch)

    def on_validation_epoch_end(self) -> None:
        """Log `dev/...`."""
        self._log_metrics("dev", self.trainer.val_dataloaders)

    def on_test_epoch_end(self) -> None:
        """Log `test/...`."""
        self._log_metrics("test", self.trainer.test_dataloaders)

    def _evaluate(self, batch: MicroBatch) -> None:
        task, metrics = self._evaluated()
        features = task.objective.features(self.body, batch.inputs)
        logits = task.head(features).float()
        labels = batch.inputs["labels"]
        metrics.update(logits, labels, batch.inputs["unseen"])
        self.evaluation_loss.update(nn.functional.cross_entropy(logits, labels), len(labels))

    def _log_metrics(self, split: str, loader: Any) -> None:
        _, metrics = self._evaluated()
        values = metrics.compute(any_unseen=loader.dataset.any_unseen)
        values["loss"] = self.evaluation_loss.compute()
        self.log_dict({f"{split}/{name}": value for name, value in values.items()}, prog_bar=False)
        self.log(f"{split}_{metrics.monitor}", values[metrics.monitor], prog_bar=True, logger=False)
        metrics.reset()
        self.evaluation_loss.reset()

    def _evaluated(self) -> tuple[Task, EndTaskMetrics]:
        if self.end_task is None or self.metrics is None:
            raise ValueError("only a stage that trains the end task can be evaluated")
        return self.end_task, self.metrics

    def last_task_weights(self) -> dict[str, float]:
        """The `alpha` of the last step that was not skipped, by task; empty before the first."""
        if self._applied is not None:
            self._last_weights = self._applied.tolist()
        return dict(zip([task.name for task in self.tasks], self._last_weights, strict=False))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what is counted beside the parameters."""
        checkpoint["progress"] = {
            "weights": list(self.last_task_weights().values()),
            "skipped": int(self.skipped),
            "processes": self.trainer.world_size,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take it back."""
        progress = checkpoint["progress"]
        self._last_weights = list(progress["weights"])
        self.skipped.fill_(progress["skipped"])
        before, now = progress["processes"], self.trainer.world_size
        if before != now:
            log.warning("stage %s goes on in %s process(es), it was in %s", self.stage, now, before)
