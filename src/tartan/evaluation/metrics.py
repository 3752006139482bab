"""Computes the end task's metrics on all examples of a split, and on its unseen ones."""

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassCohenKappa,
    MulticlassF1Score,
    MulticlassMatthewsCorrCoef,
    MulticlassPrecision,
    MulticlassRecall,
    MulticlassSpecificity,
)
from torchmetrics.functional.classification import (
    multiclass_auroc,
    multiclass_average_precision,
    multiclass_confusion_matrix,
)
from torchmetrics.utilities import dim_zero_cat

from tartan.errors import UserError


class BalancedAccuracy(MulticlassAccuracy):
    """Mean recall of the labels that occur; torchmetrics counts absent ones as 0."""

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes=num_classes, average="none")

    def compute(self) -> Tensor:
        recalls = super().compute()[self.tp + self.fn > 0]
        mean: Tensor = (recalls / len(recalls)).sum()  # divided first, as torchmetrics does
        return mean


class AUROC(MulticlassAUROC):
    """Mean area under the ROC curve, one label against the others, of the labels that occur."""

    _area = staticmethod(multiclass_auroc)

    def compute(self) -> Tensor:
        occurring, labels = dim_zero_cat(self.target).unique(return_inverse=True)
        scores = dim_zero_cat(self.preds)[:, occurring]
        options = {"average": "macro", "validate_args": False}
        mean: Tensor = self._area(scores, labels, len(occurring), **options)
        return mean


class AveragePrecision(AUROC):
    """Mean area under the precision-recall curve of the labels that occur."""

    _area = staticmethod(multiclass_average_precision)


_AVERAGED = {"f1": MulticlassF1Score, "precision": MulticlassPrecision, "recall": MulticlassRecall}
NAMED: dict[str, Callable[..., Metric]] = {
    "accuracy": partial(MulticlassAccuracy, average="micro"),
    "balanced_accuracy": BalancedAccuracy,
    **{
        f"{average}_{name}": partial(kind, average=average)
        for name, kind in _AVERAGED.items()
        for average in ("macro", "micro", "weighted")
    },
    "specificity": partial(MulticlassSpecificity, average="macro"),
    "mcc": MulticlassMatthewsCorrCoef,
    "cohen_kappa": MulticlassCohenKappa,
    "auroc": AUROC,
    "average_precision": AveragePrecision,
}
"""Metrics that `task.metric` may name without an entry under `metrics` in the config.

All take `num_classes`, and higher is better.
"""


def check_metric(
    name: str,
    configured: Collection[str],
    option: str = "task.metric",
    named: Collection[str] = NAMED,
) -> None:
    """Raise a UserError unless a metric has this name: of `configured` ones, or of `named`."""
    known = sorted({*configured, *named})
    if name not in known:
        raise UserError(f"{option}={name} is not one of the metrics: {', '.join(known)}")


def check_higher_is_better(name: str, metric: Metric) -> None:
    """Raise a UserError for a metric that cannot choose the checkpoint: the higher value wins."""
    if metric.higher_is_better is not True:
        raise UserError(
            f"task.metric={name} cannot choose the checkpoint: higher values of "
            f"{type(metric).__name__} are not known to be better (higher_is_better)"
        )


@dataclass(frozen=True)
class SplitScores:
    """The metrics of a split, those of unseen examples named `..._unseen`, and its confusion."""

    metrics: dict[str, float]
    confusion: dict[str, list[list[int]]] = field(default_factory=dict)


class Kept(Metric):
    """The scores `(examples, labels)` and the codes of all examples, on all processes."""

    scores: list[Tensor]
    codes: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.add_state("scores", [], dist_reduce_fx="cat")
        self.add_state("codes", [], dist_reduce_fx="cat")

    def update(self, scores: Tensor, codes: Tensor) -> None:
        self.scores.append(scores)
        self.codes.append(codes)

    def compute(self) -> tuple[Tensor, Tensor]:
        return dim_zero_cat(self.scores), dim_zero_cat(self.codes)


