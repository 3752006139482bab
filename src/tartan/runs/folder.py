"""A run's folder: one process in it, and what has to be equal for a run to go on there.

What an earlier run left is read as plain data: no class that a stored config names is built, and no
reference in it is resolved, so that a folder from a stranger cannot run code.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError
from tartan.files import check_written_folder, process_lock, read_yaml
from tartan.methods.launch import is_main_process
from tartan.runs.name import RESULT, changes_no_training
from tartan.settings import differing

INPUTS = "inputs.json"
"""File with fingerprints of the data that a run was started with."""
CONFIG = "config.yaml"
LOCK = "run.lock"
"""Lock file in a run folder."""
_OF_HYDRA = {".hydra", "run.log", LOCK}
"""What Hydra and the lock have put into a folder before a run reads its data."""


def in_sweep() -> bool:
    """Return whether this process runs a job of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def folder_option() -> str:
    """Return the option that names the folder of the run, or of the whole sweep it belongs to."""
    # a sweep refuses hydra.run.dir
    return "hydra.sweep.dir=FOLDER" if in_sweep() else "hydra.run.dir=FOLDER"


def is_running(folder: Path) -> bool:
    """Return whether a process is running in the folder, as far as its lock tells."""
    if not (folder / LOCK).is_file() or (folder / LOCK).is_symlink():
        return False
    try:
        with FileLock(folder / LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True


@contextmanager
def exclusive_run(folder: Path) -> Iterator[None]:
    """Lock the run folder until the process ends, even if it is killed.

    Other processes of the same distributed run take no lock; the main process holds it for them.

    Raises:
        BusyError: another process is running there.
        UserError: a link in the folder leads elsewhere.
    """
    if not is_main_process():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    check_written_folder(folder)
    busy = (
        f"another process is running in {folder}; wait for it, or name another folder: "
        f"{folder_option()}"
    )
    with process_lock(folder / LOCK, busy, patience=1):  # longer than `is_running` holds it
        yield


def check_same_config(config: DictConfig, folder: Path) -> None:
    """Check that `folder` is empty or holds a run of the same config, finished or not.

    Raises:
        UserError: it holds another run; the message names the options that differ.
    """
    if not (folder / CONFIG).is_file():
        return
    stored, new = stored_options(folder), options_of(config)
    changed = differing(stored, new)
    if changed:
        name = changed[0]
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UserError(
            f"{folder} holds another run: {name} is {stored.get(name)!r} there, "
            f"{new.get(name)!r} here{more}; name another folder: {folder_option()}, or start over "
            "beside it with resume=false"
        )


def check_same_inputs(inputs: Mapping[str, str], folder: Path) -> None:
    """Check that the run in `folder` was started with the same data; a new run passes.

    Raises:
        UserError: some data have changed since; the message names them.
    """
    path = folder / INPUTS
    changed = differing(_read(path), inputs) if path.is_file() else []
    if changed:
        raise UserError(
            f"{folder} was started with other data ({', '.join(changed)} changed); put them back, "
            "or start over with resume=false"
        )


def options_of(config: DictConfig) -> dict[str, Any]:
    """Return the options that change the training, by dotted name."""
    return dict(_leaves(OmegaConf.to_container(config, resolve=True)))


def stored_options(folder: Path) -> dict[str, Any]:
    """Return the options of the run in `folder` as `options_of` does.

    Raises:
        UserError: there is no config, or it is damaged.
    """
    return dict(_leaves(_read(folder / CONFIG)))


def newer_data(config: DictConfig, folder: Path) -> list[Path]:
    """Return the files of examples and of text that were written after the run's result."""
    names = ("train", "dev", "test", "domain", "path")
    options = options_of(config).items()
    texts = [v for key, v in options if key.rpartition(".")[2] in names and isinstance(v, str)]
    files = [path for path in (Path(text).expanduser() for text in texts) if path.is_file()]
    written = (folder / RESULT).stat().st_mtime_ns
    return [path for path in files if path.stat().st_mtime_ns > written]


def fresh_folder(folder: Path) -> Path:
    """Return `folder` if no run was begun there, else the first unused of `folder-2`, ..."""
    beside = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    # a run writes its inputs first: one that was killed then has no config yet
    return next(
        path
        for path in chain([folder], beside)
        if not any((path / name).exists() for name in (INPUTS, CONFIG))
    )


def remove_unbegun(folder: Path) -> None:
    """Remove a run's folder if only Hydra has written there: a report would wait for its run."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    here = folder.is_symlink() or folder.resolve() == Path.cwd()
    if ".hydra" in names and names <= _OF_HYDRA and not here:
        shutil.rmtree(folder)


def _read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file; `UserError` where it is damaged."""
    try:
        content = read_yaml(path)
        if not isinstance(content, dict):
            raise UserError("no mapping")
    except UserError as error:
        raise UserError(
            f"{path} is damaged ({error}); start over with resume=false, or remove the folder"
        ) from error
    return content


def _leaves(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield options by dotted name, without those that do not change the training."""
    if not isinstance(node, dict):
        yield key, node
        return
    for name, value in node.items():
        option = f"{key}.{name}" if key else str(name)
        # what a task refers to lies elsewhere too; the data themselves are recognised
        if not changes_no_training(option) and name not in ("cache_dir", "data_dir"):
            yield from _leaves(value, option)
