"""Runs of the command: the numbers in `runs.json`, also after kills, and what is made of them."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tests.contract.runs import CASES, DIGITS, FILE, options_of, outcome_of, run, write_toy
from tests.programs import called_for_text, started

pytestmark = pytest.mark.slow
GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))
NEAR = 1e-6
"""Stored scores and exported weights are float32."""


def same(outcome: Any, expected: Any, place: str = "") -> None:
    """Assert that numbers are near each other, and all else is equal."""
    if isinstance(expected, dict):
        assert outcome.keys() == expected.keys(), place
        for name in expected:
            same(outcome[name], expected[name], f"{place}.{name}")
    elif isinstance(expected, list):
        assert len(outcome) == len(expected), place
        for index, pair in enumerate(zip(outcome, expected, strict=True)):
            same(*pair, f"{place}[{index}]")
    elif isinstance(expected, float):
        assert outcome == pytest.approx(expected, rel=NEAR, abs=NEAR), place
    else:
        assert outcome == expected, place


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    write_toy(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_a_run_ends_with_the_same_numbers(case, toy):
    done = run(options_of(case), toy)
    assert done.returncode == 0, done.stderr
    same(outcome_of(toy / "run"), GOLDEN[case])


def test_images_train_the_same_way(tmp_path):
    done = run([*DIGITS, "hydra.run.dir=run"], tmp_path)
    assert done.returncode == 0, done.stderr
    same(outcome_of(tmp_path / "run"), GOLDEN["digits"])


def test_a_run_that_is_killed_goes_on_bit_for_bit(toy):
    """Both stages are interrupted by SIGKILL, each after a resume point."""
    options = [*options_of("tapt_meta_tartan"), "checkpoint_minutes=0"]
    kills = 0
    for least in (2, 8):
        process = started("src.run", *options, cwd=toy)
        while not process.is_over():
            if _steps(toy / "run") >= least:
                process.kill()
                kills += 1
                break
        process.wait()
    assert kills
    done = run(options, toy)
    assert done.returncode == 0, done.stderr
    assert outcome_of(toy / "run") == _fresh(toy, options)


def _steps(folder: Path) -> int:
    """The steps logged so far, of all stages."""
    log = folder / "steps.csv"
    return max(0, len(log.read_text().splitlines()) - 1) if log.exists() else 0


def _fresh(toy: Path, options: list[str]) -> dict[str, Any]:
    done = run([*options[:-2], "hydra.run.dir=fresh", "checkpoint_minutes=0"], toy)
    assert done.returncode == 0, done.stderr
    return outcome_of(toy / "fresh")


def test_what_is_exported_predicts_the_same_everywhere(toy):
    """`src.predict` and Transformers, from the exported folder alone."""
    assert run(options_of("finetune"), toy).returncode == 0
    (toy / "run" / "classifier").rename(toy / "classifier")
    texts = [json.loads(line)["text"] for line in (toy / "test.jsonl").read_text().splitlines()]
    options = ["model=classifier", "input=test.jsonl", "output=predictions.csv", "calibrated=false"]
    done = called_for_text("src.predict", *options, cwd=toy)
    assert done.returncode == 0, done.stderr
    with (toy / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    model = AutoModelForSequenceClassification.from_pretrained(toy / "classifier").eval()
    tokenizer = AutoTokenizer.from_pretrained(toy / "classifier")
    with torch.no_grad():
        logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    names = [model.config.id2label[index] for index in logits.argmax(dim=1).tolist()]
    assert [row["predicted_label"] for row in rows] == names
    for row, expected in zip(rows, logits.softmax(dim=1), strict=True):
        for index, name in model.config.id2label.items():
            near = pytest.approx(expected[index].item(), abs=1e-4)
            assert float(row[f"probability_{name}"]) == near


def test_a_folder_of_a_model_runs_nothing(toy):
    """Neither pickled weights nor a model's own code, in training and in prediction."""
    hostile = toy / "hostile"
    assert run(options_of("finetune"), toy).returncode == 0
    (toy / "run" / "classifier").rename(hostile)
    (hostile / "model.safetensors").unlink()
    code = f"import pathlib; pathlib.Path({str(toy / 'ran')!r}).touch()"
    (hostile / "evil.py").write_text(code)
    config = json.loads((hostile / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"}
    (hostile / "config.json").write_text(json.dumps(config))
    (hostile / "pytorch_model.bin").write_bytes(pickle.dumps(_Evil(code)))
    options = ["model=hostile", "input=test.jsonl", "output=out.csv"]
    assert called_for_text("src.predict", *options, cwd=toy).returncode != 0
    train = [o for o in options_of("finetune") if o != "encoder=tiny" and "run.dir" not in o]
    encoder = ["encoder=huggingface", "encoder.name=hostile", "hydra.run.dir=other"]
    assert run([*train, *encoder], toy).returncode != 0
    assert not (toy / "ran").exists()


class _Evil:
    """Runs code where it is unpickled."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> Any:
        return exec, (self.code,)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("text,label\na,x\nb\n", 3),
        ('text,label\na,x\n"b,y\nc,x\n', 3),
        ("text,label\na,x\nb,y,z\n", 3),
        ('{"text": "a", "label": "x"}\n{"text": "b", "label": \n', 2),
        ('{"text": "a", "label": "x"}\n["b", "y"]\n', 2),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(table, line, toy):
    name = "bad.csv" if table.startswith("text") else "bad.jsonl"
    (toy / name).write_text(table)
    options = [o for o in options_of("finetune") if not o.startswith("task.train=")]
    done = run([*options, f"task.train={name}"], toy)
    assert done.returncode == 1
    (message,) = done.stderr.strip().splitlines()[-1:]
    assert message.startswith("error: ")
    assert name in message
    assert f"line {line}" in message or f"{name}:{line}" in message
