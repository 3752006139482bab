"""Each method on the toy task: its stages, what they hand on, and what is kept in the end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest
import torch

from tartan.evaluation.metrics import EndTaskMetrics
from tartan.methods.checkpoint import StageCheckpoints
from tests.in_process import STAGES, RecordedRun, part, recorded_run, same, toy

pytestmark = pytest.mark.slow

Runs = Callable[..., RecordedRun]


@pytest.fixture(scope="module")
def runs(data_dir, cache_dir, tmp_path_factory) -> Runs:
    """A recorded run by method and options; the same is run once."""
    known: dict[tuple[str, ...], RecordedRun] = {}

    def call(*choice: str) -> RecordedRun:
        if choice not in known:
            folder = tmp_path_factory.mktemp("run")
            known[choice] = recorded_run(toy(data_dir, cache_dir, *choice), folder)
        return known[choice]

    return call


@pytest.fixture
def new_run(data_dir, cache_dir, tmp_path) -> Runs:
    """A recorded run of its own, for tests that interfere."""
    return lambda *choice: recorded_run(toy(data_dir, cache_dir, *choice), tmp_path)


@pytest.fixture
def scripted(monkeypatch) -> Callable[..., None]:
    """Make the evaluations of a run, the test next, report these values of the metric; then 0."""

    def call(*values: float) -> None:
        compute, left = EndTaskMetrics.compute, chain(values, repeat(0.0))

        def scripted_compute(self: EndTaskMetrics, *args: Any, **kwargs: Any) -> Any:
            found = compute(self, *args, **kwargs)
            return {**found, "macro_f1": torch.tensor(next(left))}

        monkeypatch.setattr(EndTaskMetrics, "compute", scripted_compute)

    return call


def of_stage(name: str, **options: Any) -> list[str]:
    return [f"method.stages.{name}.{key}={value}" for key, value in options.items()]


def test_a_stage_starts_from_the_body_and_the_head_that_the_last_one_left(runs):
    run = runs("dapt_tapt")
    for before, after in (("dapt", "tapt"), ("tapt", "finetune")):
        assert same(part(run.ends[before], "body"), part(run.starts[after], "body"))
    assert same(part(run.ends["dapt"], "heads.dapt"), part(run.starts["tapt"], "heads.tapt"))
    assert not same(part(run.ends["dapt"], "heads.dapt"), part(run.ends["tapt"], "heads.tapt"))


def test_warmed_up_heads_on_a_frozen_body_are_those_that_joint_training_starts_from(runs):
    run = runs("meta_tartan", *of_stage("head_warmup", enabled="true", batch_size=8))
    assert run.events == ["head_warmup", "joint", "test"]
    before, after = run.starts["head_warmup"], run.ends["head_warmup"]
    assert same(part(before, "body"), part(after, "body"))
    for head in ("heads.dapt", "heads.tapt"):
        assert not same(part(before, head), part(after, head))
        assert same(part(after, head), part(run.starts["joint"], head))
    assert not same(part(run.starts["joint"], "body"), part(run.ends["joint"], "body"))


def test_meta_tartan_with_uniform_weights_is_mt_tartan_and_another_seed_is_another_run(runs):
    uniform, mt = runs("meta_tartan", "weighting=uniform"), runs("mt_tartan")
    for name in ("body", "heads"):
        assert same(part(uniform.ends["joint"], name), part(mt.ends["joint"], name))
    assert uniform.result["test"] == mt.result["test"]
    other = runs("mt_tartan", "seed=1")
    assert not same(part(other.ends["joint"], "body"), part(mt.ends["joint"], "body"))


@pytest.mark.parametrize("method", ["dapt_tapt", "meta_tartan"])
def test_the_size_of_a_micro_batch_changes_nothing(runs, method):
    options = ["encoder.dropout=0", "classifier.dropout=0", "trainer.precision=64-true"]
    small, large = (runs(method, *options, f"micro_batch_size={size}") for size in (3, 8))
    for name in STAGES[method]:
        for key, value in large.ends[name].items():
            torch.testing.assert_close(small.ends[name][key], value, rtol=1e-6, atol=1e-9)
            assert value.dtype in (torch.float64, torch.int64)


def test_activations_that_are_computed_again_change_no_bit(runs):
    options = ("meta_tartan", "micro_batch_size=3")
    again = runs(*options, "gradient_checkpointing=true")
    assert same(runs(*options).ends["joint"], again.ends["joint"])


def test_the_weights_of_the_best_evaluation_are_kept(new_run, scripted, monkeypatch):
    scripted(0.1, 0.5, 0.3, 0.5, 0.2, 0.4)
    seen = []
    keep = StageCheckpoints.on_validation_end

    def look(self, trainer, module):
        seen.append({k: v.detach().clone() for k, v in module.state_dict().items()})
        keep(self, trainer, module)

    monkeypatch.setattr(StageCheckpoints, "on_validation_end", look)
    run = new_run("finetune", *of_stage("finetune", evaluate_every=1, patience="null"))
    assert not same(part(seen[1], "body"), part(seen[2], "body"))
    for name in ("body", "heads"):  # the second evaluation: the earliest of the best
        assert same(part(run.ends["finetune"], name), part(seen[1], name))
        assert same(part(run.tested, name), part(seen[1], name))
    assert run.result["chosen"] == {"stage": "finetune", "step": 2}
    assert run.result["dev"]["whole"]["metrics"]["macro_f1"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("values", "kept", "step"),
    [
        ((0.6, 0.3, 0.2, 0.7), "last_finetune", 6),
        ((0.3, 0.6, 0.6, 0.1), "joint", 6),  # the earlier of equals
    ],
)
def test_the_better_of_joint_training_and_a_last_finetuning_from_its_best_is_kept(
    new_run, scripted, values, kept, step
):
    scripted(*values)
    last = of_stage("last_finetune", enabled="true", batch_size=8, evaluate_every=3)
    run = new_run("mt_tartan", *last, *of_stage("joint", evaluate_every=3))
    assert run.events == ["joint", "last_finetune", "test"]
    for name in ("body", "heads.end_task"):
        start = part(run.starts["last_finetune"], name)
        assert same(part(run.ends["joint"], name), start)
        assert not same(part(run.ends["last_finetune"], name), start)
        assert same(part(run.tested, name), part(run.ends[kept], name))
    assert list(run.modules["last_finetune"].heads) == ["end_task"]
    assert run.result["chosen"] == {"stage": kept, "step": step}
    assert run.result["dev"]["whole"]["metrics"]["macro_f1"] == pytest.approx(max(values))
