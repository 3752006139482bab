"""Two processes never run in one folder at once."""

from __future__ import annotations

import fcntl
import os
import stat
import threading

import pytest
from filelock import FileLock

import tartan.runs.run
from tartan.errors import UserError
from tartan.runs.folder import LOCK, BusyError, exclusive_run, is_running
from tests.holder import held
from tests.in_process import config_of, toy


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    with held(tmp_path) as process:
        yield process


def test_a_run_where_another_is_running_is_refused(holder, tmp_path, data_dir, cache_dir):
    with pytest.raises(UserError, match=r"another process is running in .*hydra\.run\.dir"):
        tartan.runs.run.run_experiment(config_of(toy(data_dir, cache_dir, "finetune")), tmp_path)
    assert not (tmp_path / "config.yaml").exists()


def test_a_killed_process_leaves_the_folder_free(holder, tmp_path):
    holder.kill()
    holder.wait()
    with exclusive_run(tmp_path):
        pass


def test_a_glance_tells_whether_a_process_is_running_and_leaves_no_trace(holder, tmp_path):
    assert is_running(tmp_path)
    holder.kill()
    holder.wait()
    before = sorted(tmp_path.iterdir())
    assert not is_running(tmp_path)
    assert not is_running(tmp_path / "nothing")
    assert sorted(tmp_path.iterdir()) == before


def test_a_lock_whose_file_is_removed_holds(holder, tmp_path):
    (tmp_path / LOCK).unlink()
    assert is_running(tmp_path)
    with pytest.raises(BusyError), exclusive_run(tmp_path):
        pass
    assert is_running(tmp_path)
    holder.kill()
    holder.wait()
    assert not is_running(tmp_path)
    with exclusive_run(tmp_path):
        assert is_running(tmp_path)


def test_where_folders_cannot_be_locked_the_file_is(holder, tmp_path, monkeypatch):
    """As on NFS."""

    def flock(descriptor, operation):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(9, "Bad file descriptor")
        return original(descriptor, operation)

    original = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", flock)
    assert is_running(tmp_path)
    with pytest.raises(BusyError), exclusive_run(tmp_path):
        pass
    holder.kill()
    holder.wait()
    with exclusive_run(tmp_path):
        assert is_running(tmp_path)


def test_a_run_may_begin_while_someone_glances(tmp_path):
    """A report that looks at the lock must not turn a run away."""
    glance = FileLock(tmp_path / LOCK, thread_local=False)
    glance.acquire()
    threading.Timer(0.2, glance.release).start()
    with exclusive_run(tmp_path):
        pass


def test_processes_of_the_same_run_are_let_in(holder, tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    with exclusive_run(tmp_path):
        pass


@pytest.mark.parametrize("place", [LOCK, "steps.csv", "classifier", "checkpoints/a.part"])
def test_nothing_is_written_through_a_link_out_of_the_folder(place, tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "run" / place).symlink_to(tmp_path / "precious")
    assert not is_running(tmp_path / "run")
    with (
        pytest.raises(UserError, match=rf"{place} is a link out of"),
        exclusive_run(tmp_path / "run"),
    ):
        pass
    assert (tmp_path / "precious").read_text() == "precious"
