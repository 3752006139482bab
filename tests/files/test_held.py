"""One process holds a lock file, and the others are told."""

from __future__ import annotations

import pytest

from src.errors import UserError
from src.files.held import held


def test_a_lock_is_held_by_one_and_let_go_of(tmp_path):
    lock = tmp_path / "new" / "a.lock"
    for _ in range(2):
        with held(lock, "busy"):
            assert lock.exists()
            with pytest.raises(UserError, match=r"^busy$"), held(lock, "busy"):
                pytest.fail("two hold it")
    with pytest.raises(KeyError), held(lock, "busy"):
        raise KeyError
    with held(lock, "busy"):
        pass


def test_a_folder_that_cannot_be_one_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*file \(File exists\)"):
        held(tmp_path / "file" / "a.lock", "busy").__enter__()
