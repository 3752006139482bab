"""Builds a corpus folder from files of articles, in resumable steps of datatrove blocks.

Each source file becomes a part: its examples and their digests. The digests of all parts tell which
examples repeat an earlier one; each part is then written again without these, as a shard. datatrove
marks the tasks that are finished, so that the same command continues after an interruption. No step
depends on the number of processes, or on what was interrupted.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from loguru import logger

from tartan.build_corpus.articles import Articles
from tartan.build_corpus.building import BEGUN, Building, Step, flush, read_json, write_json
from tartan.build_corpus.executors import SlurmTasks, check_not_queued
from tartan.build_corpus.parts import write_part
from tartan.build_corpus.repeats import write_repeats
from tartan.build_corpus.settings import Options, listed, with_effect
from tartan.build_corpus.shards import near_duplicate_steps, write_manifest, write_shard
from tartan.build_corpus.sources import Source, find_sources
from tartan.data.corpus_folder import LAYOUT, MANIFEST, CorpusFolder, read_corpus_folder
from tartan.errors import UserError, first_line
from tartan.files import disk_advice, process_lock
from tartan.settings import build, differing

Say = Callable[[str], object]
"""A function that takes a line about the progress."""
Files = Mapping[str, list[Source]]
"""The files of articles (`sources`) and those of their fields of study (`metadata`)."""
_NO_JOB = -1
"""datatrove's job number for a step of which all tasks were done before."""


def build_corpus(options: Options, say: Say) -> CorpusFolder | None:
    """Build a corpus, continue building it, or find that it is finished.

    Args:
        options: what to build.
        say: takes a line about the progress.

    Returns:
        The finished corpus; None where jobs were submitted that will build it.

    Raises:
        UserError: a source cannot be read or was changed, or the folder holds another corpus.
    """
    logger.disable("datatrove")  # its log would bury the one line of an error
    given = {"sources": options.sources, "metadata": options.metadata}
    files = {kind: find_sources(listed(named), kind) for kind, named in given.items()}
    output, building = options.folder, Building(options.folder.resolve())
    if output.exists() and not output.is_dir():
        raise UserError(f"output={output} is a file; name a folder")
    for source in chain(*files.values()):
        if source.is_local and Path(source.name).parent == output.resolve():
            raise UserError(f"output={output} is the folder of {source.name}; name another folder")
    evaluated = _evaluated(options)
    busy = f"another process is building {output}; wait for it, or name another: output=FOLDER"
    with process_lock(output / "build.lock", busy), disk_advice(output):
        wanted = _described(options, files, evaluated)
        if (output / MANIFEST).is_file():
            corpus = read_corpus_folder(output)
            _check_same(wanted, corpus.manifest.model_dump(), output)
            say(f"{output} holds this corpus, finished; comparing checksums")
            corpus.check()
        else:
            _begin(building, wanted, evaluated, say)
            if not _run(building, _steps(building, options, files), options.executor, say):
                return None
        building.remove()
        return read_corpus_folder(output)


def _steps(building: Building, options: Options, files: Files) -> Iterator[Step]:
    """Yield the steps in order: what becomes of articles, from their files to the manifest."""
    sources, metadata = files["sources"], files["metadata"]
    if metadata:
        yield "metadata", len(metadata), [Articles(building, options, metadata).choose]
    read = Articles(building, options, sources).read
    write = partial(write_part, building, options)
    yield "sources", len(sources), [read, *_filters(options.filters), write]
    yield "repeats", 1, [partial(write_repeats, building, options.deduplicate)]
    if options.near_duplicates:
        yield from near_duplicate_steps(building, len(sources))
    yield "shards", len(sources), [partial(write_shard, building)]
    yield "manifest", 1, [partial(write_manifest, building)]


