"""What is recommended for which facts, and that its reasons are those of the study's rows."""

from __future__ import annotations

import pandas as pd
import pytest
from scipy import stats

from tartan.check.advice import recommend, tables
from tests.conftest import ROOT

FINE = {
    "parameters": 124_000_000, "train": 1000, "dev": 400, "domain": 10_000,
    "method": "meta_tartan", "kinds": "domain+task", "longest_read": 512,
}  # fmt: skip
"""A large encoder, few labels, much text, and nothing to complain of."""
SMALL = {"parameters": 49_999_999}
PAGE = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")


def of(**changes):
    return recommend(FINE | changes)


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({}, "meta_tartan"),
        ({"train": 4999}, "meta_tartan"),
        ({"train": 5000}, "finetune"),
        ({"masks": False}, "finetune"),
        (SMALL, "dapt_tapt"),
        ({**SMALL, "train": 2999}, "dapt_tapt"),
        ({**SMALL, "train": 3000}, "finetune"),
        ({**SMALL, "domain": 0, "unlabelled": 120}, "tapt"),
        ({**SMALL, "domain": 0}, "finetune"),
        ({"dev": 32}, "meta_tartan"),
        ({"dev": 31}, "mt_tartan"),
        ({"missing_in_dev": 1}, "mt_tartan"),
        ({"domain": 0}, "mt_tartan"),
        ({"text": False, "masks": False}, "meta_tartan"),
        ({"text": False, "masks": False, "domain": 0}, "finetune"),
    ],
)
def test_the_first_row_that_applies_decides(changes, method):
    found = of(**changes)
    assert found.method == method
    assert (ROOT / "conf" / "method" / f"{method}.yaml").is_file()


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, ["method=meta_tartan"]),
        ({"kinds": "domain"}, ["method=meta_tartan", "+auxiliary_task@auxiliary.tapt=mlm_task"]),
        ({"domain": 0, "kinds": ""}, ["method=mt_tartan", "auxiliary=tapt"]),
        ({"domain": 0, "kinds": "task"}, ["method=mt_tartan"]),
        ({"text": False, "kinds": ""}, ["method=meta_tartan", "auxiliary=other_classes"]),
        ({"experiment": "custom_dapt"}, ["+experiment=custom"]),
        ({"experiment": "custom", "train": 6000}, ["+experiment=custom_finetune"]),
        ({"experiment": "scierc_meta", "train": 6000}, ["method=finetune"]),
    ],
)
def test_the_options_are_what_the_command_lacks(changes, options):
    assert of(**changes).options == options


def test_every_experiment_for_tables_of_ones_own_is_known():
    there = {path.stem for path in (ROOT / "conf" / "experiment").glob("custom*.yaml")}
    assert there == set(tables()["experiments"].values())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dev": 199}, "is off by up to 7 points"),
        ({"rarest": 9, "rarest_label": "x"}, "label 'x' has 9 training examples"),
        ({"contradicted": 0.015}, "1.5% of train"),
        ({"test_in_dev": 3}, "3 test texts are in dev too"),
        ({"near": 0.02}, "up to 2% of dev and test are nearly equal"),
        ({"cut": 0.3, "cut_source": "dapt", "enough": 96}, "30% of the texts of dapt are cut; max"),
        ({"cut": 0.3, "cut_source": "dapt", "enough": 600}, "the encoder reads 512 tokens"),
        ({"unknown": 0.5}, "does not know 50% of the tokens"),
        ({"memory": 0.95}, "about 95% of the memory"),
        ({"meta_batch": 32}, "examples_from=rest"),
    ],
)
def test_each_caution_is_given_where_it_applies_and_only_there(changes, words):
    assert of().warnings == []
    (warning,) = of(**changes).warnings
    assert words in warning


def scores_of(part, cell, split="test"):
    """Scores of a cell of the study by seed, in points."""
    rows = pd.read_csv(ROOT / "docs" / "results" / f"{part}.csv")
    chosen = rows[rows["budget"] + "/" + rows["setting"] == cell]
    return 100 * chosen.set_index("seed")[split]


def gain(part, setting, other="3x/finetune", split="test"):
    """Mean lead of a setting over the seeds that both have, and its 95 % interval."""
    leads = (scores_of(part, setting, split) - scores_of(part, other, split)).dropna()
    margin = stats.t.ppf(0.975, len(leads) - 1) * stats.sem(leads)
    return leads.mean(), leads.mean() - margin, leads.mean() + margin


