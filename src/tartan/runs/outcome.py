"""Assembles the result of a finished run: its data, stages and scores, and its baselines."""

import importlib.metadata
import logging
import math
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from omegaconf import DictConfig
from torch import Tensor

from tartan.core.device import is_on_cuda
from tartan.core.task_names import END_TASK
from tartan.data.end_task import EndTask
from tartan.data.prepared import Prepared
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.encoders.saved_classifier import load_classifier
from tartan.errors import UserError
from tartan.evaluation.calibration import Calibration, calibrate
from tartan.evaluation.metrics import EndTaskMetrics, SplitScores
from tartan.evaluation.tf_idf import TfIdfClassifier, best_tf_idf
from tartan.methods.cost import BACKWARD
from tartan.methods.parts import metrics_of
from tartan.methods.stage import Stage
from tartan.methods.stage_outcome import StageOutcome, memory_advice
from tartan.methods.trainer import resolve_precision
from tartan.runs import result
from tartan.runs.folder import option_of
from tartan.runs.predictor import Predictor
from tartan.runs.prepare import has_no_end_task, module_class, overrides_of_run
from tartan.runs.result import SCHEMA, Baseline, Result, Scores, Split, TrainSplit
from tartan.settings import typed

log = logging.getLogger(__name__)

FINE_TUNING = "fine_tuning"
"""Name of the baseline, of its stage, and of its folder below the run's."""
_OF_THE_RUN = ("batch_size", "max_steps", "max_epochs", "evaluate_every", "patience")
"""Options that fine-tuning takes from the run (see `at_equal_cost`)."""
_MOST = 5_000
"""Maximum number of training texts of TF-IDF, with which it takes seconds."""
_DISTRIBUTIONS = (
    "tartan-nlp", "torch", "lightning", "transformers", "datasets", "tokenizers", "torchmetrics",
    "hydra-core", "omegaconf", "networkx", "numpy", "pandas", "scikit-learn", "scipy", "sympy",
)  # fmt: skip
"""Libraries whose versions a result states; the docstrings task is made of some of them."""


def result_of(
    config: DictConfig,
    prepared: Prepared,
    outcomes: Sequence[StageOutcome],
    chosen: StageOutcome,
    test: SplitScores | None,
) -> Result:
    """Return the result of a run, whose dev metrics are those of the `chosen` stage."""
    accelerator = str(config.trainer.accelerator)
    # several auxiliary tasks without the end task are mixed evenly, whatever the config's weighting
    joint = (o.final_task_weights for o in reversed(outcomes) if END_TASK in o.final_task_weights)
    weights = next(joint, {})
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
        final_task_weights=weights,
        chosen={"stage": chosen.name, "step": chosen.best_step},
        stages=[outcome.result for outcome in outcomes],
        cost={
            "tokens": sum(sum(outcome.cost.tokens.values()) for outcome in outcomes),
            "flops": sum(sum(outcome.cost.flops.values()) for outcome in outcomes),
        },
        measured={"seconds": sum(outcome.seconds for outcome in outcomes)},
        versions={"python": platform.python_version(), **versions},
        machine=result.Machine(
            device=torch.cuda.get_device_name() if is_on_cuda(accelerator) else "cpu",
            platform=platform.platform(),
            cores=os.cpu_count(),
            precision=resolve_precision(config.trainer.precision, accelerator),
        ),
    )


def _data_of(prepared: Prepared, chosen: StageOutcome, test: SplitScores | None) -> dict[str, Any]:
    auxiliaries = {
        name: result.Auxiliary(
            kind=auxiliary.kind,
            source=examples.source,
            size="all" if examples.size is None else examples.size,
            examples=len(examples.rows),
            fingerprint=examples.fingerprint,
            **({} if (n := examples.decontaminated) is None else {"decontaminated": n}),
        )
        for name, (auxiliary, examples) in prepared.auxiliaries.items()
    }
    if prepared.held_out is not None:
        texts = [examples for _, examples in prepared.auxiliaries.values()]
        held_out = sum(len(one.held_out) for one in texts if one.held_out is not None)
        scores = Scores(examples=held_out, metrics=chosen.dev)
        return {
            "labels": [],
            "data": {},
            "train": TrainSplit(examples=sum(len(one.rows) for one in texts), labels={}),
            "dev": Split(whole=scores, unseen=scores),  # none of it is trained on
            "fingerprints": {name: one.fingerprint for name, one in auxiliaries.items()},
            "auxiliaries": auxiliaries,
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
        "auxiliaries": auxiliaries,
    }


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


def calibrated(config: DictConfig, folder: Path, prepared: Prepared) -> Calibration | None:
    """Return the temperature of the classifier in a folder, fitted to the dev texts.

    None where it does not give each text one label.
    """
    task = prepared.end_task
    if prepared.held_out is not None or not isinstance(task, TextTask) or not task.kind.one_label:
        return None
    on_cuda, size = is_on_cuda(str(config.trainer.accelerator)), int(config.evaluation_batch_size)
    device = torch.device("cuda" if on_cuda else "cpu")
    try:
        with memory_advice("the calibration"):
            predictor = Predictor(load_classifier(folder), device, task.max_length, size)
            logits = predictor.logits(task.dev.texts, task.dev.pairs)
    except UserError as error:  # a body with code of its own cannot be loaded by itself
        log.warning("not calibrated: %s", error)
        return None
    if not logits.isfinite().all():
        log.warning("not calibrated: some logits on dev are not finite")
        return None
    return calibrate(logits.double().numpy(), np.asarray(task.dev.labels))


