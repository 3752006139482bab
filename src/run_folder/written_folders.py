"""Checks the folder of a run or sweep before Hydra writes its own files and log there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from src.errors import UserError
from src.files.links import check_written_folder


class CheckFolders(Callback):
    """Ends the command where a link in its folder leads elsewhere: Hydra would write through it.

    It is a Hydra callback.
    """

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the run's folder.

        Raises:
            SystemExit: a link leads elsewhere; the exit code is 1.
        """
        if config.hydra.output_subdir is None:
            return  # a command that writes nothing there, such as src.check, whose folder is any
        HydraConfig.instance().set_config(config)  # which the folder's name refers to
        _check(Path(config.hydra.run.dir))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the folder of all runs.

        Raises:
            SystemExit: a link leads elsewhere; the exit code is 1.
        """
        _check(Path(config.hydra.sweep.dir))


def _check(folder: Path) -> None:
    try:
        check_written_folder(folder)
    except UserError as error:  # of which Hydra would make a warning
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
