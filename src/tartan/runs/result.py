"""Defines `result.json`, the result of a finished run: how it is written and read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from omegaconf import DictConfig
from pydantic import (
    AfterValidator,
    Field,
    FiniteFloat,
    NonNegativeInt,
    Strict,
    ValidationInfo,
    model_validator,
)

from tartan.core.task_names import END_TASK
from tartan.errors import UserError
from tartan.evaluation.monitor import PERPLEXITY, Monitor
from tartan.files import Plain, read_json, write_text_durably
from tartan.runs.folder import check_same_config
from tartan.runs.name import RESULT

SCHEMA: Literal[2] = 2
"""Version of the file's layout; files of version 1, from before 0.1.0, are refused."""

Count = Annotated[NonNegativeInt, Field(le=2**63 - 1)]
Amount = Annotated[FiniteFloat, Field(ge=0)]
Part = Literal["whole", "unseen"]
"""Part of the test split: all of it, or the examples whose text is not in train."""
PARTS: tuple[Part, Part] = ("whole", "unseen")
Evaluation = Annotated[tuple[Count, float], Strict(False)]
"""A step and the dev metric after it; a tuple, for which JSON has a list."""
LONGEST_NAME = 300
"""Maximum length of a name in a file from elsewhere [characters]."""
_MOST_LABELS = 10_000
_LONGEST_SOURCE = 4096


def is_bounded(info: ValidationInfo) -> bool:
    """Return whether lengths are limited, because anybody may have written the validated file."""
    return bool(info.context)


def _short(value: str, info: ValidationInfo) -> str:
    if is_bounded(info) and len(value) > LONGEST_NAME:
        raise ValueError(f"String should have at most {LONGEST_NAME} characters")
    return value


Short = Annotated[str, AfterValidator(_short)]
"""A name; in a file from elsewhere it has at most `LONGEST_NAME` characters."""


class Auxiliary(Plain):
    """An auxiliary task's examples.

    Attributes:
        kind: `task` for the end task's own text (TAPT), `domain` for other text (DAPT).
        source: path or name of the data that the examples came from.
        size: the size, in multiples of the training examples, or `all`.
        examples: number of examples.
        fingerprint: string that changes with the examples.
        decontaminated: number of examples left out because they overlap with dev or test texts;
            None where decontamination was not asked for.
    """

    kind: Short
    source: str = ""
    size: Count | Amount | Literal["all"]
    examples: Count
    fingerprint: Short = ""
    decontaminated: Count | None = None


class Scores(Plain):
    """Metrics of a split, or of its unseen examples.

    Attributes:
        metrics: values by name; None where there are no such examples.
        confusion: number of examples by label (rows) and prediction (columns), if it was stored.
    """

    examples: Count
    metrics: dict[Short, float] | None
    confusion: list[list[Count]] | None = None


class Split(Plain):
    """Scores of a whole split, and of its unseen examples alone."""

    whole: Scores
    unseen: Scores


class Spent(Plain):
    """The part of a stage's cost that is the same for every run of a config.

    Attributes:
        tokens: number of tokens that went through the body, by task; 0 for images.
        examples: number of examples that went through the body, by task.
        flops: floating-point operations by task; None where the run did not count them.
        padding_share: share of padding in the positions that went through the body.
    """

    tokens: dict[Short, Count] = Field(default_factory=dict)
    examples: dict[Short, Count] = Field(default_factory=dict)
    flops: Mapping[Short, Count | Amount] | None = None
    padding_share: Amount | None = None


class Measured(Plain):
    """The part of a stage's cost that depends on the machine (see `StageCost`)."""

    seconds: Amount
    tokens_per_second: float | None = None
    peak_memory_bytes: Count | None = None
    processes: Count = 1


