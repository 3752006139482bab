"""Computes the end task's metrics with TF-IDF instead of an encoder, for comparison with a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch
from omegaconf import DictConfig
from torch import Tensor
from torchmetrics import Metric

from tartan.data.end_task import EndTask
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.evaluation.tf_idf import TfIdfClassifier, best_tf_idf
from tartan.methods.parts import metrics_of
from tartan.run_folder.result import Baseline

_STRENGTHS = (1.0, 10.0, 100.0)
_MOST = 5_000
"""Maximum number of training texts, with which this takes seconds."""
_WORD = re.compile(r"\b\w\w+\b")
"""A word that TF-IDF counts."""


def baseline_of(config: DictConfig, end_task: EndTask) -> Baseline | None:
    """Return the scores of TF-IDF with logistic regression, whose settings are chosen on dev.

    Returns:
        The scores; None for images, pairs of texts, texts without words, and more than 5,000
        training texts.
    """
    if not isinstance(end_task, TextTask) or end_task.train.pairs is not None:
        return None
    train = end_task.train
    if len(train) > _MOST or set(train.labels) != set(range(len(end_task.labels))):
        return None
    if not any(_WORD.search(text) for text in train.texts):
        return None

    def scores(split: LabelledTexts, classifier: TfIdfClassifier) -> dict[str, float]:
        whole = evaluated(config, end_task, split, classifier.log_probabilities).whole
        return {name: float(value) for name, value in whole.compute().items()}

    best = best_tf_idf(
        train.texts,
        train.labels,
        lambda classifier: scores(end_task.dev, classifier)[end_task.metric],
        _STRENGTHS,
    )
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
    """Return the run's metrics on all texts of a split and on its unseen ones.

    Args:
        log_probabilities: returns the log-probability of each label for texts, `(texts, labels)`.
    """
    nodes = {str(name): dict(node) for name, node in config.metrics.items()}
    metrics = metrics_of(nodes, end_task.metric, len(end_task.labels))
    for metric in metrics.modules():
        if isinstance(metric, Metric):
            # must not gather: the run's other processes take no part
            metric.distributed_available_fn = lambda: False
    logits = log_probabilities(split.texts)
    metrics.update(logits, torch.tensor(split.labels), torch.tensor(split.unseen))
    return metrics
