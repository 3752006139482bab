"""Checks of what would otherwise be trained or evaluated wrongly in silence.

Whatever Lightning, torch or torchmetrics report themselves is left to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.data.prepared import TEXT, Prepared
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.methods.strategy import ReplicaStrategy, ShardStrategy

if TYPE_CHECKING:
    from tartan.methods.module import TaskMixing

PRECISIONS = ("bf16-mixed", "32-true", "64-true")
"""Lightning's precisions that work here: `16-mixed` needs a scaler of gradients, and with weights
in 16 bits small updates would be lost.
"""
_UNBOUNDED = (-1, None, 1000)
"""Numbers of epochs that do not say how long a training is; 1000 are Lightning's default."""
_PROBE = "Ein Bär sagt: The 3rd one's (un)likely 🐻"
"""A text that tokenizers with one vocabulary, but different rules, probably split differently."""


def check_trainer(trainer: pl.Trainer, module: TaskMixing) -> None:
    """Raise a `UserError` where a Trainer's options would train something else than asked for."""
    is_training = trainer.state.fn == TrainerFn.FITTING
    if not isinstance(trainer.strategy, SingleDeviceStrategy | ReplicaStrategy | ShardStrategy):
        raise UserError(
            f"Trainer(strategy=...): {type(trainer.strategy).__name__} does not sum the gradients "
            "of single tasks; use devices=1, or strategy=ReplicaStrategy() or ShardStrategy() from "
            "tartan.methods.strategy"
        )
    allowed = PRECISIONS if is_training else (*PRECISIONS, "16-mixed")
    if str(trainer.precision) not in allowed:
        raise UserError(f"Trainer(precision={trainer.precision!r}): use {', '.join(allowed)}")
    if is_training and trainer.max_steps == -1 and trainer.max_epochs in _UNBOUNDED:
        raise UserError(
            "give the Trainer max_steps or max_epochs, if only as an upper bound: the learning "
            "rate rises and falls over the whole training"
        )
    modes = _modes(module)
    for callback in trainer.callbacks if is_training else ():
        if isinstance(callback, ModelCheckpoint) and callback._train_time_interval is not None:
            raise UserError(
                "ModelCheckpoint(train_time_interval=...): with manual optimisation Lightning "
                "writes none; use every_n_train_steps, or ResumePoints"
            )
        if isinstance(callback, EarlyStopping | ModelCheckpoint):
            mode = modes.get(callback.monitor or "", callback.mode)
            if callback.mode != mode:
                raise UserError(
                    f"{type(callback).__name__}(monitor={callback.monitor!r}) needs mode={mode!r}"
                )


def _modes(module: TaskMixing) -> dict[str, str]:
    """Return the direction, `min` or `max`, of the metrics whose direction is known."""
    modes = {"dev/loss": "min"} | {f"loss/{task.name}": "min" for task in module.tasks}
    for name, mode in ({} if module.metrics is None else module.metrics.modes).items():
        modes |= {f"dev/{name}": mode, f"dev/{name}_unseen": mode}
    if module.monitor is not None:
        name, mode = module.monitor.name, module.monitor.mode
        modes |= {f"dev/{name}": mode, f"dev_{name}": mode}
    return modes


def check_tasks(kind: type[TaskMixing], names: Sequence[str], labels: Sequence[str]) -> None:
    """Raise a `UserError` unless tasks are those that a class trains, the end task first."""
    expected = (kind.trains_end_task, kind.trains_auxiliaries)
    if names[:1] != [END_TASK] and END_TASK in names:
        raise UserError(f"the end task has to come first, not as in {', '.join(names)}")
    if expected != (END_TASK in names, names != [END_TASK]) or not names:
        raise UserError(f"{kind.__name__} does not train {', '.join(names) or 'no task'}")
    if END_TASK in names and len(labels) < 2:
        raise UserError(f"the end task needs at least two labels, got {list(labels)}")


def check_arguments(
    kind: type[TaskMixing], *, lr: float | None, optimisation: object, **others: object
) -> None:
    """Raise a `UserError` where `for_data` gets no or two rates, or an argument without effect."""
    if (lr is None) == (optimisation is None):
        raise UserError("give a learning rate, lr=2e-4, or all settings: optimisation=...")
    has_effect = {
        "head_lr": optimisation is None and kind.trains_end_task,
        "weighting": kind.trains_auxiliaries,
        "eta": others["weighting"] is None and kind.has_meta_head,
        "tasks": kind.trains_auxiliaries,
        "meta_head": kind.has_meta_head,
    }
    for name, value in others.items():
        if value is not None and not has_effect[name]:
            raise UserError(f"{kind.__name__}.for_data: {name} has no effect here; omit it")


