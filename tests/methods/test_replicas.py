"""Sums over replicas, in a group of one process."""

from __future__ import annotations

import pytest
import torch
from torch import distributed

from tartan.core.body import SharedBody
from tartan.core.passes import Passes, Purpose
from tartan.core.task import Batch
from tartan.methods.strategy import ReplicatedBody
from tests.core.test_step_properties import problem


@pytest.fixture
def group():
    distributed.init_process_group("gloo", rank=0, world_size=1, store=distributed.HashStore())
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("kind", [SharedBody, ReplicatedBody])
def test_a_batch_without_units_reaches_nothing_whenever_it_comes(kind):
    """A zero instead of nothing would have AdamW decay the weights, and move them by momentum."""
    body, tasks, batches, _ = problem(0, 1)
    passes = Passes(kind(body, torch.float64))
    own, empty = batches[tasks[0].name], Batch([], examples=2)
    for batch, reaches in ((empty, False), (own, True), (empty, False), (own, True)):
        found = passes.gradient(Purpose("task", tasks[0].name), tasks[0], batch)
        assert bool(found.loss != 0) is reaches
        assert {value is not None for value in (*found.values, *found.of_head)} == {reaches}
        assert len(found.of_head) == len(list(tasks[0].head.parameters()))
