"""One step in two processes, on replicas and on a sharded body, against the step of one."""

from __future__ import annotations

import os

import pytest
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.multiprocessing import start_processes

from tartan.core.body import SharedBody
from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.core.passes import Passes
from tartan.core.step import Step
from tartan.core.task import Batch, MicroBatch, StepBatch, Task
from tartan.core.weighting.loss_based import Uncertainty
from tartan.core.weighting.meta import Meta
from tartan.data.batches import share_of
from tartan.methods.shards import ShardedBody, shard
from tartan.methods.strategy import ReplicatedBody

pytestmark = pytest.mark.slow

NAMES = ["end", "first", "second"]
DOUBLE = torch.float64


class Regression:
    def features(self, body, inputs):
        return body(inputs["x"])

    def targets(self, inputs):
        return inputs["y"]

    def losses(self, body, head, features, targets):
        return (head(features).squeeze(1) - targets).square()


def batch(*sizes):
    parts = [
        MicroBatch({"x": torch.randn(n, 5).double(), "y": torch.randn(n).double()}, n, n)
        for n in sizes
    ]
    return Batch(parts, sum(sizes))


def take(kind, weighting, rank=0):
    """The record and all gradients of a step; parts of unequal number and size."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 5)).double()
    tasks = [Task(name, Regression(), nn.Linear(5, 1).double()) for name in NAMES]
    whole = StepBatch(
        0, dict(zip(NAMES, (batch(3, 2, 4), batch(4), batch(2, 2, 3)), strict=True)),
        meta_batch=batch(3, 1, 2), meta_head_batch=batch(4, 4, 1),
    )  # fmt: skip
    meta_head = MetaHead(tasks[0].head, MetaHeadSettings(steps=3, examples=9, examples_from="rest"))
    shared = SharedBody(body, DOUBLE)
    if kind == "replicas":
        shared, whole = ReplicatedBody(body, DOUBLE), share_of(whole, rank, 2)
    elif kind == "sharded":
        shard(body, init_device_mesh("cpu", (2,)))
        shared = ShardedBody(body, DOUBLE)
        whole = share_of(whole, rank, 2, equally_often=True)
    passes = Passes(shared, lambda purpose, part: torch.manual_seed(part))
    record, of_step = Step(passes, tasks, whole, meta_head).run(weighting(NAMES).mix)
    of_step.put()
    gradients = [p.grad for m in (body, *(task.head for task in tasks)) for p in m.parameters()]
    return record, [g.full_tensor() if isinstance(g, DTensor) else g for g in gradients]


def compare(rank, meeting_point):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE="2")
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2
    )
    for weighting in (Meta, Uncertainty):
        expected, alone = take("alone", weighting)
        for kind in ("replicas", "sharded"):
            record, gradients = take(kind, weighting, rank)
            for name in ("losses", "weights", "gradient_norms", "squared_norm", "cosines"):
                found, wanted = getattr(record, name), getattr(expected, name)
                if wanted is not None:
                    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-9)
            for found, wanted in zip(gradients, alone, strict=True):
                torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-9)
    expected = running_statistics(SharedBody, lambda whole: whole)
    found = running_statistics(ReplicatedBody, lambda whole: share_of(whole, rank, 2))
    for name, wanted in expected.items():
        torch.testing.assert_close(found[name], wanted, rtol=1e-6, atol=1e-9)
    distributed.destroy_process_group()


def running_statistics(kind, shared_out):
    """Those of a body with batch normalisation after three steps, a micro-batch for each task."""
    torch.manual_seed(1)
    norm = nn.BatchNorm1d(6, dtype=DOUBLE)
    body = nn.Sequential(nn.Linear(5, 6, dtype=DOUBLE), norm)
    tasks = [Task(name, Regression(), nn.Linear(6, 1).double()) for name in NAMES]
    meta_head = MetaHead(tasks[0].head, MetaHeadSettings(steps=1))
    weighting, shared = Meta(NAMES), kind(body, DOUBLE)
    for step in range(3):
        whole = StepBatch(step, {name: batch(4 + step) for name in NAMES}, meta_batch=batch(5))
        Step(Passes(shared), tasks, shared_out(whole), meta_head).run(weighting.mix)
    return {"mean": norm.running_mean, "variance": norm.running_var}


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")
def test_replicas_and_shards_take_the_step_of_one_process(tmp_path):
    start_processes(compare, args=(tmp_path / "meeting",), nprocs=2, start_method="spawn")
