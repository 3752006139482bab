"""Reads corpora of unlabelled text, memory-mapped: files, the Hub, folders of `build_corpus`."""

import glob
import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock
from pydantic import Field

from tartan.data.labelled import text_of
from tartan.data.table import TABLES, format_of, load_from_hub, open_table, until_full
from tartan.errors import UserError, first_line
from tartan.files import Plain, digest_of, is_inside, read_json, sha256_of, write_durably

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
BEGUN = Path("building", "begun.json")
"""File that records what is being built, in the folder of a corpus that is not finished."""
LAYOUT = 1  # version of the corpus folder's format; raise it when the meaning of the folder changes
_TEXTS, _CHARACTERS = 10_000, 1 << 24
"""Numbers of texts and of characters that are kept in memory before they are written."""
_KINDS = ("text", *TABLES)
_IN_FOLDERS = ("text", "jsonl", "parquet")
"""Kinds of files that are read from a folder; others in it are seldom unlabelled text."""


@dataclass(frozen=True)
class Corpus:
    """Unlabelled texts on disk."""

    source: str  # the path or Hub name that they came from
    texts: datasets.Dataset  # rows with the column `text`, memory-mapped
    fingerprint: str  # changes when the texts change
    has_blanks: bool = True  # whether a row may be blank


class Shard(Plain):
    """A file of a corpus folder: an Arrow stream with the column `text` and no blank texts."""

    file: Annotated[str, Field(pattern=r"^[^/\\\x00]+\.arrow$")]
    bytes: int
    sha256: str
    examples: int
    words: int


class Manifest(Plain):
    """What a corpus folder holds, and how it was made of which files."""

    layout: int
    settings: dict[str, Any]
    sources: list[dict[str, Any]]
    metadata: list[dict[str, Any]]
    counts: dict[str, Any]
    shards: list[Shard]
    versions: dict[str, str]


def load_corpus(path: Path, column: str, cache_dir: Path) -> Corpus:
    """Load the corpus in a file, in the files a glob matches, or in a folder.

    A folder that `tartan build-corpus` wrote is memory-mapped where it lies. The texts of other
    files are copied into `cache_dir` once: each line of a text file, and of tables `column`.
    """
    path = path.expanduser()
    if ((path / MANIFEST).is_file() and any(path.glob("*.arrow"))) or (path / BEGUN).is_file():
        return _load_folder(path)
    formats = {file: format_of(file, _KINDS) for file in _files_of(path)}
    files = {file: known.kind if known else "" for file, known in formats.items()}
    prints = [f"{sha256_of(file)}:{kind}:{column}" for file, kind in files.items()]
    fingerprint = prints[0] if list(files) == [path] else digest_of("\n".join(prints))

    def texts() -> Iterator[str]:
        for file, kind in files.items():
            yield from _texts_in(file, "text" if kind == "text" else column)

    def write(scratch: Path) -> None:
        every, schema = texts(), pa.schema([("text", pa.string())])
        with pa.ipc.new_stream(str(scratch), schema) as stream:
            while some := list(until_full(every, _TEXTS, _CHARACTERS)):
                stream.write(pa.record_batch([pa.array(some, pa.string())], schema=schema))

    file = cached_file(cache_dir / "datasets" / digest_of(fingerprint)[:32] / "texts.arrow", write)
    rows = text_column(datasets.Dataset.from_file(str(file)), "text", str(path))
    return Corpus(str(path), rows, fingerprint)


def cached_file(path: Path, write: Callable[[Path], object]) -> Path:
    """Return `path`, after letting `write` fill it if it is not there.

    Of several processes that ask at the same time one writes, to a temporary name first, and the
    others wait for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.is_file():
            write_durably(path, write)
    return path


def load_corpus_from_hub(
    name: str, config: str | None, split: str, column: str, cache_dir: Path
) -> Corpus:
    """Load a corpus that is a data set on the Hugging Face Hub."""
    rows = load_from_hub(f"hub={name}", name, config, split, cache_dir)
    return Corpus(name, text_column(rows, column, name), f"{rows._fingerprint}:{column}")


def text_column(rows: datasets.Dataset, column: str, source: str) -> datasets.Dataset:
    """Return the texts of a data set as its only column `text`, after checking that they are."""
    rows = rows.with_format(None)
    if column not in rows.column_names:
        raise UserError(f"corpus {source} has no {column=}, only {rows.column_names}")
    kind = getattr(rows.features[column], "dtype", rows.features[column])
    if kind not in ("string", "large_string"):
        raise UserError(f"corpus {source}: column {column!r} holds {kind}, not text")
    if not len(rows):
        raise UserError(f"corpus {source} holds no texts")
    texts = rows.select_columns([column])
    for chunk in texts.data.column(column).chunks:
        try:
            chunk.validate()  # the offsets' ends lie in the file, and below all are in order
            if (pc.min(pc.binary_length(chunk)).as_py() or 0) < 0:
                raise pa.ArrowInvalid("a text ends before it begins")
        except pa.ArrowInvalid as error:
            raise UserError(f"corpus {source} is damaged ({first_line(error)})") from error
    return texts if column == "text" else texts.rename_column(column, "text")


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a corpus folder, and compare the sizes of its files."""
    file = path / MANIFEST
    if not file.is_file():
        raise UserError(f"corpus {path} is not finished; run the command that builds it again")
    try:
        manifest = read_json(file, Manifest)
    except UserError as error:
        raise UserError(f"{file} is damaged: {error}") from error
    if manifest.layout != LAYOUT:
        raise UserError(f"{file} is of layout {manifest.layout}, this program reads {LAYOUT}")
    for shard in manifest.shards:
        if not is_inside(path / shard.file, path):
            raise UserError(f"corpus {path}: {shard.file} is a link to a file elsewhere")
        if not (path / shard.file).is_file() or (path / shard.file).stat().st_size != shard.bytes:
            raise UserError(f"corpus {path}: {shard.file} is missing or cut")
    return manifest


def check_shards(path: Path, manifest: Manifest) -> None:
    """Compare every file with its checksum, which reads all of them."""
    for shard in manifest.shards:
        if sha256_of(path / shard.file) != shard.sha256:
            raise UserError(f"corpus {path}: {shard.file} is not what was written")


def _load_folder(path: Path) -> Corpus:
    shards = read_manifest(path).shards
    files = [str(path / shard.file) for shard in shards if shard.examples]
    try:
        rows = datasets.concatenate_datasets([datasets.Dataset.from_file(file) for file in files])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"corpus {path} is damaged ({first_line(error)})") from error
    fingerprint = digest_of("".join(shard.sha256 for shard in shards))
    return Corpus(str(path), text_column(rows, "text", str(path)), fingerprint, has_blanks=False)


def _files_of(path: Path) -> list[Path]:
    """Return a file, those a glob matches, or a folder's texts at any depth that are not hidden."""
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
        raise UserError(f"corpus {path}: no .txt, .jsonl or .parquet; name a CSV itself")
    return files


def _texts_in(file: Path, column: str) -> Iterator[str]:
    """Yield the texts in a column of a file; a missing value, also NaN, is a blank text."""
    if not file.stat().st_size:
        return  # an empty table has not even columns
    table = open_table(file, _KINDS)
    if table.columns and column not in table.columns:
        columns = ", ".join(map(repr, table.columns))
        raise UserError(f"corpus {file} has no {column=}, only {columns}")
    for row in table.rows():
        value = row.values.get(column)
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        yield "" if missing else text_of(row, column)
