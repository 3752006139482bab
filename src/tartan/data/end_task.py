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
    """A labelled task, read and checked."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> str:
        """The metric by which a checkpoint is chosen.

        A name under `metrics` in the config, or one of `tartan.evaluation.named_metrics`.
        """
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names, in the order of their indices."""
        ...

    @property
    def label_counts(self) -> tuple[int, ...]:
        """Number of training examples of each label, in index order."""
        ...

    @property
    def notes(self) -> dict[str, Any]:
        """Return how the data were read, as plain JSON values for `result.json`."""
        ...

    @property
    def fingerprints(self) -> dict[str, str]:
        """A checksum of each split's data."""
        ...

    @property
    def max_length(self) -> int | None:
        """Maximum length of an input [tokens]; None where inputs are not tokens."""
        ...

    def splits(self, encoder: Encoder, cache_dir: Path) -> Splits:
        """Return the splits as `encoder` reads them; META-TARTAN's `B_val` is drawn from dev.

        Raises:
            UserError: the encoder does not read examples of this kind.
        """
        ...


class EndTaskSource(Protocol):
    """A source of an end task, configured in `conf/task/`."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> str:
        """See `EndTask`."""
        ...

    def load(self) -> EndTask:
        """Read the task, after fetching or building its data where needed.

        Raises:
            UserError: the data are missing or malformed.
        """
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
