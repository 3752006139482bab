"""Every weighting of the config trains a text task end to end."""

from __future__ import annotations

import pytest

import tartan.runs.run
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.in_process import OF_COMPOSED_OBJECTIVES, config_of, toy

pytestmark = pytest.mark.slow

NAMES = sorted(
    {path.stem for path in (ROOT / "conf" / "weighting").glob("*.yaml")} - OF_COMPOSED_OBJECTIVES
)
NEEDED = {"static": ["weighting.values={end_task: 2, dapt: 1, tapt: 1}"]}


@pytest.mark.parametrize("name", NAMES)
def test_a_weighting_trains_the_toy_task(name, data_dir, cache_dir, tmp_path):
    method = "meta_tartan" if name.startswith("meta") else "mt_tartan"
    options = toy(data_dir, cache_dir, method, f"weighting={name}", *NEEDED.get(name, []))
    options.append("trainer.precision=bf16-mixed")  # solvers do not know 16 bits
    try:
        result = tartan.runs.run.run_experiment(config_of(options), tmp_path).as_json()
    except UserError as error:
        if "weightings" not in str(error):
            raise
        pytest.skip(str(error))
    assert set(result["final_task_weights"]) == {"end_task", "dapt", "tapt"}
    assert all(weight >= 0 for weight in result["final_task_weights"].values())
    rows = (tmp_path / "steps.csv").read_text().splitlines()
    assert len(rows) == 1 + 6 * 3
    assert "nan" not in " ".join(rows)
