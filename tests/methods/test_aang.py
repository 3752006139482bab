"""AANG as a method: what a run leaves, what it shares, how it goes on, what it refuses."""

from __future__ import annotations

import pandas as pd
import pytest

from tartan.methods.module import TaskMixing
from tests.in_process import recorded_run, same, toy
from tests.methods.test_resume import Killed, kill_at  # noqa: F401

pytestmark = pytest.mark.slow


def options_of(data_dir, cache_dir, *more, method="aang", auxiliary="aang_td"):
    """Overrides that train the tiny encoder on sampled objectives."""
    ours = toy(data_dir, cache_dir, "finetune")
    domain = f"auxiliary.aang.data.domain.path={data_dir}/corpus.txt"
    return [
        *(option for option in ours if not option.startswith(("method", "auxiliary"))),
        f"auxiliary={auxiliary}",
        f"method={method}",
        *([domain] if auxiliary == "aang_td_ed" else []),
        "method.stages.joint.batch_size=12",
        "method.stages.joint.evaluate_every=3",
        *more,
    ]


@pytest.fixture
def options(data_dir, cache_dir):
    """`options_of` this session's data."""
    return lambda *more, **kinds: options_of(data_dir, cache_dir, *more, **kinds)


@pytest.fixture(scope="module")
def whole_run(data_dir, cache_dir, tmp_path_factory):
    """A run over 40 objectives; 7 steps, so that an update is pending at the end."""
    chosen = options_of(data_dir, cache_dir, "max_steps=7", auxiliary="aang_td_ed")
    return recorded_run(chosen, tmp_path_factory.mktemp("aang") / "run")


def test_a_run_leaves_weights_of_all_objectives_and_pictures(whole_run):
    weights = whole_run.result["final_task_weights"]
    assert len(weights) == 41
    assert sum(weights.values()) == pytest.approx(1, abs=1e-5)
    auxiliaries = [value for name, value in weights.items() if name != "end_task"]
    assert len(set(auxiliaries)) > 10  # they have moved apart
    assert (whole_run.folder / "task_weights.png").read_bytes().startswith(b"\x89PNG")


def test_logs_tell_of_each_steps_tasks_and_of_factors_at_evaluations(whole_run):
    steps = pd.read_csv(whole_run.folder / "steps.csv")
    assert (steps.groupby("step")["task"].nunique() == 4).all()
    assert steps["step"].max() == 7
    assert steps[["weight", "cosine", "loss"]].notna().all(axis=None)
    logged = pd.read_csv(whole_run.folder / "logs" / "joint" / "metrics.csv").set_index("step")
    factors = logged.filter(like="factor/").dropna()
    assert sorted(factors.index) == [0, 3, 6, 7]
    assert (factors.loc[0] == 0).all()
    assert (factors.loc[3] != factors.loc[6]).any()


def test_a_run_that_was_stopped_goes_on_bit_for_bit(options, tmp_path, kill_at):  # noqa: F811
    chosen = options("checkpoint_minutes=0", "max_steps=5")
    whole = recorded_run(chosen, tmp_path / "whole")

    kill_at(TaskMixing, "training_step", [5])
    with pytest.raises(Killed):
        recorded_run(chosen, tmp_path / "cut")
    cut = recorded_run(chosen, tmp_path / "cut")
    assert same(whole.ends["joint"], cut.ends["joint"])
    logs = [(tmp_path / name / "steps.csv").read_text() for name in ("whole", "cut")]
    assert logs[0] == logs[1]
    assert whole.result["final_task_weights"] == cut.result["final_task_weights"]
