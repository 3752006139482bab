"""Running a part: what has a row is not run again, and what failed does not stop the others."""

from __future__ import annotations

import pytest

import studies.cells
from studies.cells import run_part
from studies.part import cells_of, read_part
from studies.row import CELL, read_rows
from tartan.runs.run import run_experiment
from tests.in_process import config_of, toy
from tests.report.made_up_runs import config_of as made_up_config
from tests.report.made_up_runs import result_of, write_run
from tests.studies.made_up_rows import PART, write_part


@pytest.fixture
def part(tmp_path):
    return read_part("toy", write_part(tmp_path / "conf"))


@pytest.fixture
def trained(monkeypatch):
    """The places that were trained."""
    places = []

    def train(overrides, folder):
        places.append("/".join(folder.parts[-3:-1]))
        method, seed = folder.parts[-2], int(folder.name.removeprefix("seed"))
        note = (folder / CELL).read_text()
        (folder / CELL).unlink()
        folder.rmdir()
        result = result_of(method, seed, 0.5 + seed / 10, auxiliaries=["tapt"], flops=1e12)
        write_run(folder, result, made_up_config(result))
        (folder / CELL).write_text(note)
        return 0

    monkeypatch.setattr(studies.cells, "train", train)
    return places


def run(tmp_path, part, **more):
    folders = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
    return run_part("toy", part, **folders, options=[], **more)


def test_what_has_a_row_is_not_run_again(tmp_path, part, trained):
    assert run(tmp_path, part, seeds=1) == []
    assert trained == ["1x/finetune", "1x/tapt", "end/finetune"]
    assert run(tmp_path, part) == []
    assert trained[3:] == ["1x/finetune", "1x/tapt", "end/finetune"]  # of seed 1
    found = read_rows(tmp_path / "results" / "toy.csv")
    assert [r.key for r in found] == [cell.key for cell in cells_of("toy", part)]
    assert [r.test for r in found if r.setting == "tapt"] == [0.5, 0.6]


def test_a_cell_is_trained_by_the_program_itself(tmp_path, data_dir, cache_dir, monkeypatch):
    def train(overrides, folder):
        run_experiment(config_of(overrides), folder)
        return 0

    monkeypatch.setattr(studies.cells, "train", train)
    # what the made-up part says of the task, this one's options override
    options = [o for o in toy(data_dir, cache_dir, "finetune") if not o.startswith("method")]
    options += ["logger=none"]
    content = {**PART, "options": [o for o in PART["options"] if "=tiny" in o], "beside": ["tfidf"]}
    part = read_part("toy", write_part(tmp_path / "conf", content))
    folders = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
    failed = run_part("toy", part, **folders, options=options, seeds=1, only="1x/finetune")
    failed += run_part("toy", part, **folders, options=options, seeds=1, only="no budget")
    assert failed == []
    tfidf, run = read_rows(tmp_path / "results" / "toy.csv")
    assert (tfidf.setting, tfidf.tflop, tfidf.end_task_weight) == ("tfidf", None, None)
    assert (tfidf.test, tfidf.dev) == (1.0, 1.0)  # the word in each text tells
    assert (run.setting, run.labelled, run.stages[:11]) == ("finetune", 48, "finetune 6:")
    assert run.tflop is not None
    assert 0 < run.test <= 1