class Stage(Plain):
    """A stage that was trained.

    Attributes:
        steps: number of optimiser steps.
        best_step: the step whose weights were kept.
        skipped: number of updates that were skipped because a number was not finite.
        cost: see `Spent`.
        measured: see `Measured`.
        final_task_weights: weights by task; empty where one task was trained alone.
        evaluations: pairs of step and dev metric.
    """

    name: Short
    steps: Count
    best_step: Count | None = None
    skipped: Count = 0
    cost: Spent = Field(default_factory=Spent)
    measured: Measured
    final_task_weights: dict[Short, float] = Field(default_factory=dict)
    evaluations: list[Evaluation] = Field(default_factory=list)

    @property
    def accounts(self) -> set[str]:
        """Names under which the stage counted costs or had weights: those of its tasks, and more.

        Files of earlier versions have some of these counts only.
        """
        cost = self.cost
        return {*cost.tokens, *cost.examples, *(cost.flops or {}), *self.final_task_weights}

    @property
    def flops(self) -> float | None:
        """Floating-point operations of the training passes; None if they were not counted."""
        flops = self.cost.flops
        return None if flops is None else float(sum(flops.values()))

    @property
    def seconds(self) -> float:
        """Wall time of training and evaluations [s]."""
        return self.measured.seconds


class TrainSplit(Plain):
    """Numbers of labelled training examples, in all and by label."""

    examples: Count
    labels: dict[str, Count] = Field(default_factory=dict)


class Chosen(Plain):
    """The stage and step of the best checkpoint."""

    stage: Short
    step: Count | None = None


class TotalCost(Plain):
    """Tokens and floating-point operations of all stages."""

    tokens: Count = 0
    flops: Count | Amount = 0


class TotalTime(Plain):
    """Wall time of all stages [s]."""

    seconds: Amount = 0


class Baseline(Plain):
    """The metrics of another classifier on the same splits.

    Attributes:
        name: `tf_idf` for TF-IDF with logistic regression, `fine_tuning` for fine-tuning at the
            run's cost.
        settings: its settings, chosen on dev.
        dev: metrics on dev, by name.
        test: metrics on test, by name; None where the run was not evaluated there.
        seconds: wall time of its training and evaluations on dev; None where it is negligible [s].
    """

    name: Short
    settings: Short = ""
    dev: dict[Short, float]
    test: dict[Short, float] | None = None
    seconds: Amount | None = None


class Machine(Plain):
    """The machine of the run, and Lightning's name of the precision."""

    device: str = ""
    platform: str = ""
    cores: Count | None = None
    precision: str = ""


