"""Defines what every auxiliary task provides, and the options and names that all of them share."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import datasets
from torch import nn

from tartan.core.task_names import END_TASK
from tartan.data.end_task import EndTask, HeldOutText
from tartan.encoders.base import Encoder
from tartan.errors import UserError
from tartan.objectives.base import TaskObjective
from tartan.settings import Checked, Natural, Size

META_GRADIENT, META_HEAD = "meta_gradient", "meta_head"
"""Names, beside the tasks', under which costs are reported."""


@dataclass
class AuxiliarySettings(Checked):
    """Options below `auxiliary` that hold for all auxiliary tasks."""

    size: Size = 1
    seed: Natural = 0
    decontaminate: bool = False


SETTINGS = tuple(field.name for field in fields(AuxiliarySettings))
"""Keys of the `auxiliary` group that are options, not tasks."""


@dataclass(frozen=True)
class AuxiliaryContext:
    """The end task, the encoder and the settings for which auxiliary tasks are read.

    Attributes:
        end_task: the labelled task; None where there is none.
        encoder: the encoder that is trained.
        train_examples: number of the end task's training examples; sizes are multiples of it.
        default_size: `auxiliary.size`.
        seed: seed of the choice of a part of a source.
        cache_dir: folder for data that are prepared once, such as tokenised texts.
        held_out: which part of each corpus is held out where there is no end task; else None.
        decontaminate: whether texts that overlap with dev or test texts are left out.
    """

    end_task: EndTask | None
    encoder: Encoder
    train_examples: int
    default_size: Size
    seed: int
    cache_dir: Path
    held_out: HeldOutText | None = None
    decontaminate: bool = False


@dataclass(frozen=True)
class AuxiliaryExamples:
    """An auxiliary task's examples, ready to be collated by its objective.

    Attributes:
        objective: the task's objective.
        rows: the examples.
        source: path or name of the data that the examples came from.
        size: the size asked for, in multiples of the end task's training examples; None for all.
        fingerprint: string that changes when the source or the choice of examples changes.
        texts: the texts of the rows, blank ones included; None where they are not texts.
        held_out: rows that are never trained on; None where none are held out.
        decontaminated: number of texts left out for their overlap; None where none were looked for.
        draw_group: tasks with the same value get the same rows in a step, and their objectives the
            same random numbers; None where the task draws independently of others.
    """

    objective: TaskObjective[Any]
    rows: datasets.Dataset
    source: str
    size: float | None
    fingerprint: str
    texts: datasets.Dataset | None = None
    held_out: datasets.Dataset | None = None
    decontaminated: int | None = None
    draw_group: str | None = None


class Auxiliary(Protocol):
    """One auxiliary task (an entry of `conf/auxiliary/`).

    Attributes:
        kind: `task` if it trains on the end task's own examples, `domain` if on others; stages
            choose by it (`stage.auxiliaries`).
        left_out: whether the run does without this task because it has nothing to train on.
    """

    @property
    def kind(self) -> str: ...

    @property
    def left_out(self) -> bool: ...

    def check(self, name: str, encoder: Encoder) -> None:
        """Check, before anything is read, that the options of `auxiliary.NAME` fit the encoder."""

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """Find, choose and prepare the examples of auxiliary task `name`."""
        ...


def size_of(name: str, size: Size | None, default: Size) -> tuple[float | None, str]:
    """Return the size of auxiliary task `name` (None: all) and the option that sets it."""
    option = "auxiliary.size" if size is None else f"auxiliary.{name}.size"
    size = default if size is None else size
    return None if size == "all" else float(size), option


def check_task_name(name: str) -> None:
    """Check that an auxiliary task of this name is confused with no option, task or cost."""
    reserved = {*SETTINGS, END_TASK, META_GRADIENT, META_HEAD}
    # heads are kept in a ModuleDict, whose attributes a name must not hide
    if name in reserved or not re.fullmatch(r"[\w-]+", name) or hasattr(nn.ModuleDict(), name):
        raise UserError(f"an auxiliary task cannot be named {name!r}: choose another name")
