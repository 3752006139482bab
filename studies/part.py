"""Reads the parts of the study (`studies/conf/`): their runs, and the questions these answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tartan.errors import UserError
from tartan.files import read_yaml, violation

FOLDER = Path(__file__).parent / "conf"
Beside = Literal["tfidf", "trainer", "setfit", "race"]
TFIDF, TRAINER, SETFIT, RACE = BESIDE = get_args(Beside)
"""Settings that `python -m src.run` does not train, of one stage (see `studies/README.md`)."""
NO_BUDGET = "no budget"
"""Name of the budget of settings that take what they take, which is little."""

DRAWN = "task.split_seed=${seed}"
"""The option by which each seed draws its own data; without it TF-IDF is the same for all."""

Whole = Annotated[int, Field(ge=1)]


class _Described(BaseModel):
    """An entry of a part's file; unknown entries are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Budget(_Described):
    """The budget of a run; `studies/README.md` says what the entries of a part's file are."""

    multiple: Annotated[float, Field(gt=0)]
    evaluations: Whole
    patience: Whole | None = None
    seeds: Whole | None = None


class Setting(_Described):
    """A method with its options; its stages have the cost of a step, in steps of fine-tuning."""

    about: str = ""
    method: str
    stages: dict[str, Annotated[float, Field(gt=0)]] = Field(min_length=1)
    options: list[str] = Field(default_factory=list)
    budgets: list[str] | None = None
    seeds: Whole | None = None


class Contrast(_Described):
    """The sum of some cells' values (`BUDGET/SETTING`) minus that of as many others', by seed."""

    plus: list[str] = Field(min_length=1)
    minus: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _balanced(self) -> Contrast:
        if len(self.plus) != len(self.minus):
            raise ValueError("a contrast needs as many cells in minus as in plus")
        return self


class Question(_Described):
    """A statement, which holds if all contrasts of the value `of` exceed the margin."""

    statement: str
    of: Literal["test", "dev", "end_task_weight"]
    margin: float = 0.0
    contrasts: dict[str, Contrast] = Field(min_length=1)

    @property
    def is_in_points(self) -> bool:
        """Whether its differences are those of a metric, which are shown in points of percent."""
        return self.of != "end_task_weight"


class Part(_Described):
    """A part of the study: each cell is run with seeds 0, 1, ..., unless it has fewer."""

    title: str
    summary: str = ""
    about: str
    order: int
    seeds: Whole
    steps: Whole
    batch_size: Whole
    options: list[str]
    beside: list[Beside] = Field(default_factory=list)
    trials: dict[str, list[float | int | str]] = Field(default_factory=dict)
    budgets: dict[str, Budget] = Field(min_length=1)
    settings: dict[str, Setting] = Field(min_length=1)
    main: dict[str, str] = Field(default_factory=dict)
    questions: dict[str, Question] = Field(default_factory=dict)

    def with_seeds(self, count: int) -> Part:
        """Return the part with as many seeds for all cells."""
        every = {"seeds": count}
        budgets = {name: own.model_copy(update=every) for name, own in self.budgets.items()}
        settings = {name: own.model_copy(update=every) for name, own in self.settings.items()}
        return self.model_copy(update=every | {"budgets": budgets, "settings": settings})

    def steps_of(self, setting: Setting, budget: Budget) -> dict[str, int]:
        """Return each stage's optimiser steps, at least one; stages share the budget equally."""
        share = budget.multiple * self.steps / len(setting.stages)
        return {stage: max(1, round(share / cost)) for stage, cost in setting.stages.items()}


@dataclass(frozen=True)
class Cell:
    """A run of the study."""

    part: str
    budget: str
    setting: str
    seed: int
    method: str
    overrides: tuple[str, ...]

    @property
    def draws_data(self) -> bool:
        """Whether the data are drawn by the run's seed."""
        return DRAWN in self.overrides

    @property
    def key(self) -> tuple[str, str, int]:
        """The budget, setting and seed, which identify the cell in its part."""
        return self.budget, self.setting, self.seed

    @property
    def place(self) -> str:
        """Its run folder, relative to the folder of all runs."""
        return f"{self.part}/{self.budget}/{self.setting}/seed{self.seed}"


def all_parts(folder: Path = FOLDER) -> dict[str, Part]:
    """Return all parts by name, in their order."""
    parts = {path.stem: read_part(path.stem, folder) for path in folder.glob("*.yaml")}
    return dict(sorted(parts.items(), key=lambda entry: entry[1].order))


def read_part(name: str, folder: Path = FOLDER) -> Part:
    """Return the part of that name."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
        raise UserError(f"the study has no part {name!r}, only {known}")
    content: dict[str, Any] = read_yaml(path)
    while "extends" in content:  # entries that it lacks are those of another part
        content = read_yaml(folder / f"{content.pop('extends')}.yaml") | content
    try:
        part = Part.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{path.name}: {violation(error)}") from error
    cells = {f"{cell.budget}/{cell.setting}" for cell in cells_of(name, part)}
    contrasts = [c for question in part.questions.values() for c in question.contrasts.values()]
    named = [*part.main.values(), *(cell for c in contrasts for cell in (*c.plus, *c.minus))]
    unknown = {*named} - cells
    unknown |= {b for s in part.settings.values() for b in s.budgets or ()} - {*part.budgets}
    if unknown:
        raise UserError(f"{path.name}: there is no {', '.join(sorted(unknown))}")
    return part


def cells_of(name: str, part: Part) -> Iterator[Cell]:
    """Yield all cells, in the order in which they are run.

    They come seed by seed, small budgets first: so the finished ones can be compared at any time.
    """
    for seed in range(part.seeds):
        shared = (*part.options, f"seed={seed}")
        for beside in part.beside:
            if seed == 0 or DRAWN in part.options or beside != TFIDF:
                yield Cell(name, NO_BUDGET, beside, seed, beside, shared)
        for budget, spent in part.budgets.items():
            for setting, content in part.settings.items():
                if content.budgets is not None and budget not in content.budgets:
                    continue
                if any(one.seeds is not None and seed >= one.seeds for one in (spent, content)):
                    continue
                drawn = {name: values[seed] for name, values in part.trials.items()}
                own = _options(part, content, spent)
                options = (*(Template(o).safe_substitute(drawn) for o in own), f"seed={seed}")
                yield Cell(name, budget, setting, seed, content.method, options)


def _options(part: Part, setting: Setting, budget: Budget) -> Iterator[str]:
    """Yield the overrides of a cell without its seed; the setting's own come last.

    A value that other parts' settings refer to (`+corpus=...`) is left out where none does here.
    """
    for option in part.options:
        value = option.partition("=")[0].removeprefix("+")
        if not option.startswith("+") or any(f"${{{value}}}" in own for own in setting.options):
            yield option
    yield f"method={setting.method}"
    for stage, steps in part.steps_of(setting, budget).items():
        evaluated = stage in ("finetune", "joint", "last_finetune")
        chosen: dict[str, Any] = {
            "batch_size": part.batch_size,
            "patience": budget.patience if evaluated else None,
            "max_steps": steps,
            "max_epochs": None,
        }
        if evaluated:
            chosen["evaluate_every"] = math.ceil(steps / budget.evaluations)
        for option, value in chosen.items():
            yield f"method.stages.{stage}.{option}={'null' if value is None else value}"
    yield from setting.options