def _run(building: Building, steps: Iterator[Step], executor: Any, say: Say) -> bool:
    """Run the steps, or submit them as jobs; return whether they are finished."""
    previous, submits, jobs = None, False, []
    for name, tasks, pipeline in steps:
        marks = str(building.folder / "tasks" / name)
        given = {"pipeline": [*pipeline, flush], "tasks": tasks, "logging_dir": marks}
        step = build(executor | {"_partial_": True}, "executor")(**given)
        if isinstance(step, SlurmTasks):
            step.depends, submits = previous, True
        step.run()
        previous, done = step, "done"
        if submits:
            done = "done before" if step.job_id == _NO_JOB else f"in job {step.job_id}"
            jobs += [] if step.job_id == _NO_JOB else [step.job_id]
            # at once: a step that cannot be submitted leaves the jobs before it
            write_json(building.folder / "jobs.json", jobs)
        say(f"{name}: {tasks:,} tasks {done}")
        if name in ("metadata", "sources") and not submits:
            for told in chain.from_iterable(note["told"] for note in building.noted(name)):
                say(f"left out: {told}")
    return not submits


def _filters(configs: dict[str, Any]) -> list[PipelineStep]:
    """Return the filters of articles, after trying each on a text, so that they fail early."""
    for name, config in configs.items():
        try:
            # one of its own: a model that it reads cannot be sent to other processes
            build(config, name).filter(Document("A text to try the filter on.", "0"))
        except (OSError, ImportError, ValueError) as error:
            raise UserError(f"{name} cannot be used: {first_line(error)}") from error
    return [build(config, name) for name, config in configs.items()]


def _evaluated(options: Options) -> list[str]:
    """Return the dev and test texts that have to stay out of the corpus."""
    if not options.end_tasks or options.decontaminate is None:
        return []
    from tartan.command_line.quiet import quiet_libraries
    from tartan.data.text_task import TextSource  # here: it takes seconds

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


def _begin(building: Building, wanted: dict[str, Any], evaluated: list[str], say: Say) -> None:
    """Record what is being built, or check that the folder was begun for the same corpus."""
    path = building.folder / BEGUN
    if path.is_file():
        if (jobs := building.folder / "jobs.json").is_file():
            check_not_queued(read_json(jobs))
        begun = read_json(path)
        _check_same(wanted, begun, building.output)
        say(f"{building.output} was begun before; going on")
    else:
        building.remove()
        write_json(building.folder / "evaluated.json", evaluated)
        versions = {name: version(name) for name in ("datatrove", "pyarrow", "numpy", "pandas")}
        begun = {"versions": {"python": platform.python_version(), **versions}}
    write_json(path, wanted | {"versions": begun["versions"]})


def _check_same(wanted: dict[str, Any], there: dict[str, Any], output: Path) -> None:
    """Check that the folder's corpus is the wanted one.

    Raises:
        UserError: it is another one; the message names the difference.
    """
    if wanted["layout"] != there["layout"]:
        raise UserError(f"{output} was begun by another version of this program; remove it")
    other = "name another folder: output=FOLDER"
    ours, theirs = wanted["settings"], with_effect(there["settings"])
    if theirs["bad_records"] == "refuse":
        theirs["bad_records"] = ours["bad_records"]  # there was none, so that nothing differs
    for option in differing(theirs, ours):
        if option == "evaluated":  # a checksum, which says nothing
            raise UserError(
                f"{output} holds another corpus: it leaves out the dev and test texts of other "
                f"tasks (task=, tasks=); {other}"
            )
        raise UserError(
            f"{output} holds another corpus: {option} is {theirs.get(option)!r} there, "
            f"{ours.get(option)!r} here; {other}"
        )
    for kind in ("sources", "metadata"):
        here, before = ({seen["name"]: seen for seen in own[kind]} for own in (wanted, there))
        for name in before | here:
            if here.get(name) != before.get(name):
                what = "is new" if name not in before else "has changed since it was begun"
                what = what if name in here else "is missing"
                raise UserError(
                    f"{output} was built from other {kind}: {name} {what}; put it back, or {other}"
                )
        if [*here] != [*before]:
            raise UserError(f"{output} was built from {kind} in another order; {other}")
