"""Files are whole or not there."""

from __future__ import annotations

import pytest
import torch

from src.errors import UserError
from src.run_folder.durable import (
    DurableCheckpointIO,
    is_whole,
    load_whole,
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


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    state = {"weights": torch.arange(5.0), "step": 3, "names": ["a", "b"]}
    DurableCheckpointIO().save_checkpoint(state, tmp_path / "a.ckpt")
    loaded = load_whole(tmp_path / "a.ckpt")
    assert torch.equal(loaded.pop("weights"), state.pop("weights"))
    assert loaded == state


class Malicious:
    def __reduce__(self):
        return (print, ("executed",))


def test_nothing_in_a_checkpoint_is_executed(tmp_path, capsys):
    path = tmp_path / "a.ckpt"
    write_with_checksum(path, lambda scratch: torch.save({"x": Malicious()}, scratch))
    with pytest.raises(Exception, match=r"[Ww]eights.only"):
        load_whole(path)
    assert "executed" not in capsys.readouterr().out


def test_a_damaged_checkpoint_is_named(tmp_path):
    path = tmp_path / "a.ckpt"
    DurableCheckpointIO().save_checkpoint({"step": 3}, path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UserError, match=r"a\.ckpt is not the file that was written"):
        load_whole(path)
