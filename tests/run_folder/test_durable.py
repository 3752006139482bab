"""Files are whole or not there."""

from __future__ import annotations

import pytest

from src.data.checksum import is_whole
from src.run_folder.durable import (
    remove,
    write_durably,
    write_with_checksum,
)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_durably(path, lambda scratch: scratch.write_text("old"))

    def fail(scratch):
        scratch.write_text("half of the n")
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        write_durably(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_file_counts_only_with_its_checksum(tmp_path):
    path = tmp_path / "file"
    write_durably(path, lambda scratch: scratch.write_text("content"))
    assert not is_whole(path)
    write_with_checksum(path, lambda scratch: scratch.write_text("content"))
    assert is_whole(path)
    path.write_text("Content")
    assert not is_whole(path)
    assert not is_whole(tmp_path / "nothing")


def test_what_is_removed_is_gone_with_its_checksum(tmp_path):
    path = tmp_path / "file"
    write_with_checksum(path, lambda scratch: scratch.write_text("content"))
    remove(path)
    assert list(tmp_path.iterdir()) == []
    remove(path)
