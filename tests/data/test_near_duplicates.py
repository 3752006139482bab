"""Near-duplicates are those of a slow reference, however many there are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from src.data.gram_sets import WORDS
from src.data.near_duplicates import MIN_SIMILARITY, near_duplicate_groups, nearest_duplicates
from src.data.overlap import words_of


def jaccard(one, other):
    """The share of two texts' runs of words that both have."""
    grams = []
    for text in (one, other):
        words = words_of(text)
        grams.append({tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)})
    either = grams[0] | grams[1]
    return len(grams[0] & grams[1]) / len(either) if either else 0.0


words = st.lists(st.sampled_from("abcd"), max_size=12).map(" ".join)
orders = st.builds(
    "your order {} of {} has been shipped to {}".format,
    st.integers(0, 5),
    st.sampled_from(["monday", "tuesday"]),
    st.sampled_from(["berlin", "paris", "new york"]),
)
greetings = st.builds("dear {} the quick brown fox jumps over {}".format, words, words)
texts = st.lists(st.one_of(words, orders, greetings), min_size=1, max_size=12)


@settings(max_examples=200)
@given(texts, texts)
def test_the_most_similar_is_the_one_of_a_slow_reference(own, others):
    slow = []
    for index, text in enumerate(own):
        similar = [jaccard(text, other) for other in others]
        best = max(similar)
        if best >= MIN_SIMILARITY:
            slow.append((index, similar.index(best), best))
    found = nearest_duplicates(own, others)
    assert slow == list(zip(found.own, found.other, found.similarity, strict=True))


@settings(max_examples=200)
@given(texts)
def test_groups_are_the_chains_of_a_slow_reference(own):
    groups = near_duplicate_groups(own)
    slow = list(range(len(own)))
    for _ in own:
        for i, left in enumerate(own):
            for j, right in enumerate(own):
                if jaccard(left, right) >= MIN_SIMILARITY:
                    slow[i] = slow[j] = min(slow[i], slow[j])
    assert [[a == b for b in groups] for a in groups] == [[a == b for b in slow] for a in slow]


def forms(count, first=0):
    return [
        f"your order number {number} has been shipped and will arrive within three working days"
        for number in range(first, first + count)
    ]


def test_texts_of_one_form_are_found_however_many_there_are():
    found = nearest_duplicates(forms(150), ["of another kind", *forms(3000, first=1000)])
    assert found.own.tolist() == list(range(150))
    assert set(found.other) == {1}
    assert len(set(near_duplicate_groups(forms(3000)))) == 1


def test_equal_texts_are_found_however_many_there_are():
    text = "this text is here a great many times"
    found = nearest_duplicates([text], ["something else entirely then", *[text.upper()] * 3000])
    assert (found.other.tolist(), found.similarity.tolist()) == ([1], [1.0])
    assert len(set(near_duplicate_groups([text] * 3000))) == 1


def test_texts_without_spaces_are_compared_by_characters():
    others = ["明天下午三点在会议室开会讨论预算", "今天天气很好我们一起去动物园吧"]
    found = nearest_duplicates(["今天天气很好，我们一起去公园吧。"], others)
    assert found.other.tolist() == [1]


def test_none_are_found_among_no_texts():
    assert len(nearest_duplicates(["one two three"], []).own) == 0
    assert len(nearest_duplicates([], ["one two three"]).own) == 0
    assert len(near_duplicate_groups([])) == 0
    assert len(set(near_duplicate_groups(["one", "one"]))) == 2
