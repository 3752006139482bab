"""Stores a finished run as one row of `docs/results/PART.csv`."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field, FiniteFloat, ValidationError

from studies.learning import learning_of
from tartan.core.task_names import END_TASK
from tartan.errors import UserError
from tartan.files import Plain, read_bytes, read_json, violation, write_durably
from tartan.report.runs import read_run
from tartan.run_folder.result import Result

CELL = "study.json"
"""File in a run folder that records its cell of the study, and the commit that trained it."""
_DIGITS = 6
"""Number of decimals of a stored metric."""
_SHOWN = 12
"""Number of hexadecimal digits of a stored config digest."""


class CellNote(Plain):
    """The content of `study.json`."""

    part: str
    budget: str
    setting: str
    commit: str


class Row(Plain):
    """A finished run of the study.

    Attributes:
        budget: its name in the part.
        setting: its name in the part.
        seed: the run's seed.
        task: name of the end task.
        labelled: number of training examples with labels.
        encoder: the encoder's name; for a folder, without the folders above it.
        method: its name in `conf/method/`.
        weighting: name of the weighting; empty where one task was trained alone.
        auxiliaries: names of the auxiliary tasks with their numbers of texts, e.g. `tapt 3219`.
        metric: name of the task's metric.
        dev: the metric on dev.
        test: the metric on test.
        unseen: the metric on the test texts that are not in train; None where there are none.
        tflop: floating-point operations of training, as `result.json` counts them [TFLOP].
        seconds: time of training on its machine [s].
        stages: steps of each stage and its best value on dev, e.g. `tapt 57; finetune 60: 0.512`.
        end_task_weight: the end task's weight at the end of joint training; None without joint
            training.
        end_task_loss: the end task's mean training loss in the last steps of the last stage that
            trained it; None in rows written before it was kept, as the five below.
        auxiliary_loss: that of the auxiliary tasks, a mean over tasks and steps.
        best_at: share of that stage's steps after which the metric on dev was best.
        end_task_norm: norm of the end task's gradient with respect to the body, a median over
            steps.
        auxiliary_norm: that of the auxiliary tasks, a median over tasks and steps.
        end_task_cosine: cosine of the end task's gradient with the meta-gradient, a median over
            steps.
        config: digest of all options that change the training, without the seed.
        commit: the commit that trained it.
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
    dev: FiniteFloat
    test: FiniteFloat
    unseen: FiniteFloat | None = None
    tflop: FiniteFloat | None = None
    seconds: FiniteFloat
    stages: str = ""
    end_task_weight: FiniteFloat | None = None
    end_task_loss: FiniteFloat | None = None
    auxiliary_loss: FiniteFloat | None = None
    best_at: FiniteFloat | None = None
    end_task_norm: FiniteFloat | None = None
    auxiliary_norm: FiniteFloat | None = None
    end_task_cosine: FiniteFloat | None = None
    config: str = Field(min_length=1)
    commit: str = Field(min_length=1)

    @property
    def cell(self) -> str:
        """`BUDGET/SETTING`, by which a part's file names the cell."""
        return f"{self.budget}/{self.setting}"

    @property
    def key(self) -> tuple[str, str, int]:
        """The key of its cell."""
        return self.budget, self.setting, self.seed


def row_of(folder: Path, draws_data: bool) -> Row:
    """Return the row of the finished run in `folder`.

    Args:
        folder: the run folder.
        draws_data: see `digest_of`.

    Raises:
        UserError: the folder holds no finished run of the study.
    """
    note = read_json(folder / CELL, CellNote)
    run = read_run(folder, folder.name)
    result = run.result
    if not result.is_tested:
        raise UserError(f"{folder} was not evaluated on test; remove it to run the cell again")
    unseen = result.score("unseen")
    learned = {k: _rounded(v) for k, v in learning_of(folder, result).items()}
    final = [stage.final_task_weights for stage in result.stages]
    weights = [own[END_TASK] for own in final if END_TASK in own]
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
        unseen=_rounded(unseen),
        tflop=None if result.flops is None else round(result.flops / 1e12, 3),
        seconds=round(result.seconds, 1),
        stages="; ".join(_stages(result)),
        end_task_weight=round(weights[-1], _DIGITS) if weights else None,
        **learned,
        config=digest_of(run.options, draws_data),
        commit=note.commit,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def digest_of(options: dict[str, Any], draws_data: bool) -> str:
    """Return a digest of a run's options, without its seed and without the folders in paths.

    Options that are null are left out: a later version may have more of them.

    Args:
        options: the values by name.
        draws_data: whether `task.split_seed` is the run's seed, which then is left out too.
    """
    kept = {
        name: _placeless(name, value)
        for name, value in options.items()
        if name != "seed" and value is not None
    }
    if draws_data:
        kept["task.split_seed"] = "seed"
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN]


def _placeless(name: str, value: Any) -> Any:
    """Return a value without this machine's folders in paths."""
    if name == "encoder.name":
        return encoder_name(str(value))
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def encoder_name(name: str) -> str:
    """Return a Hub name as it is; for a folder `RUN/encoder` the run's name, else its own."""
    path = Path(name)
    if not path.is_absolute() and len(path.parts) <= 2:
        return name
    return path.parent.name if path.name == "encoder" else path.name


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a part's file; none if it does not exist.

    Raises:
        UserError: a row is malformed; the message names file and line.
    """
    if not path.is_file():
        return []
    rows: dict[tuple[str, str, int], Row] = {}
    try:
        table = csv.DictReader(io.StringIO(read_bytes(path).decode("utf-8"), newline=""))
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name} is not UTF-8 ({error.reason})") from error
    unknown = [name for name in table.fieldnames or () if name not in Row.model_fields]
    if unknown:
        raise UserError(f"{path.name}, line 1: there is no column {unknown[0]!r}")
    for line, entries in enumerate(table, 2):
        if None in entries:
            raise UserError(f"{path.name}, line {line}: more fields than the header has")
        filled = {name: value for name, value in entries.items() if value}
        try:
            row = Row.model_validate_strings(filled)
        except ValidationError as error:
            raise UserError(f"{path.name}, line {line}: {violation(error)}") from error
        if row.key in rows:
            raise UserError(f"{path.name}, line {line}: {row.cell}, seed {row.seed}, again")
        rows[row.key] = row
    return list(rows.values())


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a part's file, one row for each run, in the given order."""

    def write(scratch: Path) -> None:
        entries = [row.model_dump() for row in rows]
        frame = pd.DataFrame(entries, columns=list(Row.model_fields), dtype=object)
        frame.to_csv(scratch, index=False, lineterminator="\n")

    write_durably(path, write)


def _stages(result: Result) -> Iterable[str]:
    for stage in result.stages:
        best = max((value for _, value in stage.evaluations), default=None)
        said = f"{stage.name} {stage.steps}"
        yield said if best is None else f"{said}: {best:.4f}"
