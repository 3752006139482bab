"""Each row of the decision table, on the facts that call for it and on those that do not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import mean

from studies.estimate import SeedMean
from studies.format import bounds
from studies.row import read_rows
from tartan.check.decisions import (
    DECISIONS,
    ENOUGH_LABELS,
    MANY_LABELS,
    ONE_BATCH,
    SMALL_ENCODER,
)
from tartan.check.recommendation import recommend
from tests.check.fine import FINE
from tests.conftest import ROOT


def of(**changes):
    return recommend(replace(FINE, **changes))


def test_much_labelled_data_calls_for_finetuning_first():
    assert of(train=MANY_LABELS - 1).method == "meta_tartan"
    found = of(train=MANY_LABELS)
    assert found.options == ("method=finetune",)
    assert f"{MANY_LABELS:,} training examples" in found.reasons[0]


def test_an_encoder_without_a_mask_can_only_be_finetuned():
    found = of(masks=False)
    assert found.options == ("method=finetune",)
    assert "no mask token" in found.reasons[0]


def test_a_small_encoder_calls_for_pretraining_on_the_tasks_text_first():
    assert of(parameters=SMALL_ENCODER).method == "meta_tartan"
    assert of(parameters=SMALL_ENCODER - 1, train=MANY_LABELS).method == "finetune"
    assert of(parameters=SMALL_ENCODER - 1).method == "dapt_tapt"
    found = of(parameters=SMALL_ENCODER - 1, domain=0)
    assert found.method == "finetune"
    assert "50 million parameters" in found.reasons[0]
    assert of(text=False, parameters=SMALL_ENCODER - 1).method == "meta_tartan"


def test_a_small_encoder_with_thousands_of_labels_calls_for_finetuning_first():
    small = {"parameters": SMALL_ENCODER - 1}
    assert of(**small, train=ENOUGH_LABELS - 1).method == "dapt_tapt"
    found = of(**small, train=ENOUGH_LABELS, domain=0)
    assert found.method == "finetune"
    assert f"{ENOUGH_LABELS:,} training examples" in found.reasons
    assert of(train=ENOUGH_LABELS).method == "meta_tartan"


def scores_of(part, split="dev"):
    """Scores of each cell of a part of the study, in points, by seed."""
    scores = defaultdict(dict)
    for row in read_rows(ROOT / "docs" / "results" / f"{part}.csv"):
        scores[f"{row.budget}/{row.setting}"][row.seed] = 100 * getattr(row, split)
    return scores


def gain(part, setting, other="3x/finetune", split="test"):
    """By how much a setting is ahead of another, over the seeds that both have."""
    of_setting, of_other = (scores_of(part, split)[name] for name in (setting, other))
    seeds = of_setting.keys() & of_other
    return SeedMean({seed: of_setting[seed] - of_other[seed] for seed in seeds})


def reason(method, case):
    """The reason of the decision table's row for a small encoder in some case."""
    (row,) = (row for row in DECISIONS if row.method == method and row.case.endswith(case))
    return row.because


def test_that_advice_rests_on_the_rows_of_the_study():
    words = reason("dapt_tapt", "and unlabelled text")
    first = gain("suspects", "3x/tapt")
    assert f"was {first.mean:.1f} points of macro-F1 ahead of fine-tuning on test" in words
    low, high = bounds(first.interval, by=1)
    assert f"(95 % interval {low} to {high}, {len(first.values)} seeds)" in words
    assert gain("suspects", "3x/tapt", split="dev").interval.low > 0
    short, long = (
        gain("suspects", "1x/tapt", "1x/finetune"),
        gain("suspects", "9x/tapt", "9x/finetune"),
    )
    assert short.interval.high < 0
    assert f"it was {-short.mean:.1f} points behind" in words
    assert long.interval.low < 0 < long.interval.high
    arc, docstrings = gain("acl_arc", "3x/tapt"), gain("docstrings", "3x/dapt_tapt_10")
    assert f"On ACL-ARC it was {arc.mean:.1f} ahead, and on docstrings" in words
    assert f"method=dapt_tapt was {-docstrings.mean:.1f} behind" in words
    assert all(found.interval.low < 0 < found.interval.high for found in (arc, docstrings))


def test_rows_without_a_label_are_the_case_that_was_measured():
    def gain_in(text):
        return text[text.index("was 11.7") : text.index("3.2 ahead")]

    words = reason("tapt", "rows without a label")
    assert gain_in(words) == gain_in(reason("dapt_tapt", "and unlabelled text"))
    small = {"parameters": 23_000_000, "domain": 0, "train": 300}
    assert of(**small, unlabelled=120).method == "tapt"
    assert of(**small).method == "finetune"
    assert of(**small | {"domain": 500}, unlabelled=120).method == "dapt_tapt"


def test_that_advice_for_labelled_texts_alone_rests_on_the_rows_of_the_study():
    words = reason("finetune", "million parameters")
    scierc, docstrings = gain("suspects", "3x/tapt_labelled"), gain("docstrings", "3x/tapt")
    assert (
        f"was {scierc.mean:.1f} points of macro-F1 ahead of fine-tuning on test of SciERC" in words
    )
    assert f"and {-docstrings.mean:.1f} behind on docstrings" in words
    assert all(found.interval.low < 0 < found.interval.high for found in (scierc, docstrings))


