"""The training methods as LightningModules, imported when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tartan.methods.continued_pretraining import ContinuedPretraining
    from tartan.methods.fine_tuning import FineTuning
    from tartan.methods.meta_tartan import MetaTartan
    from tartan.methods.mt_tartan import MTTartan

_HOMES = {
    "ContinuedPretraining": "continued_pretraining",
    "FineTuning": "fine_tuning",
    "MTTartan": "mt_tartan",
    "MetaTartan": "meta_tartan",
}
__all__ = ["ContinuedPretraining", "FineTuning", "MTTartan", "MetaTartan"]


def __getattr__(name: str) -> Any:
    """Import a method only when it is asked for, so that importing a part stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
