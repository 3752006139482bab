"""What a corpus is built from and how: the options of `conf/build_corpus.yaml`, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from src.configuration.checks import check_whole
from src.configuration.words import shown
from src.errors import UserError

BY = ("paragraph", "words", "line", "document")
BAD_RECORDS = ("refuse", "skip")


@dataclass(frozen=True)
class Settings:
    """What decides a corpus, besides its sources; see `conf/build_corpus.yaml`.

    Attributes:
        filters: the config of every filter of articles, by its name.
        decontaminate: words of an n-gram; None leaves evaluation texts where they are.
    """

    field_of_study: tuple[str, ...]
    by: str
    words: int
    min_words: int
    deduplicate: bool
    near_duplicates: bool
    decontaminate: int | None
    bad_records: str
    filters: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A command: what to build, from what, and where.

    Attributes:
        sources: files, folders or patterns, or `PROTOCOL://` addresses of such, with the articles.
        metadata: the same for records that only say of which field an article is; may be empty.
        output: the corpus' folder.
        tasks: configs of the end tasks whose dev and test texts have to stay out of the corpus.
        executor: config of what runs the tasks; does not change the corpus.
    """

    settings: Settings
    sources: tuple[str, ...]
    metadata: tuple[str, ...]
    output: Path
    tasks: dict[str, Any]
    executor: Any


def request_of(config: DictConfig) -> Request:
    """The options of a command line, checked.

    Raises:
        UserError: one is missing or cannot be; names it.
    """
    values: Any = OmegaConf.to_container(config, resolve=True)
    examples, ngram, named = values["examples"], values["decontaminate"], {}
    for option in ("field_of_study", "sources", "metadata"):
        value = values[option]
        listed = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(
            isinstance(v, str) and v.strip() for v in listed
        ):
            raise UserError(f"{option} must be a text or a list of texts, got {shown(value)}")
        named[option] = tuple(text.strip() for text in listed)
    for option, value, choices in (
        ("examples.by", examples["by"], BY),
        ("bad_records", values["bad_records"], BAD_RECORDS),
    ):
        if value not in choices:
            raise UserError(f"{option} must be one of {', '.join(choices)}, got {shown(value)}")
    for option in ("deduplicate", "near_duplicates"):
        if not isinstance(values[option], bool):
            raise UserError(f"{option} must be true or false, got {shown(values[option])}")
    settings = Settings(
        field_of_study=tuple(sorted(named["field_of_study"])),
        by=examples["by"],
        words=check_whole(examples["words"], "examples.words", least=1),
        min_words=check_whole(examples["min_words"], "examples.min_words", least=1),
        deduplicate=values["deduplicate"],
        near_duplicates=values["near_duplicates"],
        decontaminate=None if ngram is None else check_whole(ngram, "decontaminate", least=1),
        bad_records=values["bad_records"],
        filters={**values["quality"], **values["language"]},
    )
    sources, metadata, output = named["sources"], named["metadata"], values["output"]
    if not sources:
        raise UserError("name the articles: sources=FILE, a folder, a pattern or hf://datasets/...")
    if metadata and not settings.field_of_study:
        raise UserError("metadata is read for the field of study only: give field_of_study as well")
    if not isinstance(output, str) or not output:
        raise UserError(f"name the corpus' folder: output=FOLDER, got {shown(output)}")
    tasks = values["tasks"] | ({"task": values["task"]} if values.get("task") else {})
    if ngram is not None and not tasks:
        raise UserError(
            "name the end task whose dev and test texts have to stay out of the corpus: "
            "task=acl_arc, task=files task.train=FILE ..., or none of them: decontaminate=null"
        )
    folder = Path(output).expanduser()
    return Request(settings, sources, metadata, folder, tasks, values["executor"])
