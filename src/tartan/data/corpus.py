"""Reads corpora of unlabelled text, memory-mapped, and chooses a part of one by size and seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import datasets
import numpy as np
import pyarrow
from huggingface_hub import constants
from pyarrow import compute

from tartan.data.auxiliary import choose_rows
from tartan.data.cache import cached_rows, cached_texts
from tartan.data.corpus_files import files_of, kind_of, root_of, texts_in
from tartan.data.corpus_manifest import is_corpus_folder, read_corpus_folder
from tartan.data.held_out_text import HeldOutText
from tartan.data.table.open import open_table
from tartan.data.table.saved_dataset import is_saved_dataset
from tartan.errors import UserError, first_line
from tartan.files import check_reachable, sha256_of

_READ = 10_000
"""Number of texts that are read into memory at a time."""
LONGEST_TEXT = 16 << 20
"""Maximum length of a text [bytes]; tokenising one takes some 160 times as much memory."""


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

    A folder that `python -m src.build_corpus` wrote is memory-mapped where it lies. The texts of
    other files (see `texts_in`) are copied into `cache_dir` once.

    Raises:
        UserError: a file does not exist, is empty, malformed, of an unknown kind, or lacks the
            column.
    """
    path = path.expanduser()
    if is_corpus_folder(path):
        return load_corpus_folder(path)
    files = files_of(path)
    fingerprint = _fingerprint(path, files, column)
    rows = cached_texts(cache_dir, fingerprint, partial(texts_in, files, column))
    if len(rows) == 0:
        raise UserError(f"corpus {path} holds no texts")
    return Corpus(str(path), text_column(rows, "text", str(path)), fingerprint)


def _fingerprint(path: Path, files: list[Path], column: str) -> str:
    """Return a string that changes with the files' content and order, not with where they lie."""
    if is_saved_dataset(path):
        return f"{open_table(path).fingerprint}:{column}"
    if files == [path]:
        if not path.is_file():
            raise UserError(
                f"there is no unlabelled text at {path}; name a file, folder or pattern"
            )
        return f"{sha256_of(path)}:{kind_of(path)}:{column}"
    listed = [f"{file.relative_to(root_of(path))}:{sha256_of(file)}" for file in files]
    return hashlib.sha256("\n".join([column, *listed]).encode()).hexdigest()


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
            raise UserError(
                f"corpus {source}, text {row:,} is longer than {LONGEST_TEXT >> 20} MiB; split it "
                "into several"
            )
        row += len(chunk)


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
    rows = rows.with_format(None)
    if column not in rows.column_names:
        raise UserError(
            f"corpus {source} has no column {column!r}, only {rows.column_names}; name it, as in "
            "auxiliary.dapt.column=NAME (in a program column=NAME)"
        )
    kind = getattr(rows.features[column], "dtype", rows.features[column])
    if kind not in ("string", "large_string"):
        raise UserError(f"corpus {source}: column {column!r} holds {kind}, not text")
    texts = rows.select_columns([column])
    texts = texts if column == "text" else texts.rename_column(column, "text")
    _check_text_lengths(texts, source)
    return texts


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
    return replace(
        corpus,
        texts=corpus.texts.select(chosen),
        fingerprint=f"{corpus.fingerprint}:{len(chosen)}:{seed}",
    )


def hold_out(corpus: Corpus, held_out: HeldOutText) -> tuple[Corpus, Corpus]:
    """Divide a corpus into the texts to train on and those that are held out.

    Raises:
        UserError: one of the two parts would be empty.
    """
    count = len(corpus.texts)
    drawn = (held_out.place(text) for block in corpus.texts.iter(_READ) for text in block["text"])
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
