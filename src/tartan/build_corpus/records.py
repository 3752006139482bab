"""Reads an article's fields of study, identity and text from its JSON record.

The layouts are those of S2ORC: release 2020-07-05 (`metadata` with `mag_field_of_study`,
`pdf_parses` with lists of paragraphs in `abstract` and `body_text`), `doc2json` (the same inside
`pdf_parse`), the Semantic Scholar API's data sets (`papers` with `s2fieldsofstudy`, `s2orc` with
`content.text` and its annotations), and peS2o (`text`, paragraphs apart by blank lines).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
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
_BLANK_LINES = re.compile(r"\n\s*\n")
_BREAKS = re.compile(r"\n\s*\n|:::")


class BadRecordError(Exception):
    """Raised for a line that is not a record, or of an unknown layout; the message says why."""


def record_of(line: bytes) -> Record:
    """Parse a line of JSON.

    Raises:
        BadRecordError: the line is not JSON, or not an object.
    """
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadRecordError("not UTF-8") from error
    except json.JSONDecodeError as error:
        raise BadRecordError(f"not JSON ({error.msg}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise BadRecordError("JSON with too long a number or too deep brackets") from error
    if not isinstance(record, dict):
        raise BadRecordError(f"expected an object, found {_kind(record)}")
    return record


def fields_of(record: Record) -> set[str]:
    """Return the fields of study that the record, or the `metadata` in it, names.

    Raises:
        BadRecordError: the fields are not lists of the expected form, or one is not Unicode.
    """
    inner = record.get("metadata")
    found: set[str] = set()
    for holder in [record, inner] if isinstance(inner, dict) else [record]:
        for key in _FIELDS:
            value = holder.get(key) or []
            for entry in value if isinstance(value, list) else [value]:
                is_object = key in _CATEGORIES and isinstance(entry, dict)
                name = entry.get("category") if is_object else entry
                if not isinstance(name, str):
                    raise BadRecordError(f"{key!r} must be a list of fields of study")
                found.add(_whole(name, repr(key)))
    return found


def identity_of(record: Record) -> str:
    """Return the identifier that joins an article's metadata and text.

    Raises:
        BadRecordError: the record has none, or it is not Unicode.
    """
    for key in _IDENTITIES:
        value = record.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return _whole(str(value), repr(key))
    raise BadRecordError(f"has none of the keys {', '.join(_IDENTITIES)}")


def text_of(record: Record) -> str:
    """Return the article's paragraphs, joined by `BREAK`.

    Raises:
        BadRecordError: the layout is unknown, or the text holds half of a surrogate pair.
    """
    text = BREAK.join(_BLANK_LINES.sub("\n", part) for part in paragraphs_of(record))
    return _whole(text, "its text")


def paragraphs_of(record: Record) -> Iterator[str]:
    """Yield the article's paragraphs in order, abstract first; none where its text is empty.

    A text that is no list has its paragraphs apart by blank lines, or by S2ORC's `:::`.

    Raises:
        BadRecordError: the layout is unknown.
    """
    if not any(key in record for key in _TEXTS):
        raise BadRecordError(f"has none of the keys {', '.join(_TEXTS)}")
    abstract, body, parse = map(record.get, ("abstract", "body_text", "pdf_parse"))
    texts: dict[str, Any]
    if isinstance(parse, dict):
        texts = {"abstract": parse.get("abstract") or abstract, "body_text": parse.get("body_text")}
    elif record.get("content") is not None:
        texts = {"content.text": _annotated(record["content"])}
    else:
        first = record.get("paperAbstract") if abstract is None else abstract
        texts = {"abstract": first, "body_text": body, "text": record.get("text")}
    for key, value in texts.items():
        if value is None:
            continue
        if isinstance(value, str):
            yield from _BREAKS.split(value)
            continue
        if not isinstance(value, list):
            expected = "text or a list of paragraphs"
            raise BadRecordError(f"{key!r} must be {expected}, not {_kind(value)}")
        for paragraph in value:
            text = paragraph.get("text") if isinstance(paragraph, dict) else paragraph
            if not isinstance(text, str):
                raise BadRecordError(f"a paragraph in {key!r} has no text but {_kind(text)}")
            yield text


def _whole(text: str, what: str) -> str:
    """Return the text after checking that it can be written as UTF-8."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadRecordError(f"{what} holds half of a surrogate pair") from error
    return text


def _annotated(content: object) -> str | list[str] | None:
    """Return the paragraphs that annotations mark in a text; without them, the text."""
    if not isinstance(content, dict):
        raise BadRecordError(f"'content' must be an object, not {_kind(content)}")
    text = content.get("text")
    if not isinstance(text, str | None):
        raise BadRecordError(f"'content.text' must be text, not {_kind(text)}")
    notes = content.get("annotations")
    spans = notes.get("paragraph") if isinstance(notes, dict) else None
    if text is None or not spans:
        return text
    try:
        marks = json.loads(spans) if isinstance(spans, str) else spans
        places = [(int(mark["start"]), int(mark["end"])) for mark in marks]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BadRecordError("'content.annotations.paragraph' is not a list of spans") from error
    for start, end in places:
        if not 0 <= start <= end <= len(text):
            raise BadRecordError(f"a paragraph from {start} to {end} in text of {len(text)}")
    return [text[start:end] for start, end in places]


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
