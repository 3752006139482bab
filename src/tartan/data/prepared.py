"""Holds all that a training is made of: the encoder, the end task and the auxiliary tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import datasets
from torch.utils.data import ConcatDataset

from tartan.core.task_names import END_TASK
from tartan.data.auxiliary import Auxiliary, AuxiliaryExamples
from tartan.data.end_task import EndTask, HeldOutText, Splits
from tartan.encoders.base import Encoder
from tartan.evaluation.monitor import Monitor
from tartan.objectives.base import TaskObjective

TEXT = "text"
"""Name of the only task of a run without an end task: masked language modelling on all corpora."""


@dataclass(frozen=True)
class Prepared:
    """Data that were read and checked, and the encoder for which they were prepared.

    Attributes:
        encoder: the encoder, which each stage trains further.
        auxiliaries: settings and examples of each auxiliary task, by name.
        end_task: the labelled task; None, as its splits and objective, in a run without one.
        splits: its splits as the encoder reads them.
        classification: its objective.
        held_out: the held-out text by which a run without an end task is judged; else None.
    """

    encoder: Encoder
    auxiliaries: Mapping[str, tuple[Auxiliary, AuxiliaryExamples]]
    end_task: EndTask
    splits: Splits
    classification: TaskObjective[Any]
    held_out: HeldOutText | None = None

    @property
    def metric(self) -> Monitor:
        """The metric by which the best checkpoint is chosen."""
        return Monitor((self.end_task if self.held_out is None else self.held_out).metric)

    @property
    def max_length(self) -> int | None:
        """Longest input [tokens]; None for images."""
        return getattr(self.held_out or self.end_task, "max_length", None)

    @property
    def fingerprints(self) -> dict[str, str]:
        """A checksum of each split and of each auxiliary task's examples."""
        splits = self.end_task.fingerprints if self.held_out is None else {}
        return {f"task {split}": own for split, own in splits.items()} | {
            f"auxiliary {name}": own.fingerprint for name, (_, own) in self.auxiliaries.items()
        }

    @property
    def has_test(self) -> bool:
        """Whether there is a test split: an end task may be without one (`test_share=0`)."""
        return self.held_out is None and len(self.splits.test) > 0

    def rows(self, task: str) -> datasets.Dataset | ConcatDataset[Any]:
        """Return the training examples of a task: the end task, an auxiliary task, or `TEXT`."""
        if task == END_TASK:
            return self.splits.train
        if task in self.auxiliaries:
            return self.auxiliaries[task][1].rows
        corpora = [examples.rows for _, examples in self.auxiliaries.values()]
        return corpora[0] if len(corpora) == 1 else ConcatDataset(corpora)

    def counts(self, tasks: Iterable[str]) -> tuple[int | None, list[int]]:
        """Return the numbers of training examples: the end task's (None: absent), the others'."""
        by_name = {name: len(self.rows(name)) for name in tasks}
        return by_name.pop(END_TASK, None), list(by_name.values())

    def objective(self, task: str) -> TaskObjective[Any]:
        """Return the objective of the end task, of an auxiliary task, or of `TEXT`."""
        if task == END_TASK:
            return self.classification
        name = task if task in self.auxiliaries else next(iter(self.auxiliaries))
        return self.auxiliaries[name][1].objective
