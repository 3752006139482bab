"""Seeds are a function of names, the same in every process."""

from __future__ import annotations

import numpy as np

from tartan.core.seeding import generator_for, seed_for


def test_other_names_give_other_seeds_and_the_same_names_the_same_draws():
    names = [(s, *n) for s in range(3) for n in (("tapt", 3), ("tapt", 4), ("ta", "pt"), ("tapt",))]
    seeds = {seed_for(*each) for each in [*names, (1, 23), (12, 3)]}
    assert len(seeds) == len(names) + 2
    assert all(0 <= seed < 2**63 for seed in seeds)
    first, second = (generator_for(3, "stage", 5).random(8) for _ in range(2))
    np.testing.assert_array_equal(first, second)
