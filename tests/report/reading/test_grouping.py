"""Which runs belong together, and which may be compared."""

from __future__ import annotations

import pytest

from src.report.reading.grouping import benchmarks_of, differing_options
from tests.report.made_up_runs import (
    altered,
    bench_of,
    config_of,
    read_all,
    result_of,
    write_run,
    write_setting,
)


def labels(bench):
    return [setting.label for setting in bench.settings]


def test_seeds_of_one_config_are_one_setting(tmp_path):
    write_setting(tmp_path, "a", "finetune", [0.5, 0.6, 0.7], options={"encoder.name": "x"})
    (setting,) = bench_of(tmp_path).settings
    assert setting.scores("whole") == {0: 0.5, 1: 0.6, 2: 0.7}
    assert setting.label == "Fine-tuning"


def test_an_option_that_follows_the_seed_is_no_difference(tmp_path):
    for seed in (0, 1):
        result = result_of("finetune", seed, 0.5)
        write_run(tmp_path / str(seed), result, config_of(result, {"encoder.seed": seed}))
    assert len(bench_of(tmp_path).settings) == 1


def test_another_option_is_another_setting_and_its_label_says_which(tmp_path):
    for rate in (0.1, 0.2):
        options = {"method.stages.finetune.lr": rate}
        write_setting(tmp_path, f"lr{rate}", "finetune", [0.5, 0.6], options=options)
    bench = bench_of(tmp_path)
    assert labels(bench) == ["Fine-tuning [finetune.lr=0.1]", "Fine-tuning [finetune.lr=0.2]"]
    assert differing_options(bench.settings) == {"method.stages.finetune.lr": [0.1, 0.2]}


def test_where_files_lie_is_no_difference(tmp_path):
    for seed, place in enumerate(("/here", "/there")):
        result = result_of("mt_tartan", seed, 0.5, auxiliaries=["dapt"])
        result = altered(result, "auxiliaries.dapt.source", f"{place}/corpus.txt")
        write_run(tmp_path / str(seed), result, config_of(result, {"data_dir": place}))
    assert len(bench_of(tmp_path).settings) == 1


def test_the_same_run_twice_counts_once(tmp_path):
    for name in ("seed=0", "seed=0-2", "seed=1"):
        write_run(tmp_path / name, result_of("finetune", int(name[5]), 0.5))
    (setting,) = bench_of(tmp_path).settings
    assert [run.name for run in setting.runs] == ["seed=0", "seed=1"]
    assert [run.name for run in setting.repeated] == ["seed=0-2"]


def test_methods_come_in_the_papers_order_and_sizes_by_size(tmp_path):
    write_setting(tmp_path, "meta", "meta_tartan", [0.5], auxiliaries=["dapt", "tapt"])
    for size in (10, 2, "all"):
        write_setting(tmp_path, f"dapt{size}", "dapt", [0.5], auxiliaries=["dapt"], size=size)
    write_setting(tmp_path, "tapt", "tapt", [0.5], auxiliaries=["tapt"])
    write_setting(tmp_path, "own", "my_method", [0.5])
    write_setting(tmp_path, "finetune", "finetune", [0.5])
    assert labels(bench_of(tmp_path)) == [
        "Fine-tuning", "TAPT", "DAPT 2x", "DAPT 10x", "DAPT all",
        "META-TARTAN, DAPT 10x + TAPT", "my_method",
    ]  # fmt: skip


def test_another_weighting_is_named(tmp_path):
    result = altered(result_of("mt_tartan", 0, 0.5, auxiliaries=["dapt"]), "weighting", "upgrad")
    write_run(tmp_path / "run", result)
    assert labels(bench_of(tmp_path)) == ["MT-TARTAN (upgrad), DAPT 10x"]


@pytest.mark.parametrize(
    ("path", "value", "label"),
    [
        ("task", "other", "other, tiny"),
        ("encoder", "roberta", "toy, roberta"),
        ("fingerprints", {"test": "c"}, "toy, tiny, data "),
        ("labels", ["A", "B", "D"], "toy, tiny, data "),
    ],
)
def test_only_like_is_compared_with_like(tmp_path, path, value, label):
    result = result_of("finetune", 0, 0.5)
    write_run(tmp_path / "a", result)
    write_run(tmp_path / "b", altered(result, path, value))
    benches = benchmarks_of(read_all(tmp_path))
    assert len(benches) == 2
    assert len({bench.key for bench in benches}) == 2
    assert any(bench.label.startswith(label) for bench in benches)


def test_keys_are_fit_for_files_and_anchors(tmp_path):
    for name, task in (("a", "../<b>&"), ("b", "../<b>#"), ("c", "$")):
        write_run(tmp_path / name, result_of("finetune", 0, 0.5, task=task, encoder="%"))
    keys = [bench.key for bench in benchmarks_of(read_all(tmp_path))]
    assert len(set(keys)) == 3
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_") for key in keys)


def test_options_of_stages_that_were_not_run_are_no_difference_to_look_at(tmp_path):
    options = {"method.stages.last_finetune.lr": 1}
    write_setting(tmp_path, "a", "finetune", [0.5], options=options)
    write_setting(tmp_path, "b", "finetune", [0.5], options={"method.stages.last_finetune.lr": 2})
    bench = bench_of(tmp_path)
    assert differing_options(bench.settings) == {}
    assert labels(bench) == ["Fine-tuning [1]", "Fine-tuning [2]"]
