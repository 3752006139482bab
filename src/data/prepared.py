"""All that training is made of: an encoder, a labelled task, its auxiliary tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from src.data.auxiliary import Auxiliary, AuxiliaryExamples
from src.data.end_task import EndTask, Splits
from src.encoders.base import Encoder
from src.objectives.base import TaskObjective


@dataclass(frozen=True)
class Prepared:
    """Data that were read and checked, with the encoder that they are for.

    Attributes:
        encoder: body and what belongs to it; trained further by each stage.
        end_task: the labelled task.
        splits: its splits as the encoder reads them.
        classification: its objective.
        auxiliaries: settings and examples of each auxiliary task, by name.
    """

    encoder: Encoder
    end_task: EndTask
    splits: Splits
    classification: TaskObjective[Any]
    auxiliaries: Mapping[str, tuple[Auxiliary, AuxiliaryExamples]]
