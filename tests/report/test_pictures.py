"""Figures show the numbers of the runs; what they have no numbers for is not drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tartan.evaluation.calibration import calibrate
from tartan.figures import save
from tartan.report.pictures import (
    draw_cost,
    draw_learned_weights,
    draw_reliability,
    evaluations,
    lines_by_size,
    pictures_of,
    weights_of,
)
from tests.report.made_up_runs import (
    bench_of,
    setting_of,
    write_setting,
)

SCORES = [0.5, 0.6, 0.7]
BOTH = {"auxiliaries": ["dapt", "tapt"]}


def test_spending_grows_over_the_stages(tmp_path):
    write_setting(tmp_path, "ft", "finetune", [0.5])
    assert "steps" in draw_cost(bench_of(tmp_path)).axes[0].get_xlabel()
    write_setting(tmp_path, "tapt", "tapt", [0.5], auxiliaries=["tapt"], flops=1e9)
    assert len(draw_cost(bench_of(tmp_path)).axes[0].lines) == 2
    result = setting_of(tmp_path, "tapt").result
    points = evaluations(result, "flops")  # of the second stage, which has the end task
    assert points["x"].tolist() == pytest.approx([1.2e9, 1.4e9, 1.6e9, 1.8e9, 2e9])
    assert points["score"].iloc[-1] == pytest.approx(50 * (1 - 0.5**5))
    assert evaluations(result, "steps")["x"].iloc[-1] == 100


def test_figure_2_has_a_line_a_method_by_amount_of_domain_text(tmp_path):
    write_setting(tmp_path, "ft", "finetune", [0.4, 0.5])
    for size, scores in ((1, [0.5, 0.6]), (10, [0.6, 0.7]), ("all", [0.7, 0.9])):
        write_setting(tmp_path, f"mt{size}", "mt_tartan", scores, size=size, **BOTH)
    write_setting(tmp_path, "dapt", "dapt", [0.5], auxiliaries=["dapt"], size=10)
    found = lines_by_size(bench_of(tmp_path), "whole")
    assert set(found) == {"Fine-tuning", "DAPT", "MT-TARTAN, DAPT + TAPT"}
    line = found["MT-TARTAN, DAPT + TAPT"]
    assert list(line) == [1, 10, 100]
    assert [s.mean("whole") for s in line.values()] == pytest.approx([0.55, 0.65, 0.8])


def write_heads(root, kinds=("separate", "shared")):
    for kind in kinds:
        options = {"method.stages.joint.meta_head.kind": kind}
        write_setting(root, kind, "meta_tartan", SCORES, options=options, **BOTH)


def test_weights_are_means_over_seeds_and_a_damaged_log_is_remarked_on(tmp_path):
    write_heads(tmp_path, ["separate"])
    setting = setting_of(tmp_path, "meta_tartan")
    weights = weights_of(setting, [])
    first = weights[(weights["task"] == "end_task") & (weights["step"] == 1)]
    lines = [(run.folder / "steps.csv").read_text().splitlines()[1] for run in setting.runs]
    values = [float(line.split(",")[3]) for line in lines]
    assert first["mean"].item() == pytest.approx(np.mean(values))
    assert first["deviation"].item() == pytest.approx(np.std(values, ddof=1))
    (setting.runs[0].folder / "steps.csv").write_text("nothing\n")
    remarks = []
    assert draw_learned_weights(bench_of(tmp_path), remarks) is not None
    (remark,) = remarks
    assert remark.startswith("separate/seed=0: no task weights drawn (steps.csv")


def test_reliability_is_of_the_texts_of_all_seeds(tmp_path):
    folders = write_setting(tmp_path, "ft", "finetune", SCORES)
    assert draw_reliability(bench_of(tmp_path), []) is None
    margin = np.log(0.9 / 0.1)
    for folder, right in zip(folders[:2], (40, 20), strict=True):  # of 40 texts, at 0.9
        logits = np.tile([margin, 0.0], (40, 1))
        stored = calibrate(logits, (np.arange(40) >= right).astype(int))
        (folder / "calibration.json").write_text(stored.model_dump_json())
    (folders[2] / "calibration.json").write_text("{}")
    remarks = []
    left, right = draw_reliability(bench_of(tmp_path), remarks).axes
    assert np.allclose(left.lines[0].get_xydata(), [[90, 75]])
    assert np.allclose(right.lines[0].get_xydata(), [[50, 50], [90, 100]], atol=0.1)
    assert ": error 25.0 to 5.0 %" in left.lines[0].get_label()
    (remark,) = remarks
    assert remark.startswith("ft/seed=2: no reliability drawn (calibration.json")


def test_every_figure_for_which_there_are_numbers_is_drawn(tmp_path):
    write_heads(tmp_path, ["separate"])
    kinds = {"seeds-whole", "seeds-unseen", "cost", "task-weights"}
    assert {p.kind for p in pictures_of([bench_of(tmp_path)], [])} == kinds
    write_heads(tmp_path, ["shared"])
    write_setting(tmp_path, "mt", "mt_tartan", SCORES, size=1, flops=1e9, **BOTH)
    write_setting(tmp_path, "mt10", "mt_tartan", SCORES, size=10, flops=1e9, **BOTH)
    remarks = []
    pictures = pictures_of([bench_of(tmp_path)], remarks)
    assert {p.kind for p in pictures} == kinds | {"size-whole", "size-unseen"}
    assert remarks == []
    for picture in pictures:
        assert all(axes.get_xlabel() for axes in picture.figure.axes), picture.kind
    (learned,) = (p.figure for p in pictures if p.kind == "task-weights")
    titles = [axes.get_title(loc="left").split("\n")[1][:8] for axes in learned.axes]
    assert titles == ["separate", "shared h"]


@pytest.mark.parametrize("text", ["$\\frac{ $x$ a_b^c <b>&", "x" * 500])
def test_text_from_runs_is_drawn_as_it_is(text, tmp_path):
    """A formula that Matplotlib cannot read would end the report."""
    more = {"task": text[:280], "encoder": text[:280], "labels": [text[:280], "B", "C"]}
    write_setting(tmp_path, "m", "meta_tartan", SCORES, **BOTH, **more)
    for picture in pictures_of([bench_of(tmp_path)], []):
        save(picture.figure, tmp_path / "picture.svg")
