"""Texts that share words: held-out n-grams, and near-duplicates, as slow references find them."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data import overlap
from tartan.data.overlap import MIN_SIMILARITY, NgramIndex, nearest_duplicates, same_texts, words_of

HELD = " ".join(f"w{i}" for i in range(20))


def slow(held: list[str], texts: list[str], n: int) -> list[bool]:
    def grams(text):
        words = words_of(text)
        if len(words) < n:
            return {tuple(words)} - {()}
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    known = set().union(*map(grams, held))
    return [bool(grams(text) & known) for text in texts]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (HELD, True),
        (f"before {HELD} after", True),
        (" ".join(HELD.split()[3:16]), True),  # thirteen words
        (" ".join(HELD.split()[3:15]), False),  # twelve
        (HELD.upper().replace(" ", ",\n"), True),
        (HELD.replace("w10", "other"), False),
        ("A short, one!", True),
        ("a short one and more", False),
        ("...", False),
        (None, False),
    ],
)
def test_thirteen_words_in_a_row_or_a_whole_short_text(text, found):
    held = NgramIndex([HELD, "a short one", "", "!"])
    assert held.contaminates([text, "of its own"]).tolist() == [found, False]
    assert held.contaminates(["of its own", text]).tolist() == [False, found]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's A/B-tested, snake_case 3.5%", "it s a b tested snake_case 3 5"),
        ("हिन्दी में", "हिन्दी में"),
        ("한국어, 좋아요", "한국어 좋아요"),
        ("天气很好。ABC公司", "天 气 很 好 abc 公 司"),
        ("データを", "デ ー タ を"),
        ("ง่าย", "ง่ า ย"),
        ("ລາວ", "ລ າ ວ"),
        ("ខ្មែរ", "ខ្ មែ រ"),
        ("မြန်မာ", "မြ န် မာ"),
        ("Windows™ don´t “quote” I❤️NY 1️⃣", "windows don t quote i ny 1"),
        ("m² 3½ ﬁne ＡＢＣ ｶﾞ", "m2 312 fine abc ガ"),
    ],
)
def test_words_are_those_of_the_script(text, words):
    assert words_of(text) == words.split()


@given(st.text())
def test_words_do_not_depend_on_case_and_unicode_form(text):
    found = words_of(text)
    assert words_of(unicodedata.normalize("NFC", text)) == found
    assert words_of(unicodedata.normalize("NFD", text)) == found
    assert words_of(text.casefold()) == found


few = st.lists(st.sampled_from("ab"), max_size=30).map(" ".join)


@settings(max_examples=150)
@given(
    st.lists(few, min_size=1, max_size=3), st.lists(few, min_size=1, max_size=6), st.integers(1, 13)
)
def test_it_is_what_a_slow_reference_finds(held, texts, n):
    assert NgramIndex(held, n).contaminates(texts).tolist() == slow(held, texts, n)


def similarity(left, right):
    """Jaccard similarity of two texts' sets of word sequences."""
    runs = [text.split() for text in (left, right)]
    one, other = ({tuple(w[i : i + 3]) for i in range(len(w) - 2)} for w in runs)
    return len(one & other) / len(one | other) if one | other else 0.0


texts = st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(" ".join), max_size=9)


@given(texts, texts, st.sampled_from([1, 100, 5_000_000]))
def test_the_nearest_of_all_pairs_is_found(left, right, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "_PAIRS", at_once)
        nearest = nearest_duplicates(left, right)
    expected = []
    for i, text in enumerate(left):
        alike = [similarity(text, other) for other in right]
        if alike and max(alike) >= MIN_SIMILARITY:
            expected.append((i, int(np.argmax(alike)), max(alike)))
    assert list(nearest.itertuples(index=False, name=None)) == expected


@given(texts.filter(len))
def test_groups_are_the_components_of_equal_and_alike_texts(texts):
    slow = list(range(len(texts)))
    for _ in texts:
        for i, left in enumerate(texts):
            for j, right in enumerate(texts):
                if left == right or similarity(left, right) >= MIN_SIMILARITY:
                    slow[i] = slow[j] = min(slow[i], slow[j])
    groups = same_texts(texts)
    assert [[a == b for b in groups] for a in groups] == [[a == b for b in slow] for a in slow]


def test_case_space_and_punctuation_do_not_tell_texts_apart():
    groups = same_texts(["A cat, sat.", "a  cat sat", "another cat", "A CAT SAT"])
    assert (groups == groups[0]).tolist() == [True, True, False, True]
    found = nearest_duplicates(["今天天气很好，我们一起去公园。"], ["今天天气很好我们一起去公园吧"])
    assert found["other"].tolist() == [0]


def test_many_texts_of_one_form_are_grouped_in_seconds():
    form = "your order number {} has been shipped and will arrive within three working days"
    texts = [form.format(i) for i in range(2000)]
    assert len(set(same_texts([*texts, *texts]).tolist())) == 1
