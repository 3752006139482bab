"""Records of every layout of S2ORC and peS2o, what is no record, and which files hold them."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tartan.corpus.records import (
    BREAK,
    BadRecordError,
    fields_of,
    find_files,
    identity_of,
    record_of,
    text_of,
)
from tartan.corpus.steps import ExampleOptions, words_of_examples
from tartan.errors import UserError
from tests.corpus.made_up import write_shard


def span(start, end):
    return {"start": start, "end": str(end)}


@pytest.mark.parametrize(
    ("record", "paragraphs"),
    [
        (
            {
                "abstract": [{"text": "a"}],
                "body_text": [{"text": "b", "section": "s"}, {"text": ""}],
            },
            ["a", "b", ""],
        ),
        ({"abstract": [], "body_text": []}, []),
        ({"pdf_parse": {"abstract": [{"text": "a"}], "body_text": [{"text": "b"}]}}, ["a", "b"]),
        ({"abstract": "gold", "pdf_parse": {"abstract": [], "body_text": []}}, ["gold"]),
        (
            {"content": {"text": "ab cd", "annotations": {"paragraph": json.dumps([span(0, 2)])}}},
            ["ab"],
        ),
        ({"content": {"text": "abcd", "annotations": {"paragraph": [span(2, 4)]}}}, ["cd"]),
        ({"content": {"text": "a\n \nb", "annotations": {"paragraph": None}}}, ["a", "b"]),
        ({"content": {"text": None, "annotations": None}}, []),
        *(({"content": {"text": "ab", "annotations": odd}}, ["ab"]) for odd in ([1], "odd", 7)),
        ({"content": None, "text": "a"}, ["a"]),
        ({"text": "a\nb\n\nc"}, ["a\nb", "c"]),
        ({"abstract": "one:::two", "title": "t"}, ["one", "two"]),
        ({"paperAbstract": "one"}, ["one"]),
        ({"abstract": None}, []),
        ({"body_text": ["a", "b"]}, ["a", "b"]),
    ],
)
def test_paragraphs_are_found_in_every_layout(record, paragraphs):
    assert text_of(record) == BREAK.join(paragraphs)


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ({"mag_field_of_study": ["Biology", "Medicine"]}, {"Biology", "Medicine"}),
        ({"mag_field_of_study": None}, set()),
        (
            {"s2fieldsofstudy": [{"category": "Art", "source": "external"}]},
            {"Art"},
        ),
        ({"metadata": {"fieldsOfStudy": ["Art"]}, "s2FieldsOfStudy": None}, {"Art"}),
        ({"fields_of_study": "Art"}, {"Art"}),
        ({}, set()),
    ],
)
def test_fields_of_study_are_found_in_every_layout(record, fields):
    assert fields_of(record) == fields


@pytest.mark.parametrize(
    ("record", "identity"),
    [({"paper_id": "12"}, "12"), ({"corpusid": 12}, "12"), ({"id": "x"}, "x")],
)
def test_an_article_is_the_same_in_metadata_and_text(record, identity):
    assert identity_of(record) == identity


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON in UTF-8 .Expecting property name"),
        (b'{"text": "caf\xe9"}', "not JSON in UTF-8"),
        (b"[1]", "expected an object, not list"),
        (b"[" * 100_000, "recursion" if sys.version_info < (3, 14) else "Stack overflow"),
        (b'{"text": "\\ud800"}', "not JSON in UTF-8"),
    ],
)
def test_a_line_that_is_no_record_says_why(line, reason):
    with pytest.raises(BadRecordError, match=reason):
        record_of(line)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"title": "t"}, "none of the keys body_text"),
        ({"text": 3}, "unknown layout"),
        ({"text": [3]}, "unknown layout"),
        ({"body_text": [{"section": "s"}]}, "unknown layout"),
        ({"content": "text"}, "unknown layout"),
        ({"content": {"text": 1}}, "unknown layout"),
        *(
            ({"content": {"text": "ab", "annotations": {"paragraph": spans}}}, "unknown layout")
            for spans in ("[" * 100_000, [{"start": float("inf"), "end": 1}], [3])
        ),
    ],
)
def test_text_of_an_unknown_layout_says_why(record, reason):
    with pytest.raises(BadRecordError, match=reason):
        text_of(record)


@pytest.mark.parametrize("by", ["paragraph", "words", "line", "document"])
def test_a_blank_text_has_no_words(by):
    """A filter of articles may have left nothing of one."""
    assert not any(words_of_examples(" \n\n ", ExampleOptions(by, 4, 1)))


@pytest.fixture
def folder(tmp_path):
    for name in ("b.jsonl.gz", "a.jsonl", "c.JSON", "notes.txt"):
        write_shard(tmp_path / "in" / name, [{"text": name}])
    return tmp_path / "in"


def test_a_folder_a_pattern_and_a_file_name_their_files_in_order_and_once(folder):
    def names(*entries):
        return [path.name for path in find_files(entries, "sources")]

    os.mkfifo(folder / "pipe.jsonl")
    assert names(str(folder)) == ["a.jsonl", "b.jsonl.gz", "c.JSON"]
    assert names(f"{folder}/*.gz", str(folder)) == ["b.jsonl.gz", "a.jsonl", "c.JSON"]
    assert names(str(folder / "a.jsonl")) == ["a.jsonl"]
    for entry in ("none.jsonl", "*.gz2", "notes.txt"):
        with pytest.raises(UserError, match=f"sources: .*{entry[1:]}: no files that end in"):
            find_files([str(folder / entry)], "sources")
