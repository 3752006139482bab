"""`python -m src.report` as a user calls it, on made-up and on real runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.report.made_up_runs import config_of, result_of, write_run, write_setting

SMALL = ["encoder.depth=10", "encoder.width=1", "trainer.enable_progress_bar=false"]


@pytest.fixture
def report(tmp_path):
    """Call the program in `tmp_path`."""

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "src.report", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


def files_of(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_a_folder_of_runs_becomes_tables_figures_and_a_page(report, tmp_path):
    scores = [0.5, 0.52, 0.51]
    more = {"auxiliaries": ["tapt"], "task": "acl_arc"}
    write_setting(tmp_path / "runs", "tapt", "tapt", scores, **more)
    write_setting(tmp_path / "runs", "mt", "mt_tartan", [s + 0.1 for s in scores], **more)
    done = report("runs")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "MT-TARTAN, TAPT has the highest mean macro-F1" in done.stdout
    assert done.stdout.splitlines()[-1] == "runs/report/report.html"
    files = files_of(tmp_path / "runs" / "report")
    for name in (
        "report.html",
        "report.md",
        *(f"tables/{t}.{p}.{e}" for t in ("acl_arc-tiny", "table_1")
          for p in ("whole", "unseen") for e in ("md", "tex", "csv")),
        *(f"figures/acl_arc-tiny.{k}.{e}" for k in ("seeds-whole", "confusion", "learning", "cost")
          for e in ("png", "svg")),
    ):  # fmt: skip
        assert name in files
    text = (tmp_path / "runs" / "report" / "report.md").read_text(encoding="utf-8")
    assert "61.00 ± 1.00" in text
    assert "No runs for: Domain text" in text

    again = report("runs", "--out", "elsewhere", "--paired", "--holm")
    assert again.returncode == 0, again.stderr
    assert set(files_of(tmp_path / "elsewhere")) == set(files)
    assert "(Holm)" in (tmp_path / "elsewhere" / "report.md").read_text(encoding="utf-8")
    assert "paired" in (tmp_path / "elsewhere" / "report.md").read_text(encoding="utf-8")


def test_what_cannot_be_read_is_listed_and_stops_nothing(report, tmp_path):
    write_setting(tmp_path, "ft", "finetune", [0.5, 0.6])
    write_run(tmp_path / "left", None, config_of(result_of("tapt", 0, 0.5)))
    folder = write_run(tmp_path / "bad\x1b[31m", result_of("finetune", 0, 0.5))
    (folder / "result.json").write_text("{}")
    done = report(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 finished, 1 stopped, 1 unreadable" in done.stdout
    assert "not read: bad [31m: result.json: schema: Field required (and" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "error: nothing is no folder of runs"),
        (["empty"], "error: there are no runs in empty"),
        (["runs", "--out", "file/x"], "error: cannot write the report (file/x"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, said, report, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    write_setting(tmp_path / "runs", "ft", "finetune", [0.5])
    done = report(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_help_answers_without_reading_anything(report):
    done = report("--help")
    assert done.returncode == 0
    for option in ("RUNS_DIR", "--out", "--paired", "--holm"):
        assert option in done.stdout


def test_a_real_sweep_is_reported_on(run_cli, report, tmp_path):
    """Two methods and two seeds on digits, and a job that fails."""
    digits = ["-m", "+experiment=images", "task=digits", "max_steps=3", *SMALL]
    swept = run_cli(*digits, "method=finetune,meta_tartan", "seed=0,1")
    assert swept.returncode == 0, swept.stderr
    failed = run_cli(*digits, "method=mt_tartan", "micro_batch_size=0")
    assert failed.returncode == 1
    done = report("runs")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "4 finished, 1 failed" in done.stdout
    page = (tmp_path / "runs" / "report" / "report.html").read_text(encoding="utf-8")
    assert "micro_batch_size must be a whole number of at least 1, got 0" in page
    files = files_of(tmp_path / "runs" / "report")
    for kind in ("seeds-whole", "confusion", "learning", "cost"):
        assert f"figures/digits-wide_resnet_10_1.{kind}.png" in files
    assert "figures/task-weights.svg" in files
    table = (tmp_path / "runs" / "report" / "tables" / "table_5.whole.md").read_text()
    scores = []
    for seed in (0, 1):
        (path,) = (tmp_path / "runs" / "images").glob(f"*meta_tartan*seed={seed}*/result.json")
        scores.append(json.loads(path.read_text())["test"]["whole"]["metrics"]["macro_f1"])
    assert f"{50 * sum(scores):.2f} ±" in table
    assert "*paper, a WideResNet of its own, 3 seeds*" in table
