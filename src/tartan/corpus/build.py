"""Builds a corpus folder from files of articles, in resumable steps of datatrove blocks.

Each source file becomes a part: its examples and their digests. The digests of all parts tell which
examples repeat an earlier one; each part is then written again without these, as a shard. datatrove
marks the tasks that are finished, so that the same command continues after an interruption. No step
depends on the number of processes, or on what was interrupted.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline import dedup
from datatrove.utils.hashing import HashConfig
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from loguru import logger

from tartan.corpus.blocks import Blocks, SpaceTokenizer, read_json, write_json
from tartan.corpus.settings import Options, listed
from tartan.corpus.sources import find_sources
from tartan.data.corpus import BEGUN, LAYOUT, MANIFEST, Manifest, check_shards, read_manifest
from tartan.errors import UserError, first_line
from tartan.files import disk_advice, process_lock
from tartan.methods.launch import end_with
from tartan.settings import build

Step: TypeAlias = tuple[str, int, list[Callable[..., Any]]]
"""A step's name, its number of tasks, and the blocks that each task runs: datatrove's, or functions
of the documents that the block before it gives, the task's rank and the number of tasks."""


def build_corpus(options: Options, say: Callable[[str], object]) -> Manifest | None:
    """Build a corpus, continue building it, or find that it is finished.

    Args:
        options: what to build.
        say: takes a line about the progress.

    Returns:
        The finished corpus' manifest; None where jobs were submitted that will build it.
    """
    logger.disable("datatrove")  # its log would bury the one line of an error
    output = Path(str(options.output)).expanduser()
    blocks = Blocks(
        output.resolve() / "building",
        options,
        find_sources(listed(options.sources), "sources"),
        find_sources(listed(options.metadata), "metadata"),
    )
    if any(Path(source.name).parent == output.resolve() for source in blocks.sources):
        raise UserError(f"output={output} is the folder of the articles")
    evaluated = _evaluated_texts(options)
    busy = f"another process is building {output}"
    with process_lock(output / "build.lock", busy), disk_advice(output):
        wanted = _described(blocks, evaluated)
        if (output / MANIFEST).is_file():
            manifest = read_manifest(output)
            _check_same(wanted, manifest.model_dump(), output)
            say(f"{output} holds this corpus, finished; comparing checksums")
            check_shards(output, manifest)
        else:
            _begin(output, wanted, evaluated, say)
            if not _run(blocks.building, _steps(blocks), options.executor, say):
                return None
        (output / BEGUN).unlink(missing_ok=True)  # what an interruption leaves does not count
        shutil.rmtree(blocks.building, ignore_errors=True)
        return read_manifest(output)


class LocalTasks(LocalPipelineExecutor):
    """Runs tasks in processes of this machine; with one worker, in this process.

    datatrove's own pool of processes would wait for ever for a process that was killed.
    """

    def run(self) -> None:
        """Run the tasks that are not finished."""
        ranks = self.get_incomplete_ranks()
        try:
            tasks = (delayed(_run_task)(self, rank, os.getpid()) for rank in ranks)
            Parallel(min(self.workers, len(ranks)) or 1, batch_size=1)(tasks)
        except TerminatedWorkerError as error:
            raise UserError(
                "a process was killed, perhaps because memory ran out; the same command continues, "
                "with a lower executor.workers it needs less"
            ) from error


def _run_task(executor: LocalTasks, rank: int, parent: int) -> None:
    logger.disable("datatrove")
    if os.getpid() != parent:  # joblib can be told to start none
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
        end_with(parent)  # so that two never write the same file
    deepcopy(executor)._run_for_rank(rank)  # a block may keep state, which is of one file


def _steps(blocks: Blocks) -> Iterator[Step]:
    """Yield the steps in order: what becomes of articles, from their files to the manifest."""
    count = len(blocks.sources)
    if blocks.metadata:
        yield "metadata", len(blocks.metadata), [blocks.choose_articles]
    filters = _filters(blocks.options.filters)
    yield "sources", count, [blocks.read_articles, *filters, blocks.write_examples]
    yield "repeats", 1, [blocks.write_repeats]
    if blocks.options.near_duplicates:
        near = blocks.building / "near"
        signatures, pairs = str(near / "signatures"), str(near / "pairs")
        # not xxHash: its 4th version refuses what datatrove passes to it
        config = dedup.MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
        signed = dedup.MinhashDedupSignature(signatures, config, SpaceTokenizer())
        yield "signatures", count, [blocks.kept_examples, signed]
        paired = dedup.MinhashDedupBuckets(signatures, pairs, config=config)
        yield "buckets", config.num_buckets, [paired]
        yield "clusters", 1, [dedup.MinhashDedupCluster(pairs, str(near), config)]
    yield "shards", count, [blocks.write_shard]
    yield "manifest", 1, [blocks.write_manifest]


