"""Tokenised text: what is in it, and that it is made once."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import datasets
import pytest

from tartan.data.remarks import Truncation
from tartan.data.tokenise import tokenise, truncation_of
from tartan.encoders.tiny import letter_pair_tokenizer

TEXTS = ["apple", "", "river and stone", "  \t ", "a b c d e f g h i j", "x"]


def rows(texts=TEXTS, **columns):
    return datasets.Dataset.from_dict({"text": list(texts), **columns})


def files(cache):
    return {p.name: p.stat().st_mtime_ns for p in (cache / "tokenised").glob("*.arrow")}


@pytest.fixture
def tokenizer():
    return letter_pair_tokenizer()


def test_texts_become_ids_between_special_tokens(tokenizer, tmp_path):
    ids = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=False)["input_ids"][:]
    assert ids == [tokenizer(text)["input_ids"] for text in TEXTS if text.strip()]
    assert all(i[0] == tokenizer.cls_token_id and i[-1] == tokenizer.sep_token_id for i in ids)


def test_long_texts_are_cut_and_keep_their_special_tokens(tokenizer, tmp_path):
    ids = tokenise(rows(), "f", tokenizer, 5, tmp_path, keep_blank=False)["input_ids"][:]
    assert max(map(len, ids)) == 5
    assert all(i[0] == tokenizer.cls_token_id and i[-1] == tokenizer.sep_token_id for i in ids)


def test_what_is_cut_off_is_counted_and_found_again(tokenizer, tmp_path):
    for _ in range(2):
        tokens = tokenise(rows(), "f", tokenizer, 5, tmp_path, keep_blank=False)
        assert truncation_of(tokens) == _counted(tokenizer, 5)
    whole = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=True)
    lost = truncation_of(whole)
    assert (lost.texts, lost.cut, lost.lost) == (len(TEXTS), 0, 0)
    blank = tokenise(rows([""]), "g", tokenizer, 64, tmp_path, keep_blank=False)
    assert truncation_of(blank) == Truncation(0, 0, 0, 0)


def _counted(tokenizer, max_length):
    """The slow way: each text tokenised whole."""
    lengths = [len(tokenizer(text)["input_ids"]) - 2 for text in TEXTS if text.strip()]
    over = [length - (max_length - 2) for length in lengths if length > max_length - 2]
    return Truncation(len(lengths), len(over), sum(lengths), sum(over))


def test_blank_texts_are_left_out_with_their_other_columns(tokenizer, tmp_path):
    texts = rows(label=[0, 1, 2, 3, 4, 5], unseen=[True, False] * 3)
    tokens = tokenise(texts, "f", tokenizer, 64, tmp_path, keep_blank=False)
    assert tokens["label"][:] == [0, 2, 4, 5]
    assert tokens["unseen"][:] == [True, True, True, False]
    assert set(tokens.column_names) == {"input_ids", "label", "unseen"}


def test_a_text_that_is_none_counts_as_blank(tokenizer, tmp_path):
    assert (
        len(tokenise(rows(["a", None, "b"]), "f", tokenizer, 64, tmp_path, keep_blank=False)) == 2
    )


def test_blank_texts_alone_give_no_rows(tokenizer, tmp_path):
    assert len(tokenise(rows(["", " "]), "f", tokenizer, 64, tmp_path, keep_blank=False)) == 0


def test_texts_in_several_chunks_stay_in_order(tokenizer, tmp_path):
    texts = [f"number {i}" if i % 3 else "" for i in range(2500)]
    tokens = tokenise(
        rows(texts, label=list(range(2500))), "f", tokenizer, 64, tmp_path, keep_blank=False
    )
    assert tokens["label"][:] == [i for i in range(2500) if i % 3]


def test_the_second_call_finds_the_file(tokenizer, tmp_path):
    first = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=False)
    before = files(tmp_path)
    second = tokenise(rows(), "f", letter_pair_tokenizer(), 64, tmp_path, keep_blank=False)
    assert files(tmp_path) == before
    assert len(before) == 1
    assert first["input_ids"][:] == second["input_ids"][:]


def test_the_tokenizer_of_an_earlier_call_is_found_in_whatever_state_it_is(tokenizer, tmp_path):
    tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=False)
    before = files(tmp_path)
    tokenizer(["a", "b c"], padding=True, truncation=True, max_length=3)
    tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=False)
    assert files(tmp_path) == before


def test_another_length_text_or_tokenizer_gives_another_file(tokenizer, tmp_path):
    other = letter_pair_tokenizer()
    other.add_tokens(["river"])
    tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=False)
    tokenise(rows(), "f", tokenizer, 32, tmp_path, keep_blank=False)
    tokenise(rows(), "g", tokenizer, 64, tmp_path, keep_blank=False)
    tokenise(rows(), "f", other, 64, tmp_path, keep_blank=False)
    assert len(files(tmp_path)) == 4


def test_the_side_that_is_cut_gives_another_file(tokenizer, tmp_path):
    for side in ("right", "left"):
        tokenizer.truncation_side = side
        made = tokenise(rows(), "f", tokenizer, 5, tmp_path, keep_blank=True)
        cut = [tokenizer(text, truncation=True, max_length=5)["input_ids"] for text in TEXTS]
        assert made["input_ids"][:] == cut
    assert len(files(tmp_path)) == 2


def test_special_tokens_that_are_split_give_another_file(tokenizer, tmp_path):
    texts = datasets.Dataset.from_dict({"text": ["a [MASK] b"]})
    found = []
    for split in (False, True):
        tokenizer.split_special_tokens = split
        made = tokenise(texts, "f", tokenizer, 32, tmp_path, keep_blank=True)
        found.append(made["input_ids"][0])
        assert found[-1] == tokenizer("a [MASK] b")["input_ids"]
    assert found[0] != found[1]
    tokenizer.split_special_tokens = False


def test_the_result_is_memory_mapped_from_the_cache(tokenizer, tmp_path):
    tokens = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=False)
    (file,) = tokens.cache_files
    assert Path(file["filename"]).parent == tmp_path / "tokenised"


def test_nothing_else_is_left_in_the_cache(tokenizer, tmp_path):
    tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=False)
    left = {path.suffix for path in (tmp_path / "tokenised").iterdir()}
    assert left <= {".arrow", ".json", ".lock", ".sha256"}


def _meet(barrier):
    barrier.wait(timeout=60)


def _total(cache):
    texts = [f"number {i} of the list" for i in range(3000)]
    tokens = tokenise(rows(texts), "shared", letter_pair_tokenizer(), 64, cache, keep_blank=False)
    return sum(map(len, tokens["input_ids"]))


def test_processes_share_the_cache(tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # imports the libraries once, not four times
    with context.Pool(4, _meet, [context.Barrier(4)]) as pool:
        totals = pool.map(_total, [tmp_path] * 4, chunksize=1)
    assert len(set(totals)) == 1
    assert len(files(tmp_path)) == 1
    assert totals[0] == _total(tmp_path)


def test_a_blank_labelled_text_stays_as_special_tokens(tmp_path):
    tokenizer = letter_pair_tokenizer()
    tokens = tokenise(rows(["a", ""], label=[0, 1]), "f", tokenizer, 64, tmp_path, keep_blank=True)
    assert tokens["label"][:] == [0, 1]
    assert tokens["input_ids"][1] == [tokenizer.cls_token_id, tokenizer.sep_token_id]


def damaged(content, how):
    """`content` with one low bit changed, cut in half, or gone."""
    if how == "flipped":
        middle = len(content) // 2
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    return {"cut": content[: len(content) // 2], "empty": b""}[how]


@pytest.mark.parametrize("how", ["flipped", "cut", "empty"])
@pytest.mark.parametrize("ending", [".arrow", ".json", ".arrow.sha256", ".json.sha256"])
def test_a_damaged_file_is_made_again_with_a_warning(how, ending, tokenizer, tmp_path, caplog):
    whole = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=True)
    ids, cuts = whole["input_ids"][:], truncation_of(whole)
    (file,) = (path for path in (tmp_path / "tokenised").iterdir() if path.name.endswith(ending))
    file.write_bytes(damaged(file.read_bytes(), how))
    for said in (1, 0):  # once: then it is whole
        caplog.clear()
        again = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=True)
        assert again["input_ids"][:] == ids
        assert truncation_of(again) == cuts
        assert [r.getMessage().count("tokenised again") for r in caplog.records] == [1] * said


def test_every_bit_of_the_file_counts(tokenizer, tmp_path):
    tokens = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=True)
    ids = tokens["input_ids"][:]
    path = Path(tokens.cache_files[0]["filename"])
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 25)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 2]) + content[at + 1 :])
        again = tokenise(rows(), "f", tokenizer, 64, tmp_path, keep_blank=True)
        assert again["input_ids"][:] == ids


def test_of_long_pairs_no_more_is_cut_by_the_tokenizer_than_is_kept(
    tokenizer, tmp_path, monkeypatch
):
    """The memory that its cutting takes grows with the square of a pair's length."""
    first, second = "apple and river " * 400, "stone " * 1500
    expected = tokenizer(first, second, truncation=True, max_length=16)["input_ids"]
    cut, original = [], type(tokenizer).__call__

    def watched(self, *texts, **options):
        if options.get("truncation"):
            cut.append(sum(len(text) for column in texts for text in column))
        return original(self, *texts, **options)

    monkeypatch.setattr(type(tokenizer), "__call__", watched)
    pairs = rows([first], text_pair=[second])
    tokens = tokenise(pairs, "f", tokenizer, 16, tmp_path, keep_blank=True)
    assert tokens["input_ids"][:] == [expected]
    assert truncation_of(tokens).cut == 1
    assert 0 < sum(cut) < 1000
