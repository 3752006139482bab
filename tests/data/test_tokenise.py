"""Tokenised text: what is in it, that it is made once, and that cutting changes no token kept."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest

from tartan.data.tokenise import tokenise
from tartan.encoders.tiny import letter_pair_tokenizer

TEXTS = ["apple", "", "river and stone", "  \t ", "a b c d e f g h i j", "x"]


def rows(texts=TEXTS, **columns):
    return datasets.Dataset.from_dict({"text": list(texts), **columns})


def made(texts, tokenizer, length, cache, *, name="f", keep_blank=False):
    encoder = SimpleNamespace(tokenizer=tokenizer, uses_token_types=True)
    return tokenise(texts, name, encoder, length, cache, keep_blank=keep_blank)


def files(cache):
    return {p.name: p.stat().st_mtime_ns for p in (cache / "tokenised").glob("*.arrow")}


@pytest.fixture
def letters():
    return letter_pair_tokenizer()


def test_texts_become_ids_between_special_tokens_without_the_blank_ones(letters, tmp_path):
    texts = rows(label=[0, 1, 2, 3, 4, 5], unseen=[True, False] * 3)
    tokens = made(texts, letters, 64, tmp_path)
    assert tokens["input_ids"][:] == [letters(text)["input_ids"] for text in TEXTS if text.strip()]
    assert tokens["label"][:] == [0, 2, 4, 5]
    assert set(tokens.column_names) == {"input_ids", "label", "unseen"}
    (file,) = tokens.cache_files
    assert Path(file["filename"]).parent == tmp_path / "tokenised"
    assert len(made(rows(["a", None, "b"]), letters, 64, tmp_path, name="g")) == 2
    assert len(made(rows(["", " "]), letters, 64, tmp_path, name="h")) == 0


def test_a_blank_labelled_text_stays_as_special_tokens(letters, tmp_path):
    tokens = made(rows(["a", ""], label=[0, 1]), letters, 64, tmp_path, keep_blank=True)
    assert tokens["label"][:] == [0, 1]
    assert tokens["input_ids"][1] == [letters.cls_token_id, letters.sep_token_id]


def test_a_texts_length_is_cut_and_the_tokenizer_left_as_it_was(letters, tmp_path):
    tokens = made(rows(), letters, 5, tmp_path)
    assert max(map(len, tokens["input_ids"])) == 5
    assert letters.backend_tokenizer.truncation is None  # it is saved with a classifier


def test_the_second_call_finds_the_file_whatever_state_the_tokenizer_is_in(letters, tmp_path):
    first = made(rows(), letters, 64, tmp_path)
    before = files(tmp_path)
    other = letter_pair_tokenizer()
    other(["a", "b c"], padding=True, truncation=True, max_length=3)
    second = made(rows(), other, 64, tmp_path)
    assert len(before) == 1
    assert files(tmp_path) == before
    assert first["input_ids"][:] == second["input_ids"][:]


def test_another_length_text_or_tokenizer_gives_another_file(letters, tmp_path):
    other = letter_pair_tokenizer()
    other.add_tokens(["river"])
    for tokenizer, length, name in (
        (letters, 64, "f"), (letters, 32, "f"), (letters, 64, "g"), (other, 64, "f")
    ):  # fmt: skip
        made(rows(), tokenizer, length, tmp_path, name=name)
    letters.truncation_side = "left"
    made(rows(), letters, 64, tmp_path)
    assert len(files(tmp_path)) == 5


def _total(cache, barrier=None):
    if barrier is not None:
        barrier.wait(timeout=60)
    texts = [f"number {i} of the list" for i in range(3000)]
    tokens = made(rows(texts), letter_pair_tokenizer(), 64, cache)
    return sum(map(len, tokens["input_ids"]))


def test_processes_share_the_cache(tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # imports the libraries once, not three times
    with context.Manager() as manager, context.Pool(3) as pool:
        barrier = manager.Barrier(3)
        totals = pool.starmap(_total, [(tmp_path, barrier)] * 3, chunksize=1)
    assert len(files(tmp_path)) == 1
    assert {*totals} == {_total(tmp_path)}
