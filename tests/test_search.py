"""Searches: dev decides, test is not looked at, and the same command goes on."""

from __future__ import annotations

import json

import pytest
import yaml
from hydra import compose, initialize_config_dir

from tartan.report.report import report_of
from tests.in_process import CONF, config_of
from tests.test_launchers import DIGITS, states_in

pytestmark = pytest.mark.slow

METHODS = {"paper": "meta", "paper_mt": "mt", "rates": "meta", "finetune": "dapt"}
"""An experiment's ending that each search is for."""
SEARCHES = sorted(p.stem for p in (CONF / "search").glob("*.yaml") if p.stem != "base")


@pytest.mark.parametrize("name", SEARCHES)
def test_what_is_searched_over_are_options_of_the_method(name):
    experiment = f"+experiment=docstrings_{METHODS[name]}"
    with initialize_config_dir(str(CONF), version_base="1.3"):
        options = [experiment, f"+search={name}", "hydra.mode=MULTIRUN", "paths.runs_dir=here"]
        config = compose("config", overrides=options, return_hydra_config=True)
    assert config.evaluate_test is False
    assert config.hydra.sweeper.direction == "maximize"
    assert config.hydra.sweep.dir.startswith("here/search/docstrings_")
    assert config.hydra.sweeper.params
    for option in config.hydra.sweeper.params:
        config_of([experiment, f"{option}=null"])  # refuses one that is not there


def test_a_search_ends_with_the_best_and_goes_on_with_the_same_proposals(run_cli, tmp_path):
    options = ["-m", *DIGITS, "+search=rates"]
    assert run_cli(*options, "hydra.sweeper.n_trials=2").returncode == 0
    searched = run_cli(*options, "hydra.sweeper.n_trials=3")
    assert searched.returncode == 0, searched.stderr
    assert states_in(searched.stdout) == {
        "0": "finished before", "1": "finished before", "2": "finished",
    }  # fmt: skip
    folder = tmp_path / "runs" / "search" / "digits_meta_tartan"
    results = [json.loads(path.read_text()) for path in folder.rglob("result.json")]
    assert not any("test" in result for result in results)
    best = max(result["dev"]["whole"]["metrics"]["macro_f1"] for result in results)
    assert f"{best:.4f}" in searched.stdout
    found = yaml.safe_load((folder / "optimization_results.yaml").read_text())
    assert found["best_value"] == pytest.approx(best)

    report = report_of(folder)
    assert report.benches == []
    assert (len(report.folders.runs), report.folders.unfinished) == (3, [])
    assert "3 of them not evaluated on test" in report.inventory
