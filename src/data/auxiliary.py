"""An auxiliary task, whatever its examples are: an objective, a source, a size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import datasets
import numpy as np

from src.configuration.options import Size
from src.core.seeding import generator_for
from src.data.end_task import EndTask
from src.data.held_out_text import HeldOutText
from src.data.permutation import RandomOrder
from src.encoders.base import Encoder
from src.errors import UserError
from src.objectives.base import TaskObjective


@dataclass(frozen=True)
class AuxiliaryContext:
    """The end task, the encoder and the settings that auxiliary tasks are read for.

    Attributes:
        end_task: the labelled task; None where there is none.
        encoder: the encoder that is trained.
        train_examples: the end task's training examples, in which sizes are counted.
        default_size: `auxiliary.size`.
        seed: of the choice of a part of a source.
        cache_dir: for what is prepared once.
        held_out: what is held out of each text where there is no end task.
        decontaminate: whether text that overlaps with dev or test texts is left out.
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
        objective: what the task asks of the encoder.
        rows: the examples.
        source: where they came from.
        size: as asked, in multiples of the end task's training examples; None for all.
        fingerprint: of the source and the choice.
        texts: what the rows were made of, in the column `text`, blank ones included; None where
            they are no text. Training does without it.
        held_out: rows that are never trained on; None where none are held out.
        decontaminated: texts of the source that were left out because they overlap with dev or
            test texts; None where nobody asked for that.
        draws: tasks of the same name here get the same rows in a step, and their objectives the
            same random numbers; None for draws of its own.
    """

    objective: TaskObjective[Any]
    rows: datasets.Dataset
    source: str
    size: float | None
    fingerprint: str
    texts: datasets.Dataset | None = None
    held_out: datasets.Dataset | None = None
    decontaminated: int | None = None
    draws: str | None = None


class AuxiliarySpace(Protocol):
    """Several auxiliary tasks in one entry of `conf/auxiliary/`."""

    def members(self, name: str) -> Mapping[str, Auxiliary]:
        """The tasks by name; `name` is the entry's."""
        ...


class Auxiliary(Protocol):
    """One auxiliary task (an entry of `conf/auxiliary/`)."""

    @property
    def kind(self) -> str:
        """`task` where it trains on the end task's own examples, `domain` on others.

        Stages choose by it (`stage.auxiliaries`).
        """
        ...

    @property
    def left_out(self) -> bool:
        """Return whether it is to be done without, for there is nothing to train it on."""
        ...

    def check(self, name: str, encoder: Encoder) -> None:
        """Find what is wrong before anything is read.

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
    """Return the size of auxiliary task `name` (None: all), and the option that holds it."""
    option = "auxiliary.size" if own is None else f"auxiliary.{name}.size"
    size = default if own is None else own
    return None if size == "all" else float(size), option


def choose_rows(
    available: int, size: float, train_examples: int, seed: int, option: str, source: str
) -> np.ndarray:
    """Sorted indices of `size` x `train_examples` of `available` rows.

    Of two sizes with the same seed, the smaller one's rows are among the larger one's.

    Args:
        option: the config option that holds the size, for the message.
        source: the name of what is chosen from, for the message.

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
