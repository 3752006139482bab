"""Several processes give the run of one: in float64, with dropout on and parts of unequal size."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.conftest import DEVICE
from tests.in_process import OF_COMPOSED_OBJECTIVES, STAGES, toy
from tests.methods.processes import (
    PROGRAM,
    children_of,
    difference,
    disturbed,
    finished,
)
from tests.methods.test_aang import options_of
from tests.programs import called

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
NEAR = 1e-9
UNEVEN = ("micro_batch_size=3", "trainer.precision=64-true", f"trainer.accelerator={DEVICE.type}")
"""Batches of 8 in parts of 3, 3 and 2."""
STEPS = 30
SEVERAL = torch.cuda.device_count() if DEVICE.type == "cuda" else 2


def several(count):
    return ["trainer=ddp", f"trainer.devices={count}"]


@pytest.fixture
def options(data_dir, cache_dir):
    def call(method, *more):
        return toy(data_dir, cache_dir, method, *UNEVEN, *more)

    return call


@pytest.mark.slow
@pytest.mark.longest
def test_two_processes_give_the_run_of_one_also_after_a_kill(options, tmp_path):
    meta = options("meta_tartan", f"max_steps={STEPS}", "checkpoint_minutes=0")
    done = called("src.run", *meta, "hydra.run.dir=one", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    two = [*PROGRAM, *meta, *several(SEVERAL)]
    code, output = finished([*two, "hydra.run.dir=two"], tmp_path)
    assert code == 0, output
    assert difference(tmp_path / "one", tmp_path / "two", "joint") < NEAR
    # the closing table is there once, and no notice of Lightning's
    assert output.count("task weights  end_task") == 1
    assert "sync_dist" not in output
    (stage,) = json.loads((tmp_path / "two" / "result.json").read_text())["stages"]
    assert stage["measured"]["processes"] == SEVERAL

    def kill_one(pid):
        children = children_of(pid)
        assert len(children) == SEVERAL - 1
        os.kill(children[0], signal.SIGKILL)

    killed = [*two, "hydra.run.dir=killed"]
    code, output = disturbed(killed, tmp_path, tmp_path / "killed", kill_one)
    assert code != 0
    assert not (tmp_path / "killed" / "result.json").exists()
    code, output = finished(killed, tmp_path)
    assert code == 0, output
    assert "continues after step" in output
    assert difference(tmp_path / "two", tmp_path / "killed", "joint") == 0


@pytest.mark.processes
def test_a_killed_main_process_ends_all(options, tmp_path):
    command = [*PROGRAM, *options("meta_tartan", "max_steps=400", "checkpoint_minutes=0")]
    command += [*several(2), "hydra.run.dir=run"]
    code, _ = disturbed(
        command, tmp_path, tmp_path / "run", lambda pid: os.kill(pid, signal.SIGKILL)
    )
    assert code == -signal.SIGKILL


@pytest.mark.processes
def test_a_signal_to_one_ends_all_with_a_point_and_another_number_goes_on(options, tmp_path):
    command = [*PROGRAM, *options("meta_tartan", "max_steps=60", "checkpoint_minutes=100")]
    whole, run = tmp_path / "whole", tmp_path / "run"
    code, output = finished([*command, f"hydra.run.dir={whole}"], tmp_path)
    assert code == 0, output

    def terminate_soon(pid):
        (child,) = children_of(pid)
        os.kill(child, signal.SIGTERM)

    every = ["checkpoint_minutes=0", f"hydra.run.dir={run}"]
    code, output = disturbed([*command, *every, *several(2)], tmp_path, run, terminate_soon)
    assert code == 128 + signal.SIGTERM, output
    assert output.count("run the same command to continue") == 1
    code, output = finished([*command, *every, *several(3)], tmp_path)
    assert code == 0, output
    assert "continues in 3 process(es), was in 2" in output
    assert difference(whole, run, "joint") < NEAR


@pytest.mark.processes
@pytest.mark.parametrize("method", ["meta_tartan", "dapt_tapt", "aang"])
def test_methods_in_two_and_three_processes(method, options, data_dir, cache_dir, tmp_path):
    if method in OF_COMPOSED_OBJECTIVES:
        own = options_of(data_dir, cache_dir, "max_steps=30", *UNEVEN, method=method)
    else:
        own = options(method, "max_steps=30")
    whole = [*PROGRAM, *own]
    for count in (1, 2, 3):
        how = several(count) if count > 1 else []
        code, output = finished([*whole, *how, f"hydra.run.dir={count}"], tmp_path)
        assert code == 0, output
    for count in (2, 3):
        for stage in STAGES[method]:
            assert difference(tmp_path / "1", tmp_path / str(count), stage) < NEAR


@pytest.mark.processes
@pytest.mark.parametrize("weighting", ["meta_examples", "sdmgrad", "random"])
def test_every_kind_of_weighting_in_two_processes(weighting, options, tmp_path):
    method = "meta_tartan" if weighting == "meta_examples" else "mt_tartan"
    whole = [*PROGRAM, *options(method, "max_steps=10", f"weighting={weighting}")]
    for count in (1, 2):
        how = several(count) if count > 1 else []
        code, output = finished([*whole, *how, f"hydra.run.dir={count}"], tmp_path)
        assert code == 0, output
    assert difference(tmp_path / "1", tmp_path / "2", "joint") < NEAR


@pytest.mark.processes
@pytest.mark.parametrize(
    ("method", "precision", "near"),
    [
        ("meta_tartan", "32-true", 1e-4),
        ("dapt_tapt", "32-true", 1e-4), ("mt_tartan", "bf16-mixed", 2e-2),
    ],
)  # fmt: skip
def test_a_sharded_body_is_trained_as_a_whole_one(method, precision, near, options, tmp_path):
    whole = [*PROGRAM, *options(method, "max_steps=10", f"trainer.precision={precision}")]
    sharded = ["trainer=fsdp", f"trainer.devices={SEVERAL}"]
    for name, how in (("one", []), ("sharded", sharded)):
        code, output = finished([*whole, *how, f"hydra.run.dir={name}"], tmp_path)
        assert code == 0, output
    one, other = tmp_path / "one", tmp_path / "sharded"
    for stage in STAGES[method]:
        assert difference(one, other, stage) < near
    files = [load_file(run / "classifier" / "model.safetensors") for run in (one, other)]
    assert files[0].keys() == files[1].keys()
    assert all((files[0][n] - files[1][n]).abs().max() < near for n in files[0])


@pytest.mark.processes
def test_a_sharded_run_goes_on_after_a_kill(options, tmp_path):
    method = ["mt_tartan", "weighting=sdmgrad", "trainer.precision=32-true"]
    command = [*PROGRAM, *options(*method, "max_steps=40", "checkpoint_minutes=0")]
    command += ["trainer=fsdp", "trainer.devices=2"]
    undisturbed, killed = (tmp_path / name for name in ("undisturbed", "killed"))
    code, output = finished([*command, f"hydra.run.dir={undisturbed}"], tmp_path)
    assert code == 0, output
    command += [f"hydra.run.dir={killed}"]
    code, _ = disturbed(
        command, tmp_path, killed, lambda pid: os.kill(children_of(pid)[0], signal.SIGKILL)
    )
    assert code != 0
    code, output = finished(command, tmp_path)
    assert code == 0, output
    assert "continues after step" in output
    assert difference(undisturbed, killed, "joint") == 0


@pytest.mark.processes
def test_more_processes_than_micro_batches(options, tmp_path):
    whole = [*PROGRAM, *options("meta_tartan", "micro_batch_size=8")]
    for count in (1, 3):
        how = several(count) if count > 1 else []
        code, output = finished([*whole, *how, f"hydra.run.dir={count}"], tmp_path)
        assert code == 0, output
    assert difference(tmp_path / "1", tmp_path / "3", "joint") < NEAR


@pytest.mark.processes
def test_torchrun_starts_the_processes_too(options, tmp_path):
    torchrun = [PROGRAM[0], "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0"]
    torchrun += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "-m", "src.run"]
    meta = options("meta_tartan")
    code, output = finished([*PROGRAM, *meta, "hydra.run.dir=one"], tmp_path)
    assert code == 0, output
    code, output = finished([*torchrun, *meta, *several(2), "hydra.run.dir=two"], tmp_path)
    assert code == 0, output
    assert difference(tmp_path / "one", tmp_path / "two", "joint") < NEAR
    code, output = finished([*torchrun, *meta, "hydra.run.dir=three"], tmp_path)
    assert code == 1
    assert "torchrun has started 2 processes, but trainer.devices=1" in output


@pytest.mark.processes
def test_a_sweep_in_several_processes(options, tmp_path):
    meta = options("meta_tartan", "max_steps=3")
    own = tmp_path / "my_conf" / "experiment" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# @package _global_\nmax_steps: 3\n")
    sweep = [*PROGRAM, "-m", "--config-dir=my_conf", "+experiment=mine", *meta, *several(2)]
    sweep += ["seed=0,1", "hydra.sweep.dir=runs"]
    code, output = finished(sweep, tmp_path)
    assert code == 0, output
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2


@pytest.mark.processes
def test_an_error_in_all_processes_is_one_line(options, tmp_path):
    meta = options("meta_tartan", "method.stages.joint.optimisation.body_lr=1e30")
    code, output = finished([*PROGRAM, *meta, *several(2), "max_steps=20"], tmp_path)
    assert code == 1
    assert output.count("error: stage joint") == 1
