"""Names the experiments for tables of one's own (`conf/experiment/custom*.yaml`)."""

from __future__ import annotations

from hydra.core.hydra_config import HydraConfig

EXPERIMENTS = {
    "finetune": "custom_finetune",
    "tapt": "custom_tapt",
    "dapt": "custom_dapt",
    "dapt_tapt": "custom_dapt_tapt",
    "mt_tartan": "custom_mt",
    "meta_tartan": "custom",
    "aang": "custom_aang",
    "aang_static": "custom_aang_static",
}
"""The experiment of each method; the options of its stages fit that method only."""


def experiment_asked_for() -> str:
    """Return the name of the experiment on the command line; empty if there is none."""
    choices = HydraConfig.get().runtime.choices if HydraConfig.initialized() else {}
    return str(choices.get("experiment") or "")


def is_for_tables(experiment: str) -> bool:
    """Return whether an experiment is one for tables of one's own."""
    return experiment in EXPERIMENTS.values()
