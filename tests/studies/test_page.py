"""The page of results: its numbers are the rows', and the committed page is up to date."""

from __future__ import annotations

from studies.page import draw_differences, pages_of
from studies.part import all_parts, read_part
from studies.row import read_rows
from tests.conftest import ROOT
from tests.studies.made_up_rows import PART, rows, write_part

MAIN = {"fine-tuning": "1x/finetune", "pre-training first": "1x/tapt"}


def page_of(tmp_path, own, content=PART):
    return pages_of({"toy": read_part("toy", write_part(tmp_path, content))}, {"toy": own})[1]


def overview(tmp_path, *cases, **changed):
    """The page of as many parts as there are cases."""
    part = read_part("toy", write_part(tmp_path, PART | {"main": MAIN} | changed))
    names = [f"part {number}" for number in range(len(cases))]
    return pages_of(dict.fromkeys(names, part), dict(zip(names, cases, strict=True)))[0]


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
    first = ["300", "fine-tuning", "3", "52.0 ± 2.0", "–", "–"]
    assert line_of(page, "toy, macro-F1") == first
    second = ["3", "56.0 ± 0.0", "+4.0 (-1.0 to +9.0)", "–"]
    assert line_of(page, "", "", "pre-training first") == second
    own = rows({"finetune": [0.5], "tapt": [0.6]}, task="scierc", labelled=3219)
    page = overview(tmp_path, own)
    assert line_of(page, "scierc, macro-F1")[-1] == "77.96 ± 2.96"
    assert "## In short" not in overview(tmp_path, own, main={})


def test_the_figure_of_differences_has_a_marker_for_each_method_of_each_part(tmp_path):
    part = read_part("toy", write_part(tmp_path, PART | {"main": MAIN}))
    own = rows({"finetune": [0.50, 0.52, 0.54], "tapt": [0.56, 0.56, 0.56]})
    (axes,) = draw_differences({"a": part, "b": part}, {"a": own, "b": own}).axes
    places = [line.get_xydata().tolist() for line in axes.get_lines() if line.get_marker() == "s"]
    assert [[round(x, 6) for x, _ in marker] for marker in places] == [[4], [4]]


def test_the_committed_pages_are_of_the_committed_rows():
    parts = all_parts()
    own = {name: read_rows(ROOT / "docs" / "results" / f"{name}.csv") for name in parts}
    committed = tuple(
        (ROOT / "docs" / name).read_text() for name in ("results.md", "results_all.md")
    )
    assert committed == pages_of(parts, own), "run python -m studies write"
