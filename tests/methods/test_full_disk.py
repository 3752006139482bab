"""A disk that fills up while a checkpoint is written: one line, and nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess

import pytest

import tartan.experiment.run
from tartan import files as durable
from tartan.errors import UserError
from tests.in_process import config_of, toy
from tests.methods.test_resume import assert_same_run, options_of, run

pytestmark = pytest.mark.slow


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 12 MB, where this process may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount command here")
def test_after_freeing_space_the_same_command_ends_as_if_nothing_had_been(
    small_disk, data_dir, cache_dir, tmp_path
):
    options = [*options_of("meta_tartan", data_dir, cache_dir), "logger=none"]
    run(options, tmp_path / "undisturbed")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(10_500_000))
    with pytest.raises(UserError) as caught:
        run(options, small_disk / "run")
    assert str(caught.value) == (
        f"the disk of {small_disk}/run is full; free some space and run the same command to "
        "continue from where it was"
    )
    assert not (small_disk / "run" / "result.json").exists()
    assert not list(small_disk.rglob("*.part"))
    done = (small_disk / "run" / "steps.csv").read_text().count("\n")
    assert done > 1
    ballast.unlink()
    run(options, small_disk / "run")
    assert_same_run(small_disk / "run", tmp_path / "undisturbed")


@pytest.mark.parametrize("failing", range(2, 16, 3))
def test_whichever_file_does_not_fit(failing, data_dir, cache_dir, tmp_path, monkeypatch):
    """Every file that a run writes durably, one after the other."""
    options = options_of("dapt_tapt", data_dir, cache_dir)
    run(options, tmp_path / "undisturbed")
    flush, written = os.fsync, [0]

    def full(descriptor):
        written[0] += 1
        if written[0] == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(descriptor)

    monkeypatch.setattr(durable.os, "fsync", full)
    with pytest.raises(UserError, match="is full; free some space"):
        run(options, tmp_path / "run")
    run(options, tmp_path / "run")
    assert_same_run(tmp_path / "run", tmp_path / "undisturbed")


def test_other_trouble_with_the_disk_is_not_called_full(data_dir, cache_dir, tmp_path, monkeypatch):
    def broken(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(durable.os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        tartan.experiment.run.run_experiment(
            config_of(toy(data_dir, cache_dir, "finetune")), tmp_path
        )
