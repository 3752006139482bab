"""Reads the parts of the study (`conf/study/`): their runs, and the questions these answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tartan.compare.experiments import stage_options
from tartan.errors import UserError
from tartan.files import read_yaml, violation

FOLDER = Path(__file__).parents[1] / "conf" / "study"
TFIDF = "tfidf"
"""Name of the setting that uses no encoder: TF-IDF with logistic regression."""
SETFIT = "setfit"
"""Name of the method that its own library trains."""
NO_BUDGET = "no budget"
"""Name of the budget of settings that cost next to nothing."""

Whole = Annotated[int, Field(ge=1)]


class _Described(BaseModel):
    """An entry of a part's file; unknown entries are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Budget(_Described):
    """The budget of a run.

    Attributes:
        multiple: the cost, in multiples of the part's `steps` of fine-tuning.
        evaluations: number of evaluations on dev, of each stage with the end task.
        patience: evaluations without improvement after which a stage ends; None for never.
        seeds: number of seeds of its cells; None for the part's.
    """

    multiple: Annotated[float, Field(gt=0)]
    evaluations: Whole
    patience: Whole | None = None
    seeds: Whole | None = None


class Setting(_Described):
    """A method with its options.

    Attributes:
        about: what a reader has to know about it beyond its name.
        method: its name in `conf/method/`, or `setfit`.
        stages: the stages that share the budget equally, and what a step of each costs, as
            `python -m src.compare` counts it [steps of fine-tuning].
        options: options of the run, in addition to the part's.
        budgets: the budgets that it is run with; None for all of the part's.
        seeds: number of seeds of its cells; None for the part's. Its budgets may ask for fewer.
    """

    about: str = ""
    method: str
    stages: dict[str, Annotated[float, Field(gt=0)]] = Field(min_length=1)
    options: list[str] = Field(default_factory=list)
    budgets: list[str] | None = None
    seeds: Whole | None = None

    @model_validator(mode="after")
    def _of_one_stage(self) -> Setting:
        if self.method == SETFIT and len(self.stages) > 1:
            raise ValueError(f"{SETFIT} has one stage, which its own library trains")
        return self


class Contrast(_Described):
    """The sum of some cells' values minus the sum of others', for each seed.

    Attributes:
        plus: cells as `BUDGET/SETTING`.
        minus: cells to subtract, as many as `plus` has.
    """

    plus: list[str] = Field(min_length=1)
    minus: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _balanced(self) -> Contrast:
        if len(self.plus) != len(self.minus):
            raise ValueError("a contrast needs as many cells in minus as in plus")
        return self


class Question(_Described):
    """A statement that the part's runs can confirm or refute.

    Attributes:
        statement: the statement.
        of: the value it is about: the metric on test or dev, or the end task's final weight.
        margin: the value that each contrast has to exceed [share of 1, of the metric or of the
            weights].
        contrasts: contrasts by what they show; the statement holds if all exceed the margin.
    """

    statement: str
    of: Literal["test", "dev", "end_task_weight"]
    margin: float = 0.0
    contrasts: dict[str, Contrast] = Field(min_length=1)

    @property
    def is_in_points(self) -> bool:
        """Whether its differences are those of a metric, which are shown in points of percent."""
        return self.of != "end_task_weight"


class Part(_Described):
    """A part of the study.

    Attributes:
        title: the title of the part.
        about: what a reader has to know about its runs, in a few sentences.
        order: its position among the parts.
        seeds: number of seeds: each cell is run with seeds 0, 1, ..., unless its budget or setting
            has fewer.
        steps: the budget of multiple 1: optimiser steps that fine-tuning takes to converge [steps].
        batch_size: examples of each task in a step.
        options: options of all runs.
        tfidf: whether TF-IDF with logistic regression is run too.
        budgets: the budgets by name.
        settings: the settings by name.
        main: the cells `BUDGET/SETTING` of the main table by the method's name, fine-tuning first.
        questions: the questions by name.
    """

    title: str
    about: str
    order: int
    seeds: Whole
    steps: Whole
    batch_size: Whole
    options: list[str]
    tfidf: bool = False
    budgets: dict[str, Budget] = Field(min_length=1)
    settings: dict[str, Setting] = Field(min_length=1)
    main: dict[str, str] = Field(default_factory=dict)
    questions: dict[str, Question] = Field(default_factory=dict)

    @property
    def draws_data(self) -> bool:
        """Return whether each seed draws its own data; else TF-IDF is the same for all."""
        return _follow_seed(self.options)

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
    """A run of the study.

    Attributes:
        part: name of the part.
        budget: name of the budget.
        setting: name of the setting.
        seed: the run's seed.
        method: name of the method; `tfidf` and `setfit` are not trained by `src.run`.
        overrides: the overrides of `python -m src.run`.
        steps: number of steps of SetFit.
        batch_size: texts in a step of SetFit.
    """

    part: str
    budget: str
    setting: str
    seed: int
    method: str
    overrides: tuple[str, ...]
    steps: int = 0
    batch_size: int = 0

    @property
    def draws_data(self) -> bool:
        """Whether the data are drawn by the run's seed."""
        return _follow_seed(self.overrides)

    @property
    def key(self) -> tuple[str, str, int]:
        """The budget, setting and seed, which identify the cell in its part."""
        return self.budget, self.setting, self.seed

    @property
    def place(self) -> str:
        """Its run folder, relative to the folder of all runs."""
        return f"{self.part}/{self.budget}/{self.setting}/seed{self.seed}"


