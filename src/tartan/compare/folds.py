"""Cuts the labelled examples of a task into folds, and writes them as tables for runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from omegaconf import OmegaConf
from sklearn.model_selection import StratifiedGroupKFold

from tartan.data.text_task import LabelledTexts, TextTask
from tartan.errors import UserError
from tartan.files import write_text_durably
from tartan.settings import CONF, build, quoted

ALL, TEST = "all.jsonl", "test.jsonl"
Row = dict[str, str]
"""An example: `text`, `label` where it has one, and `text_pair` in a task of pairs."""


def load_task(overrides: Sequence[str]) -> TextTask:
    """Read the task that these overrides of a run choose; labels are not held out of one table.

    Raises:
        UserError: it is none of text, or cannot be read.
    """
    with initialize_config_dir(version_base="1.3", config_dir=str(Path(CONF).absolute())):
        config = compose("config", overrides=list(overrides))
    OmegaConf.resolve(config.task)
    source = config.task
    if source.get("test") is None and "test_share" in source:
        source.test_share = 0.0
    task = build(source, "task").load()
    if not isinstance(task, TextTask):
        raise UserError("tartan compare races on labelled text; sweep other tasks with tartan run")
    return task


def labelled_rows(task: TextTask) -> list[Row]:
    """Return the examples of train and dev: all labels that are not a test split's."""
    return [*_rows(task.train, task.labels), *_rows(task.dev, task.labels)]


def fold_of_rows(rows: Sequence[Row], folds: int) -> NDArray[np.int64]:
    """Return the fold of each example, int `(examples,)`: stratified, equal texts in one fold.

    Raises:
        UserError: a label has fewer examples than there are folds.
    """
    labels = [row["label"] for row in rows]
    label, count = min(Counter(labels).items(), key=lambda pair: (pair[1], pair[0]))
    if count < folds:
        raise UserError(
            f"folds={folds}: the label {label!r} has only {count} examples; take fewer folds, add "
            "examples or join labels"
        )
    texts = [(row["text"], row.get("text_pair", "")) for row in rows]
    number_of = {text: number for number, text in enumerate(texts)}
    groups = [number_of[text] for text in texts]
    cut = StratifiedGroupKFold(folds, shuffle=True, random_state=0)
    found = np.zeros(len(rows), dtype=np.int64)
    for fold, (_, held_out) in enumerate(cut.split(texts, labels, groups)):
        found[held_out] = fold
    return found


def write_folds(
    task: TextTask, rows: Sequence[Row], fold_of: NDArray[np.int64], folder: Path
) -> None:
    """Write `K/train.jsonl` and `K/held_out.jsonl` of each fold K, `all.jsonl` and `test.jsonl`.

    Texts without a label are in every table that is trained on; a held-out text is in none.
    """
    unlabelled = [] if task.unlabelled is None else _rows(task.unlabelled, None)
    _write(folder / ALL, [*rows, *unlabelled])
    if len(task.test):
        _write(folder / TEST, _rows(task.test, task.labels))
    for fold in range(fold_of.max() + 1):
        held_out = [row for row, own in zip(rows, fold_of, strict=True) if own == fold]
        train = [row for row, own in zip(rows, fold_of, strict=True) if own != fold]
        texts = {row["text"] for row in held_out}
        train += [row for row in unlabelled if row["text"] not in texts]
        _write(folder / str(fold) / "train.jsonl", train)
        _write(folder / str(fold) / "held_out.jsonl", held_out)


def task_options(task: TextTask, train: Path, dev: Path | None) -> list[str]:
    """Return the options by which a run reads these tables; without `dev` a part is held out."""
    return [
        f"task.name={quoted(task.name)}",
        f"task.metric={task.metric}",
        f"task.max_length={task.max_length}",
        f"task.train={quoted(train)}",
        f"task.dev={'null' if dev is None else quoted(dev)}",
        "task.test_share=0",
        "task.text=text",
        "task.label=label",
        f"task.text_pair={'null' if task.train.pairs is None else 'text_pair'}",
        "task.empty_label=unlabelled",
    ]


def _rows(split: LabelledTexts, labels: Sequence[str] | None) -> list[Row]:
    columns: list[Iterable[tuple[str, str]]] = [[("text", text) for text in split.texts]]
    if split.pairs is not None:
        columns.append([("text_pair", text) for text in split.pairs])
    if labels is not None:
        columns.append([("label", labels[index]) for index in split.labels])
    return [dict(entries) for entries in zip(*columns, strict=True)]


def _write(path: Path, rows: Sequence[Row]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    write_text_durably(path, "".join(lines))