def tf_idf_baseline(config: DictConfig, end_task: EndTask) -> Baseline | None:
    """Return the scores of TF-IDF with logistic regression, whose settings are chosen on dev.

    None for images, pairs of texts, texts without words, labels that are no single ones, and more
    than 5,000 training texts.
    """
    if not isinstance(end_task, TextTask) or end_task.train.pairs is not None:
        return None
    if not end_task.kind.one_label:
        return None
    train = end_task.train
    has_words = any(re.search(r"\b\w\w+\b", text) for text in train.texts)
    if not has_words or len(train) > _MOST or set(train.labels) != set(range(len(end_task.labels))):
        return None

    def scores(split: LabelledTexts, classifier: TfIdfClassifier) -> dict[str, float]:
        return whole_of(evaluated(config, end_task, split, classifier.log_probabilities))

    strengths, metric, dev = (1.0, 10.0, 100.0), end_task.metric, end_task.dev
    best = best_tf_idf(train.texts, train.labels, lambda c: scores(dev, c)[metric], strengths)
    tested = config.evaluate_test and len(end_task.test)
    test = scores(end_task.test, best) if tested else None
    return Baseline(
        name="tf_idf", settings=best.settings, dev=scores(end_task.dev, best), test=test
    )


def metrics_of_task(config: DictConfig, end_task: TextTask) -> EndTaskMetrics:
    """Return new metrics as the run's stages have them."""
    nodes = {str(name): dict(node) for name, node in config.metrics.items()}
    return metrics_of(nodes, end_task.metric, len(end_task.labels), end_task.kind)


def evaluated(
    config: DictConfig,
    end_task: TextTask,
    split: LabelledTexts,
    log_probabilities: Callable[[Sequence[str]], Tensor],
) -> dict[str, float]:
    """Return the run's metrics on a split, from log-probabilities of texts, `(texts, labels)`."""
    metrics = metrics_of_task(config, end_task)
    for part in (metrics.whole, metrics.unseen):  # the run's other processes take no part
        part.distributed_available_fn = lambda: False
    labels, unseen = torch.tensor(split.labels), torch.tensor(split.unseen)
    metrics.update(log_probabilities(split.texts), labels, unseen)
    return {n: float(value) for n, value in metrics.compute(metrics.saw_unseen).items()}


def requested_baseline(config: DictConfig) -> Stage | None:
    """Return the stage of fine-tuning that the config asks for; None if it asks for none."""
    if config.fine_tuning_baseline is None:
        return None
    stage = typed(config.fine_tuning_baseline, Stage, "fine_tuning_baseline")
    for option in map(option_of, overrides_of_run()):
        if option in [f"fine_tuning_baseline.{name}" for name in _OF_THE_RUN]:
            raise UserError(f"{option} follows the run; omit it")
    module = module_class(stage)
    if has_no_end_task(config) or not module.trains_end_task or module.trains_auxiliaries:
        raise UserError("fine_tuning_baseline trains the end task alone")
    return stage if stage.enabled else None


def at_equal_cost(
    stage: Stage, stages: Mapping[str, Stage], outcomes: Sequence[StageOutcome]
) -> Stage:
    """Return `stage` with the steps that take as many floating-point operations as the run.

    A step's cost and batch are those of the run's first stage with the end task, preferably one
    that trains or freezes the body alike. It is evaluated on dev as often as the run was.
    """

    def passes(of: Stage) -> int:  # cost of a step's passes through the body, in forward passes
        return 1 if of.freeze_body else 1 + BACKWARD

    with_end_task = [outcome for outcome in outcomes if END_TASK in outcome.cost.flops]
    alike = [o for o in with_end_task if stages[o.name].freeze_body == stage.freeze_body]
    reference = (alike or with_end_task)[0]
    step = reference.cost.flops[END_TASK] / reference.steps
    step *= passes(stage) / passes(stages[reference.name])
    spent = sum(sum(outcome.cost.flops.values()) for outcome in outcomes)
    steps = max(1, round(spent / step))
    evaluations = sum(len(outcome.evaluations) for outcome in outcomes)
    return replace(
        stage,
        batch_size=stages[reference.name].batch_size,
        max_steps=steps,
        max_epochs=None,
        evaluate_every=math.ceil(steps / max(1, evaluations)),
        patience=None,
    )


def fine_tuned(outcome: StageOutcome, test: SplitScores | None) -> Baseline:
    """Return the scores of fine-tuning at equal cost as a baseline."""
    return Baseline(
        name=FINE_TUNING,
        settings=f"{outcome.steps} steps, best after {outcome.best_step}",
        dev=whole_of(outcome.dev or {}),
        test=None if test is None else whole_of(test.metrics),
        seconds=outcome.seconds,
    )
