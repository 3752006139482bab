"""What took long to make is made once, however many ask for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

from tartan.data.corpus import cached_file


def content_of(path):
    return cached_file(path, lambda scratch: scratch.write_bytes(bytes(1000))).read_bytes()


def test_processes_that_ask_at_once_get_the_same(tmp_path):
    files = [tmp_path / f"file{number}" for number in range(40)]
    with get_context("spawn").Pool(3) as pool, ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(pool.map, content_of, files, 1) for _ in range(3)]
        assert all(answer.result() == [bytes(1000)] * len(files) for answer in asked)


def test_an_interrupted_writer_leaves_nothing(tmp_path):
    def interrupted(scratch):
        scratch.write_bytes(b"half")
        raise KeyboardInterrupt

    for write in (interrupted, lambda scratch: scratch.write_bytes(b"whole")):
        try:
            assert cached_file(tmp_path / "new" / "file", write).read_bytes() == b"whole"
        except KeyboardInterrupt:
            assert [p.suffix for p in (tmp_path / "new").iterdir()] == [".lock"]
