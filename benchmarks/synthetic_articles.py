"""Writes synthetic articles in S2ORC's layout: random words, with varied lengths and fields.

Each shard is a function of its number, so that shards can be written one by one.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tartan.core.seeding import generator_for
from tartan.files import write_durably

FIELD = "Computer Science"
_FIELDS: tuple[list[str], ...] = (
    [FIELD],
    [FIELD, "Mathematics"],
    ["Biology", "Medicine"],
    ["Medicine"],
    [],
)
_SHARES = (0.5, 0.2, 0.12, 0.1, 0.08)
_WORDS = 25
"""Number of words of a paragraph, on average (its logarithm is normally distributed)."""
_REPEATS = 0.06
"""Share of paragraphs that repeat one of `_KNOWN` paragraphs, as licences and boilerplate do."""
_KNOWN = 5_000
_AT_ONCE = 2_000
"""Number of articles that are drawn at once."""


@dataclass(frozen=True)
class SyntheticArticles:
    """A set of articles.

    Attributes:
        words: the words of the texts, frequent ones first.
        examples: approximate number of paragraphs of `FIELD`, without repeats.
        shards: number of files.
        paragraphs: number of paragraphs of an article, on average.
    """

    words: Sequence[str]
    examples: int
    shards: int
    paragraphs: int = 15

    def write(self, folder: Path) -> int:
        """Write the shards that do not exist yet, and return their number."""
        paths = [folder / f"articles_{shard:04d}.jsonl.gz" for shard in range(self.shards)]
        missing = [shard for shard, path in enumerate(paths) if not path.is_file()]
        for shard in missing:
            write_durably(paths[shard], partial(self._write, shard))
        return len(missing)

    def _write(self, shard: int, path: Path) -> None:
        with (
            path.open("wb") as plain,
            gzip.GzipFile(fileobj=plain, mode="wb", compresslevel=1, mtime=0, filename="") as file,
        ):
            for record in self._records(shard):
                file.write(json.dumps(record).encode() + b"\n")

    def _records(self, shard: int) -> Iterator[dict[str, Any]]:
        kept = (_SHARES[0] + _SHARES[1]) * (1 - _REPEATS) * self.paragraphs
        articles = max(1, round(self.examples / kept / self.shards))
        known = self._paragraphs(
            generator_for(0, "known"), max(1, min(_KNOWN, self.examples // 100))
        )
        for start in range(0, articles, _AT_ONCE):
            rng = generator_for(0, "articles", shard, start)
            count = min(_AT_ONCE, articles - start)
            lengths = 1 + rng.poisson(self.paragraphs - 1, count)
            fields = rng.choice(len(_FIELDS), count, p=_SHARES)
            fresh = self._paragraphs(rng, int(lengths.sum()))
            for place in np.flatnonzero(rng.random(len(fresh)) < _REPEATS):
                fresh[place] = known[rng.integers(len(known))]
            left = iter(fresh)
            for number, (length, field) in enumerate(zip(lengths, fields, strict=True)):
                abstract, *body = islice(left, int(length))
                yield {
                    "paper_id": str(shard * articles + start + number),
                    "mag_field_of_study": _FIELDS[field] or None,
                    "abstract": [{"section": "Abstract", "text": abstract}],
                    "body_text": [{"section": "", "text": text} for text in body],
                }

    def _paragraphs(self, rng: np.random.Generator, count: int) -> list[str]:
        lengths = np.clip(np.exp(rng.normal(np.log(_WORDS) - 0.18, 0.6, count)), 3, 400).astype(int)
        # the cube makes the first words frequent, roughly as in natural text
        chosen = (len(self.words) * rng.random(int(lengths.sum())) ** 3).astype(np.int64)
        words = np.asarray(self.words, dtype=object)[chosen]
        return [" ".join(own) for own in np.split(words, np.cumsum(lengths)[:-1])]
