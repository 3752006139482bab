"""Takes a step with TorchJD's `mtl_backward` and its aggregator UPGrad."""

from __future__ import annotations

import copy
import importlib

import torch
from torch import nn

from benchmarks.case import BuiltCase
from tartan.core.task import StepBatch


class TorchJDStep:
    """Takes optimiser steps on a case's batches, on copies of its body and heads.

    The decoder of a masked-LM head is tied to the body. `mtl_backward` does not accept a parameter
    as both shared and a task's, so the decoder's part of the embeddings' gradient is omitted.

    Args:
        case: the case.
        device: the device of the copies.
    """

    def __init__(self, case: BuiltCase, device: torch.device) -> None:
        module = case.module
        self._case, self._device = case, device
        self._objectives = {task.name: task.objective for task in module.tasks}
        body, heads = copy.deepcopy((module.body, list(module.heads.values())))
        self._body, self._heads = body.to(device), [head.to(device) for head in heads]
        self._optimiser = module.optimisation.optimiser(self._body, self._heads[0], self._heads[1:])
        self._clip = module.optimisation.clip_norm
        self._autojac = importlib.import_module("torchjd.autojac")
        self._aggregator = importlib.import_module("torchjd.aggregation").UPGrad()

    def step(self, batch: StepBatch) -> None:
        """Take one optimiser step, on batches of one micro-batch each."""
        losses, features = [], []
        with self._case.autocast(self._device):
            for (name, objective), head in zip(self._objectives.items(), self._heads, strict=True):
                own = batch.tasks[name]
                (part,) = own.micro_batches
                states = objective.features(self._body, part.inputs)
                targets = objective.targets(part.inputs)
                losses.append(objective.losses(self._body, head, states, targets).sum() / own.units)
                features.append(states)
        self._autojac.mtl_backward(
            losses,
            features,
            tasks_params=[list(head.parameters()) for head in self._heads],
            shared_params=list(self._body.parameters()),
            parallel_chunk_size=1,
        )
        self._autojac.jac_to_grad(list(self._body.parameters()), self._aggregator)
        if self._clip is not None:
            trained = [p for group in self._optimiser.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(trained, self._clip)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