def check_head_names(heads: Mapping[str, nn.Module], prepared: Prepared) -> None:
    """Raise a `UserError` unless heads to continue with are those of tasks that the data have.

    Of an earlier module's `heads` some may belong to other tasks.
    """
    known = {END_TASK, TEXT, *prepared.auxiliaries}
    if not isinstance(heads, nn.ModuleDict) and not set(heads) <= known:
        raise UserError(f"heads are given for {', '.join(heads)}; the tasks are {sorted(known)}")


def check_weighting(weighting: Weighting) -> None:
    """Raise a `UserError` unless a weighting has no parameter, which no optimiser would train."""
    for name, _ in weighting.named_parameters():
        raise UserError(
            f"weighting {type(weighting).__name__} has a parameter {name!r}, which no optimiser "
            "trains; make it a buffer, and change it in mix(step)"
        )


def check_sampling(
    weighting: Weighting, auxiliaries: int, sampled: int | None, option: str = "sampled"
) -> None:
    """Raise a `UserError` unless a weighting allows steps to sample tasks.

    Args:
        weighting: the weighting of the tasks.
        auxiliaries: number of auxiliary tasks.
        sampled: number of them that a step samples; None for all.
        option: the name of `sampled` in messages.
    """
    kind, needs = type(weighting).__name__, weighting.needs
    if sampled is None:
        if needs.one_batch:
            raise UserError(f"weighting {kind} needs steps that sample auxiliary tasks: {option}=N")
        return
    if sampled > auxiliaries:
        raise UserError(f"{option}={sampled} of {auxiliaries} auxiliary tasks cannot be sampled")
    buffers = {name for name, _ in weighting.named_buffers()}
    names_none = weighting.per_task is None and bool(buffers)
    if needs.every_task or names_none or not buffers >= set(weighting.per_task or ()):
        raise UserError(
            f"weighting {kind} may follow every task from step to step, of which "
            f"{option}={sampled} takes others in each; its class names the buffers that have an "
            "entry for each task in per_task"
        )


def check_heads(heads: Mapping[str, nn.Module], labels: Sequence[str]) -> None:
    """Raise a `UserError` unless a head to continue with has been trained on the same labels."""
    trained = getattr(heads, "labels", ()) if END_TASK in heads else ()
    if trained and labels and trained != tuple(labels):
        raise UserError(
            f"heads are those of labels {list(trained)}, the end task's: {list(labels)}"
        )


def check_own_parameters(body: nn.Module, heads: nn.ModuleDict) -> None:
    """Raise a `UserError` where heads or body share a parameter: one gradient is lost."""
    owners = {id(parameter): "the body" for parameter in body.parameters()}
    for name, head in heads.items():
        for parameter in head.parameters():
            owner = owners.setdefault(id(parameter), name)
            if owner != name:
                raise UserError(
                    f"the head of task {name} holds a parameter of {owner}: let losses() read the "
                    "body's from its argument `body`, and tasks share a whole head by shared_head"
                )


def check_optimised(module: TaskMixing, optimiser: torch.optim.Optimizer) -> None:
    """Raise a `UserError` unless the optimiser has every parameter that is trained."""
    known = {id(p) for group in optimiser.param_groups for p in group["params"]}
    # of a sharded body the shards, which it holds in place of gathered parameters from here on
    trained = [
        *module.shared.parameters,
        *(p for p in module.heads.parameters() if p.requires_grad),
    ]
    lacking = next((p for p in trained if id(p) not in known), None)
    if lacking is not None:
        name = next(name for name, p in module.named_parameters() if p is lacking)
        raise UserError(
            f"{name} is to be trained, but is not in the optimiser; freeze it before the training, "
            "or let new_optimiser() take it"
        )


def check_data(module: TaskMixing, prepared: Prepared, *, trains: bool) -> Tensor | None:
    """Return the module's index of each of the data's labels, int64 `(labels,)`, if it takes them.

    Args:
        module: the module.
        prepared: the data.
        trains: whether the module is to be trained; else it is to be evaluated.

    None stands for the same labels, or none. Evaluations may have some of the module's labels, in
    any order.
    """
    if not _reads_alike(module.encoder, prepared.encoder):
        raise UserError(
            f"the data were read for encoder {prepared.encoder.name}, not the module's; use "
            "TartanData(..., encoder=module.encoder)"
        )
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
    return one is other or _same_tokens(one.tokenizer, other.tokenizer)


def _same_tokens(one: PreTrainedTokenizerBase, other: PreTrainedTokenizerBase) -> bool:
    return one is other or (
        one.get_vocab() == other.get_vocab()
        and one(_PROBE)["input_ids"] == other(_PROBE)["input_ids"]
    )
