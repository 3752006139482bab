"""CONTRIBUTING's examples are code that runs."""

from __future__ import annotations

import re
from pathlib import PurePath

import numpy as np
import pytest
import yaml
from omegaconf import open_dict

from tartan.encoders.tiny import TinyEncoder
from tartan.methods import MTTartan
from tartan.runs.run import run_experiment
from tartan.settings import build
from tests.conftest import ROOT
from tests.in_process import config_of, recorded_run, toy

pytestmark = pytest.mark.slow

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def block(language: str, first_line: str) -> str:
    """The code block that begins with `first_line`."""
    found = re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)
    (code,) = [code for code in found if code.startswith(first_line)]
    return code


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Make a module `NAME_example` of the page's Python block for a path `.../NAME.py`."""

    def make(path: str) -> None:
        file = tmp_path / f"{PurePath(path).stem}_example.py"
        file.write_text(block("python", f"# {path}"), encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)

    return make


@pytest.mark.parametrize("file", ["loss_proportional", "inverse_loss"])
def test_a_new_weighting_is_one_python_file_and_one_yaml_file(file, tmp_path, example):
    node = yaml.safe_load(block("yaml", f"# conf/weighting/{file}.yaml"))
    module, _, name = node["_target_"].rpartition(".")
    assert module == f"tartan.core.weighting.{file}"
    example(f"src/tartan/core/weighting/{file}.py")
    options = ["encoder.depth=10", "encoder.width=1", "max_steps=3"]
    config = config_of(["+experiment=digits_mt", *options, "trainer.enable_progress_bar=false"])
    config.weighting = {**node, "_target_": f"{file}_example.{name}"}
    weights = run_experiment(config, tmp_path / "run").as_json()["final_task_weights"]
    assert sum(weights.values()) == pytest.approx(1, abs=1e-6)
    assert weights["end_task"] != pytest.approx(0.5, abs=1e-5)


def test_the_new_objective_is_one_python_file_and_one_yaml_file(
    data_dir, cache_dir, tmp_path, example
):
    node = yaml.safe_load(block("yaml", "# conf/auxiliary/order.yaml"))
    module, _, name = node["order"]["objective"]["_target_"].rpartition(".")
    assert module == "tartan.objectives.word_order"
    example("src/tartan/objectives/word_order.py")
    usual = toy(data_dir, cache_dir, "mt_tartan")
    options = [option for option in usual if not option.startswith("auxiliary")]
    config = config_of([*options, f"auxiliary={node['defaults'][0]}"])
    own = {"_target_": f"word_order_example.{name}"}
    with open_dict(config):
        path = f"{data_dir}/corpus.txt"
        config.auxiliary.order = {**node["order"], "path": path, "objective": own}
    result = run_experiment(config, tmp_path / "run").as_json()
    assert set(result["final_task_weights"]) == {"end_task", "order"}
    (path,) = (tmp_path / "run" / "checkpoints" / "joint").glob("best.ckpt")
    again = MTTartan.load_from_checkpoint(path)
    assert type(again.tasks[1].objective).__name__ == name


def test_a_module_that_changes_the_mixed_gradient(data_dir, cache_dir, tmp_path, example):
    node = yaml.safe_load(block("yaml", "# my_conf/stage/fixed_embeddings.yaml"))
    module, _, name = node["module"].rpartition(".")
    assert module == "mine.fixed_embeddings"
    example("mine/fixed_embeddings.py")
    options = toy(data_dir, cache_dir, "meta_tartan")
    options.append(f"method.stages.joint.module=fixed_embeddings_example.{name}")
    run = recorded_run(options, tmp_path / "run")
    start, end = run.starts["joint"], run.ends["joint"]
    changed = {name for name in start if not start[name].equal(end[name])}
    assert "body.embeddings.word_embeddings.weight" not in changed
    assert "body.embeddings.position_embeddings.weight" in changed


def test_the_new_transform_is_one_python_file_and_one_yaml_file(tmp_path, example):
    node = yaml.safe_load(block("yaml", "# conf/auxiliary/aang_swap.yaml"))
    (swap,) = node["aang"]["transforms"].values()
    module, _, name = swap["_target_"].rpartition(".")
    assert module == "tartan.objectives.swap"
    example("src/tartan/objectives/swap.py")
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


@pytest.mark.parametrize("path", re.findall(r"`(src/tartan/[a-z_/]+\.py)`", TEXT))
def test_every_file_it_names_is_there(path):
    assert (ROOT / path).is_file()
