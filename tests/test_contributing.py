"""CONTRIBUTING's examples are code that runs."""

from __future__ import annotations

import re

import numpy as np
import pytest
import yaml

from src.configuration.build import build
from src.encoders.tiny import TinyEncoder
from src.experiment.run import run_experiment
from tests.conftest import ROOT
from tests.in_process import config_of

pytestmark = pytest.mark.slow

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def block(language: str, first_line: str) -> str:
    """The code block that begins with `first_line`."""
    found = re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)
    (code,) = [code for code in found if code.startswith(first_line)]
    return code


def test_the_new_weighting_is_one_python_file_and_one_yaml_file(tmp_path, monkeypatch):
    code = block("python", "# src/core/weighting/loss_proportional.py")
    node = yaml.safe_load(block("yaml", "# conf/weighting/loss_proportional.yaml"))
    module, _, name = node["_target_"].rpartition(".")
    assert module == "src.core.weighting.loss_proportional"
    (tmp_path / "loss_proportional_example.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    options = ["encoder.depth=10", "encoder.width=1", "max_steps=3"]
    config = config_of(["+experiment=digits_mt", *options, "trainer.enable_progress_bar=false"])
    config.weighting = {**node, "_target_": f"loss_proportional_example.{name}"}
    result = run_experiment(config, tmp_path / "run").as_json()
    weights = result["final_task_weights"]
    assert sum(weights.values()) == pytest.approx(1, abs=1e-6)
    assert weights["end_task"] != pytest.approx(0.5, abs=1e-3)


def test_the_new_transform_is_one_python_file_and_one_yaml_file(tmp_path, monkeypatch):
    code = block("python", "# src/objectives/composed/transform/swap.py")
    node = yaml.safe_load(block("yaml", "# conf/auxiliary/aang_swap.yaml"))
    (swap,) = node["aang"]["transforms"].values()
    module, _, name = swap["_target_"].rpartition(".")
    assert module == "src.objectives.composed.transform.swap"
    (tmp_path / "swap_example.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    option = f"+auxiliary.aang.transforms.swap={{_target_: swap_example.{name}}}"
    (base,) = node["defaults"]
    config = config_of([f"auxiliary={base}", option])
    members = build(config.auxiliary.aang, "auxiliary.aang").members("aang")
    assert len(members) == 30
    encoder = TinyEncoder(hidden_size=8, layers=1).load()
    collate = members["task-swap-bidirectional-denoise"].objective.collate(encoder, 4)
    (part,) = collate(
        [{"input_ids": [2, *range(5, 45), 3]}], np.random.default_rng(0)
    ).micro_batches
    positions, targets = part.inputs["positions"], part.inputs["targets"]
    shown = part.inputs["input_ids"].flatten()[positions]
    assert len(targets) > 1
    assert shown.tolist() == targets.roll(1).tolist()


@pytest.mark.parametrize("path", re.findall(r"`(src/[a-z_/]+\.py)`", TEXT))
def test_every_file_it_names_is_there(path):
    assert (ROOT / path).is_file()
