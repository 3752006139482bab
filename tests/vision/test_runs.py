"""Every method that images support, and every weighting, on scikit-learn's digits."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from tartan.settings import build
from tartan.vision.wide_resnet import WideResNet
from tests.in_process import (
    STAGES,
    RecordedRun,
    config_of,
    part,
    recorded_run,
    same,
)

pytestmark = pytest.mark.slow

Runs = Callable[..., RecordedRun]
METHODS = ["finetune", "pretrain", "mt_tartan", "meta_tartan"]
SMALL = ["encoder.depth=10", "encoder.width=1", "trainer.enable_progress_bar=false"]


def digits(method, *options):
    """Overrides that train a small network on the digits in batches of 8, in float32."""
    return [
        "+experiment=shared/images",
        "task=digits",
        f"method={method}",
        *(["auxiliary=none"] if method == "finetune" else []),
        *SMALL,
        *(f"method.stages.{stage}.batch_size=8" for stage in STAGES[method]),
        "trainer.precision=32-true",
        "logger=none",
        "max_steps=3",
        *options,
    ]


@pytest.fixture(scope="module", autouse=True)
def _no_pictures():
    """Drawing takes as long as three steps; the command line's own test looks for the picture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tartan.runs.run.draw_task_weights", lambda *args: None)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    """A recorded run by method and options; the same is run once."""
    known: dict[tuple[str, ...], RecordedRun] = {}

    def call(*choice: str) -> RecordedRun:
        if choice not in known:
            known[choice] = recorded_run(digits(*choice), tmp_path_factory.mktemp("run"))
        return known[choice]

    return call


def body_of(run, stage="joint"):
    return part(run.ends[stage], "body")


@pytest.mark.parametrize("method", METHODS)
def test_the_saved_classifier_scores_what_the_run_reported(runs, method):
    run = runs(method)
    folder = run.folder / "classifier"
    state = load_file(folder / "model.safetensors")
    labels = json.loads((folder / "labels.json").read_text())
    scale = json.loads((folder / "pixels.json").read_text())
    body, head = WideResNet(1, 10, 1), nn.Linear(64, len(labels))
    body.load_state_dict(part(state, "body"))
    head.load_state_dict(part(state, "head"))
    task = build(config_of(["task=digits"]).task, "task").load()
    assert list(task.labels) == labels
    images = torch.from_numpy(task.test.images).float() / 255
    with torch.no_grad():
        logits = head(body.eval()((images - scale["mean"][0]) / scale["std"][0]))
    share = (logits.argmax(dim=1).numpy() == task.test.labels).mean()
    assert run.result["test"]["whole"]["metrics"]["micro_f1"] == pytest.approx(share, abs=1e-6)


# with a rate of 0 the validation batch and the meta head decide nothing
META = ("meta_tartan", "weighting.eta=0", "method.stages.joint.meta_batch_size=8")


@pytest.mark.parametrize("option", ["meta_batch_size=20", "meta_head.kind=shared"])
def test_the_validation_batch_leaves_no_trace_in_the_body(runs, option):
    first, other = runs(*META), runs(*META, f"method.stages.joint.{option}")
    assert any("running_" in name for name in body_of(first))
    assert same(body_of(first), body_of(other))
    assert same(part(first.ends["joint"], "heads"), part(other.ends["joint"], "heads"))


@pytest.mark.parametrize("name", ["dwa", "mgda"])
def test_a_weighting_trains_the_digits(name, tmp_path):
    run = recorded_run(digits("mt_tartan", f"weighting={name}"), tmp_path)
    weights = run.result["final_task_weights"]
    assert set(weights) == {"end_task", "other_classes"}
    assert all(np.isfinite(weight) for weight in weights.values())
    assert not same(part(run.starts["joint"], "body"), body_of(run))
    # the statistics of each task's batch once a step, whatever other passes a weighting takes
    counts = [v for key, v in body_of(run).items() if key.endswith("num_batches_tracked")]
    assert {int(count) for count in counts} == {3 * 2}
