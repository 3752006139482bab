"""The cache of what `datasets` read is believed only where its checksums agree."""

from __future__ import annotations

import logging

import pytest

from src.data.cached_rows import cached_rows
from src.data.corpus import load_corpus
from tests.data.test_tokenise import damaged

TEXTS = [f"line {i} of a corpus" for i in range(50)]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def texts(source, cache):
    return list(load_corpus(source, "text", cache).texts["text"])


def rows(source, cache):
    found = cached_rows(cache, "text", data_files=[str(source)], split="train")
    return list(found["text"])


def cached(cache, name):
    return next((cache / "datasets").rglob(name))


@pytest.mark.parametrize("how", ["flipped", "cut", "empty"])
@pytest.mark.parametrize(
    ("read", "name"),
    [
        (texts, "*.arrow"),
        (texts, "*.sha256"),
        (rows, "*.arrow"),
        (rows, "dataset_info.json"),
        (rows, "digests.json"),
    ],
)
def test_a_damaged_file_is_made_again_with_a_warning(how, read, name, source, tmp_path, caplog):
    cache = tmp_path / "cache"
    assert read(source, cache) == TEXTS
    file = cached(cache, name)
    file.write_bytes(damaged(file.read_bytes(), how))
    caplog.set_level(logging.WARNING)
    assert read(source, cache) == TEXTS
    assert caplog.text.count("its source is read again") == 1
    caplog.clear()
    assert read(source, cache) == TEXTS
    assert "read again" not in caplog.text


def test_a_change_that_reads_well_is_seen(source, tmp_path):
    cache = tmp_path / "cache"
    texts(source, cache)
    file = cached(cache, "*.arrow")
    file.write_bytes(file.read_bytes().replace(b"line 7 of", b"word 7 of"))
    assert texts(source, cache) == TEXTS


def test_a_cache_that_was_not_finished_is_made_again(source, tmp_path, caplog):
    cache = tmp_path / "cache"
    texts(source, cache)
    cached(cache, "*.sha256").unlink()
    file = cached(cache, "*.arrow")
    file.write_bytes(b"")
    assert texts(source, cache) == TEXTS
    assert "read again" not in caplog.text


def test_files_are_read_once(source, tmp_path):
    cache = tmp_path / "cache"
    texts(source, cache)
    before = cached(cache, "*.arrow").stat()
    texts(source, cache)
    after = cached(cache, "*.arrow").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_source_that_has_changed_is_read_again(source, tmp_path):
    cache = tmp_path / "cache"
    texts(source, cache)
    source.write_text("other\n")
    assert texts(source, cache) == ["other"]
    file = next(f for f in (cache / "datasets").rglob("*.arrow") if b"other" in f.read_bytes())
    file.write_bytes(file.read_bytes().replace(b"other", b"outer"))
    assert texts(source, cache) == ["other"]
