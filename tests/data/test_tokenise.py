"""Tokenised text: what is in it, that it is made once, and that cutting changes no token kept."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tartan.data.tokenise import count_full, encode_texts, tokenise
from tartan.encoders.tiny import letter_pair_tokenizer
from tests.conftest import ROOT

TEXTS = ["apple", "", "river and stone", "  \t ", "a b c d e f g h i j", "x"]
PAGES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("a*.md"))]
LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


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


def test_texts_of_the_greatest_length_are_counted_also_from_the_cache(letters, tmp_path):
    longer = [text for text in TEXTS if len(letters(text)["input_ids"]) >= 5]
    for _ in range(2):
        tokens = made(rows(), letters, 5, tmp_path)
        assert max(map(len, tokens["input_ids"])) == 5
        assert count_full(tokens, 5) == len(longer)
    assert count_full(made(rows([""]), letters, 64, tmp_path, name="g"), 64) == 0
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


def trained(model, trainer, pre_tokenizer, normalizer=None):
    """A tokenizer of one of the usual kinds, trained on this project's own pages."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(PAGES, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>")
    mask = AddedToken("<mask>", lstrip=True, special=True, normalized=False)
    fast.add_special_tokens({"mask_token": mask})
    fast.add_tokens(["river bank", AddedToken("end", single_word=True, rstrip=True)])
    return fast


def byte_level(pre_tokenizer):
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    return trained(models.BPE(), trainer, pre_tokenizer, normalizers.NFC())


def sentence_piece(pre_tokenizer):
    trainer = trainers.UnigramTrainer(vocab_size=500, unk_token="<unk>", show_progress=False)
    normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    )
    return trained(models.Unigram(), trainer, pre_tokenizer, normalizer)


def word_piece():
    trainer = trainers.WordPieceTrainer(
        vocab_size=600, special_tokens=["<unk>", "<pad>"], show_progress=False
    )
    normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    model = models.WordPiece(unk_token="<unk>")
    return trained(model, trainer, pre_tokenizers.BertPreTokenizer(), normalizer)


def of_a_pattern():
    split = pre_tokenizers.Split(Regex(LLAMA), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(use_regex=False)])


KINDS = {
    "word piece": word_piece,
    "byte level of a pattern": lambda: byte_level(of_a_pattern()),
    "sentence piece of one word": lambda: sentence_piece(pre_tokenizers.Metaspace(split=False)),
    "letter pairs": letter_pair_tokenizer,
}
_KNOWN: dict[str, PreTrainedTokenizerFast] = {}
PIECES = st.sampled_from(
    ["the", "river", "river bank", "end", "don't", "WE'LL", "12345", "...", "?!\n\n", "\u00e9",
     "e\u0301", "\u0301", "\u304b\u3099", "\ufb01", "\u4e2d\u6587", "\u0130\u03a3", "\U0001f98a",
     "\U0001f469\u200d\U0001f4bb", "<mask>", "<mas", "k>", "[MASK]", "\u00ad", "\u200b", "\u2028",
     "x" * 150, "ab" * 40, "\x00", "\ufeff", "\u0e01\u0e33", "\ud55c\uad6d"]
)  # fmt: skip
GAPS = st.sampled_from(["", "", " ", " ", "  ", "\n", "\t", " " * 40, "\u00a0", "\r\n"])
MIXED = st.lists(st.tuples(PIECES, GAPS), min_size=1, max_size=60).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)


@pytest.fixture(params=KINDS, scope="module")
def tokenizer(request):
    return _KNOWN.setdefault(request.param, KINDS[request.param]())


@settings(max_examples=40)
@given(text=MIXED, times=st.integers(1, 6), length=st.integers(3, 40))
def test_the_first_tokens_stay_the_same(tokenizer, text, times, length):
    expected = tokenizer(text * times, truncation=True, max_length=length, verbose=False)
    assert encode_texts([[text * times]], tokenizer, length)["input_ids"] == [expected["input_ids"]]


@settings(max_examples=40)
@given(first=MIXED, second=MIXED, length=st.integers(8, 21))
@pytest.mark.parametrize("side", ["right", "left"])
def test_of_pairs_the_longer_text_is_cut_first(tokenizer, side, first, second, length):
    tokenizer.truncation_side = side
    expected = tokenizer(first, second, truncation=True, max_length=length, verbose=False)
    encoded = encode_texts([[first], [second]], tokenizer, length, token_types=True)
    tokenizer.truncation_side = "right"
    (ids,) = encoded["input_ids"]
    if max(len(first), len(second)) <= 16 * length or side == "left":
        assert ids == expected["input_ids"]
    assert len(ids) == len(encoded["token_type_ids"][0]) == len(expected["input_ids"]) <= length
