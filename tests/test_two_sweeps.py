"""Two sweeps at once in one folder run each job once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.programs import started

pytestmark = pytest.mark.slow

DIGITS = [
    "+experiment=digits_meta",
    "max_steps=20",
    "logger=none",
    "trainer.enable_progress_bar=false",
]
COUNTING = """
import lightning.pytorch as pl

class Counting(pl.Callback):
    def on_train_start(self, trainer, module):
        with open("trained.txt", "a") as file:
            file.write(f"{module.seed}\\n")
"""


def test_each_job_is_run_once(tmp_path):
    (tmp_path / "counting.py").write_text(COUNTING)
    options = ["-m", *DIGITS, "seed=0,1,2", "+callbacks.counting._target_=counting.Counting"]
    environment = {"COLUMNS": "200"}
    sweeps = [started("src.run", *options, cwd=tmp_path, environment=environment) for _ in "ab"]
    done = [sweep.wait(timeout=240) for sweep in sweeps]
    trained = Counter((tmp_path / "trained.txt").read_text().split())
    assert trained == dict.fromkeys("012", 1), [each.stderr for each in done]
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 3
    states: dict[str, list[str]] = {}
    for each in done:
        assert b"Traceback" not in each.stderr
        table = each.stdout.decode()
        for job, state in re.findall(r"(\d) │ (\w[\w ,]*\w) +│", table[table.index("sweep") :]):
            states.setdefault(job, []).append(state)
        # 1 where the other sweep was still at a job when this one had come to its end
        assert each.returncode == ("runs elsewhere" in table)
    assert states.keys() == set("012")
    for both in states.values():
        assert "finished" in both
        assert set(both) <= {"finished", "finished before", "runs elsewhere"}
