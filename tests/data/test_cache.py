"""What took long to make is made once, however many ask for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np

from tartan.data.cache import cached_indices


def found_in(folder, key):
    return cached_indices(folder, key, lambda: np.arange(1000)).sum()


def test_processes_that_ask_at_once_get_the_same(tmp_path):
    keys = [f"key{number}" for number in range(40)]
    with get_context("spawn").Pool(3) as pool, ThreadPoolExecutor(3) as threads:
        asked = [
            threads.submit(pool.starmap, found_in, [(tmp_path, key) for key in keys], 1)
            for _ in range(3)
        ]
        assert all(answer.result() == [499500] * len(keys) for answer in asked)


def test_an_interrupted_writer_leaves_nothing(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    for find in (interrupted, lambda: np.array([3, 1])):
        try:
            assert cached_indices(tmp_path / "new", "key", find).tolist() == [3, 1]
        except KeyboardInterrupt:
            assert not [*(tmp_path / "new").glob("*.npy*")]
