"""One process holds a lock file, and the others are told."""

from __future__ import annotations

import fcntl

import pytest

from tartan.errors import UserError
from tartan.files.process_lock import process_lock


def test_a_lock_is_held_by_one_and_let_go_of(tmp_path):
    lock = tmp_path / "new" / "a.lock"
    for _ in range(2):
        with process_lock(lock, "busy"):
            assert lock.exists()
            with pytest.raises(UserError, match=r"^busy$"), process_lock(lock, "busy"):
                pytest.fail("two hold it")
    with pytest.raises(KeyError), process_lock(lock, "busy"):
        raise KeyError
    with process_lock(lock, "busy"):
        pass


def test_a_lock_file_that_its_holder_removes_is_not_held_by_who_waited(tmp_path, monkeypatch):
    """Between its opening and its locking: a third process would lock a new file."""
    path, lock = tmp_path / "a.lock", fcntl.flock
    removed = []

    def late(descriptor, operation):
        if not removed:
            removed.append(path.unlink())
        return lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with process_lock(path, "busy"):
        assert removed
        with pytest.raises(UserError, match=r"^busy$"), process_lock(path, "busy"):
            pytest.fail("two hold it")


def test_a_folder_that_cannot_be_one_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*file \(File exists\)"):
        process_lock(tmp_path / "file" / "a.lock", "busy").__enter__()
