"""`make gpu-check` runs existing tests and valid benches, and reports their outcomes."""

from __future__ import annotations

import json
from typing import get_args

import pytest
import torch
from hydra import compose, initialize_config_dir

from benchmarks.__main__ import Section, Sections
from benchmarks.gpu_check import (
    SHAPES,
    TESTS,
    TESTS_OF_TWO_GPUS,
    bench_of,
    main,
    run_item,
    write_texts,
)
from tests.programs import ROOT


def test_without_a_gpu_the_error_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert main() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: gpu_check needs a GPU that PyTorch can use; there is none\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("chosen", [*TESTS, *TESTS_OF_TWO_GPUS])
def test_the_tests_to_run_exist(chosen):
    path, _, name = chosen.partition("::")
    assert (ROOT / path).exists()
    assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("dropout", [True, False])
def test_the_bench_is_run_on_batches_of_each_shape(tmp_path, dropout):
    folder = tmp_path / "with a blank"
    shapes, files = [], set()
    for shape in SHAPES:
        module, name, *options = bench_of(*shape, folder, dropout=dropout)
        assert (module, name) == ("-m", "benchmarks")
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            config = compose("bench", overrides=options)
            assert set(config.sections) <= set(get_args(Section))
            sections = Sections(config, tmp_path / "scratch")
            run = sections._case("meta_tartan", 1).config(3, tmp_path / "run")
        files.add(config.output)
        assert run.encoder.name == "roberta-base, random weights"
        assert run.auxiliary.dapt.path == f"{folder}/texts-{run.task.max_length}/corpus.jsonl"
        assert run.task.train == f"{folder}/texts-{run.task.max_length}/train.jsonl"
        joint = run.method.stages.joint
        assert joint.batch_size == run.micro_batch_size
        assert run.encoder.sizes.get("attention_probs_dropout_prob", 0.1) == 0.1 * dropout
        shapes.append((joint.batch_size, run.task.max_length))
    assert shapes == list(SHAPES)
    assert len(files) == len(SHAPES)


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


def test_an_item_passes_or_fails_and_is_told_the_device(capfd, monkeypatch):
    device = "import os; print('on', os.environ['TARTAN_TEST_DEVICE'])"
    assert run_item(["-c", device]).startswith("passed (")
    assert capfd.readouterr().out == "on cuda\n"
    assert run_item(["-c", "exit(3)"]) == "failed (exit code 3)"
    monkeypatch.setattr("benchmarks.gpu_check.TIMEOUT_S", 0.1)
    assert run_item(["-c", "import time; time.sleep(9)"]) == "failed (not finished after 0.1 s)"


@pytest.mark.parametrize(
    ("outcome", "devices", "code"), [("failed (3)", 2, 1), ("passed (9 s)", 2, 0), ("passed", 1, 0)]
)
def test_the_exit_code_is_1_if_an_item_failed(
    outcome, devices, code, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr("benchmarks.gpu_check.run_item", lambda arguments: outcome)
    monkeypatch.chdir(tmp_path)
    assert main() == code
    out = capsys.readouterr().out
    skipped = 0 if devices == 2 else len(TESTS_OF_TWO_GPUS)
    assert out.count("skipped (needs 2 GPUs)") == skipped
    benches = 2 * len(SHAPES)
    assert out.count(outcome) == len(TESTS) + len(TESTS_OF_TWO_GPUS) + benches - skipped
    assert {f.name for f in (tmp_path / "gpu_check").iterdir()} == {"texts-128", "texts-512"}
