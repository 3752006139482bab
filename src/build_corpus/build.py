"""From shards of articles to a corpus' folder, so that any interruption costs a shard at most.

Every shard is read to a part (its examples and their digests); the digests of all parts say which
examples repeat an earlier one; every part is written again without these. What was done is known by
a file that is written after it, so that the same command goes on. No step depends on how many
processes there are, or on what was interrupted.
"""

from __future__ import annotations

import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from src.build_corpus.layout import Building, read_json, write_json
from src.build_corpus.metadata import MetadataFile, join_metadata, read_metadata
from src.build_corpus.part import PartTask, read_part
from src.build_corpus.processes import each
from src.build_corpus.repeats import mark_repeats
from src.build_corpus.settings import Request
from src.build_corpus.shard import ShardTask, write_shard
from src.build_corpus.sources import Source, find_sources
from src.data.corpus_manifest import (
    LAYOUT,
    MANIFEST,
    CorpusFolder,
    Manifest,
    Shard,
    read_corpus_folder,
)
from src.errors import UserError
from src.run_folder.durable import disk_advice

Say = Callable[[str], object]

_LOCK = "build.lock"
_GLANCE_S = 1.0


def build_corpus(request: Request, say: Say) -> CorpusFolder:
    """Build, go on building, or find that all is done.

    Args:
        say: takes a line about what has been done.

    Raises:
        UserError: a source cannot be read, has changed since, or the folder holds another corpus.
    """
    sources = find_sources(request.sources, "sources")
    metadata = find_sources(request.metadata, "metadata")
    _check_apart(request.output, [*sources, *metadata])
    with _alone_in(request.output), disk_advice(request.output):
        if (request.output / MANIFEST).is_file():
            return _known(request, sources, metadata, say)
        return _Build(request, sources, metadata, say).run()


