"""Runs tasks with datatrove's executors: on this machine, on a Ray cluster, or with SLURM.

A task is a source file, or a step of its own. datatrove marks the tasks that are finished, so that
the same command continues. What a task writes depends on its rank alone. Errors reach the terminal
as one line.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from shlex import quote
from typing import Any

from datatrove.executor import LocalPipelineExecutor, RayPipelineExecutor, SlurmPipelineExecutor
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from loguru import logger

from tartan.errors import UserError
from tartan.methods.launch import end_with
from tartan.settings import Count, check

_ROOT = Path(__file__).parents[2]
_ERRORS = "errors"
"""Folder for a file with the message of each task's error, beside datatrove's marks."""
_ERROR = _ERRORS + "/{:05d}"


class LocalTasks(LocalPipelineExecutor):
    """Runs tasks in processes of this machine; with one worker, in this process.

    datatrove's own pool of processes would wait for ever for a process that was killed.
    """

    def run(self) -> None:
        """Run the tasks that are not finished.

        Raises:
            UserError: a process was killed.
        """
        check(self.workers, Count, "executor.workers")
        ranks = self.get_incomplete_ranks()
        try:
            tasks = (delayed(_run)(self, rank, os.getpid()) for rank in ranks)
            Parallel(min(self.workers, len(ranks)) or 1, batch_size=1)(tasks)
        except TerminatedWorkerError as error:
            raise UserError(
                "a process was killed, perhaps because memory ran out; run the same command to "
                "continue, with a lower executor.workers to need less"
            ) from error


def _run(executor: LocalTasks, rank: int, parent: int) -> None:
    logger.disable("datatrove")
    if os.getpid() != parent:  # joblib can be told to start none
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
        end_with(parent)  # so that two never write the same file
    deepcopy(executor)._run_for_rank(rank)  # a block may keep state, which is of one file


class RayTasks(RayPipelineExecutor):
    """Runs tasks on a Ray cluster: that of `RAY_ADDRESS`, or one started on this machine."""

    def run(self) -> None:
        """Run the tasks that are not finished.

        Raises:
            UserError: Ray is not installed, or a task failed.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or it tells its makers
        try:
            import ray
        except ImportError as error:
            raise UserError(
                "executor=ray: Ray is not installed; pip install -e '.[ray]'"
            ) from error
        if not ray.is_initialized():
            local = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": self.workers}
            paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            environment = {"env_vars": {"PYTHONPATH": paths}}
            ray.init(
                log_to_driver=False, logging_level="ERROR", include_dashboard=False,
                runtime_env=environment, **local,
            )  # fmt: skip
        if self.logging_dir.isdir(_ERRORS):  # of an earlier command: this one may fail otherwise
            self.logging_dir.rm(_ERRORS, recursive=True)
        super().run()
        if ranks := self.get_incomplete_ranks():
            for told in filter(self.logging_dir.isfile, map(_ERROR.format, ranks)):
                raise UserError(self.logging_dir.read_text(told))
            logs = self.logging_dir.resolve_paths("logs")
            raise UserError(
                f"{len(ranks)} tasks failed; {logs} says why; the same command continues"
            )

    def _run_for_rank(self, rank: int, local_rank: int = 0, node_rank: int = -1) -> Any:
        try:
            return super()._run_for_rank(rank, local_rank, node_rank)
        except UserError as error:  # Ray tells the first process nothing of it
            with self.logging_dir.open(_ERROR.format(rank), "w") as file:
                file.write(str(error))
            raise


class SlurmTasks(SlurmPipelineExecutor):
    """Runs tasks as arrays of SLURM jobs, step by step, with this environment and checkout.

    Raises:
        UserError: no partition is named.
    """

    def __init__(
        self, *, partition: str | None = None, env_command: str | None = None, **options: Any
    ) -> None:
        if not partition:
            raise UserError("name the partition of the cluster: executor.partition=NAME")
        programs, code = quote(str(Path(sys.executable).parent)), quote(str(_ROOT))
        here = f'export PATH={programs}:"$PATH" PYTHONPATH={code}:"$PYTHONPATH"'
        super().__init__(partition=partition, env_command=env_command or here, **options)

    def launch_job(self) -> None:
        """Submit the tasks that are not finished.

        Raises:
            UserError: there is no SLURM, or it takes no job.
        """
        try:
            super().launch_job()
        except FileNotFoundError as error:
            raise UserError(
                f"executor=slurm: {error.filename} is not installed here; run the command where "
                "jobs can be submitted"
            ) from error
        except subprocess.CalledProcessError as error:
            raise UserError(
                f"sbatch takes no job (it ended with {error.returncode} and says why above); the "
                "same command continues, once jobs submitted before have finished"
            ) from error

    def launch_merge_stats(self) -> None:
        """Do nothing: the manifest holds the counts that these statistics would."""


def check_not_queued(jobs: Sequence[str]) -> None:
    """Check that no job of an earlier command is left, so that two never write the same file.

    Raises:
        UserError: SLURM still has such a job.
    """
    if jobs and shutil.which("squeue"):
        command = ["squeue", "--noheader", "--format=%A", f"--jobs={','.join(jobs)}"]
        left = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        if left:  # none where SLURM has forgotten the jobs, which it calls an error
            raise UserError(
                f"jobs {', '.join(sorted(set(left)))} are still in SLURM's queue; run the same "
                "command when they have finished, or end them with scancel first"
            )
