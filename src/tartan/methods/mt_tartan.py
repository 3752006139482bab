"""MT-TARTAN: joint training of the end task and the auxiliary tasks (paper, section 3.1)."""

from tartan.methods.module import TaskMixing


class MTTartan(TaskMixing):
    """Joint training with any weighting that needs no meta-gradient (paper: equal weights)."""

    trains_end_task = True
    trains_auxiliaries = True
