"""The device on which the tests of this folder compute."""

from __future__ import annotations

import pytest
import torch

from tests.conftest import DEVICE


@pytest.fixture(autouse=True, scope="module")
def _on_the_device():
    if DEVICE.type == "cpu":
        yield
        return
    torch.set_default_device(DEVICE)
    yield
    torch.set_default_device(None)


@pytest.fixture
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
