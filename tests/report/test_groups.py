"""Which runs belong together, which may be compared, and what they are called."""

from __future__ import annotations

import os

import pytest

from tartan.report.comparison import benchmarks_of, differing_options
from tests.report.made_up_runs import (
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


def test_runs_are_grouped_by_what_their_results_say(tmp_path):
    """Whatever else is equal or different in them."""
    ids = [("s", "d"), ("s", "d"), ("t", "d"), ("s", "e")]
    for seed, (setting, data) in enumerate(ids):
        said = {"setting_id": setting, "data_id": data, "label": f"setting {setting}"}
        result = result_of("finetune", seed, 0.5) | said
        write_run(tmp_path / str(seed), result, config_of(result, {"x": seed}))
    benches = benchmarks_of(read_all(tmp_path))
    assert [[sorted(s.scores("whole")) for s in bench.settings] for bench in benches] == [
        [[0, 1], [2]], [[3]],
    ]  # fmt: skip
    assert labels(benches[0]) == ["setting s", "setting t"]


def test_data_that_each_seed_draws_are_compared_in_pairs_beside_runs_of_one_choice(tmp_path):
    for method, auxiliaries in (("finetune", []), ("tapt", ["tapt"])):
        for seed in range(3):
            result = result_of(method, seed, 0.5, auxiliaries=auxiliaries)
            folder = tmp_path / f"{method}{seed}"
            write_drawn(folder, result, seed, overrides=["task.split_seed=${seed}"])
    for seed in range(2):
        write_drawn(tmp_path / f"fixed{seed}", result_of("finetune", seed, 0.5), 0)
    found = {
        (bench.draws_data, bench.paired): [sorted(s.scores("whole")) for s in bench.settings]
        for bench in benchmarks_of(read_all(tmp_path))
    }
    assert found == {(True, True): [[0, 1, 2]] * 2, (False, False): [[0, 1]]}


@pytest.mark.parametrize(
    ("newest", "counts"), [("seed=0", "seed=0"), ("seed=0-2", "seed=0-2"), (None, "seed=0-10")]
)
def test_of_the_same_run_again_the_newest_counts(tmp_path, newest, counts):
    scores = {"seed=0": 0.5, "seed=0-2": 0.6, "seed=0-10": 0.7, "seed=1": 0.8}
    for name, score in scores.items():
        folder = write_run(tmp_path / name, result_of("finetune", int(name[5]), score))
        os.utime(folder / "result.json", (1000, 1001 if name == newest else 1000))
    (setting,) = bench_of(tmp_path).settings
    assert setting.scores("whole") == {0: scores[counts], 1: 0.8}


def test_another_option_is_another_setting_and_its_label_says_which(tmp_path):
    for place, (rate, path) in enumerate([(0.1, "/x/a.csv"), (0.2, "/x/a.csv"), (0.2, "/x/b.csv")]):
        options = {"method.stages.finetune.lr": rate, "task.train": path}
        write_setting(tmp_path, str(place), "finetune", [0.5, 0.6], options=options)
    bench = bench_of(tmp_path)
    assert labels(bench) == [
        "Fine-tuning [finetune.lr=0.1, task.train=x/a.csv]",
        "Fine-tuning [finetune.lr=0.2, task.train=x/a.csv]",
        "Fine-tuning [finetune.lr=0.2, task.train=x/b.csv]",
    ]
    assert differing_options([setting.options for setting in bench.settings]) == {
        "method.stages.finetune.lr": [0.1, 0.2, 0.2],
        "task.train": ["/x/a.csv", "/x/a.csv", "/x/b.csv"],
    }
