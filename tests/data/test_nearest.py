"""The nearest texts are those of BM25 as it is written down, nested by size, always the same."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.auxiliary import AuxiliaryContext
from tartan.data.file_task import FileTask
from tartan.data.nearest import nearest
from tartan.data.overlap import words_of
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM


def bm25(texts, query, k1=1.5, b=0.75):
    """Scores as Lucene has them (Robertson's, with an idf that is never negative)."""
    words = [words_of(text) for text in texts]
    mean = sum(map(len, words)) / len(words)
    scores = []
    for own in words:
        counts, score = Counter(own), 0.0
        for word in query:
            having = sum(word in other for other in words)
            idf = math.log(1 + (len(words) - having + 0.5) / (having + 0.5))
            score += idf * counts[word] / (counts[word] + k1 * (1 - b + b * len(own) / mean))
        scores.append(score)
    return np.array(scores)


def test_the_texts_of_the_task_s_words_come_first_and_each_query_in_turn():
    texts = ["stars and moons", "a protein binds", "stars", "of nothing", "the protein of a cell"]
    queries = ["protein", "stars"]
    order = nearest(texts, queries, 5, 0).tolist()
    assert set(order[:2]) == {1, 2}
    assert set(order[2:4]) == {0, 4}
    assert order[4] == 3


def test_texts_that_share_no_word_come_last_in_an_order_of_the_seed():
    texts = [f"other{i}" for i in range(30)] + ["protein"]
    orders = [nearest(texts, ["protein"], 31, seed).tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert all(order[0] == 30 and sorted(order) == list(range(31)) for order in orders)


words = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=50)
@given(st.lists(words, min_size=3, max_size=12), words)
def test_a_query_ranks_by_bm25(texts, query):
    order = nearest(texts, [query], len(texts), 0)
    scores = bm25(texts, words_of(query))[order]
    assert np.all(np.diff(scores) <= 1e-5)


@settings(max_examples=50)
@given(st.lists(words, min_size=3, max_size=40), st.lists(words, min_size=1, max_size=3))
def test_a_smaller_choice_is_the_beginning_of_a_larger_one(texts, queries):
    whole = nearest(texts, queries, len(texts), 0).tolist()
    assert sorted(whole) == list(range(len(texts)))
    for count in range(1, len(texts)):
        assert nearest(texts, queries, count, 0).tolist() == whole[:count]


@pytest.fixture
def examples(tmp_path):
    train = ["a protein binds a cell", "the cell has a protein"]
    test = "protein " * 13
    for split, texts in (("train", train), ("dev", ["v", "w"]), ("test", [test, "z"])):
        rows = [json.dumps({"text": text, "label": "AB"[i]}) for i, text in enumerate(texts)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(rows))
    lines = [f"of stars {i}" for i in range(20)] + ["protein " * 20]
    lines += ["one protein", "one cell", "protein and cell", "cells"]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    paths = {split: str(tmp_path / f"{split}.jsonl") for split in ("train", "dev", "test")}
    task = FileTask("own", "macro_f1", 32, **paths).load()

    def call(size, **options):
        around = AuxiliaryContext(task, TinyEncoder().load(), 2, size, 0, tmp_path / "cache")
        path = str(tmp_path / "corpus.txt")
        return TextAuxiliary(objective=MaskedLM(), path=path, **options).examples("dapt", around)

    return call


def test_a_run_takes_the_nearest_texts_that_are_not_held_out(examples):
    for _ in range(2):  # found, then read from the cache
        found = examples(1.5, select="nearest")
        assert found.texts["text"][:] == ["one protein", "one cell", "protein and cell"]
        assert found.decontaminated == 1
    smaller = examples(1, select="nearest")
    assert set(smaller.texts["text"][:]) < set(found.texts["text"][:])
    assert smaller.fingerprint != found.fingerprint
    assert len(examples("all", select="nearest").rows) == 24
    assert len(examples("all").rows) == 25


def test_more_texts_than_there_are_is_an_error(examples):
    with pytest.raises(UserError, match=r"asks for 200 examples .* has 24"):
        examples(100, select="nearest")
