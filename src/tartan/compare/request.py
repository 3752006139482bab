"""Reads the options of a comparison: its own, and those of its runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from pydantic import ValidationError

from tartan.compare.plan import METHODS
from tartan.errors import UserError
from tartan.files import Plain, sha256_of
from tartan.settings import Count, Positive

DECIDED = {
    "seed", "method", "experiment", "max_steps", "evaluate_test", "hydra.sweep.dir",
    "hydra.run.dir", "hydra.searchpath", "task.test_share", "task.dev_share",
}  # fmt: skip
"""Options of a run that the comparison sets itself."""
_TABLES = ("task.train", "task.dev", "task.test")
"""Options that name a file of labelled examples."""
_DOMAIN = ("auxiliary.dapt.path", "auxiliary.dapt.hub", "task.domain")
"""Options that name unlabelled text of the domain."""


class Request(Plain):
    """The options of a comparison, which the command's help explains."""

    methods: tuple[str, ...]  # as in conf/method/, the simplest first
    folds: Count | None = None
    minutes: Positive | None = None
    steps: Count = 360
    batch_size: Count = 32
    pilot_steps: Count = 8
    folder: Path = Path("runs/compare")
    overrides: tuple[str, ...] = ()  # of all runs
    own_options: tuple[tuple[str, str, str], ...] = ()  # method, dotted option, value as YAML

    def identity(self) -> dict[str, Any]:
        """Return what may not change in a folder: all options, and the tables."""
        options = self.model_dump(mode="json", exclude={"folder"})
        pairs = (override.lstrip("+").partition("=") for override in self.overrides)
        paths = [Path(value.strip("'\"")) for name, _, value in pairs if name in _TABLES]
        return options | {str(path): sha256_of(path) for path in paths if path.is_file()}


_NUMBERS = ("folds", "minutes", "steps", "batch_size", "pilot_steps")


def request_of(arguments: Sequence[str]) -> Request:
    """Read a command line of `NAME=VALUE` arguments."""
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
            number = float if key == "minutes" else int
            own[key] = number(value) if value.replace(".", "", 1).isdecimal() else value
        elif key in ("methods", "folder") and value:
            own[key] = value
        elif name in DECIDED:
            raise UserError(f"{argument}: the comparison decides that (see --help)")
        elif _is_swept(argument):
            raise UserError(f"{argument}: a comparison has one value of each option")
        else:
            overrides.append(argument)
    names = {override.lstrip("+").partition("=")[0] for override in overrides}
    if "task" not in names and "task.train" in names:
        overrides.insert(0, "task=files")
    if "auxiliary" not in names:
        overrides = [*_usual_auxiliary(names), *overrides]
    own["methods"] = _methods(own.get("methods"), _auxiliary_of(overrides))
    strangers = [method for method, _, _ in of_methods if method not in own["methods"]]
    if strangers:
        raise UserError(f"{strangers[0]} has options but is not compared (methods=)")
    own["folder"] = Path(own.get("folder", "runs/compare"))
    try:
        return Request(**own, overrides=tuple(overrides), own_options=tuple(of_methods))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{first['loc'][0]}: {first['msg']}, got {first['input']!r}") from error


def _usual_auxiliary(names: Collection[str]) -> list[str]:
    """Return the auxiliary tasks of a comparison that names none, as overrides of its runs.

    They are those of `custom_dapt_tapt`. Domain text that overlaps with held-out texts is left out.
    """
    if set(_DOMAIN).isdisjoint(names):
        return ["auxiliary=tapt"]
    usual = {"auxiliary.size": "10", "auxiliary.decontaminate": "true"}
    return ["auxiliary=own", *(f"{n}={value}" for n, value in usual.items() if n not in names)]


def _is_swept(argument: str) -> bool:
    """Return whether Hydra takes an override as several values, for a run each."""
    try:
        return bool(OverridesParser.create().parse_override(argument).is_sweep_override())
    except HydraException:
        return False  # the runs say what is wrong with it


def _auxiliary_of(overrides: Sequence[str]) -> str:
    """Return the chosen `auxiliary`, of which the last counts; a request always has one."""
    return [o.partition("=")[2] for o in overrides if o.startswith("auxiliary=")][-1]


def _methods(named: str | None, auxiliary: str) -> tuple[str, ...]:
    """Return the methods that were named, or those for which there is an auxiliary task."""
    if named is None:
        usual = {"none": ("finetune",), "dapt": ("finetune", "dapt", "mt_tartan")}
        own_text = ("finetune", "tapt", "mt_tartan")
        both = ("finetune", "tapt", "dapt_tapt", "mt_tartan")
        return usual.get(auxiliary, own_text if auxiliary == "tapt" else both)
    methods = tuple(dict.fromkeys(part.strip() for part in named.split(",")))
    for method in methods:
        if method not in METHODS:
            raise UserError(f"methods: there is no {method}; there are {', '.join(METHODS)}")
    return tuple(sorted(methods, key=list(METHODS).index))
