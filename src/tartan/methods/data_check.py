"""Checks that a module and the data beside which a Trainer gets it belong together."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from tartan.core.task import Task
from tartan.core.task_names import END_TASK
from tartan.data.prepared import TEXT, Prepared
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.methods.plain import node_of
from tartan.methods.same_settings import as_text
from tartan.methods.training_step import TrainingStep
from tartan.settings import without_numpy

_PROBE = "Ein Bär sagt: The 3rd one's (un)likely 🐻"
"""A text that tokenizers with one vocabulary, but different rules, probably split differently."""


def check_data(module: TrainingStep, prepared: Prepared, *, trains: bool) -> Tensor | None:
    """Check that the module can be trained or evaluated on data that were read for another.

    Args:
        module: the module.
        prepared: the data.
        trains: whether the module is to be trained; else it is to be evaluated.

    Returns:
        The module's index of each of the data's labels, int64 `(labels,)`; None where the labels
        are the same or not needed. Evaluations may have some of the module's labels, in any order.

    Raises:
        UserError: labels, tokenizers, tasks, their objectives or the texts' maximum length differ.
    """
    _check_encoder(module.encoder, prepared.encoder)
    if trains:
        _check_tasks([task.name for task in module.tasks], prepared)
        for task in module.tasks:
            _check_objective(task, prepared)
    if module.end_task is None:
        return None
    length = prepared.end_task.max_length
    if trains and length != module.max_length:
        raise UserError(
            f"the data's texts are cut to max_length={length} tokens, the module's to "
            f"{module.max_length}: train a module made for these data, "
            f"{type(module).__name__}.for_data(data, ...)"
        )
    own, theirs = list(module.labels), list(prepared.end_task.labels)
    if own == theirs:
        return None
    if trains:
        raise UserError(
            f"the data's labels are {theirs}, the module's {own}: train a module made for these "
            f"data, {type(module).__name__}.for_data(data, ...)"
        )
    unknown = [label for label in theirs if label not in own]
    if unknown:
        raise UserError(
            f"the data have the label {unknown[0]!r}, which is not one of those that the module "
            f"was trained on: {own}"
        )
    return torch.tensor([own.index(label) for label in theirs])


def _check_encoder(own: Encoder, theirs: Encoder) -> None:
    if own is theirs:
        return
    texts = [isinstance(encoder, TextEncoder) for encoder in (own, theirs)]
    if isinstance(own, TextEncoder) and isinstance(theirs, TextEncoder):
        same = _same_tokens(own.tokenizer, theirs.tokenizer)
    else:
        same = texts[0] == texts[1]
    if not same:
        raise UserError(
            f"the data were read for encoder {theirs.name}, whose inputs are not those of the "
            f"module's, {own.name}; use TartanData(..., encoder=module.encoder)"
        )


def _same_tokens(one: PreTrainedTokenizerBase, other: PreTrainedTokenizerBase) -> bool:
    return one is other or (
        one.get_vocab() == other.get_vocab()
        and one(_PROBE)["input_ids"] == other(_PROBE)["input_ids"]
    )


def _check_objective(task: Task, prepared: Prepared) -> None:
    """Check that an objective is the one by which the data make the task's batches.

    The end task's may be another class, for a head of one's own, with the same class weights.
    """
    own, theirs = (
        without_numpy(node_of(objective))
        for objective in (task.objective, prepared.objective(task.name))
    )
    names = ("class_weights",) if task.name == END_TASK else {**own, **theirs}
    for name in names:
        values = [as_text(node.get(name)) for node in (own, theirs)]
        if values[0] != values[1]:
            raise UserError(
                f"task {task.name}: {name} of the module's objective is {values[0]}, of the "
                f"data's {values[1]}; give the module the fields of the data's, "
                f"data.prepared.objective({task.name!r})"
            )


def _check_tasks(own: list[str], prepared: Prepared) -> None:
    known = {TEXT} if prepared.held_out is not None else set(prepared.auxiliaries)
    missing = [name for name in own if name != END_TASK and name not in known]
    if missing:
        raise UserError(
            f"the module trains the auxiliary task {missing[0]}, which the data lack; they have "
            f"{sorted(known)}; add it to TartanData(auxiliaries=...)"
        )
