"""The closing table shows the metrics, how many examples they count, and where things lie."""

from __future__ import annotations

import copy
import io
from pathlib import Path

import pytest
from rich.console import Console

from tartan.errors import UserError
from tartan.runs.result import Result
from tartan.runs.summary import print_summary
from tests.report.made_up_runs import result_of
from tests.runs.small_result import SMALL

RESULT = SMALL | {
    "task": "toy",
    "method": "meta_tartan",
    "encoder": "tiny",
    "seed": 7,
    "metric": "macro_f1",
    "dev": {
        "whole": {
            "examples": 1234,
            "metrics": {"micro_f1": 0.71234, "macro_f1": 0.61234, "loss": 1.1},
        },
        "unseen": {"examples": 1200, "metrics": {"micro_f1": 0.70001, "macro_f1": 0.60001}},
    },
    "test": {
        "whole": {
            "examples": 56,
            "metrics": {"micro_f1": 0.51234, "macro_f1": 0.41234, "loss": 1.2},
        },
        "unseen": {"examples": 0, "metrics": None},
    },
    "final_task_weights": {"end_task": 0.51249, "tapt": 0.48751},
    "stages": [
        {
            "name": "joint",
            "steps": 1500,
            "cost": {
                "tokens": {"end_task": 34567, "tapt": 65433},
                "examples": {"end_task": 1000, "tapt": 1000},
                "flops": {"end_task": 4 * 10**12, "tapt": 6 * 10**12},
                "padding_share": 0.25,
            },
            "measured": {
                "seconds": 12.3,
                "tokens_per_second": 9876.5,
                "peak_memory_bytes": 3 * 2**29,
            },
        }
    ],
}


BASELINE = {"name": "tf_idf", "dev": {"macro_f1": 0.31}, "test": {"macro_f1": 0.29, "loss": 2.0}}


def shown(result, folder, width=120, verbose=True) -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    print_summary(Result.model_validate(result, strict=False), folder, console, verbose)
    return console.export_text()


def row(text, label) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"│ {label} ")]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_every_split_has_its_metrics_and_its_number_of_examples(tmp_path):
    text = shown(RESULT, tmp_path)
    assert row(text, "dev") == ["dev", "0.6123", "0.7123", "1,234"]
    unseen = "not in train"
    assert row(text, f"dev, {unseen}") == [f"dev, {unseen}", "0.6000", "0.7000", "1,200"]
    assert row(text, "test") == ["test", "0.4123", "0.5123", "56"]


@pytest.mark.parametrize("verbose", [False, True])
def test_skipped_updates_are_said_where_there_were_any(tmp_path, verbose):
    result = copy.deepcopy(RESULT)
    assert "skipped" not in shown(result, tmp_path, verbose=verbose)
    result["stages"][0]["skipped"] = 3
    line = "joint: 3 of 1,500 updates were skipped, because a number was not finite"
    assert line in shown(result, tmp_path, verbose=verbose)


def test_one_label_for_everything_is_said_in_one_line(tmp_path):
    result = copy.deepcopy(RESULT) | {"labels": ["[a]", "b"]}
    result["test"]["whole"]["confusion"] = [[31, 0], [25, 0]]
    line = "every text of test got the label '[a]'."
    assert line in shown(result, tmp_path, width=60, verbose=False)
    result["test"]["whole"]["confusion"] = [[31, 0], [24, 1]]
    assert "got the label" not in shown(result, tmp_path, verbose=False)


def test_tf_idf_that_is_clearly_ahead_is_said_in_one_line(tmp_path):
    result = copy.deepcopy(RESULT) | {"baselines": [copy.deepcopy(BASELINE)]}
    assert "ahead on" not in shown(result, tmp_path)
    result["baselines"][0]["test"]["macro_f1"] = 0.5
    line = "TF-IDF with logistic regression is 8.8 points of macro_f1 ahead on test."
    assert line in shown(result, tmp_path, verbose=False)
    result["baselines"][0]["test"]["macro_f1"] = 0.43  # within two points
    assert "ahead on" not in shown(result, tmp_path)
    del result["test"]
    result["baselines"][0] |= {"test": None, "dev": {"macro_f1": 0.7}}
    assert "is 8.8 points of macro_f1 ahead on dev." in shown(result, tmp_path)