class Result(Plain):
    """The result of a finished run.

    Entries that are not needed to compare runs have defaults: files of earlier versions lack some.

    Attributes:
        weighting: name of the weighting; None where no stage weighted tasks.
        metric: name of the metric by which the best checkpoint was chosen.
        labels: names of the end task's labels; empty where a run only adapted an encoder.
        data: how the data were read, as plain JSON values.
        test_scores: scores on test; None where the run was not evaluated there, e.g. in a search.
        baselines: scores of TF-IDF, except for images, pairs of texts, and many training texts; and
            of fine-tuning if it was asked for.
        final_task_weights: weights by task, of the last stage that mixed the end task with others.
        versions: versions of Python and the libraries, by name.
        setting_id: the same for runs that differ by their seed alone; empty in earlier files, as
            the next two (see `identity`).
        data_id: the same for runs that may be compared: on the same data, with the same encoder.
        label: the setting in words.
    """

    schema_version: Literal[2] = Field(alias="schema")
    task: Short
    method: Short
    weighting: Short | None = None
    encoder: Short
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
    metric: Short
    labels: list[Short]
    data: dict[str, Any] = Field(default_factory=dict)
    train: TrainSplit
    dev: Split
    test_scores: Split | None = Field(default=None, alias="test")
    baselines: list[Baseline] = Field(default_factory=list)
    fingerprints: dict[Short, Short] = Field(default_factory=dict)
    auxiliaries: dict[Short, Auxiliary]
    final_task_weights: dict[Short, float] = Field(default_factory=dict)
    chosen: Chosen | None = None
    stages: Annotated[list[Stage], Field(min_length=1)]
    cost: TotalCost = Field(default_factory=TotalCost)
    measured: TotalTime = Field(default_factory=TotalTime)
    versions: dict[str, str] = Field(default_factory=dict)
    machine: Machine = Field(default_factory=Machine)
    setting_id: Short = ""
    data_id: Short = ""
    label: Short = ""

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        """Check that the metric has values; of a file from elsewhere, check more."""
        bounded = is_bounded(info)
        for name, split in self.evaluated.items():
            value = (split.whole.metrics or {}).get(self.metric)
            if value is None or (bounded and not math.isfinite(value)):
                raise ValueError(f"{name} has no finite {self.metric}")
        if not bounded:
            return self
        if not self.labels and self.metric != PERPLEXITY:
            raise ValueError(f"there are no labels for {self.metric}")
        if len(self.labels) > _MOST_LABELS:
            raise ValueError(f"there are more than {_MOST_LABELS:,} labels")
        if any(len(one.source) > _LONGEST_SOURCE for one in self.auxiliaries.values()):
            raise ValueError("the source of an auxiliary task is too long")
        for scores in (self.test.whole, self.test.unseen) if self.is_tested else ():
            counts, size = scores.confusion, len(self.labels)
            if counts is not None and [len(row) for row in counts] != [size] * size:
                raise ValueError(f"the confusion on test is not {size} x {size}")
            if not math.isfinite((scores.metrics or {}).get(self.metric, 0.0)):
                raise ValueError(f"the unseen part of test has no finite {self.metric}")
        for one in self.baselines:
            for name, values in (("dev", one.dev), *([("test", one.test)] if one.test else [])):
                if not math.isfinite((values or {}).get(self.metric, math.nan)):
                    raise ValueError(f"baseline {one.name} has no finite {self.metric} on {name}")
        return self

    @property
    def is_tested(self) -> bool:
        """Whether the run was evaluated on test; only such runs are compared."""
        return self.test_scores is not None

    @property
    def only_adapts(self) -> bool:
        """Whether the run has no end task: it adapted an encoder to text."""
        return not self.labels

    @property
    def is_joint(self) -> bool:
        """Whether a stage trained the end task together with auxiliary tasks."""
        return any(
            END_TASK in stage.accounts and not stage.accounts.isdisjoint(self.auxiliaries)
            for stage in self.stages
        )

    @property
    def test(self) -> Split:
        """Scores on test; only for a run that was evaluated there."""
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
        """The task's metric on dev, of the best checkpoint."""
        assert self.dev.whole.metrics is not None
        return self.dev.whole.metrics[self.metric]

    @property
    def merit(self) -> float:
        """`dev_score`, negated where lower is better: a search maximises it."""
        return Monitor(self.metric).merit(self.dev_score)

    @property
    def is_text(self) -> bool:
        """Whether the run was trained on text; images have no tokens."""
        return any(count for stage in self.stages for count in stage.cost.tokens.values())

    @property
    def seconds(self) -> float:
        """Wall time of all stages [s]."""
        return float(sum(stage.seconds for stage in self.stages))

    @property
    def flops(self) -> float | None:
        """Floating-point operations of all training passes; None unless all were counted."""
        counted = [stage.flops for stage in self.stages]
        return None if None in counted else float(sum(f for f in counted if f is not None))

    def as_json(self) -> dict[str, Any]:
        """Return the file's content as plain JSON values: the given entries, without defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def write_result(result: Result, folder: Path) -> None:
    """Write `result.json` durably: its presence says that the run is finished."""
    content = json.dumps(result.as_json(), indent=1) + "\n"
    write_text_durably(folder / RESULT, content)


def read_result(folder: Path, *, bounded: bool = True) -> Result:
    """Read the result of the finished run in `folder`.

    Args:
        folder: the run folder.
        bounded: whether anybody may have written the file; then names have to be short and scores
            finite.

    Raises:
        UserError: the file is missing, damaged, or invalid.
    """
    return read_json(folder / RESULT, Result, bounded=bounded)


def stored_result(config: DictConfig, folder: Path) -> Result | None:
    """Return the result of the run in `folder`; None if it was not finished.

    Raises:
        UserError: the folder holds a run of another config (the message names the options that
            differ), or the file is damaged.
    """
    check_same_config(config, folder)
    path = folder / RESULT
    try:
        return read_result(folder, bounded=False) if path.is_file() else None
    except UserError as error:
        raise UserError(
            f"{path} is damaged ({error}); remove it, and the same command writes it again"
        ) from error
