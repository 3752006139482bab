"""Which files an entry names, and when a file is still what it was."""

from __future__ import annotations

import os

import fsspec
import pytest

from tartan.corpus.sources import find_sources
from tartan.errors import UserError
from tests.corpus.made_up import write_shard


@pytest.fixture
def folder(tmp_path):
    for name in ("b.jsonl.gz", "a.jsonl", "c.JSON", "notes.txt"):
        write_shard(tmp_path / "in" / name, [{"text": name}])
    return tmp_path / "in"


def names(entries):
    return [source.name.rsplit("/", 1)[-1] for source in find_sources(entries, "sources")]


def test_a_folder_a_pattern_and_a_file_name_their_files_in_order_and_once(folder):
    os.mkfifo(folder / "pipe.jsonl")
    assert names([str(folder)]) == ["a.jsonl", "b.jsonl.gz", "c.JSON"]
    assert names([f"{folder}/*.gz", str(folder)]) == ["b.jsonl.gz", "a.jsonl", "c.JSON"]
    assert names([str(folder / "a.jsonl")]) == ["a.jsonl"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("none.jsonl", "sources: cannot list .*none.jsonl"),
        ("*.gz2", "no files that end in"),
        ("notes.txt", "notes.txt: no files that end in .jsonl"),
    ],
)
def test_an_entry_that_names_no_articles_is_an_error(folder, entry, message):
    with pytest.raises(UserError, match=message):
        find_sources([str(folder / entry)], "sources")


def test_files_at_an_address_are_listed_with_their_version(folder):
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pipe("/corpus/b.jsonl", b"{}\n")
    memory.pipe("/corpus/a.jsonl.gz", b"x")
    for entry in ("memory://corpus", "memory://corpus/*.jsonl*"):
        a, b = find_sources([entry], "sources")
        assert (a.name, b.name) == ("memory:///corpus/a.jsonl.gz", "memory:///corpus/b.jsonl")
        assert (a.size, b.size) == (1, 3)
    before = b.description()
    memory.pipe("/corpus/b.jsonl", b"[]\n")
    assert find_sources(["memory://corpus/b.jsonl"], "sources")[0].description() != before


def test_a_file_is_known_by_its_content_where_its_time_has_changed(folder):
    path = folder / "a.jsonl"
    (source,) = find_sources([str(path)], "sources")
    known = source.description()
    assert [place for place, _ in source.lines()] == [f"{path}, line 1"]
    os.utime(path, ns=(1, 1))
    assert find_sources([str(path)], "sources")[0].description() == known
    path.write_bytes(path.read_bytes().replace(b"a", b"b"))
    assert find_sources([str(path)], "sources")[0].description() != known
    with pytest.raises(UserError, match=r"a\.jsonl was written to while it was read"):
        list(source.lines())
