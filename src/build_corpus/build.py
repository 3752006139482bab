"""Builds a corpus folder from files of articles, in resumable steps of datatrove blocks.

Each source file becomes a part: its examples and their digests. The digests of all parts tell which
examples repeat an earlier one; each part is then written again without these, as a shard. The note
of a finished task is written last, so that the same command continues after an interruption. No
step depends on the number of processes, or on what was interrupted.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.dedup import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupSignature,
)
from datatrove.utils.hashing import HashConfig
from loguru import logger

from src.build_corpus.articles import Articles, ChosenArticles
from src.build_corpus.checksums import NoteChecksums, check_building
from src.build_corpus.examples import Examples
from src.build_corpus.executors import SlurmTasks, check_not_queued
from src.build_corpus.layout import BEGUN, Building, read_json, write_json
from src.build_corpus.repeats import NoExamplesError, Repeats
from src.build_corpus.settings import Request
from src.build_corpus.shards import Finish, KeptExamples, Shards, SpaceTokenizer
from src.build_corpus.sources import Source, find_sources
from src.configuration.build import build
from src.data.corpus_manifest import LAYOUT, MANIFEST, CorpusFolder, read_corpus_folder
from src.errors import UserError, first_line
from src.files.checksum import is_whole
from src.files.durable import disk_advice
from src.files.process_lock import process_lock

Say = Callable[[str], object]
"""A function that takes a line about the progress."""
Files = Mapping[str, Sequence[Source]]
"""The files of articles (`sources`) and those of their fields of study (`metadata`)."""
Step = tuple[str, int, list[PipelineStep]]
"""A step's name, its number of tasks, and the blocks that each task runs."""


def build_corpus(request: Request, say: Say) -> CorpusFolder | None:
    """Build a corpus, continue building it, or find that it is finished.

    Args:
        request: what to build.
        say: takes a line about the progress.

    Returns:
        The finished corpus; None where jobs were submitted that will build it.

    Raises:
        UserError: a source cannot be read or was changed, or the folder holds another corpus.
    """
    logger.disable("datatrove")  # its log would bury the one line of an error
    files = {kind: find_sources(getattr(request, kind), kind) for kind in ("sources", "metadata")}
    output, building = request.output, Building(request.output.resolve())
    if output.exists() and not output.is_dir():
        raise UserError(f"output={output} is a file; name a folder")
    for source in [*files["sources"], *files["metadata"]]:
        if source.is_local and Path(source.name).parent == output.resolve():
            raise UserError(f"output={output} is the folder of {source.name}; name another folder")
    evaluated = _evaluated(request)
    digest = sha256("\n".join(evaluated).encode()).hexdigest() if evaluated else None
    settings = asdict(request.settings) | {"evaluated": digest}
    settings["field_of_study"] = list(settings["field_of_study"])
    busy = f"another process is building {output}; wait for it, or name another: output=FOLDER"
    lock = process_lock(output / "build.lock", busy)
    with lock, disk_advice(output), ThreadPoolExecutor() as pool:
        seen = {kind: list(pool.map(Source.description, own)) for kind, own in files.items()}
        wanted = {"layout": LAYOUT, "settings": settings, **seen}
        if (output / MANIFEST).is_file():
            if (building.folder / BEGUN).is_file():  # of jobs, or of a late kill
                check_building(building)
                Finish(building).run()  # nobody may have looked at the manifest since
            corpus = read_corpus_folder(output)
            _check_same(wanted, corpus.manifest.model_dump(), output)
            say(f"{output} holds this corpus, finished; comparing checksums")
            corpus.check()
        else:
            _begin(building, wanted, evaluated, say)
            if not _run(building, _steps(building, request, files), request.executor, say):
                return None
            corpus = read_corpus_folder(output)
        building.remove()
        return corpus


def _steps(building: Building, request: Request, files: Files) -> Iterator[Step]:
    settings, sources, metadata = request.settings, files["sources"], files["metadata"]
    if metadata:
        chosen = ChosenArticles(building, settings, metadata, joined=False)
        yield "metadata", len(metadata), [chosen]
    articles = Articles(building, settings, sources, joined=bool(metadata))
    yield "sources", len(sources), [articles, *_filters(settings.filters), Examples(articles)]
    yield "repeats", 1, [Repeats(building, settings.deduplicate)]
    near = building.folder / "near"
    if settings.near_duplicates:
        # not xxHash: its 4th version refuses what datatrove passes to it
        config = MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
        signatures, pairs = str(near / "signatures"), str(near / "pairs")
        signature = MinhashDedupSignature(signatures, config, SpaceTokenizer())
        own = "signatures/bucket_*/{rank:05d}.minhash.sig"
        signed = _noted(building, "signatures", own, KeptExamples(building), signature)
        yield "signatures", len(sources), signed
        buckets = MinhashDedupBuckets(signatures, pairs, config=config)
        paired = _noted(building, "pairs", "pairs/{rank:05d}_*.dups", buckets)
        yield "buckets", config.num_buckets, paired
        clusters = MinhashDedupCluster(pairs, str(near), config)
        yield "clusters", 1, _noted(building, "clusters", "*.remove", clusters)
    yield "shards", len(sources), [Shards(building, near)]
    yield "manifest", 1, [Finish(building)]


