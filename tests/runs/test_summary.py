"""The closing table shows the metrics, how many examples they count, and where things lie."""

from __future__ import annotations

import copy
import io

from rich.console import Console

from tartan.errors import UserError
from tartan.runs.result import Result
from tartan.runs.summary import print_summary
from tests.runs.small_result import SMALL


def scores(examples, macro, micro):
    return {"examples": examples, "metrics": {"micro_f1": micro, "macro_f1": macro}}


RESULT = SMALL | {
    "method": "meta_tartan",
    "seed": 7,
    "dev": {"whole": scores(1234, 0.61234, 0.71234), "unseen": scores(1200, 0.60001, 0.70001)},
    "test": {
        "whole": scores(56, 0.41234, 0.51234),
        "unseen": {"examples": 0, "metrics": None},
    },
    "final_task_weights": {"end_task": 0.51249, "tapt": 0.48751},
    "stages": [{"name": "joint", "steps": 1500, "measured": {"seconds": 12.3}}],
    "chosen": {"stage": "joint", "step": 900},
}
BASELINE = {"name": "tf_idf", "dev": {"macro_f1": 0.31}, "test": {"macro_f1": 0.29, "loss": 2.0}}


def shown(result, folder) -> str:
    console = Console(record=True, width=120, file=io.StringIO())
    print_summary(Result.model_validate(result, strict=False), folder, console)
    return console.export_text()


def row(text, label) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"│ {label} ")]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_by_default_score_baseline_time_and_places_are_shown(tmp_path):
    (tmp_path / "result.json").touch()
    result = copy.deepcopy(RESULT) | {"baselines": [BASELINE]}
    result["stages"][0]["skipped"] = 3
    text = shown(result, tmp_path)
    assert "meta_tartan on toy, tiny, seed 7" in text
    assert row(text, "dev") == ["dev", "0.6123", "0.3100", "1,234"]
    assert row(text, "test, trained on") == ["test, trained on", "0.4123", "0.2900", "56"]
    assert row(text, "dev, not in train") == ["dev, not in train", "0.6000", "-", "1,200"]
    heading = next(line for line in text.splitlines() if "macro_f1" in line)
    assert [cell.strip() for cell in heading.strip("┃").split("┃")] == [
        "split", "macro_f1", "TF-IDF", "examples"
    ]  # fmt: skip
    assert "12 s: joint 1,500 steps; best after step 900 of joint\n" in text
    assert "joint: 3 updates were not finite, and skipped" in text
    assert "task weights  end_task 0.512  tapt 0.488" in text
    assert str(tmp_path / "result.json") in text


def test_names_are_text_and_neither_markup_nor_commands_for_the_terminal(tmp_path):
    odd = "a[/x]"
    result = copy.deepcopy(RESULT) | {"metric": odd, "final_task_weights": {odd: 1.0}}
    result |= {"task": "t\x1b]0;owned\x07", "encoder": "\x1b[2Jx\x9b1A"}
    for part in (result["dev"]["whole"], result["test"]["whole"]):
        part["metrics"][odd] = 0.5
    result["baselines"] = [{"name": f"{odd}\x1b", "settings": odd, "dev": {odd: 0.1}}]
    result["stages"][0] |= {"name": odd, "skipped": 1}
    text = shown(result, tmp_path)
    assert text.count(odd) >= 5
    assert f"task weights  {odd} 1.000" in text
    assert "owned" in text
    assert not set("\x1b\x07\x9b") & set(text)
    error = UserError("label '\x1b[2J' of f\u00e4rg \u65e5\u672c\u8a9e")
    assert str(error) == "label '\\x1b[2J' of f\u00e4rg \u65e5\u672c\u8a9e"
