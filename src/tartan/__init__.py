"""TARTAN: end-task aware training (Dery, Michel, Talwalkar, Neubig, ICLR 2022)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tartan.data.tartan_data import TartanData
    from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan

_HOMES = {
    "TartanData": "tartan.data.tartan_data",
    "FineTuning": "tartan.methods",
    "ContinuedPretraining": "tartan.methods",
    "MTTartan": "tartan.methods",
    "MetaTartan": "tartan.methods",
}
__all__ = ["ContinuedPretraining", "FineTuning", "MTTartan", "MetaTartan", "TartanData"]


def __getattr__(name: str) -> Any:
    """Import a public class at its first use (PEP 562): `import tartan` alone loads no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
