"""Batch normalisation's running statistics, and passes that leave no trace in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def held_running_statistics(body: nn.Module) -> Iterator[None]:
    """Passes inside normalise by their own batch, as training does, and record nothing.

    For the meta-gradient's passes: the validation batch must not enter what is evaluated later.
    """
    tracking = [m for m in body.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    for module in tracking:
        module.track_running_stats = False
    try:
        yield
    finally:
        for module in tracking:
            module.track_running_stats = True


def running_statistics(body: nn.Module) -> list[Tensor]:
    """Running means and variances, but for those that are held."""
    tracking = [m for m in body.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    found = [statistic for m in tracking for statistic in (m.running_mean, m.running_var)]
    return [statistic for statistic in found if statistic is not None]
