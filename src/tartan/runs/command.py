"""The command `tartan run +experiment=acl_arc_meta`; heavy modules are imported in the run."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from tartan.errors import BusyError, UserError, first_line
from tartan.launch import end_with, is_main_process, processes_get_arguments
from tartan.runs.command_line import quiet_libraries, run_command_line, stop
from tartan.runs.folder import arguments_of, command_of, run_name
from tartan.runs.sweep import report_job
from tartan.settings import CONF

if TYPE_CHECKING:
    from tartan.runs.result import Result

OmegaConf.register_new_resolver("run_name", run_name, replace=True)
log = logging.getLogger(__name__)

FOLDER = "TARTAN_RUN_FOLDER"
"""Environment variable that tells the processes which a run starts where the run folder is."""
STARTER = "TARTAN_RUN_PROCESS"
"""Environment variable that tells them the number of the process that starts them."""
_GRACE_S = 10.0
"""Time that a started process waits for the one that started it to end with the same error [s]."""


@hydra.main(version_base="1.3", config_path=CONF, config_name="config")
def main(config: DictConfig) -> float | None:
    """Run one job of the command line.

    Returns:
        In a sweep the metric on dev, which a search maximises; None from a job that failed.

    Exit codes: 0, 1 for an error, 128 + n where signal n ended the run (143: SIGTERM, 130: Ctrl-C).
    """
    folder = _run_folder()
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        return _sweep_job(config, folder)
    try:
        _run(config, folder)
    except UserError as error:
        if not is_main_process():
            time.sleep(_GRACE_S)  # Lightning would kill the main one, which says the same
        stop(error)
    return None


def _sweep_job(config: DictConfig, folder: Path) -> float | None:
    """Run a job of a sweep, whose other jobs go on if this one fails."""
    hydra_config = HydraConfig.get()
    number, command = int(hydra_config.job.num), command_of(hydra_config)
    cause, result = "", None
    try:
        report_job(number, "started", folder, command)
        with processes_get_arguments(arguments_of(hydra_config)):
            state, result = _run(config, folder)
    except BusyError as error:  # another sweep has taken this job; there are others
        state, cause = "runs elsewhere", "another process runs it"
        print(f"job {number}: {error}", file=sys.stderr)
    except (UserError, OSError) as error:
        state, cause = "failed", str(error)
        print(f"error: {error}", file=sys.stderr)
    except Exception as error:  # whatever it is, it is this job's: reported, and in its log
        state, cause = "failed", f"{type(error).__name__}: {first_line(error)}"
        log.exception("job %s failed", number)
    dev = None if result is None else result.dev_score
    report_job(number, state, folder, command, cause, dev)
    return None if result is None else result.merit


def _run(config: DictConfig, folder: Path) -> tuple[str, Result]:
    """Run, or go on, or find that the run is finished; return which, and the result."""
    from tartan.runs.result import stored_result
    from tartan.runs.summary import print_summary

    state, result = "finished before", stored_result(config, folder)
    if result is not None:
        print(f"{folder} holds this run, finished; to train it anew, remove the folder")
    else:
        from tartan.runs.run import run_experiment

        quiet_libraries()
        try:
            state, result = "finished", run_experiment(config, folder)
        except SystemExit as signalled:  # ours after a checkpoint, or Lightning's own way
            # where nobody reads any more, the signal has to end a sweep's other jobs all the same
            with suppress(BrokenPipeError):
                if is_main_process():
                    how = f"run the same command to continue in {folder}"
                    print(f"stopped by a signal; {how}", file=sys.stderr)
            raise SystemExit(exit_code(signalled)) from signalled
    if is_main_process():
        print_summary(result, folder)
    return state, result


def _run_folder() -> Path:
    """Return the run's folder: Hydra's, or that of the process that started this one."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    if is_main_process():
        os.environ |= {FOLDER: str(folder.absolute()), STARTER: str(os.getpid())}
        return folder
    logging.getLogger().setLevel(logging.ERROR)  # the main process says the same
    if FOLDER not in os.environ:  # torchrun started all of them
        return folder
    end_with(int(os.environ[STARTER]))
    return Path(os.environ[FOLDER])


def exit_code(stop: SystemExit) -> int:
    """Return 128 + the signal's number; 0 in a started process, or Lightning kills the main."""
    if not is_main_process():
        return 0
    if isinstance(stop.__context__, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return stop.code if isinstance(stop.code, int) and stop.code else 128 + signal.SIGTERM


def command() -> None:
    """Run the command line of this process."""
    run_command_line(main)


if __name__ == "__main__":
    command()
