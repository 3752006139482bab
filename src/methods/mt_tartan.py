"""MT-TARTAN: the end task and the auxiliary tasks together (paper, section 3.1)."""

from __future__ import annotations

from src.methods.module import TaskMixing


class MTTartan(TaskMixing):
    """Multi-tasking with any weighting that needs no meta-gradient (paper: equal weights)."""

    trains_end_task = True
    trains_auxiliaries = True
