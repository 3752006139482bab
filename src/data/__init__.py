"""From files to batches: end tasks, corpora, choice by size, tokenisation, order, collation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from src.data.tartan_data import TartanData

__all__ = ["TartanData"]


def __getattr__(name: str) -> Any:
    """Import the data module when it is first asked for: what only needs a part stays quick."""
    if name != "TartanData":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from src.data.tartan_data import TartanData

    return TartanData
