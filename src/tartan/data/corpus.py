"""Reads corpora of unlabelled text, memory-mapped, and chooses a part of one by size and seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.compute as pc

from tartan.data.cache import cached_file
from tartan.data.corpus_files import files_of, kind_of, root_of, texts_in
from tartan.data.corpus_folder import is_corpus_folder, read_corpus_folder
from tartan.data.order import choose_rows
from tartan.data.table.arrow import is_saved_dataset
from tartan.data.table.base import until_full
from tartan.data.table.open import open_table
from tartan.errors import UserError, first_line
from tartan.files import sha256_of

LONGEST_TEXT = 16 << 20
"""Maximum length of a text [bytes]; tokenising one takes some 160 times as much memory."""
_TEXTS, _CHARACTERS = 10_000, 1 << 24
"""Numbers of texts and of characters that are kept in memory before they are written."""


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
    """Load the corpus in a file, in the files a glob matches, or in a folder (see `files_of`).

    A folder that `python -m src.build_corpus` wrote is memory-mapped where it lies. The texts of
    other files (see `texts_in`) are copied into `cache_dir` once.
    """
    path = path.expanduser()
    if is_corpus_folder(path):
        return _load_folder(path)
    files = files_of(path)
    fingerprint = _fingerprint(path, files, column)

    def write(scratch: Path) -> None:
        schema, texts = pa.schema([("text", pa.string())]), texts_in(files, column)
        with pa.ipc.new_stream(str(scratch), schema) as stream:
            while some := list(until_full(texts, _TEXTS, _CHARACTERS)):
                stream.write(pa.record_batch([pa.array(some, pa.string())], schema=schema))

    name = hashlib.sha256(fingerprint.encode()).hexdigest()[:32]
    rows = datasets.Dataset.from_file(
        str(cached_file(cache_dir / "datasets" / name / "texts.arrow", write))
    )
    if len(rows) == 0:
        raise UserError(f"corpus {path} holds no texts")
    return Corpus(str(path), text_column(rows, "text", str(path)), fingerprint)


def load_corpus_from_hub(
    name: str, config: str | None, split: str, column: str, cache_dir: Path
) -> Corpus:
    """Load a corpus that is a data set on the Hugging Face Hub."""
    try:
        rows = datasets.load_dataset(
            name, config, split=split, cache_dir=str(cache_dir / "datasets")
        )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise UserError(
            f"could not load data set {name} from the Hub: {first_line(error)}"
        ) from error
    texts = text_column(rows, column, name)
    if len(texts) == 0:
        raise UserError(f"corpus {name} is empty")
    return Corpus(source=name, texts=texts, fingerprint=f"{rows._fingerprint}:{column}")


def text_column(rows: datasets.Dataset, column: str, source: str) -> datasets.Dataset:
    """Return the texts of a data set as its only column `text`, after checking their lengths."""
    rows = rows.with_format(None)
    if column not in rows.column_names:
        raise UserError(f"corpus {source} has no column {column!r}, only {rows.column_names}")
    kind = getattr(rows.features[column], "dtype", rows.features[column])
    if kind not in ("string", "large_string"):
        raise UserError(f"corpus {source}: column {column!r} holds {kind}, not text")
    texts = rows.select_columns([column])
    texts = texts if column == "text" else texts.rename_column(column, "text")
    _check_lengths(texts, source)
    return texts


def choose_part(
    corpus: Corpus, size: float | None, train_examples: int, seed: int, option: str
) -> Corpus:
    """Return `size` x `train_examples` rows of the corpus; a smaller size gives a subset.

    Blank rows count, as they do in the paper's files, but are not trained on.

    Args:
        corpus: the corpus to choose from.
        size: number of rows in multiples of `train_examples`; None for all rows.
        train_examples: number of the end task's training examples.
        seed: seed of the choice.
        option: the config option that sets the size, for the message.
    """
    if size is None:
        return corpus
    chosen = choose_rows(
        len(corpus.texts), size, train_examples, seed, option, source=corpus.source
    )
    return replace(
        corpus,
        texts=corpus.texts.select(chosen),
        fingerprint=f"{corpus.fingerprint}:{len(chosen)}:{seed}",
    )


def _load_folder(path: Path) -> Corpus:
    """Load a corpus that `python -m src.build_corpus` wrote, memory-mapped where it lies."""
    folder = read_corpus_folder(path)
    try:
        shards = [datasets.Dataset.from_file(str(file)) for file in folder.files()]
        joined = datasets.concatenate_datasets(shards)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"corpus {path} is damaged ({first_line(error)})") from error
    texts = text_column(joined, "text", str(path))
    return Corpus(str(path), texts, folder.manifest.fingerprint, has_blanks=False)


def _fingerprint(path: Path, files: list[Path], column: str) -> str:
    """Return a string that changes with the files' content and order, not with where they lie."""
    if is_saved_dataset(path):
        return f"{open_table(path).fingerprint}:{column}"
    if files == [path]:
        return f"{sha256_of(path)}:{kind_of(path)}:{column}"
    listed = [f"{file.relative_to(root_of(path))}:{sha256_of(file)}" for file in files]
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
