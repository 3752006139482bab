"""Reads end tasks and auxiliary texts, tokenises them and makes batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tartan.data.tartan_data import TartanData

__all__ = ["TartanData"]


def __getattr__(name: str) -> Any:
    """Import `TartanData` only when it is asked for, so that importing a part stays quick."""
    if name != "TartanData":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tartan.data.tartan_data import TartanData

    return TartanData
