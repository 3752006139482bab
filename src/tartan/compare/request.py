"""Reads the options of a comparison: its own, and those of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from pydantic import ValidationError

from tartan.compare.plan import METHODS
from tartan.errors import UserError
from tartan.files import Plain, sha256_of
from tartan.settings import Count

DECIDED = {
    "seed", "method", "experiment", "max_steps", "evaluate_test", "hydra.sweep.dir",
    "hydra.searchpath",
}  # fmt: skip
"""Options of a run that the comparison sets itself."""
_TABLES = ("task.train", "task.dev", "task.test")
"""Options that name a file of labelled examples."""


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
    seeds: Count = 3
    steps: Count = 200
    batch_size: Count = 32
    evaluations: Count = 10
    pilot_steps: Count = 4
    folder: Path = Path("runs/compare")
    overrides: tuple[str, ...] = ()
    own_options: tuple[tuple[str, str, str], ...] = ()

    @property
    def reads_text(self) -> bool:
        """Whether the auxiliary tasks are of text, not of other classes' images."""
        return auxiliary_of(self.overrides) != "other_classes"

    def identity(self) -> dict[str, Any]:
        """Return what may not change in a folder: all options but `seeds`, and the tables."""
        options = self.model_dump(mode="json", exclude={"folder", "seeds"})
        pairs = (override.lstrip("+").partition("=") for override in self.overrides)
        paths = [Path(value.strip("'\"")) for name, _, value in pairs if name in _TABLES]
        return options | {str(path): sha256_of(path) for path in paths if path.is_file()}


_NUMBERS = [name for name, field in Request.model_fields.items() if isinstance(field.default, int)]


def request_of(arguments: Sequence[str]) -> Request:
    """Read a command line of `NAME=VALUE` arguments.

    Raises:
        UserError: an argument is not of that form, has an invalid value, or sets what the
            comparison decides.
    """
    own: dict[str, Any] = {}
    overrides: list[str] = []
    of_methods: list[tuple[str, str, str]] = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        name = key.lstrip("+~").partition("@")[0]
        method, colon, option = key.partition(":")
        if not equals and not argument.startswith("~"):
            raise UserError(f"cannot read {argument!r}; options are given as NAME=VALUE")
        if colon and method in METHODS:
            of_methods.append((method, option, value))
        elif key in _NUMBERS:
            own[key] = int(value) if value.isdecimal() else value
        elif key in ("methods", "folder") and value:
            own[key] = value
        elif name in DECIDED or (name == "task.test_share" and not value.strip("0.")):
            raise UserError(f"{argument}: the comparison decides that (see --help)")
        elif _is_swept(argument):
            raise UserError(f"{argument}: a comparison has one value of each option")
        else:
            overrides.append(argument)
    if not any(o.startswith("auxiliary=") for o in overrides):
        overrides.append("auxiliary=dapt_tapt")
    own["methods"] = _methods(own.get("methods"), auxiliary_of(overrides))
    strangers = [method for method, _, _ in of_methods if method not in own["methods"]]
    if strangers:
        raise UserError(f"{strangers[0]} has options but is not compared (methods=)")
    own["folder"] = Path(own.get("folder", "runs/compare"))
    try:
        return Request(**own, overrides=tuple(overrides), own_options=tuple(of_methods))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{first['loc'][0]}: {first['msg']}, got {first['input']!r}") from error


def _is_swept(argument: str) -> bool:
    """Return whether Hydra takes an override as several values, for a run each."""
    try:
        return bool(OverridesParser.create().parse_override(argument).is_sweep_override())
    except HydraException:
        return False  # the runs say what is wrong with it


def auxiliary_of(overrides: Sequence[str]) -> str:
    """Return the chosen `auxiliary`, of which the last counts; a request always has one."""
    return [o.partition("=")[2] for o in overrides if o.startswith("auxiliary=")][-1]


def _methods(named: str | None, auxiliary: str) -> tuple[str, ...]:
    """Return the methods that were named, or all for which there is an auxiliary task."""
    if named is not None:
        methods = tuple(dict.fromkeys(part.strip() for part in named.split(",")))
        for method in methods:
            if method not in METHODS:
                raise UserError(f"methods: there is no {method}; there are {', '.join(METHODS)}")
        return methods
    if auxiliary == "other_classes":
        return ("finetune", "pretrain", "mt_tartan", "meta_tartan")
    without = {"tapt": "dapt", "dapt": "tapt"}.get(auxiliary)
    usual = ("finetune", "tapt", "dapt", "mt_tartan", "meta_tartan")
    return tuple(method for method in usual if method != without)
