"""The figures of README and of the pages are those of the committed rows of the study."""

from __future__ import annotations

from itertools import combinations
from statistics import mean

import pytest

from studies.estimate import LEAST_SEEDS, bounds, contrast_of
from studies.part import Contrast, all_parts, read_part
from studies.row import Row, read_rows
from tartan.report.settings import metric_label
from tests.conftest import ROOT

NAMES = {"scierc": "SciERC", "chemprot": "ChemProt", "acl_arc": "ACL-ARC"}
"""Names of tasks in prose."""
WITH_DOMAIN_TEXT = ("meta_tartan_dapt_1", "meta_tartan_dapt_10", "mt_tartan_dapt_1", "dapt_all")
"""Settings of SciERC whose auxiliary text is of ACL papers."""
OF_DOCSTRINGS = (
    "finetune", "tapt", "dapt_10", "dapt_tapt_10", "mt_tartan_10", "meta_tartan_10",
    "mt_tartan_10_0.95_head_rate",
)  # fmt: skip
DECIDED = {
    ("tapt", "mt_tartan_10"), ("dapt_10", "mt_tartan_10"), ("dapt_10", "meta_tartan_10"),
    ("tapt", "mt_tartan_10_0.95_head_rate"),
}  # fmt: skip
"""Pairs of these that differ by more than chance."""


def words_of(page: str) -> str:
    """Return a page's text without its line breaks."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def on_test(part: str, cell: str) -> str:
    """Return the mean score on test of a cell's seeds, in points."""
    return f"{100 * mean(row.test for row in rows_of(part, cell)):.1f}"


def rows_of(part: str, cell: str) -> list[Row]:
    """Return the rows of a cell, of at least three seeds."""
    rows = read_rows(ROOT / "docs" / "results" / f"{part}.csv")
    found = [row for row in rows if f"{row.budget}/{row.setting}" == cell]
    assert len(found) >= 3, cell
    return found


SENTENCES = {
    "docs/choosing.md": (
        "MT-TARTAN with equal weights reaches {chemprot:3x/mt_tartan} (micro-F1) on test and "
        "fine-tuning {chemprot:3x/finetune}:",
        "MT-TARTAN with equal weights reaches {scierc:3x/mt_tartan} on test, fine-tuning "
        "{scierc:3x/finetune}, TAPT {scierc:3x/tapt}, META-TARTAN {scierc:3x/meta_tartan} (5 "
        "seeds) and MT-TARTAN with the settings of `custom_mt` "
        "{scierc:3x/mt_tartan_0.95_head_rate} (3 seeds)",
        "reaches {scierc:3x/meta_tartan_dapt_1} on test with one for each training example and "
        "{scierc:3x/meta_tartan_dapt_10} with ten, MT-TARTAN {scierc:3x/mt_tartan_dapt_1} with "
        "one, and DAPT, whose half of the budget reads 15 % of all of them once, "
        "{scierc:3x/dapt_all}",
    ),
    "docs/faq.md": (
        "SetFit with its library's defaults reaches {suspects:3x/setfit} on test for 1.7 times",
        "fine-tuning reaches {suspects:3x/finetune} and MT-TARTAN with the settings of `custom_mt` "
        "{suspects:3x/mt_tartan_0.95_head_rate}",
    ),
}


def score_of(part: str, cell: str, base: str) -> str:
    """Return a score as README has it, a dash for fewer than three seeds.

    It is bold where it is above fine-tuning's by more than chance, and has an arrow where below.
    """
    rows = read_rows(ROOT / "docs" / "results" / f"{part}.csv")
    own = [row for row in rows if f"{row.budget}/{row.setting}" == cell]
    if len(own) < LEAST_SEEDS:
        return "–"
    gain = contrast_of(Contrast(plus=[cell], minus=[base]), rows, "test")
    verdict = "not decided" if cell == base or gain is None else gain.verdict(0)
    forms = {"holds": "**{}**", "does not hold": "{} ↓"}
    return forms.get(verdict, "{}").format(on_test(part, cell))


