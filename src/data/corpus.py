"""Reads corpora of unlabelled text, memory-mapped, and chooses a part of one by size and seed."""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import datasets
import numpy as np
import pyarrow
from huggingface_hub import constants
from pyarrow import compute, parquet

from src.data.auxiliary import choose_rows
from src.data.cached_rows import cached_rows
from src.data.corpus_files import KINDS, TEXTS, files_of, kind_of, root_of
from src.data.corpus_manifest import is_corpus_folder, read_corpus_folder
from src.data.held_out_text import HeldOutText
from src.errors import UserError, first_line
from src.files.checksum import check_is_file, sha256_of
from src.files.reachable import check_reachable

_READ = 10_000
"""Number of texts that are read into memory at a time."""
LONGEST_TEXT = 16 << 20
"""Maximum length of a text [bytes]; tokenising one takes some 160 times as much memory."""
_BLOCK = 1 << 20


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


def load_corpus_folder(path: Path) -> Corpus:
    """Load a corpus that `python -m src.build_corpus` wrote, memory-mapped where it lies.

    Raises:
        UserError: it is not finished, or a file of it is missing or cut.
    """
    folder = read_corpus_folder(path)
    try:
        shards = [datasets.Dataset.from_file(str(file)) for file in folder.files()]
        joined = datasets.concatenate_datasets(shards)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = first_line(error)
        raise UserError(f"corpus {path} is damaged ({reason}); build it again") from error
    texts = text_column(joined, "text", str(path))
    return Corpus(str(path), texts, folder.manifest.fingerprint, has_blanks=False)


def load_corpus(path: Path, column: str, cache_dir: Path) -> Corpus:
    """Load the corpus in a file, in the files a glob matches, or in a folder (see `files_of`).

    A folder that `python -m src.build_corpus` wrote is memory-mapped where it lies.

    Each line of a text file is a text, and each paragraph of Markdown; JSONL and Parquet have texts
    in `column`. Several files are read in the order of their kinds, and of their names within a
    kind.

    Raises:
        UserError: a file does not exist, is empty, of an unknown kind, or lacks the column.
    """
    path = path.expanduser()
    if is_corpus_folder(path):
        return load_corpus_folder(path)
    files = files_of(path)
    if files == [path]:
        return _load_file(path, column, cache_dir)
    filled = [file for file in files if file.stat().st_size]
    if not filled:
        raise UserError(f"corpus {path} holds empty files only")
    by_kind = {kind: [f for f in filled if kind_of(f) == kind] for kind in KINDS}
    parts = []
    for kind, own in by_kind.items():
        # of text there may be very many files; of the others each has columns of its own
        groups = ([own] if own else []) if kind in TEXTS else [[file] for file in own]
        parts += [text_column(*_read(group, kind, column, cache_dir)) for group in groups]
    texts = datasets.concatenate_datasets(
        [part.cast(datasets.Features({"text": datasets.Value("string")})) for part in parts]
    )
    if len(texts) == 0:
        raise UserError(f"corpus {path} holds no texts")
    listed = [f"{file.relative_to(root_of(path))}:{sha256_of(file)}" for file in files]
    digest = hashlib.sha256("\n".join([column, *listed]).encode()).hexdigest()
    return Corpus(str(path), texts, fingerprint=digest)


def _load_file(path: Path, column: str, cache_dir: Path) -> Corpus:
    check_is_file(path, "corpus")
    kind = kind_of(path)
    if path.stat().st_size == 0:
        raise UserError(f"corpus {path} is empty")
    texts = text_column(*_read([path], kind, column, cache_dir))
    if len(texts) == 0:
        raise UserError(f"corpus {path} is empty")
    column = "text" if kind in TEXTS else column
    return Corpus(str(path), texts, fingerprint=f"{sha256_of(path)}:{kind}:{column}")


