"""Which texts of a corpus are taken: a part, the nearest by BM25, none that are held out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data import text_auxiliary
from tartan.data.corpus import Corpus
from tartan.data.prepared import AuxiliaryContext, AuxiliarySettings
from tartan.data.text_auxiliary import TextAuxiliary, choose_part, nearest
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM
from tests.data.test_file_task import task_of

HELD = " ".join(f"w{i}" for i in range(20))


def labelled(texts):
    return [(text, "AB"[place % 2]) for place, text in enumerate(texts)]


def test_parts_are_nested_seeded_and_told_apart():
    texts = [f"text {i}" if i % 9 else "" for i in range(100)]  # blank rows count
    task = SimpleNamespace(train=range(10))
    corpus = Corpus("made up", datasets.Dataset.from_dict({"text": texts}), "abc")
    chosen = {
        (size, seed): choose_part(corpus, task, size, seed, "size", None)
        for size in (1, 5)
        for seed in (0, 1)
    }
    assert [len(part.texts) for part in chosen.values()] == [10, 10, 50, 50]
    assert set(chosen[1, 0].texts["text"]) <= set(chosen[5, 0].texts["text"])
    assert chosen[1, 0].texts["text"][:] != chosen[1, 1].texts["text"][:]
    assert len({corpus.fingerprint, *(part.fingerprint for part in chosen.values())}) == 5


@pytest.fixture
def around(tmp_path):
    """The surroundings of a task whose dev and test texts are known."""
    texts = (["a b c", HELD, "d e f"], [HELD, "v w"], ["x y", "z z"])
    task = task_of(tmp_path, *map(labelled, texts)).load()
    return AuxiliaryContext(task, TinyEncoder().load(), AuxiliarySettings("all"), tmp_path)


@pytest.fixture
def domain(tmp_path):
    lines = ["fine one", f"a line with {HELD}", "X Y", "fine two", "v w and more"]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    return TextAuxiliary(objective=MaskedLM(), path=str(tmp_path / "corpus.txt"))


def test_auxiliary_text_is_decontaminated_where_that_is_asked_for(around, domain):
    found = domain.examples("dapt", around)
    assert (len(found.rows), found.decontaminated) == (5, None)
    asked = replace(around, options=AuxiliarySettings("all", decontaminate=True))
    for _ in range(2):  # found, then read from the cache
        clean = domain.examples("dapt", asked)
        assert clean.texts["text"][:] == ["fine one", "fine two", "v w and more"]
        assert (len(clean.rows), clean.decontaminated) == (3, 2)
    assert clean.fingerprint != found.fingerprint
    own = TextAuxiliary(objective=MaskedLM(), text="task").examples("tapt", asked)
    assert own.texts["text"][:] == ["a b c", "d e f"]
    assert own.decontaminated == 1


def told(caplog):
    messages = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return [message for message in messages if "dev and test texts" in message]


def test_the_number_of_held_out_texts_is_said(around, domain, caplog, monkeypatch):
    domain.examples("dapt", around)
    (message,) = told(caplog)
    assert message.startswith("auxiliary dapt: 1 dev and test texts are in ")
    clean = AuxiliarySettings("all", decontaminate=True)
    domain.examples("dapt", replace(around, options=clean))
    TextAuxiliary(objective=MaskedLM(), text="task").examples("tapt", around)
    monkeypatch.setattr(text_auxiliary, "_MOST_WARNED", 4)  # a larger corpus is left to the check
    domain.examples("dapt", around)
    assert told(caplog) == []


def test_the_texts_of_the_task_s_words_come_first_and_each_query_in_turn():
    texts = ["stars and moons", "a protein binds", "stars", "of nothing", "the protein of a cell"]
    queries = ["protein", "stars"]
    order = nearest(texts, queries, 5, 0).tolist()
    assert set(order[:2]) == {1, 2}
    assert set(order[2:4]) == {0, 4}
    assert order[4] == 3


words = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8).map(" ".join)


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
    task = task_of(tmp_path, *map(labelled, (train, ["v", "w"], ["protein " * 13, "z"]))).load()
    lines = [f"of stars {i}" for i in range(20)] + ["protein " * 20]
    lines += ["one protein", "one cell", "protein and cell", "cells"]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))

    def call(size, **options):
        shared = AuxiliarySettings(size)
        around = AuxiliaryContext(task, TinyEncoder().load(), shared, tmp_path / "cache")
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
