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
from tests.in_process import STAGES, toy
from tests.methods.processes import PROGRAM, children_of, difference, disturbed, finished
from tests.methods.test_aang import options_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
NEAR = 1e-9
UNEVEN = ("micro_batch_size=3", "trainer.precision=64-true", f"trainer.accelerator={DEVICE.type}")
"""Batches of 8 in parts of 3, 3 and 2."""
SEVERAL = torch.cuda.device_count() if DEVICE.type == "cuda" else 2
SHARDED = ("trainer=fsdp", f"trainer.devices={SEVERAL}")


def several(count):
    return ["trainer=ddp", f"trainer.devices={count}"] if count > 1 else []


@pytest.fixture
def command(data_dir, cache_dir):
    def call(method, *more):
        if method == "aang":
            return [*PROGRAM, *options_of(data_dir, cache_dir, *UNEVEN, *more)]
        return [*PROGRAM, *toy(data_dir, cache_dir, method, *UNEVEN, *more)]

    return call


@pytest.fixture
def ran(tmp_path):
    """The folder of a run that ends well; what it has printed is in `ran.output`."""

    def call(command, name, *more):
        code, call.output = finished([*command, *more, f"hydra.run.dir={name}"], tmp_path)
        assert code == 0, call.output
        return tmp_path / name

    return call


def temperature(run):
    return json.loads((run / "classifier" / "calibration.json").read_text())["temperature"]


@pytest.mark.slow
@pytest.mark.longest
def test_two_processes_give_the_run_of_one_also_after_a_kill(command, ran, tmp_path):
    meta = command("meta_tartan", "max_steps=20", "checkpoint_minutes=0")
    one = ran(meta, "one")

    def kill_one(pid):
        children = children_of(pid)
        assert len(children) == SEVERAL - 1
        os.kill(children[0], signal.SIGKILL)

    killed, meta = tmp_path / "killed", [*meta, *several(SEVERAL)]
    code, _ = disturbed([*meta, "hydra.run.dir=killed"], tmp_path, killed, kill_one)
    assert code != 0
    assert not (killed / "result.json").exists()
    assert difference(one, ran(meta, "killed"), "joint") < NEAR
    assert "continues after step" in ran.output
    # the closing table is there once, and no notice of Lightning's
    assert ran.output.count("task weights  end_task") == 1
    assert "sync_dist" not in ran.output
    (stage,) = json.loads((killed / "result.json").read_text())["stages"]
    assert stage["measured"]["processes"] == SEVERAL


@pytest.mark.processes
def test_a_signal_to_one_ends_all_with_a_point_and_another_number_goes_on(command, ran, tmp_path):
    meta = command("meta_tartan", "max_steps=60", "checkpoint_minutes=0")
    whole, run = ran(meta, "whole"), tmp_path / "run"

    def terminate_soon(pid):
        (child,) = children_of(pid)
        os.kill(child, signal.SIGTERM)

    two = [*meta, *several(2), "hydra.run.dir=run"]
    code, output = disturbed(two, tmp_path, run, terminate_soon)
    assert code == 128 + signal.SIGTERM, output
    assert output.count("run the same command to continue") == 1
    assert difference(whole, ran(meta, "run", *several(3)), "joint") < NEAR
    assert "continues after step" in ran.output


@pytest.mark.processes
@pytest.mark.parametrize(
    ("method", "options", "counts"),
    [
        ("meta_tartan", [], (2, 3)),
        ("meta_tartan", ["micro_batch_size=8"], (3,)),  # more than there are parts of a batch
        ("dapt_tapt", [], (3,)),
        ("aang", [], (2,)),
        ("mt_tartan", ["weighting=sdmgrad"], (2,)),
    ],
)
def test_methods_in_several_processes(method, options, counts, command, ran):
    whole = command(method, "max_steps=10", *options)
    one = ran(whole, "1")
    for count in counts:
        run = ran(whole, str(count), *several(count))
        assert all(difference(one, run, stage) < NEAR for stage in STAGES[method])
        assert temperature(run) == pytest.approx(temperature(one), rel=1e-4)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("method", "precision", "near"),
    [("meta_tartan", "32-true", 1e-4), ("dapt_tapt", "32-true", 1e-4),
     ("mt_tartan", "bf16-mixed", 2e-2)],
)  # fmt: skip
def test_a_sharded_body_is_trained_as_a_whole_one(method, precision, near, command, ran):
    whole = command(method, "max_steps=10", f"trainer.precision={precision}")
    one, other = ran(whole, "one"), ran(whole, "sharded", *SHARDED)
    assert all(difference(one, other, stage) < near for stage in STAGES[method])
    files = [load_file(run / "classifier" / "model.safetensors") for run in (one, other)]
    assert files[0].keys() == files[1].keys()
    assert all((files[0][n] - files[1][n]).abs().max() < near for n in files[0])


@pytest.mark.processes
def test_a_sharded_run_goes_on_after_a_kill(command, ran, tmp_path):
    options = ["weighting=sdmgrad", "trainer.precision=32-true", "max_steps=40", *SHARDED]
    whole = command("mt_tartan", "checkpoint_minutes=0", *options)
    undisturbed, killed = ran(whole, "undisturbed"), tmp_path / "killed"

    def kill_one(pid):
        os.kill(children_of(pid)[0], signal.SIGKILL)

    code, _ = disturbed([*whole, "hydra.run.dir=killed"], tmp_path, killed, kill_one)
    assert code != 0
    assert difference(undisturbed, ran(whole, "killed"), "joint") == 0
    assert temperature(killed) == temperature(undisturbed)
    assert "continues after step" in ran.output


@pytest.mark.processes
def test_torchrun_starts_the_processes_too(command, ran, tmp_path):
    meta = command("meta_tartan")
    torchrun = [PROGRAM[0], "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0"]
    torchrun += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", *meta[1:]]
    assert difference(ran(meta, "one"), ran(torchrun, "two", *several(2)), "joint") < NEAR
    code, output = finished([*torchrun, "hydra.run.dir=three"], tmp_path)
    assert code == 1
    assert "2 process(es) were started" in output


@pytest.mark.processes
def test_a_sweep_in_several_processes(command, tmp_path):
    meta = command("meta_tartan", "max_steps=3", *several(2))
    own = tmp_path / "my_conf" / "experiment" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# @package _global_\nmax_steps: 3\n")
    sweep = ["-m", "--config-dir=my_conf", "+experiment=mine", "seed=0,1", "hydra.sweep.dir=runs"]
    code, output = finished([*meta, *sweep], tmp_path)
    assert code == 0, output
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2
