"""`tartan report` as a user calls it, on made-up and on real runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tartan.report.main import main
from tests.conftest import ROOT
from tests.report.made_up_runs import config_of, result_of, write_run, write_setting


@pytest.fixture
def report(tmp_path, monkeypatch, capsys):
    """Call the command in `tmp_path`; its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([*map(str, arguments)])
        return code, capsys.readouterr()

    return call


def files_of(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_a_folder_of_runs_becomes_tables_figures_and_a_page(report, tmp_path):
    scores = [0.5, 0.52, 0.51]
    more = {"auxiliaries": ["tapt"], "task": "acl_arc"}
    write_setting(tmp_path / "runs", "tapt", "tapt", scores, **more)
    write_setting(tmp_path / "runs", "mt", "mt_tartan", [s + 0.1 for s in scores], **more)
    write_run(tmp_path / "runs" / "left", None, config_of(result_of("tapt", 0, 0.5)))
    folder = write_run(tmp_path / "runs" / "bad\x1b[31m", result_of("finetune", 0, 0.5))
    (folder / "result.json").write_text("{}")
    code, said = report("runs")
    assert (code, said.err) == (0, "")
    assert "6 finished runs, 1 unfinished, 1 that cannot be read; 2 settings" in said.out
    assert "not read: bad [31m: result.json: schema: Field required" in said.out
    assert "\x1b[31m" not in said.out
    assert "MT-TARTAN, TAPT has the highest mean macro-F1" in said.out
    assert said.out.splitlines()[-1] == "runs/report/report.html"
    files = files_of(tmp_path / "runs" / "report")
    figures = ("seeds-whole", "cost")
    tables = [f"{t}.{p}" for t in ("acl_arc-tiny", "table_1") for p in ("whole", "unseen")]
    assert files >= {"report.html", "report.md"}
    assert files >= {f"tables/{table}.{e}" for table in tables for e in ("md", "tex", "csv")}
    assert files >= {f"figures/acl_arc-tiny.{kind}.{e}" for kind in figures for e in ("png", "svg")}
    text = (tmp_path / "runs" / "report" / "report.md").read_text(encoding="utf-8")
    assert "61.00 ± 1.00" in text
    code, _ = report("runs", "--out", "elsewhere", "--paired", "--holm")
    text = (tmp_path / "elsewhere" / "report.md").read_text(encoding="utf-8")
    assert (code, files_of(tmp_path / "elsewhere")) == (0, files)
    assert "(Holm)" in text
    assert "of paired seeds" in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nothing"], "error: nothing is not a folder of runs"),
        (["empty"], "error: there are no runs in empty"),
        (["runs", "--out", "file/x"], "error: cannot write the report (file/x"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, reason, report, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    write_setting(tmp_path / "runs", "ft", "finetune", [0.5])
    code, said = report(*arguments)
    assert code == 1
    assert said.err.startswith(reason)
    assert said.err.count("\n") == 1


@pytest.mark.slow
def test_runs_can_be_reported_on_without_what_trained_them(tmp_path):
    """Nothing of a run is loaded: neither its modules nor what they are made of."""
    write_setting(tmp_path, "m", "meta_tartan", [0.5, 0.6], auxiliaries=["dapt"])
    code = (
        "import sys\nfrom tartan.report.main import main\n"
        f"code = main([{str(tmp_path)!r}])\n"
        "print(code, [m for m in ('torch', 'lightning', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("place", ["report.html", "."])
def test_nothing_is_written_through_links_that_lie_where_reports_go(place, report, tmp_path):
    write_setting(tmp_path / "runs", "tapt", "tapt", [0.5, 0.52])
    link = tmp_path / "runs" / "report" / place
    link.parent.mkdir(parents=True, exist_ok=True)
    target = tmp_path / "elsewhere"
    if link.suffix:
        target.write_text("precious")
    else:
        target.mkdir()
    link.symlink_to(target)
    code, said = report("runs")
    assert code == 1
    assert "is a link" in said.err
    assert target.read_text() == "precious" if link.suffix else not any(target.iterdir())