def _read(
    files: Sequence[Path], kind: str, column: str, cache_dir: Path
) -> tuple[datasets.Dataset, str, str]:
    """Return the rows of files of one kind, the column of their texts, and a name for messages."""
    builder, options = TEXTS.get(kind, (kind, {}))
    if kind != "parquet":
        for file in files:
            _check_line_lengths(file, kind)
    try:
        rows = cached_rows(
            cache_dir,
            builder,
            data_files=[glob.escape(str(file.absolute())) for file in files],
            split="train",
            **options,
        )
    except (
        datasets.exceptions.DatasetGenerationError,
        pyarrow.ArrowException,
        OSError,
        ValueError,
    ) as error:
        causes = ((file, _cause_in_file(file, kind)) for file in files)
        unknown = (files[0], str(error.__cause__ or error).splitlines()[0])
        file, cause = next(((f, c) for f, c in causes if c is not None), unknown)
        raise UserError(f"corpus {file} cannot be read as {kind}: {cause}") from error
    column = "text" if kind in TEXTS else column
    if kind == "json" and column in rows.column_names and not _is_text(rows, column):
        _check_json_texts(files[0], column)
    if kind not in TEXTS and column in rows.column_names:
        _check_utf8(rows, column, kind, files[0])
    return rows, column, str(files[0])


def _check_utf8(rows: datasets.Dataset, column: str, kind: str, path: Path) -> None:
    """Check that texts are UTF-8, which the readers of JSON and Parquet take for granted.

    Raises:
        UserError: a text is not; the message names its line or row.
    """
    number = 0
    for chunk in rows.data.column(column).chunks:
        try:
            chunk.validate(full=True)
        except pyarrow.ArrowInvalid as error:
            cause = _cause_in_file(path, kind) or f"after row {number:,}, {first_line(error)}"
            raise UserError(f"corpus {path} cannot be read as {kind}: {cause}") from error
        number += len(chunk)


def _check_line_lengths(path: Path, kind: str) -> None:
    """Check that no line is too long: the reader would fail on one without naming it.

    Raises:
        UserError: a line is longer than `LONGEST_TEXT`.
    """
    number, begun = 1, 0
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            while block := file.read(_BLOCK):
                if kind == "json" and (number, begun) == (1, 0) and block.lstrip()[:1] == b"[":
                    return  # one array, over any number of lines
                lengths = list(map(len, block.split(b"\n")))
                lengths[0] += begun
                longest = max(lengths)
                if longest > LONGEST_TEXT:
                    line = number + lengths.index(longest)
                    raise UserError(_too_long(f"corpus {path}, line {line:,}"))
                number, begun = number + len(lengths) - 1, lengths[-1]
    except (OSError, EOFError, zlib.error):
        return  # what reads it says so, with the line


def _check_text_lengths(texts: datasets.Dataset, source: str) -> None:
    """Check that no text is too long, by the Arrow file's offsets, without reading the texts.

    Raises:
        UserError: a text is longer than `LONGEST_TEXT`.
    """
    row = 0
    for chunk in texts.data.column("text").chunks:
        try:
            chunk.validate()  # the offsets' ends lie in the file, and below all are in order
        except pyarrow.ArrowInvalid as error:
            raise UserError(f"corpus {source} is damaged ({first_line(error)})") from error
        lengths = compute.fill_null(compute.binary_length(chunk), 0)
        if (compute.min(lengths).as_py() or 0) < 0:
            raise UserError(f"corpus {source} is damaged (a text ends before it begins)")
        longest = compute.max(lengths).as_py() or 0
        if longest > LONGEST_TEXT:
            row += compute.index(lengths, longest).as_py() + 1
            raise UserError(_too_long(f"corpus {source}, text {row:,}"))
        row += len(chunk)


def _too_long(where: str) -> str:
    return f"{where} is longer than {LONGEST_TEXT >> 20} MiB; split it into several"


def _cause_in_file(path: Path, kind: str) -> str | None:
    """Return why a file cannot be read, with the line; None if the cause is not found."""
    number = 0
    try:
        if kind == "parquet":
            return None if parquet.ParquetFile(path).metadata.num_rows else "it has no rows"
        for _, raw in _lines(path):
            number += 1
            line = raw.decode("utf-8")
            if kind == "json" and line.lstrip().startswith("["):
                return None  # one array, over any number of lines
            if kind == "json" and line.strip():
                json.loads(line)
    except UnicodeDecodeError:
        return f"line {number} is not UTF-8; convert the file first"
    except json.JSONDecodeError as error:
        return f"line {number} is not JSON ({error.msg}, column {error.colno})"
    except pyarrow.ArrowException:
        return None  # what the reader itself says is as good
    except (OSError, EOFError, zlib.error) as error:
        reason = first_line(error)
        return reason if kind == "parquet" else f"{reason} (line {number + 1})"
    return None if number else "it is empty"


