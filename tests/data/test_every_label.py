"""Parts get examples of every label, by as few exchanges as there have to be."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from src.core.seeding import generator_for
from src.data.every_label import with_every_label


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(3, 9), min_size=2),
    st.sampled_from([(1, 1), (1, 2), (1, 0)]),
    st.randoms(use_true_random=False),
    st.integers(0, 2),
)
def test_each_part_has_enough_of_every_label(counts, least, random, seed):
    labels = [label for label, count in counts.items() for _ in range(count)]
    order = random.sample(range(len(labels)), len(labels))
    fewest, most = least[0] * len(counts), len(labels) - least[1] * len(counts)
    cut = random.randint(fewest, most)
    before = (order[:cut], order[cut:])
    parts = with_every_label(labels, *before, least, generator_for(seed, "test"))
    assert [len(part) for part in parts] == [len(part) for part in before]
    assert sorted([*parts[0], *parts[1]]) == sorted(order)
    lacking = 0
    for old, new, fewest in zip(before, parts, least, strict=True):
        held, has = (Counter(labels[index] for index in part) for part in (old, new))
        assert all(has[label] >= fewest for label in counts)
        lacking += sum(max(fewest - held[label], 0) for label in counts)
    assert len(set(parts[0]) - set(before[0])) <= lacking
    if not lacking:
        assert parts == (before[0], before[1])
