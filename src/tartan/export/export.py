"""Writes a classifier in ONNX, after comparing it with the original on the run's dev texts."""

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import DictConfig

from tartan.data.text_task import TextTask
from tartan.data.thresholds import judged, read_thresholds
from tartan.encoders.onnx_model import ONNX, quantise, write_onnx
from tartan.encoders.saved_classifier import SavedClassifier, load_classifier
from tartan.errors import UserError
from tartan.runs.folder import model_folder
from tartan.runs.outcome import metrics_of_task
from tartan.runs.predictor import Predictor
from tartan.runs.prepare import take_options_of
from tartan.settings import Checked, build

_ROUNDS = 3
"""Number of times that each classifier predicts the dev texts, in turn, to be timed."""
_WEIGHTS = (".safetensors", ".onnx")
_CLOSE = 1e-4
"""Largest difference, and relative one, that rounding makes."""


@dataclass(frozen=True)
class Settings(Checked):
    """The options of `conf/export.yaml`, where each is explained."""

    model: str
    format: Literal["onnx", "onnx-int8"] = "onnx"
    output: str | None = None
    max_loss: float = 0.005


@dataclass(frozen=True)
class Measured:
    """What a classifier reaches on dev, the size of its weights, and its speed."""

    score: float
    megabytes: float
    texts_s: float


@dataclass(frozen=True)
class Exported:
    """A classifier in ONNX beside the original, on `texts` dev texts.

    `changed` is the number of those with another label, or number; `same` says whether all scores
    are equal up to rounding.
    """

    folder: Path
    metric: str
    texts: int
    changed: int
    same: bool
    before: Measured
    after: Measured

    @property
    def loss(self) -> float:
        """What the task's metric on dev has lost."""
        return self.before.score - self.after.score

    @property
    def words(self) -> str:
        """The comparison in a line."""
        faster = self.after.texts_s / self.before.texts_s
        return (
            f"{self.metric} on {self.texts:,} dev texts {self.before.score:.4f} before and "
            f"{self.after.score:.4f} after, {self.changed} with another label; {faster:.2f} times "
            f"as fast, {self.after.megabytes:.1f} instead of {self.before.megabytes:.1f} MB"
        )


def export(settings: Settings, config: DictConfig) -> Exported:
    """Write the classifier of `settings.model` in ONNX into a folder like its own.

    Its dev texts are those of the run, or of the task that the command names in `config`.

    Raises:
        UserError: the export differs from the original, or loses more than `max_loss` on dev.
    """
    classifier = load_classifier(model_folder(settings.model, str(config.paths.runs_dir)))
    folder = classifier.folder
    beside = folder.with_name(f"{folder.name}-{settings.format}")
    target = Path(settings.output).expanduser() if settings.output else beside
    if target.exists():
        raise UserError(f"{target} exists already; remove it, or name another: output=FOLDER")
    take_options_of(folder.parent, config)
    task = build(config.task, "task").load()
    if not isinstance(task, TextTask) or tuple(task.labels) != classifier.labels:
        raise UserError(f"{folder} has other labels than its task; name its own: task=...")
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".export-") as scratch:
        draft = Path(scratch) / target.name
        _write(classifier, draft, settings.format)
        exported = _compare(config, task, classifier, draft)
        if settings.format == "onnx" and not exported.same:
            raise UserError("the classifier in ONNX gives other scores; it is not written")
        if not exported.loss <= settings.max_loss:  # nor where the metric is not defined
            raise UserError(f"{settings.format} is not written: {exported.words}")
        draft.rename(target)
    return replace(exported, folder=target)


def _write(classifier: SavedClassifier, draft: Path, kind: str) -> None:
    """Write the files of the classifier's folder but for its weights, and those in ONNX."""
    shutil.copytree(classifier.folder, draft, ignore=shutil.ignore_patterns("*.safetensors*"))
    body: Any = getattr(classifier.model, "body", classifier.model)
    body.config.id2label = dict(enumerate(classifier.labels))
    body.config.problem_type = classifier.problem_type
    body.config.save_pretrained(draft)
    types = "token_type_ids" in classifier.tokenizer.model_input_names
    write_onnx(classifier.model, body, types, draft / ONNX)
    if kind == "onnx-int8":
        whole = draft / ONNX
        quantise(whole, draft / "int8.onnx")
        (draft / "int8.onnx").replace(whole)


def _compare(
    config: DictConfig, task: TextTask, classifier: SavedClassifier, draft: Path
) -> Exported:
    """Predict the dev texts by both classifiers in turn, as `tartan predict` does on a CPU."""
    texts, pairs = task.dev.texts, task.dev.pairs
    length = classifier.max_length or task.max_length
    predictors = [
        Predictor(own, torch.device("cpu"), length) for own in (classifier, load_classifier(draft))
    ]
    scores = [predictor.predict(texts, pairs) for predictor in predictors]
    seconds: list[list[float]] = [[], []]
    for _ in range(_ROUNDS):
        for predictor, times in zip(predictors, seconds, strict=True):
            began = time.perf_counter()
            predictor.predict(texts, pairs)
            times.append(time.perf_counter() - began)
    kind, labels, codes = task.kind, task.labels, torch.tensor(task.dev.labels)
    thresholds = read_thresholds(classifier.folder, labels)
    metric = metrics_of_task(config, task).metrics[task.metric]

    def measured(folder: Path, found: NDArray[np.float32], times: list[float]) -> Measured:
        metric.reset()
        metric.update(torch.from_numpy(judged(found, thresholds)), codes)
        size = sum(file.stat().st_size for file in folder.glob("*") if file.suffix in _WEIGHTS)
        return Measured(float(metric.compute()), size / 1e6, len(texts) / median(times))

    before, after = map(measured, (classifier.folder, draft), scores, seconds)
    both = zip(*(kind.predicted(found, labels, thresholds) for found in scores), strict=True)
    return Exported(
        folder=draft,
        metric=task.metric,
        texts=len(texts),
        changed=sum(own != other for own, other in both),
        same=np.allclose(scores[0], scores[1], rtol=_CLOSE, atol=_CLOSE),
        before=before,
        after=after,
    )
