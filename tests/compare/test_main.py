"""`python -m src.compare` as a user calls it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from transformers import AutoModelForSequenceClassification

from tartan.compare.main import main
from tartan.files import process_lock
from tests.programs import ROOT, called_for_text

FOLDER = "it (new)"
"""Hydra's grammar has meanings for spaces and brackets."""
OWN = ["steps=4", "batch_size=8", "pilot_steps=2", "folds=2", "methods=finetune,tapt"]


@pytest.fixture
def options(toy_options):
    left_out = ("max_steps", "task.dev")
    return [o for o in toy_options if not o.startswith(left_out)] + [*OWN, f"folder={FOLDER}"]


@pytest.mark.slow
def test_a_race_that_is_killed_goes_on_and_ends_with_a_classifier(options, tmp_path):
    command = [sys.executable, "-m", "src.compare", *options]
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    killed = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, start_new_session=True
    )
    first = tmp_path / FOLDER / "runs" / "0" / "finetune" / "result.json"
    while not first.exists() and killed.poll() is None:
        time.sleep(0.1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    trained = first.stat().st_mtime_ns

    done = called_for_text("src.compare", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert first.stat().st_mtime_ns == trained  # it is not trained again
    folder = tmp_path / FOLDER
    plan = json.loads((folder / "compare.json").read_text())
    for path in folder.glob("runs/*/*/result.json"):
        result = json.loads(path.read_text())
        assert {s["name"]: s["steps"] for s in result["stages"]} == plan["steps"][result["method"]]
    model = AutoModelForSequenceClassification.from_pretrained(folder / "best" / "classifier")
    labels = {str(name) for name in model.config.label2id}
    frame = pd.read_csv(folder / "out_of_fold.csv", dtype=str)
    assert {*frame["predicted_finetune"]} <= labels
    assert frame["fold"].value_counts().size == 2
    page = (folder / "comparison.md").read_text()
    assert "test texts" in page
    assert "TF-IDF" in page
    card = (folder / "best" / "classifier" / "README.md").read_text()
    assert page.partition("\n\n")[2] in card
    right = (frame["predicted_" + page.split()[1]] == frame["label"]).groupby(frame["label"])
    for label, recall in right.mean().items():
        assert re.search(rf"\| {label} \| [\d.]+ \| {100 * recall:.1f} \|", page)
    assert card.count("| dev |") == 1  # its digest; no score of texts that were trained on
    calibration = json.loads((folder / "best" / "result.json").read_text())["calibration"]
    assert calibration["examples"] == len(frame)  # the texts that were held out, not the last dev

    other = called_for_text("src.compare", *options, "steps=5", cwd=tmp_path)
    assert other.returncode == 1
    assert "steps" in other.stderr


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("task.train=nowhere.jsonl", "nowhere.jsonl"), ("encodr=tiny", "encodr"),
     ("task.train=it's.csv", "task")],
)  # fmt: skip
def test_what_is_wrong_is_one_line_before_anything_is_trained(
    wrong, said, options, tmp_path, capsys
):
    others = [o for o in options[:-1] if not wrong.startswith(o.partition("=")[0])]
    assert main([*others, wrong, f"folder={tmp_path / 'it'}"]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line
    assert not list(tmp_path.rglob("result.json"))


def test_a_second_comparison_in_the_same_folder_is_refused(tmp_path, capsys):
    folder = tmp_path / "runs"
    with process_lock(folder / "compare.lock", "unheld"):
        assert main(["task=docstrings", "methods=finetune", f"folder={folder}"]) == 1
    assert f"another comparison is running in {folder}" in capsys.readouterr().err
