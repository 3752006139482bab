"""What a run is compared with: TF-IDF, and fine-tuning from the same start at the run's cost."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from omegaconf import DictConfig
from torch import Tensor
from torchmetrics import Metric

from tartan.core.task_names import END_TASK
from tartan.data.end_task import EndTask
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics, SplitScores
from tartan.evaluation.tf_idf import TfIdfClassifier, best_tf_idf
from tartan.methods.fit import StageOutcome
from tartan.methods.flops import BACKWARD
from tartan.methods.parts import metrics_of
from tartan.methods.stage import Stage
from tartan.runs.folder import option_of
from tartan.runs.outcome import whole_of
from tartan.runs.prepare import has_no_end_task, module_class
from tartan.runs.result import Baseline
from tartan.runs.settings import overrides_of_run
from tartan.settings import typed

FINE_TUNING = "fine_tuning"
"""Name of the baseline, of its stage, and of its folder below the run's."""
_OF_THE_RUN = ("batch_size", "max_steps", "max_epochs", "evaluate_every", "patience")
"""Options that fine-tuning takes from the run (see `at_equal_cost`)."""
_MOST = 5_000
"""Maximum number of training texts of TF-IDF, with which it takes seconds."""


def tf_idf_baseline(config: DictConfig, end_task: EndTask) -> Baseline | None:
    """Return the scores of TF-IDF with logistic regression, whose settings are chosen on dev.

    None for images, pairs of texts, texts without words, and more than 5,000 training texts.
    """
    if not isinstance(end_task, TextTask) or end_task.train.pairs is not None:
        return None
    train = end_task.train
    has_words = any(re.search(r"\b\w\w+\b", text) for text in train.texts)
    if not has_words or len(train) > _MOST or set(train.labels) != set(range(len(end_task.labels))):
        return None

    def scores(split: LabelledTexts, classifier: TfIdfClassifier) -> dict[str, float]:
        whole = evaluated(config, end_task, split, classifier.log_probabilities).whole
        return {name: float(value) for name, value in whole.compute().items()}

    def on_dev(classifier: TfIdfClassifier) -> float:
        return scores(end_task.dev, classifier)[end_task.metric]

    best = best_tf_idf(train.texts, train.labels, on_dev, (1.0, 10.0, 100.0))
    tested = config.evaluate_test and len(end_task.test)
    test = scores(end_task.test, best) if tested else None
    return Baseline(
        name="tf_idf", settings=best.settings, dev=scores(end_task.dev, best), test=test
    )


def evaluated(
    config: DictConfig,
    end_task: TextTask,
    split: LabelledTexts,
    log_probabilities: Callable[[Sequence[str]], Tensor],
) -> EndTaskMetrics:
    """Return the run's metrics on a split, from log-probabilities of texts, `(texts, labels)`."""
    nodes = {str(name): dict(node) for name, node in config.metrics.items()}
    metrics = metrics_of(nodes, end_task.metric, len(end_task.labels))
    for metric in metrics.modules():
        if isinstance(metric, Metric):
            # must not gather: the run's other processes take no part
            metric.distributed_available_fn = lambda: False
    logits = log_probabilities(split.texts)
    metrics.update(logits, torch.tensor(split.labels), torch.tensor(split.unseen))
    return metrics


def requested_baseline(config: DictConfig) -> Stage | None:
    """Return the stage of fine-tuning that the config asks for; None if it asks for none."""
    if config.fine_tuning_baseline is None:
        return None
    stage = typed(config.fine_tuning_baseline, Stage, "fine_tuning_baseline")
    if not stage.enabled:
        return None
    for option in map(option_of, overrides_of_run()):
        if option in [f"fine_tuning_baseline.{name}" for name in _OF_THE_RUN]:
            raise UserError(f"{option} follows the run; omit it")
    module = module_class(stage)
    if has_no_end_task(config) or not module.trains_end_task or module.trains_auxiliaries:
        raise UserError(
            "fine_tuning_baseline trains the end task alone: use "
            "+stage@fine_tuning_baseline=finetune, and a task"
        )
    return stage


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
    assert outcome.dev is not None, "the stage trains the end task"
    return Baseline(
        name=FINE_TUNING,
        settings=f"{outcome.steps} steps, best after {outcome.best_step}",
        dev=whole_of(outcome.dev),
        test=None if test is None else whole_of(test.metrics),
        seconds=outcome.cost.seconds,
    )
