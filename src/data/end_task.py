"""The labelled end task, whatever its examples are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import datasets

from src.encoders.base import Encoder


@dataclass(frozen=True)
class Splits:
    """The end task's rows as an encoder reads them.

    Each row has `label`, an index; `unseen`, whether the example's content is absent from train;
    and the inputs that the task's objective collates.
    """

    train: datasets.Dataset
    dev: datasets.Dataset
    test: datasets.Dataset


class EndTask(Protocol):
    """A labelled task, read and checked."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> str:
        """The metric by which a checkpoint is chosen: a name under `metrics` in the config, or one
        of `src.evaluation.named_metrics`.
        """
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names in index order."""
        ...

    @property
    def label_counts(self) -> tuple[int, ...]:
        """Training examples of each label, in index order."""
        ...

    @property
    def notes(self) -> dict[str, Any]:
        """Return how the data were read, for `result.json`, as plain JSON values."""
        ...

    @property
    def fingerprints(self) -> dict[str, str]:
        """A checksum of each split's data."""
        ...

    @property
    def max_length(self) -> int | None:
        """Longest input in tokens; None where inputs are not tokens."""
        ...

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """The splits as `encoder` reads them; dev also gives `B_val` to the meta-gradient.

        Raises:
            UserError: the encoder does not read such examples.
        """
        ...


class EndTaskSource(Protocol):
    """A source of an end task (`conf/task/`)."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> str:
        """See `EndTask`."""
        ...

    def load(self) -> EndTask:
        """Read the task, fetched or built where that is needed.

        Raises:
            UserError: its data are missing or malformed.
        """
        ...


class OfSource:
    """An end task that goes by the name and the metric of its source."""

    source: EndTaskSource

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def metric(self) -> str:
        return self.source.metric
