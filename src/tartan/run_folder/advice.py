"""Names the option by which a command gets another folder."""

from __future__ import annotations

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode


def in_sweep() -> bool:
    """Return whether this process runs a job of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def folder_option() -> str:
    """Return the option that names the folder of the run, or of the whole sweep it belongs to."""
    # a sweep refuses hydra.run.dir
    return "hydra.sweep.dir=FOLDER" if in_sweep() else "hydra.run.dir=FOLDER"
