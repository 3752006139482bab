"""Corpora in files of every kind, in folders and globs; and the choice of a part of them."""

from __future__ import annotations

import gzip
import json
import logging
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartan.data.corpus import load_corpus
from tartan.errors import UserError

TEXTS = ["first line", "", "caf\u00e9, third", "last"]


def as_lines(texts):
    return "".join(text + "\n" for text in texts).encode()


def as_jsonl(texts, column="text"):
    return "".join(
        json.dumps({column: text, "id": i}) + "\n" for i, text in enumerate(texts)
    ).encode()


def as_csv(texts):
    return ("id;text\n" + "".join(f'{i};"{text}"\n' for i, text in enumerate(texts))).encode()


@pytest.fixture
def load(tmp_path):
    def call(path, column="text"):
        return load_corpus(path, column, tmp_path / "cache")

    return call


def texts_of(corpus):
    return list(corpus.texts["text"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.v1.TXT", as_lines(TEXTS)),
        ("marked.txt", b"\xef\xbb\xbf" + as_lines(TEXTS)),
        ("c.txt.gz", gzip.compress(as_lines(TEXTS))),
        ("c.txt.zst", pa.Codec("zstd").compress(as_lines(TEXTS), asbytes=True)),
        ("c.jsonl", as_jsonl(TEXTS)),
        ("part [1].txt", as_lines(TEXTS)),
        ("c.CSV.gz", gzip.compress(as_csv(TEXTS))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_gives_its_texts_in_order(name, content, load, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    corpus = load(path)
    assert texts_of(corpus) == TEXTS
    assert corpus.source == str(path)
    assert corpus.texts.column_names == ["text"]
    assert corpus.texts.cache_files


def test_parquet_gives_its_texts(load, tmp_path):
    pq.write_table(pa.table({"text": pa.array(TEXTS, pa.large_string())}), tmp_path / "c.parquet")
    assert texts_of(load(tmp_path / "c.parquet")) == TEXTS


def test_another_column_can_be_named_and_has_another_fingerprint(load, tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"title": "short", "body": null}\n{"title": "a", "body": "b"}\n')
    title, body = load(path, "title"), load(path, "body")
    assert (texts_of(title), texts_of(body)) == (["short", "a"], ["", "b"])
    assert title.fingerprint != body.fingerprint
    shutil.copy(path, tmp_path / "c.txt")
    assert load(tmp_path / "c.txt").fingerprint not in (title.fingerprint, body.fingerprint)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.txt", b"", "holds no texts"),
        ("c.pdf", b"a,b\n", "the name must end in .csv"),
        ("c.jsonl", as_jsonl(["a"], "body"), "has no column='text', only 'body', 'id'"),
        ("c.jsonl", b'{"text": ["a", "b"]}\n', "line 1: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_used_is_an_error_of_one_line(name, content, message, load, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


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
    pq.write_table(pa.table({"text": ["parquet"]}), texts / "p.parquet")
    (texts / ".hidden" / "h.txt").write_text("hidden\n")
    (texts / "config.json").write_text("{}")
    return texts


TEXT = ["a one", "", "x one", "x two", "c one", "c two"]
OTHERS = ["parquet", "json", "other fields"]


def test_a_folder_gives_all_its_texts_in_the_order_of_their_names(folder, load, caplog):
    with caplog.at_level(logging.WARNING):
        assert texts_of(load(folder)) == TEXT + OTHERS
    assert [r.getMessage() for r in caplog.records] == [f"corpus {folder}: 2 files are not text"]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("*.txt", ["a one", "", "c one", "c two"]),
        ("**/*.txt*", TEXT),
        ("[c]*.txt", ["c one", "c two"]),
        ("b/*", ["x one", "x two"]),
    ],
)
def test_a_glob_gives_the_files_that_it_matches(pattern, texts, folder, load):
    assert texts_of(load(folder / pattern)) == texts


def test_the_fingerprint_is_that_of_all_files_and_not_of_where_they_lie(folder, load, tmp_path):
    first = load(folder).fingerprint
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    assert load(moved).fingerprint == first
    (moved / "b" / "empty.txt").write_text("no more\n")
    assert load(moved).fingerprint != first


@pytest.mark.parametrize("place", ["stolen.txt", "b/stolen.txt"])
def test_a_link_out_of_a_folder_is_not_read(place, folder, load, tmp_path):
    (tmp_path / "secret.txt").write_text("secret\n")
    (folder / place).symlink_to(tmp_path / "secret.txt")
    with pytest.raises(UserError, match=r"stolen\.txt is a link to elsewhere"):
        load(folder)
    (folder / place).unlink()
    (folder / place).symlink_to(folder / "c.txt")
    assert sorted(texts_of(load(folder))) == sorted([*TEXT, *OTHERS, "c one", "c two"])
