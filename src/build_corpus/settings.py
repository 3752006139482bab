"""What a corpus is built from and how: the options of `conf/build_corpus.yaml`, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from src.configuration import check_whole, shown
from src.errors import UserError

BY = ("paragraph", "words", "line", "document")
BAD_RECORDS = ("refuse", "skip")


@dataclass(frozen=True)
class Settings:
    """What decides a corpus, besides its sources.

    Attributes:
        field_of_study: articles of any of these are taken, case aside; empty takes all.
        by: what an example is: a `paragraph`, a window of `words`, a `line`, or a `document`.
        words: words of a window.
        min_words: examples of fewer words are left out.
        deduplicate: whether of examples with the same text only the first stays.
        bad_records: `refuse` ends at the first record that cannot be read, `skip` counts it.
    """

    field_of_study: tuple[str, ...]
    by: str
    words: int
    min_words: int
    deduplicate: bool
    bad_records: str


@dataclass(frozen=True)
class Request:
    """A command: what to build, from what, where, and with how many processes.

    Attributes:
        sources: files, folders or patterns, or `PROTOCOL://` addresses of such, with the articles.
        metadata: the same for records that only say of which field an article is; may be empty.
        output: the corpus' folder.
        num_proc: processes, each of which works on a whole shard; does not change the corpus.
    """

    settings: Settings
    sources: tuple[str, ...]
    metadata: tuple[str, ...]
    output: Path
    num_proc: int


def request_of(config: DictConfig) -> Request:
    """The options of a command line, checked.

    Raises:
        UserError: one is missing or cannot be; names it.
    """
    values: Any = OmegaConf.to_container(config, resolve=True)
    examples = values["examples"]
    settings = Settings(
        field_of_study=tuple(sorted(_texts(values, "field_of_study"))),
        by=_one_of(examples["by"], "examples.by", BY),
        words=check_whole(examples["words"], "examples.words", least=1),
        min_words=check_whole(examples["min_words"], "examples.min_words", least=1),
        deduplicate=_switch(values["deduplicate"], "deduplicate"),
        bad_records=_one_of(values["bad_records"], "bad_records", BAD_RECORDS),
    )
    sources, metadata = _texts(values, "sources"), _texts(values, "metadata")
    if not sources:
        raise UserError("name the articles: sources=FILE, a folder, a pattern or hf://datasets/...")
    if metadata and not settings.field_of_study:
        raise UserError("metadata is read for the field of study only: give field_of_study as well")
    if not isinstance(values["output"], str) or not values["output"]:
        raise UserError(f"name the corpus' folder: output=FOLDER, got {shown(values['output'])}")
    return Request(
        settings,
        sources=sources,
        metadata=metadata,
        output=Path(values["output"]).expanduser(),
        num_proc=check_whole(values["num_proc"], "num_proc", least=1),
    )


def _texts(values: dict[str, Any], option: str) -> tuple[str, ...]:
    """One text, or a list of them."""
    value = values[option]
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(v, str) and v.strip() for v in listed):
        raise UserError(f"{option} must be a text or a list of texts, got {shown(value)}")
    return tuple(text.strip() for text in listed)


def _one_of(value: object, option: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise UserError(f"{option} must be one of {', '.join(choices)}, got {shown(value)}")
    return value


def _switch(value: object, option: str) -> bool:
    if not isinstance(value, bool):
        raise UserError(f"{option} must be true or false, got {shown(value)}")
    return value
