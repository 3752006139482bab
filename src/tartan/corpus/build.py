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
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
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

from tartan.corpus import blocks
from tartan.corpus.blocks import read_json, write_json
from tartan.corpus.settings import Options, listed
from tartan.corpus.sources import Source, find_sources
from tartan.data.corpus_folder import BEGUN, LAYOUT, MANIFEST, CorpusFolder, read_corpus_folder
from tartan.errors import UserError, first_line
from tartan.files import disk_advice, process_lock
from tartan.methods.launch import end_with
from tartan.settings import build, differing

Step: TypeAlias = tuple[str, int, list[Callable[..., Any]]]
"""A step's name, its number of tasks, and the blocks that each task runs: datatrove's, or functions
of the documents that the block before it gives, the task's rank and the number of tasks."""
Files = Mapping[str, list[Source]]
"""The files of articles (`sources`) and those of their fields of study (`metadata`)."""


def build_corpus(options: Options, say: Callable[[str], object]) -> CorpusFolder | None:
    """Build a corpus, continue building it, or find that it is finished.

    Args:
        options: what to build.
        say: takes a line about the progress.

    Returns:
        The finished corpus; None where jobs were submitted that will build it.
    """
    logger.disable("datatrove")  # its log would bury the one line of an error
    entries = {"sources": options.sources, "metadata": options.metadata}
    files = {kind: find_sources(listed(named), kind) for kind, named in entries.items()}
    output, building = options.folder, options.folder.resolve() / "building"
    if any(Path(source.name).parent == output.resolve() for source in files["sources"]):
        raise UserError(f"output={output} is the folder of the articles")
    evaluated = _evaluated_texts(options)
    busy = f"another process is building {output}"
    with process_lock(output / "build.lock", busy), disk_advice(output):
        wanted = _described(options, files, evaluated)
        if (output / MANIFEST).is_file():
            corpus = read_corpus_folder(output)
            _check_same(wanted, corpus.manifest.model_dump(), output)
            say(f"{output} holds this corpus, finished; comparing checksums")
            corpus.check()
        else:
            _begin(output, wanted, evaluated, say)
            if not _run(building, _steps(building, options, files), options.executor, say):
                return None
        (output / BEGUN).unlink(missing_ok=True)  # what an interruption leaves does not count
        shutil.rmtree(building, ignore_errors=True)
        return read_corpus_folder(output)


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


def _steps(building: Path, options: Options, files: Files) -> Iterator[Step]:
    """Yield the steps in order: what becomes of articles, from their files to the manifest."""
    sources, metadata = files["sources"], files["metadata"]
    count = len(sources)
    if metadata:
        choose = partial(blocks.choose_articles, building, options, metadata)
        yield "metadata", len(metadata), [choose]
    read = partial(blocks.read_articles, building, options, sources)
    write = partial(blocks.write_examples, building, options)
    yield "sources", count, [read, *_filters(options.filters), write]
    yield "repeats", 1, [partial(blocks.write_repeats, building, options.deduplicate)]
    if options.near_duplicates:
        near = building / "near"
        signatures, pairs = str(near / "signatures"), str(near / "pairs")
        # not xxHash: its 4th version refuses what datatrove passes to it
        config = dedup.MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
        signed = dedup.MinhashDedupSignature(signatures, config, blocks.SpaceTokenizer())
        yield "signatures", count, [partial(blocks.kept_examples, building), signed]
        paired = dedup.MinhashDedupBuckets(signatures, pairs, config=config)
        yield "buckets", config.num_buckets, [paired]
        yield "clusters", 1, [dedup.MinhashDedupCluster(pairs, str(near), config)]
    yield "shards", count, [partial(blocks.write_shard, building)]
    yield "manifest", 1, [partial(blocks.write_manifest, building)]


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
        marks = str(building / "tasks" / name)
        make = build({**executor, "_partial_": True}, "executor")
        try:
            step = make(pipeline=[*pipeline, _flush], tasks=tasks, logging_dir=marks)
        except TypeError as error:
            raise UserError(f"executor: {first_line(error)}") from error
        submits = hasattr(step, "job_id")
        if submits:
            step.depends = previous
        try:
            step.run()
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            if not submits:
                raise
            raise UserError(f"executor: no job was submitted: {first_line(error)}") from error
        previous, done = step, "done"
        if submits:
            jobs += [] if step.job_id == -1 else [step.job_id]  # all its tasks were done before
            done = f"in job {step.job_id}" if step.job_id != -1 else "done before"
            # at once: a step that cannot be submitted leaves the jobs before it
            write_json(building / "jobs.json", jobs)
        elif left := step.get_incomplete_ranks():
            logs = step.logging_dir.resolve_paths("logs")
            raise UserError(f"{len(left)} tasks of {name} failed; {logs} says why")
        say(f"{name}: {tasks:,} tasks {done}")
    return not jobs


