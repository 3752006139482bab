"""Checkpoints come back as they were, or not at all."""

from __future__ import annotations

import pytest
import torch

from tartan.errors import UserError
from tartan.files import write_with_checksum
from tartan.methods.checkpoint_io import DurableCheckpointIO, load_whole


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
    for load in (load_whole, DurableCheckpointIO().load_checkpoint):
        with pytest.raises(UserError, match=r"holds more than numbers .* remove") as caught:
            load(path)
        assert "weights_only" not in str(caught.value)
    assert "executed" not in capsys.readouterr().out


def test_a_damaged_checkpoint_is_named(tmp_path):
    path = tmp_path / "a.ckpt"
    DurableCheckpointIO().save_checkpoint({"step": 3}, path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UserError, match=r"a\.ckpt is not the file that was written"):
        load_whole(path)
