"""The overhead of a part: what `auto` means, and what is refused."""

from __future__ import annotations

import pytest
import torch

from src.data.part_overhead import ON_A_CPU, ON_AN_ACCELERATOR, resolve_part_overhead
from src.errors import UserError


@pytest.mark.parametrize("accelerator", ["cpu", "auto", "gpu"])
@pytest.mark.parametrize("present", [True, False])
def test_auto_follows_the_device(accelerator, present, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: present)
    on_one = present and accelerator != "cpu"
    expected = ON_AN_ACCELERATOR if on_one else ON_A_CPU
    assert resolve_part_overhead("auto", accelerator) == expected


@pytest.mark.parametrize("value", [None, 0, 100])
def test_what_is_given_stays(value):
    assert resolve_part_overhead(value, "cpu") == value


@pytest.mark.parametrize("value", ["little", -1, 1.5, True])
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(UserError, match=r"^part_overhead must be"):
        resolve_part_overhead(value, "cpu")
