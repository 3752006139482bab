"""The page of results: its numbers are the rows', and the committed page is up to date."""

from __future__ import annotations

from studies.page import page_of as page_of_parts
from studies.part import all_parts, read_part
from studies.row import read_rows
from tests.conftest import ROOT
from tests.studies.made_up_rows import PART, rows, write_part

MAIN = {"fine-tuning": "1x/finetune", "pre-training first": "1x/tapt"}


def page_of(tmp_path, own, content=PART):
    return page_of_parts({"toy": read_part("toy", write_part(tmp_path, content))}, {"toy": own})


def overview(tmp_path, *cases, **changed):
    """The beginning of the page of as many parts as there are cases."""
    part = read_part("toy", write_part(tmp_path, PART | {"main": MAIN} | changed))
    names = [f"part {number}" for number in range(len(cases))]
    page = page_of_parts(dict.fromkeys(names, part), dict(zip(names, cases, strict=True)))
    return page.partition("## How to read this page")[0]


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


def test_the_main_table_holds_the_main_cells_their_differences_and_the_papers_scores(tmp_path):
    own = rows({"finetune": [0.50, 0.52, 0.54], "tapt": [0.56, 0.56, 0.56]})
    page = overview(tmp_path, [*own, *rows({"finetune": [0.9]}, budget="end")])
    first = ["300", "fine-tuning", "3", "52.0 ± 2.0", "47.0 to 57.0", "–", "–", "–"]
    assert line_of(page, "toy, macro-F1") == first
    second = ["3", "56.0 ± 0.0", "–", "+4.0 (-1.0 to +9.0)", "0.125", "–"]
    assert line_of(page, "", "", "pre-training first") == second
    own = rows({"finetune": [0.5], "tapt": [0.6]}, task="scierc", labelled=3219)
    page = overview(tmp_path, own)
    assert line_of(page, "scierc, macro-F1")[-1] == "77.96 ± 2.96"
    assert "## In short" not in overview(tmp_path, own, main={})


def test_ranks_and_differences_are_means_over_cases(tmp_path):
    better = rows({"finetune": [0.50] * 3, "tapt": [0.60] * 3})
    # a fourth seed that one method lacks does not count
    worse = rows({"finetune": [0.50, 0.50, 0.50, 0.90], "tapt": [0.47] * 3})
    page = overview(tmp_path, better, worse, better, rows({"finetune": [0.5] * 3}))
    assert "Over the 3 cases" in page
    # ranks 1, 2, 1 and differences 10, -3, 10, whose standard errors are 0.333 and 4.33
    assert line_of(page, "fine-tuning") == ["1.7", "1.0 to 2.0", "–"]
    gain = "+5.7 (-13.0 to +24.3)"
    assert line_of(page, "pre-training first") == ["1.3", "1.0 to 2.0", gain]
    assert "mean rank" not in overview(tmp_path, better, better)


def test_the_committed_page_is_of_the_committed_rows():
    parts = all_parts()
    own = {name: read_rows(ROOT / "docs" / "results" / f"{name}.csv") for name in parts}
    committed = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert committed == page_of_parts(parts, own), "run python -m studies write"