def _filters(configs: Mapping[str, Any]) -> list[Any]:
    """Return the filters of articles, after trying each on a text, so that they fail early."""
    for name, config in configs.items():
        try:
            # one of its own: a model that it reads cannot be sent to other processes
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


def _described(options: Options, files: Files, evaluated: list[str]) -> dict[str, Any]:
    """Return all that decides a corpus, as its manifest has it."""
    digest = sha256("\n".join(evaluated).encode()).hexdigest() if evaluated else None
    with ThreadPoolExecutor() as pool:
        seen = {kind: list(pool.map(Source.description, own)) for kind, own in files.items()}
    return {"layout": LAYOUT, "settings": options.deciding() | {"evaluated": digest}, **seen}


def _begin(
    output: Path, wanted: dict[str, Any], evaluated: list[str], say: Callable[[str], object]
) -> None:
    """Record what is being built, or check that the folder was begun for the same corpus."""
    path, jobs = output / BEGUN, output / BEGUN.parent / "jobs.json"
    if path.is_file():
        if jobs.is_file():
            _check_not_queued(read_json(jobs))
        begun = read_json(path)
        _check_same(wanted, begun, output)
        say(f"{output} was begun before; going on")
        versions = begun["versions"]
    else:
        shutil.rmtree(path.parent, ignore_errors=True)
        write_json(path.parent / "evaluated.json", evaluated)
        versions = {name: version(name) for name in ("datatrove", "pyarrow", "numpy", "pandas")}
        versions = {"python": platform.python_version(), **versions}
    write_json(path, wanted | {"versions": versions})


def _check_not_queued(jobs: list[str]) -> None:
    """Check that no job of an earlier command is left, so that two never write the same file."""
    if jobs and shutil.which("squeue"):
        command = ["squeue", "--noheader", "--format=%A", f"--jobs={','.join(jobs)}"]
        left = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        if left:  # none where SLURM has forgotten the jobs, which it calls an error
            raise UserError(f"jobs {', '.join(sorted(set(left)))} are still in SLURM's queue")


def _check_same(wanted: dict[str, Any], there: dict[str, Any], output: Path) -> None:
    """Check that the folder's corpus is the wanted one; the error names the first difference."""
    # of bad_records: where they were refused there was none, so that nothing differs
    ours, theirs = (own["settings"] | {"bad_records": None} for own in (wanted, there))
    changed = [
        f"{option} is {theirs.get(option)!r} there, {ours.get(option)!r} here"
        for option in differing(theirs, ours)
    ]
    for kind in ("sources", "metadata"):
        here, before = ({own["name"]: own for own in one[kind]} for one in (wanted, there))
        changed += [f"{name} of {kind} differs" for name in differing(before, here)]
        if not changed and [*here] != [*before]:
            changed.append(f"{kind} are in another order")
    if wanted["layout"] != there["layout"]:
        changed.append("it is of another version of this program")
    if changed:
        raise UserError(f"{output} holds another corpus: {changed[0]}; name another output")
