"""TorchJD's weightings, through one adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn

from src.core.gradients import gramian
from src.core.step import mixed_gradients
from src.core.task import Batch, MicroBatch, Task
from src.core.weighting.gramian import Gramian
from src.core.weighting.uniform import Uniform
from src.errors import UserError
from tests.conftest import ROOT

CONFIGS = [
    path
    for path in sorted((ROOT / "conf" / "weighting").glob("*.yaml"))
    if str(OmegaConf.load(path)._target_).endswith("Gramian")
]


class Regression:
    """The simplest objective that `src.core.task.Objective` describes."""

    def features(self, body, inputs):
        return body(inputs["x"])

    def targets(self, inputs):
        return inputs["y"]

    def loss(self, body, head, features, targets):
        return (head(features).squeeze(1) - targets).square().mean()


def problem(tasks):
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
    made = [Task(f"t{i}", Regression(), nn.Linear(6, 1)) for i in range(tasks)]
    batches = {
        task.name: Batch([MicroBatch({"x": torch.randn(8, 4), "y": torch.randn(8)}, 8)], 8)
        for task in made
    }
    return body, made, batches


def task_gradients(body, tasks, batches):
    rows = []
    for task in tasks:
        inputs = batches[task.name].micro_batches[0].inputs
        features = task.objective.features(body, inputs)
        loss = task.objective.loss(body, task.head, features, inputs["y"])
        rows.append(
            torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, body.parameters())])
        )
    return torch.stack(rows)


def test_the_gramian_holds_all_inner_products():
    gradients = [[torch.randn(3, 2), torch.randn(5)] for _ in range(4)]
    gradients[1][0] = None
    vectors = torch.stack(
        [
            torch.cat([(torch.zeros(3, 2) if g[0] is None else g[0]).reshape(-1), g[1]])
            for g in gradients
        ]
    )
    torch.testing.assert_close(gramian(gradients), vectors @ vectors.T)


def test_there_are_the_weightings_that_the_readme_names():
    names = {path.stem for path in CONFIGS}
    assert {"upgrad", "mgda", "pcgrad", "cagrad", "aligned_mtl", "imtl_g", "gradvac"} <= names


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_mixed_gradient_is_torchjds_combination(path: Path):
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    config = OmegaConf.load(path)
    try:
        weighting = Gramian(["t0", "t1", "t2"], config.torchjd, dict(config.options))
    except UserError as error:
        pytest.skip(str(error))
    body, tasks, batches = problem(3)
    torch.manual_seed(1)
    record = mixed_gradients(body, tasks, batches, weighting, reseed=lambda name, part: None)
    mixed = torch.cat([p.grad.reshape(-1) for p in body.parameters()])
    rows = task_gradients(body, tasks, batches)
    torch.testing.assert_close(mixed, record.weights @ rows, atol=1e-6, rtol=1e-5)
    again = Gramian(["t0", "t1", "t2"], config.torchjd, dict(config.options))
    torch.manual_seed(1)
    torch.testing.assert_close(record.weights, again.inner(rows @ rows.T), atol=1e-4, rtol=1e-4)


def test_mgda_finds_the_shortest_vector_of_the_hull():
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    body, tasks, batches = problem(2)
    weighting = Gramian(["t0", "t1"], "MGDAWeighting", {})
    record = mixed_gradients(body, tasks, batches, weighting, reseed=lambda name, part: None)
    rows = task_gradients(body, tasks, batches)
    shares = torch.linspace(0, 1, 1001)
    hull = shares[:, None] * rows[0] + (1 - shares[:, None]) * rows[1]
    found = (record.weights @ rows).norm()
    assert float(found) == pytest.approx(float(hull.norm(dim=1).min()), rel=1e-2)


def test_a_missing_package_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torchjd.aggregation", None)
    with pytest.raises(UserError, match=r"weightings"):
        Gramian(["a", "b"], "UPGradWeighting")


def test_an_unknown_class_is_named():
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    with pytest.raises(UserError, match=r"weighting\.torchjd=NoSuch"):
        Gramian(["a", "b"], "NoSuch")


def test_only_gramian_weightings_take_a_gramian():
    with pytest.raises(NotImplementedError, match="Uniform"):
        Uniform(["a"]).weigh(torch.eye(1))
