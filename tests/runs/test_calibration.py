"""A run fits a temperature to dev, which its classifier's folder and `tartan predict` keep."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest

from tartan.evaluation.calibration import Calibration, calibrate
from tartan.files import read_json
from tartan.predict.predict import Settings, predict_file
from tests.in_process import recorded_run, toy

FILE = "calibration.json"


def test_the_temperature_is_that_of_dev_and_goes_where_the_classifier_goes(
    data_dir, cache_dir, tmp_path
):
    options = toy(data_dir, cache_dir, "finetune")
    run = recorded_run(options, tmp_path / "run")
    written = (run.folder / FILE).read_bytes()
    found = read_json(run.folder / FILE, Calibration)
    assert run.result["calibration"] == found.summary
    assert found.sentence in (run.folder / "classifier" / "README.md").read_text()

    # what a killed run has not written yet is written by the next as it would have been
    (run.folder / "result.json").unlink()
    (run.folder / FILE).unlink()
    recorded_run(options, run.folder)
    assert (run.folder / FILE).read_bytes() == written

    moved, dev = tmp_path / "moved", f"{data_dir}/toy/dev.jsonl"
    shutil.copytree(run.folder / "classifier", moved)
    frames = {}
    for calibrated in (True, False):
        target = tmp_path / f"{calibrated}.jsonl"
        predict_file(Settings(str(moved), dev, str(target), calibrated=calibrated))
        frames[calibrated] = pd.read_json(target, lines=True, dtype=False)
    columns = [f"probability_{label}" for label in run.result["labels"]]
    with_it, without = (frames[one][columns].to_numpy(np.float64) for one in (True, False))
    labels = pd.Index(run.result["labels"]).get_indexer(frames[True]["label"])
    again = calibrate(np.log(without), labels)
    assert again.temperature == pytest.approx(found.temperature, rel=1e-3)
    powers = without ** (1 / found.temperature)
    assert np.allclose(with_it, powers / powers.sum(axis=1, keepdims=True), atol=1e-5)
    assert found.temperature != 1.0
