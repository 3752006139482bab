"""Reads corpora of unlabelled text, memory-mapped, and chooses a part of one by size and seed."""

from __future__ import annotations

import glob
import hashlib
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.compute as pc

from tartan.data.cache import cached_file
from tartan.data.corpus_folder import is_corpus_folder, read_manifest
from tartan.data.labelled import text_of
from tartan.data.order import choose_rows
from tartan.data.table import Table, until_full
from tartan.data.table_file import TABLES, format_of, open_table
from tartan.errors import UserError, first_line
from tartan.files import is_inside, sha256_of

log = logging.getLogger(__name__)

LONGEST_TEXT = 16 << 20
"""Maximum length of a text [bytes]; tokenising one takes some 160 times as much memory."""
_TEXTS, _CHARACTERS = 10_000, 1 << 24
"""Numbers of texts and of characters that are kept in memory before they are written."""
_KINDS = ("text", "markdown", *TABLES)
"""Kinds of corpus files, in the order in which their texts are read."""
_IN_FOLDERS = ("text", "markdown", "jsonl", "parquet")
"""Kinds of files that are read from a folder; others in it are seldom unlabelled text."""


@dataclass(frozen=True)
class Corpus:
    """Unlabelled texts on disk.

    Attributes:
        source: the path or Hub name that the texts came from.
        texts: rows with the column `text`; memory-mapped, may hold blank rows.
        fingerprint: changes when the texts change.
        has_blanks: whether a row may be blank.
    """

    source: str
    texts: datasets.Dataset
    fingerprint: str
    has_blanks: bool = True


def load_corpus(path: Path, column: str, cache_dir: Path) -> Corpus:
    """Load the corpus in a file, in the files a glob matches, or in a folder.

    A folder that `python -m src.build_corpus` wrote is memory-mapped where it lies. The texts of
    other files are copied into `cache_dir` once: each line of a text file is a text, and each
    paragraph of Markdown; tables have texts in `column`.
    """
    path = path.expanduser()
    if is_corpus_folder(path):
        return _load_folder(path)
    files = _files_of(path)
    fingerprint = _fingerprint(path, files, column)

    def write(scratch: Path) -> None:
        schema = pa.schema([("text", pa.string())])
        texts = (text for file in files for text in _texts_in(file, column))
        with pa.ipc.new_stream(str(scratch), schema) as stream:
            while some := list(until_full(texts, _TEXTS, _CHARACTERS)):
                stream.write(pa.record_batch([pa.array(some, pa.string())], schema=schema))

    name = hashlib.sha256(fingerprint.encode()).hexdigest()[:32]
    file = cached_file(cache_dir / "datasets" / name / "texts.arrow", write)
    texts = text_column(datasets.Dataset.from_file(str(file)), "text", str(path))
    return Corpus(str(path), texts, fingerprint)


def load_corpus_from_hub(
    name: str, config: str | None, split: str, column: str, cache_dir: Path
) -> Corpus:
    """Load a corpus that is a data set on the Hugging Face Hub."""
    folder = str(cache_dir / "datasets")
    try:
        rows = datasets.load_dataset(name, config, split=split, cache_dir=folder)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise UserError(f"could not load {name} from the Hub: {first_line(error)}") from error
    return Corpus(name, text_column(rows, column, name), f"{rows._fingerprint}:{column}")


def text_column(rows: datasets.Dataset, column: str, source: str) -> datasets.Dataset:
    """Return the texts of a data set as its only column `text`, after checking their lengths."""
    rows = rows.with_format(None)
    if column not in rows.column_names:
        raise UserError(f"corpus {source} has no column {column!r}, only {rows.column_names}")
    kind = getattr(rows.features[column], "dtype", rows.features[column])
    if kind not in ("string", "large_string"):
        raise UserError(f"corpus {source}: column {column!r} holds {kind}, not text")
    if not len(rows):
        raise UserError(f"corpus {source} holds no texts")
    texts = rows.select_columns([column])
    texts = texts if column == "text" else texts.rename_column(column, "text")
    _check_lengths(texts, source)
    return texts


def texts_of(table: Table, column: str) -> Iterator[str]:
    """Yield the texts in a column of a table; a missing value, also NaN, is a blank text.

    At the end a warning counts the rows without a value, which take part in sizes but not in
    training.
    """
    if table.columns and column not in table.columns:
        columns = ", ".join(map(repr, table.columns))
        raise UserError(f"corpus {table.source} has no column {column!r}, only {columns}")
    count, without = 0, 0
    for row in table.rows():
        value = row.values.get(column)
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        count, without = count + 1, without + missing
        yield "" if missing else text_of(row, column)
    if without:
        log.warning(
            "corpus %s: %s of %s rows have no text in %r",
            table.source, f"{without:,}", f"{count:,}", column,
        )  # fmt: skip


