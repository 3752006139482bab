"""The steps of a build: what each task does with its file of articles, or its part of the corpus.

Articles are datatrove documents, so that its filters can leave some out; examples are not, which
would cost several times as much. A task returns its counts, which are stored once it has finished.
What it writes, into the folder `building/`, depends on its rank alone:

- `metadata-i.ids`: of metadata file i, digests of the articles to take, uint64.
- `examples-i.arrow`, `.keys`, `.marks`: of source file i, the examples, a digest of each (uint64),
  and whether each repeats another (bool).
- `shard-i-of-n.arrow`: a shard, until the manifest is written.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from datatrove.data import Document
from datatrove.utils.word_tokenizers import WhitespaceTokenizer
from omegaconf import DictConfig

from tartan.corpus.records import (
    BREAK,
    BadRecordError,
    Record,
    fields_of,
    identity_of,
    lines_of,
    record_of,
    text_of,
)
from tartan.data.overlap import NgramIndex
from tartan.data.table import until_full
from tartan.errors import UserError
from tartan.files import sha256_of, write_durably
from tartan.settings import Checked, Count, Text, build, typed

SCHEMA = pa.schema([("text", pa.string())])
ROWS, CHARACTERS = 10_000, 1 << 24
"""Numbers of examples and of their characters at which a record batch ends."""
Counts: TypeAlias = dict[str, Any]
Task: TypeAlias = Callable[[int], Counts]
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
    """The options of `conf/build_corpus.yaml`."""

    sources: Listed
    metadata: Listed
    output: Text | None
    field_of_study: Listed
    examples: ExampleOptions
    deduplicate: bool
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
        names = ("deduplicate", "decontaminate", "filters")
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


class SpaceTokenizer(WhitespaceTokenizer):
    """Splits text at spaces; datatrove's own tokenizers need spaCy and take many times as long."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()


