"""The LightningModule that all methods share: one training step over a set of tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric, Metric

from src.core.body import Body
from src.core.gradients import dot
from src.core.meta_head import MetaHead, MetaHeadSettings
from src.core.passes import Passes, Purpose, Surroundings
from src.core.processes import Alone, Processes
from src.core.step import Step, StepRecord
from src.core.task import Inputs, StepBatch, Task
from src.core.weighting.base import Weighting
from src.core.weighting.uniform import Uniform
from src.core.without_waiting import StepState
from src.cpu.kernels import use_cpu_kernels
from src.cpu.row_gradients import RowAddingBody
from src.data.batches import BatchNeeds
from src.data.end_task import END_TASK
from src.data.evaluation_batch import labelled_batch, unlabelled_batch
from src.data.inputs import Text, inputs_of
from src.data.prepared import TEXT
from src.data.task_data import TaskData
from src.distributed.agreement import Agreement
from src.distributed.replicas import Replicas
from src.distributed.shards import ShardedBody, Shards, shard
from src.distributed.states import is_sharded
from src.distributed.strategy import ShardStrategy
from src.encoders.base import Encoder
from src.encoders.description import describe, encoder_of
from src.encoders.text_encoder import reads_text
from src.errors import UserError
from src.evaluation.metrics import EndTaskMetrics
from src.evaluation.monitor import Monitor
from src.evaluation.named_metrics import named_metric
from src.methods.from_checkpoint import FromCheckpoint
from src.methods.optimisation import Optimisation
from src.methods.plain import TARGET, Node, has_members, node_of, rebuilt, subclass_of
from src.methods.precision import parameters_in
from src.methods.trainer_options import check_trainer, own_callbacks, planned_steps
from src.methods.update import prepare_update
from src.objectives.base import TaskObjective
from src.seeding import seed_device, seed_for

S = TypeVar("S")

log = logging.getLogger(__name__)


class TaskMixing(FromCheckpoint):
    """Trains a shared body on one or several tasks, with manual optimisation.

    In each step every task's gradient with respect to the body is computed, the weighting mixes
    them into one, and each head gets its own task's gradient unweighted.

    A program makes one of its data, `MetaTartan.for_data(data, lr=2e-4)`, and a checkpoint makes
    one again, `MetaTartan.load_from_checkpoint(path)`, which holds all arguments as plain values.

    Args:
        encoder: the shared encoder, whose body `theta` is trained in place; or its description.
        tasks: the tasks' objectives by name, the end task's first where the method trains it.
        weighting: mixes the body's gradients: its class, with its arguments in a
            `functools.partial`, or a node of a config.
        optimisation: optimiser and schedule.
        seed: of every random draw.
        stage: the stage's name, part of every random draw's seed; None takes the class's own.
        labels: the end task's label names in index order.
        metric: the end task's metric by which a checkpoint is chosen.
        metrics: further metrics by name, nodes of a config.
        max_length: longest text of the end task; None where inputs are no texts [tokens].
        meta_head: settings of the meta head, for weightings that need the meta-gradient.
        inner_products: `float32` or `float64`, in which products of gradients are accumulated.
        heads: heads to go on training, by task; tasks without one get a new one. Objectives with
            the same `shared_head` share one.
        sampled: auxiliary tasks that each step samples, sharing one batch; None trains all in each
            [tasks].

    Attributes:
        doing: what the passes that a step is in are for; None between them.
        clock: entered for the passes and the update that no step can do without.
        shared: the body, as steps use it.
        processes: those that have the rest of each batch.
        agreement: what they tell each other.
        logs_steps: whether losses and weights go to the Trainer's loggers.

    Raises:
        ValueError: the weighting needs a meta-gradient, and the method has none.
        UserError: an argument cannot be stored, or was damaged where it was.
    """

    trains_end_task: ClassVar[bool]
    trains_auxiliaries: ClassVar[bool]
    has_meta_head: ClassVar[bool] = False
    stage_name: ClassVar[str] = "joint"
    skipped: Tensor

    def __init__(
        self,
        encoder: Encoder | Mapping[str, Any],
        tasks: Mapping[str, TaskObjective[Any] | Node],
        weighting: type[Weighting] | partial[Weighting] | Node = Uniform,
        optimisation: Optimisation | Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        stage: str | None = None,
        labels: Sequence[str] = (),
        metric: str = "macro_f1",
        metrics: Mapping[str, Node] | None = None,
        max_length: int | None = None,
        meta_head: MetaHeadSettings | Mapping[str, Any] | None = None,
        inner_products: str = "float32",
        heads: Mapping[str, nn.Module] | None = None,
        sampled: int | None = None,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.optimisation = _settings(Optimisation, optimisation) or Optimisation()
        meta_settings = _settings(MetaHeadSettings, meta_head)
        self.seed, self.stage = seed, stage or self.stage_name
        self.labels, self.max_length = tuple(labels), max_length
        described = encoder if isinstance(encoder, Mapping) else describe(encoder)
        self.save_hyperparameters(
            {
                "encoder": dict(described),
                "tasks": {name: node_of(objective) for name, objective in tasks.items()},
                "weighting": node_of(weighting),
                "optimisation": asdict(self.optimisation),
                "seed": seed,
                "stage": self.stage,
                "labels": list(labels),
                "metric": metric,
                "metrics": {name: dict(node) for name, node in (metrics or METRICS).items()},
                "max_length": max_length,
                "meta_head": None if meta_settings is None else asdict(meta_settings),
                "inner_products": inner_products,
                "sampled": sampled,
            },
            logger=False,  # a tokenizer's files are nothing to look at
        )
        kept: Any = self.hparams
        self.sampled = sampled
        self.encoder = encoder_of(encoder) if isinstance(encoder, Mapping) else encoder
        self.body = self.encoder.body
        self.meta_head: MetaHead | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(seed, self.stage, "heads"))
            self.tasks = self._with_heads(tasks, heads or {})
            names = [task.name for task in self.tasks]
            self.weighting = self._new_weighting(names)
            self.end_task = self.tasks[0] if END_TASK in names else None
            if self.weighting.needs.meta_gradient:
                if self.end_task is None or meta_settings is None:
                    raise ValueError("this weighting needs a meta head and the end task")
                self.meta_head = MetaHead(self.end_task.head, meta_settings)
        if self.end_task is not None and names[0] != END_TASK:
            raise ValueError("the end task must come first")
        # one that tasks share is kept once, under the first one's name
        owners = {id(task.head): task for task in reversed(self.tasks)}
        self.heads = nn.ModuleDict({t.name: t.head for t in self.tasks if owners[id(t.head)] is t})
        self.inner_products: torch.dtype = getattr(torch, inner_products)
        self.metrics: EndTaskMetrics | None = None
        if self.end_task is not None:
            self.metrics = _metrics_of(kept.metrics, metric, len(self.labels))
        self.evaluation_loss = MeanMetric()
        self.last_record: StepRecord | None = None
        self._last_weights: list[float] = []
        self._applied: Tensor | None = None
        self.last_finite: Tensor | None = None
        self.register_buffer("skipped", torch.zeros((), dtype=torch.int64), persistent=False)
        self.doing: Purpose | None = None
        self.clock: AbstractContextManager[object] = nullcontext()
        self.shared: Body = RowAddingBody(self.body, self.inner_products)
        self.processes: Processes = Alone()
        self.agreement = Agreement()
        self.logs_steps = True

    @classmethod
    def for_data(
        cls,
        data: TaskData,
        *,
        lr: float | None = None,
        head_lr: float | None = None,
        optimisation: Optimisation | None = None,
        weighting: type[Weighting] | partial[Weighting] | Node = Uniform,
        tasks: Sequence[str] | None = None,
        heads: Mapping[str, nn.Module] | None = None,
        meta_head: MetaHeadSettings | None = None,
        stage: str | None = None,
        metrics: Mapping[str, Node] | None = None,
        inner_products: str = "float32",
        sampled: int | None = None,
    ) -> Self:
        """A module for `data`, whose encoder it trains in place; heads are drawn from its seed.

        Args:
            data: labelled data, auxiliary tasks, encoder.
            lr: peak learning rate of the body and of the auxiliary heads.
            head_lr: that of the end task's head; None takes the method's usual one.
            optimisation: all settings of the optimiser, instead of `lr` and `head_lr`.
            weighting: see the class.
            tasks: names of the auxiliary tasks that are trained; None for all.
            heads: see the class; an earlier module's `heads` go on where it ended.
            meta_head: see the class.
            stage: see the class.
            metrics: see the class.
            inner_products: see the class.
            sampled: see the class.

        Raises:
            UserError: the data cannot be read, or do not fit the method.
        """
        prepared = data.prepared
        if (lr is None) == (optimisation is None):
            raise UserError("give a learning rate, lr=2e-4, or all settings: optimisation=...")
        if lr is not None:
            optimisation = cls._usual(lr, head_lr)
        names = list(prepared.auxiliaries) if tasks is None else list(tasks)
        unknown = sorted(set(names) - set(prepared.auxiliaries))
        if unknown:
            raise UserError(
                f"the data have no auxiliary task {unknown[0]}, only {list(prepared.auxiliaries)}"
            )
        objectives: dict[str, TaskObjective[Any]] = {}
        if cls.trains_end_task:
            objectives[END_TASK] = prepared.classification
        if prepared.held_out is not None:
            objectives[TEXT] = prepared.objective(TEXT)
        elif cls.trains_auxiliaries:
            if not names:
                raise UserError(
                    f"{cls.__name__} trains auxiliary tasks, and the data have none; give them "
                    'some: auxiliaries={"tapt": "task"}'
                )
            objectives |= {name: prepared.objective(name) for name in names}
        own: dict[str, Any] = {}
        if prepared.labelled is not None:
            end_task = prepared.end_task
            own = {
                "labels": end_task.labels,
                "metric": end_task.metric,
                "max_length": end_task.max_length,
            }
        if prepared.held_out is not None:
            own = {"held_out": True}
        return cls(
            prepared.encoder,
            objectives,
            weighting,
            optimisation,
            seed=data.seed,
            stage=stage,
            metrics=metrics,
            meta_head=(meta_head or MetaHeadSettings()) if cls.has_meta_head else None,
            inner_products=inner_products,
            heads=heads,
            sampled=sampled,
            **own,
        )

    @classmethod
    def _usual(cls, lr: float, head_lr: float | None) -> Optimisation:
        """The method's usual settings (`conf/stage/`) with these learning rates."""
        return Optimisation(body_lr=lr, end_head_lr=1e-3 if head_lr is None else head_lr)

    def _with_heads(
        self, tasks: Mapping[str, TaskObjective[Any] | Node], heads: Mapping[str, nn.Module]
    ) -> list[Task]:
        found: list[Task] = []
        shared: dict[str, nn.Module] = {}
        for name, given in tasks.items():
            objective = given
            if isinstance(given, Mapping):
                objective = rebuilt(given, has_members(*_OF_AN_OBJECTIVE), "tasks")
            key = getattr(objective, "shared_head", None) or name
            if key not in shared:
                new = objective.new_head  # type: ignore[union-attr]
                shared[key] = heads[name] if name in heads else new(self.encoder)
            head = shared[key]
            found.append(Task(name, objective, head))  # type: ignore[arg-type]
        return found

    def _new_weighting(self, names: Sequence[str], precision: str = "32-true") -> Weighting:
        node: Node = self.hparams["weighting"]
        with parameters_in(precision):
            weighting: Weighting = rebuilt(
                node, subclass_of(Weighting), "weighting", task_names=list(names)
            )
        return weighting

    def double(self) -> Self:
        """Keep parameters and buffers in float64.

        Weights that still are what they were at the start, 1/3 for instance, are made in float64:
        in single precision they have been rounded.
        """
        names = [task.name for task in self.tasks]
        start = self._new_weighting(names).state_dict()
        untouched = all(v.equal(start[name]) for name, v in self.weighting.state_dict().items())
        super().double()
        if untouched:
            self.weighting.load_state_dict(self._new_weighting(names, "64-true").state_dict())
        return self

    @property
    def batch_needs(self) -> BatchNeeds:
        """What a step is made of, for the data's loaders."""
        apart = self.meta_head.settings.examples_apart if self.meta_head is not None else 0
        return BatchNeeds(
            self.stage,
            tuple(task.name for task in self.tasks),
            meta=self.uses_meta_gradient,
            apart=apart,
            second=self.weighting.needs.second_batches,
            sampled=self.sampled,
        )

    @property
    def monitor(self) -> Monitor | None:
        """The metric on dev by which weights are kept; None where nothing is evaluated."""
        return None if self.metrics is None else Monitor(self.metrics.monitor)

    @property
    def uses_meta_gradient(self) -> bool:
        """Whether a step needs a batch of the end task's validation split."""
        return self.meta_head is not None

    def configure_callbacks(self) -> list[pl.Callback]:
        """Check what the Trainer is asked to do, and add what no training should be without.

        Numbers that are not finite end the training; and where there is no checkpoint callback but
        Lightning's own, it keeps the best on dev instead of the last.

        Raises:
            UserError: names the Trainer's option that cannot be honoured, and what to use instead.
        """
        check_trainer(self.trainer)
        return own_callbacks(self.trainer, self.monitor)

    def configure_model(self) -> None:
        """Put on the kernels for a CPU, and shard the body, where that is the strategy."""
        with torch.random.fork_rng(devices=[]):
            use_cpu_kernels(self)
        if self._trainer is None:  # loaded by itself
            return
        if str(self.trainer.precision) == "64-true":
            self.double()  # Lightning does so after it has restored parameters, and would round
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
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        epoch = data.epoch_steps(self.batch_needs) if isinstance(data, TaskData) else None
        steps = planned_steps(self.trainer, epoch)
        schedule = self.optimisation.schedule(optimiser, steps)
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
        if not isinstance(batch, StepBatch):
            raise UserError(
                "training takes the batches of TartanData: trainer.fit(module, datamodule=data)"
            )
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
        # steps that sample tasks have others each time: the first is in all of them
        shown = record.tasks if self.sampled is None else record.tasks[:1]
        to_loggers = self.logs_steps and bool(self.trainer.loggers)
        kinds = {"loss": record.losses}
        if len(self.tasks) > 1:
            kinds["weight"] = record.weights
        for kind, values in kinds.items():
            for index, task in enumerate(shown):
                name = f"{kind}/{task}"
                self.log(name, values[index], prog_bar=True, logger=to_loggers, batch_size=1)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Have the last step be followed by an evaluation, as every training is judged by one.

        Lightning evaluates at multiples of an interval, and when training is about to stop.
        """
        last = self.trainer.max_steps != -1 and self.trainer.global_step >= self.trainer.max_steps
        if last and self.monitor is not None:
            self.trainer.should_stop = True

    def forward(self, texts: str | Sequence[Text] | Inputs) -> Tensor:
        """The end task's logits, `(n, classes)`.

        Args:
            texts: one or more texts, pairs of texts, or what a tokenizer (or, of images, the data)
                has made of them.

        Raises:
            UserError: the method does not train the end task, or the encoder reads no texts.
        """
        task, _ = self._evaluated()
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, Mapping):
            encoder = reads_text(self.encoder, "a text")
            read = inputs_of(texts, encoder, self.max_length)
            texts = {name: value.to(self.device) for name, value in read.items()}
        features = task.objective.features(self.body, texts)
        logits: Tensor = task.head(features)
        return logits.float()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Count a batch of the end task's dev split (see `labelled_batch` for its forms)."""
        self._evaluate(batch)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        """Count a batch of the end task's test split."""
        self._evaluate(batch)

    def predict_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """`label`, a name for each example, and `probabilities`, `(n, classes)`.

        Args:
            batch: texts, rows of `text` (and `text_pair`), or what a tokenizer made of them.
        """
        probabilities = self(unlabelled_batch(batch)).softmax(dim=1)
        chosen = probabilities.argmax(dim=1).tolist()
        return {"label": [self.labels[i] for i in chosen], "probabilities": probabilities}

    def on_validation_epoch_end(self) -> None:
        """Log `dev/...`."""
        self._log_metrics("dev")

    def on_test_epoch_end(self) -> None:
        """Log `test/...`."""
        self._log_metrics("test")

    def _evaluate(self, batch: Any) -> None:
        _, metrics = self._evaluated()
        inputs, labels, unseen = labelled_batch(batch, self.labels)
        logits = self(inputs)
        labels = labels.to(logits.device)
        metrics.update(logits, labels, unseen)
        self.evaluation_loss.update(nn.functional.cross_entropy(logits, labels), len(labels))

    def _log_metrics(self, split: str) -> None:
        _, metrics = self._evaluated()
        any_unseen = bool(self.agreement.highest(int(metrics.saw_unseen)))
        values = metrics.compute(any_unseen=any_unseen)
        values["loss"] = self.evaluation_loss.compute()
        self.log_dict({f"{split}/{name}": value for name, value in values.items()}, prog_bar=False)
        self.log(f"{split}_{metrics.monitor}", values[metrics.monitor], prog_bar=True, logger=False)
        metrics.reset()
        self.evaluation_loss.reset()

    def _evaluated(self) -> tuple[Task, EndTaskMetrics]:
        if self.end_task is None or self.metrics is None:
            raise UserError(
                f"{type(self).__name__} does not train the end task, so that there is nothing to "
                "evaluate or predict; use FineTuning, MTTartan or MetaTartan"
            )
        return self.end_task, self.metrics

    @property
    def task_weights(self) -> dict[str, float]:
        """The `alpha` of the last step that was not skipped, by task; empty before the first."""
        if self._applied is not None:
            self._last_weights = self._applied.tolist()
        return dict(zip([task.name for task in self.tasks], self._last_weights, strict=False))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the classifier as a folder that Transformers and `python -m src.predict` load.

        Raises:
            UserError: the method does not train the end task.
        """
        task, _ = self._evaluated()
        remark = self.encoder.save_classifier(task.head, self.labels, Path(folder), self.max_length)
        if remark is not None:
            log.warning(remark)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what is counted beside the parameters."""
        checkpoint["progress"] = {
            "weights": list(self.task_weights.values()),
            "skipped": int(self.skipped),
            "processes": self.trainer.world_size,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take it back."""
        progress = checkpoint["progress"]
        self._last_weights = list(progress["weights"])
        self.skipped.fill_(progress["skipped"])
        if self._trainer is None:  # loaded by itself
            return
        before, now = progress["processes"], self.trainer.world_size
        if before != now:
            log.warning("stage %s goes on in %s process(es), it was in %s", self.stage, now, before)


_OF_AN_OBJECTIVE = ("features", "targets", "owners", "losses", "new_head", "collate")
METRICS: Mapping[str, Node] = {
    f"{average}_f1": {
        TARGET: "torchmetrics.classification.MulticlassF1Score",
        "average": average,
    }
    for average in ("macro", "micro", "weighted")
}
"""What is given of every evaluation when nothing else is said, as in `conf/config.yaml`."""


def _settings(kind: type[S], given: S | Mapping[str, Any] | None) -> S | None:
    """Settings as an object, or as the plain values of a checkpoint."""
    return kind(**given) if isinstance(given, Mapping) else given


def _metrics_of(nodes: Mapping[str, Node], monitor: str, classes: int) -> EndTaskMetrics:
    metrics: dict[str, Metric] = {
        name: rebuilt(node, subclass_of(Metric), "metrics", num_classes=classes)
        for name, node in nodes.items()
    }
    if monitor not in metrics:
        metrics[monitor] = named_metric(monitor, classes)
    return EndTaskMetrics(metrics, monitor, classes)
