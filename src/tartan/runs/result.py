"""Defines `result.json`, the result of a finished run: how it is written and read."""

import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from omegaconf import DictConfig
from pydantic import Field, model_validator

from tartan.core.task_names import END_TASK
from tartan.errors import UserError
from tartan.evaluation.stage_result import PERPLEXITY, Amount, Count, Monitor, StageResult
from tartan.files import Plain, read_json, write_text_durably
from tartan.runs.folder import RESULT, check_same_config

SCHEMA: Literal[2] = 2
"""Version of the file's layout; files of version 1, from before 0.1.0, are refused."""

Part = Literal["whole", "unseen"]
"""Part of the test split: all of it, or the examples whose text is not in train."""
PARTS: tuple[Part, Part] = ("whole", "unseen")


class Auxiliary(Plain):
    """Examples of an auxiliary task of kind `task` (TAPT) or `domain` (DAPT).

    `size` is in multiples of the training examples; `decontaminated` counts texts that were left
    out for dev or test texts in them.
    """

    kind: str
    source: str = ""
    size: Count | Amount | Literal["all"]
    examples: Count
    fingerprint: str = ""
    decontaminated: Count | None = None


class Scores(Plain):
    """Metrics of a split or part; `confusion` counts by label (rows) and prediction (columns)."""

    examples: Count
    metrics: dict[str, float] | None
    confusion: list[list[Count]] | None = None


class Split(Plain):
    """Scores of a whole split, and of its examples whose text is not in train."""

    whole: Scores
    unseen: Scores


class TrainSplit(Plain):
    """Numbers of labelled training examples, in all and by label."""

    examples: Count
    labels: dict[str, Count] = Field(default_factory=dict)


class Baseline(Plain):
    """The metrics of another classifier on the same splits: `tf_idf` or `fine_tuning`."""

    name: str
    settings: str = ""
    dev: dict[str, float]
    test: dict[str, float] | None = None
    seconds: Amount | None = None


class Machine(Plain):
    """The machine of the run, and Lightning's name of the precision."""

    device: str = ""
    platform: str = ""
    cores: Count | None = None
    precision: str = ""


class Result(Plain):
    """The result of a finished run.

    Attributes:
        weighting: name of the weighting; None where no stage weighted tasks.
        metric: name of the metric by which the best checkpoint was chosen.
        labels: names of the end task's labels; empty where a run only adapted an encoder.
        data: how the data were read, as plain JSON values.
        test_scores: scores on test; None where the run was not evaluated there, e.g. in a search.
        calibration: temperature, and errors before and after it (see `Calibration`).
        final_task_weights: weights by task, of the last stage that mixed the end task with others.
        setting_id: the same for runs that differ by their seed alone (see `identity`).
        data_id: the same for runs that may be compared: on the same data, with the same encoder.
        label: the setting in words.
    """

    schema_version: Literal[2] = Field(alias="schema")
    task: str
    method: str
    weighting: str | None = None
    encoder: str
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
    metric: str
    labels: list[str]
    data: dict[str, Any] = Field(default_factory=dict)
    train: TrainSplit
    dev: Split
    test_scores: Split | None = Field(default=None, alias="test")
    baselines: list[Baseline] = Field(default_factory=list)
    calibration: dict[str, Count | Amount] = Field(default_factory=dict)
    fingerprints: dict[str, str] = Field(default_factory=dict)
    auxiliaries: dict[str, Auxiliary]
    final_task_weights: dict[str, float] = Field(default_factory=dict)
    chosen: dict[str, Any] | None = None
    stages: Annotated[list[StageResult], Field(min_length=1)]
    cost: dict[str, Count | Amount] = Field(default_factory=dict)
    measured: dict[str, Amount] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    machine: Machine = Machine()
    setting_id: str = ""
    data_id: str = ""
    label: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, split in self.evaluated.items():
            if self.metric not in (split.whole.metrics or {}):
                raise ValueError(f"{name} has no {self.metric}")
        if not self.labels and self.metric != PERPLEXITY:
            raise ValueError(f"there are no labels for {self.metric}")
        size = len(self.labels)
        for scores in (self.test.whole, self.test.unseen) if self.is_tested else ():
            counts = scores.confusion
            if counts is not None and [len(row) for row in counts] != [size] * size:
                raise ValueError(f"the confusion on test is not {size} x {size}")
        return self

    @property
    def is_tested(self) -> bool:
        """Whether the run was evaluated on test; only such runs are compared."""
        return self.test_scores is not None

    @property
    def is_joint(self) -> bool:
        """Whether a stage trained the end task together with auxiliary tasks."""
        counted = ({*one.cost.tokens, *one.cost.flops} for one in self.stages)
        return any(END_TASK in tasks and tasks & self.auxiliaries.keys() for tasks in counted)

    @property
    def test(self) -> Split:
        assert self.test_scores is not None
        return self.test_scores

    @property
    def evaluated(self) -> dict[str, Split]:
        """Scores of the splits that were evaluated: dev, and test except in a search."""
        return {"dev": self.dev} | ({"test": self.test} if self.is_tested else {})

    def score(self, part: Part) -> float | None:
        """Return the task's metric on a part of test; None where that has no examples."""
        scores: Scores = getattr(self.test, part)
        return None if scores.metrics is None else scores.metrics.get(self.metric)

    @property
    def dev_score(self) -> float:
        assert self.dev.whole.metrics is not None
        return self.dev.whole.metrics[self.metric]

    @property
    def merit(self) -> float:
        """`dev_score`, negated where lower is better: a search maximises it."""
        return Monitor(self.metric).merit(self.dev_score)

    @property
    def is_text(self) -> bool:
        return any(count for stage in self.stages for count in stage.cost.tokens.values())

    @property
    def seconds(self) -> float:
        return float(sum(stage.seconds for stage in self.stages))

    @property
    def flops(self) -> float | None:
        """Floating-point operations of all training passes; None unless all were counted."""
        counted = [stage.flops for stage in self.stages if stage.flops is not None]
        return float(sum(counted)) if len(counted) == len(self.stages) else None

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def write_result(result: Result, folder: Path) -> None:
    """Write `result.json` durably: its presence says that the run is finished."""
    write_text_durably(folder / RESULT, json.dumps(result.as_json(), indent=1) + "\n")


def read_result(folder: Path, *, finite: bool = True) -> Result:
    """Read a finished run's result; a `UserError` where it is invalid, or not `finite` as asked."""
    result = read_json(folder / RESULT, Result)
    scores = [one for s in result.evaluated.values() for one in (s.whole.metrics, s.unseen.metrics)]
    scores += [one for baseline in result.baselines for one in (baseline.dev, baseline.test)]
    values = [one.get(result.metric, math.nan) for one in scores if one is not None]
    if finite and not all(map(math.isfinite, values)):
        raise UserError(f"{RESULT}: a score has no finite {result.metric}")
    return result


def stored_result(config: DictConfig, folder: Path) -> Result | None:
    """Return the result of the same run in `folder`, None if unfinished; `UserError` of another."""
    check_same_config(config, folder)
    path = folder / RESULT
    try:
        return read_result(folder, finite=False) if path.is_file() else None
    except UserError as error:
        raise UserError(
            f"{path} is damaged ({error}); remove it, and the same command writes it again"
        ) from error