def reason(ending):
    """The reason of the row for a small encoder whose case ends so."""
    rows = [row for row in tables()["decisions"] if row["case"].endswith(ending)]
    return " ".join(rows[0]["because"].split())


def test_the_advice_for_small_encoders_rests_on_the_rows_of_the_study():
    assert gain("suspects", "1x/tapt", "1x/finetune")[2] < 0, "with little time it is behind"
    first, arc = gain("suspects", "3x/tapt"), gain("acl_arc", "3x/tapt")
    chemprot, news = gain("chemprot_few", "3x/tapt"), gain("hyperpartisan_few", "3x/tapt")
    docstrings, own = gain("docstrings", "3x/dapt_tapt_10"), gain("suspects", "3x/tapt_labelled")
    docstrings_own = gain("docstrings", "3x/tapt")
    assert first[1] > 0 > max(docstrings[2], chemprot[2])
    undecided = (arc, news, own, docstrings_own)
    assert all(low < 0 < high for _, low, high in undecided)
    for ending in ("and domain text", "and rows without a label"):
        assert f"gained {first[0]:.1f} points" in reason(ending)
    assert f"lost {-chemprot[0]:.1f} on ChemProt" in reason("and rows without a label")
    words = f"gained {news[0]:.1f} on HyperPartisan and {arc[0]:.1f} on ACL-ARC"
    assert words in reason("and rows without a label")
    assert f"lost {-docstrings[0]:.1f} on docstrings" in reason("and domain text")
    words = f"gained {own[0]:.1f} points on SciERC and lost {-docstrings_own[0]:.1f} on docstrings"
    assert words in reason("50 million parameters")
    thousands = [gain("chemprot", "3x/mt_tartan")[0]]
    thousands += [gain("scierc", f"3x/{way}")[0] for way in ("mt_tartan", "mt_tartan_dapt_1")]
    assert f"more than {max(thousands):.1f} points" in reason("3,000 training examples or more")


HELD_OUT = {
    "ACL-ARC, 300 labels, remaining texts unlabelled": (
        "acl_arc", "3x/tapt", {"train": 300, "unlabelled": 1388},
    ),
    "ChemProt, 300 labels, remaining texts unlabelled": (
        "chemprot_few", "3x/tapt", {"train": 300, "unlabelled": 3869},
    ),
    "HyperPartisan, 200 labels, remaining texts unlabelled": (
        "hyperpartisan_few", "3x/tapt", {"train": 200, "unlabelled": 315},
    ),
    "docstrings, 240 labels and other text": (
        "docstrings", "3x/dapt_tapt_10", {"train": 240, "domain": 2400},
    ),
    "ChemProt, 4,169 labels": ("chemprot", "3x/finetune", {"train": 4169}),
    "SciERC, 300 labels, remaining texts unlabelled, three times the budget": (
        "suspects", "9x/tapt", {"train": 300, "unlabelled": 2919},
    ),
    "SciERC, 3,219 labels, three times the budget": ("scierc", "9x/finetune", {"train": 3219}),
}  # fmt: skip


def test_the_page_says_where_the_advice_was_right():
    near = 0
    for case, (part, cell, facts) in HELD_OUT.items():
        method = of(**({**SMALL, "domain": 0} | facts)).method
        assert cell.removesuffix("_10").endswith(f"/{method}")
        rows = pd.read_csv(ROOT / "docs" / "results" / f"{part}.csv")
        rows = rows[rows["budget"] == cell.split("/")[0]]
        wide = 100 * rows.pivot_table("test", "seed", "setting")
        own = wide[cell.split("/")[1]].dropna()
        means = wide.loc[own.index].dropna(axis="columns").mean()
        near += means.max() - own.mean() <= 1
        line = (
            f"| {case} | {len(own)} | `method={method}` | {own.mean():.1f} | "
            f"`{cell.split('/')[0]}/{means.idxmax()}` | {means.max():.1f} |"
        )
        assert line in PAGE, f"docs/choosing.md has to show:\n{line}"
    assert near == 5
    assert "within a point of the best in five of the seven" in PAGE


def test_the_page_shows_the_table():
    lines = ["| first case that applies | begin with | because |", "| --- | --- | --- |"]
    lines += [
        f"| {row['case']} | `method={row['method']}` | {row['because']} |"
        for row in tables()["decisions"]
    ]
    table = "\n".join(lines)
    assert table in PAGE, f"docs/choosing.md has to show:\n{table}"
