"""Small shards of articles, and corpora built of them in the test's own process."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import datasets

from tartan.corpus.build import build_corpus
from tartan.corpus.steps import ExampleOptions, Options

FIELDS = (["Computer Science"], ["Biology", "Medicine"], None, ["Computer Science", "Physics"])


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def article(number: int, paragraphs: Iterable[str], **more: Any) -> dict[str, Any]:
    return {
        "paper_id": str(number),
        "mag_field_of_study": FIELDS[number % len(FIELDS)],
        "abstract": [],
        "body_text": [{"section": "", "text": text} for text in paragraphs],
        **more,
    }


def write_shard(path: Path, records: Iterable[Any]) -> Path:
    """Records as JSON Lines; bytes are lines as they are."""
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    content = b"".join(line + b"\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_articles(folder: Path, shards: int = 3, articles: int = 40) -> Path:
    """Shards whose paragraphs repeat each other, within an article, a shard and over shards."""
    for shard in range(shards):
        first = shard * articles
        write_shard(
            folder / f"articles_{shard}.jsonl.gz",
            [
                article(n, [f"about {(n * k) % 50} and  {k % 4}\nso" for k in range(n % 7)])
                for n in range(first, first + articles)
            ],
        )
    return folder


def options(sources: Path, output: Path, workers: int = 1, metadata=(), tasks=None, **given):
    """The command's options; those of `examples` and `filters` by themselves."""
    split = {"by": "paragraph", "words": 4, "min_words": 1}
    split |= {name: given.pop(name) for name in split.keys() & given.keys()}
    defaults: dict[str, Any] = {
        "field_of_study": (),
        "deduplicate": True,
        "decontaminate": 12 if tasks else None,
        "bad_records": "refuse",
        "data_dir": None,
        "cache_dir": "cache",
        "quality": given.pop("filters", {}),
        "language": {},
        "workers": workers,
    }
    return Options(
        sources=str(sources),
        metadata=[str(path) for path in metadata],
        output=str(output),
        examples=ExampleOptions(**split),
        tasks=tasks or {},
        **defaults | given,
    )


def built(sources: Path, output: Path, say=lambda line: None, **given):
    return build_corpus(options(sources, output, **given), say)


def texts_of(output: Path) -> list[str]:
    """All examples, in order."""
    files = sorted(output.glob("shard-*.arrow"))
    return [text for file in files for text in datasets.Dataset.from_file(str(file))["text"][:]]


def contents(output: Path) -> dict[str, bytes]:
    """Every file of a corpus' folder but its lock."""
    return {
        str(path.relative_to(output)): path.read_bytes()
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.name != "build.lock"
    }
