"""Checks the options of `conf/build_corpus.yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from omegaconf import DictConfig

from src.configuration.build import typed
from src.configuration.options import Count, Text
from src.errors import UserError

BadRecords = Literal["refuse", "skip"]
Listed: TypeAlias = Text | Sequence[Text] | None
Node = Mapping[str, Any]


@dataclass(frozen=True)
class ExampleOptions:
    """How articles become examples."""

    by: Literal["paragraph", "words", "line", "document"]
    words: Count
    min_words: Count


@dataclass
class Options:
    """The options of `conf/build_corpus.yaml`, with its groups."""

    sources: Listed
    metadata: Listed
    output: Text | None
    field_of_study: Listed
    examples: ExampleOptions
    deduplicate: bool
    near_duplicates: bool
    decontaminate: Count | None
    tasks: Mapping[str, Node]
    bad_records: BadRecords
    data_dir: str | None
    cache_dir: Text
    quality: Node
    language: Node
    executor: Node
    task: Node | None = None


@dataclass(frozen=True)
class Settings(ExampleOptions):
    """The options that decide a corpus, besides its sources; see `conf/build_corpus.yaml`.

    Attributes:
        filters: config of every filter of articles, by name.
        decontaminate: number of words in an n-gram; None keeps texts that overlap with dev and
            test.
    """

    field_of_study: tuple[str, ...]
    deduplicate: bool
    near_duplicates: bool
    decontaminate: int | None
    bad_records: BadRecords
    filters: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What to build, from what, and where.

    Attributes:
        sources: files, folders or patterns, or `PROTOCOL://` addresses of such, with the articles.
        metadata: the same for files that only give the articles' fields of study; may be empty.
        output: the corpus folder.
        tasks: configs of the end tasks whose dev and test texts are kept out of the corpus.
        executor: config of the executor that runs the tasks; it does not change the corpus.
    """

    settings: Settings
    sources: tuple[str, ...]
    metadata: tuple[str, ...]
    output: Path
    tasks: dict[str, Any]
    executor: Any


def request_of(config: DictConfig) -> Request:
    """Return the options of a command line, checked.

    Raises:
        UserError: an option is missing or invalid; the message names it.
    """
    given = typed(config, Options)
    named = {
        name: (value,) if isinstance(value, str) else tuple(value or ())
        for name in ("field_of_study", "sources", "metadata")
        for value in [getattr(given, name)]
    }
    kept = ("deduplicate", "near_duplicates", "decontaminate", "bad_records")
    settings = Settings(
        field_of_study=tuple(sorted(named["field_of_study"])),
        filters={**given.quality, **given.language},
        **asdict(given.examples),
        **{name: getattr(given, name) for name in kept},
    )
    sources, metadata = named["sources"], named["metadata"]
    if not sources:
        raise UserError("name the articles: sources=FILE, a folder, a pattern or hf://datasets/...")
    if metadata and not settings.field_of_study:
        raise UserError("metadata is read for the field of study only: give field_of_study as well")
    if given.output is None:
        raise UserError("name the corpus' folder: output=FOLDER")
    tasks = {**given.tasks, **({"task": given.task} if given.task else {})}
    if given.decontaminate is not None and not tasks:
        raise UserError(
            "name the end task whose dev and test texts have to stay out of the corpus: "
            "task=acl_arc, task=files task.train=FILE ..., or none of them: decontaminate=null"
        )
    folder = Path(given.output).expanduser()
    return Request(settings, sources, metadata, folder, tasks, given.executor)
