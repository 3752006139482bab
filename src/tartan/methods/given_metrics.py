"""Builds a module's metrics from arguments or a checkpoint's plain values."""

from __future__ import annotations

from collections.abc import Mapping

from torchmetrics import Metric, classification

from tartan.errors import UserError, first_line
from tartan.evaluation.metrics import EndTaskMetrics, tried
from tartan.evaluation.named_metrics import check_higher_is_better, named_metric
from tartan.methods.plain import Node, rebuilt, subclass_of
from tartan.settings import TARGET

_OF_LIBRARY = classification.__name__
METRICS: Mapping[str, Node] = {
    f"{average}_f1": {
        TARGET: f"{_OF_LIBRARY}.MulticlassF1Score",
        "average": average,
    }
    for average in ("macro", "micro", "weighted")
}
"""Metrics of every evaluation unless others are given, as in `conf/config.yaml`."""


def beside_the_usual(metrics: Mapping[str, Node | None]) -> dict[str, Node]:
    """Return the usual metrics and further ones; None leaves a usual one out.

    Raises:
        UserError: one is an object, which a checkpoint cannot hold.
    """
    if not isinstance(metrics, Mapping):
        raise UserError(
            "metrics must name each metric, with its class and arguments: "
            '{"mcc": {"_target_": "torchmetrics.classification.MulticlassMatthewsCorrCoef"}}; got '
            f"{metrics!r:.80}"
        )
    every = {**METRICS, **metrics}
    return dict(check_metrics({name: node for name, node in every.items() if node is not None}))


def check_metrics(nodes: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return metrics after checking that each is a node.

    Raises:
        UserError: one is an object, which a checkpoint cannot hold, or has the loss's name.
    """
    for name, node in nodes.items():
        if name == "loss":
            raise UserError("metrics: the mean loss is logged as `loss`; give another name")
        if not isinstance(node, Mapping) or TARGET not in node:
            raise UserError(
                f"metrics[{name!r}] must be the name of a class, with its arguments: "
                '{"_target_": "torchmetrics.classification.MulticlassMatthewsCorrCoef"}, '
                f"got {type(node).__name__}"
            )
    return nodes


def metrics_of(nodes: Mapping[str, Node], monitor: str, classes: int) -> EndTaskMetrics:
    """Return the end task's metrics, `monitor` among them.

    Raises:
        UserError: a node does not name a metric, or one that takes predicted labels, in the form of
            torchmetrics' for several classes, and returns a number; or higher values of `monitor`
            are not better.
    """
    metrics = {name: _metric_of(name, node, classes) for name, node in nodes.items()}
    if monitor in metrics:
        check_higher_is_better(monitor, metrics[monitor])
    else:
        metrics[monitor] = named_metric(monitor, classes)
    return EndTaskMetrics(metrics, monitor, classes)


def _metric_of(name: str, node: Node, classes: int) -> Metric:
    """Return a metric, after trying it on examples of each label."""
    _check_of_torchmetrics(name, str(node[TARGET]))
    try:
        metric: Metric = rebuilt(node, subclass_of(Metric), "metrics", num_classes=classes)
        value = tried(metric, classes)
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as error:
        raise UserError(
            f"metrics[{name!r}]: {node[TARGET]}(num_classes={classes}, ...) cannot be computed: "
            f"{first_line(error)}"
        ) from error
    if value.numel() != 1:
        raise UserError(
            f"metrics[{name!r}]: {node[TARGET]} returns {value.numel()} values; give one that "
            "returns one, for instance with average=macro"
        )
    return metric


def _check_of_torchmetrics(name: str, target: str) -> None:
    """Check that a class of torchmetrics is one for classification.

    Raises:
        UserError: it is not, or there is none of this name.
    """
    folder, _, kind = target.rpartition(".")
    known = classification.__all__
    is_known = f"{folder}.".startswith(f"{_OF_LIBRARY}.") and kind in known
    if is_known or not target.startswith("torchmetrics."):
        return
    raise UserError(f"metrics[{name!r}]: {target} is no metric of {_OF_LIBRARY}")
