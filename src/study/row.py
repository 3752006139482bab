"""A finished run as one row of `docs/results/PART.csv`."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from src.core.task_names import END_TASK
from src.errors import UserError
from src.files.durable import write_durably
from src.files.plain import Plain, read_json, violation
from src.report.reading.run import read_run
from src.run_folder.result import Result

CELL = "study.json"
"""In a run's folder: which cell of the study it is, and the commit that trained it."""
_DIGITS = 6
"""Decimals of a metric: more than any comparison needs."""
_SHOWN = 12
"""Hexadecimal digits of a config's digest."""


class CellNote(Plain):
    """The content of `study.json`."""

    part: str
    budget: str
    setting: str
    commit: str


class Row(Plain):
    """A run.

    Attributes:
        budget: its name in the part.
        setting: its name in the part.
        seed: of the run.
        task: the end task.
        labelled: training examples with labels.
        encoder: the encoder's name, a folder's without the folders above it.
        method: its name in `conf/method/`.
        weighting: how the tasks were mixed; empty where one trained alone.
        auxiliaries: names and numbers of texts, e.g. `tapt 3219`.
        metric: the task's.
        dev: the metric on dev.
        test: on test.
        unseen: on the test texts that are not in train; None where there are none.
        tflop: floating-point operations of training, as `result.json` counts them [TFLOP].
        seconds: that training took on the machine that it ran on.
        stages: steps taken and best value on dev, e.g. `tapt 57; finetune 60: 0.512`.
        end_task_weight: at the end of joint training; None where the end task trained alone.
        config: digest of all options that change what is trained, but for the seed.
        commit: that trained it.
    """

    budget: str
    setting: str
    seed: int
    task: str
    labelled: int
    encoder: str
    method: str
    weighting: str = ""
    auxiliaries: str = ""
    metric: str
    dev: float
    test: float
    unseen: float | None = None
    tflop: float | None = None
    seconds: float
    stages: str = ""
    end_task_weight: float | None = None
    config: str = Field(min_length=1)
    commit: str = Field(min_length=1)

    @property
    def key(self) -> tuple[str, str, int]:
        """The key of its cell."""
        return self.budget, self.setting, self.seed


def row_of(folder: Path) -> Row:
    """The row of the finished run in `folder`.

    Raises:
        UserError: the folder holds no finished run of the study.
    """
    note = read_json(folder / CELL, CellNote)
    run = read_run(folder, folder.name)
    result = run.result
    if not result.is_tested:
        raise UserError(f"{folder} was not evaluated on test; remove it to run the cell again")
    unseen = result.score("unseen")
    weights = [stage.final_task_weights for stage in result.stages if stage.final_task_weights]
    return Row(
        budget=note.budget,
        setting=note.setting,
        seed=result.seed,
        task=result.task,
        labelled=result.train.examples,
        encoder=encoder_name(result.encoder),
        method=result.method,
        weighting=result.weighting or "",
        auxiliaries="; ".join(f"{name} {a.examples}" for name, a in result.auxiliaries.items()),
        metric=result.metric,
        dev=round(result.dev_score, _DIGITS),
        test=round(result.score("whole") or 0.0, _DIGITS),
        unseen=None if unseen is None else round(unseen, _DIGITS),
        tflop=None if result.flops is None else round(result.flops / 1e12, 3),
        seconds=round(result.seconds, 1),
        stages="; ".join(_stages(result)),
        end_task_weight=round(weights[-1][END_TASK], _DIGITS) if weights else None,
        config=digest_of(run.options),
        commit=note.commit,
    )


def digest_of(options: dict[str, Any]) -> str:
    """Digest of a run's options without its seed, and of files and folders only their names."""
    kept = {name: _placeless(name, value) for name, value in options.items() if name != "seed"}
    if kept.get("task.split_seed") == options.get("seed"):
        kept["task.split_seed"] = "seed"
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN]


def _placeless(name: str, value: Any) -> Any:
    """A value without the folders of this machine."""
    if name == "encoder.name":
        return encoder_name(str(value))
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def encoder_name(name: str) -> str:
    """A Hub name as it is; of a folder `RUN/encoder` the run's name, of another its own."""
    path = Path(name)
    if not path.is_absolute() and len(path.parts) <= 2:
        return name
    return path.parent.name if path.name == "encoder" else path.name


def read_rows(path: Path) -> list[Row]:
    """The rows of a part's file; none where it is not there.

    Raises:
        UserError: a row is malformed; names file and line.
    """
    if not path.is_file():
        return []
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for line, entries in enumerate(csv.DictReader(file), 2):
            filled = {name: value for name, value in entries.items() if value}
            try:
                rows.append(Row.model_validate_strings(filled))
            except ValidationError as error:
                raise UserError(f"{path.name}, line {line}: {violation(error)}") from error
    return rows


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a part's file, one row a run, in the order given."""

    def write(scratch: Path) -> None:
        with scratch.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(Row.model_fields), lineterminator="\n")
            table.writeheader()
            table.writerows(row.model_dump() for row in rows)

    write_durably(path, write)


def _stages(result: Result) -> Iterable[str]:
    for stage in result.stages:
        best = max((value for _, value in stage.evaluations), default=None)
        said = f"{stage.name} {stage.steps}"
        yield said if best is None else f"{said}: {best:.4f}"
