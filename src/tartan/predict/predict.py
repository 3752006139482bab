"""Predicts a label for each text in a file and writes the predictions to another file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from tartan.data.kinds import kind_of_problem
from tartan.data.labelled import (
    Columns,
    columns_to_predict,
    one_label,
    read_trained_columns,
    text_of,
)
from tartan.data.table import TABLES, Quoting, Row, format_of, open_table
from tartan.encoders.saved_classifier import load_classifier
from tartan.errors import UserError
from tartan.files import write_durably
from tartan.predict.writer import Writer
from tartan.runs.folder import model_folder
from tartan.runs.predictor import Predictor, best_device
from tartan.settings import Checked, Count, Fraction, Length

_FEW = 500
"""Number of rows below which there is no progress bar."""


@dataclass(frozen=True)
class Settings(Checked):
    """The options of `conf/predict.yaml`, where each is explained."""

    model: str
    input: str
    output: str
    runs_dir: str = "runs"
    quoting: Quoting = "standard"
    text: str | None = None
    text_pair: str | None = None
    prefix: str = ""
    batch_size: Count = 32
    max_length: Length | None = None
    min_score: Fraction | None = None
    calibrated: bool = True
    device: str = "auto"
    overwrite: bool = False


@dataclass(frozen=True)
class Counts:
    """Numbers of rows: by predicted label, in the classifier's order, and left without a label.

    With `min_score`, `right` counts those of a predicted label that the input tells, right or not.
    """

    rows: int
    by_label: dict[str, int]
    abstained: int
    right: Counter[bool]


def predict_file(settings: Settings) -> Counts:
    """Predict the labels of each row of a file."""
    model = model_folder(settings.model, settings.runs_dir)
    target = Path(settings.output).expanduser()
    written_as = format_of(target, ("csv", "tsv", "jsonl", "parquet"))
    if written_as is None or (written_as.kind == "parquet" and written_as.compression):
        raise UserError(f"output={target}: the name must end in .csv, .tsv, .jsonl or .parquet")
    if target.exists() and not settings.overwrite:
        raise UserError(f"output={target} exists already; replace it with overwrite=true")
    table = open_table(Path(settings.input), (*TABLES, "text"), settings.quoting)
    classifier = load_classifier(model)
    trained = read_trained_columns(model)
    columns = columns_to_predict(table, settings.text, settings.text_pair, trained)
    separator = None if trained is None else trained.separator
    length, limit = settings.max_length or classifier.max_length, classifier.max_positions
    if length is None or (limit is not None and length > limit):
        raise UserError(f"max_length={length}: the classifier reads at most {limit} tokens")
    device = best_device() if settings.device == "auto" else torch.device(settings.device)
    predictor = Predictor(classifier, device, length, settings.batch_size, settings.calibrated)
    kind = kind_of_problem(classifier.problem_type)
    if settings.min_score is not None and not kind.one_label:
        raise UserError(f"min_score is of single labels, and this classifier is {kind.name}")
    writer = Writer(table, written_as, classifier, settings.prefix, settings.min_score, separator)
    right = Counter[bool]()
    # read once before, so that a flaw is found before hours of predictions
    rows = sum(len(_texts(chunk, columns)[0]) for chunk in table.chunks())

    def write(path: Path) -> None:
        terminal = Console(stderr=True)
        bar = Progress(console=terminal, disable=not terminal.is_terminal or rows < _FEW)
        with writer.open(str(path)), bar:
            task = bar.add_task("predicting", total=rows)
            for chunk in table.chunks():
                scores = predictor.predict(*_texts(chunk, columns))
                finite = np.isfinite(scores).all(axis=1)
                if not finite.all():  # the first class is no default
                    place = chunk[int(finite.argmin())].place
                    raise UserError(f"{place}: the classifier gives it no finite probabilities")
                predicted = writer.write(chunk, scores)
                if columns.label and settings.min_score is not None:
                    true = (one_label(row, str(columns.label)) for row in chunk)
                    both = zip(true, predicted, strict=True)
                    right.update(one == other for one, other in both if one and other is not None)
                bar.advance(task, len(chunk))

    write_durably(target, write)
    return Counts(rows, writer.counts, writer.abstained, right)


def _texts(chunk: Sequence[Row], columns: Columns) -> tuple[list[str], list[str] | None]:
    texts = [text_of(row, columns.text) for row in chunk]
    if columns.pair is None:
        return texts, None
    return texts, [text_of(row, columns.pair) for row in chunk]
