"""`make gpu-check` runs existing tests and valid benches, and reports their outcomes."""

from __future__ import annotations

import pytest

from benchmarks.gpu_check import TESTS, parts_of
from tests.programs import ROOT


@pytest.mark.parametrize("item", TESTS)
def test_the_tests_to_run_exist(item, tmp_path):
    for chosen, command in parts_of(item, "cuda", tmp_path):
        path, _, name = chosen.partition("::")
        assert command[-1] == chosen
        assert (ROOT / path).exists()
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
