"""Tells data that each seed draws for itself (`task.split_seed=${seed}`) from data of its own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tartan.report.reading.run import Run
from tartan.run_folder.result import Auxiliary

SPLIT_SEED = "task.split_seed"
"""Option with the seed by which examples are chosen; fingerprints say it where it matters."""
RUNS_SEED = "${seed}"
"""Value by which a command lets an option follow the run's seed."""
_CHOSEN = re.compile(r":\d+:(-?\d+)$")
"""End of the fingerprint of texts that were chosen from a corpus: their number, and a seed."""


def fingerprints_without_seed(run: Run) -> dict[str, str]:
    """Return the fingerprints of a run's splits without the seed that chose the examples."""
    said = re.compile(rf"\bseed([ =]){re.escape(str(run.options.get(SPLIT_SEED)))}\b")
    return {split: said.sub(r"seed\1", text) for split, text in run.result.fingerprints.items()}


def drawn_by_seed(runs: Iterable[Run]) -> set[Run]:
    """Return the runs whose examples were chosen by the run's own seed.

    A config holds `task.split_seed` as a number, also where it was given as the run's seed. It is
    taken to be that where the two are equal in runs of several seeds, and either the command said
    so, or the run's seed is the only one with its choice.

    Args:
        runs: runs whose fingerprints are equal but for the seed.
    """
    chosen = [run for run in runs if fingerprints_without_seed(run) != run.result.fingerprints]
    seeds: dict[Any, set[int]] = defaultdict(set)
    for run in chosen:
        seeds[run.options[SPLIT_SEED]].add(run.result.seed)
    found = {
        run
        for run in chosen
        if run.options[SPLIT_SEED] == run.result.seed
        and (
            run.given(SPLIT_SEED) == RUNS_SEED
            or seeds[run.options[SPLIT_SEED]] == {run.result.seed}
        )
    }
    return found if len({run.result.seed for run in found}) > 1 else set()


def auxiliary_identity(auxiliary: Auxiliary, draws_data: bool) -> dict[str, Any]:
    """Return what runs of one setting share of an auxiliary task: not where its file lies.

    Args:
        auxiliary: the auxiliary task.
        draws_data: whether each seed draws its own data, on which the choice of texts may depend.
    """
    content = auxiliary.model_dump(exclude={"source"})
    if not draws_data:
        return content
    del content["examples"]
    content["fingerprint"] = _CHOSEN.sub(r":\1", auxiliary.fingerprint)
    if auxiliary.kind == "task" or auxiliary.decontaminated is not None:
        # the fingerprint is of the texts that are left, which are others for each seed
        del content["fingerprint"], content["decontaminated"]
        content["source"] = Path(auxiliary.source).name
    return content
