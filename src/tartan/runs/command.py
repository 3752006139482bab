"""The command `tartan run +experiment=acl_arc_meta`, and Hydra's sweeps with `-m`.

Only Hydra is imported here, so that `--help` and `--cfg job` answer at once; everything heavy is
imported inside the run.
"""

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
from omegaconf import DictConfig, OmegaConf

from tartan.errors import BusyError, UserError, first_line
from tartan.methods.launch import (
    end_with,
    is_main_process,
    processes_get_arguments,
    torchrun_processes,
)
from tartan.runs.command_line import quiet_libraries, run_command_line, stop
from tartan.runs.folder import (
    CONFIG,
    folder_option,
    fresh_folder,
    in_sweep,
    newer_data,
    remove_unbegun,
)
from tartan.runs.name import arguments_of, command_of, places_of, run_name
from tartan.runs.sweep import RUNS_ELSEWHERE, report_interrupted_sweep, report_job
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
    folder = Path(HydraConfig.get().runtime.output_dir)
    if in_sweep():
        return _sweep_job(config, folder)
    if not HydraConfig.get().overrides.task and is_main_process():
        print("no options: META-TARTAN on docstrings of Python libraries", file=sys.stderr)
    try:
        folder = _run_folder(config, folder)
        _run(config, folder)
    except UserError as error:
        if not is_main_process():
            _let_main_process_end()
        elif not isinstance(error, BusyError):
            remove_unbegun(folder)
        stop(error)
    except KeyboardInterrupt:
        _say_how_to_go_on(folder)
        sys.exit(128 + signal.SIGINT)
    return None


def _sweep_job(config: DictConfig, folder: Path) -> float | None:
    """Run a job of a sweep, whose other jobs go on if this one fails."""
    hydra_config = HydraConfig.get()
    number, overrides = int(hydra_config.job.num), hydra_config.overrides.task
    places = places_of(hydra_config)
    command = command_of(overrides, places)
    try:
        folder = _run_folder(config, folder)
        report_job(number, "started", folder, command)
        with processes_get_arguments(arguments_of(overrides, places)):
            state, result = _run(config, folder)
    except BusyError as error:  # another sweep has taken this job; there are others
        print(f"job {number}: {error}", file=sys.stderr)
        report_job(number, RUNS_ELSEWHERE, folder, command, "another process runs it")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        report_job(number, "failed", folder, command, str(error))
    except Exception as error:  # whatever it is, it is this job's: reported, and in its log
        log.exception("job %s failed", number)
        cause = f"{type(error).__name__}: {first_line(error)}"
        report_job(number, "failed", folder, command, cause)
    except (SystemExit, KeyboardInterrupt):
        report_job(number, "stopped", folder, command, "stopped by a signal; it can go on")
        raise
    else:
        report_job(number, state, folder, command)
        return result.merit
    return None


def _run(config: DictConfig, folder: Path) -> tuple[str, Result]:
    """Run, or go on, or find that there is nothing to do: `finished`, `resumed` or `known`.

    Returns:
        Which of them, and the content of `result.json`.
    """
    from tartan.runs.result import stored_result

    state, result = "known", stored_result(config, folder)
    if result is not None:
        print(f"{folder} holds this run, finished: its result follows")
        newer = ", ".join(map(str, newer_data(config, folder)))
        if newer:
            print(f"{newer}: newer than this result; if it has changed, add resume=false")
    else:
        from tartan.runs.run import run_experiment

        state = "resumed" if (folder / CONFIG).exists() else "finished"
        quiet_libraries()
        try:
            result = run_experiment(config, folder)
        except SystemExit as signalled:  # ours after a checkpoint, or Lightning's own way
            _say_how_to_go_on(folder)
            raise SystemExit(exit_code(signalled)) from signalled
    if is_main_process():
        from tartan.runs.summary import print_summary

        print_summary(result, folder, verbose=bool(config.verbose))
    return state, result


def _run_folder(config: DictConfig, folder: Path) -> Path:
    """Return the run's folder: Hydra's, a fresh one beside it, or that of the main process.

    Raises:
        UserError: processes that torchrun started would each choose one.
    """
    if not config.resume and torchrun_processes() is not None:
        raise UserError(
            "with resume=false each process would choose a folder of its own; name a new one "
            f"instead: {folder_option()}"
        )
    if not is_main_process():
        logging.getLogger().setLevel(logging.ERROR)  # the main process says the same
        if FOLDER in os.environ:
            end_with(int(os.environ[STARTER]))
            return Path(os.environ[FOLDER])
    if not config.resume:
        folder = fresh_folder(folder)
    if is_main_process():
        os.environ |= {FOLDER: str(folder.absolute()), STARTER: str(os.getpid())}
    return folder


def _let_main_process_end() -> None:
    """Wait for the process that started this one: Lightning kills it as soon as this one fails."""
    parent, until = os.getppid(), time.monotonic() + _GRACE_S
    while os.getppid() == parent and time.monotonic() < until:
        time.sleep(0.1)
    if os.getppid() != parent:
        sys.exit(1)  # that one has said what is wrong


def exit_code(stop: SystemExit) -> int:
    """128 + the signal's number; Lightning itself leaves with 0 on SIGTERM and 1 on Ctrl-C.

    A process that a run started leaves with 0, or Lightning would kill the main one.
    """
    if not is_main_process():
        return 0
    if isinstance(stop.__context__, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return stop.code if isinstance(stop.code, int) and stop.code else 128 + signal.SIGTERM


def _say_how_to_go_on(folder: Path) -> None:
    if not is_main_process():
        return
    command = "the command of this job alone" if in_sweep() else "the same command"
    how = f"run {command} with hydra.run.dir={folder} and without resume=false to continue"
    if Path(HydraConfig.get().runtime.output_dir) == folder:
        how = f"run the same command to continue in {folder}"
    # where nobody reads any more, the signal has to end the other jobs of a sweep all the same
    with suppress(BrokenPipeError):
        print(f"stopped by a signal; {how}", file=sys.stderr)


def command() -> None:
    """Run the command line of this process."""
    with report_interrupted_sweep():
        run_command_line(main)


if __name__ == "__main__":
    command()
