"""Checks the folder of a run or sweep before Hydra writes its own files and log there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from tartan.errors import UserError, first_line
from tartan.files import check_written_folder
from tartan.run_folder.stop import stop

_NAMING = ("seed", "task.name", "method.name", "paths.runs_dir")
"""Options whose values are part of a run's folder."""


class CheckFolders(Callback):
    """Ends the command where a link in its folder leads elsewhere: Hydra would write through it.

    It is a Hydra callback.
    """

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the run's folder.

        Raises:
            SystemExit: a link leads elsewhere, an option that names the folder has no value, or the
                run would change into its folder; the exit code is 1.
        """
        _check_chdir(config)
        if config.hydra.output_subdir is None:
            return  # a command that writes nothing there, such as src.check, whose folder is any
        HydraConfig.instance().set_config(config)  # which the folder's name refers to
        try:
            folder = Path(config.hydra.run.dir)
        except InterpolationResolutionError as error:
            stop(f"{_unresolved(config)}: {first_line(error)}")
        _check(folder)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the folder of all runs.

        Raises:
            SystemExit: a link leads elsewhere, or the jobs would change into their folders; the
                exit code is 1.
        """
        _check_chdir(config)
        _check(Path(config.hydra.sweep.dir))


def _check_chdir(config: DictConfig) -> None:
    if config.hydra.job.chdir:
        stop(
            "with hydra.job.chdir=true relative paths would be read from the run's folder; leave "
            "it out"
        )


def _unresolved(config: DictConfig) -> str:
    """Return the option for which a run's folder cannot be named."""
    for option in _NAMING:
        try:
            OmegaConf.select(config, option)
        except InterpolationResolutionError:
            return option
    return "hydra.run.dir"


def _check(folder: Path) -> None:
    try:
        check_written_folder(folder)
    except UserError as error:  # of which Hydra would make a warning
        stop(error)
