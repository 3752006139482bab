"""Data that each seed draws are told from what real runs store of them."""

from __future__ import annotations

import pytest

from tests.in_process import recorded_run, toy
from tests.report.made_up_runs import bench_of

DRAWS = {
    "fewer labels": ["task.labelled=20"],
    "clean splits": ["task.split=clean"],
    "held out": ["task.dev=null", "task.test=null", "task.dev_share=0.3", "task.test_share=0.3"],
    "decontaminated": ["task.labelled=20", "auxiliary.decontaminate=true"],
}


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS)
def test_runs_that_draw_their_data_by_the_seed_are_one_comparison(
    draw, data_dir, cache_dir, tmp_path
):
    own = [*DRAWS[draw], "task.split_seed=${seed}", "max_steps=1"]
    for method in ("tapt", "mt_tartan"):
        domain = ["auxiliary.dapt.size=2"] if method == "mt_tartan" else []
        for seed in range(2):
            options = toy(data_dir, cache_dir, method, *own, *domain, f"seed={seed}")
            recorded_run(options, tmp_path / f"{method}{seed}")
    bench = bench_of(tmp_path)
    assert bench.draws_data
    assert [len(setting.runs) for setting in bench.settings] == [2, 2]
