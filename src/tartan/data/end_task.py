"""Defines what every labelled end task provides, whatever its examples are."""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class EndTaskSource(Protocol):
    """A source of an end task, configured in `conf/task/`."""

    @property
    def name(self) -> str: ...
    @property
    def metric(self) -> str: ...

    def load(self) -> EndTask:
        """Read the task, after fetching or building its data where needed."""
        ...


class EndTask(ABC):
    """A labelled task, read and checked.

    Attributes:
        source: where it is from; has its `name`, and the `metric` by which a checkpoint is chosen:
            a name under `metrics` in the config, or one of `tartan.evaluation.metrics`.
        labels: label names, in the order of their indices.
        label_counts: number of training examples of each label, in index order.
        notes: how the data were read, as plain JSON values for `result.json`.
        fingerprints: a checksum of each split's data.
        max_length: maximum length of an input [tokens]; None where inputs are not tokens.
    """

    source: EndTaskSource
    labels: tuple[str, ...]
    fingerprints: dict[str, str]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def metric(self) -> str:
        return self.source.metric

    @property
    def max_length(self) -> int | None:
        return None

    @property
    def notes(self) -> dict[str, Any]:
        return {}

    @property
    @abstractmethod
    def label_counts(self) -> tuple[int, ...]: ...

    @abstractmethod
    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return the splits as `encoder` reads them; META-TARTAN's `B_val` is drawn from dev."""
