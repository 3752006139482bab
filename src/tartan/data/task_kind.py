"""What differs between kinds of end task; one of several labels for each text is the usual kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold
from torch import Tensor
from torch.nn import functional as F
from torchmetrics import Metric

from tartan.data.labelled import Columns, one_label
from tartan.data.splits import choose_labelled, clean_split, stratified_splits
from tartan.data.table import Row
from tartan.errors import UserError
from tartan.evaluation.metrics import NAMED, EndTaskMetrics
from tartan.objectives.classification import Classification
from tartan.settings import TARGET

Nodes: TypeAlias = Mapping[str, Mapping[str, Any]]
Labels: TypeAlias = Sequence[Any]
Names: TypeAlias = Sequence[str]
Scores: TypeAlias = NDArray[np.floating]
Thresholds: TypeAlias = Sequence[float] | None


class TaskKind:
    """Single-label classification, and the interface of the other kinds, which are subclasses.

    A label is what a row of a table says: here a name. Its code is what a loss and a metric read:
    here the name's index in the labels. Scores are what a file of predictions has for each label.

    Attributes:
        name: the value of `task.kind`.
        problem_type: Transformers' name of the kind.
        one_label: whether one label is chosen, which some methods need: class weights, lists of
            doubtful labels, TF-IDF.
        lists_labels: whether a predicted label is a list of names.
        least_labels: minimum number of labels.
        named: metrics by the names that `task.metric` takes.
        evaluator: computes metrics of logits and codes.
        predicted_column: name of the column of predicted labels; None where scores are them.
        score_column: name of a label's column of scores, its name in the place of `{}`.
    """

    name: ClassVar[str] = "single_label"
    problem_type: ClassVar[str] = "single_label_classification"
    one_label: ClassVar[bool] = True
    lists_labels: ClassVar[bool] = False
    least_labels: ClassVar[int] = 2
    named: ClassVar[Mapping[str, Callable[..., Metric]]] = NAMED
    evaluator: ClassVar[type[EndTaskMetrics]] = EndTaskMetrics
    predicted_column: ClassVar[str | None] = "predicted_label"
    score_column: ClassVar[str] = "probability_{}"

    # labels in tables

    def label(self, row: Row, columns: Columns, *, blank_is_none: bool) -> Any:
        """Return a row's label; None where there is none, as in a blank one if `blank_is_none`."""
        return one_label(row, str(columns.label))

    def label_of(self, value: Any) -> Any:
        """Return the label that a value in a program's batch stands for."""
        # numbers are names too: a data set may store its labels in another order
        return str(value).lower() if isinstance(value, bool) else str(value)

    def names(self, label: Any) -> Sequence[str]:
        """Return the names in a label, which together are the task's labels."""
        return (label,)

    def shown(self, label: Any, separator: str | None = None) -> str:
        """Return a label as a text for people."""
        return str(label)

    def code(self, label: Any, index: Mapping[str, int]) -> Any:
        """Return the code of a label by the indices of the names."""
        return index[label]

    def written(self, code: Any, labels: Sequence[str]) -> Any:
        """Return the value that a table of such labels has for a code."""
        return labels[code]

    def counts(self, codes: Sequence[Any], labels: Sequence[str]) -> tuple[int, ...]:
        """Return the number of examples of each label, in index order."""
        return tuple(np.bincount(codes, minlength=len(labels)).tolist())

    # splits

    def strata(self, labels: Sequence[Any]) -> Sequence[str]:
        """Return the stratum of each example, which keeps its share in every split."""
        return labels

    def split(self, labels: Labels, shares: Mapping[str, float], seed: int, name: str) -> list[str]:
        """See `stratified_splits`."""
        return stratified_splits(self.strata(labels), shares, seed, name)

    def choose(self, labels: Sequence[Any], count: int, seed: int, source: str) -> list[bool]:
        """See `choose_labelled`."""
        return choose_labelled(self.strata(labels), count, seed, source)

    def clean_split(
        self, groups: Sequence[int], labels: Labels, sizes: Mapping[str, int], seed: int, name: str
    ) -> list[str]:
        """See `splits.clean_split`."""
        return clean_split(groups, self.strata(labels), sizes, seed, name)

    def folds(self, labels: Sequence[Any], groups: Sequence[int], folds: int) -> NDArray[np.int64]:
        """Return the fold of each example: stratified, each group in one fold."""
        strata = self.strata(labels)
        cut = StratifiedGroupKFold(folds, shuffle=True, random_state=0)
        fold_of = np.zeros(len(strata), dtype=np.int64)
        for fold, (_, held_out) in enumerate(cut.split(strata, strata, groups)):
            fold_of[held_out] = fold
        return fold_of

    # losses, metrics and predictions

    def objective(self, classification: Any, codes: Sequence[Any]) -> Any:
        """Return the objective of this kind with the options of `classifier`, if they fit."""
        return classification

    def retyped(self, classification: Any, objective: type, **more: Any) -> Any:
        """Return an objective of another class with the same options, unless it has that kind."""
        if type(classification) is Classification:
            options = {f.name: getattr(classification, f.name) for f in fields(classification)}
            return objective(**options, **more)
        if getattr(classification, "kind", None) != self.name:
            raise UserError(f"classifier: {type(classification).__name__} is of single labels")
        return classification

    def loss(self, logits: Tensor, codes: Tensor) -> Tensor:
        """Return the mean loss of logits `(n, labels)`, a scalar."""
        return F.cross_entropy(logits, codes)

    def placed(self, codes: Tensor, places: Tensor, labels: int) -> Tensor:
        """Return codes for other, so many labels, among which theirs are at `places`."""
        return places[codes]

    def metrics(self, nodes: Nodes) -> Nodes:
        """Return the nodes of the metrics of every evaluation, of those in a config."""
        return nodes

    def sizes(self, labels: int) -> dict[str, int]:
        """Return a metric's arguments that depend on the number of labels."""
        return {"num_classes": labels}

    def scores(self, logits: Tensor) -> Tensor:
        """Return a text's scores: here its labels' probabilities, `(n, labels)`."""
        return logits.softmax(dim=1)

    def predicted(self, scores: Scores, labels: Names, thresholds: Thresholds = None) -> list[Any]:
        """Return the label of each text by its scores `(n, labels)`."""
        return [labels[index] for index in scores.argmax(axis=1)]


def check_no_label_options(given: Any) -> None:
    """Check that options of single labels were not given for another kind."""
    if given.class_weights is not None or given.label_smoothing or given.logit_adjustment:
        raise UserError(
            "classifier: class_weights, logit_adjustment and label_smoothing are of single labels, "
            f"not of task.kind={given.kind}"
        )


def without_classes(nodes: Nodes) -> dict[str, Mapping[str, Any]]:
    """Return the metrics of a config but those of single labels."""
    return {
        name: node for name, node in nodes.items() if ".Multiclass" not in str(node.get(TARGET))
    }
