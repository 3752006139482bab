"""Reads the options of a comparison: its own, and those of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from tartan.compare.budget import METHODS
from tartan.errors import UserError
from tartan.files import Plain, sha256_of
from tartan.settings import Count, check

_DECIDED = {
    "seed": "seeds=3 runs seeds 0, 1 and 2",
    "method": "use methods=finetune,meta_tartan",
    "experiment": "give task=, auxiliary=, encoder= instead",
    "max_steps": "use steps=200",
    "evaluate_test": "a comparison ends with test",
    "hydra.sweep.dir": "use folder=FOLDER",
    "hydra.searchpath": "a comparison has its own",
}
"""Options of a run that the comparison sets itself, and what to use instead."""
_TABLES = ("task.train=", "task.dev=", "task.test=")
"""Beginnings of the overrides that name a file of labelled examples."""
_WITHOUT_DOMAIN_TEXT = ("finetune", "tapt")
"""Methods that train on labelled examples and their own text alone."""
_DOMAIN_TEXT = {"auxiliary.dapt.path", "auxiliary.dapt.hub", "task.domain"}
"""Options that name domain text."""
_WITHOUT = {"tapt": "dapt", "dapt": "tapt"}
"""The method that has no text with an auxiliary task, by the latter."""


class Request(Plain):
    """The options of a comparison.

    Attributes:
        methods: names of the methods, as in `conf/method/`.
        seeds: number of runs of each method.
        steps: number of steps of the most expensive stage.
        batch_size: examples of each task in a step.
        evaluations: number of evaluations on dev, of each stage with the end task.
        pilot_steps: number of steps of each stage in which its cost is counted.
        folder: folder of the runs.
        overrides: overrides of all runs.
        own_options: options of single methods: method, dotted option, and value as YAML.
    """

    methods: tuple[str, ...]
    seeds: int = 3
    steps: int = 200
    batch_size: int = 32
    evaluations: int = 10
    pilot_steps: int = 4
    folder: Path
    overrides: tuple[str, ...]
    own_options: tuple[tuple[str, str, str], ...] = ()

    @property
    def reads_text(self) -> bool:
        """Whether the auxiliary tasks are of text, not of other classes' images."""
        return _auxiliary_of(self.overrides) != "other_classes"

    def identity(self) -> dict[str, Any]:
        """Return the options that may not change in a folder, as plain values: all but `seeds`."""
        return self.model_dump(mode="json", exclude={"folder", "seeds"})

    def tables(self) -> dict[str, str]:
        """Return the checksum of each file of labelled examples, by its name."""
        given = (o.partition("=")[2] for o in self.overrides if o.lstrip("+").startswith(_TABLES))
        paths = (Path(value.strip("'\"")) for value in given)
        return {str(path): sha256_of(path) for path in paths if path.is_file()}


_NUMBERS = [name for name, field in Request.model_fields.items() if isinstance(field.default, int)]
"""Options that are numbers of at least 1."""


def request_of(arguments: Sequence[str]) -> Request:
    """Read a command line of `NAME=VALUE` arguments.

    Raises:
        UserError: an argument is not of that form, or has an invalid value, or is of a method that
            is not compared.
    """
    own: dict[str, str] = {}
    overrides: list[str] = []
    of_methods: list[tuple[str, str, str]] = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        name = key.lstrip("+~").partition("@")[0]
        if not equals and not argument.startswith("~"):
            raise UserError(f"cannot read {argument!r}; options are given as NAME=VALUE")
        method, colon, option = key.partition(":")
        if colon and method in METHODS:
            of_methods.append((method, option, value))
        elif key in _NUMBERS or key in ("methods", "folder"):
            own[key] = value
        elif name in _DECIDED:
            raise UserError(f"{argument}: the comparison decides that; {_DECIDED[name]}")
        elif _is_swept(argument):
            raise UserError(
                f"{argument}: a comparison has one value of each option; run one comparison for "
                "each value, or quote a value that holds commas"
            )
        elif name == "task.test_share" and value.strip("0.") == "":
            raise UserError(f"{argument} leaves no test split, on which methods are compared")
        else:
            overrides.append(argument)
    given = {name: own[name] for name in _NUMBERS if name in own}
    numbers = {n: check(int(v) if v.isdecimal() else v, Count, n) for n, v in given.items()}
    if not any(o.startswith("auxiliary=") for o in overrides):
        overrides.append("auxiliary=dapt_tapt")
    if own.get("folder") == "":
        raise UserError("folder= is empty; name a folder for the runs")
    methods = _methods(own.get("methods"), overrides)
    for method, option, value in of_methods:
        if method not in methods:
            raise UserError(
                f"{method}:{option}={value}: {method} is not compared; the methods are "
                f"{', '.join(methods)} (methods=)"
            )
    return Request(
        methods=methods,
        folder=Path(own.get("folder", "runs/compare")),
        overrides=tuple(overrides),
        own_options=tuple(of_methods),
        **numbers,
    )


def _is_swept(argument: str) -> bool:
    """Return whether Hydra takes an override as several values, for a run each."""
    try:
        return bool(OverridesParser.create().parse_override(argument).is_sweep_override())
    except HydraException:
        return False  # the runs say what is wrong with it


def check_domain_text(request: Request) -> None:
    """Check that methods which train on domain text have it, before anything is counted.

    Raises:
        UserError: the task is the user's own table, and no option names domain text.
    """
    given = [override.lstrip("+").partition("=")[0] for override in request.overrides]
    needed = _auxiliary_of(request.overrides) in ("dapt", "dapt_tapt")
    methods = [method for method in request.methods if method not in _WITHOUT_DOMAIN_TEXT]
    if "task=files" in request.overrides and needed and methods and not _DOMAIN_TEXT & {*given}:
        raise UserError(
            f"{methods[0]} needs domain text: auxiliary.dapt.path=FILE_OR_FOLDER; without any, "
            "use auxiliary=tapt"
        )


def _auxiliary_of(overrides: Sequence[str]) -> str:
    """Return the chosen `auxiliary`, of which the last counts; a request always has one."""
    return [o.partition("=")[2] for o in overrides if o.startswith("auxiliary=")][-1]


def _methods(named: str | None, overrides: Sequence[str]) -> tuple[str, ...]:
    """Return the methods that were named, or all for which there is an auxiliary task."""
    auxiliary = _auxiliary_of(overrides)
    if named is None:
        usual: tuple[str, ...] = ("finetune", "tapt", "dapt", "mt_tartan", "meta_tartan")
        if auxiliary == "other_classes":
            usual = ("finetune", "pretrain", "mt_tartan", "meta_tartan")
        return tuple(method for method in usual if method != _WITHOUT.get(auxiliary))
    methods = tuple(dict.fromkeys(part.strip() for part in named.split(",")))
    for method in methods:
        if method not in METHODS:
            raise UserError(f"methods: there is no {method}; there are {', '.join(METHODS)}")
    return methods
