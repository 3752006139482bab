"""TARTAN: end-task aware training (Dery, Michel, Talwalkar, Neubig, ICLR 2022)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tartan.data.tartan_data import TartanData
    from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan

__all__ = ["ContinuedPretraining", "FineTuning", "MTTartan", "MetaTartan", "TartanData"]


def __getattr__(name: str) -> Any:
    """Import a public class at its first use (PEP 562): `import tartan` alone loads no torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "tartan.data.tartan_data" if name == "TartanData" else "tartan.methods"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
