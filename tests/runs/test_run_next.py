"""The command that a search ends with."""

from __future__ import annotations

import shlex

import pytest

from tartan.runs.result import write_result
from tartan.runs.sweep import RUN_NEXT, write_run_next
from tests.runs.small_result import small_result


def job(tmp_path, number, score, *overrides):
    folder = tmp_path / str(number)
    folder.mkdir()
    if score is not None:
        scores = {"examples": 4, "metrics": {"macro_f1": score, "loss": 9.0}}
        write_result(small_result(dev={"whole": scores, "unseen": scores}), folder)
    command = shlex.join(["tartan", "run", *overrides, "+search=paper"])
    return {"folder": str(folder), "command": command}


def command_in(tmp_path):
    return shlex.split((tmp_path / RUN_NEXT).read_text().splitlines()[1])[3:]


def test_the_best_on_dev_without_what_made_it_a_search(tmp_path, capsys):
    jobs = [
        job(tmp_path, 0, 0.5, "lr=1", "evaluate_test=false", "resume=false", "seed=3"),
        job(tmp_path, 1, 0.7, "lr=2", "x={a: 1}", "seed=3"),
        job(tmp_path, 2, None, "lr=3"),
    ]
    write_run_next(jobs, tmp_path, [])
    assert command_in(tmp_path) == ["lr=2", "x={a: 1}", "seed=0,1,2"]
    assert "best on dev: 0.7000" in capsys.readouterr().out


def test_seeds_of_the_same_settings_count_by_their_mean(tmp_path):
    scores = {"lr=1": (0.9, 0.1), "lr=2": (0.6, 0.6)}
    jobs = [
        job(tmp_path, f"{lr}{seed}", score, lr, f"seed={seed}")
        for lr, pair in scores.items()
        for seed, score in enumerate(pair)
    ]
    write_run_next(jobs, tmp_path, [])
    assert command_in(tmp_path) == ["lr=2", "seed=0,1,2"]


def test_a_perplexity_is_shown_as_it_is_and_the_lowest_chosen(tmp_path, capsys):
    jobs = [job(tmp_path, n, 0.0, f"lr={n}") for n in (1, 2)]
    for n, value in ((1, 30.5), (2, 12.5)):
        scores = {"examples": 4, "metrics": {"perplexity": value, "loss": 9.0}}
        result = small_result(dev={"whole": scores, "unseen": scores}, metric="perplexity")
        write_result(result, tmp_path / str(n))
    write_run_next(jobs, tmp_path, [])
    assert command_in(tmp_path) == ["lr=2", "seed=0,1,2"]
    assert "best on dev: 12.5000" in capsys.readouterr().out


def test_without_a_finished_job_there_is_no_command(tmp_path):
    write_run_next([job(tmp_path, 0, None, "lr=1")], tmp_path, [])
    assert not (tmp_path / RUN_NEXT).exists()


def test_flags_stand_before_the_options(tmp_path):
    write_run_next([job(tmp_path, 0, 0.5, "--config-dir=/my conf", "lr=1")], tmp_path, [])
    assert command_in(tmp_path) == ["--config-dir=/my conf", "lr=1", "seed=0,1,2"]


def test_another_search_in_the_folder_has_a_file_of_its_own(tmp_path, capsys):
    rates, paper = ["+search=rates", "encoder=tiny"], ["+search=paper", "x='a b'"]
    for number, (search, score) in enumerate([(rates, 0.5), (paper, 0.6), (rates[::-1], 0.7)]):
        write_run_next([job(tmp_path, number, score, f"lr={number}")], tmp_path, search)
    assert {path.name for path in tmp_path.glob("*.txt")} == {RUN_NEXT, "run_next-2.txt"}
    assert command_in(tmp_path) == ["lr=2", "seed=0,1,2"]
    assert f"({tmp_path}/run_next-2.txt)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "earlier", [b"# dev 0.5\npython -m src.run -m lr=1\n", b"# found by: '\xff"]
)
def test_a_file_that_names_no_search_is_left_alone(earlier, tmp_path):
    (tmp_path / RUN_NEXT).write_bytes(earlier)
    write_run_next([job(tmp_path, 0, 0.5, "lr=1")], tmp_path, ["+search=paper"])
    assert (tmp_path / RUN_NEXT).read_bytes() == earlier
    assert (tmp_path / "run_next-2.txt").is_file()
