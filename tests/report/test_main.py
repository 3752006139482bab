"""`python -m src.report` as a user calls it, on made-up and on real runs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import numpy as np
import pytest

from tartan.report.main import main
from tests.conftest import ROOT
from tests.programs import called_for_text
from tests.report.made_up_runs import config_of, result_of, write_run, write_setting

pytestmark = pytest.mark.slow


@pytest.fixture
def report(tmp_path):
    """Call the program in `tmp_path`."""

    def call(*arguments):
        return called_for_text("src.report", *map(str, arguments), cwd=tmp_path, timeout=120)

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
        *(f"figures/acl_arc-tiny.{k}.{e}" for k in ("seeds-whole", "confusion", "cost")
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
    assert "not read: bad [31m: result.json: schema: Field required" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "error: nothing is not a folder of runs"),
        (["empty"], "error: there are no runs in empty"),
        (["runs", "--out", "file/x"], "error: cannot write the report (file/x"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    write_setting(tmp_path / "runs", "ft", "finetune", [0.5])
    assert main(arguments) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(said)
    assert errors.count("\n") == 1


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


def demo(steps):
    """Arguments of the two programs that `make report-demo` calls."""
    recipe = subprocess.run(
        ["make", "-n", "report-demo", f"DEMO_STEPS={steps}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.replace("\\\n", " ")  # fmt: skip
    commands = [shlex.split(line) for line in recipe.splitlines() if "python -m src." in line]
    assert [command[1:3] for command in commands] == [["-m", "src.run"], ["-m", "src.report"]]
    return [command[3:] for command in commands]


def test_the_demonstration_reports_on_real_runs(run_cli, report, tmp_path):
    """All methods on digits, in two steps and with a seed less; and a job that fails."""
    sweep, reported = demo(steps=2)
    swept = run_cli(*("seed=0,1" if option == "seed=0,1,2" else option for option in sweep))
    assert swept.returncode == 0, swept.stderr
    bad = ["+experiment=digits_mt", "micro_batch_size=0", "hydra.sweep.dir=runs/report_demo"]
    assert run_cli("-m", *bad).returncode == 1
    done = report(*reported)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "8 finished, 1 failed" in done.stdout
    assert "could not be: with 2 and 2 seeds the smallest two-sided p is 0.333" in done.stdout
    folder = tmp_path / "runs" / "report_demo"
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert "micro_batch_size: Input should be" in page
    files = files_of(folder / "report")
    for kind in ("seeds-whole", "confusion", "cost"):
        assert f"figures/digits-wide_resnet_16_2.{kind}.png" in files
    assert "figures/task-weights.svg" in files
    name = "digits-wide_resnet_16_2.whole.md"
    table = (folder / "report" / "tables" / name).read_text(encoding="utf-8")
    scores = []
    for path in folder.glob("digits_meta/*/result.json"):
        result = json.loads(path.read_text())
        scores.append(result["test"]["whole"]["metrics"]["macro_f1"])
        counts = np.array(result["test"]["whole"]["confusion"])
        assert counts.trace() / counts.sum() == pytest.approx(
            result["test"]["whole"]["metrics"]["micro_f1"]
        )
    score = f"{100 * np.mean(scores):.2f} ± {100 * np.std(scores, ddof=1):.2f}"
    assert score in table
    assert f" {score} │" in done.stdout


@pytest.mark.parametrize(
    "place",
    ["report.md", "report.html", "tables", "figures", "tables/toy-tiny.whole.md", "../report"],
)
def test_nothing_is_written_through_links_that_lie_where_reports_go(place, report, tmp_path):
    write_setting(tmp_path / "runs", "tapt", "tapt", [0.5, 0.52])
    (tmp_path / "runs" / "report" / "tables").mkdir(parents=True)
    target = tmp_path / "elsewhere"
    target.mkdir() if "." not in place.rpartition("/")[2] else target.write_text("precious")
    link = tmp_path / "runs" / "report" / place
    if place == "../report":
        link = tmp_path / "runs" / "report"
        (link / "tables").rmdir()
    if link.is_dir():
        link.rmdir()
    link.symlink_to(target)
    done = report("runs")
    assert done.returncode == 1
    assert "is a link" in done.stderr
    assert done.stderr.count("\n") == 1
    if target.is_dir():
        assert list(target.iterdir()) == []
    else:
        assert target.read_text() == "precious"
