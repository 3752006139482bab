"""The page of results: its numbers are the rows', and the committed page is up to date."""

from __future__ import annotations

from src.study.document import document_of
from src.study.part import all_parts, read_part
from src.study.row import read_rows
from tests.conftest import ROOT
from tests.study.made_up_rows import PART, rows, write_part


def page_of(tmp_path, own, content=PART):
    return document_of({"toy": read_part("toy", write_part(tmp_path, content))}, {"toy": own})


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
    assert line_of(page, "1x", "finetune") == [
        "3", "1.5", "53.0", "52.0 ± 2.0", "47.0 to 57.0", "51.0", "–", "–",
    ]  # fmt: skip
    assert line_of(page, "1x", "tapt")[-2:] == ["+4.0 (-1.0 to +9.0)", "0.125"]


def test_equal_scores_are_shown_without_an_interval(tmp_path):
    own = rows({"finetune": [0.50, 0.50, 0.50], "tapt": [0.56, 0.56, 0.56]})
    page = page_of(tmp_path, own)
    assert line_of(page, "1x", "finetune")[3:5] == ["50.0 ± 0.0", "–"]
    assert line_of(page, "1x", "tapt")[-2] == "+6.0"
    assert "**TAPT is better.** Not decided (test)." in page


def test_a_cell_of_runs_with_other_options_is_named(tmp_path):
    own = [*rows({"finetune": [0.5], "tapt": [0.6]}), *rows({"finetune": [0.7]}, budget="end")]
    assert "same options" not in page_of(tmp_path, own)
    other = rows({"finetune": [0.5, 0.6]}, config="xyz")[1:]
    line = "Not all seeds of `1x/finetune` were trained with the same options"
    assert line in page_of(tmp_path, [*own, *other])


def test_what_a_setting_does_is_told_in_a_line(tmp_path):
    described = PART["settings"]["tapt"] | {"about": "reads the text\nfirst.\n"}
    content = PART | {"settings": PART["settings"] | {"tapt": described}}
    page = page_of(tmp_path, rows({"finetune": [0.5]}), content)
    assert "\n- `tapt` reads the text first.\n" in page
    assert "- `finetune`" not in page


def test_a_statement_is_answered_with_its_numbers(tmp_path):
    own = rows({"finetune": [0.50, 0.51, 0.52], "tapt": [0.60, 0.62, 0.61]})
    page = page_of(tmp_path, own)
    assert "**TAPT is better.** Holds (test)." in page
    differences = ["3", "+10.0 (+7.5 to +12.5)", "0.125"]
    assert line_of(page, "at 1x") == [*differences, *differences[1:]]
    assert "**TAPT is better.** Not decided (test)." in page_of(tmp_path, own[:4])


def test_how_runs_learned_is_shown_of_those_that_tell(tmp_path):
    own = rows({"finetune": [0.5, 0.7]}, end_task_loss=0.01, best_at=0.5, end_task_norm=2)
    own += rows({"tapt": [0.5]}, end_task_loss=0.02, auxiliary_loss=4.5, auxiliary_norm=3)
    own += rows({"finetune": [0.9]}, budget="3x")
    _, table = page_of(tmp_path, own).split("How they learned")
    finetune, tapt = line_of(table, "1x", "finetune"), line_of(table, "1x", "tapt")
    assert finetune == ["2", "0.01", "–", "2.00", "–", "–", "50", "61.0", "60.0"]
    assert tapt == ["1", "0.02", "4.5", "–", "3.00", "–", "–", "51.0", "50.0"]
    assert "3x" not in table.split("### What the runs say")[0]
    assert "How they learned" not in page_of(tmp_path, own[-1:])


def test_settings_without_runs_are_told_by_their_number_only(tmp_path):
    page = page_of(tmp_path, rows({"finetune": [0.5]}))
    assert "1 of 6 runs done; `make study PART=toy` trains the rest." in page
    assert line_of(page, "at 1x")[:2] == ["0", "–"]
    assert "tapt" not in page.split("### What the runs say")[0].split("runs done")[1]
    empty = page_of(tmp_path, [])
    assert "0 of 6 runs done" in empty
    assert "Asked, and not decided:\n\n- TAPT is better." in empty
    assert "at 1x" not in empty


def test_the_page_shows_the_figure_of_what_has_a_cost(tmp_path):
    assert "results/toy.svg" in page_of(tmp_path, rows({"finetune": [0.5]}))
    assert "results/toy.svg" not in page_of(tmp_path, rows({"tfidf": [0.5]}, tflop=None))


def test_the_paper_s_scores_stand_beside_those_with_as_many_labels(tmp_path):
    for labelled, shown in ((3219, True), (300, False)):
        page = page_of(tmp_path, rows({"tapt": [0.5]}, task="scierc", labelled=labelled))
        assert ("Fine-tuning 77.96 ± 2.96; " in page) == shown
        assert ("MT-TARTAN 80.81 ± 0.74; " in page) == shown


def test_the_status_tells_of_the_paper_s_encoder(tmp_path):
    assert "RoBERTa-base: not run" in " ".join(page_of(tmp_path, rows({"tapt": [0.5]})).split())
    ran = rows({"tapt": [0.5]}, encoder="FacebookAI/roberta-base")
    assert "RoBERTa-base: 1 run on toy" in page_of(tmp_path, ran)


def test_the_committed_page_is_of_the_committed_rows():
    parts = all_parts()
    own = {name: read_rows(ROOT / "docs" / "results" / f"{name}.csv") for name in parts}
    committed = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert committed == document_of(parts, own), "run python -m src.study write"
