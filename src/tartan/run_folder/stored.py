"""Reads what an earlier run left in its folder: a result, or what is needed to resume it.

Everything is read as plain data: no class that a stored config names is built, and no reference in
it is resolved, so that a folder from a stranger cannot run code or read the environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError, first_line
from tartan.files import LARGEST, parse_yaml, read_bytes
from tartan.run_folder.advice import folder_option
from tartan.run_folder.class_files import files_of_class
from tartan.run_folder.name import RESULT, changes_no_training
from tartan.run_folder.result import Result, read_result
from tartan.settings import differing

INPUTS = "inputs.json"
"""File with fingerprints of the data that a run was started with."""
LARGEST_CONFIG = 1 << 20
"""Maximum size of a stored config [bytes]; a run's has about 10,000."""


def stored_result(config: DictConfig, folder: Path) -> Result | None:
    """Return the result of the run in `folder`; None if it was not finished.

    Raises:
        UserError: the folder holds a run of another config (the message names the options that
            differ), or the file is damaged.
    """
    check_same_config(config, folder)
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        return read_result(folder, bounded=False)
    except UserError as error:
        raise UserError(
            f"{path} is damaged ({error}); remove it, and the same command writes it again"
        ) from error


def newer_inputs(config: DictConfig, folder: Path) -> list[Path]:
    """Return the files that were written after the result of the finished run.

    These are its data, and the modules of the classes that its config names (`_target_`, and a
    stage's `module`).
    """
    options = options_of(config)
    classes = {v for name, v in options.items() if _last(name) in ("_target_", "module")}
    modules = dict.fromkeys(
        path for name in sorted(map(str, classes)) for path in files_of_class(name)
    )
    return _newer([*_data_files(config), *modules], folder / RESULT)


def _data_files(config: DictConfig) -> list[Path]:
    """Return the files of examples and of text that a config names."""
    named = [config.task.get(split) for split in ("train", "dev", "test", "domain")]
    auxiliary = OmegaConf.to_container(config.auxiliary, resolve=True)
    named += [v for name, v in _leaves(auxiliary) if _last(name) in ("path", "domain")]
    files = [Path(name).expanduser() for name in named if isinstance(name, str)]
    return list(dict.fromkeys(files))


def _last(option: str) -> str:
    """Return the last part of a dotted option."""
    return option.rpartition(".")[2]


def _newer(paths: list[Path], than: Path) -> list[Path]:
    """Return the files that were written after the file `than`."""
    written = than.stat().st_mtime_ns
    return [path for path in paths if path.is_file() and path.stat().st_mtime_ns > written]


def check_same_config(config: DictConfig, folder: Path) -> None:
    """Check that `folder` is empty or holds a run of the same config, finished or not.

    Raises:
        UserError: it holds another run; the message names the options that differ.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        return
    stored = stored_options(folder)
    ours = options_of(config)
    changed = differing(stored, ours)
    missing = [name for name in changed if name not in stored]
    if 4 * len(missing) > len(ours):  # more than a version's new options
        raise UserError(
            f"{path} is damaged: it lacks {len(missing)} options, such as {missing[0]}; start over "
            "with resume=false, or remove the folder"
        )
    if changed:
        first = changed[0]
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UserError(
            f"{folder} holds another run: {first} is {stored.get(first)!r} there, "
            f"{ours.get(first)!r} here{more}; name another folder: {folder_option()}, or start "
            "over beside it with resume=false"
        )


def check_same_inputs(inputs: Mapping[str, str], config: DictConfig, folder: Path) -> None:
    """Check that the run in `folder` was started with the same data; a new run passes.

    Args:
        inputs: fingerprints by name.
        config: the run's config, which names the files.
        folder: the run folder.

    Raises:
        UserError: some data have changed since; the message names them.
    """
    path = folder / INPUTS
    if not path.is_file():
        return
    stored = _read(path)
    changed = differing(stored, inputs)
    if changed:
        newer = ", ".join(map(str, _newer(_data_files(config), path)))
        written = f"; written since: {newer}" if newer else ""
        raise UserError(
            f"{folder} was started with other data ({', '.join(changed)} changed{written}); put "
            "them back, or start over with resume=false"
        )


def options_of(config: DictConfig) -> dict[str, Any]:
    """Return the options that change the training, by dotted name."""
    return dict(_leaves(OmegaConf.to_container(config, resolve=True)))


def stored_options(folder: Path) -> dict[str, Any]:
    """Return the options of the run in `folder` as `options_of` does.

    Raises:
        UserError: there is no config, or it is damaged.
    """
    return dict(_leaves(_read(folder / "config.yaml")))


def later_folder(config: DictConfig, folder: Path) -> Path | None:
    """Return the last folder beside `folder` in which `resume=false` started this run over."""
    found = None
    for candidate in _beside(folder):
        if not _is_begun(candidate):
            return found
        with suppress(UserError):  # where there is no config yet, or a damaged one
            if not differing(stored_options(candidate), options_of(config)):
                found = candidate
    return found


def fresh_folder(folder: Path) -> Path:
    """Return `folder` if no run was begun there, else the first unused of `folder-2`, ..."""
    return next(one for one in chain([folder], _beside(folder)) if not _is_begun(one))


def _beside(folder: Path) -> Iterator[Path]:
    """Yield `folder-2`, `folder-3`, ..."""
    return (folder.with_name(f"{folder.name}-{number}") for number in count(2))


def _is_begun(folder: Path) -> bool:
    # a run writes its inputs first: one that was killed then has no config yet
    return any((folder / name).exists() for name in (INPUTS, "config.yaml"))


def _read(path: Path) -> dict[str, Any]:
    """Return a file's content, which has to be a mapping.

    Raises:
        UserError: the file is damaged.
    """
    is_yaml = path.suffix == ".yaml"
    try:
        text = read_bytes(path, LARGEST_CONFIG if is_yaml else LARGEST).decode("utf-8")
        content = parse_yaml(text) if is_yaml else json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("no mapping")
    except (UserError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UserError(
            f"{path} is damaged ({first_line(error)}); start over with resume=false, or remove the "
            "folder"
        ) from error
    return content


def _leaves(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield options by dotted name, without those that do not change the training."""
    if isinstance(node, dict):
        for name, value in node.items():
            option = f"{key}.{name}" if key else str(name)
            # what a task refers to lies elsewhere too; the data themselves are recognised
            if not changes_no_training(option) and name not in ("cache_dir", "data_dir"):
                yield from _leaves(value, option)
    else:
        yield key, node
