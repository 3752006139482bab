"""`result.json`: everything about a finished run that a comparison of runs needs."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

import datasets
import torch
from omegaconf import DictConfig

from src.data.prepared import Prepared
from src.evaluation.metrics import SplitScores
from src.methods.cost import StageCost
from src.methods.outcome import StageOutcome
from src.methods.precision import resolve_precision
from src.run_folder.durable import write_durably

SCHEMA = 2
"""Version of the file's layout."""

_DISTRIBUTIONS = (
    "torch",
    "lightning",
    "transformers",
    "datasets",
    "tokenizers",
    "torchmetrics",
    "hydra-core",
    "omegaconf",
    # with torch and transformers, what the docstrings task is made of
    "networkx",
    "numpy",
    "pandas",
    "scikit-learn",
    "scipy",
    "sympy",
)


def result_of(
    config: DictConfig,
    prepared: Prepared,
    outcomes: list[StageOutcome],
    chosen: StageOutcome,
    test: SplitScores | None,
) -> dict[str, Any]:
    """What a run reached, as plain JSON values.

    Args:
        chosen: the stage whose weights were kept; its dev metrics are the run's.
        test: what it reached on the test split; None if that was not asked for.
    """
    weights = next((o.task_weights for o in reversed(outcomes) if o.task_weights), {})
    return {
        "schema": SCHEMA,
        "task": str(config.task.name),
        "method": str(config.method.name),
        "weighting": weighting_name(config) if weights else None,
        "encoder": prepared.encoder.name,
        "seed": int(config.seed),
        "metric": prepared.metric.name,
        **_data_of(prepared, chosen, test),
        "auxiliaries": {
            name: {
                "kind": auxiliary.kind,
                "source": examples.source,
                "size": "all" if examples.size is None else examples.size,
                "examples": len(examples.rows),
                "fingerprint": examples.fingerprint,
                **(
                    {}
                    if examples.decontaminated is None
                    else {"decontaminated": examples.decontaminated}
                ),
            }
            for name, (auxiliary, examples) in prepared.auxiliaries.items()
        },
        "final_task_weights": weights,
        "chosen": {"stage": chosen.name, "step": chosen.best_step},
        "stages": [
            {
                "name": outcome.name,
                "steps": outcome.steps,
                "best_step": outcome.best_step,
                "skipped": outcome.skipped,
                **_cost_of(outcome.cost),
                "final_task_weights": outcome.task_weights,
                "evaluations": [list(pair) for pair in outcome.evaluations],
            }
            for outcome in outcomes
        ],
        "cost": {
            "tokens": sum(sum(outcome.cost.tokens.values()) for outcome in outcomes),
            "flops": sum(sum(outcome.cost.flops.values()) for outcome in outcomes),
        },
        "measured": {"seconds": sum(outcome.cost.seconds for outcome in outcomes)},
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _DISTRIBUTIONS},
        },
        "machine": {
            "device": torch.cuda.get_device_name() if _on_gpu(config) else "cpu",
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            "precision": resolve_precision(
                str(config.trainer.precision), str(config.trainer.accelerator)
            ),
        },
    }


def _data_of(prepared: Prepared, chosen: StageOutcome, test: SplitScores | None) -> dict[str, Any]:
    """What was trained and evaluated on, and what was reached there."""
    if prepared.labelled is None:
        examples = [examples for _, examples in prepared.auxiliaries.values()]
        held_out = sum(len(own.held_out) for own in examples if own.held_out is not None)
        scores = {"examples": held_out, "metrics": chosen.dev}
        return {
            "labels": [],
            "data": {},
            "train": {"examples": sum(len(own.rows) for own in examples), "labels": {}},
            "dev": {"whole": scores, "unseen": scores},  # none of it is trained on
            "fingerprints": {name: e.fingerprint for name, (_, e) in prepared.auxiliaries.items()},
        }
    end_task, splits = prepared.end_task, prepared.splits
    return {
        "labels": list(end_task.labels),
        "data": end_task.notes,
        "train": {
            "examples": len(splits.train),
            "labels": dict(zip(end_task.labels, end_task.label_counts, strict=True)),
        },
        "dev": _scores(SplitScores(chosen.dev or {}), splits.dev),
        **({} if test is None else {"test": _scores(test, splits.test)}),
        "fingerprints": dict(end_task.fingerprints),
    }


def _cost_of(cost: StageCost) -> dict[str, Any]:
    """What was spent, which every run of the same config spends, apart from what was measured."""
    return {
        "cost": {
            "tokens": cost.tokens,
            "examples": cost.examples,
            "flops": cost.flops,
            "padding_share": cost.padding_share,
        },
        "measured": {
            "seconds": cost.seconds,
            "tokens_per_second": cost.tokens_per_second,
            "floor_share": cost.floor_share,
            "peak_memory_bytes": cost.peak_memory_bytes,
            "processes": cost.processes,
            "summed_bytes": cost.summed_bytes,
        },
    }


def weighting_name(config: DictConfig) -> str:
    """The weighting's name in lower case: its class, or TorchJD's."""
    name = config.weighting.get("torchjd") or str(config.weighting.get("_target_", ""))
    return str(name).rsplit(".", 1)[-1].removesuffix("Weighting").lower()


def write_result(result: dict[str, Any], folder: Path) -> None:
    """Write `result.json`, whole or not at all: its presence says that the run is finished."""
    content = json.dumps(result, indent=1) + "\n"
    write_durably(folder / "result.json", lambda path: path.write_text(content, encoding="utf-8"))


def _scores(scores: SplitScores, split: datasets.Dataset) -> dict[str, Any]:
    values = scores.metrics
    unseen = {k.removesuffix("_unseen"): v for k, v in values.items() if k.endswith("_unseen")}
    whole = {k: v for k, v in values.items() if not k.endswith("_unseen")}
    parts: dict[str, dict[str, Any]] = {
        "whole": {"examples": len(split), "metrics": whole},
        "unseen": {"examples": int(sum(split["unseen"])), "metrics": unseen or None},
    }
    for part, counts in scores.confusion.items():
        parts[part]["confusion"] = counts
    return parts


def _on_gpu(config: DictConfig) -> bool:
    return torch.cuda.is_available() and config.trainer.accelerator in ("auto", "gpu", "cuda")
