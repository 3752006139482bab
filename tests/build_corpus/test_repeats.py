"""Exact repeats over all parts, against a set of all texts, in ranges of any size."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from src.build_corpus import digests, repeats
from src.build_corpus.digests import DigestWriter
from src.build_corpus.layout import Building, read_json


def written(building, parts):
    """Digests of parts of texts, in runs; returns the number of runs of each part."""
    building.folder.mkdir(parents=True, exist_ok=True)
    runs = []
    for index, texts in enumerate(parts):
        writer, run = DigestWriter(), 0
        for text in texts:
            if writer.add(text.encode()):
                writer.write(building.keys(index, run))
                run += 1
        if len(writer):
            writer.write(building.keys(index, run))
            run += 1
        runs.append(run)
    return runs


def naive(parts):
    seen, dropped = set(), []
    for texts in parts:
        dropped.append([])
        for text in texts:
            dropped[-1].append(text in seen)
            seen.add(text)
    return dropped


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    parts=st.lists(
        st.lists(st.sampled_from("abcdefghijklmnop"), max_size=40), min_size=1, max_size=5
    ),
    run=st.integers(1, 50),
    at_once=st.integers(1, 50),
)
def test_repeats_are_those_that_a_set_of_all_texts_finds(parts, run, at_once, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "RUN", run)
        patch.setattr(repeats, "AT_ONCE", at_once)
        building = Building(tmp_path_factory.mktemp("corpus"))
        runs = written(building, parts)
        repeats.mark_repeats(building, [len(texts) for texts in parts], runs)
    found = [np.load(building.dropped(index)).tolist() for index in range(len(parts))]
    assert found == naive(parts)
    assert read_json(building.repeats) == [sum(dropped) for dropped in found]


def test_texts_whose_digests_share_a_half_are_not_repeats(tmp_path):
    """The first half decides the range; both have to be equal."""
    building = Building(tmp_path)
    building.folder.mkdir()
    keys = np.array([[7, 7, 7, 9], [1, 2, 1, 1], [3, 0, 1, 2]], dtype=np.uint64)
    digests.save_array(building.keys(0, 0), keys)
    repeats.mark_repeats(building, [4], [1])
    assert np.load(building.dropped(0)).tolist() == [False, False, False, True]


def test_memory_does_not_grow_with_the_number_of_examples(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "RUN", 5_000)
    monkeypatch.setattr(repeats, "AT_ONCE", 10_000)
    peaks = []
    for parts in (4, 16):
        building = Building(tmp_path / str(parts))
        texts = [[f"{part} {n}" for n in range(10_000)] for part in range(parts)]
        runs = written(building, texts)
        del texts
        tracemalloc.start()
        repeats.mark_repeats(building, [10_000] * parts, runs)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
