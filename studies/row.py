"""Stores a finished run as one row of `docs/results/PART.csv`."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field, FiniteFloat

from tartan.core.task_names import END_TASK
from tartan.errors import UserError
from tartan.files import Plain, read_json, write_durably
from tartan.report.runs import read_run, read_steps
from tartan.runs.result import Result

CELL = "study.json"
"""File in a run folder that records its cell of the study, and the commit that trained it."""
LAST = 0.1
"""Share of a stage's steps, its last ones, whose losses are averaged."""
_DIGITS = 6
"""Number of decimals of a stored metric."""


class CellNote(Plain):
    """The content of `study.json`."""

    part: str
    budget: str
    setting: str
    commit: str


class Row(Plain, extra="forbid"):
    """A finished run of the study; `studies/README.md` says what its columns are."""

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
    """Return the row of the finished run in `folder`."""
    note = read_json(folder / CELL, CellNote)
    run = read_run(folder, folder.name)
    result = run.result
    if not result.is_tested:
        raise UserError(f"{folder} was not evaluated on test; remove it to run the cell again")
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
        unseen=_rounded(result.score("unseen")),
        tflop=None if result.flops is None else round(result.flops / 1e12, 3),
        seconds=round(result.seconds, 1),
        stages="; ".join(_stages(result)),
        end_task_weight=round(weights[-1], _DIGITS) if weights else None,
        **{name: _rounded(value) for name, value in learning_of(folder, result).items()},
        config=digest_of(run.options, draws_data),
        commit=note.commit,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, _DIGITS)


def _stages(result: Result) -> Iterable[str]:
    for stage in result.stages:
        best = max((value for _, value in stage.evaluations), default=None)
        words = f"{stage.name} {stage.steps}"
        yield words if best is None else f"{words}: {best:.4f}"


def learning_of(folder: Path, result: Result) -> dict[str, float | None]:
    """Return how the last stage with the end task learned, as entries of a `Row`.

    They are NaN where the step log does not hold them; there are none without a log.
    """
    if not (folder / "steps.csv").is_file():
        return {}
    log = read_steps(folder, ["loss", "gradient_norm", "cosine"]).dropna(subset="loss")
    trained = log[log.task == END_TASK].stage
    if trained.empty:
        return {}
    (stage,) = (stage for stage in result.stages if stage.name == trained.iloc[-1])
    log = log[log.stage == stage.name]
    own, others = log[log.task == END_TASK], log[log.task != END_TASK]
    first = (1 - LAST) * stage.steps
    return {
        "end_task_loss": own[own.step > first].loss.mean(),
        "auxiliary_loss": others[others.step > first].loss.mean(),
        "best_at": None if stage.best_step is None else stage.best_step / stage.steps,
        "end_task_norm": own.gradient_norm.median(),
        "auxiliary_norm": others.gradient_norm.median(),
        "end_task_cosine": own.cosine.median(),
    }


def digest_of(options: dict[str, Any], draws_data: bool) -> str:
    """Return a digest of a run's options, without its seed and without the folders in paths.

    Options that are null are left out: a later version may have more of them. So is
    `task.split_seed` where it is the run's seed.
    """
    kept = {
        name: _placeless(name, value)
        for name, value in options.items()
        if name != "seed" and value is not None
    }
    if draws_data:
        kept["task.split_seed"] = "seed"
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


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
    """Return the rows of a part's file; none if it does not exist."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            Row.model_validate_strings({name: value for name, value in entries.items() if value})
            for entries in csv.DictReader(file, strict=True)
        ]
    if len({row.key for row in rows}) < len(rows):
        raise UserError(f"{path.name} has two rows of a cell")
    return rows


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a part's file, one row for each run, in the given order."""
    entries = [row.model_dump() for row in rows]
    frame = pd.DataFrame(entries, columns=list(Row.model_fields), dtype=object)
    write_durably(path, lambda scratch: frame.to_csv(scratch, index=False, lineterminator="\n"))
