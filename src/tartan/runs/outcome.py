"""Assembles the result of a finished run from its data and the outcomes of its stages."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Mapping
from typing import Any

import datasets
import torch
from omegaconf import DictConfig

from tartan.core.device import is_on_cuda
from tartan.core.task_names import END_TASK
from tartan.data.prepared import Auxiliary, AuxiliaryExamples, Prepared
from tartan.evaluation.metrics import SplitScores
from tartan.methods.fit import StageOutcome
from tartan.methods.trainer import resolve_precision
from tartan.runs import result
from tartan.runs.result import SCHEMA, Result, Scores, Split, TrainSplit

_DISTRIBUTIONS = (
    "torch", "lightning", "transformers", "datasets", "tokenizers", "torchmetrics", "hydra-core",
    "omegaconf", "networkx", "numpy", "pandas", "scikit-learn", "scipy", "sympy",
)  # fmt: skip
"""Libraries whose versions a result states; the docstrings task is made of some of them."""


def result_of(
    config: DictConfig,
    prepared: Prepared,
    outcomes: list[StageOutcome],
    chosen: StageOutcome,
    test: SplitScores | None,
) -> Result:
    """Return the result of a run, whose dev metrics are those of the `chosen` stage.

    `test` has the scores on the test split; None if that was not evaluated.
    """
    accelerator = str(config.trainer.accelerator)
    # several auxiliary tasks without the end task are mixed evenly, whatever the config's weighting
    joint = (o.task_weights for o in reversed(outcomes) if END_TASK in o.task_weights)
    weights = next(joint, {})
    costs = [outcome.cost for outcome in outcomes]
    versions = {name: importlib.metadata.version(name) for name in _DISTRIBUTIONS}
    return Result(
        schema=SCHEMA,
        task=str(config.task.name),
        method=str(config.method.name),
        weighting=weighting_name(config) if weights else None,
        encoder=prepared.encoder.name,
        seed=int(config.seed),
        metric=prepared.metric.name,
        **_data_of(prepared, chosen, test),
        auxiliaries={name: _auxiliary_of(*one) for name, one in prepared.auxiliaries.items()},
        final_task_weights=weights,
        chosen={"stage": chosen.name, "step": chosen.best_step},
        stages=[_stage_of(outcome) for outcome in outcomes],
        cost={
            "tokens": sum(sum(cost.tokens.values()) for cost in costs),
            "flops": sum(sum(cost.flops.values()) for cost in costs),
        },
        measured={"seconds": sum(cost.seconds for cost in costs)},
        versions={"python": platform.python_version(), **versions},
        machine=result.Machine(
            device=torch.cuda.get_device_name() if is_on_cuda(accelerator) else "cpu",
            platform=platform.platform(),
            cores=os.cpu_count(),
            precision=resolve_precision(config.trainer.precision, accelerator),
        ),
    )


def _data_of(prepared: Prepared, chosen: StageOutcome, test: SplitScores | None) -> dict[str, Any]:
    """Return the result's fields about the data and the scores."""
    if prepared.held_out is not None:
        examples = [examples for _, examples in prepared.auxiliaries.values()]
        held_out = sum(len(one.held_out) for one in examples if one.held_out is not None)
        scores = Scores(examples=held_out, metrics=chosen.dev)
        return {
            "labels": [],
            "data": {},
            "train": TrainSplit(examples=sum(len(one.rows) for one in examples), labels={}),
            "dev": Split(whole=scores, unseen=scores),  # none of it is trained on
            "fingerprints": {name: e.fingerprint for name, (_, e) in prepared.auxiliaries.items()},
        }
    end_task, splits = prepared.end_task, prepared.splits
    counts = dict(zip(end_task.labels, end_task.label_counts, strict=True))
    return {
        "labels": list(end_task.labels),
        "data": end_task.notes,
        "train": TrainSplit(examples=len(splits.train), labels=counts),
        "dev": _scores(SplitScores(chosen.dev or {}), splits.dev),
        **({} if test is None else {"test": _scores(test, splits.test)}),
        "fingerprints": dict(end_task.fingerprints),
    }


def _auxiliary_of(auxiliary: Auxiliary, examples: AuxiliaryExamples) -> result.Auxiliary:
    removed = examples.decontaminated
    return result.Auxiliary(
        kind=auxiliary.kind,
        source=examples.source,
        size="all" if examples.size is None else examples.size,
        examples=len(examples.rows),
        fingerprint=examples.fingerprint,
        **({} if removed is None else {"decontaminated": removed}),
    )


def _stage_of(outcome: StageOutcome) -> result.Stage:
    return result.Stage(
        name=outcome.name,
        steps=outcome.steps,
        best_step=outcome.best_step,
        skipped=outcome.skipped,
        cost=result.Spent.model_validate(outcome.cost, from_attributes=True),
        measured=result.Measured.model_validate(outcome.cost, from_attributes=True),
        final_task_weights=outcome.task_weights,
        evaluations=outcome.evaluations,
    )


def weighting_name(config: DictConfig) -> str:
    """Return the words of the weighting's name: of its class, or of TorchJD's."""
    name = config.weighting.get("torchjd") or str(config.weighting.get("_target_", ""))
    name = str(name).rsplit(".", 1)[-1].removesuffix("Weighting")
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", name).lower()


def _scores(scores: SplitScores, split: datasets.Dataset) -> Split:
    values = scores.metrics
    unseen = {k.removesuffix("_unseen"): v for k, v in values.items() if k.endswith("_unseen")}
    counted: dict[str, dict[str, Any]] = {
        part: {"confusion": counts} for part, counts in scores.confusion.items()
    }
    whole = Scores(examples=len(split), metrics=whole_of(values), **counted.get("whole", {}))
    examples = int(sum(split["unseen"]))
    part = Scores(examples=examples, metrics=unseen or None, **counted.get("unseen", {}))
    return Split(whole=whole, unseen=part)


def whole_of(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of a whole split, without those of its unseen part."""
    return {name: value for name, value in metrics.items() if not name.endswith("_unseen")}
