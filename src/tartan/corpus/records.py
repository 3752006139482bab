"""Reads articles from JSON Lines: their text, fields of study and identity.

The layouts are those of S2ORC: release 2020-07-05 (`metadata` with `mag_field_of_study`,
`pdf_parses` with lists of paragraphs in `abstract` and `body_text`), `doc2json` (the same inside
`pdf_parse`), the Semantic Scholar API's data sets (`papers` with `s2fieldsofstudy`, `s2orc` with
`content.text` and its annotations), and peS2o (`text`, paragraphs apart by blank lines).
"""

import glob
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tartan.errors import UserError, first_line

Record = Mapping[str, Any]
SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
BREAK = "\n\n"
"""Separator of an article's paragraphs, which occurs nowhere else in its text."""
_FIELDS = (
    "mag_field_of_study", "fields_of_study", "fieldsOfStudy", "fieldsofstudy",
    "s2fieldsofstudy", "s2FieldsOfStudy",
)  # fmt: skip
_IDENTITIES = ("paper_id", "corpusid", "corpusId", "corpus_id", "id")
_TEXTS = ("body_text", "pdf_parse", "content", "text", "abstract", "paperAbstract")
_MISFORMED = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
_BLANK_LINES = re.compile(r"\n\s*\n")
_BREAKS = re.compile(r"\n\s*\n|:::")


class BadRecordError(Exception):
    """Raised for a line that is not a record, or of an unknown layout; the message says why."""


def find_files(entries: Iterable[str], option: str) -> list[Path]:
    """Return the files that paths, folders and patterns name, each once; those of one by name."""
    files: dict[Path, None] = {}
    for entry in entries:
        path = Path(entry).expanduser().absolute()
        named = [path] if path.exists() else map(Path, glob.glob(str(path)))  # noqa: PTH207
        matches = path.iterdir() if path.is_dir() else named
        found = sorted(f for f in matches if f.name.lower().endswith(SUFFIXES) and f.is_file())
        if not found:
            raise UserError(f"{option}: {entry}: no files that end in {', '.join(SUFFIXES)}")
        files |= dict.fromkeys(found)
    return list(files)


def lines_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the place and the content of each line that is not blank."""
    number = 0
    try:
        # as bytes: what is not UTF-8 is then found line by line
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.isspace():
                    yield f"{path}, line {number}", line
    except (OSError, EOFError, zlib.error) as error:
        reason = first_line(error)
        raise UserError(f"{path} cannot be read after line {number}: {reason}") from error


def record_of(line: bytes) -> Record:
    """Parse a line of JSON."""
    try:
        record = json.loads(line.decode("utf-8"))
        if b"\\u" in line:  # as halves of surrogate pairs are written
            json.dumps(record, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise BadRecordError(f"not JSON in UTF-8 ({error})") from error
    if not isinstance(record, dict):
        raise BadRecordError(f"expected an object, not {type(record).__name__}")
    return record


def fields_of(record: Record) -> set[str]:
    """Return the fields of study that the record, or the `metadata` in it, names."""
    fields: set[str] = set()
    inner = record.get("metadata")
    holders = [record, inner] if isinstance(inner, dict) else [record]
    for key, value in ((key, holder.get(key) or []) for holder in holders for key in _FIELDS):
        for entry in value if isinstance(value, list) else [value]:
            name = entry.get("category") if isinstance(entry, dict) else entry
            if not isinstance(name, str):
                raise BadRecordError(f"{key!r} must be a list of fields of study")
            fields.add(name)
    return fields


def identity_of(record: Record) -> str:
    """Return the identifier that joins an article's metadata and text."""
    for key in _IDENTITIES:
        if isinstance(value := record.get(key), str | int) and value != "":
            return str(value)
    raise BadRecordError(f"has none of the keys {', '.join(_IDENTITIES)}")


def text_of(record: Record) -> str:
    """Return the article's paragraphs, abstract first, joined by `BREAK`.

    A text that is no list has its paragraphs apart by blank lines, or by S2ORC's `:::`.
    """
    if not any(key in record for key in _TEXTS):
        raise BadRecordError(f"has none of the keys {', '.join(_TEXTS)}")
    try:
        parse = record.get("pdf_parse") or {}
        abstracts = (parse.get("abstract"), record.get("abstract"), record.get("paperAbstract"))
        body = parse.get("body_text") or record.get("body_text")
        texts = [next(filter(None, abstracts), None), body, record.get("text")]
        if record.get("content") is not None:
            texts = [_annotated(record["content"])]
        paragraphs = [paragraph for text in texts for paragraph in _paragraphs(text)]
        return BREAK.join(_BLANK_LINES.sub("\n", paragraph) for paragraph in paragraphs)
    except _MISFORMED as error:
        raise BadRecordError(f"its text has an unknown layout ({first_line(error)})") from error


def _paragraphs(text: Any) -> list[str]:
    if isinstance(text, str):
        return _BREAKS.split(text)
    return [entry["text"] if isinstance(entry, dict) else entry for entry in text or ()]


def _annotated(content: Any) -> str | list[str] | None:
    """Return the paragraphs that annotations mark in a text; without them, the text."""
    text: str | None = content["text"]
    notes = content.get("annotations")
    spans = notes.get("paragraph") if isinstance(notes, dict) else None
    if text is None or not spans:
        return text
    marks = json.loads(spans) if isinstance(spans, str) else spans
    return [text[int(mark["start"]) : int(mark["end"])] for mark in marks]
