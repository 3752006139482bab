"""SetFit as a cell of the study."""

from __future__ import annotations

import pytest

from studies.cells import run_part
from studies.part import read_part
from studies.row import read_rows
from tests.in_process import toy
from tests.studies.made_up_rows import PART, write_part

SETTING = {"method": "setfit", "stages": {"contrastive": 25.0}}


@pytest.fixture
def part(tmp_path):
    content = {**PART, "options": [], "settings": {"setfit": SETTING}, "questions": {}}
    return read_part("toy", write_part(tmp_path / "conf", content))


@pytest.fixture
def options(data_dir, cache_dir):
    """Of the toy task, with the encoder that SetFit can read."""
    of_toy = toy(data_dir, cache_dir, "finetune")
    return [o for o in of_toy if not o.startswith(("method", "encoder"))] + ["encoder=minilm"]


@pytest.mark.slow
def test_it_is_trained_and_its_row_kept(tmp_path, part, options):
    folders = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
    for _ in range(2):  # the second time there is nothing left to do
        assert run_part("toy", part, **folders, options=options, seeds=1, only="1x") == []
    (row,) = read_rows(tmp_path / "results" / "toy.csv")
    assert (row.method, row.encoder, row.stages) == ("setfit", "all-MiniLM-L6-v2", "contrastive 4")
    assert row.labelled == 48
    assert row.tflop > 0
    assert row.test > 0.9  # the word in each text tells
