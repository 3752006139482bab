"""The page of results: its numbers are the rows', and the committed page is up to date."""

from __future__ import annotations

from copy import deepcopy

from studies.document import document_of
from studies.part import all_parts, read_part
from studies.row import read_rows
from tests.conftest import ROOT
from tests.studies.made_up_rows import PART, rows, write_part


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
    assert line_of(page, "1x", "finetune") == ["3", "1.5", "53.0", "52.0 ± 2.0", "51.0", "–"]
    assert line_of(page, "1x", "tapt")[-1] == "+4.0 (-1.0 to +9.0)"


def test_scores_on_unseen_texts_are_shown_where_they_differ_from_those_on_test(tmp_path):
    own = rows({"finetune": [0.5]}) + rows({"tapt": [0.6]}, unseen=0.6)
    assert "| unseen |" in page_of(tmp_path, own).replace("  ", "")
    assert "| unseen |" not in page_of(tmp_path, own[1:]).replace("  ", "")


def test_equal_scores_are_shown_without_an_interval(tmp_path):
    own = rows({"finetune": [0.50, 0.50, 0.50], "tapt": [0.56, 0.56, 0.56]})
    page = page_of(tmp_path, own)
    assert line_of(page, "1x", "tapt")[-1] == "+6.0"
    assert line_of(page, "TAPT is better.") == ["not decided (test)", "at 1x", "3", "+6.0", "+6.0"]


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
    difference = "+10.0 (+7.5 to +12.5)"
    line = ["holds (test)", "at 1x", "3", difference, difference]
    assert line_of(page, "TAPT is better.") == line
    assert line_of(page_of(tmp_path, own[:4]), "TAPT is better.")[0] == "not decided (test)"


def test_a_statement_with_several_contrasts_is_told_once(tmp_path):
    one = {"plus": ["1x/tapt"], "minus": ["1x/finetune"]}
    other = {"plus": ["end/finetune"], "minus": ["1x/finetune"]}
    asked = {"of": "test", "margin": -0.01, "contrasts": {"first": one, "second": other}}
    weight = {"of": "end_task_weight", "contrasts": {"third": deepcopy(one)}}
    questions = {
        "pays": {"statement": "TAPT is better.", **asked},
        "rises": {"statement": "It rises.", **weight},
    }
    own = rows({"finetune": [0.5]}, end_task_weight=0.5)
    own += rows({"tapt": [0.6]}, end_task_weight=0.7)
    page = page_of(tmp_path, own, PART | {"questions": questions})
    assert line_of(page, "TAPT is better.") == [
        "not decided (test, margin -1 points)", "first", "1", "+10.0", "+10.0", "–",
    ]  # fmt: skip
    assert line_of(page, "", "", "second") == ["0", "–", "–", "–"]
    assert line_of(page, "It rises.")[2:] == ["1", "–", "–", "+0.20"]


def test_how_runs_learned_is_shown_of_those_that_tell(tmp_path):
    own = rows({"finetune": [0.5, 0.7]}, end_task_loss=0.01, best_at=0.5, end_task_norm=2)
    own += rows({"tapt": [0.5]}, end_task_loss=0.02, auxiliary_loss=4.5, auxiliary_norm=3)
    own += rows({"finetune": [0.9]}, budget="3x")
    _, table = page_of(tmp_path, own).split("How they learned:")
    finetune, tapt = line_of(table, "1x", "finetune"), line_of(table, "1x", "tapt")
    assert finetune == ["0.01", "–", "2.00", "–", "–", "50"]
    assert tapt == ["0.02", "4.5", "–", "3.00", "–", "–"]
    assert "3x" not in table.split("### What the runs say")[0]
    assert "How they learned:" not in page_of(tmp_path, own[-1:])


def test_settings_without_runs_are_told_by_their_number_only(tmp_path):
    page = page_of(tmp_path, rows({"finetune": [0.5]}))
    assert "1 of 6 runs done; `make study PART=toy` trains the rest." in page
    assert "tapt" not in page.split("No runs yet: TAPT is better.")[0].split("runs done")[1]
    empty = page_of(tmp_path, [])
    assert "0 of 6 runs done" in empty
    assert "No runs yet: TAPT is better." in empty
    assert not any("at 1x" in own for own in (page, empty))


def test_the_page_shows_the_figure_of_what_has_a_cost(tmp_path):
    assert "results/toy.svg" in page_of(tmp_path, rows({"finetune": [0.5]}))
    assert "results/toy.svg" not in page_of(tmp_path, rows({"tfidf": [0.5]}, tflop=None))


def test_the_status_tells_of_the_paper_s_encoder(tmp_path):
    assert "RoBERTa-base: not run" in " ".join(page_of(tmp_path, rows({"tapt": [0.5]})).split())
    ran = rows({"tapt": [0.5]}, encoder="FacebookAI/roberta-base")
    assert "RoBERTa-base: 1 run on toy" in page_of(tmp_path, ran)


def test_the_committed_page_is_of_the_committed_rows():
    parts = all_parts()
    own = {name: read_rows(ROOT / "docs" / "results" / f"{name}.csv") for name in parts}
    committed = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert committed == document_of(parts, own), "run python -m studies write"
