"""Corpora of many files: folders, globs, their order and what they are recognised by."""

from __future__ import annotations

import gzip
import json
import logging
import shutil

import pyarrow
import pyarrow.parquet
import pytest

from tartan.data.corpus import load_corpus
from tartan.data.corpus_files import texts_of as texts_in_table
from tartan.data.table.memory import MemoryTable
from tartan.errors import UserError
from tests.data.test_bad_files import not_utf8


@pytest.fixture
def folder(tmp_path):
    texts = tmp_path / "texts"
    (texts / "b").mkdir(parents=True)
    (texts / ".hidden").mkdir()
    (texts / "c.txt").write_text("c one\nc two\n")
    (texts / "a.txt").write_text("a one\n\n")
    (texts / "b" / "x.txt.gz").write_bytes(gzip.compress(b"x one\nx two"))
    (texts / "b" / "empty.txt").write_bytes(b"")
    (texts / "notes.md").write_text("# Title\n\nA paragraph\nof two lines.")
    (texts / "r.jsonl").write_text(json.dumps({"text": "json", "id": 1}) + "\n")
    (texts / "s.jsonl").write_text(json.dumps({"text": "other fields", "by": "me"}) + "\n")
    pyarrow.parquet.write_table(pyarrow.table({"text": ["parquet"]}), texts / "p.parquet")
    (texts / ".hidden" / "h.txt").write_text("hidden\n")
    (texts / "config.json").write_text("{}")
    return texts


TEXT = ["a one", "", "x one", "x two", "c one", "c two"]
OTHERS = ["# Title", "A paragraph\nof two lines.", "json", "other fields", "parquet"]


def texts_of(path, cache, column="text"):
    return list(load_corpus(path, column, cache).texts["text"])


def test_a_folder_gives_all_its_texts_in_the_order_of_their_names(folder, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        assert texts_of(folder, tmp_path / "cache") == TEXT + OTHERS
    assert [r.getMessage() for r in caplog.records] == [
        f"corpus {folder}: files that are not read as text are left out: 1 .json"
    ]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("*.txt", ["a one", "", "c one", "c two"]),
        ("**/*.txt*", TEXT),
        ("[bc]*", ["c one", "c two"]),
        ("b/*", ["x one", "x two"]),
    ],
)
def test_a_glob_gives_the_files_that_it_matches(pattern, texts, folder, tmp_path):
    if pattern == "[bc]*":
        (folder / "config.json").unlink()
    assert texts_of(folder / pattern, tmp_path / "cache") == texts


def test_the_fingerprint_is_that_of_all_files_and_not_of_where_they_lie(folder, tmp_path):
    first = load_corpus(folder, "text", tmp_path / "cache").fingerprint
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    assert load_corpus(moved, "text", tmp_path / "cache").fingerprint == first
    (moved / "b" / "empty.txt").write_text("no more\n")
    assert load_corpus(moved, "text", tmp_path / "cache").fingerprint != first


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b/bad.txt", b"fine\ncaf\xe9\n", "b/bad.txt, line 2: not UTF-8"),
        ("z.txt.gz", b"no gzip\n", "z.txt.gz cannot be read: Not a gzipped file"),
        ("t.jsonl", b'{"text": "a"}\n{\n', "t.jsonl, line 2: not JSON"),
        (
            "t.jsonl",
            b'{"text": "a"}\n{"text": "\xe9"}\n',
            "t.jsonl, line 2: not UTF-8",
        ),
        ("t.parquet", not_utf8(), "t.parquet, rows 1 to 2: column 'text' is not UTF-8"),
        ("t.jsonl", b'{"words": "a"}\n', "t.jsonl has no field 'text', only 'words'"),
        ("t.jsonl", b'{"text": 5}\n', "t.jsonl, line 1: the field 'text' must be a string"),
    ],
)
def test_the_file_that_is_malformed_is_named(name, content, message, folder, tmp_path):
    (folder / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_corpus(folder, "text", tmp_path / "cache")
    assert str(caught.value).removeprefix("corpus ").startswith(f"{folder}/{message}")


def test_what_holds_no_texts_is_an_error(tmp_path):
    (tmp_path / "t").mkdir()
    with pytest.raises(
        UserError, match=r"t is a folder without \.txt, \.md, \.jsonl, \.ndjson, \.parquet"
    ):
        load_corpus(tmp_path / "t", "text", tmp_path / "cache")
    with pytest.raises(UserError, match=r"corpus .*\*\.txt matches no files"):
        load_corpus(tmp_path / "t" / "*.txt", "text", tmp_path / "cache")
    (tmp_path / "t" / "a.txt").write_bytes(b"")
    with pytest.raises(UserError, match=r"corpus .*t/a\.txt is empty"):
        load_corpus(tmp_path / "t", "text", tmp_path / "cache")
    (tmp_path / "t" / "a.pdf").write_bytes(b"")
    with pytest.raises(UserError, match=r"a\.pdf: the name must end in"):
        load_corpus(tmp_path / "t" / "*", "text", tmp_path / "cache")


@pytest.mark.parametrize("place", ["stolen.txt", "b/stolen.txt"])
def test_a_link_out_of_a_folder_is_not_read(place, folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret\n")
    (folder / place).symlink_to(tmp_path / "secret.txt")
    with pytest.raises(UserError, match=r"stolen\.txt is a link to a file elsewhere"):
        load_corpus(folder, "text", tmp_path / "cache")
    (folder / place).unlink()
    (folder / place).symlink_to(folder / "c.txt")
    texts = list(load_corpus(folder, "text", tmp_path / "cache").texts["text"])
    assert sorted(texts) == sorted([*TEXT, *OTHERS, "c one", "c two"])


def test_rows_without_a_text_are_warned_of(caplog):
    table = MemoryTable([{"text": "x"}, {"body": "y"}, {"text": None}], "dapt")
    assert list(texts_in_table(table, "text")) == ["x", "", ""]
    assert caplog.messages == ["corpus dapt: 2 of 3 rows have no text in 'text'; remove them"]