def test_by_default_score_baseline_time_and_places_are_shown(tmp_path):
    (tmp_path / "result.json").touch()
    result = RESULT | {"baselines": [BASELINE]}
    text = shown(result, tmp_path, verbose=False)
    assert row(text, "dev") == ["dev", "0.6123", "0.3100", "1,234"]
    assert row(text, "test") == ["test", "0.4123", "0.2900", "56"]
    assert row(text, "dev, not in train") == ["dev, not in train", "0.6000", "-", "1,200"]
    heading = next(line for line in text.splitlines() if "macro_f1" in line)
    assert [cell.strip() for cell in heading.strip("┃").split("┃")] == [
        "split", "macro_f1", "TF-IDF", "examples"
    ]  # fmt: skip
    assert "12 seconds: joint 1,500 steps" in text
    assert "task weights  end_task 0.512  tapt 0.488" in text
    assert str(tmp_path / "result.json") in text
    assert "GFLOP" not in text


@pytest.mark.parametrize(
    ("metric", "evaluations", "words"),
    [
        ("macro_f1", [[500, 0.6], [1000, 0.7], [1500, 0.7]], "1,500 steps, best after 1,000"),
        ("macro_f1", [[500, 0.6], [1000, 0.7], [1500, 0.8]], "1,500 steps"),
        ("perplexity", [[500, 20.0], [1000, 30.0], [1500, 25.0]], "1,500 steps, best after 500"),
    ],
)
def test_a_stage_tells_after_how_many_steps_dev_was_best(metric, evaluations, words, tmp_path):
    result = copy.deepcopy(RESULT) | {"metric": metric}
    for split in ("dev", "test"):
        result[split]["whole"]["metrics"][metric] = 0.5
    result["stages"][0]["evaluations"] = evaluations
    assert f"12 seconds: joint {words}\n" in shown(result, tmp_path, verbose=False)


def test_where_no_text_is_in_train_its_part_is_not_repeated(tmp_path):
    dev = {"whole": RESULT["dev"]["whole"], "unseen": RESULT["dev"]["whole"]}
    short = shown(RESULT | {"dev": dev}, tmp_path, verbose=False)
    assert "dev, not in train" not in short
    assert "test, not in train" in short  # it has none of its examples
    assert "dev, not in train" in shown(RESULT | {"dev": dev}, tmp_path)


def test_a_baseline_without_test_has_a_dash(tmp_path):
    result = RESULT | {"baselines": [BASELINE | {"test": None}]}
    assert row(shown(result, tmp_path, verbose=False), "test") == ["test", "0.4123", "-", "56"]


def test_fine_tuning_at_equal_cost_says_what_it_took(tmp_path):
    trained = {"name": "fine_tuning", "settings": "90 steps", "dev": {"macro_f1": 0.6}}
    result = RESULT | {"baselines": [trained | {"seconds": 45.6}, BASELINE]}
    text = shown(result, tmp_path, verbose=False)
    assert row(text, "dev") == ["dev", "0.6123", "0.6000", "0.3100", "1,234"]
    assert "46 seconds: fine-tuning at equal cost, 90 steps" in text


def test_a_part_without_examples_has_dashes(tmp_path):
    label = "test, not in train"
    assert row(shown(RESULT, tmp_path), label) == [label, "-", "-", "0"]


def test_the_metric_that_chose_the_checkpoint_comes_first_and_is_marked(tmp_path):
    text = shown(RESULT, tmp_path)
    assert "macro_f1 *" in text
    assert text.index("macro_f1 *") < text.index("micro_f1")
    assert "* chooses the checkpoint" in text


