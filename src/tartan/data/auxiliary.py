"""Defines what every auxiliary task provides, and chooses as many examples as its size asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import datasets
import numpy as np

from tartan.core.seeding import generator_for
from tartan.data.end_task import EndTask
from tartan.data.held_out_text import HeldOutText
from tartan.data.permutation import RandomOrder
from tartan.encoders.base import Encoder
from tartan.errors import UserError
from tartan.objectives.base import TaskObjective
from tartan.settings import Size


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
        texts: the texts of the rows, in the column `text`, blank ones included; None where the
            examples are not texts. Training does not need them.
        held_out: rows that are never trained on; None where none are held out.
        decontaminated: number of the source's texts that were left out because they overlap with
            dev or test texts; None where decontamination was not asked for.
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
    """One auxiliary task (an entry of `conf/auxiliary/`)."""

    @property
    def kind(self) -> str:
        """`task` if it trains on the end task's own examples, `domain` if on others.

        Stages choose by it (`stage.auxiliaries`).
        """
        ...

    @property
    def left_out(self) -> bool:
        """Whether the run does without this task because it has nothing to train on."""
        ...

    def check(self, name: str, encoder: Encoder) -> None:
        """Check the task's options before anything is read.

        Raises:
            UserError: an option of `auxiliary.NAME` does not fit the encoder.
        """
        ...

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """Find, choose and prepare the examples of auxiliary task `name`.

        Raises:
            UserError: the source cannot be read, or holds too little.
        """
        ...


def size_of(name: str, own: Size | None, default: Size) -> tuple[float | None, str]:
    """Return the size of auxiliary task `name` (None: all) and the option that sets it."""
    option = "auxiliary.size" if own is None else f"auxiliary.{name}.size"
    size = default if own is None else own
    return None if size == "all" else float(size), option


def choose_rows(
    available: int, size: float, train_examples: int, seed: int, option: str, source: str
) -> np.ndarray:
    """Return indices of `size` x `train_examples` of `available` rows, ascending, int `(rows,)`.

    Of two sizes with the same seed, the smaller one's rows are among the larger one's.

    Args:
        option: the config option that sets the size, for the message.
        source: path or name of the data, for the message.

    Raises:
        UserError: there are fewer rows than that, or the size asks for none.
    """
    count = round(size * train_examples)
    if count < 1:
        raise UserError(
            f"{option}={size:g} asks for no examples ({size:g} x {train_examples} examples)"
        )
    if count > available:
        largest = np.floor(1000 * available / train_examples) / 1000
        largest = f"{largest:.3f}".rstrip("0").rstrip(".")
        raise UserError(
            f"{option}={size:g} asks for {count} examples ({size:g} x {train_examples} training "
            f"examples), but {source} has {available}; "
            f"use a size of at most {largest}, 'all', or a larger corpus"
        )
    return np.sort(RandomOrder(available, generator_for(seed, "corpus part")).part(0, count))