def _check_json_texts(path: Path, column: str) -> None:
    """Find the first line whose `column` is not a string, in a file that could not be read.

    Raises:
        UserError: there is such a line; the message names it.
    """
    for number, raw in _lines(path):
        if raw.lstrip().startswith(b"["):
            return  # one array, over any number of lines
        record = json.loads(raw) if raw.strip() else {}
        value = record.get(column) if isinstance(record, dict) else None
        if not isinstance(value, str | None):
            kind = type(value).__name__
            raise UserError(
                f"corpus {path}, line {number}: the field {column!r} must be a string, not {kind}"
            )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        yield from enumerate(file, start=1)


def load_corpus_from_hub(
    name: str, config: str | None, split: str, column: str, cache_dir: Path
) -> Corpus:
    """Load a corpus that is a data set on the Hugging Face Hub.

    Raises:
        UserError: the Hub does not answer or has no such data set, or the column does not exist.
    """
    if not constants.HF_HUB_OFFLINE:  # offline, the data set may still be in the Hub's cache
        check_reachable(constants.ENDPOINT, f"data set {name}")
    try:
        rows = cached_rows(cache_dir, name, name=config, split=split)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = first_line(error)
        raise UserError(f"could not load data set {name} from the Hub: {reason}") from error
    texts = text_column(rows, column, name)
    if len(texts) == 0:
        raise UserError(f"corpus {name} is empty")
    return Corpus(source=name, texts=texts, fingerprint=f"{rows._fingerprint}:{column}")


def text_column(rows: datasets.Dataset, column: str, source: str) -> datasets.Dataset:
    """Return the texts of a data set, as its only column `text`.

    Raises:
        UserError: there is no such column, it holds no text, or a text is too long.
    """
    if column not in rows.column_names:
        raise UserError(
            f"corpus {source} has no column {column!r}, only {rows.column_names}; set 'column'"
        )
    if not _is_text(rows, column):
        kind = getattr(rows.features[column], "dtype", rows.features[column])
        raise UserError(f"corpus {source}: column {column!r} holds {kind}, not text")
    texts = rows.select_columns([column])
    texts = texts if column == "text" else texts.rename_column(column, "text")
    _check_text_lengths(texts, source)
    return texts


def _is_text(rows: datasets.Dataset, column: str) -> bool:
    return getattr(rows.features[column], "dtype", None) in ("string", "large_string")


def choose_part(
    corpus: Corpus, size: float | None, train_examples: int, seed: int, option: str
) -> Corpus:
    """Return `size` x `train_examples` rows of the corpus; a smaller size gives a subset.

    Blank rows count, as they do in the paper's files, but are not trained on.

    Args:
        size: number of rows in multiples of `train_examples`; None for all rows.
        seed: seed of the choice.
        option: the config option that sets the size, for the message.

    Raises:
        UserError: the corpus has fewer rows than that.
    """
    if size is None:
        return corpus
    chosen = choose_rows(
        len(corpus.texts), size, train_examples, seed, option, source=corpus.source
    )
    return Corpus(
        source=corpus.source,
        texts=corpus.texts.select(chosen),
        fingerprint=f"{corpus.fingerprint}:{len(chosen)}:{seed}",
        has_blanks=corpus.has_blanks,
    )


def hold_out(corpus: Corpus, held_out: HeldOutText) -> tuple[Corpus, Corpus]:
    """Divide a corpus into the texts to train on and those that are held out.

    Raises:
        UserError: one of the two parts would be empty.
    """
    count = len(corpus.texts)
    blocks = (corpus.texts[start : start + _READ]["text"] for start in range(0, count, _READ))
    drawn = (held_out.place(text) for block in blocks for text in block)
    places = np.fromiter(drawn, dtype=np.float64, count=count)
    rest, held = places >= held_out.share, places < held_out.evaluated_share(count)
    if not rest.any() or not held.any():
        side = "hold out" if rest.any() else "train on"
        raise UserError(
            f"task.share={held_out.share:g} of the {count} texts of {corpus.source} leaves none to "
            f"{side}; use another share, or more text"
        )
    parts = (("rest", rest), ("held out", held))
    kept, apart = (
        replace(
            corpus,
            texts=corpus.texts.select(np.flatnonzero(members)),
            fingerprint=f"{corpus.fingerprint}:{name} {held_out.fingerprint}",
        )
        for name, members in parts
    )
    return kept, apart
