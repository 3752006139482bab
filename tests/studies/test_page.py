"""The page of results: its numbers are the rows', and the committed page is up to date."""

from __future__ import annotations

import pytest

from studies.page import means_of_few, pages_of
from studies.part import all_parts, read_part
from studies.row import read_rows
from tests.conftest import ROOT
from tests.studies.made_up_rows import PART, rows, write_part


def page_of(tmp_path, own, content=PART):
    return pages_of({"toy": read_part("toy", write_part(tmp_path, content))}, {"toy": own})[1]


def line_of(page, *cells):
    """The only table line that begins with these cells, as its other cells."""
    found = [[c.strip() for c in line.strip("|").split("|")] for line in page.splitlines()]
    (line,) = (entries for entries in found if tuple(entries[: len(cells)]) == cells)
    return line[len(cells) :]


def test_the_tables_hold_means_intervals_and_paired_differences(tmp_path):
    own = rows({"finetune": [0.50, 0.52, 0.54], "tapt": [0.56, 0.56, 0.56]})
    page = page_of(tmp_path, own)
    assert "**toy**, 300 labelled training examples, macro-F1" in page
    # the mean of 0.50, 0.52, 0.54 has a standard error of 0.02 / sqrt(3); t(2) = 4.303
    assert line_of(page, "1x", "finetune") == ["3", "1.5", "53.0", "52.0 ± 2.0", "51.0", "–"]
    assert line_of(page, "1x", "tapt")[-1] == "+4.0 (-1.0 to +9.0)"


def test_the_best_on_dev_is_chosen_for_each_seed_without_looking_at_test(tmp_path):
    content = PART | {"main": {"fine-tuning": "1x/finetune", "TAPT": "1x/tapt"}}
    part = read_part("toy", write_part(tmp_path, content))
    own = rows({"finetune": [0.5, 0.6, 0.9], "tapt": [0.7, 0.4]})  # TAPT has no third seed
    own += [own[3].model_copy(update={"seed": 2, "dev": 0.95, "test": 0.2})]
    own = [one.model_copy(update={"dev": 1 - one.dev}) if one.seed == 0 else one for one in own]
    means = means_of_few({"toy": part}, {"toy": own})
    assert means["best on dev"] == pytest.approx(100 * (0.5 + 0.6 + 0.2) / 3)
    assert "best on dev" not in means_of_few({"toy": part}, {"toy": own[:3]})


def test_the_committed_pages_are_of_the_committed_rows():
    parts = all_parts()
    own = {name: read_rows(ROOT / "docs" / "results" / f"{name}.csv") for name in parts}
    committed = tuple(
        (ROOT / "docs" / name).read_text() for name in ("results.md", "results_all.md")
    )
    assert committed == pages_of(parts, own), "run python -m studies write"
