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
    write_drawn,
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


def test_data_that_each_seed_draws_are_compared_as_one(tmp_path):
    for method, auxiliaries in (("finetune", []), ("tapt", ["tapt"])):
        for seed in range(5):
            result = result_of(method, seed, 0.5, auxiliaries=auxiliaries)
            write_drawn(tmp_path / f"{method}{seed}", result, seed)
    bench = bench_of(tmp_path)
    assert bench.draws_data
    assert [len(setting.runs) for setting in bench.settings] == [5, 5]
    assert labels(bench) == ["Fine-tuning", "TAPT"]
    assert "task.split_seed" not in differing_options(bench.settings)


def test_one_choice_of_data_for_all_seeds_stays_one(tmp_path):
    """Seed 0 with `task.split_seed` of 0, the default, draws nothing of its own."""
    for seed in range(3):
        write_drawn(tmp_path / f"a{seed}", result_of("finetune", seed, 0.5), 0)
    write_drawn(tmp_path / "b", result_of("mt_tartan", 0, 0.5), 0)
    bench = bench_of(tmp_path)
    assert not bench.draws_data
    assert [len(setting.runs) for setting in bench.settings] == [3, 1]


def test_every_choice_with_every_seed_is_a_comparison_a_choice(tmp_path):
    for seed in range(2):
        for split in range(2):
            result = result_of("finetune", seed, 0.5)
            write_drawn(tmp_path / f"{seed}-{split}", result, split)
    assert [len(bench.runs) for bench in benchmarks_of(read_all(tmp_path))] == [2, 2]


def test_drawn_data_of_another_file_are_others(tmp_path):
    for seed in range(2):
        result = result_of("finetune", seed, 0.5)
        write_drawn(tmp_path / f"a{seed}", result, seed)
        other = altered(result, "fingerprints.test", "c" * 64)
        write_drawn(tmp_path / f"b{seed}", other, seed)
    assert [len(bench.runs) for bench in benchmarks_of(read_all(tmp_path))] == [2, 2]


def test_held_out_and_clean_splits_can_be_drawn_too(tmp_path):
    for seed in range(2):
        for name, said in (
            ("held", f"HeldOut(share=0.2, seed={seed}, split='dev') of {'a' * 64}"),
            ("clean", f"dev, clean, seed {seed}, of {'a' * 64}"),
        ):
            result = result_of("finetune", seed, 0.5, task=name)
            result = altered(result, "fingerprints.dev", said)
            options = {"task.split_seed": seed}
            write_run(tmp_path / f"{name}{seed}", result, config_of(result, options))
    benches = benchmarks_of(read_all(tmp_path))
    assert [(bench.task, len(bench.settings)) for bench in benches] == [("clean", 1), ("held", 1)]


def test_a_seed_of_splits_that_chose_nothing_is_no_difference(tmp_path):
    for seed in range(2):
        result = result_of("finetune", seed, 0.5)
        write_run(tmp_path / str(seed), result, config_of(result, {"task.split_seed": seed}))
    assert len(bench_of(tmp_path).settings) == 1


@pytest.mark.parametrize(
    ("fingerprints", "settings"),
    [
        (("corpus:300:0", "corpus:301:0"), 1),  # another number of texts for another train
        (("corpus:300:0", "other:300:0"), 2),
        (("corpus:300:0", "corpus:300:1"), 2),
    ],
)
def test_the_corpus_of_drawn_data_has_to_be_the_same(fingerprints, settings, tmp_path):
    for seed, fingerprint in enumerate(fingerprints):
        result = result_of("dapt", seed, 0.5, auxiliaries=["dapt"])
        result = altered(result, "auxiliaries.dapt.fingerprint", fingerprint)
        result = altered(result, "auxiliaries.dapt.examples", 300 + seed)
        write_drawn(tmp_path / str(seed), result, seed)
    assert len(bench_of(tmp_path).settings) == settings


def test_decontaminated_text_of_drawn_data_goes_by_its_file(tmp_path):
    for seed in range(2):
        for source in ("/here/a.txt", "/here/b.txt"):
            result = result_of("dapt", seed, 0.5, auxiliaries=["dapt"])
            own = result["auxiliaries"]["dapt"]
            own |= {"source": source, "fingerprint": f"{seed}{source}:decontaminated:9:0"}
            own |= {"examples": 300 + seed, "decontaminated": 4 + seed}
            write_drawn(tmp_path / f"{seed}{source[-5]}", result, seed)
    assert [len(setting.runs) for setting in bench_of(tmp_path).settings] == [2, 2]


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
