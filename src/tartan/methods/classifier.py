"""Evaluates, predicts and saves the end task's classifier in a module."""

import copy
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import torch
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor

from tartan.core.task import Inputs, Task
from tartan.data.batches import labelled_batch, unlabelled_batch
from tartan.data.labelled import write_trained_columns
from tartan.data.thresholds import write_thresholds
from tartan.data.tokenise import Text, inputs_of
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import require_text_encoder
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.evaluation.stage_result import Monitor
from tartan.methods.parts import TaskModule
from tartan.methods.shards import whole_copy

log = logging.getLogger(__name__)
T = TypeVar("T")


class EndTaskClassifier(TaskModule):
    """Evaluates and predicts the end task; subclasses train its body and head."""

    label_places: Tensor | None = None  # indices in `labels` of the data's labels, if others

    @property
    def monitor(self) -> Monitor | None:
        """The metric on dev by which checkpoints are chosen; None where nothing is evaluated."""
        return None if self.metrics is None else Monitor(self.metrics.monitor)

    def forward(self, texts: str | Sequence[Text] | Inputs) -> Tensor:
        """Return the end task's logits, `(n, classes)`.

        `texts` are one or more texts, pairs of texts, `{"text": texts}` (and `text_pair`), or what
        a tokenizer (or, of images, the data) has made of them.
        """
        task, _ = self._evaluated()
        if not isinstance(texts, Mapping | pd.DataFrame):
            some = [texts] if isinstance(texts, str) else list(texts)
            if some and all(isinstance(one, str) and os.path.isfile(one) for one in some):  # noqa: PTH113
                raise UserError(f"{some[0]} is a file, not a text; tartan predict reads files")
            if some and isinstance(some[0], Mapping):  # rows, whose items are names of columns
                texts = unlabelled_batch(some)
        if isinstance(texts, str | pd.DataFrame) or (
            isinstance(texts, Mapping) and "text" in texts
        ):
            texts = unlabelled_batch(texts)
        if not len(texts):
            return torch.zeros(0, len(self.labels), device=self.device)
        if not isinstance(texts, Mapping):
            encoder = require_text_encoder(self.encoder, "a text")
            read = inputs_of(list(texts), encoder, self.max_length)
            texts = {name: value.to(self.device) for name, value in read.items()}
        logits: Tensor = task.head(task.objective.features(self.body, texts))
        return logits.float()

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Add a batch (see `labelled_batch`) of dev or test to the metrics."""
        _, metrics = self._evaluated()
        if dataloader_idx > 0:
            raise UserError("an evaluation takes one loader at a time, not several")
        inputs, labels, unseen = labelled_batch(batch, self.labels, self.kind, self.label_places)
        logits = self(inputs)
        labels = labels.to(logits.device)
        metrics.update(logits, labels, unseen)
        self.evaluation_loss.update(self.kind.loss(logits, labels), len(labels))

    test_step = validation_step

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> dict[str, Any]:
        """Return `label`, n of them, and `probabilities`, `(n, classes)`, of a batch of texts."""
        if isinstance(batch, str):  # e.g. the name of a table's column
            raise UserError("trainer.predict takes a DataLoader of texts, not texts or a table")
        _, metrics = self._evaluated()
        scores = self.kind.scores(self(unlabelled_batch(batch)))
        thresholds = metrics.chosen_thresholds()
        predicted = self.kind.predicted(scores.detach().cpu().numpy(), self.labels, thresholds)
        return {"label": predicted, "probabilities": scores}

    def on_validation_epoch_start(self) -> None:
        # Before an evaluation and not after it: `Trainer.validate` makes tensors of inference mode,
        # which the evaluations of a later `Trainer.fit` could not add to.
        self.evaluation_loss.reset()
        if self.metrics is not None:
            self.metrics.reset()

    on_test_epoch_start = on_validation_epoch_start

    def on_validation_epoch_end(self) -> None:
        self._log_metrics("dev")

    def on_test_epoch_end(self) -> None:
        self._log_metrics("test")

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the classifier, for Transformers and `tartan predict`; all processes call this."""
        task, metrics = self._evaluated()
        remark = self._in_main(
            lambda encoder: encoder.save_classifier(
                task.head, self.labels, Path(folder), self.max_length
            )
        )
        if remark is not None:
            log.warning(remark)
        if not self.agreement.is_main:
            return
        write_thresholds(Path(folder), self.labels, metrics.chosen_thresholds())
        if self.columns is not None:
            write_trained_columns(self.columns, Path(folder))

    def _in_main(self, use: Callable[[Encoder], T]) -> T | None:
        """Have the main process use its whole encoder; of a sharded body, the others wait."""
        encoder, body = self.encoder, whole_copy(self.body)
        if body is not self.body:
            encoder = copy.copy(encoder)
            encoder.body = body  # type: ignore[misc]
        try:
            return use(encoder) if self.agreement.is_main else None
        finally:
            if body is not self.body:
                self.agreement.wait()

    def _log_metrics(self, split: str) -> None:
        _, metrics = self._evaluated()
        if split == "dev" and self.trainer.state.fn == TrainerFn.FITTING:
            metrics.choose_thresholds()
        any_unseen = bool(self.agreement.highest(int(metrics.saw_unseen)))
        values = metrics.compute(any_unseen=any_unseen)
        values["loss"] = self.evaluation_loss.compute()
        self._log_values(split, values, metrics.monitor)

    def _log_values(self, split: str, values: Mapping[str, Tensor], monitored: str) -> None:
        # they are the same on all processes: there is nothing to sum, which Lightning would ask for
        equal: Any = {"sync_dist": True, "reduce_fx": "max"}
        self.log_dict({f"{split}/{name}": value for name, value in values.items()}, **equal)
        shown = f"{split}_{monitored}"
        self.log(shown, values[monitored], prog_bar=True, logger=False, **equal)

    def _evaluated(self) -> tuple[Task, EndTaskMetrics]:
        if self.end_task is None or self.metrics is None:
            raise UserError(
                f"{type(self).__name__} does not train the end task: there is nothing to predict"
            )
        return self.end_task, self.metrics