class _Build:
    def __init__(
        self, request: Request, sources: Sequence[Source], metadata: Sequence[Source], say: Say
    ) -> None:
        self._request, self._settings, self._say = request, request.settings, say
        self._sources, self._metadata = sources, metadata
        self._building = Building(request.output)

    def run(self) -> CorpusFolder:
        begun = self._begin()
        self._read_metadata()
        parts = self._read_parts()
        repeated = self._find_repeats(parts)
        self._write_shards()
        manifest = self._manifest(begun, parts, repeated)
        write_json(self._request.output / MANIFEST, manifest.model_dump())
        shutil.rmtree(self._building.folder)
        return CorpusFolder(self._request.output, manifest)

    def _begin(self) -> dict[str, Any]:
        """Write down what is being built, or check that it is this."""
        wanted = {
            "layout": LAYOUT,
            "settings": _plain(self._settings),
            "sources": [source.name for source in self._sources],
            "metadata": [source.name for source in self._metadata],
        }
        path, output = self._building.begun, self._request.output
        if path.is_file():
            begun: dict[str, Any] = read_json(path)
            if begun["settings"]["bad_records"] == "refuse":
                # until now there was no bad record, so that skipping them changes nothing of it
                begun["settings"]["bad_records"] = self._settings.bad_records
            _check_same(wanted, begun, output)
            write_json(path, begun)
            self._say(f"{output} was begun before; going on")
            return begun
        begun = wanted | {"versions": _versions()}
        write_json(path, begun)
        return begun

    def _read_metadata(self) -> None:
        building, files = self._building, self._metadata
        todo = self._without(files, building.metadata)
        tasks = [MetadataFile(building, self._settings, i, files[i]) for i in todo]
        for task, told in each(read_metadata, tasks, self._request.num_proc):
            counted = read_json(building.metadata(task.index, ".json"))
            self._tell(told)
            self._say(
                f"metadata {task.index + 1} of {len(files)}: {counted['chosen']:,} articles of "
                f"{counted['records']['read']:,} chosen"
            )
        if files and not building.chosen.is_file():
            join_metadata(building, len(files))

    def _read_parts(self) -> list[dict[str, Any]]:
        building, sources = self._building, self._sources
        todo = self._without(sources, building.part)
        joined = bool(self._metadata)
        tasks = [PartTask(building, self._settings, i, sources[i], joined) for i in todo]
        for task, told in each(read_part, tasks, self._request.num_proc):
            counted = read_json(building.part(task.index, ".json"))
            self._tell(told)
            self._say(
                f"read {task.index + 1} of {len(sources)}: {counted['examples']['made']:,} "
                f"examples from {counted['records']['kept']:,} of {counted['records']['read']:,} "
                "records"
            )
        parts = [read_json(building.part(index, ".json")) for index in range(len(sources))]
        if not sum(map(_kept, parts)):
            shutil.rmtree(building.folder)  # nothing to go on with
            raise UserError(self._why_none(parts))
        return parts

    def _find_repeats(self, parts: Sequence[dict[str, Any]]) -> list[int]:
        building = self._building
        if not self._settings.deduplicate:
            return [0] * len(parts)
        if not building.repeats.is_file():
            mark_repeats(building, list(map(_kept, parts)), [part["runs"] for part in parts])
            self._say(f"{sum(read_json(building.repeats)):,} examples repeat an earlier one")
        repeated: list[int] = read_json(building.repeats)
        return repeated

    def _write_shards(self) -> None:
        building, count = self._building, len(self._sources)
        tasks = [
            ShardTask(building, index, count, self._settings.deduplicate)
            for index in range(count)
            if not building.finished(index).is_file()
        ]
        for task, _ in each(write_shard, tasks, self._request.num_proc):
            finished = read_json(building.finished(task.index))
            self._say(f"wrote {finished['file']}: {finished['examples']:,} examples")

    def _manifest(
        self, begun: dict[str, Any], parts: Sequence[dict[str, Any]], repeated: Sequence[int]
    ) -> Manifest:
        building = self._building
        described = [
            read_json(building.metadata(index, ".json")) for index in range(len(self._metadata))
        ]
        records, examples, fields = Counter[str](), Counter[str](), Counter[str]()
        for part in parts:
            records.update(part["records"])
            examples.update(part["examples"])
            fields.update(part["fields_of_study"])
        for counted in described:
            fields.update(counted["fields_of_study"])
        finished = [read_json(building.finished(index)) for index in range(len(parts))]
        shards = [Shard(**shard) for shard in finished]
        counts = {
            "records": dict(records),
            "examples": {
                **examples,
                "repeated": sum(repeated),
                "kept": sum(shard.examples for shard in shards),
            },
            "words": sum(shard.words for shard in shards),
        }
        if described:
            counts["metadata"] = {
                key: sum(counted["records"][key] for counted in described)
                for key in ("read", "bad")
            }
        return Manifest(
            layout=LAYOUT,
            settings=begun["settings"],
            sources=[_named(part["source"]) for part in parts],
            metadata=[_named(counted["source"]) for counted in described],
            counts=counts,
            fields_of_study=dict(sorted(fields.items())),
            shards=shards,
            versions=begun["versions"],
        )

    def _without(self, sources: Sequence[Source], file: Callable[[int, str], Path]) -> list[int]:
        """Indices of the sources that are still to be read.

        Raises:
            UserError: one that was read is another file now.
        """
        todo = []
        for index, source in enumerate(sources):
            path = file(index, ".json")
            if not path.is_file():
                todo.append(index)
            elif not source.is_still(Source(**read_json(path)["source"])):
                raise UserError(_changed(source.name, self._request.output))
        return todo

    def _why_none(self, parts: Sequence[dict[str, Any]]) -> str:
        records, fields = Counter[str](), Counter[str]()
        for part in parts:
            records.update(part["records"])
            fields.update(part["fields_of_study"])
        found = ", ".join(f"{name} ({count:,})" for name, count in fields.most_common(8))
        reason = f"; their fields of study: {found}" if found else ""
        return (
            f"no examples in {records['read']:,} records of {len(parts)} files: "
            f"{records['other_field']:,} are of other fields than field_of_study, "
            f"{records['no_text']:,} have no text, {records['bad']:,} are bad{reason}"
        )

    def _tell(self, told: Sequence[str]) -> None:
        for line in told:
            self._say(f"left out: {line}")


