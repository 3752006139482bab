"""Reports Hydra's errors about a wrong command line in one line, with the nearest valid name."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tartan.command_line.closed_pipe import quiet_at_closed_pipe
from tartan.command_line.flags import debug_after_experiment, flags_first, unknown_flag
from tartan.configuration.did_you_mean import did_you_mean
from tartan.configuration.folder import CONF
from tartan.configuration.not_taken import NOT_TAKEN
from tartan.configuration.package_header import HEADER
from tartan.configuration.stage_aliases import stage_option
from tartan.configuration.template_names import TEMPLATE_NAMES
from tartan.run_folder.stop import stop

_CONF = Path(CONF)
_GROUP = re.compile(r"\w[\w/]*")
"""The form of a group's name."""
_FULL = "HYDRA_FULL_ERROR"
"""Hydra's environment variable for whole tracebacks, with which it raises instead of exiting."""
_OURS = "TARTAN_ONE_LINE_ERRORS"
"""Environment variable that says that this program set `_FULL`, for commands that it starts."""

_UNWRITABLE = (
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EROFS,
    errno.ENOSPC,
    errno.ENAMETOOLONG,
)
"""Error codes with which Hydra cannot write its files."""

_LAUNCHERS = {
    "joblib": "the other jobs were ended too; with less at once (hydra.launcher.n_jobs=1), the "
    "same command runs what is missing",
    "submitit": "jobs that were submitted go on (python -m src.report RUNS_DIR shows them); once "
    "they are through, the same command runs what is missing",
    "optuna": "the table says why",
}
"""Advice for when a launcher's process has died, by the launcher's package."""
_WITHOUT_DEFAULT = ("experiment=", "search=", "debug=")
"""Groups that Hydra wants added with `+`, because `conf/config.yaml` chooses nothing of them."""
_WITHOUT_PACKAGE = re.compile(
    r"In '((experiment|search|debug|method)/.+?)': Could not override '[^']+@\2\.(?!stages\b)"
)
"""Hydra's message of a file whose options are not those of the whole config.

In a method's file, what it names as `stages` lies below `method` in any case.
"""
_NO_TRIAL = "No trials are completed yet."
"""Message of Optuna's sweeper if every trial failed."""
_EXTRAS = {
    "hydra/launcher/joblib": "launchers",
    "hydra/launcher/submitit_local": "launchers",
    "hydra/launcher/submitit_slurm": "launchers",
    "hydra/sweeper/optuna": "search",
    "hydra/sweeper/sampler": "search",
}
"""The package extra that provides each config, by the beginning of the config's name."""

_ELSEWHERE = {
    "encoder": "; a model of the Hub, or in a folder: encoder=huggingface encoder.name={name}",
    "task.": "; a table of your own is task=files",
    "trainer.": "; another option of Lightning's Trainer has a + before it: +trainer.{name}=VALUE",
}
"""What else can be meant by the name of a choice, or by an option below the group, by the group."""

_PHRASES = {
    "requires --multirun": "; it needs -m",
    "add --multirun to your command line": " (-m, after src.run)",
    "does not support sweep type": "; interval(...) and the like need +search=NAME",
}
"""What to do about messages of Hydra's that do not say so, by a part of each."""
_NO_MAIN_CONFIG = "Cannot find primary config"
"""Beginning of Hydra's message where it finds no config to begin with."""
_NO_FOLDER = re.compile(r"provider=hydra\.searchpath.*, path=(.*) is not available\.")
"""Hydra's warning of a folder of configs that does not exist."""


def run_command_line(main: Callable[[], object]) -> None:
    """Call Hydra's `main`; an invalid command line prints one line and exits with code 1.

    `experiment=NAME` stands for `+experiment=NAME`, and flags such as `-m` may stand anywhere. The
    exit code is 141 where the reader of what it prints has gone.
    """
    for name in (*sys.argv[1:], str(Path.cwd())):
        if not _is_utf8(name):
            stop(f"{name!a} is not UTF-8; rename the file or folder")
    unknown = unknown_flag(sys.argv[1:])
    if unknown is not None:
        stop(f"there is no flag {unknown}; {_as_option(unknown)}")
    given = debug_after_experiment(flags_first(sys.argv[1:]))
    sys.argv[1:] = [f"+{a}" if a.startswith(_WITHOUT_DEFAULT) else a for a in given]
    wanted = os.environ.get(_FULL, "0") == "1" and _OURS not in os.environ
    os.environ |= {_FULL: "1"} if wanted else {_FULL: "1", _OURS: "1"}
    warnings.filterwarnings("error", message=_NO_FOLDER.pattern)
    try:
        with quiet_at_closed_pipe():
            main()
    except KeyboardInterrupt:  # while a launcher waited for its processes
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        line = None if wanted else _line_of(error)
        if line is None:
            raise
        stop(line)


def _as_option(flag: str) -> str:
    """Return how an option is written that was given as a flag."""
    name = flag.lstrip("-").replace("-", "_")
    plus = "+" if f"{name}=" in _WITHOUT_DEFAULT else ""
    return f"options are written NAME=VALUE, without dashes: {plus}{name}=VALUE"


