"""Found indices are stored once, also where several processes ask for them at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np

from src.data.cached_file import cached_indices


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


def test_a_damaged_file_is_made_again_with_a_warning(tmp_path, caplog):
    assert found_in(tmp_path, "key") == 499500
    (tmp_path / "key.npy").write_bytes(b"")
    for said in (1, 0):
        caplog.clear()
        assert found_in(tmp_path, "key") == 499500
        assert caplog.text.count("is looked for again") == said