def _flush(data: object, rank: int, world: int) -> None:
    """Flush the disks: what a task wrote is there before datatrove marks the task as finished."""
    os.sync()


def _run(
    building: Path,
    steps: Iterator[Step],
    executor: Mapping[str, Any],
    say: Callable[[str], object],
) -> bool:
    """Run the steps, or submit them as jobs; return whether they are finished."""
    # jobs and workers find this environment and this code by the submitting shell's
    paths = {"PATH": Path(sys.executable).parent, "PYTHONPATH": Path(__file__).parents[2]}
    for name, path in paths.items():
        os.environ[name] = os.pathsep.join([str(path), *filter(None, [os.environ.get(name)])])
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or Ray tells its makers
    previous, jobs = None, []
    for name, tasks, pipeline in steps:
        make = build({**executor, "_partial_": True}, "executor")
        marks = str(building / "tasks" / name)
        step = make(pipeline=[*pipeline, _flush], tasks=tasks, logging_dir=marks)
        submits, done = hasattr(step, "job_id"), "done"
        if submits:
            step.depends = previous
        step.run()
        previous = step
        if submits and step.job_id != -1:  # else all its tasks were done before
            jobs.append(step.job_id)
            done = f"in job {step.job_id}"
            # at once: a step that cannot be submitted leaves the jobs before it
            write_json(building / "jobs.json", jobs)
        elif not submits and (left := step.get_incomplete_ranks()):
            logs = step.logging_dir.resolve_paths("logs")
            raise UserError(f"{len(left)} tasks of {name} failed; {logs} says why")
        say(f"{name}: {tasks:,} tasks {done}")
    return not jobs


def _filters(configs: Mapping[str, Any]) -> list[Any]:
    """Return the filters of articles, after trying each on a text, so that they fail early."""
    for name, config in configs.items():
        try:
            # another one: a model that it reads cannot be sent to other processes
            build(config, name).filter(Document("A text to try the filter on.", "0"))
        except (OSError, ImportError, ValueError) as error:
            raise UserError(f"{name} cannot be used: {first_line(error)}") from error
    return [build(config, name) for name, config in configs.items()]


def _evaluated_texts(options: Options) -> list[str]:
    """Return the dev and test texts that have to stay out of the corpus."""
    if not options.end_tasks or options.decontaminate is None:
        return []
    from tartan.data.text_task import TextSource  # here: it takes seconds
    from tartan.runs.command_line import quiet_libraries

    quiet_libraries()
    texts: list[str] = []
    for name, config in options.end_tasks.items():
        source = build(config, name)
        if not isinstance(source, TextSource):
            raise UserError(f"{name}: a task of images has no texts; leave it out")
        texts += source.load().evaluated_texts
    return texts


def _described(blocks: Blocks, evaluated: list[str]) -> dict[str, Any]:
    """Return all that decides a corpus, as its manifest has it."""
    digest = sha256("\n".join(evaluated).encode()).hexdigest() if evaluated else None
    return {
        "layout": LAYOUT,
        "settings": blocks.options.deciding() | {"evaluated": digest},
        "sources": [source.description() for source in blocks.sources],
        "metadata": [source.description() for source in blocks.metadata],
    }


def _begin(
    output: Path, wanted: dict[str, Any], evaluated: list[str], say: Callable[[str], object]
) -> None:
    """Record what is being built, or check that the folder was begun for the same corpus."""
    begun, jobs = output / BEGUN, output / BEGUN.parent / "jobs.json"
    if begun.is_file():
        if jobs.is_file():
            _check_not_queued(read_json(jobs))
        _check_same(wanted, read_json(begun), output)
        say(f"{output} was begun before; going on")
        return
    shutil.rmtree(begun.parent, ignore_errors=True)
    write_json(begun.parent / "evaluated.json", evaluated)
    versions = {name: version(name) for name in ("datatrove", "pyarrow", "numpy", "pandas")}
    write_json(begun, wanted | {"versions": {"python": platform.python_version(), **versions}})


def _check_not_queued(jobs: list[str]) -> None:
    """Check that no job of an earlier command is left, so that two never write the same file."""
    if jobs and shutil.which("squeue"):
        command = ["squeue", "--noheader", "--format=%A", f"--jobs={','.join(jobs)}"]
        left = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        if left:  # none where SLURM has forgotten the jobs, which it calls an error
            raise UserError(f"jobs {', '.join(sorted(set(left)))} are still in SLURM's queue")


def _check_same(wanted: dict[str, Any], there: dict[str, Any], output: Path) -> None:
    """Check that the folder's corpus is the wanted one; the error names the first difference."""
    for name in ("layout", "sources", "metadata"):
        if wanted[name] != there[name]:
            raise UserError(f"{output} holds another corpus: {name} differ; name another output")
    for option, value in wanted["settings"].items():
        if value != (before := there["settings"].get(option)):
            raise UserError(
                f"{output} holds another corpus: {option} is {before!r} there, {value!r} here; "
                "name another output"
            )
