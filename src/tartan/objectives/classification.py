"""Classification, the end task's objective: of texts, from the state of their first token."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor, nn
from torch.nn import functional as F

from tartan.core.task import Batch, Inputs
from tartan.encoders.heads import ClassifierHead, Pooling
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.objectives.base import Batching, Collate, Row, hidden_states
from tartan.objectives.layout import Layout, is_packed, labelled_batch, spans
from tartan.settings import Below1, Checked, Positive, checked

log = logging.getLogger(__name__)


ClassWeights: TypeAlias = (
    Literal["balanced"] | Sequence[Positive] | Mapping[str | bool | int | float, Positive] | None
)
"""The option's values; a command line may turn labels into numbers or booleans."""


@checked
def class_weights(
    class_weights: ClassWeights,
    labels: Sequence[str],
    counts: Sequence[int],
    option: str = "classifier.class_weights",
) -> tuple[float, ...] | None:
    """Return the weights in index order, scaled so that their mean over training examples is 1.

    With this scale the loss is as large as an unweighted one, so that the same learning rates suit.
    `labels` are names in index order, of which `counts` training examples have each.
    """
    weights: Any = class_weights
    if weights is None:
        return None
    if weights == "balanced":
        indices = np.arange(len(labels))
        by_index = compute_class_weight(weights, classes=indices, y=np.repeat(indices, counts))
        weights = by_index.tolist()
    elif len(weights) != len(labels):
        raise UserError(f"{option} has {len(weights)} weights; the labels are {list(labels)}")
    elif isinstance(weights, Mapping):
        by_label = {str(key): weight for key, weight in weights.items()}
        if set(by_label) != set(labels):  # YAML may have turned labels into booleans
            by_fold = {label.casefold(): label for label in labels}
            by_label = {by_fold.get(key.casefold(), key): w for key, w in by_label.items()}
        if set(by_label) != set(labels):
            raise UserError(f"{option} weights {sorted(by_label)}; the labels are {list(labels)}")
        weights = [by_label[label] for label in labels]
    else:
        log.warning("%s by label: %s", option, dict(zip(labels, weights, strict=True)))
    mean = sum(w * n for w, n in zip(weights, counts, strict=True)) / sum(counts)
    return tuple(weight / mean for weight in weights)


class Supervised:
    """Predicts `labels` with cross-entropy; a unit is an example (see `core.task.Objective`).

    With class weights `w`, the loss of a unit with label `y` is `w_y` times its cross-entropy, and
    a batch's is their sum over the number of examples, so that it can be split in any way. With
    `logit_adjustment` it is the unweighted cross-entropy of `logits - log w` (Menon et al. 2021,
    arXiv 2007.07314, equation 10).

    Attributes:
        class_weights: `balanced`, a list in the labels' order, or a weight for each label by name;
            None for equal ones. In training they are in index order, with mean 1 over its examples.
        label_smoothing: share of a target that all labels get alike, in training.
        logit_adjustment: whether the weights move logits, and weigh no losses.
    """

    class_weights: ClassWeights = None
    label_smoothing: Below1 = 0.0
    logit_adjustment: bool = False

    def targets(self, inputs: Inputs) -> Tensor:
        labels: Tensor = inputs["labels"]
        return labels

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each example, `(examples,)`."""
        logits, given, weights = head(features), self.class_weights, None
        if given is not None or self.logit_adjustment:
            assert not isinstance(given, str | Mapping | None), "resolved before training"
            # `cross_entropy` would want weights of the logits' type
            dtype = torch.promote_types(logits.dtype, torch.float32)
            weights = torch.tensor(given, dtype=dtype).to(logits.device, non_blocking=True)
            if self.logit_adjustment:
                logits, weights = logits - weights.log(), None
        losses = F.cross_entropy(
            logits, targets, reduction="none", label_smoothing=self.label_smoothing
        )
        return losses if weights is None else losses * weights[targets]


class TextClassifier(Supervised, ABC):
    """Classifies texts; a unit is a text.

    Attributes:
        pooling: the states of the last layer that stand for a text: its `first` token's, or the
            `mean` of all its tokens'.
    """

    pooling: Pooling = "first"

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return the pooled states of the last layer, `(examples, hidden)`."""
        states = hidden_states(body, inputs)
        if self.pooling == "mean":
            return _means(states.flatten(0, 1), *spans(inputs))
        return states[0].index_select(0, spans(inputs)[0]) if is_packed(inputs) else states[:, 0]

    def collate(
        self, encoder: TextEncoder, micro_batch_size: int, **how: Unpack[Batching]
    ) -> Collate:
        require_text_encoder(encoder, type(self).__name__)
        return partial(self.batch, Layout.of(encoder, micro_batch_size, **how))

    @abstractmethod
    def batch(self, layout: Layout, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        """Return the batch of rows, mostly by `labelled_batch`."""


@dataclass(frozen=True)
class Classification(Checked, TextClassifier):
    """Classifies texts; a unit is an example.

    Attributes:
        classes: number of labels.
        dropout: dropout probability of the head (paper: 0.1 or 0.3).
        class_weights: see `Supervised`.
        label_smoothing: see `Supervised`.
        logit_adjustment: see `Supervised`.
        pooling: see `TextClassifier`.
    """

    problem_type = ClassifierHead.problem_type  # what logits mean, in Transformers' words

    classes: int
    dropout: Below1 = 0.1
    class_weights: ClassWeights = None
    label_smoothing: Below1 = 0.0
    pooling: Pooling = "first"
    logit_adjustment: bool = False

    def new_head(self, encoder: TextEncoder) -> nn.Module:
        return encoder.new_classifier_head(
            self.classes, self.dropout, self.pooling, self.problem_type
        )

    def batch(self, layout: Layout, rows: Sequence[Row], rng: np.random.Generator) -> Batch:
        token_ids = [np.asarray(row["input_ids"], dtype=np.int64) for row in rows]
        names = {"label": "labels", "unseen": "unseen"}
        columns = {new: [row[old] for row in rows] for old, new in names.items() if old in rows[0]}
        return labelled_batch(layout, rows, token_ids, **columns)


def _means(states: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean of each text's states, in float32."""
    places = torch.arange(len(states), device=states.device)
    inside = (places >= starts[:, None]) & (places < (starts + lengths)[:, None])
    with torch.autocast(states.device.type, enabled=False):
        states = states.to(torch.promote_types(states.dtype, torch.float32))
        return (inside.to(states.dtype) @ states) / lengths[:, None].to(states.dtype)
