"""Puts together all that a training is made of: encoder, end task and auxiliary tasks."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, cast

import datasets
import numpy as np
from torch import nn
from torch.utils.data import ConcatDataset

from tartan.core.seeding import generator_for
from tartan.core.task_names import END_TASK, META_GRADIENT, META_HEAD
from tartan.data.end_task import EndTask, HeldOutText, Splits
from tartan.data.tokenise import check_length
from tartan.encoders.base import Encoder
from tartan.encoders.export import check_masked_lm
from tartan.encoders.text_encoder import require_text_encoder
from tartan.errors import UserError
from tartan.evaluation.stage_result import Monitor
from tartan.objectives.base import TaskObjective
from tartan.settings import Checked, Natural, Size

log = logging.getLogger(__name__)

TEXT = "text"
"""Name of the only task of a run without an end task: masked language modelling on all corpora."""


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
    """What auxiliary tasks are read for; without an end task, `task` is the held-out text."""

    task: EndTask | HeldOutText
    encoder: Encoder
    options: AuxiliarySettings
    cache_dir: Path


@dataclass(frozen=True)
class AuxiliaryExamples:
    """An auxiliary task's examples, ready to be collated by its objective."""

    objective: TaskObjective[Any]
    rows: datasets.Dataset
    source: str  # path or name of the data that the examples came from
    size: float | None  # in multiples of the end task's training examples; None for all
    fingerprint: str  # changes when the source or the choice of examples changes
    texts: datasets.Dataset | None = None  # of the rows, blank ones too; None where they have none
    held_out: datasets.Dataset | None = None  # rows that are never trained on
    decontaminated: int | None = None  # number of texts left out; None where none was looked for
    draw_group: str | None = None  # tasks of one group get the same rows and random numbers


class Auxiliary(Protocol):
    """One auxiliary task (an entry of `conf/auxiliary/`)."""

    @property
    def kind(self) -> str:
        """`task` if it trains on the end task's own examples, else `domain`."""

    @property
    def left_out(self) -> bool:
        """Whether the run does without this task because it has nothing to train on."""

    def check(self, name: str, encoder: Encoder) -> None:
        """Check, before anything is read, that the options of `auxiliary.NAME` fit the encoder."""

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """Find, choose and prepare the examples of auxiliary task `name`."""


def size_of(name: str, size: Size | None, default: Size) -> tuple[float | None, str]:
    """Return the size of auxiliary task `name` (None: all) and the option that sets it."""
    option = "auxiliary.size" if size is None else f"auxiliary.{name}.size"
    size = default if size is None else size
    return None if size == "all" else float(size), option


def choose_rows(
    available: int, size: float, train_examples: int, seed: int, option: str, source: str
) -> np.ndarray:
    """Return indices of `size` x `train_examples` of `available` rows, ascending, int `(rows,)`.

    Of two sizes with the same seed, the smaller one's rows are among the larger one's.
    """
    count = round(size * train_examples)
    if not 1 <= count <= available:
        wanted = f"{option}={size:g} asks for {count} examples ({size:g} x {train_examples})"
        raise UserError(f"{wanted}, but {source} has {available}")
    return np.sort(generator_for(seed, "corpus part").permutation(available)[:count])


def check_task_name(name: str) -> None:
    """Check that an auxiliary task of this name is confused with no option, task or cost."""
    reserved = {*SETTINGS, END_TASK, META_GRADIENT, META_HEAD}
    # heads are kept in a ModuleDict, whose attributes a name must not hide
    if name in reserved or not re.fullmatch(r"[\w-]+", name) or hasattr(nn.ModuleDict(), name):
        raise UserError(f"an auxiliary task cannot be named {name!r}: choose another name")


@dataclass(frozen=True)
class Prepared:
    """Data that were read and checked, and the encoder for which they were prepared.

    In a run without an end task, this, its splits and its objective are None.
    """

    encoder: Encoder  # which each stage trains further
    auxiliaries: Mapping[str, tuple[Auxiliary, AuxiliaryExamples]]
    end_task: EndTask
    splits: Splits
    classification: TaskObjective[Any]
    held_out: HeldOutText | None = None  # by which a run without an end task is judged

    @property
    def metric(self) -> Monitor:
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


def assemble(
    context: AuxiliaryContext, auxiliaries: Mapping[str, Auxiliary], classification: Any = None
) -> Prepared:
    """Prepare the end task, with its objective, or held-out text, and all auxiliary tasks."""
    encoder, end_task = context.encoder, cast(Any, context.task)
    held_out = end_task if isinstance(end_task, HeldOutText) else None
    splits: Any = None
    for name, auxiliary in auxiliaries.items():
        check_task_name(name)
        auxiliary.check(name, encoder)
    if held_out is None:
        classification.collate(encoder, 1)  # says so if the encoder does not fit
        splits = end_task.splits(encoder, context.cache_dir)
    else:
        end_task, reader = None, require_text_encoder(encoder, "continued pre-training")
        check_masked_lm(reader)
        check_length("task.max_length", held_out.max_length, reader)
    examples = {name: (own, own.examples(name, context)) for name, own in auxiliaries.items()}
    for name, (_, own) in examples.items():
        log.info("auxiliary %s: %s examples of %s", name, len(own.rows), own.source)
    if held_out is not None and len({repr(own.objective) for _, own in examples.values()}) > 1:
        raise UserError("corpora are pooled: auxiliary.NAME.objective has to be the same for all")
    return Prepared(encoder, examples, end_task, splits, classification, held_out)
