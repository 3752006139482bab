"""Whole runs on the device of the tests: equal for a seed, and equal after a kill."""

from __future__ import annotations

import signal

import pytest

from tests.conftest import DEVICE
from tests.in_process import toy
from tests.methods.processes import difference, wait_for_point
from tests.programs import called, started

pytestmark = pytest.mark.slow
ON_GPU = DEVICE.type == "cuda"


# whether a kernel has dropout makes a difference on a GPU only
@pytest.fixture(
    params=[0.1, pytest.param(0.0, marks=pytest.mark.skipif(not ON_GPU, reason="needs a GPU"))],
    ids=["padded where no kernel has dropout", "packed"],
)
def options(request, data_dir, cache_dir):
    """A run in the precision in which texts are packed on a GPU."""
    return [
        *toy(data_dir, cache_dir, "meta_tartan"), f"encoder.dropout={request.param}",
        f"trainer.accelerator={'gpu' if ON_GPU else 'cpu'}", "+trainer.deterministic=true",
        f"trainer.precision={'bf16-mixed' if ON_GPU else '32-true'}", "max_steps=15",
        "checkpoint_minutes=0",
    ]  # fmt: skip


def test_a_seed_gives_one_run_also_after_a_kill(options, tmp_path):
    whole, again, killed = (tmp_path / name for name in ("whole", "again", "killed"))
    for run in (whole, again):
        done = called("src.run", *options, f"hydra.run.dir={run}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert difference(whole, again, "joint") == 0
    options = [*options, f"hydra.run.dir={killed}"]
    run = started("src.run", *options, cwd=tmp_path)
    wait_for_point(killed, "joint", 3)
    run.kill()
    assert run.wait().returncode == -signal.SIGKILL
    done = called("src.run", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"continues after step" in done.stderr + done.stdout
    assert difference(whole, killed, "joint") == 0