@dataclass(frozen=True)
class Steps:
    """The steps of one build."""

    building: Path
    options: Options
    sources: Sequence[Path]
    metadata: Sequence[Path]
    evaluated: Sequence[str]

    def in_order(self) -> Iterator[tuple[str, int, Task]]:
        """Yield each step's name, its number of tasks, and what a task does."""
        count = len(self.sources)
        yield "metadata", len(self.metadata), self.choose_articles
        yield "examples", count, self.write_examples
        yield "repeats", 1, self.write_repeats
        yield "shards", count, self.write_shard

    def choose_articles(self, rank: int) -> Counts:
        """Store digests of the identities of the articles that a metadata file says to take."""
        counts = Counter[str]()
        taken = self._taken(
            self.metadata[rank], counts, lambda r: identity_of(r) if self._is_of_fields(r) else None
        )
        digests = _digests(identity for _, identity in taken)
        self._path("metadata", rank, ".ids").write_bytes(digests.tobytes())
        return {f"metadata_{name}": number for name, number in counts.items()}

    def write_examples(self, rank: int) -> Counts:
        """Write the examples of a file's articles, and their digests.

        White space in an example is single spaces, and no example is blank.
        """
        options, counts = self.options, Counter[str]()
        articles: Iterable[Document] = self._articles(rank, counts)
        for name, config in options.filters.items():
            articles = build(config, name).run(articles, rank, len(self.sources))
        texts, index = _examples(options.examples, articles, counts), None
        if options.decontaminate is not None:
            index = NgramIndex(self.evaluated, options.decontaminate)

        def batches() -> Iterator[pa.RecordBatch]:
            while batch := list(until_full(texts, ROWS, CHARACTERS)):
                if index is not None:
                    marks = index.contaminates(batch)
                    counts["contaminated"] += int(marks.sum())
                    batch = [text for text, mark in zip(batch, marks, strict=True) if not mark]
                keys.write(_digests(batch).tobytes())
                yield pa.record_batch({"text": batch}, SCHEMA)

        part = self._path("examples", rank, ".arrow")
        with part.with_suffix(".keys").open("wb") as keys:
            _write_stream(part, batches())
        return dict(counts)

    def write_repeats(self, rank: int) -> Counts:
        files = sorted(self.building.glob("examples-*.keys"))
        keys = [np.fromfile(file, np.uint64) for file in files]
        repeated = pd.Series(np.concatenate(keys)).duplicated().to_numpy()
        if not self.options.deduplicate:
            repeated = np.zeros(len(repeated), bool)
        ends = np.cumsum([len(part) for part in keys])[:-1]
        for file, marks in zip(files, np.split(repeated, ends), strict=True):
            file.with_suffix(".marks").write_bytes(marks.tobytes())
        return {"repeated": int(repeated.sum())}

    def write_shard(self, rank: int) -> Counts:
        """Write the kept examples of a part as a shard; return what the manifest says of it."""
        path = self.building / f"shard-{rank:05d}-of-{len(self.sources):05d}.arrow"
        write_durably(path, lambda scratch: _write_stream(scratch, self._kept_batches(rank)))
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
            texts = stream.read_all()["text"]
            # single spaces are all the white space there is
            words = len(texts) + (pc.sum(pc.count_substring(texts, " ")).as_py() or 0)
        content = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        return {"file": path.name, **content, "examples": len(texts), "words": words}

    def _articles(self, rank: int, counts: Counter[str]) -> Iterator[Document]:
        """Yield a document for each article of the fields that has a text."""
        ids = [np.fromfile(file, np.uint64) for file in self.building.glob("metadata-*.ids")]
        chosen = set(np.concatenate(ids).tolist()) if ids else None

        def text(record: Record) -> str | None:
            if chosen is None:
                return text_of(record) if self._is_of_fields(record) else None
            (digest,) = _digests([identity_of(record)])
            return text_of(record) if int(digest) in chosen else None

        for place, article in self._taken(self.sources[rank], counts, text):
            if article.strip():
                yield Document(article, place)
            else:
                counts["no_text"] += 1

    def _taken(
        self, path: Path, counts: Counter[str], take: Callable[[Record], str | None]
    ) -> Iterator[tuple[str, str]]:
        """Yield the place and `take(record)` of each record of a file that is not left out."""
        for place, line in lines_of(path):
            counts["read"] += 1
            try:
                taken = take(record_of(line))
            except BadRecordError as error:
                if self.options.bad_records == "refuse":
                    raise UserError(f"{place}: {error} (bad_records=skip leaves it out)") from error
                counts["bad"] += 1
                continue
            if taken is None:
                counts["other_field"] += 1
            else:
                yield place, taken

    def _is_of_fields(self, record: Record) -> bool:
        wanted = {name.casefold() for name in listed(self.options.field_of_study)}
        return not wanted or not wanted.isdisjoint(map(str.casefold, fields_of(record)))

    def _kept_batches(self, rank: int) -> Iterator[pa.RecordBatch]:
        part, start = self._path("examples", rank, ".arrow"), 0
        kept = ~np.fromfile(part.with_suffix(".marks"), bool)
        with pa.memory_map(str(part)) as mapped, pa.ipc.open_stream(mapped) as stream:
            for batch in stream:
                chosen = batch.filter(pa.array(kept[start : start + len(batch)]))
                start += len(batch)
                if len(chosen):
                    yield chosen

    def _path(self, kind: str, rank: int, suffix: str) -> Path:
        return self.building / f"{kind}-{rank:05d}{suffix}"


def words_of_examples(text: str, options: ExampleOptions) -> Iterator[list[str]]:
    """Yield the words of each example of an article, in order; examples may be blank."""
    if options.by in ("paragraph", "line"):
        yield from map(str.split, text.split(BREAK if options.by == "paragraph" else "\n"))
        return
    words = text.split()
    size = options.words if options.by == "words" else max(len(words), 1)
    yield from (words[start : start + size] for start in range(0, len(words), size))


def _digests(texts: Iterable[str]) -> np.ndarray:
    """Return 64 bits of each text; among 10^8, two have the same with a probability of 0.0003."""
    hashes = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(hashes), np.uint64)


def _examples(
    options: ExampleOptions, articles: Iterable[Document], counts: Counter[str]
) -> Iterator[str]:
    for article in articles:
        counts["articles"] += 1
        for words in filter(None, words_of_examples(article.text, options)):
            counts["made"] += 1
            if len(words) < options.min_words:
                counts["too_short"] += 1
            else:
                yield " ".join(words)


def _write_stream(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches as an Arrow stream, which training memory-maps."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
        for batch in batches:
            stream.write_batch(batch)
