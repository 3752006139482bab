"""The summary says what the runs allow, and no more."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from tartan.report.comparison import ComparisonOptions
from tartan.report.runs import find_runs
from tartan.report.settings import benchmarks_of
from tartan.report.summary import inventory, sentences_of
from tartan.report.tables import overview
from tests.report.made_up_runs import (
    bench_of,
    result_of,
    write_run,
    write_setting,
)

LOW, HIGH = [0.50, 0.51, 0.52, 0.53], [0.60, 0.61, 0.62, 0.63]


def said(root, **options):
    return sentences_of(bench_of(root), ComparisonOptions(**options))


def two(root, ours, theirs, **more):
    write_setting(root, "mt", "mt_tartan", ours, auxiliaries=["dapt"], **more)
    write_setting(root, "dapt", "dapt", theirs, auxiliaries=["dapt"], **more)


def test_a_significant_difference_is_called_so(tmp_path):
    two(tmp_path, HIGH, LOW)
    first, unseen = said(tmp_path)
    assert first.startswith(
        "MT-TARTAN, DAPT 10x has the highest mean macro-F1 on the whole test split, 61.50 ± 1.29 "
        "(4 seeds). Next is DAPT 10x with 51.50 ± 1.29 (4 seeds), 10.00 points less"
    )
    assert first.endswith("significantly so (two-sided p = 0.029).")
    assert "(95% interval of the difference -12.23 to -7.77)" in first
    assert "the highest mean is the same setting's, 61.50 ± 1.29" in unseen


def test_three_seeds_are_never_called_significant(tmp_path):
    two(tmp_path, HIGH[:3], LOW[:3])
    (first, _) = said(tmp_path)
    assert "That is not significant (two-sided p = 0.100" in first
    assert "could not be: with 3 and 3 seeds the smallest two-sided p is 0.100" in first


def test_a_baseline_that_wins_is_said_to_win(tmp_path):
    two(tmp_path, LOW, HIGH)
    write_setting(tmp_path, "meta", "meta_tartan", [0.4, 0.41, 0.4, 0.41], auxiliaries=["dapt"])
    write_setting(tmp_path, "ft", "finetune", [0.58, 0.59, 0.6, 0.61])
    first, claim, _ = said(tmp_path)
    assert first.startswith("DAPT 10x has the highest mean")
    assert claim.startswith(
        "The best baseline, DAPT 10x, is ahead of the joint training with the highest mean, "
        "MT-TARTAN, DAPT 10x, which has 51.50 ± 1.29 (4 seeds), 10.00 points less"
    )
    assert claim.endswith("Picked from 4 settings by this same split: p flatters the best.")


def test_one_seed_says_nothing_about_chance(tmp_path):
    two(tmp_path, [0.6], [0.5])
    (first, _) = said(tmp_path)
    assert "61" not in first
    assert "60.00 (1 seed)" in first
    assert "10.00 points less. Whether that is chance cannot be told" in first
    assert "significant" not in first


@pytest.mark.parametrize(
    ("unseen", "words"),
    [
        ((LOW, HIGH), "DAPT 10x's, 61.50 ± 1.29 (4 seeds), significantly above the next."),
        ((HIGH, LOW), "the same setting's, 61.50 ± 1.29 (4 seeds), significantly above the next."),
        (([0.61, 0.51, 0.62, 0.52], [0.6, 0.5, 0.61, 0.53]), "not significantly above the next."),
    ],
)
def test_the_best_on_the_unseen_part_of_test_is_said(tmp_path, unseen, words):
    ours, theirs = unseen
    write_setting(tmp_path, "mt", "mt_tartan", HIGH, unseen=ours, auxiliaries=["dapt"])
    write_setting(tmp_path, "dapt", "dapt", LOW, unseen=theirs, auxiliaries=["dapt"])
    assert said(tmp_path)[-1].startswith("On the test texts not in train (90 of 100) the highest")
    assert said(tmp_path)[-1].endswith(words)


@pytest.mark.parametrize(
    ("examples", "words"),
    [(100, "No test text is in train"), (0, "Every test text is in train")],
)
def test_splits_of_one_kind_are_named(tmp_path, examples, words):
    two(tmp_path, HIGH, LOW, unseen_examples=examples)
    assert said(tmp_path)[-1].startswith(words)


def test_under_no_difference_few_are_called_significant(tmp_path):
    """The winner is read off the scores: of one-sided p-values, twice as many are small."""
    rng = np.random.default_rng(3)
    called = 0
    for trial in range(80):
        ours, theirs = (0.6 + 0.01 * rng.standard_normal((2, 5))).tolist()
        two(tmp_path / str(trial), ours, theirs)
        called += "significantly so" in said(tmp_path / str(trial))[0]
    assert called / 80 <= 0.06


def test_holm_holds_in_the_summary_as_in_the_table(tmp_path):
    two(tmp_path, HIGH, LOW)
    write_setting(tmp_path, "ft", "finetune", LOW)
    write_setting(tmp_path, "meta", "meta_tartan", [0.55, 0.56, 0.57, 0.58], auxiliaries=["dapt"])
    assert "significantly so (two-sided p = 0.029)" in said(tmp_path)[1]
    claim = said(tmp_path, holm=True)[1]
    assert "That is not significant (two-sided p = 0.086 (Holm))" in claim
    table = overview(bench_of(tmp_path), "whole", ComparisonOptions(holm=True))
    assert "0.086 (Holm)" in [cell.words for one in table.rows for cell in one.cells]


def test_the_best_of_pairs_is_so_on_the_seeds_that_all_have(tmp_path):
    write_setting(tmp_path, "ft", "finetune", [0.60, 0.61, 0.79, 0.60])
    write_setting(tmp_path, "mt", "mt_tartan", [0.62, 0.64])
    first = said(tmp_path, paired=True)[0]
    assert first.startswith(
        "MT-TARTAN has the highest mean macro-F1 on the whole test split, 63.00 ± 1.41 (2 seeds). "
        "Next is Fine-tuning with 60.50 ± 0.71 (2 seeds), 2.50 points less"
    )


def test_a_single_seed_is_not_ranked_beside_several(tmp_path):
    two(tmp_path, HIGH, LOW)
    write_setting(tmp_path, "tapt", "tapt", [0.66], auxiliaries=["tapt"])
    first, left_out, _ = said(tmp_path)
    assert first.startswith("MT-TARTAN, DAPT 10x has the highest mean")
    assert "significantly so" in first
    assert left_out.endswith("TAPT with 66.00 (1 seed).")


def test_the_inventory_names_the_runs_that_a_newer_one_replaced(tmp_path):
    for place, name in enumerate(("seed=0", "seed=0-2", "seed=0-3")):
        folder = write_run(tmp_path / name, result_of("finetune", 0, 0.5 + place / 10))
        os.utime(folder / "result.json", (1000 + place, 1000 + place))
    found = find_runs(tmp_path)
    assert inventory(found, benchmarks_of(found.runs)) == (
        "3 finished runs, 2 older runs of a setting and seed that have a newer one (not counted: "
        "seed=0; seed=0-2); 1 setting (runs that differ by their seed alone) in 1 comparison."
    )


def test_tf_idf_is_beside_the_settings_once_for_each_seed(tmp_path):
    def last_sentence(folder):
        return sentences_of(bench_of(folder), ComparisonOptions())[-1]

    def with_tf_idf(folders, tests):
        for folder, test in zip(folders, tests, strict=True):
            path = folder / "result.json"
            result = json.loads(path.read_text())
            own = {"name": "tf_idf", "dev": {"macro_f1": 0.4}, "test": {"macro_f1": test}}
            path.write_text(json.dumps({**result, "baselines": [own]}))

    with_tf_idf(write_setting(tmp_path, "ft", "finetune", [0.6, 0.6]), [0.3, 0.5])
    start = "TF-IDF with logistic regression, its settings chosen on dev, reaches "
    end = "on the whole test split (40.00 on dev, mean of"
    assert last_sentence(tmp_path) == f"{start}40.00 {end} 2 seeds)."
    more = write_setting(tmp_path, "mt", "mt_tartan", [0.62] * 3, auxiliaries=["tapt"])
    with_tf_idf(more, [0.3, 0.5, 0.7])
    assert last_sentence(tmp_path) == f"{start}50.00 {end} 3 seeds)."
