"""Whole runs on the device of the tests: equal for a seed, and equal after a kill."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import DEVICE
from tests.distributed.commands import PROGRAM, difference, disturbed, finished
from tests.in_process import toy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
]
ON_GPU = DEVICE.type == "cuda"


# whether a kernel has dropout makes a difference on a GPU only
@pytest.fixture(
    params=[0.1, pytest.param(0.0, marks=pytest.mark.skipif(not ON_GPU, reason="needs a GPU"))],
    ids=["padded where no kernel has dropout", "packed"],
)
def command(request, data_dir, cache_dir):
    """A run in the precision in which texts are packed on a GPU."""
    return [
        *PROGRAM, *toy(data_dir, cache_dir, "meta_tartan"), f"encoder.dropout={request.param}",
        f"trainer.accelerator={'gpu' if ON_GPU else 'cpu'}", "+trainer.deterministic=true",
        f"trainer.precision={'bf16-mixed' if ON_GPU else '32-true'}", "max_steps=15",
        "checkpoint_minutes=0",
    ]  # fmt: skip


def test_a_seed_gives_one_run_also_after_a_kill(command, tmp_path):
    whole, again, killed = (tmp_path / name for name in ("whole", "again", "killed"))
    for run in (whole, again):
        code, output = finished([*command, f"hydra.run.dir={run}"], tmp_path)
        assert code == 0, output
    assert difference(whole, again, "joint") == 0
    command = [*command, f"hydra.run.dir={killed}"]
    code, _ = disturbed(command, tmp_path, killed, lambda pid: os.kill(pid, signal.SIGKILL))
    assert code == -signal.SIGKILL
    code, output = finished(command, tmp_path)
    assert code == 0, output
    assert "goes on after step" in output
    assert difference(whole, killed, "joint") == 0
