"""`make gpu-check` runs existing tests and valid benches, and reports their outcomes."""

from __future__ import annotations

import json

import pytest
import torch
from hydra import compose, initialize_config_dir
from rich.console import Console

from src.bench.__main__ import SECTIONS, Sections
from src.bench.gpu_check import (
    SHAPES,
    Item,
    Outcome,
    items,
    main,
    outcome_table,
    run_item,
    summarise,
    write_texts,
)
from tests.programs import ROOT

MEASURED = {
    "floor": {
        "matrix_rate": 4e14,
        "rows": [
            {
                "method": "meta_tartan", "ratio": {"median": 1.0512}, "flops": 1e14,
                "seconds": 0.5, "tokens": 45_000.0, "padding_share": 0.004,
            }
        ],
    },
    "peers": {"rows": [{"peer": "Trainer", "case": "tapt", "ratio": {"median": 1.5}}]},
    "waits": {"rows": [{"places": []}, {"places": ["a.py:1"]}]},
    "memory": {"rows": [{"peak": 3 << 30}, {"peak": 5 << 30}]},
}  # fmt: skip


def printed(outcomes):
    console = Console(record=True, width=120)
    console.print(outcome_table(outcomes))
    return console.export_text()


def test_without_a_gpu_the_error_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    assert main() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: gpu_check needs a GPU that PyTorch can use; there is none\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "item", [i for i in items(ROOT) if i.figures is None], ids=lambda item: item.name
)
def test_the_tests_to_run_exist(item):
    module, *options = item.arguments[1:]
    assert module == "pytest"
    for chosen in options[2:]:
        path, _, name = chosen.partition("::")
        assert (ROOT / path).exists()
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_the_bench_is_run_on_batches_of_each_shape(tmp_path):
    folder = tmp_path / "with a blank"
    measured = [item for item in items(folder) if item.figures is not None]
    shapes = []
    for item in measured:
        assert item.arguments[:2] == ["-m", "src.bench"]
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            config = compose("bench", overrides=list(item.arguments[2:]))
            assert set(config.sections) <= set(SECTIONS)
            assert MEASURED.keys() <= set(config.sections)
            assert config.output == str(item.figures)
            sections = Sections(config, tmp_path / "scratch", Console())
            run = sections._case("meta_tartan", 1).config(3, tmp_path / "run")
        assert run.encoder.name == "roberta-base, random weights"
        assert run.auxiliary.dapt.path == f"{folder}/texts-{run.task.max_length}/corpus.txt"
        assert run.task.train == f"{folder}/texts-{run.task.max_length}/train.jsonl"
        joint = run.method.stages.joint
        assert joint.batch_size == run.micro_batch_size
        dropout = run.encoder.sizes.get("attention_probs_dropout_prob", 0.1)
        shapes.append((joint.batch_size, run.task.max_length, dropout))
    assert shapes == [(*shape, dropout) for shape in SHAPES for dropout in (0.1, 0.0)]
    assert len({item.figures for item in measured}) == len(measured)


def test_texts_fill_their_batches(tmp_path):
    write_texts(tmp_path, 40, 4)
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").open(encoding="utf-8")]
    lengths = [len(row["text"].split()) for row in rows]
    assert len(rows) == 32
    assert {row["label"] for row in rows} == {"a", "b"}
    assert 20 <= min(lengths) < 40 < max(lengths) < 60
    before = (tmp_path / "corpus.txt").read_bytes()
    write_texts(tmp_path, 40, 4)
    assert (tmp_path / "corpus.txt").read_bytes() == before


def test_an_item_passes_fails_is_measured_or_skipped(tmp_path):
    file = tmp_path / "figures.json"
    file.write_text(json.dumps(MEASURED))
    device = "import os; print('on', os.environ['TARTAN_TEST_DEVICE'])"
    wrong = Item("it is wrong", ["-c", "print('1 failed'); exit(1)"])
    chosen = [
        Item("it is right", ["-c", device]), wrong, Item("fast", ["-c", ""], figures=file),
        Item("several", ["-c", ""], devices=2),
    ]  # fmt: skip
    outcomes = [run_item(item, 1, tmp_path) for item in chosen]
    assert [outcome.verdict for outcome in outcomes] == ["passed", "failed", "measured", "skipped"]
    assert outcomes[0].detail.startswith("on cuda (")
    assert outcomes[1].detail == f"1 failed; see {tmp_path / 'it_is_wrong.log'}"
    assert outcomes[2].detail == summarise(MEASURED)
    assert outcomes[3].detail == "needs 2 GPUs, there is 1"
    text = printed(outcomes)
    assert [word for word in text.split() if word in {o.verdict for o in outcomes}] == [
        outcome.verdict for outcome in outcomes
    ]


def test_figures_are_summarised_in_a_line():
    assert summarise(MEASURED) == (
        "meta_tartan 1.05 x its floor, MFU 50% of 400 TFLOP/s, 90,000 tokens/s, 0% padding; "
        "Trainer (tapt) 1.50 x this program's step; 0.5 waits a step; 5,120 MiB a step"
    )


@pytest.mark.parametrize(("verdict", "code"), [("failed", 1), ("passed", 0), ("skipped", 0)])
def test_the_exit_code_is_1_if_an_item_failed(verdict, code, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(
        "src.bench.gpu_check.run_item",
        lambda item, devices, folder: Outcome(item.name, verdict, f"of {devices}"),
    )
    monkeypatch.chdir(tmp_path)
    assert main() == code
    assert capsys.readouterr().out.count("of 1") == len(items(tmp_path))
    assert {f.name for f in (tmp_path / "gpu_check").iterdir()} == {"texts-128", "texts-512"}
