"""The cache of what `datasets` read is believed only where its checksums agree."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from tartan.data.cache import cached_indices, cached_rows
from tartan.data.corpus import load_corpus
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


def test_another_revision_that_was_not_read_to_its_end_changes_nothing(source, tmp_path, caplog):
    cache = tmp_path / "cache"
    rows(source, cache)
    left = cached(cache, "*.arrow").with_name("left.arrow")
    left.write_bytes(b"begun")
    assert rows(source, cache) == TEXTS
    assert left.exists()
    assert "read again" not in caplog.text


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


def found_in(folder, key):
    return cached_indices(folder, key, lambda: np.arange(1000)).sum()


def test_what_is_stored_is_not_computed_again(tmp_path):
    calls = []

    def find():
        calls.append(1)
        return np.array([3, 1])

    for _ in range(2):
        assert cached_indices(tmp_path / "new", "key", find).tolist() == [3, 1]
    assert len(calls) == 1


def test_processes_that_ask_at_once_get_the_same(tmp_path):
    keys = [f"key{number}" for number in range(40)]
    with get_context("spawn").Pool(3) as pool, ThreadPoolExecutor(3) as threads:
        asked = [
            threads.submit(pool.starmap, found_in, [(tmp_path, key) for key in keys], 1)
            for _ in range(3)
        ]
        assert all(answer.result() == [499500] * len(keys) for answer in asked)


def test_damaged_indices_are_found_again_with_a_warning(tmp_path, caplog):
    assert found_in(tmp_path, "key") == 499500
    (tmp_path / "key.npy").write_bytes(b"")
    for said in (1, 0):
        caplog.clear()
        assert found_in(tmp_path, "key") == 499500
        assert caplog.text.count("is looked for again") == said
