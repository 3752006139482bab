"""The summary says what the runs allow, and no more."""

from __future__ import annotations

import json

from tartan.report.report import sentences_of
from tests.report.made_up_runs import bench_of, write_setting

LOW, HIGH = [0.50, 0.51, 0.52, 0.53], [0.60, 0.61, 0.62, 0.63]


def said(root, paired=False, holm=False):
    return sentences_of(bench_of(root, paired, holm))


def two(root, ours, theirs, **more):
    write_setting(root, "mt", "mt_tartan", ours, auxiliaries=["dapt"], **more)
    write_setting(root, "dapt", "dapt", theirs, auxiliaries=["dapt"], **more)


def test_a_significant_difference_is_called_so(tmp_path):
    two(tmp_path, HIGH, LOW)
    first, unseen = said(tmp_path)
    assert first.startswith("MT-TARTAN, DAPT 10x has the highest mean macro-F1")
    assert "61.50 ± 1.29 (4 seeds). Next is DAPT 10x with 51.50 ± 1.29 (4 seeds), 10.00" in first
    assert "(95% interval of the lead +7.77 to +12.23)" in first
    assert first.endswith("significantly so (two-sided p = 0.029).")
    assert "the highest mean is the same setting's, 61.50 ± 1.29" in unseen


def test_one_seed_says_nothing_about_chance(tmp_path):
    two(tmp_path, [0.6], [0.5])
    (first, _) = said(tmp_path)
    assert "10.00 points behind. Whether that is chance cannot be told" in first
    assert "significant" not in first
    write_setting(tmp_path, "tapt", "tapt", [0.3, 0.4], auxiliaries=["tapt"])
    alone, *left_out, _ = said(tmp_path)
    assert alone.startswith("TAPT alone is ranked: 35.00 ± 7.07 (2 seeds)")
    assert [sentence.split(": ")[1] for sentence in left_out] == [
        "DAPT 10x with 50.00 (1 seed).", "MT-TARTAN, DAPT 10x with 60.00 (1 seed).",
    ]  # fmt: skip


def test_holm_counts_the_comparisons_of_the_best_with_the_others(tmp_path):
    two(tmp_path, HIGH, LOW)
    write_setting(tmp_path, "ft", "finetune", LOW)
    write_setting(tmp_path, "meta", "meta_tartan", [0.55, 0.56, 0.57, 0.58], auxiliaries=["dapt"])
    assert "significantly so (two-sided p = 0.029). Picked from 4 settings" in said(tmp_path)[0]
    first = said(tmp_path, holm=True)[0]
    assert "That is not significant (two-sided p = 0.086 (Holm))" in first
    assert "with 4 and 4 seeds and 3 comparisons the smallest two-sided p is 0.086" in first


def test_tf_idf_is_beside_the_settings_once_for_each_seed(tmp_path):
    tests = {"ft": [0.3, 0.5], "mt": [0.3, 0.5, 0.7]}
    for method, (name, values) in zip(("finetune", "mt_tartan"), tests.items(), strict=True):
        folders = write_setting(tmp_path, name, method, [0.6] * len(values))
        for folder, test in zip(folders, values, strict=True):
            result = json.loads((folder / "result.json").read_text())
            own = {"name": "tf_idf", "dev": {"macro_f1": 0.4}, "test": {"macro_f1": test}}
            (folder / "result.json").write_text(json.dumps({**result, "baselines": [own]}))
    words = "reaches 50.00 on the whole test split (40.00 on dev, mean of 3 seeds)."
    assert said(tmp_path)[-1].endswith(words)
