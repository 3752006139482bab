"""The quickstart beats a bag of words on the same split."""

from __future__ import annotations

import json
import os

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.longest]


def test_the_quickstart_beats_tfidf_and_leaves_its_pictures(run_cli, tmp_path, cache_dir):
    folder = tmp_path / "quickstart"
    done = run_cli(
        "+experiment=quickstart",
        # its comparison takes half of the time, and has tests of its own
        "~stage@fine_tuning_baseline",
        f"cache_dir={cache_dir}",
        f"hydra.run.dir={folder}",
        timeout=2400,
        # threads that wait for the cores of another test process are many times slower than none
        threads=max(
            1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
        ),
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "result.json").read_text())
    assert set(result["auxiliaries"]) == {"dapt", "tapt"}
    assert result["method"] == "meta_tartan"
    reached = result["dev"]["whole"]["metrics"]["macro_f1"]
    (tf_idf,) = result["baselines"]
    assert reached > tf_idf["dev"]["macro_f1"]
    assert (folder / "task_weights.png").read_bytes().startswith(b"\x89PNG")
    assert f"{reached:.4f}" in done.stdout