class EndTaskMetrics(nn.Module):
    """Torchmetrics' metrics, computed twice at an evaluation's end: on all and on unseen examples.

    They get the labels' probabilities. Other kinds of end task have subclasses.

    Attributes:
        saw_unseen: whether this process has counted an unseen example.
        confusion: the last evaluation's matrices by part, `(classes, classes)`, labels in rows.
        modes: the directions (`max` or `min`) of metrics that have one.
    """

    one_code: ClassVar[bool] = True
    """Whether an example's code is the index of its label; otherwise it has a number for each."""
    codes_dtype: ClassVar[torch.dtype] = torch.int64
    thresholds: Tensor | None
    """Probability above which a text has a label, `(labels,)`, where an evaluation chooses them."""

    def __init__(self, metrics: Mapping[str, Metric], monitor: str, classes: int) -> None:
        super().__init__()
        self.monitor, self.names, self._classes = monitor, list(metrics), classes
        self.whole, self.unseen = Kept(), Kept()
        # groups are found by equal states after one batch, and such metrics may differ
        self.metrics = MetricCollection(dict(metrics), compute_groups=False).clone()
        for metric in self.metrics.values():  # which get the examples of all processes
            metric.distributed_available_fn = lambda: False
        self.register_buffer("thresholds", None)
        self.saw_unseen = False
        self.confusion: dict[str, Tensor] = {}
        better = {name: metric.higher_is_better for name, metric in metrics.items()}
        self.modes = {n: "max" if high else "min" for n, high in better.items() if high is not None}

    def scores_of(self, logits: Tensor) -> Tensor:
        """Return what is kept of logits `(n, classes)`, of the same shape."""
        return logits.softmax(dim=1)

    def shown(self, scores: Tensor) -> Tensor:
        """Return what metrics get of `scores_of` logits."""
        return scores

    def chosen_thresholds(self) -> list[float] | None:
        return None if self.thresholds is None else self.thresholds.tolist()

    def choose_thresholds(self) -> None:
        """Choose by the examples counted so far what predictions depend on: here nothing."""

    def update(self, logits: Tensor, labels: Tensor, unseen: Tensor | None = None) -> None:
        """Count a batch: logits `(n, classes)`, labels' codes and whether absent from train."""
        scores, codes = self.scores_of(logits.detach()), labels.to(self.codes_dtype)
        self.whole.update(scores, codes)
        if unseen is not None and bool(unseen.any()):
            self.saw_unseen = True
            self.unseen.update(scores[unseen], codes[unseen])

    def every(self, part: Kept) -> tuple[Tensor, Tensor]:
        """Return the scores and codes of a part on all processes."""
        if not part.scores:  # this process has none, and all are joined
            nothing = torch.zeros(0, self._classes, device=part.device)
            part.update(nothing, (nothing[:, 0] if self.one_code else nothing).to(self.codes_dtype))
        both: tuple[Tensor, Tensor] = part.compute()
        return both

    def compute(self, any_unseen: bool) -> dict[str, Tensor]:
        """Return all metrics by name, those of unseen examples if any process `saw_unseen` one."""
        values: dict[str, Tensor] = {}
        self.confusion = {}
        for name, ending in (("whole", ""), ("unseen", "_unseen")):
            if name == "unseen" and not any_unseen:
                continue
            scores, codes = self.every(getattr(self, name))
            with warnings.catch_warnings():  # of labels that no example has, and constant scores
                warnings.simplefilter("ignore", UserWarning)
                self.metrics.reset()
                self.metrics.update(self.shown(scores), codes)
                computed = self.metrics.compute()
            values |= {f"{metric}{ending}": computed[metric] for metric in self.names}
            if self.one_code:
                predicted = scores.argmax(dim=1)
                self.confusion[name] = multiclass_confusion_matrix(predicted, codes, self._classes)
        return values

    def reset(self) -> None:
        self.saw_unseen = False
        for module in self.modules():
            if isinstance(module, Metric):
                module.reset()
