"""Corpora of unlabelled text, memory-mapped, and the seeded choice of a part by size."""

from __future__ import annotations

import glob
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import datasets
import pyarrow
from huggingface_hub import constants
from pyarrow import parquet

from src.data.auxiliary import choose_rows
from src.data.checksum import check_is_file, sha256_of
from src.data.corpus_manifest import read_corpus_folder
from src.errors import UserError
from src.reachable import check_reachable

_BUILDERS = {
    ".txt": "text",
    ".jsonl": "json",
    ".json": "json",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class Corpus:
    """Unlabelled texts on disk.

    Attributes:
        source: the path or Hub name it came from.
        texts: rows with the column `text`; memory-mapped, may hold blank rows.
        fingerprint: changes when the texts change.
        has_blanks: whether a row may be blank.
    """

    source: str
    texts: datasets.Dataset
    fingerprint: str
    has_blanks: bool = True


def load_corpus(path: Path, column: str, cache_dir: Path) -> Corpus:
    """A corpus in a local file, or in a folder that `python -m src.build_corpus` wrote.

    Raises:
        UserError: see `load_corpus_file` and `load_corpus_folder`.
    """
    path = path.expanduser()
    return load_corpus_folder(path) if path.is_dir() else load_corpus_file(path, column, cache_dir)


def load_corpus_folder(path: Path) -> Corpus:
    """A corpus that `python -m src.build_corpus` wrote, memory-mapped where it lies.

    Raises:
        UserError: it is not finished, or a file of it is missing or cut.
    """
    folder = read_corpus_folder(path)
    try:
        shards = [datasets.Dataset.from_file(str(file)) for file in folder.files()]
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"corpus {path} is damaged ({reason}); build it again") from error
    texts = datasets.concatenate_datasets(shards)
    return Corpus(str(path), texts, folder.manifest.fingerprint, has_blanks=False)


def load_corpus_file(path: Path, column: str, cache_dir: Path) -> Corpus:
    """A corpus in a local file: text (an example a line), JSONL or Parquet, plain or `.gz`.

    Raises:
        UserError: the file is missing, empty, of an unknown kind, or lacks the column.
    """
    path = path.expanduser()
    check_is_file(path, "corpus")
    kind = _BUILDERS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if kind is None:
        raise UserError(
            f"corpus {path}: the name must end in {', '.join(_BUILDERS)}, or one of these and .gz"
        )
    if path.stat().st_size == 0:
        raise UserError(f"corpus {path} is empty")
    try:
        rows = datasets.load_dataset(
            kind,
            data_files=glob.escape(str(path)),
            split="train",
            cache_dir=str(cache_dir / "datasets"),
        )
    except (
        datasets.exceptions.DatasetGenerationError,
        pyarrow.ArrowException,
        ValueError,
    ) as error:
        cause = _cause_in_file(path, kind) or str(error.__cause__ or error).splitlines()[0]
        raise UserError(f"corpus {path} cannot be read as {kind}: {cause}") from error
    column = "text" if kind == "text" else column
    if kind == "json" and column in rows.column_names and not _is_text(rows, column):
        _check_json_texts(path, column)
    texts = _text_column(rows, column, str(path))
    return Corpus(str(path), texts, fingerprint=f"{sha256_of(path)}:{kind}:{column}")


def _cause_in_file(path: Path, kind: str) -> str | None:
    """Why a file that could not be read cannot be, with the line; None where this cannot tell."""
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
        return f"{error} (line {number + 1})"
    return None if number else "it is empty"


def _check_json_texts(path: Path, column: str) -> None:
    """Name the first line whose text is none; for files of which something is known to be wrong.

    Raises:
        UserError: there is such a line.
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
    """A corpus that is a data set on the Hugging Face Hub.

    Raises:
        UserError: the Hub does not answer or has no such data set, or it lacks the column.
    """
    if not constants.HF_HUB_OFFLINE:  # offline, the data set may still be in the Hub's cache
        check_reachable(constants.ENDPOINT, f"data set {name}")
    try:
        rows = datasets.load_dataset(
            name, config, split=split, cache_dir=str(cache_dir / "datasets")
        )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"could not load data set {name} from the Hub: {reason}") from error
    texts = _text_column(rows, column, name)
    return Corpus(source=name, texts=texts, fingerprint=f"{rows._fingerprint}:{column}")


def _text_column(rows: datasets.Dataset, column: str, source: str) -> datasets.Dataset:
    if column not in rows.column_names:
        raise UserError(
            f"corpus {source} has no column {column!r}, only {rows.column_names}; set 'column'"
        )
    if not _is_text(rows, column):
        kind = getattr(rows.features[column], "dtype", rows.features[column])
        raise UserError(f"corpus {source}: column {column!r} holds {kind}, not text")
    if len(rows) == 0:
        raise UserError(f"corpus {source} is empty")
    texts = rows.select_columns([column])
    return texts if column == "text" else texts.rename_column(column, "text")


def _is_text(rows: datasets.Dataset, column: str) -> bool:
    return getattr(rows.features[column], "dtype", None) in ("string", "large_string")


def choose_part(
    corpus: Corpus, size: float | None, train_examples: int, seed: int, option: str
) -> Corpus:
    """`size` x `train_examples` rows of the corpus; of two sizes, the smaller is a subset.

    Blank rows count, as they do in the paper's files, but are not trained on.

    Args:
        size: in multiples of `train_examples`; None takes all.
        seed: of the choice.
        option: the config option that holds the size, for the message.

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