class Cells:
    """Fills `{part:cell}` in a sentence with the cell's score."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __format__(self, cell: str) -> str:
        return on_test(self._part, cell)


@pytest.mark.parametrize(
    ("page", "sentence"), [(page, sentence) for page, own in SENTENCES.items() for sentence in own]
)
def test_a_page_says_what_the_rows_say(page, sentence):
    parts = {part: Cells(part) for part in ("scierc", "suspects", "chemprot")}
    assert sentence.format(**parts) in words_of(page)


@pytest.mark.parametrize("part", all_parts())
def test_the_table_of_readme_is_that_of_the_rows(part):
    cells = list(read_part(part).main.values())
    first = rows_of(part, cells[0])[0]
    line = [
        f"{NAMES.get(first.task, first.task)}, {metric_label(first.metric)}",
        f"{first.labelled:,}",
        *(score_of(part, cell, cells[0]) for cell in cells),
    ]
    assert f"| {' | '.join(line)} |" in words_of("README.md")


@pytest.mark.parametrize(
    ("plus", "minus", "said"),
    [
        ("tapt", "finetune", "pre-training first gains {} points"),
        ("finetune", "mt_tartan", "training together loses {}."),
    ],
)
def test_readme_begins_with_differences_that_the_rows_have(plus, minus, said):
    rows = rows_of("suspects", f"3x/{plus}") + rows_of("suspects", f"3x/{minus}")
    gain = contrast_of(Contrast(plus=[f"3x/{plus}"], minus=[f"3x/{minus}"]), rows, "test")
    assert said.format(f"{100 * gain.mean:.1f}") in words_of("README.md")


@pytest.mark.parametrize("part", all_parts())
def test_no_method_costs_over_ten_percent_more_than_fine_tuning(part):
    base, *others = (
        mean(row.tflop for row in rows_of(part, cell)) for cell in read_part(part).main.values()
    )
    assert all(1 < round(cost / base, 2) <= 1.10 for cost in others)


def test_scores_at_nine_times_the_cost_are_given_with_their_few_seeds():
    rows = read_rows(ROOT / "docs" / "results" / "scierc.csv")
    scores = {
        setting: [row.test for row in rows if (row.budget, row.setting) == ("9x", setting)]
        for setting in ("finetune", "mt_tartan", "meta_tartan", "tapt")
    }
    assert {len(own) for own in scores.values()} == {2}
    said = (
        "fine-tuning reaches {}, MT-TARTAN {}, META-TARTAN {} and TAPT {}, with 2 seeds each, "
        "which decide nothing"
    )
    means = (f"{100 * mean(own):.1f}" for own in scores.values())
    assert said.format(*means) in words_of("docs/choosing.md")


@pytest.mark.parametrize("setting", ["finetune", "tapt", "mt_tartan", "meta_tartan"])
def test_there_are_as_many_seeds_as_the_pages_say(setting):
    assert len(rows_of("scierc", f"3x/{setting}")) == 5


@pytest.mark.parametrize(
    ("part", "plus", "minus", "of", "said"),
    [
        (
            "scierc", "mt_tartan", "meta_tartan", "test",
            "META-TARTAN is {} behind MT-TARTAN on test ({} to {})",
        ),
        ("scierc", "finetune", "meta_tartan", "dev", "on dev {} behind fine-tuning ({} to {})"),
        (
            "docstrings", "mt_tartan_10", "dapt_tapt_10", "test",
            "with equal weights was {} ahead of DAPT+TAPT on the same texts ({} to {})",
        ),
        ("docstrings", "meta_tartan_10", "dapt_tapt_10", "test", "and META-TARTAN {} ({} to {}),"),
        ("suspects", "tapt", "tapt_labelled", "test", "and of TAPT on all texts ({} behind,"),
        (
            "scierc", "meta_tartan_dapt_1", "meta_tartan", "test",
            "for each example META-TARTAN is {} lower ({} to {}, 3 seeds)",
        ),
        ("chemprot", "mt_tartan", "finetune", "test", "{} ahead ({} to {}, 5 seeds), on dev"),
        (
            "chemprot", "meta_tartan", "finetune", "test",
            "META-TARTAN is {} ahead of fine-tuning there ({} to {}: within chance)",
        ),
        ("chemprot", "finetune", "tapt", "test", "TAPT {} behind ({} to {})"),
        ("chemprot", "mt_tartan", "tapt", "test", "There MT-TARTAN is {} ahead of TAPT ({} to {})"),
        ("chemprot", "meta_tartan", "tapt", "test", "and META-TARTAN {} ({} to {}), on test"),
    ],
)  # fmt: skip
def test_the_differences_on_the_page_of_choosing_are_those_of_the_rows(part, plus, minus, of, said):
    rows = rows_of(part, f"3x/{plus}") + rows_of(part, f"3x/{minus}")
    found = contrast_of(Contrast(plus=[f"3x/{plus}"], minus=[f"3x/{minus}"]), rows, of)
    numbers = (f"{100 * found.mean:.1f}", *bounds(found.interval))
    assert said.format(*numbers) in words_of("docs/choosing.md")


@pytest.mark.parametrize(
    ("part", "plus", "minus"),
    [
        *(("scierc", name, "finetune") for name in ("tapt", "mt_tartan", "meta_tartan")),
        ("scierc", "mt_tartan_0.95_head_rate", "finetune"),
        *(("scierc", one, other) for one, other in combinations(WITH_DOMAIN_TEXT, 2)),
        *(("docstrings", *pair) for pair in combinations(OF_DOCSTRINGS, 2) if pair not in DECIDED),
        *(("acl_arc", *pair) for pair in combinations(("finetune", "tapt", "dapt_10"), 2)),
        ("suspects", "tapt_labelled", "finetune"),
    ],
)
def test_what_the_pages_call_within_chance_is(part, plus, minus):
    rows = rows_of(part, f"3x/{plus}") + rows_of(part, f"3x/{minus}")
    found = contrast_of(Contrast(plus=[f"3x/{plus}"], minus=[f"3x/{minus}"]), rows, "test")
    assert found.interval.low < 0 < found.interval.high


def test_the_weights_with_either_head_are_those_of_the_rows():
    shared, separate = (rows_of("scierc", f"3x/{n}") for n in ("meta_tartan_shared", "meta_tartan"))
    weights = [f"{mean(row.end_task_weight for row in rows):.2f}" for rows in (separate, shared)]
    page = words_of("docs/algorithm.md")
    assert (
        f"ends at {weights[1]} with the end task's own head (3 seeds) and at {weights[0]}" in page
    )
    seeds = {row.seed for row in shared}
    tests = [
        f"{100 * mean(row.test for row in rows if row.seed in seeds):.1f}"
        for rows in (shared, separate)
    ]
    assert f"{tests[0]} on test against {tests[1]} on these seeds" in page


def test_longer_fine_tuning_gains_on_dev_where_labels_are_few():
    short, middle, long = (
        mean(row.dev for row in rows_of("suspects", f"{budget}/finetune"))
        for budget in ("1x", "3x", "9x")
    )
    assert "higher on dev on average the longer it was, up to 115 epochs" in words_of(
        "docs/own_data.md"
    )
    assert short < middle < long


def test_more_passes_over_the_unlabelled_text_gained_nothing_on_dev():
    short, long = (
        100 * mean(row.dev for row in rows_of("suspects", f"{budget}/tapt"))
        for budget in ("3x", "9x")
    )
    said = "TAPT about the same with five passes over its texts as with fewer than two"
    assert said in words_of("docs/own_data.md")
    assert abs(long - short) < 1
    for page in ("custom_dapt", "custom_dapt_tapt"):
        text = (ROOT / "conf" / "experiment" / f"{page}.yaml").read_text(encoding="utf-8")
        assert "max_epochs: 5" in text
