"""Protects batch normalisation's running statistics from passes that must not change them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def frozen_running_statistics(body: nn.Module) -> Iterator[None]:
    """Let passes normalise by their own batch without updating running statistics.

    For every pass except a task's own: validation batches, second batches and products with
    the meta-gradient must not influence later evaluations.
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
    """Return the running means and variances, without those that are frozen."""
    tracking = [m for m in body.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    found = [statistic for m in tracking for statistic in (m.running_mean, m.running_var)]
    return [statistic for statistic in found if statistic is not None]
