"""Composing configs and running experiments inside the test's own process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from torch import Tensor

import tartan.runs.command
import tartan.runs.run
from tartan.data.batches import EvaluationBatches, StepBatches
from tartan.data.task_data import TaskData
from tartan.methods.module import TaskMixing
from tests.conftest import ROOT, toy_task

# Tiny matrices: a second thread only waits, and where cores are shared it waits 20 times as long.
torch.set_num_threads(1)

CONF = ROOT / "conf"
STAGES = {
    "finetune": ["finetune"],
    "tapt": ["tapt", "finetune"],
    "dapt": ["dapt", "finetune"],
    "dapt_tapt": ["dapt", "tapt", "finetune"],
    "pretrain": ["pretrain", "finetune"],
    "mt_tartan": ["joint"],
    "meta_tartan": ["joint"],
    "tapt_mt_tartan": ["tapt", "joint"],
    "tapt_meta_tartan": ["tapt", "joint"],
    "aang": ["joint"],
    "aang_static": ["joint"],
    "continued_pretraining": ["adapt"],
    "released_tapt": ["finetune"],
    "released_dapt": ["finetune"],
    "released_dapt_tapt": ["finetune"],
}
"""The stages of each method that are enabled when nothing is said."""

OF_COMPOSED_OBJECTIVES = {"aang", "aang_static"}
"""Weightings that only mix `auxiliary=aang_td` and the like (tests/methods/test_aang.py)."""

State = dict[str, Tensor]


def config_of(options: Sequence[str]) -> DictConfig:
    """What `python -m src.run OPTIONS` would run, without Hydra's own settings."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=list(options))


def given_on_command_line(options: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Hydra know these as the command line's options, until the test ends."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        whole = compose("config", overrides=list(options), return_hydra_config=True)
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    HydraConfig.instance().set_config(whole)


def toy(data_dir: Path, cache_dir: Path, method: str, *options: str) -> list[str]:
    """`toy_task` for `method`, in batches of 8 and in float32, followed by `options`."""
    auxiliary = {"finetune": "none", "tapt": "tapt", "dapt": "dapt"}.get(method, "dapt_tapt")
    return [
        *toy_task(data_dir, cache_dir),
        "trainer.precision=32-true",
        f"method={method}",
        f"auxiliary={auxiliary}",
        *([f"auxiliary.dapt.path={data_dir}/corpus.txt"] if "dapt" in auxiliary else []),
        *(f"method.stages.{stage}.batch_size=8" for stage in STAGES[method]),
        *options,
    ]


@dataclass
class RecordedRun:
    """A run's result, and the parameters before and after each of its stages.

    `modules` and `tested_module` are the modules of the stages and the one that met the test split,
    as the run left them; `tested` is what the latter held.
    """

    folder: Path
    result: dict[str, Any] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    starts: dict[str, State] = field(default_factory=dict)
    ends: dict[str, State] = field(default_factory=dict)
    modules: dict[str, TaskMixing] = field(default_factory=dict)
    data: dict[str, StepBatches] = field(default_factory=dict)
    dev: dict[str, EvaluationBatches] = field(default_factory=dict)
    tested: State = field(default_factory=dict)
    tested_module: TaskMixing | None = None


def recorded_run(options: Sequence[str], folder: Path) -> RecordedRun:
    """Run an experiment, looking on."""
    run = RecordedRun(folder)
    fit_stage, evaluate_on_test = (
        tartan.runs.run.fit_stage,
        tartan.runs.run.evaluate_on_test,
    )

    def fit(module: TaskMixing, data: TaskData, *args: Any, name: str, **kwargs: Any) -> Any:
        run.events.append(name)
        run.data[name] = data.steps(module.batch_needs, "cpu")
        run.dev[name] = data.evaluation("dev")
        run.modules[name] = module
        run.starts[name] = copied(module)
        outcome = fit_stage(module, data, *args, name=name, **kwargs)
        run.ends[name] = copied(module)
        return outcome

    def test(module: TaskMixing, *args: Any, **kwargs: Any) -> Any:
        run.events.append("test")
        run.tested, run.tested_module = copied(module), module
        return evaluate_on_test(module, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tartan.runs.run, "fit_stage", fit)
        patch.setattr(tartan.runs.run, "evaluate_on_test", test)
        run.result = tartan.runs.run.run_experiment(config_of(options), folder).as_json()
    return run


def copied(module: TaskMixing) -> State:
    """Parameters and buffers as they are now, without the count of skipped steps."""
    state = {name: value.detach().clone() for name, value in module.state_dict().items()}
    state.pop("skipped", None)
    return state


def part(state: State, prefix: str) -> State:
    """The entries below `prefix`, named without it."""
    return {
        name.removeprefix(f"{prefix}."): value
        for name, value in state.items()
        if name.startswith(f"{prefix}.")
    }


def same(left: State, right: State) -> bool:
    """Whether two states are equal, entry for entry and bit for bit."""
    return left.keys() == right.keys() and all(left[name].equal(right[name]) for name in left)
