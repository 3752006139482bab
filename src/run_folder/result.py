"""`result.json`: what a finished run says of itself, as it is written and as it is read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, FiniteFloat, NonNegativeInt, Strict, ValidationInfo, model_validator

from src.evaluation.monitor import PERPLEXITY
from src.files.durable import write_durably
from src.files.plain import Plain, Short, is_bounded, read_json
from src.run_folder.name import RESULT

SCHEMA: Literal[2] = 2
"""Version of the file's layout; files of layout 1 are read too."""

Count = NonNegativeInt
Amount = Annotated[FiniteFloat, Field(ge=0)]
Part = Literal["whole", "unseen"]
"""Of the test split: all of it, or the examples whose text is not in train."""
PARTS: tuple[Part, Part] = ("whole", "unseen")
Evaluation = Annotated[tuple[Count, float], Strict(False)]
"""A step and the dev metric after it; JSON has lists for tuples."""
_MOST_LABELS = 10_000
_LONGEST_SOURCE = 4096


class Auxiliary(Plain):
    """An auxiliary task's text or images.

    Attributes:
        kind: `task` for the end task's own text (TAPT), `domain` for other text (DAPT).
        source: where the examples came from.
        size: in multiples of the training examples, or `all`.
        examples: how many.
        fingerprint: of the examples.
        decontaminated: examples that were left out because they overlap with dev or test texts;
            None where nobody looked.
    """

    kind: Short
    source: str = ""
    size: Count | Amount | Literal["all"]
    examples: Count
    fingerprint: Short = ""
    decontaminated: Count | None = None


class Scores(Plain):
    """Metrics of a split, or of its unseen part.

    Attributes:
        metrics: by name; None where there are no such examples.
        confusion: examples by label (rows) and prediction (columns), if the run kept it.
    """

    examples: Count
    metrics: dict[Short, float] | None
    confusion: list[list[Count]] | None = None


class Split(Plain):
    """Scores of a split as a whole and of its examples whose text is not in train."""

    whole: Scores
    unseen: Scores


class Spent(Plain):
    """The cost of a stage that every run of the same config has.

    Attributes:
        tokens: that went through the body, by task; those of images are 0.
        examples: the same in examples.
        flops: floating-point operations by task; None where the run did not count them.
        padding_share: padding's share of the positions that went through the body.
    """

    tokens: dict[Short, Count] = Field(default_factory=dict)
    examples: dict[Short, Count] = Field(default_factory=dict)
    flops: Mapping[Short, Count | Amount] | None = None
    padding_share: Amount | None = None


class Measured(Plain):
    """The cost of a stage on the machine that it ran on (see `src.methods.cost.StageCost`)."""

    seconds: Amount
    tokens_per_second: float | None = None
    floor_share: float | None = None
    peak_memory_bytes: Count | None = None
    processes: Count = 1
    summed_bytes: Count = 0


class Stage(Plain):
    """A stage that was trained.

    Attributes:
        steps: optimiser steps taken.
        best_step: the step whose weights were kept.
        skipped: updates that were skipped because a number was not finite.
        cost: see `Spent`.
        measured: see `Measured`.
        final_task_weights: by task; empty where one task trained alone.
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

    @model_validator(mode="before")
    @classmethod
    def _of_layout_1(cls, content: Any) -> Any:
        """Move seconds, tokens and examples to where layout 2 has them."""
        if not isinstance(content, dict) or "measured" in content or "seconds" not in content:
            return content
        counted = {"tokens": "tokens_seen", "examples": "examples_seen"}
        own = {name: content[old] for name, old in counted.items() if old in content}
        given = content.get("cost") or {}
        cost = own | given if isinstance(given, dict) else given
        return {**content, "cost": cost, "measured": {"seconds": content["seconds"]}}

    @property
    def flops(self) -> float | None:
        """Floating-point operations of its training passes, if the run counted them."""
        flops = self.cost.flops
        return None if flops is None else float(sum(flops.values()))

    @property
    def seconds(self) -> float:
        """Wall time of training and evaluations."""
        return self.measured.seconds


class TrainSplit(Plain):
    """The labelled examples trained on, in all and by label."""

    examples: Count
    labels: dict[str, Count] = Field(default_factory=dict)


class Chosen(Plain):
    """The stage and the step whose weights were kept."""

    stage: Short
    step: Count | None = None


class TotalCost(Plain):
    """Tokens and floating-point operations of all stages."""

    tokens: Count = 0
    flops: Count | Amount = 0


class TotalTime(Plain):
    """Wall time of all stages."""

    seconds: Amount = 0


class Baseline(Plain):
    """What another classifier reaches on the same splits, whole.

    Attributes:
        name: `tf_idf` for TF-IDF with logistic regression, `fine_tuning` for fine-tuning at the
            run's cost.
        settings: what was chosen on dev.
        dev: metrics by name.
        test: the same on test; None where the run was not evaluated there.
        seconds: wall time of its training and evaluations on dev; None where it is little.
    """

    name: Short
    settings: Short = ""
    dev: dict[Short, float]
    test: dict[Short, float] | None = None
    seconds: Amount | None = None


class Machine(Plain):
    """The machine that the run was on, and Lightning's name of the precision."""

    device: str = ""
    platform: str = ""
    cores: Count | None = None
    precision: str = ""


