"""Each row of the decision table, on the facts that call for it and on those that do not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import mean

from scipy import stats

from src.check.decisions import (
    AHEAD,
    ALONE,
    BEHIND,
    DECISIONS,
    ENOUGH_LABELS,
    MANY_LABELS,
    ONE_BATCH,
    SMALL_ENCODER,
    WITHIN,
    as_markdown,
)
from src.check.recommendation import recommend
from src.study.row import read_rows
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
    assert found.method == "tapt"
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


def ahead(scores, setting, other):
    """By how much a setting is ahead of another, over the seeds that both have."""
    both = scores[setting].keys() & scores[other]
    assert len(both) >= 2
    return mean(scores[setting][seed] - scores[other][seed] for seed in both)


def test_that_advice_rests_on_the_rows_of_the_study():
    scierc, arc, docstrings = map(scores_of, ("suspects", "acl_arc", "docstrings"))
    for setting in ("finetune", "mt_tartan", "meta_tartan", "aang"):
        assert ahead(scierc, "3x/tapt", f"3x/{setting}") >= AHEAD
    assert ahead(scierc, "3x/tapt_labelled", "3x/finetune") >= ALONE
    assert ahead(scierc, "1x/finetune", "1x/tapt") > 0
    assert ahead(arc, "3x/tapt", "3x/finetune") > 0
    for first in ("dapt_10", "dapt_tapt_10"):
        for other in ("finetune", "mt_tartan_10", "meta_tartan_10"):
            assert ahead(docstrings, f"3x/{other}", f"3x/{first}") >= BEHIND
    assert ahead(docstrings, "3x/finetune", "3x/tapt") >= BEHIND


def test_that_methods_are_level_with_all_labels_of_scierc():
    scores = scores_of("scierc")
    of_method = [scores[f"3x/{method}"] for method in ("finetune", "mt_tartan", "tapt")]
    seeds = set.intersection(*map(set, of_method))
    assert len(seeds) >= 3
    means = [mean(own[seed] for seed in seeds) for own in of_method]
    assert max(means) - min(means) <= WITHIN


def test_the_recipe_that_dev_chose_rests_on_the_rows_of_the_study():
    parts = {"suspects": "mt_tartan", "acl_arc": "mt_tartan", "docstrings": "mt_tartan_10"}
    gains, on_test = [], []
    for part, equal in parts.items():
        chosen = f"3x/{equal}_0.95_head_rate"
        dev, test = scores_of(part), scores_of(part, "test")
        gains.append([dev[chosen][seed] - dev[f"3x/{equal}"][seed] for seed in range(3)])
        on_test.append(ahead(test, chosen, "3x/finetune"))
    every = [gain for own in gains for gain in own]
    around = stats.t.interval(0.95, len(every) - 1, mean(every), stats.sem(every))
    page = " ".join((ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").split())
    first, second, third = (f"{mean(own):.1f}" for own in gains)
    assert f"gains {first} points of dev there (3 seeds, decided), {second} on ACL-ARC" in page
    assert (
        f"and {third} on docstrings, {mean(every):.1f} ({around[0]:.1f} to {around[1]:.1f})" in page
    )
    behind, more, also = (f"{abs(points):.1f}" for points in on_test)
    assert f"on test {behind} behind, {more} ahead and {also} ahead" in page
    assert on_test[0] < 0 < min(on_test[1:])


def test_weights_are_not_learned_against_a_handful_of_examples():
    assert of(dev=ONE_BATCH).method == "meta_tartan"
    found = of(dev=ONE_BATCH - 1)
    assert found.method == "mt_tartan"
    assert f"dev has only {ONE_BATCH - 1} examples" in " ".join(found.reasons)


def test_nor_against_a_dev_set_that_lacks_a_label():
    found = of(missing_in_dev=("rare",))
    assert found.method == "mt_tartan"
    assert "dev has no example of rare" in " ".join(found.reasons)


def test_the_last_row_always_applies_and_methods_exist():
    assert DECISIONS[-1].applies(FINE)
    for row in DECISIONS:
        assert (ROOT / "conf" / "method" / f"{row.method}.yaml").is_file()


def test_the_page_on_choosing_shows_the_table():
    page = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert as_markdown() in page, "copy src.check.decisions.as_markdown() into docs/choosing.md"
