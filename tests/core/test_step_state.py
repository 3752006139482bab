"""A step never reads a number back from a device that it would have to wait for.

Tensors on `meta` have no numbers: whatever reads one there fails.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from tartan.core.device import StepState
from tartan.core.weighting.fixed import Uniform
from tartan.core.weighting.loss_based import Uncertainty
from tartan.core.weighting.meta import Meta
from tartan.methods.optimisation import prepare_update
from tests.core.test_step_properties import problem, step

META = torch.device("meta")


def on_meta(kind):
    body, tasks, batches, meta_batch = problem(0, auxiliaries=2, dtype=torch.float32)
    for task in tasks:
        task.head.to(META)
    for batch in (*batches.values(), meta_batch):
        part = batch.micro_batches[0]
        part.inputs = {name: tensor.to(META) for name, tensor in part.inputs.items()}
    weighting = kind([task.name for task in tasks]).to(META)
    body = body.to(META)
    return body, lambda: step(0, body, tasks, batches, meta_batch, weighting, dtype=torch.float32)


@pytest.mark.parametrize("kind", [Uniform, Uncertainty, Meta])
def test_a_step_reads_nothing_back(kind, monkeypatch):
    monkeypatch.setattr(torch, "autocast", lambda *a, **k: nullcontext())  # knows no `meta`
    body, take = on_meta(kind)
    state = StepState([body], body.parameters())
    record = take()
    finite = record.squared_norm.isfinite() & record.losses.isfinite().all()
    state.restore_unless(finite)
    optimiser = torch.optim.AdamW(body.parameters())
    optimiser.defaults["fused"] = True  # as on a GPU; the kernel itself is torch's
    prepare_update(optimiser, record.squared_norm.sqrt(), 1.0, finite)
    assert optimiser.found_inf.device == optimiser.grad_scale.device == META
    assert all(p.grad.device == META for p in body.parameters())
