"""Names methods, metrics and sizes as a report shows them."""

from __future__ import annotations

METHODS = {
    "finetune": "Fine-tuning",
    "pretrain": "Pre-training",
    "tapt": "TAPT",
    "dapt": "DAPT",
    "dapt_tapt": "DAPT+TAPT",
    "released_tapt": "TAPT (released)",
    "released_dapt": "DAPT (released)",
    "released_dapt_tapt": "DAPT+TAPT (released)",
    "mt_tartan": "MT-TARTAN",
    "meta_tartan": "META-TARTAN",
    "tapt_mt_tartan": "TAPT then MT-TARTAN",
    "tapt_meta_tartan": "TAPT then META-TARTAN",
    "aang_static": "AANG, static",
    "aang": "AANG",
}
"""The paper's names of methods, in the order of its tables; other methods keep their own names."""
USUAL_WEIGHTINGS = {
    "mt_tartan": "uniform",
    "tapt_mt_tartan": "uniform",
    "meta_tartan": "meta",
    "tapt_meta_tartan": "meta",
}
"""The usual weighting of a method, which labels omit; of other methods they omit any."""
_LEARNED = ("meta_tartan", "tapt_meta_tartan", "aang")
"""Methods whose joint stage learns weights with a meta head."""
NAMED_BY_AUXILIARIES = ("tapt", "dapt", "dapt_tapt")
"""Methods whose names say what their auxiliary tasks are."""
PART_LABELS = {"whole": "whole test split", "unseen": "test texts not in train"}


def method_label(method: str) -> str:
    """Return a method's name, e.g. `META-TARTAN` for `meta_tartan`."""
    return METHODS.get(method, method)


def usual_module(method: str, stage: str) -> tuple[str, ...]:
    """Return the class below `tartan.methods` that trains a stage of a method of the paper.

    Earlier names of it follow.
    """
    if stage == "joint":
        learned = method in _LEARNED
        return ("meta_tartan.MetaTartan",) if learned else ("mt_tartan.MTTartan",)
    if stage.endswith("finetune"):
        return ("fine_tuning.FineTuning", "finetuning.Finetuning")
    return ("continued_pretraining.ContinuedPretraining",)


def weighting_label(method: str, weighting: str | None) -> str:
    """Return e.g. ` (upgrad)` for a weighting that is not the method's usual one, or nothing."""
    usual = USUAL_WEIGHTINGS.get(method, weighting)
    return "" if weighting in (None, usual) else f" ({weighting})"


def metric_label(metric: str) -> str:
    """Return a metric's name, e.g. `macro-F1` for `macro_f1`."""
    return metric.replace("_f1", "-F1").replace("_", " ")


def size_label(size: float | str) -> str:
    """Return an auxiliary size in words, e.g. `10x` for 10, `all` for `all`."""
    return size if isinstance(size, str) else f"{size:g}x"


def plural(count: int, noun: str) -> str:
    """Return a number with its noun, e.g. `1 seed`, `3 seeds`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