def _noted(building: Building, kind: str, files: str, *blocks: PipelineStep) -> list[PipelineStep]:
    """Return the blocks of datatrove, and around them those that store their files' checksums."""
    forget = NoteChecksums(building, kind, files, forget=True)
    return [forget, *blocks, NoteChecksums(building, kind, files)]


def _run(building: Building, steps: Iterator[Step], config: Any, say: Say) -> bool:
    """Run the steps, or submit them as jobs; return whether they are finished."""
    previous, jobs, make = None, [], build(config | {"_partial_": True}, "executor")
    for name, tasks, pipeline in steps:
        logs = str(building.folder / "logs" / name)
        step = make(pipeline=pipeline, tasks=tasks, logging_dir=logs)
        if isinstance(step, SlurmTasks):
            step.depends = previous
            jobs.append(step)
        try:
            step.run()
        except NoExamplesError:
            building.remove()  # nothing to go on with
            raise
        previous = step
        say(f"{name}: {tasks:,} tasks {f'in job {step.job_id}' if jobs else 'done'}")
        if name in ("metadata", "sources") and not jobs:
            for told in chain.from_iterable(part["told"] for part in building.noted(name)):
                say(f"left out: {told}")
    if jobs:
        queued = [step.job_id for step in jobs if step.job_id != -1]  # -1: all was done before
        write_json(building.folder / "jobs.json", queued)
    return not jobs


def _filters(configs: dict[str, Any]) -> list[PipelineStep]:
    """Return the filters of articles, after trying each on a text, so that they fail early."""
    filters = []
    for name, config in configs.items():
        try:
            # one of its own: a model that it reads cannot be sent to other processes
            build(config, name).filter(Document("A text to try the filter on.", "0"))
        except (OSError, ImportError, ValueError) as error:
            raise UserError(f"{name} cannot be used: {first_line(error)}") from error
        filters.append(build(config, name))
    return filters


def _evaluated(request: Request) -> list[str]:
    """Return the dev and test texts that have to stay out of the corpus."""
    if not request.tasks or request.settings.decontaminate is None:
        return []
    from src.command_line.quiet import quiet_libraries
    from src.data.text_task import TextSource  # here: it takes seconds

    quiet_libraries()
    texts: list[str] = []
    for name, config in request.tasks.items():
        source = build(config, name)
        if not isinstance(source, TextSource):
            raise UserError(f"{name}: a task of images has no texts; leave it out")
        task = source.load()
        for split in (task.dev, task.test):
            texts += [*split.texts, *(split.pairs or ())]
    return texts


def _begin(building: Building, wanted: dict[str, Any], evaluated: Sequence[str], say: Say) -> None:
    """Record what is being built, or check that the folder was begun for the same corpus."""
    path = building.folder / BEGUN
    versions = {name: version(name) for name in ("datatrove", "pyarrow", "numpy", "pandas")}
    if path.is_file():
        if is_whole(jobs := building.folder / "jobs.json"):
            check_not_queued(read_json(jobs))
        check_building(building)
        begun = read_json(path)
        _check_same(wanted, begun, building.output)
        say(f"{building.output} was begun before; going on")
        versions = begun["versions"]
    else:
        building.remove()
    write_json(building.folder / "evaluated.json", evaluated)
    write_json(path, wanted | {"versions": {"python": platform.python_version(), **versions}})


def _check_same(wanted: dict[str, Any], there: dict[str, Any], output: Path) -> None:
    """Check that the folder's corpus is the wanted one.

    Raises:
        UserError: it is another one; the message names the difference.
    """
    if wanted["layout"] != there["layout"]:
        raise UserError(f"{output} was begun by another version of this program; remove it")
    other = "name another folder: output=FOLDER"
    ours, theirs = wanted["settings"], dict(there["settings"])
    if theirs["bad_records"] == "refuse":
        theirs["bad_records"] = ours["bad_records"]  # there was none, so that nothing differs
    for option in sorted(ours.keys() | theirs):
        if ours.get(option) != theirs.get(option):
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