def test_that_advice_for_thousands_of_labels_rests_on_the_rows_of_the_study():
    for method in ("mt_tartan", "tapt"):
        found = gain("scierc", f"3x/{method}")
        assert found.interval.low < 0 < found.interval.high
    words = reason("finetune", "3,000 training examples or more")
    assert "were within chance of fine-tuning on SciERC (3,219 labels)" in words
    joint = with_interval(gain("chemprot", "3x/mt_tartan"))
    assert f"MT-TARTAN was {joint.format(' points of micro-F1 ahead on test')}" in words
    on_dev = gain("chemprot", "3x/mt_tartan", split="dev")
    assert on_dev.interval.low < 0 < on_dev.interval.high
    first = gain("chemprot", "3x/tapt")
    assert first.interval.high < 0
    assert f"pre-training first {-first.mean:.1f} behind" in words


def with_interval(found):
    """An estimate with its interval and seeds; `{}` is where words follow the mean."""
    low, high = bounds(found.interval, by=1)  # the scores are in points
    return f"{found.mean:.1f}{{}} ({low} to {high}, {len(found.values)} seeds)"


def test_the_recipe_that_dev_chose_rests_on_the_rows_of_the_study():
    equal = {"suspects": "mt_tartan", "acl_arc": "mt_tartan", "docstrings": "mt_tartan_10"}
    cells = {part: (f"3x/{name}_0.95_head_rate", f"3x/{name}") for part, name in equal.items()}
    gains = {part: gain(part, *own) for part, own in cells.items()}
    page = " ".join((ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").split())
    first = with_interval(gains.pop("suspects")).format(" points on test of SciERC")
    assert f"this gains {first}" in page
    against = {part: gain(part, own[0]) for part, own in cells.items()}
    behind = against.pop("suspects")
    assert behind.interval.high < 0
    assert f"it is still {-behind.mean:.1f} behind fine-tuning" in page
    assert "on ACL-ARC and docstrings it is within chance of both" in page
    both = [*gains.values(), *against.values()]
    assert all(own.interval.low < 0 < own.interval.high for own in both)


def test_weights_are_not_learned_against_a_handful_of_examples():
    assert of(dev=ONE_BATCH).method == "meta_tartan"
    found = of(dev=ONE_BATCH - 1)
    assert found.method == "mt_tartan"
    assert f"dev has only {ONE_BATCH - 1} examples" in " ".join(found.reasons)


def test_nor_against_a_dev_set_that_lacks_a_label():
    found = of(missing_in_dev=("rare",))
    assert found.method == "mt_tartan"
    assert "dev has no example of 'rare'" in " ".join(found.reasons)


def test_the_last_row_always_applies_and_methods_exist():
    assert DECISIONS[-1].applies(FINE)
    for row in DECISIONS:
        assert (ROOT / "conf" / "method" / f"{row.method}.yaml").is_file()


SMALL = {"parameters": SMALL_ENCODER - 1, "domain": 0}
HELD_OUT = {
    "ACL-ARC, 300 labels, other texts without": (
        "acl_arc", "3x/tapt", {"train": 300, "unlabelled": 1388},
    ),
    "docstrings, 240 labels and other text": (
        "docstrings", "3x/dapt_tapt_10", {"train": 240, "domain": 2400},
    ),
    "ChemProt, 4,169 labels": ("chemprot", "3x/finetune", {"train": 4169}),
    "SciERC, 300 labels, other texts without, three times the budget": (
        "suspects", "9x/tapt", {"train": 300, "unlabelled": 2919},
    ),
    "SciERC, 3,219 labels, three times the budget": ("scierc", "9x/finetune", {"train": 3219}),
}  # fmt: skip


def test_the_page_on_choosing_says_where_the_advice_was_right():
    page, near = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8"), 0
    for case, (part, cell, facts) in HELD_OUT.items():
        budget, method = cell.split("/")[0], of(**(SMALL | facts)).method
        assert cell.removesuffix("_10").endswith(f"/{method}")
        scores = scores_of(part, "test")
        seeds = scores[cell].keys()
        means = {
            name: mean(of_seed[seed] for seed in seeds)
            for name, of_seed in scores.items()
            if name.startswith(f"{budget}/") and seeds <= of_seed.keys()
        }
        best = max(means, key=lambda name: means[name])
        near += means[best] - means[cell] <= 1
        line = (
            f"| {case} | {len(seeds)} | `method={method}` | {means[cell]:.1f} | `{best}` | "
            f"{means[best]:.1f} |"
        )
        assert line in page, f"docs/choosing.md has to show:\n{line}"
    assert near == 4
    assert "within a point of the best in four of the five" in page
    assert f"TAPT is {-gain('suspects', '1x/tapt', '1x/finetune').mean:.1f} points behind" in page


def test_the_page_on_choosing_shows_the_table():
    lines = ["| first case that applies | begin with | because |", "| --- | --- | --- |"]
    lines += [f"| {row.case} | `method={row.method}` | {row.because} |" for row in DECISIONS]
    table = "\n".join(lines)
    page = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert table in page, f"docs/choosing.md has to show:\n{table}"