def _follow_seed(options: Iterable[str]) -> bool:
    return "task.split_seed=${seed}" in options


def all_parts(folder: Path = FOLDER) -> dict[str, Part]:
    """Return all parts by name, in their order.

    Raises:
        UserError: a part's file is malformed.
    """
    parts = {name: read_part(name, folder) for name in part_names(folder)}
    return dict(sorted(parts.items(), key=lambda entry: entry[1].order))


def part_names(folder: Path = FOLDER) -> list[str]:
    """Return the names of all parts."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def read_part(name: str, folder: Path = FOLDER) -> Part:
    """Return the part of that name.

    Raises:
        UserError: there is no such part, or its file is malformed; the message names the entry.
    """
    known = part_names(folder)
    if name not in known:
        raise UserError(f"the study has no part {name!r}, only {', '.join(known)}")
    try:
        part = Part.model_validate(_content(name, folder))
    except ValidationError as error:
        raise UserError(f"conf/study/{name}.yaml: {violation(error)}") from error
    _check_names(name, part)
    return part


def _content(name: str, folder: Path, below: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a file's entries, and those that it lacks of the part that it `extends`.

    Args:
        name: name of the part.
        folder: the folder of all parts.
        below: the parts that extend it.

    Raises:
        UserError: a file is malformed, or extends what there is not, or itself.
    """
    content = read_yaml(folder / f"{name}.yaml")
    if not isinstance(content, dict):
        raise UserError(f"conf/study/{name}.yaml holds no mapping")
    above = content.pop("extends", None)
    if above is None:
        return content
    if above == name or above not in part_names(folder):
        raise UserError(f"conf/study/{name}.yaml: extends: there is no other part {above!r}")
    if above in below:
        raise UserError(f"conf/study/{name}.yaml: extends: part {above!r} extends {name!r} itself")
    return {**_content(above, folder, (*below, name)), **content}


def cells_of(name: str, part: Part) -> Iterator[Cell]:
    """Yield all cells, in the order in which they are run.

    They come seed by seed, small budgets first: so the finished ones can be compared at any time.
    """
    for seed in range(part.seeds):
        shared = (*part.options, f"seed={seed}")
        if part.tfidf and (seed == 0 or part.draws_data):
            yield Cell(name, NO_BUDGET, TFIDF, seed, TFIDF, shared)
        for budget, spent in part.budgets.items():
            for setting, content in part.settings.items():
                if content.budgets is not None and budget not in content.budgets:
                    continue
                if any(own.seeds is not None and seed >= own.seeds for own in (spent, content)):
                    continue
                if content.method == SETFIT:
                    (steps,) = part.steps_of(content, spent).values()
                    yield Cell(name, budget, setting, seed, SETFIT, shared, steps, part.batch_size)
                else:
                    options = (*_options(part, content, spent), f"seed={seed}")
                    yield Cell(name, budget, setting, seed, content.method, options)


def _options(part: Part, setting: Setting, budget: Budget) -> Iterator[str]:
    """Yield the overrides of a cell without its seed; the setting's own come last."""
    yield from part.options
    yield f"method={setting.method}"
    for stage, steps in part.steps_of(setting, budget).items():
        chosen = stage_options(stage, steps, part.batch_size, budget.evaluations, budget.patience)
        for option, value in chosen.items():
            yield f"method.stages.{stage}.{option}={'null' if value is None else value}"
    yield from setting.options


def _check_names(name: str, part: Part) -> None:
    """Check that budgets and cells that the part refers to exist.

    Raises:
        UserError: one does not; the message names it.
    """
    cells = {f"{cell.budget}/{cell.setting}" for cell in cells_of(name, part)}
    named: list[tuple[str, Collection[str], Collection[str]]] = [
        (f"settings.{setting}.budgets", content.budgets or (), part.budgets)
        for setting, content in part.settings.items()
    ]
    named.append(("main", part.main.values(), cells))
    for key, question in part.questions.items():
        contrasts = question.contrasts.values()
        named += [(f"questions.{key}", (*one.plus, *one.minus), cells) for one in contrasts]
    for where, names, known in named:
        for one in names:
            if one not in known:
                raise UserError(f"conf/study/{name}.yaml: {where}: there is no {one}")
