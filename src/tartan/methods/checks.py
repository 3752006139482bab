"""Checks of what would otherwise be trained or evaluated wrongly in silence.

Each raises a `UserError`. Whatever Lightning, torch or torchmetrics report is left to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor, nn

from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.data.task_data import TaskData
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.methods.launch import torchrun_processes
from tartan.methods.strategy import ReplicaStrategy, ShardStrategy

if TYPE_CHECKING:
    from tartan.methods.module import TaskMixing
    from tartan.methods.parts import TaskModule

PRECISIONS = ("bf16-mixed", "32-true", "64-true")
"""Lightning's precisions that work here: `16-mixed` needs a scaler of gradients, and with weights
in 16 bits small updates would be lost.
"""
_UNBOUNDED = (-1, None, 1000)
"""Numbers of epochs that do not say how long a training is; 1000 are Lightning's default."""
_PROBE = "Ein Bär sagt: The 3rd one's (un)likely 🐻"
"""A text that tokenizers with one vocabulary, but different rules, probably split differently."""


def check_trainer(trainer: pl.Trainer, module: TaskMixing) -> None:
    """Check that a Trainer's options train what they ask for."""
    is_training = trainer.state.fn == TrainerFn.FITTING
    if not isinstance(trainer.strategy, SingleDeviceStrategy | ReplicaStrategy | ShardStrategy):
        raise UserError(
            f"Trainer(strategy=...): {type(trainer.strategy).__name__} does not sum the gradients "
            "of single tasks; use devices=1, or strategy=ReplicaStrategy() or ShardStrategy() from "
            "tartan.methods.strategy"
        )
    # of torchrun's processes with devices=1, each would train alone, in the others' folder
    started = max(trainer.world_size, torchrun_processes() or 1)
    if started != trainer.num_devices * trainer.num_nodes:
        raise UserError(
            f"{started} process(es) were started, but devices={trainer.num_devices} "
            f"and num_nodes={trainer.num_nodes} ask for others; in a SLURM job srun starts them"
        )
    allowed = PRECISIONS if is_training else (*PRECISIONS, "16-mixed")
    if str(trainer.precision) not in allowed:
        raise UserError(f"Trainer(precision={trainer.precision!r}): use {', '.join(allowed)}")
    if is_training and trainer.max_steps == -1 and trainer.max_epochs in _UNBOUNDED:
        raise UserError(
            "give the Trainer max_steps or max_epochs, if only as an upper bound: the learning "
            "rate rises and falls over the whole training"
        )
    modes = {"dev/loss": "min"}
    if module.metrics is not None:
        modes |= {f"dev/{name}": mode for name, mode in module.metrics.modes.items()}
    for callback in trainer.callbacks if is_training else ():
        if isinstance(callback, StochasticWeightAveraging):
            raise UserError("StochasticWeightAveraging follows epochs; use EMAWeightAveraging")
        if isinstance(callback, EarlyStopping | ModelCheckpoint):
            mode = modes.get(callback.monitor or "", callback.mode)
            if callback.mode != mode:
                raise UserError(
                    f"{type(callback).__name__}(monitor={callback.monitor!r}) needs mode={mode!r}"
                )


def check_tasks(kind: type[TaskModule], names: Sequence[str], labels: Sequence[str]) -> None:
    """Check that tasks are those that a class trains, the end task first."""
    trains = (kind.trains_end_task, kind.trains_auxiliaries)
    if not names or trains != (names[0] == END_TASK, set(names) != {END_TASK}):
        raise UserError(
            f"{kind.__name__} does not train {', '.join(names) or 'no task'}, in this order"
        )
    if END_TASK in names and len(labels) < 2:
        raise UserError(f"the end task needs at least two labels, got {list(labels)}")


