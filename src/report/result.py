"""`result.json` as it is read back: what a finished run reached, checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AliasChoices,
    AliasPath,
    Field,
    FiniteFloat,
    NonNegativeInt,
    model_validator,
)

from src.evaluation.monitor import PERPLEXITY
from src.report.plain import Plain, Short, read_json

Count = NonNegativeInt
Amount = Annotated[FiniteFloat, Field(ge=0)]
Part = Literal["whole", "unseen"]
"""Of the test split: all of it, or the examples whose text is not in train."""
PARTS: tuple[Part, Part] = ("whole", "unseen")


class Auxiliary(Plain):
    """An auxiliary task's text or images.

    Attributes:
        kind: `task` for the end task's own text (TAPT), `domain` for other text (DAPT).
        size: in multiples of the training examples, or `all`.
        examples: how many.
        fingerprint: of the examples.
    """

    kind: Short
    source: Annotated[str, Field(max_length=4096)] = ""
    size: Amount | Literal["all"]
    examples: Count
    fingerprint: Short = ""


class Scores(Plain):
    """Of a split, or its unseen part.

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


class StageCost(Plain):
    """What a stage's training passes took.

    Attributes:
        flops: floating-point operations by task.
    """

    flops: dict[Short, Amount] | None = None


class Stage(Plain):
    """A stage that was trained.

    Layout 1 of the file has seconds and tokens in the stage itself, layout 2 in `measured` and
    `cost`.

    Attributes:
        tokens_seen: by task; those of images are 0.
        evaluations: pairs of step and dev metric.
        final_task_weights: by task; empty where one task trained alone.
        cost: None where the run did not count it.
    """

    name: Short
    steps: Count
    seconds: Amount = Field(
        validation_alias=AliasChoices(AliasPath("measured", "seconds"), "seconds")
    )
    tokens_seen: dict[Short, Count] = Field(
        default_factory=dict,
        validation_alias=AliasChoices(AliasPath("cost", "tokens"), "tokens_seen"),
    )
    evaluations: list[tuple[Count, float]] = Field(default_factory=list)
    final_task_weights: dict[Short, float] = Field(default_factory=dict)
    cost: StageCost | None = None

    @property
    def flops(self) -> float | None:
        """Floating-point operations of its training passes, if the run counted them."""
        flops = None if self.cost is None else self.cost.flops
        return None if flops is None else float(sum(flops.values()))


class TrainSplit(Plain):
    """The labelled examples trained on."""

    examples: Count


class Result(Plain):
    """What a finished run says of itself.

    Attributes:
        labels: of the end task; empty where a run only adapted an encoder.
        test_scores: None where the run was not evaluated on test, as those of a search.
    """

    schema_version: Literal[1, 2] = Field(alias="schema")
    task: Short
    method: Short
    weighting: Short | None = None
    encoder: Short
    seed: int
    metric: Short
    labels: Annotated[list[Short], Field(max_length=10_000)]
    auxiliaries: dict[Short, Auxiliary]
    train: TrainSplit
    dev: Split
    test_scores: Split | None = Field(default=None, alias="test")
    stages: Annotated[list[Stage], Field(min_length=1)]
    fingerprints: dict[Short, Short] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Result:
        splits = {"dev": self.dev} | ({"test": self.test} if self.is_tested else {})
        for name, split in splits.items():
            scores = split.whole
            value = (scores.metrics or {}).get(self.metric)
            if not self.labels and self.metric != PERPLEXITY:
                raise ValueError(f"there are no labels for {self.metric}")
            if value is None or not math.isfinite(value):
                raise ValueError(f"{name} has no finite {self.metric}")
        for scores in (self.test.whole, self.test.unseen) if self.is_tested else ():
            counts, size = scores.confusion, len(self.labels)
            if counts is not None and [len(row) for row in counts] != [size] * size:
                raise ValueError(f"the confusion on test is not {size} x {size}")
        return self

    @property
    def is_tested(self) -> bool:
        """Whether it was evaluated on test; only such runs are compared."""
        return self.test_scores is not None

    @property
    def only_adapts(self) -> bool:
        """Whether it has no end task: its encoder was adapted to text and kept."""
        return not self.labels

    @property
    def test(self) -> Split:
        """What it reached on test, of a run that is tested."""
        assert self.test_scores is not None
        return self.test_scores

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
        """Whether it learned from text; images have no tokens."""
        return any(count for stage in self.stages for count in stage.tokens_seen.values())

    @property
    def seconds(self) -> float:
        """Of all stages."""
        return float(sum(stage.seconds for stage in self.stages))

    @property
    def flops(self) -> float | None:
        """Of all stages' training passes; None unless every stage counted them."""
        counted = [stage.flops for stage in self.stages]
        return None if None in counted else float(sum(f for f in counted if f is not None))


def read_result(folder: Path) -> Result:
    """The result of the finished run in `folder`.

    Raises:
        UserError: what is wrong with it, in one line.
    """
    return read_json(folder / "result.json", Result)
