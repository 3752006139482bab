"""Hydra writes its own files and log; not through links in the folder of a stranger's run."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT
from tests.programs import called_for_text

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("sweep", [False, True])
@pytest.mark.parametrize("place", ["run.log", ".hydra", ".hydra/config.yaml", "config.yaml"])
def test_a_link_out_of_the_folder_ends_the_command_before_anything_is_written(
    place, sweep, tmp_path
):
    folder = tmp_path / "runs" / "own"
    (folder / place).parent.mkdir(parents=True)
    target = tmp_path / "elsewhere"
    target.mkdir() if place == ".hydra" else target.write_text("precious")
    (folder / place).symlink_to(target)
    where = f"hydra.run.dir={folder}"
    if sweep:
        where = f"hydra.sweep.dir={tmp_path / 'runs'} hydra.sweep.subdir=own -m"
    done = called_for_text("src.run", "encoder=tiny", "max_steps=1", *where.split(), cwd=ROOT)
    assert done.returncode == 1
    assert f"{place} is a link out of" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(target.iterdir()) == [] if target.is_dir() else target.read_text() == "precious"
