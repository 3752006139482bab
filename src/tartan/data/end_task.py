"""Defines what every labelled end task provides, whatever its examples are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import datasets

from tartan.encoders.base import Encoder


@dataclass(frozen=True)
class Splits:
    """The end task's rows as an encoder reads them: train, dev and test.

    Each row has `label`, an index; `unseen`, whether the example's content is absent from train;
    and the inputs that the task's objective collates.
    """

    train: datasets.Dataset
    dev: datasets.Dataset
    test: datasets.Dataset


class EndTask(Protocol):
    """A labelled task, read and checked.

    Attributes:
        name: the name results are reported under.
        metric: the metric by which a checkpoint is chosen: a name under `metrics` in the config,
            or one of `tartan.evaluation.named_metrics`.
        labels: label names, in the order of their indices.
        label_counts: number of training examples of each label, in index order.
        notes: how the data were read, as plain JSON values for `result.json`.
        fingerprints: a checksum of each split's data.
        max_length: maximum length of an input [tokens]; None where inputs are not tokens.
    """

    @property
    def name(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def label_counts(self) -> tuple[int, ...]: ...
    @property
    def notes(self) -> dict[str, Any]: ...
    @property
    def fingerprints(self) -> dict[str, str]: ...
    @property
    def max_length(self) -> int | None: ...

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return the splits as `encoder` reads them; META-TARTAN's `B_val` is drawn from dev."""
        ...


class EndTaskSource(Protocol):
    """A source of an end task, configured in `conf/task/`."""

    @property
    def name(self) -> str: ...
    @property
    def metric(self) -> str: ...

    def load(self) -> EndTask:
        """Read the task, after fetching or building its data where needed."""
        ...


class EndTaskOfSource:
    """Base of end tasks that take name and metric from their source."""

    source: EndTaskSource

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def metric(self) -> str:
        return self.source.metric
