"""The options of `conf/build_corpus.yaml`, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from omegaconf import DictConfig

from tartan.errors import UserError
from tartan.settings import Checked, Count, Text, typed

Listed: TypeAlias = Text | Sequence[Text] | None
Node = Mapping[str, Any]


@dataclass(frozen=True)
class ExampleOptions(Checked):
    """How articles become examples."""

    by: Literal["paragraph", "words", "line", "document"]
    words: Count
    min_words: Count


@dataclass(frozen=True)
class Options(Checked):
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
    bad_records: Literal["refuse", "skip"]
    workers: Count
    data_dir: str | None
    cache_dir: Text
    quality: Node
    language: Node
    task: Node | None = None

    @property
    def filters(self) -> dict[str, Any]:
        """Config of each filter of articles, by name."""
        return {**self.quality, **self.language}

    @property
    def end_tasks(self) -> dict[str, Node]:
        """Config of each end task whose dev and test texts stay out of the corpus, by name."""
        return {**self.tasks, **({"task": self.task} if self.task else {})}

    def deciding(self) -> dict[str, Any]:
        """Return the options that decide a corpus, besides its sources, for its manifest."""
        examples = asdict(self.examples)
        if self.examples.by != "words":
            del examples["words"]
        names = ("deduplicate", "near_duplicates", "decontaminate", "filters")
        fields = {"field_of_study": sorted(listed(self.field_of_study))}
        return examples | fields | {name: getattr(self, name) for name in names}


def listed(value: Listed) -> list[str]:
    """Return the entries of an option that takes one or several."""
    return [value] if isinstance(value, str) else list(value or ())


def options_of(config: DictConfig) -> Options:
    """Return the options of a command line."""
    options = typed(config, Options)
    if not options.sources or options.output is None:
        raise UserError("name the articles and the corpus' folder: sources=FILE output=FOLDER")
    if options.metadata and not options.field_of_study:
        raise UserError("metadata is read for the field of study only: give field_of_study as well")
    if options.decontaminate is not None and not options.end_tasks:
        raise UserError(
            "name the end task whose dev and test texts have to stay out of the corpus (task=NAME, "
            "task=files task.train=FILE ...), or decontaminate=null"
        )
    return options