def test_the_title_says_what_was_run(tmp_path):
    assert "meta_tartan on toy, tiny, seed 7" in shown(RESULT, tmp_path)


def test_stages_and_task_weights_are_shown(tmp_path):
    text = shown(RESULT, tmp_path)
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    whole = ["1,500", "12", "100,000", "10,000", "9,876", "25%", "1.5", "96%"]
    assert lines["joint"] == whole
    assert lines["end_task"] == ["34,567", "4,000"]
    assert lines["tapt"] == ["65,433", "6,000"]
    assert "end_task 0.512  tapt 0.488" in text


def test_without_mixing_no_task_weights_are_shown(tmp_path):
    assert "task weights" not in shown({**RESULT, "final_task_weights": {}}, tmp_path)


@pytest.mark.parametrize("width", [60, 200])
def test_paths_of_what_is_there_are_shown_in_one_piece(tmp_path, width):
    folder = tmp_path / ("a_long_name_" * 10)
    folder.mkdir()
    (folder / "result.json").touch()
    (folder / "classifier").mkdir()
    text = shown(RESULT, folder, width)
    assert str(folder / "result.json") in text
    assert str(folder / "classifier") in text
    assert "task_weights.png" not in text


def test_paths_in_the_working_folder_are_short(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "own").mkdir(parents=True)
    (tmp_path / "runs" / "own" / "result.json").touch()
    assert f"{'result':18}runs/own/result.json\n" in shown(RESULT, tmp_path / "runs" / "own")


def test_a_name_in_square_brackets_is_text_not_markup(tmp_path):
    folder = tmp_path / "[red]x"
    folder.mkdir()
    (folder / "result.json").touch()
    result = copy.deepcopy(RESULT) | {"encoder": "/models/[bold]mine"}
    text = shown(result, folder)
    assert str(folder / "result.json") in text
    assert "/models/[bold]mine" in text


@pytest.mark.parametrize("verbose", [False, True])
def test_brackets_in_names_of_stages_metrics_tasks_and_baselines_are_text(tmp_path, verbose):
    odd = "a[/x]"
    result = copy.deepcopy(RESULT) | {"metric": odd, "final_task_weights": {odd: 1.0}}
    for part in (result["dev"]["whole"], result["test"]["whole"]):
        part["metrics"][odd] = 0.5
    result["baselines"] = [{"name": odd, "settings": odd, "dev": {odd: 0.1}, "seconds": 1.0}]
    result["stages"][0] |= {"name": odd, "skipped": 1}
    result["stages"][0]["cost"]["tokens"] = {odd: 1, "tapt": 2}
    text = shown(result, tmp_path, verbose=verbose)
    assert text.count(odd) >= 5
    assert f"task weights  {odd} 1.000" in text


def test_the_seconds_are_those_of_the_stages(tmp_path):
    result = result_of("finetune", 3, 0.5)
    assert "63 seconds: finetune 50 steps" in shown(result, tmp_path, verbose=False)


def test_nothing_in_a_result_commands_the_terminal():
    result = copy.deepcopy(RESULT) | {"task": "t\x1b]0;owned\x07", "encoder": "\x1b[2Jx\x9b1A"}
    result["final_task_weights"] = {"end\x1b[31m_task": 1.0}
    out = io.StringIO()
    read = Result.model_validate(result, strict=False)
    print_summary(read, Path("runs/one"), Console(file=out, width=120))
    assert not set("\x1b\x07\x9b") & set(out.getvalue())
    assert "owned" in out.getvalue()


def test_an_error_does_not_command_the_terminal():
    error = UserError("label '\x1b[2J' of f\u00e4rg \u65e5\u672c\u8a9e")
    assert str(error) == "label '\\x1b[2J' of f\u00e4rg \u65e5\u672c\u8a9e"
