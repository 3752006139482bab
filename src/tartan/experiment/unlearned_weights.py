"""Warns of a method that learns weights, where a file chose a weighting that does not."""

from __future__ import annotations

import logging

from hydra.core.hydra_config import HydraConfig

from tartan.core.weighting.base import Weighting
from tartan.core.weighting.fixed import FixedWeighting
from tartan.run_folder.name import as_given, option_of

log = logging.getLogger(__name__)
_CHOOSES = ("weighting", "weighting._target_")
"""Options by which the command line says which weighting it wants."""


def warn_of_unlearned_weights(method: str, weighting: Weighting) -> None:
    """Warn that `method`, which has a meta head, does not learn its weights, unless it is asked to.

    In a program that composed its config, nobody knows what was asked for, and nothing is said.

    Args:
        method: the method's name.
        weighting: the weighting with which it trains.
    """
    if weighting.needs.meta_gradient or not HydraConfig.initialized():
        return
    hydra = HydraConfig.get()
    given = as_given(hydra.overrides.task)
    chosen = hydra.runtime.choices.get("weighting")
    if chosen is None or any(option_of(override) in _CHOOSES for override in given):
        return
    fixed = isinstance(weighting, FixedWeighting)
    log.warning(
        "method=%s trains with %sweighting=%s, which a file chose; give weighting=meta to learn "
        "the weights, or weighting=aang with method=aang",
        method, "the fixed weights of " if fixed else "", chosen,
    )  # fmt: skip