def _known(
    request: Request, sources: Sequence[Source], metadata: Sequence[Source], say: Say
) -> CorpusFolder:
    """The corpus that is there, if it is the one that is asked for and as it was written.

    Raises:
        UserError: it is another one, or a file has changed.
    """
    corpus = read_corpus_folder(request.output)
    manifest = corpus.manifest
    wanted = {
        "layout": LAYOUT,
        "settings": _plain(request.settings),
        "sources": [source.name for source in sources],
        "metadata": [source.name for source in metadata],
    }
    there = {
        "layout": manifest.layout,
        "settings": manifest.settings,
        "sources": [source["name"] for source in manifest.sources],
        "metadata": [source["name"] for source in manifest.metadata],
    }
    _check_same(wanted, there, request.output)
    say(f"{request.output} holds this corpus, finished; comparing checksums")
    for ours, theirs in [
        *zip(sources, manifest.sources, strict=True),
        *zip(metadata, manifest.metadata, strict=True),
    ]:
        if not ours.is_still(Source(**theirs)):
            raise UserError(_changed(ours.name, request.output))
    corpus.check()
    shutil.rmtree(Building(request.output).folder, ignore_errors=True)  # a kill at the very end
    return corpus


def _check_same(wanted: dict[str, Any], there: dict[str, Any], output: Path) -> None:
    """Raises UserError where the folder's corpus is another one; names what differs."""
    ours, theirs = wanted["settings"], there["settings"]
    for option in sorted(ours.keys() | theirs):
        if ours.get(option) != theirs.get(option):
            raise UserError(
                f"{output} holds another corpus: {option} is {theirs.get(option)!r} there, "
                f"{ours.get(option)!r} here; name another folder: output=FOLDER"
            )
    for kind in ("sources", "metadata"):
        if wanted[kind] != there[kind]:
            missing = [name for name in there[kind] if name not in set(wanted[kind])]
            added = [name for name in wanted[kind] if name not in set(there[kind])]
            what = (
                f"{missing[0]} is missing here" if missing
                else f"{added[0]} is new here" if added
                else "they are in another order here"
            )  # fmt: skip
            raise UserError(
                f"{output} was built from other {kind}: {what}; give the same, or name another "
                "folder: output=FOLDER"
            )
    if wanted["layout"] != there["layout"]:
        raise UserError(f"{output} was begun by another version of this program; remove it")


def _changed(name: str, output: Path) -> str:
    return (
        f"{name} has changed since {output} was begun; put it back, or name another folder: "
        "output=FOLDER"
    )


def _check_apart(output: Path, sources: Sequence[Source]) -> None:
    if output.exists() and not output.is_dir():
        raise UserError(f"output={output} is a file; name a folder")
    for source in sources:
        if "://" not in source.name and Path(source.name).resolve().parent == output.resolve():
            raise UserError(f"output={output} is the folder of {source.name}; name another folder")


@contextmanager
def _alone_in(output: Path) -> Iterator[None]:
    lock = FileLock(output / _LOCK)
    try:
        output.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=_GLANCE_S)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UserError(f"cannot write to output={output}: {error.strerror}") from error
    except Timeout as error:
        raise UserError(
            f"another process is building {output}; wait for it, or name another folder: "
            "output=FOLDER"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _kept(part: dict[str, Any]) -> int:
    """Examples in a part's file."""
    return int(part["examples"]["made"] - part["examples"]["too_short"])


def _plain(settings: Any) -> dict[str, Any]:
    """Settings as JSON has them."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(settings).items()}


def _named(source: dict[str, Any]) -> dict[str, Any]:
    """A source without its time, which a copy does not keep."""
    return {key: value for key, value in source.items() if key != "modified"}


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("datasets", "pyarrow", "numpy")},
    }