class Result(Plain):
    """The result of a finished run.

    What is not needed to compare runs has a default: files of earlier versions lack some of it.

    Attributes:
        weighting: None where no stage mixed tasks.
        metric: by which the weights were chosen.
        labels: of the end task; empty where a run only adapted an encoder.
        data: how the data were read, as plain JSON values.
        test_scores: None where the run was not evaluated on test, as those of a search.
        baselines: TF-IDF, but not for images, pairs of texts, and many training texts; and
            fine-tuning where it was asked for.
        final_task_weights: of the last stage that mixed tasks, by task.
        versions: of Python and the libraries, by name.
    """

    schema_version: Literal[1, 2] = Field(alias="schema")
    task: Short
    method: Short
    weighting: Short | None = None
    encoder: Short
    seed: int
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

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        """Check the scores, and more of a file from elsewhere; a run's own result is kept."""
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
        return self

    @property
    def is_tested(self) -> bool:
        """Return whether it was evaluated on test; only such runs are compared."""
        return self.test_scores is not None

    @property
    def only_adapts(self) -> bool:
        """Return whether it has no end task: its encoder was adapted to text and kept."""
        return not self.labels

    @property
    def test(self) -> Split:
        """Scores on test, of a run that is tested."""
        assert self.test_scores is not None
        return self.test_scores

    @property
    def evaluated(self) -> dict[str, Split]:
        """Scores of the splits that were looked at: a search leaves the test split alone."""
        return {"dev": self.dev} | ({"test": self.test} if self.is_tested else {})

    def score(self, part: Part) -> float | None:
        """The task's metric on a part of test; None where it has no examples."""
        scores: Scores = getattr(self.test, part)
        return None if scores.metrics is None else scores.metrics.get(self.metric)

    @property
    def dev_score(self) -> float:
        """The task's metric on dev, by which the weights were chosen."""
        assert self.dev.whole.metrics is not None
        return self.dev.whole.metrics[self.metric]

    @property
    def is_text(self) -> bool:
        """Return whether it learned from text; images have no tokens."""
        return any(count for stage in self.stages for count in stage.cost.tokens.values())

    @property
    def seconds(self) -> float:
        """Wall time of all stages."""
        return float(sum(stage.seconds for stage in self.stages))

    @property
    def flops(self) -> float | None:
        """Of all stages' training passes; None unless every stage counted them."""
        counted = [stage.flops for stage in self.stages]
        return None if None in counted else float(sum(f for f in counted if f is not None))

    def as_json(self) -> dict[str, Any]:
        """Return what the file holds, as plain JSON values: what was given, without defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def write_result(result: Result, folder: Path) -> None:
    """Write `result.json`, whole or not at all: its presence says that the run is finished."""
    content = json.dumps(result.as_json(), indent=1) + "\n"
    write_durably(folder / RESULT, lambda path: path.write_text(content, encoding="utf-8"))


def read_result(folder: Path, *, bounded: bool = True) -> Result:
    """Read the result of the finished run in `folder`.

    Args:
        bounded: whether the file may come from anybody, so that names have to be short and scores
            finite.

    Raises:
        UserError: what is wrong with it, in one line.
    """
    return read_json(folder / RESULT, Result, bounded=bounded)
