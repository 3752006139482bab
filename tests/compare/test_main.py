"""`python -m src.compare` as a user calls it."""

from __future__ import annotations

import json

import pytest
from omegaconf import OmegaConf

from tartan.compare.main import main
from tartan.files import process_lock
from tartan.report.comparison import ComparisonOptions
from tartan.report.report import report_of
from tests.programs import called_for_text

pytestmark = pytest.mark.slow

FOLDER = "it (new)"
"""Hydra's grammar has meanings for spaces and brackets."""
OWN = ["seeds=1", "steps=4", "batch_size=8", "pilot_steps=2", "evaluations=2"]


@pytest.fixture
def compare(tmp_path):
    def call(*options):
        return called_for_text(
            "src.compare", *options, cwd=tmp_path, environment={"COLUMNS": "200"}
        )

    return call


@pytest.mark.longest
def test_methods_are_compared_at_equal_cost(compare, toy_options, tmp_path):
    options = [o for o in toy_options if not o.startswith("max_steps")]
    options += [*OWN, "methods=finetune,tapt,meta_tartan", "auxiliary=tapt", f"folder={FOLDER}"]
    options += [
        "meta_tartan:weighting.eta=0.2",
        "meta_tartan:method.stages.joint.meta_head.steps=2",
    ]
    done = compare(*options)
    assert done.returncode == 0, done.stderr
    assert "equal cost" in done.stdout
    assert "evaluations" in done.stdout
    plan = json.loads((tmp_path / FOLDER / "compare.json").read_text())
    assert plan["steps"]["meta_tartan"] == {"joint": 4}
    assert plan["steps"]["finetune"]["finetune"] > 4
    results = [json.loads(p.read_text()) for p in (tmp_path / FOLDER).rglob("result.json")]
    spent = {}
    for result in results:
        found = {stage["name"]: stage["steps"] for stage in result["stages"]}
        assert found == plan["steps"][result["method"]]
        spent[result["method"]] = result["cost"]["flops"]
    (config,) = (tmp_path / FOLDER).glob("compare_meta_tartan/*/config.yaml")
    learned = OmegaConf.load(config)
    assert (learned.weighting.eta, learned.method.stages.joint.meta_head.steps) == (0.2, 2)
    assert set(spent) == {"finetune", "tapt", "meta_tartan"}
    assert max(spent.values()) < 1.3 * min(spent.values())  # batches of 8 are of unlike length
    assert (tmp_path / FOLDER / "report" / "report.html").is_file()
    (bench,) = report_of(tmp_path / FOLDER, ComparisonOptions()).benches
    assert len(bench.bench.settings) == 3
    assert not list(tmp_path.glob(".pilot-*"))

    # the command of a job works alone: it says where its experiment is
    (record,) = (tmp_path / FOLDER / ".sweeps").iterdir()
    commands = json.loads((record / "plan.json").read_text())["commands"]
    assert all("hydra.searchpath=" in command for command in commands)
    assert {
        run.command for run in report_of(tmp_path / FOLDER, ComparisonOptions()).folders.runs
    } == set(commands)

    again = compare(*options)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("finished before") == 3
    other = compare(*[o for o in options if not o.startswith("steps=")], "steps=5")
    assert other.returncode == 1
    assert "holds a comparison with other steps" in other.stderr
    (table,) = (name for name in plan["asked"] if name.endswith("train.jsonl"))
    plan["asked"][table] = "0" * 64
    (tmp_path / FOLDER / "compare.json").write_text(json.dumps(plan))
    changed = compare(*options)
    assert changed.returncode == 1
    assert f"{FOLDER} holds a comparison with other {table}; name another" in changed.stderr


def test_what_a_run_refuses_is_one_line_before_anything_is_trained(compare, toy_options, tmp_path):
    options = [o for o in toy_options if not o.startswith(("max_steps", "task.train"))]
    done = compare(*options, *OWN, "methods=finetune,tapt", "task.train=nowhere.jsonl")
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert "nowhere.jsonl" in line
    assert not list(tmp_path.rglob("result.json"))


def test_ctrl_c_in_the_pilot_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    def interrupted(command, **_):
        (tmp_path / "runs" / ".pilot-compare" / "compare_finetune").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tartan.compare.main.subprocess.run", interrupted)
    (tmp_path / "runs" / ".pilot-compare" / "of a kill").mkdir(parents=True)
    assert main(["methods=finetune", "auxiliary=none"]) == 130
    told = capsys.readouterr()
    assert "stopped; run the same command again" in told.err
    assert not (tmp_path / "runs" / ".pilot-compare").exists()


def test_a_second_comparison_in_the_same_folder_is_refused(tmp_path, capsys):
    folder = tmp_path / "runs"
    with process_lock(folder / "compare.lock", "unheld"):
        assert main(["task=docstrings", "methods=finetune", f"folder={folder}"]) == 1
    assert f"another comparison is running in {folder}" in capsys.readouterr().err
