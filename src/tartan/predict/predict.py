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
from tartan.data.tokenise import encode_texts
from tartan.encoders.saved_classifier import SavedClassifier, load_classifier
from tartan.errors import UserError
from tartan.files import write_durably
from tartan.predict.writer import Writer
from tartan.runs.folder import model_folder
from tartan.settings import Checked, Count, Fraction, Length


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


class Predictor:
    """A classifier that predicts in float32; batches change its results by rounding only.

    `batch_size` texts go through it at once, each cut after `max_length` tokens as in training.
    Logits are divided by the classifier's temperature if `calibrated`.
    """

    def __init__(
        self,
        classifier: SavedClassifier,
        device: torch.device,
        batch_size: int,
        max_length: int,
        calibrated: bool = True,
    ) -> None:
        self._temperature = classifier.temperature if calibrated else 1.0
        self._classifier, self._device = classifier, device
        self._batch_size, self._max_length = batch_size, max_length
        classifier.model.to(device)

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> np.ndarray:
        """Return each text's scores, float32 `(texts, labels)`: its labels' probabilities."""
        tokenizer = self._classifier.tokenizer
        types = "token_type_ids" in tokenizer.model_input_names
        columns = [list(texts)] if pairs is None else [list(texts), list(pairs)]
        encoded = encode_texts(columns, tokenizer, self._max_length, types)
        # texts of similar length together, which saves padding
        order = sorted(range(len(texts)), key=lambda i: -len(encoded["input_ids"][i]))
        scores_of = kind_of_problem(self._classifier.problem_type).scores
        scores = np.empty((len(texts), len(self._classifier.labels)), dtype=np.float32)
        for start in range(0, len(order), self._batch_size):
            members = order[start : start + self._batch_size]
            batch = {name: [values[i] for i in members] for name, values in encoded.items()}
            padded = tokenizer.pad(batch, return_tensors="pt").to(self._device)
            logits = self._classifier.logits(padded).float() / self._temperature
            scores[members] = scores_of(logits).cpu().numpy()
        return scores


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
    automatic = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(automatic if settings.device == "auto" else settings.device)
    predictor = Predictor(classifier, device, settings.batch_size, length, settings.calibrated)
    kind = kind_of_problem(classifier.problem_type)
    if settings.min_score is not None and not kind.one_label:
        raise UserError(f"min_score is of single labels, and this classifier is {kind.name}")
    writer = Writer(table, written_as, classifier, settings.prefix, settings.min_score, separator)
    right = Counter[bool]()
    # read once before, so that a flaw is found before hours of predictions
    rows = sum(len(_texts(chunk, columns)[0]) for chunk in table.chunks())

    def write(path: Path) -> None:
        terminal = Console(stderr=True)
        bar = Progress(console=terminal, disable=not terminal.is_terminal)
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
