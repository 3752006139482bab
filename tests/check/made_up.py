"""A made-up task of which every count is known."""

from __future__ import annotations

import json
from pathlib import Path

TRAIN = [
    ("one red apple", "A"),
    ("one red apple", "A"),
    ("One  red apple ", "B"),
    ("two old rivers", "B"),
    ("three cold stones", "A"),
    ("four far hills", "A"),
    ("five odd birds", "A"),
    ("six wet dogs", "A"),
]
DEV = [("two old rivers", "B"), ("seven big trees", "A"), ("eight low walls", "B")]
TEST = [
    ("TWO OLD RIVERS", "A"),
    ("seven big trees", "A"),
    ("nine new roads", "B"),
    ("nine new roads", "B"),
]
CORPUS = ["nine new roads", "", "NINE new  roads", "a text of its own", "one red apple"]


def written(folder: Path) -> list[str]:
    """Write the task below `folder`; the overrides that read it."""
    for split, examples in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        lines = [json.dumps({"text": text, "label": label}) for text, label in examples]
        (folder / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "corpus.txt").write_text("\n".join(CORPUS), encoding="utf-8")
    return [
        "encoder=tiny",
        "task=files",
        *(f"task.{split}={folder}/{split}.jsonl" for split in ("train", "dev", "test")),
        "task.max_length=16",
        "auxiliary=dapt_tapt",
        f"auxiliary.dapt.path={folder}/corpus.txt",
        "auxiliary.size=all",
        f"cache_dir={folder}/cache",
        "trainer.precision=32-true",
        "method.stages.joint.batch_size=4",
        "method.stages.joint.meta_batch_size=2",
        "micro_batch_size=4",
    ]