def choose_part(
    corpus: Corpus, size: float | None, train_examples: int, seed: int, option: str
) -> Corpus:
    """Return `size` x `train_examples` rows of the corpus; a smaller size gives a subset.

    Blank rows count, as they do in the paper's files, but are not trained on. `option`, which sets
    the size, is for the message; None takes all rows.
    """
    if size is None:
        return corpus
    chosen = choose_rows(len(corpus.texts), size, train_examples, seed, option, corpus.source)
    fingerprint = f"{corpus.fingerprint}:{len(chosen)}:{seed}"
    return replace(corpus, texts=corpus.texts.select(chosen), fingerprint=fingerprint)


def _load_folder(path: Path) -> Corpus:
    manifest = read_manifest(path)
    files = [str(path / shard.file) for shard in manifest.shards if shard.examples]
    try:
        rows = datasets.concatenate_datasets([datasets.Dataset.from_file(file) for file in files])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"corpus {path} is damaged ({first_line(error)})") from error
    texts = text_column(rows, "text", str(path))
    return Corpus(str(path), texts, manifest.fingerprint, has_blanks=False)


def _files_of(path: Path) -> list[Path]:
    """Return the files that `path` stands for, in the order of their kinds, then of their names.

    A folder stands for the texts in it at any depth, without files and folders whose names begin
    with a dot; a path with `*`, `?` or `[` that is not itself a file for the files that match it.
    """
    if path.is_dir():
        names = (file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file())
        every = [path / name for name in names if not any(p.startswith(".") for p in name.parts)]
        files = [file for file in every if format_of(file, _IN_FOLDERS)]
        if outside := [file for file in files if not is_inside(file, path)]:
            raise UserError(f"corpus {path}: {outside[0].name} is a link to elsewhere")
        if len(files) < len(every):
            log.warning("corpus %s: %s files are not text", path, f"{len(every) - len(files):,}")
    elif not path.exists() and glob.has_magic(str(path)):
        matches = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
        files = [file for file in sorted(matches) if file.is_file()]
    else:
        return [path]
    if not files:
        raise UserError(f"corpus {path}: no files of text")
    return sorted(files, key=lambda file: _KINDS.index(_kind_of(file)))


def _kind_of(file: Path) -> str:
    known = format_of(file, _KINDS)
    if known is None:
        raise UserError(f"corpus {file} is none of {', '.join(_KINDS)} by the ending of its name")
    return known.kind


def _texts_in(file: Path, column: str) -> Iterator[str]:
    if file.is_file() and not file.stat().st_size:
        return  # an empty table has not even columns
    kind, table = _kind_of(file), open_table(file, _KINDS)
    texts = texts_of(table, "text" if kind in ("text", "markdown") else column)
    if kind != "markdown":
        yield from texts
        return
    for is_blank, paragraph in groupby(texts, lambda line: not line.strip()):
        if not is_blank:
            yield "\n".join(paragraph)


def _fingerprint(path: Path, files: Sequence[Path], column: str) -> str:
    """Return a string that changes with the files' content and order, not with where they lie."""
    if files == [path]:
        return f"{sha256_of(path)}:{_kind_of(path)}:{column}"
    parts = path.parts
    magic = (i for i, part in enumerate(parts) if glob.has_magic(part))
    root = path if path.is_dir() else Path(*parts[: next(magic, len(parts) - 1)])
    listed = [f"{file.relative_to(root)}:{sha256_of(file)}" for file in files]
    return hashlib.sha256("\n".join([column, *listed]).encode()).hexdigest()


def _check_lengths(texts: datasets.Dataset, source: str) -> None:
    """Check by the Arrow file's offsets that no text is damaged, or longer than `LONGEST_TEXT`."""
    row = 0
    for chunk in texts.data.column("text").chunks:
        try:
            chunk.validate()  # the offsets' ends lie in the file, and below all are in order
        except pa.ArrowInvalid as error:
            raise UserError(f"corpus {source} is damaged ({first_line(error)})") from error
        lengths = pc.fill_null(pc.binary_length(chunk), 0)
        shortest, longest = (edge(lengths).as_py() or 0 for edge in (pc.min, pc.max))
        if shortest < 0:
            raise UserError(f"corpus {source} is damaged (a text ends before it begins)")
        if longest > LONGEST_TEXT:
            row += pc.index(lengths, longest).as_py() + 1
            raise UserError(
                f"corpus {source}, text {row:,} is longer than {LONGEST_TEXT >> 20} MiB"
            )
        row += len(chunk)
