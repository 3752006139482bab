"""Checks a config's files before its first run, where each job of a sweep would find the fault."""

from __future__ import annotations

from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from tartan.command_line.package_header import HEADER, misplaced_group
from tartan.run_folder.stop import stop


class CheckHeaders(Callback):
    """Ends the command where a file's options are not in their place, as it lacks its first line.

    It is a Hydra callback.
    """

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the files of a run.

        Raises:
            SystemExit: one lacks the line; the exit code is 1.
        """
        _check(config)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the files that all jobs of a sweep share.

        Raises:
            SystemExit: one lacks the line; the exit code is 1.
        """
        _check(config)


def _check(config: DictConfig) -> None:
    group = misplaced_group(config)
    if group is not None:
        stop(f"{group}/{config.hydra.runtime.choices.get(group)}.yaml lacks {HEADER}")
