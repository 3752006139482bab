"""The permutation test gives p-values of the order that the paper prints."""

from __future__ import annotations

import numpy as np
import pytest

from tartan.evaluation.statistics import permutation_test
from tartan.report.paper import paper_tables

PUBLISHED = [
    (table.key, task, name, row.scores[name], max(row.scores[a] for a in against), p)
    for table in paper_tables()
    for task, row in table.published.items()
    for against in [[a for a in table.against if a in row.scores]]
    for name, p in row.p.items()
]


@pytest.mark.parametrize(("table", "task", "name", "ours", "theirs", "published"), PUBLISHED)
def test_the_papers_p_values_are_of_the_order_that_its_means_and_deviations_give(
    table, task, name, ours, theirs, published
):
    """Ten seeds with exactly the published mean and deviation, drawn again and again.

    The paper prints three decimals; the scores of its single runs are not published, so p can only
    be simulated: the published one has to lie among the simulated ones, or within a factor of 2.5.
    """
    rng = np.random.default_rng(0)

    def seeds(mean, deviation):
        values = rng.standard_normal(10)
        return mean + deviation * (values - values.mean()) / values.std(ddof=1)

    simulated = [
        permutation_test(seeds(*ours), seeds(*theirs), permutations=2_000).one_sided
        for _ in range(15)
    ]
    low, high = min(simulated) / 2.5, 2.5 * max(simulated) + 0.0005
    assert low - 0.0005 <= published <= high
