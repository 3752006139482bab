"""Reads an article's fields of study, identity and text from its JSON record.

The layouts are those of S2ORC: release 2020-07-05 (`metadata` with `mag_field_of_study`,
`pdf_parses` with lists of paragraphs in `abstract` and `body_text`), `doc2json` (the same inside
`pdf_parse`), the Semantic Scholar API's data sets (`papers` with `s2fieldsofstudy`, `s2orc` with
`content.text` and its annotations), and peS2o (`text`, paragraphs apart by blank lines).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]

_CATEGORIES = ("s2fieldsofstudy", "s2FieldsOfStudy")
_FIELDS = (
    "mag_field_of_study", "fields_of_study", "fieldsOfStudy", "fieldsofstudy", *_CATEGORIES
)  # fmt: skip
_IDENTITIES = ("paper_id", "corpusid", "corpusId", "corpus_id", "id")
_TEXTS = ("body_text", "pdf_parse", "content", "text", "abstract", "paperAbstract")
BREAK = "\n\n"
"""Separator of an article's paragraphs, which occurs nowhere else in its text."""
_MISFORMED = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
_BLANK_LINES = re.compile(r"\n\s*\n")
_BREAKS = re.compile(r"\n\s*\n|:::")


class BadRecordError(Exception):
    """Raised for a line that is not a record, or of an unknown layout; the message says why."""


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
    inner = record.get("metadata")
    fields: set[str] = set()
    for holder in [record, inner] if isinstance(inner, dict) else [record]:
        for key in _FIELDS:
            value = holder.get(key) or []
            for entry in value if isinstance(value, list) else [value]:
                is_object = key in _CATEGORIES and isinstance(entry, dict)
                name = entry.get("category") if is_object else entry
                if not isinstance(name, str):
                    raise BadRecordError(f"{key!r} must be a list of fields of study")
                fields.add(name)
    return fields


def identity_of(record: Record) -> str:
    """Return the identifier that joins an article's metadata and text."""
    for key in _IDENTITIES:
        value = record.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    raise BadRecordError(f"has none of the keys {', '.join(_IDENTITIES)}")


def text_of(record: Record) -> str:
    """Return the article's paragraphs, abstract first, joined by `BREAK`.

    A text that is no list has its paragraphs apart by blank lines, or by S2ORC's `:::`.
    """
    if not any(key in record for key in _TEXTS):
        raise BadRecordError(f"has none of the keys {', '.join(_TEXTS)}")
    abstract, parse = record.get("abstract"), record.get("pdf_parse")
    texts: dict[str, Any]
    if isinstance(parse, dict):
        texts = {"abstract": parse.get("abstract") or abstract, "body_text": parse.get("body_text")}
    elif record.get("content") is not None:
        texts = {"content": _annotated(record["content"])}
    else:
        first = record.get("paperAbstract") if abstract is None else abstract
        rest = {key: record.get(key) for key in ("body_text", "text")}
        texts = {"abstract": first, **rest}
    paragraphs = [paragraph for key, value in texts.items() for paragraph in _listed(key, value)]
    return BREAK.join(_BLANK_LINES.sub("\n", paragraph) for paragraph in paragraphs)


def _listed(key: str, value: Any) -> list[str]:
    """Return the paragraphs of a text, or of a list of texts or of objects with a `text`."""
    if isinstance(value, str):
        return _BREAKS.split(value)
    paragraphs = []
    if value is not None and not isinstance(value, list):
        raise BadRecordError(f"{key!r} must be text or a list of paragraphs")
    for entry in value or ():
        text = entry.get("text") if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            raise BadRecordError(f"{key!r} must be text or a list of paragraphs")
        paragraphs.append(text)
    return paragraphs


def _annotated(content: Any) -> str | list[str] | None:
    """Return the paragraphs that annotations mark in a text; without them, the text."""
    try:
        text: str | None = content.get("text")
        notes = content.get("annotations")
        spans = notes.get("paragraph") if isinstance(notes, dict) else None
        if text is None or not spans:
            return text
        marks = json.loads(spans) if isinstance(spans, str) else spans
        places = [(int(mark["start"]), int(mark["end"])) for mark in marks]
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise BadRecordError(f"'content' has no spans of paragraphs: {error}") from error
    if not all(0 <= start <= end <= len(text) for start, end in places):
        raise BadRecordError("'content': a paragraph lies outside of the text")
    return [text[start:end] for start, end in places]