def _line_of(error: Exception) -> str | None:
    """Return what a user can mend in one line, or None if the error is not of that kind."""
    reason = (str(error).splitlines() or [""])[0]
    if isinstance(error, HydraException | OmegaConfBaseException):
        return f"{explanation(error)}{_in_job(error)}"
    if isinstance(error, OSError):
        if error.filename is None or error.errno not in _UNWRITABLE:
            return None
        return f"cannot write {error.filename}: {error.strerror}"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: {error.problem}"
    if isinstance(error, UserWarning) and (missing := _NO_FOLDER.fullmatch(reason)):
        return f"hydra.searchpath: {missing[1]} does not exist"
    if isinstance(error, ValueError) and reason == _NO_TRIAL:
        return "optuna: no trial was finished; the table says why"
    if isinstance(error, ValueError) and reason.startswith("Only one of --run"):
        return "--cfg, --info and --help show one job; omit -m"
    if isinstance(error, ValueError | TypeError) and (unnamed := _unnamed_choice(sys.argv[1:])):
        return unnamed
    package = type(error).__module__.partition(".")[0]
    return f"{package}: {reason}; {_LAUNCHERS[package]}" if package in _LAUNCHERS else None


def _in_job(error: Exception) -> str:
    """Return the end of the message if the config of a sweep's job cannot be composed: its options.

    Hydra composes the configs of all jobs before the first job, and does not say which it was.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "load_sweep_config" and "sweep_overrides" in frame.f_locals:
            options = " ".join(frame.f_locals["sweep_overrides"])
            return f" (in the sweep's job {options})"
    return ""


def _unnamed_choice(arguments: Sequence[str]) -> str | None:
    """Return what is wrong with a choice that is no name, which Hydra takes no notice of itself."""
    for argument in arguments:
        name, equals, _ = argument.lstrip("+").partition("=")
        group = name.partition("@")[0]
        if not (equals and _GROUP.fullmatch(group)) or not (_CONF / group).is_dir():
            continue
        chosen = OverridesParser.create().parse_override(argument).value()
        several = chosen.list if isinstance(chosen, ChoiceSweep) else chosen
        for one in several if isinstance(several, list) else [several]:
            if one is None:
                has_none = (_CONF / group / "none.yaml").is_file()
                return f"{argument}: a choice of {group} is a name" + (
                    f"; for nothing: {group}=none" if has_none else ", not null"
                )
            if isinstance(one, int | float):
                return (
                    f"{argument}: a choice of {group} is a name; quote one like this: \"'{one}'\""
                )
    return None


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:  # Python keeps such bytes as lone surrogates
        return False
    return True


def explanation(error: Exception) -> str:
    """Return a line that names the invalid option or group, and the nearest valid name."""
    cause = error.__cause__
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        missing = str(error.missing_cfg_file)
        for config, extra in _EXTRAS.items():
            if missing.startswith(config):
                return f"{missing} is not installed; pip install -e '.[{extra}]'"
        group, _, name = missing.rpartition("/")
        said = str(error).strip()
        if said.startswith(_NO_MAIN_CONFIG):
            return (
                "the main config is conf/config.yaml; omit --config-name and --config-path; a "
                "folder of your own is given by --config-dir FOLDER, and its experiment/NAME.yaml "
                "by +experiment=NAME"
            )
        if not group:  # a name in the defaults of a file
            return said.splitlines()[0]
        known = error.options or []
        own = f"custom_{name}"  # of a table of one's own, before those of the paper's tasks
        meant = own if group == "experiment" and own in known else name
        near = did_you_mean(meant, known, f"{group}=")
        return f"there is no {group}={name}{near}{_elsewhere(group, name, near)}"
    if isinstance(error, OverrideParseException):
        name, equals, value = str(error.override).partition("=")
        if not equals:
            return f"cannot read {error.override!r}; options are given as NAME=VALUE"
        plain = value.replace('"', "").replace("'", "")
        return (
            f"cannot read {error.override!r}; a value with brackets, quotes or letters beyond a to "
            f"z is quoted twice: '{name}=\"{plain}\"'"
        )
    if isinstance(cause, OmegaConfBaseException) and isinstance(cause.parent_node, DictConfig):
        option = str(cause.full_key)
        parent, _, name = option.rpartition(".")
        prefix = f"{parent}." if parent else ""
        known = [str(key) for key in cause.parent_node if not str(key).startswith("_")]
        if prefix == "trainer." and name in NOT_TAKEN:
            return f"{option} is not used here; set {NOT_TAKEN[name][1]} instead"
        if option in TEMPLATE_NAMES:
            return f"there is no option {option}; {TEMPLATE_NAMES[option]} (docs/hydra.md)"
        instead = _stage_option(prefix, name, cause.parent_node)
        if instead is not None:
            return f"there is no option {option}; {instead}"
        is_of_a_run = not prefix and "method" in known
        groups = [group.rstrip("=") for group in _WITHOUT_DEFAULT] if is_of_a_run else []
        near = did_you_mean(name, [*known, *groups], prefix)
        return f"there is no option {option}{near}{_elsewhere(prefix, name, near)}"
    unset = _WITHOUT_PACKAGE.search(str(error))
    if unset is not None:
        return f"{unset[1]}.yaml lacks {HEADER}"
    said = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return said + next((advice for part, advice in _PHRASES.items() if part in said), "")


def _stage_option(prefix: str, name: str, node: DictConfig) -> str | None:
    """Return the option of a stage that is meant; None if it is none, or the command has none."""
    stages = OmegaConf.select(node._get_root(), "method.stages")
    if stages is None:
        return None
    return stage_option(prefix, name, [str(k) for k, v in stages.items() if v.get("enabled")])


def _elsewhere(group: str, name: str, near: str) -> str:
    """Return what else can be meant by a name that resembles none of its group."""
    return "" if near.startswith("; did you mean") else _ELSEWHERE.get(group, "").format(name=name)
