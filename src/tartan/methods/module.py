"""Defines the LightningModule that all methods share: it trains with manual optimisation."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.data import AttributeDict
from lightning.pytorch.callbacks import ModelCheckpoint
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
from tartan.encoders.base import Encoder
from tartan.encoders.safe_loading import check_finite_weights
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels
from tartan.methods.checkpoint import check_same_training, data_settings
from tartan.methods.classifier import EndTaskClassifier
from tartan.methods.optimisation import Optimisation, prepare_update
from tartan.methods.parts import METRICS, GivenWeighting, Node, keep_heads, node_of, weighting_of
from tartan.methods.shards import ShardedBody, fresh_casts, shard
from tartan.methods.strategy import ReplicatedBody, ShardStrategy, check_trainer

READ_EVERY = 50
"""Number of steps between two looks at skipped updates on a GPU, which is waited for."""


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
        skipped_in_a_row: number of the last updates that were skipped, a scalar.
        non_finite_patience: number of skipped updates in a row that end a training.
    """

    passes: Passes | None = None
    logs_steps: bool = True
    last_record: StepRecord | None = None
    last_finite: Tensor | None = None
    planned_steps: int
    skipped_in_a_row: Tensor
    non_finite_patience: int = 5

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
            eta: of `MetaTartan`, rate of its weights' logits (paper: 1e-2 to 1e-1); None: 5e-2.
            tasks: names of the auxiliary tasks to train; None for all.
            metrics: further ones by name, as nodes of a config; None leaves an F1 score out.
            weighting, meta_head, arguments: those of `TaskModule`, such as `heads` and `stage`.
        """
        for name, value, has_effect in (
            ("lr", lr, optimisation is None),
            ("head_lr", head_lr, optimisation is None and cls.trains_end_task),
            ("weighting", weighting, cls.trains_auxiliaries),
            ("eta", eta, weighting is None and cls.has_meta_head),
            ("tasks", tasks, cls.trains_auxiliaries),
        ):
            if value is not None and not has_effect:
                raise UserError(f"{cls.__name__}.for_data: {name} has no effect here; omit it")
        if optimisation is None:
            if lr is None:
                raise UserError("give a learning rate, lr=2e-4, or all settings: optimisation=...")
            if head_lr is None:
                head_lr = cls.usual_head_lr or lr
            optimisation = Optimisation(lr, head_lr, cls.usual_weight_decay)
        prepared = data.prepared
        names = [END_TASK] if cls.trains_end_task else []
        if prepared.held_out is not None:
            names = [TEXT]
        elif cls.trains_auxiliaries:
            names += prepared.auxiliaries if tasks is None else tasks
        module = cls(
            prepared.encoder,
            {name: prepared.objective(name) for name in names},
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
        """Check the Trainer's options; keep the best on dev where nothing says what to keep."""
        modes = {} if self.metrics is None else self.metrics.modes
        modes = {"dev/loss": "min", **{f"dev/{name}": mode for name, mode in modes.items()}}
        check_trainer(self.trainer, modes)
        kept = [c for c in self.trainer.callbacks if isinstance(c, ModelCheckpoint)]
        if len(kept) != 1 or self.monitor is None or not self.trainer.limit_val_batches:
            return []
        (callback,), mode = kept, self.monitor.mode
        after_evaluations = not (callback._every_n_train_steps or callback._save_on_train_epoch_end)
        is_plain = type(callback) is ModelCheckpoint and callback.save_top_k == 1
        if callback.monitor is None and is_plain and after_evaluations:
            callback.monitor, callback.mode = f"dev/{self.monitor.name}", mode
            callback.kth_value = torch.tensor(-torch.inf if mode == "max" else torch.inf)
        return []

    def setup(self, stage: str) -> None:
        """Check that the Trainer's data fit the module."""
        data, self.label_places = self.given_data(), None
        trains = stage == "fit"
        if trains and data is None:
            raise UserError(
                "training takes the batches of TartanData: trainer.fit(module, datamodule=data)"
            )
        if data is None or stage == "predict":  # which gets texts
            return
        prepared, sizes = data.prepared, data.sizes
        if not _reads_alike(self.encoder, prepared.encoder):
            raise UserError(
                f"the data were read for encoder {prepared.encoder.name}, not the module's; use "
                "TartanData(..., encoder=module.encoder)"
            )
        if trains and (self.sampled or 0) > sizes.batch_size:
            raise UserError(
                f"sampled={self.sampled} tasks do not share {sizes.batch_size} examples"
            )
        if self.end_task is not None:
            length, labels = prepared.end_task.max_length, list(prepared.end_task.labels)
            if trains and length != self.max_length:
                raise UserError(
                    f"max_length of the data is {length}, of the module {self.max_length}"
                )
            if labels != list(self.labels):
                if trains or not set(labels) <= set(self.labels):
                    raise UserError(
                        f"the data's labels are {labels}, the module's {list(self.labels)}"
                    )
                self.label_places = torch.tensor([self.labels.index(label) for label in labels])
        if isinstance(data, TartanData):  # a run logs its whole config
            logged = {"seed": data.seed, **asdict(sizes)}
            self.logged_options = {**self.logged_options, "data": logged}

    def configure_model(self) -> None:
        """Install the kernels for a CPU, or shard the body, and connect to the other processes."""
        with torch.random.fork_rng(devices=[]):
            use_kernels(self)
        if self._trainer is None:  # loaded by itself
            return
        if str(self.trainer.precision) == "64-true":
            self.double()  # Lightning does so after it has restored parameters, and would round
        kind = ReplicatedBody if self.trainer.world_size > 1 else SharedBody
        if isinstance(self.trainer.strategy, ShardStrategy):
            shard(self.body, self.trainer.strategy.device_mesh["data_parallel"])
            kind = ShardedBody
        self.shared = kind(self.body, self.shared.product_dtype)
        self.logs_steps = True  # unless a callback of this fit does
        self.skipped_in_a_row = torch.zeros((), dtype=torch.int64)

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

    def new_optimiser(self) -> torch.optim.Optimizer:
        """Return a new optimiser of body and heads."""
        end_head = None if self.end_task is None else self.end_task.head
        others = [head for head in self.heads.values() if head is not end_head]
        return self.optimisation.optimiser(self.body, end_head, others)

    def configure_optimizers(self) -> dict[str, Any]:
        """Return one optimiser, so that Lightning's `global_step` counts optimiser steps."""
        # not `trainer.estimated_stepping_batches`, which drops the state of a checkpoint's loaders
        trainer, data = self.trainer, self.given_data()
        if trainer.global_step and not trainer.ckpt_path:
            raise UserError("this Trainer has trained already; make a new one, or give ckpt_path")
        steps, epochs = int(trainer.max_steps), trainer.max_epochs
        if epochs not in (-1, None):
            assert data is not None  # see `setup`
            epoch, limit = data.epoch_steps(self.batch_needs), trainer.limit_train_batches
            epoch = min(epoch, limit) if isinstance(limit, int) else int(epoch * limit)
            by_epochs = max(epoch, 1) * int(epochs)
            steps = by_epochs if steps == -1 else min(steps, by_epochs)
        self.planned_steps, optimiser = steps, self.new_optimiser()
        schedule = self.optimisation.schedule(optimiser, steps)
        # a schedule of a subclass begins with the peak rates, not those of the first warm-up step,
        # which `on_train_start` sets for this one
        for group in optimiser.param_groups:
            group["lr"] = group["initial_lr"]
        return {"optimizer": optimiser, "lr_scheduler": schedule}

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
            in_a_row = checkpoint["progress"].get("skipped_in_a_row", 0)
            self.skipped_in_a_row = torch.tensor(in_a_row)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what a training that goes on has to have in common with this one."""
        checkpoint["progress"] = {
            "data": data_settings(self.given_data()),
            # of a sharded module, Lightning leaves out what is no tensor of a buffer
            "weighting": self.weighting.state_dict(),
            "skipped_in_a_row": int(self.skipped_in_a_row),
        }

    def on_train_start(self) -> None:
        schedule = self.lr_schedulers()
        if not isinstance(schedule, LambdaLR):  # a subclass's
            return
        # a checkpoint holds the rates of the schedule that it was written with
        for group, lr, factor in zip(
            schedule.optimizer.param_groups, schedule.base_lrs, schedule.lr_lambdas, strict=True
        ):
            group["lr"] = lr * factor(schedule.last_epoch)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Stop where updates were skipped; have an evaluation follow the last step."""
        step = self.trainer.global_step
        is_last = step >= self.planned_steps
        if is_last and self.monitor is not None:
            self.trainer.should_stop = True  # then Lightning evaluates
        if is_last or is_cpu(self.device) or step % READ_EVERY == 0:  # reading waits for a GPU
            self._check_finite(step, is_last)

    def on_validation_start(self) -> None:
        """Stop where updates were skipped, before an evaluation can end the stage."""
        if self.trainer.state.fn == TrainerFn.FITTING and not self.trainer.sanity_checking:
            self._check_finite(self.trainer.global_step, is_last=False)

    def _check_finite(self, step: int, is_last: bool) -> None:
        in_a_row, record = int(self.skipped_in_a_row), self.last_record
        if in_a_row >= self.non_finite_patience or (is_last and in_a_row == step):
            assert record is not None
            losses = dict(zip(record.tasks, record.losses.tolist(), strict=True))
            raise UserError(
                f"stage {self.stage}, step {step} (losses {losses}): {in_a_row} updates in a row "
                "were skipped, because a number was not finite; lower the learning rates "
                "(body_lr, end_head_lr), or use precision 32-true"
            )

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
        is_sharded = isinstance(self.shared, ShardedBody)
        with fork, fresh_casts(self.device) if is_sharded else nullcontext():
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
        self.skipped_in_a_row = torch.where(finite, 0, self.skipped_in_a_row + 1)
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


def _reads_alike(one: Encoder, other: Encoder) -> bool:
    if isinstance(one, TextEncoder) and isinstance(other, TextEncoder):
        return bool(one.tokenizer.get_vocab() == other.tokenizer.get_vocab())
    return isinstance(one, TextEncoder) == isinstance(other, TextEncoder)
