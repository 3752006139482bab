"""The beginning of the page of results: the main table, ranks over cases, and the answers."""

from __future__ import annotations

from copy import deepcopy

import pytest

from studies.overview import overview_of
from studies.part import all_parts, read_part
from tests.studies.made_up_rows import PART, rows, write_part

MAIN = {"fine-tuning": "1x/finetune", "pre-training first": "1x/tapt"}


def overview(tmp_path, *cases, **changed):
    """The beginning of the page of as many parts as there are cases, as its blocks."""
    folder = write_part(tmp_path, PART | {"main": MAIN} | changed)
    part = read_part("toy", folder)
    names = [f"part {number}" for number in range(len(cases))]
    return list(overview_of(dict.fromkeys(names, part), dict(zip(names, cases, strict=True))))


def cells(table):
    return [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_main_table_holds_the_main_cells_and_their_differences(tmp_path):
    own = rows({"finetune": [0.50, 0.52, 0.54], "tapt": [0.56, 0.56, 0.56]})
    title, _, table, *_ = overview(tmp_path, [*own, *rows({"finetune": [0.9]}, budget="end")])
    assert title == "## In short"
    assert cells(table) == [
        ["toy, macro-F1", "300", "fine-tuning", "3", "52.0 ± 2.0", "47.0 to 57.0", "–", "–", "–"],
        ["", "", "pre-training first", "3", "56.0 ± 0.0", "–", "+4.0 (-1.0 to +9.0)", "0.125", "–"],
    ]


def test_the_paper_s_scores_stand_beside_those_with_as_many_labels(tmp_path):
    own = rows({"finetune": [0.5], "tapt": [0.6]}, task="scierc", labelled=3219)
    _, _, table, *_ = overview(tmp_path, own)
    assert [line[-1] for line in cells(table)] == ["77.96 ± 2.96", "79.53 ± 1.93"]


def test_ranks_and_differences_are_means_over_cases(tmp_path):
    better = rows({"finetune": [0.50] * 3, "tapt": [0.60] * 3})
    worse = rows({"finetune": [0.50] * 3, "tapt": [0.47] * 3})
    blocks = overview(tmp_path, better, worse, better, rows({"finetune": [0.5] * 3}))
    assert "Over the 3 cases" in blocks[3]
    # ranks 1, 2, 1 and differences 10, -3, 10, whose standard errors are 0.333 and 4.33
    assert cells(blocks[4]) == [
        ["fine-tuning", "1.7", "1.0 to 2.0", "–"],
        ["pre-training first", "1.3", "1.0 to 2.0", "+5.7 (-13.0 to +24.3)"],
    ]


def test_a_case_counts_only_the_seeds_that_all_of_its_methods_have(tmp_path):
    # without the fourth seed, which one method lacks, both have 50
    own = rows({"finetune": [0.50, 0.50, 0.50, 0.90], "tapt": [0.49, 0.50, 0.51]})
    blocks = overview(tmp_path, own, own, own)
    assert cells(blocks[4])[1] == ["pre-training first", "1.5", "–", "+0.0"]


@pytest.mark.parametrize("count", [1, 2])
def test_few_cases_are_not_ranked(tmp_path, count):
    case = rows({"finetune": [0.5] * 3, "tapt": [0.6] * 3})
    assert not any("mean rank" in block for block in overview(tmp_path, *[case] * count))


def test_decided_statements_and_the_paper_s_claims_are_listed_claims_first(tmp_path):
    contrast = {"at 1x": {"plus": ["1x/tapt"], "minus": ["1x/finetune"]}}
    end = {"at the end": {"plus": ["end/finetune"], "minus": ["1x/finetune"]}}
    questions = {
        "pays": {"statement": "TAPT is better.", "of": "test", "contrasts": contrast},
        "open": {"statement": "More steps help.", "of": "test", "contrasts": end},
        "claim": {"statement": "Claim (a): longer.", "of": "dev", "contrasts": deepcopy(end)},
        "met": {"statement": "Claim (b): first.", "of": "dev", "contrasts": deepcopy(contrast)},
    }
    own = rows({"finetune": [0.50, 0.51, 0.52], "tapt": [0.60, 0.62, 0.61]})
    *_, head, answers = overview(tmp_path, own, questions=questions)
    start = (
        "Of 4 statements to test, 2 hold, 0 do not, and 2 are not decided, 2 of them without runs."
    )
    assert " ".join(head.split()).startswith(start)
    told = "**Holds** for A made-up part: at 1x +10.0 (+7.5 to +12.5), p 0.125."
    assert answers.splitlines() == [
        "- Claim (a): longer. No runs yet for A made-up part.",
        f"- Claim (b): first. {told}",
        "- **Holds** for A made-up part:",
        "  - TAPT is better.",
    ]
    twice = overview(tmp_path, own, own, questions=questions)[-1]
    assert f"- Claim (b): first. {told} {told}" in twice.splitlines()


def test_without_main_cells_the_page_begins_with_its_parts(tmp_path):
    own = rows({"finetune": [0.5]})
    assert overview(tmp_path, own, main={}) == overview(tmp_path, []) == []


def test_all_parts_compare_the_same_methods():
    assert len({tuple(part.main) for part in all_parts().values()}) == 1
