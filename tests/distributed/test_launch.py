"""Nothing of a run's processes is left to the next run of a sweep."""

from __future__ import annotations

import os

import pytest

from tartan.distributed.launch import clean_processes


def test_the_launchers_variables_are_as_before_even_if_no_process_group_began(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.delenv("LOCAL_RANK", raising=False)

    def fail():
        os.environ |= {"LOCAL_RANK": "0", "WORLD_SIZE": "2"}
        raise RuntimeError("a child died while it was imported")

    with pytest.raises(RuntimeError, match="a child died"), clean_processes():
        fail()
    assert "LOCAL_RANK" not in os.environ
    assert os.environ["WORLD_SIZE"] == "1"