def check_arguments(kind: type[TaskModule], *, optimisation: object, **others: object) -> None:
    """Check that `for_data` gets no argument without effect."""
    has_effect = {
        "lr": optimisation is None,
        "head_lr": optimisation is None and kind.trains_end_task,
        "weighting": kind.trains_auxiliaries,
        "eta": others["weighting"] is None and kind.has_meta_head,
        "tasks": kind.trains_auxiliaries,
    }
    for name, value in others.items():
        if value is not None and not has_effect[name]:
            raise UserError(f"{kind.__name__}.for_data: {name} has no effect here; omit it")


def check_parts(module: TaskModule, heads: Mapping[str, nn.Module]) -> None:
    """Check that a module can train its parts, of which it continues with `heads`."""
    weighting, auxiliaries = module.weighting, [t for t in module.tasks if t.name != END_TASK]
    check_weighting(weighting, len(auxiliaries), module.sampled)
    if weighting.needs.meta_gradient and not module.has_meta_head:
        kind = type(weighting).__name__
        raise UserError(f"weighting {kind} needs a meta-gradient; use MetaTartan")
    labels = getattr(heads, "labels", ()) if END_TASK in heads else ()
    if labels and module.labels and labels != module.labels:
        raise UserError(
            f"heads are those of labels {list(labels)}, the end task's: {list(module.labels)}"
        )
    owners = {id(parameter): "the body" for parameter in module.body.parameters()}
    for name, head in module.heads.items():
        for parameter in head.parameters():
            owner = owners.setdefault(id(parameter), name)
            if owner != name:  # one of the two gradients would be lost
                raise UserError(
                    f"the head of task {name} holds a parameter of {owner}: let losses() read the "
                    "body's from its argument `body`, and tasks share a whole head by shared_head"
                )


def check_weighting(weighting: Weighting, auxiliaries: int, sampled: int | None) -> None:
    """Check that a weighting has no parameter, and the steps, sampled or not, that it needs."""
    kind = type(weighting).__name__
    for name, _ in weighting.named_parameters():
        raise UserError(
            f"weighting {kind} has a parameter {name!r}, which no optimiser trains; make it a "
            "buffer, and change it in mix(step)"
        )
    if weighting.needs.one_batch != (sampled is not None):
        needed = "all" if sampled else "sampled=N of the"
        raise UserError(f"weighting {kind} needs steps with {needed} auxiliary tasks")
    if sampled is not None and sampled > auxiliaries:
        raise UserError(f"sampled={sampled} of {auxiliaries} auxiliary tasks cannot be sampled")


def check_data(module: TaskMixing, data: TaskData, *, trains: bool) -> Tensor | None:
    """Check that data fit; return the module's indices of their labels, None for the same ones."""
    prepared = data.prepared
    if not _reads_alike(module.encoder, prepared.encoder):
        raise UserError(
            f"the data were read for encoder {prepared.encoder.name}, not the module's; use "
            "TartanData(..., encoder=module.encoder)"
        )
    if trains and (module.sampled or 0) > data.sizes.batch_size:
        size = data.sizes.batch_size
        raise UserError(f"sampled={module.sampled} tasks cannot share a batch of {size}")
    if module.end_task is None:
        return None
    length, labels = prepared.end_task.max_length, list(prepared.end_task.labels)
    if trains and length != module.max_length:
        raise UserError(f"max_length of the data is {length}, of the module {module.max_length}")
    if labels == list(module.labels):
        return None
    if trains or not set(labels) <= set(module.labels):
        raise UserError(f"the data's labels are {labels}, the module's {list(module.labels)}")
    return torch.tensor([module.labels.index(label) for label in labels])


def _reads_alike(one: Encoder, other: Encoder) -> bool:
    if not (isinstance(one, TextEncoder) and isinstance(other, TextEncoder)):
        return isinstance(one, TextEncoder) == isinstance(other, TextEncoder)
    this, that = one.tokenizer, other.tokenizer
    return this is that or (
        this.get_vocab() == that.get_vocab()
        and this(_PROBE)["input_ids"] == that(_PROBE)["input_ids"]
    )
