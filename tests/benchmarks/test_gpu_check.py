"""`make gpu-check` runs existing tests and valid benches, and reports their outcomes."""

from __future__ import annotations

import pytest

from benchmarks.gpu_check import TESTS, parts_of
from benchmarks.measure import options_of
from tests.in_process import config_of
from tests.programs import ROOT


@pytest.mark.parametrize("item", TESTS)
def test_the_tests_to_run_exist(item, tmp_path):
    for chosen, command in parts_of(item, "cuda", tmp_path):
        path, _, name = chosen.partition("::")
        assert command[-1] == chosen
        assert (ROOT / path).exists()
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("item", ["bench", "waits"])
def test_the_bench_is_run_on_batches_of_each_shape(tmp_path, item, device):
    files = set()
    for _, (module, name, *arguments) in parts_of(item, device, tmp_path / "with a blank"):
        assert (module, name) == ("-m", "benchmarks")
        options = options_of("bench", arguments)
        config = config_of([
            f"encoder={options.encoders[0]}", f"task={options.data.task}", *options.options,
        ])  # fmt: skip
        assert config.micro_batch_size == options.batch_size
        assert options.data.max_length == int(config.task.train.split("texts-")[1].split("/")[0])
        files.add(options.output)
    assert len(files) == 2 * {"cuda": 2, "cpu": 1}[device] * {"bench": 3, "waits": 1}[item]
