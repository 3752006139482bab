"""Rows and parts of a study that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from studies.row import Row

PART = {
    "title": "A made-up part",
    "about": "Nothing was trained.",
    "order": 1,
    "seeds": 2,
    "steps": 100,
    "batch_size": 8,
    "options": ["task=scierc", "encoder=tiny", "auxiliary=tapt"],
    "budgets": {
        "1x": {"multiple": 1, "evaluations": 2},
        "end": {"multiple": 3, "evaluations": 6, "patience": 2},
    },
    "settings": {
        "finetune": {"method": "finetune", "stages": {"finetune": 2.0}},
        "tapt": {
            "method": "tapt",
            "stages": {"tapt": 4.0, "finetune": 2.0},
            "budgets": ["1x"],
        },
    },
    "questions": {
        "pays": {
            "statement": "TAPT is better.",
            "of": "test",
            "contrasts": {"at 1x": {"plus": ["1x/tapt"], "minus": ["1x/finetune"]}},
        }
    },
}


def write_part(folder, content: Mapping = PART, name: str = "toy"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(dict(content)), encoding="utf-8")
    return folder


def row(setting: str, seed: int, test: float, **more) -> Row:
    entries = {
        "budget": "1x", "task": "toy", "labelled": 300, "encoder": "tiny", "method": setting,
        "metric": "macro_f1", "dev": test + 0.01, "test": test, "unseen": test - 0.01,
        "tflop": 1.5, "seconds": 60.0, "config": "abc", "commit": "def",
    }  # fmt: skip
    return Row(setting=setting, seed=seed, **(entries | more))


def rows(scores: Mapping[str, Sequence[float]], **more) -> list[Row]:
    """Rows of settings: a score a seed, seeds from 0."""
    return [
        row(name, s, v, **more) for name, values in scores.items() for s, v in enumerate(values)
    ]
