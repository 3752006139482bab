"""`make gpu-check` runs existing tests and valid benches, and reports their outcomes."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks.gpu_check import ITEMS, TESTS, main, parts_of, run_part, write_texts
from benchmarks.measure import options_of
from tests.in_process import config_of
from tests.programs import ROOT


def test_without_a_gpu_the_error_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert main([]) == 1
    assert main(["items=bench,none"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2
    assert not list(tmp_path.iterdir())


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


def test_texts_fill_their_batches(tmp_path):
    write_texts(tmp_path, 40, 4)
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").open(encoding="utf-8")]
    lengths = [len(row["text"].split()) for row in rows]
    assert len(rows) == 32
    assert {row["label"] for row in rows} == {"a", "b"}
    assert 20 <= min(lengths) < 40 < max(lengths) < 60
    before = (tmp_path / "corpus.jsonl").read_bytes()
    write_texts(tmp_path, 40, 4)
    assert (tmp_path / "corpus.jsonl").read_bytes() == before


def test_a_part_passes_or_fails_and_is_told_the_device(capfd, monkeypatch):
    device = "import os; print('on', os.environ['TARTAN_TEST_DEVICE'])"
    assert run_part(["-c", device], "cuda").startswith("passed (")
    assert capfd.readouterr().out == "on cuda\n"
    assert run_part(["-c", "exit(3)"], "cpu") == "failed (exit code 3)"
    monkeypatch.setattr("benchmarks.gpu_check.TIMEOUT_S", 0.1)
    slow = ["-c", "import time; time.sleep(9)"]
    assert run_part(slow, "cpu") == "failed (not finished after 0.1 s)"


@pytest.mark.parametrize(("outcome", "code"), [("failed (3)", 1), ("passed (9 s)", 0)])
def test_all_items_are_run_and_the_exit_code_is_1_if_a_part_failed(
    outcome, code, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr("benchmarks.gpu_check.run_part", lambda arguments, device: outcome)
    monkeypatch.chdir(tmp_path)
    assert main([]) == code
    table = capsys.readouterr().out.rpartition("...\n")[2]
    assert {line.split(":")[0] for line in table.splitlines() if line} == set(ITEMS)
    assert table.count("skipped (needs 2 GPUs)") == len(TESTS["processes"])
