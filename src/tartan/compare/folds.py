"""Cuts the labelled examples of a task into folds, and writes them as tables for runs."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from omegaconf import OmegaConf

from tartan.data.task_kind import TaskKind
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.errors import UserError
from tartan.files import write_text_durably
from tartan.settings import CONF, build, quoted

ALL, TEST = "all.jsonl", "test.jsonl"
Row = dict[str, Any]
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
    return [*_rows(task, task.train), *_rows(task, task.dev)]


def fold_of_rows(rows: Sequence[Row], folds: int, kind: TaskKind) -> NDArray[np.int64]:
    """Return the fold of each example, int `(examples,)`: stratified, equal texts in one fold.

    Texts with a label of fewer texts than there are folds are in none (-1): every fold trains on
    them, because a label that is held out has to be among those that are trained on.

    Raises:
        UserError: too few other labels are left.
    """
    texts = [(row["text"], row.get("text_pair", "")) for row in rows]
    number_of = {text: number for number, text in enumerate(texts)}
    groups = [number_of[text] for text in texts]
    labels = [kind.label_of(row["label"]) for row in rows]
    different = set(zip(labels, groups, strict=True))
    counts = Counter(name for label, _ in different for name in kind.names(label))
    rare = {name for name, count in counts.items() if count < folds}
    if len(counts) - len(rare) < kind.least_labels:
        raise UserError(f"folds={folds}: too few texts of {sorted(rare)}; take fewer folds")
    kept = {group for label, group in different if not rare.isdisjoint(kind.names(label))}
    judged = [place for place, group in enumerate(groups) if group not in kept]
    fold_of = np.full(len(rows), -1)
    fold_of[judged] = kind.folds([labels[i] for i in judged], [groups[i] for i in judged], folds)
    return fold_of


def write_folds(task: TextTask, rows: list[Row], fold_of: NDArray[np.int64], folder: Path) -> None:
    """Write `K/train.jsonl` and `K/held_out.jsonl` of each fold K, `all.jsonl` and `test.jsonl`.

    Texts without a label are in every table that is trained on; a held-out text is in none.
    """
    unlabelled = [] if task.unlabelled is None else _rows(task, task.unlabelled, labelled=False)
    _write(folder / ALL, [*rows, *unlabelled])
    if len(task.test):
        _write(folder / TEST, _rows(task, task.test))
    for fold in range(fold_of.max() + 1):
        held_out = [row for row, own in zip(rows, fold_of, strict=True) if own == fold]
        train = [row for row, own in zip(rows, fold_of, strict=True) if own != fold]
        texts = {row["text"] for row in held_out}
        train += [row for row in unlabelled if row["text"] not in texts]
        _write(folder / str(fold) / "train.jsonl", train)
        _write(folder / str(fold) / "held_out.jsonl", held_out)


def task_options(task: TextTask, train: Path, dev: Path | None) -> list[str]:
    """Return the options by which a run reads these tables; without `dev` a part is held out."""
    separator = task.notes["columns"].get("separator")
    return [
        f"task.name={quoted(task.name)}",
        f"task.separator={'null' if separator is None else quoted(separator)}",
        f"task.kind={task.kind.name}",
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


def _rows(task: TextTask, split: LabelledTexts, *, labelled: bool = True) -> list[Row]:
    columns: list[list[tuple[str, Any]]] = [[("text", text) for text in split.texts]]
    if split.pairs is not None:
        columns.append([("text_pair", text) for text in split.pairs])
    if labelled:
        written = task.kind.written
        columns.append([("label", written(code, task.labels)) for code in split.labels])
    return [dict(entries) for entries in zip(*columns, strict=True)]


def _write(path: Path, rows: Sequence[Row]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    write_text_durably(path, "".join(lines))
