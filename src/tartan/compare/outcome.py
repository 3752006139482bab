"""Writes what came out of a comparison: scores, predictions, and how the classifier was chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from tartan.compare.decision import Predictions, joined
from tartan.compare.folds import Row
from tartan.data.text_task import TextTask
from tartan.evaluation.calibration import Calibration, calibrate, write_calibration
from tartan.evaluation.label_quality import DOUBTFUL, doubtful_labels
from tartan.evaluation.statistics import scores_by_class
from tartan.files import CALIBRATION, escape_markdown, read_json, write_durably, write_text_durably
from tartan.runs.result import read_result, write_result

PAGE, OUT_OF_FOLD = "comparison.md", "out_of_fold.csv"


@dataclass(frozen=True)
class Outcome:
    """The result of a comparison."""

    task: TextTask
    rows: Sequence[Row]  # the labelled examples
    fold_of: Sequence[int]  # of each example
    methods: Sequence[str]  # the simplest first
    parts: Sequence[Predictions]  # for the held-out examples of each fold
    finalists: Sequence[str]  # the methods that were not dropped
    chosen: str  # the method that was trained on all labels
    test: Predictions | None  # of the chosen method, for a given test split
    tf_idf: Sequence[float]  # the score of TF-IDF in each fold, where it has one


def write_outcome(outcome: Outcome, folder: Path) -> str:
    """Write the page, the predictions and the card's results, and return the page's text."""
    sentence, chosen, metric = worth(outcome), outcome.chosen, outcome.task.metric
    held_out = joined(outcome.parts, [chosen])
    lines = [
        *([sentence, ""] if sentence else []),
        f"{metric} on texts that were not trained on; `error` is the standard error "
        f"of the difference from {outcome.methods[0]} over the same texts.",
        "",
        *_markdown(_scores(outcome)),
        "",
        f"{chosen}, the simplest method within one standard error of the best, was trained "
        f"on all {len(outcome.rows):,} labelled examples: `{folder / 'best' / 'classifier'}`.",
    ]
    if outcome.task.kind.one_label:
        lines += ["", f"{chosen}, label by label, on the same texts:", ""]
        lines += _markdown(_by_label(held_out, chosen, outcome.task.labels))
    if outcome.tf_idf:
        simple = f"{100 * fmean(outcome.tf_idf):.1f}, the mean of the folds"
        lines += ["", f"TF-IDF, with the settings that suit these texts best, has {simple}."]
    if outcome.test is not None:
        score, (low, high) = outcome.test.scores[chosen], outcome.test.interval(chosen)
        said = f"{100 * score:.1f} {metric} (95 % interval {100 * low:.1f} to {100 * high:.1f})"
        lines += ["", f"On the {len(outcome.test.labels):,} test texts, looked at once: {said}."]
    section = "\n".join(lines) + "\n"
    text = f"# {chosen} is the choice for {outcome.task.name}\n\n{section}"
    write_text_durably(folder / PAGE, text)
    frame = _out_of_fold(outcome)
    write_durably(folder / OUT_OF_FOLD, lambda path: frame.to_csv(path, index=False))
    if outcome.task.kind.one_label:
        examples = frame[list(outcome.rows[0])]
        probabilities = held_out.probabilities[chosen]
        doubtful = doubtful_labels(examples, probabilities, outcome.task.labels)
        write_durably(folder / DOUBTFUL, lambda path: doubtful.to_csv(path, index=False))
        _recalibrate(probabilities, held_out.labels, folder / "best")
    card = folder / "best" / "classifier" / "README.md"
    if card.is_file():
        before, results, after = card.read_text(encoding="utf-8").partition("\n## Results\n")
        rest = "".join(after.partition("\n## ")[1:])  # the run's own are of texts it was trained on
        write_text_durably(card, f"{before}{results}\n{section}{rest}")
    return text


def worth(outcome: Outcome) -> str:
    """Return a sentence on what unlabelled text was worth; empty where nothing says so."""
    baseline, metric, folds = outcome.methods[0], outcome.task.metric, len(outcome.parts)
    if baseline != "finetune" or len(outcome.methods) == 1:
        return ""
    both = joined(outcome.parts, outcome.finalists)
    others = [method for method in outcome.finalists if method != baseline]
    if not others:
        return (
            "Unlabelled text was worth nothing here: no method that reads it kept up with "
            f"fine-tuning ({metric}; folds: {folds})."
        )
    best = max(others, key=both.scores.__getitem__)
    ahead = both.difference(best, baseline)
    value, low, high = (f"{100 * one:+.1f}" for one in (ahead.value, ahead.low, ahead.high))
    return (
        f"Unlabelled text was worth {value} points of {metric} here (95 % interval {low} to "
        f"{high}): {best} against fine-tuning at equal cost, on {len(both.labels):,} labelled "
        f"examples (folds: {folds})."
    )


def _markdown(frame: pd.DataFrame) -> list[str]:
    rows = [frame.columns, ["---"] * frame.columns.size, *frame.astype(str).values.tolist()]
    return [f"| {' | '.join(row)} |" for row in rows]


def _by_label(held_out: Predictions, method: str, labels: Sequence[str]) -> pd.DataFrame:
    """Return a method's precision, recall and F1 for each label [%], and its number of texts."""
    predicted = held_out.probabilities[method].argmax(1)
    counts = confusion_matrix(held_out.labels, predicted, labels=range(len(labels)))
    frame = pd.DataFrame(scores_by_class(counts)).fillna(0.0)
    shares = (100 * frame[["precision", "recall", "f1"]]).round(1).rename(columns={"f1": "F1"})
    shares.insert(0, "label", [escape_markdown(label) for label in labels])
    return shares.assign(texts=frame["support"])


def _scores(outcome: Outcome) -> pd.DataFrame:
    """Return a row for each method: folds, score, and the difference from the first method."""
    baseline, rows = outcome.methods[0], []
    for method in outcome.methods:
        parts = [part for part in outcome.parts if method in part.probabilities]
        predictions = joined(parts, list(dict.fromkeys([baseline, method])))
        ahead = predictions.difference(method, baseline)
        rows.append(
            {
                "method": method,
                "folds": len(parts),
                "texts": len(predictions.labels),
                outcome.task.metric: f"{100 * predictions.scores[method]:.1f}",
                "difference": "" if method == baseline else f"{100 * ahead.value:+.1f}",
                "error": "" if method == baseline else f"{100 * ahead.error:.1f}",
            }
        )
    return pd.DataFrame(rows)


def _out_of_fold(outcome: Outcome) -> pd.DataFrame:
    """Return the examples of the folds that were raced, and what each method predicted for them."""
    frame = pd.DataFrame(outcome.rows).assign(fold=outcome.fold_of)
    kind = outcome.task.kind
    for method in outcome.methods:
        column = pd.Series("", index=frame.index, dtype=object)
        for fold, part in enumerate(outcome.parts):
            if method in part.probabilities:
                scores = part.probabilities[method]
                predicted = kind.predicted(scores, outcome.task.labels)
                column[frame["fold"] == fold] = [kind.shown(label) for label in predicted]
        frame[f"predicted_{method}"] = column
    return frame[frame["fold"].isin(range(len(outcome.parts)))].sort_values("fold", kind="stable")


def _recalibrate(
    probabilities: NDArray[np.floating], labels: NDArray[np.int64], best: Path
) -> None:
    """Give the classifier the temperature of texts that its method was not trained on."""
    if not (best / CALIBRATION).is_file():
        return
    # a label can lack in what a fold trained on: then no temperature would help
    known = probabilities[np.arange(len(labels)), labels] > 0
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities[known].astype(np.float64))
    old, new = read_json(best / CALIBRATION, Calibration), calibrate(logits, labels[known])
    card, result = best / "classifier" / "README.md", read_result(best, finite=False)
    text = card.read_text(encoding="utf-8").replace(old.sentence, new.sentence)
    write_text_durably(card, text)
    write_calibration(new, best)
    if result.calibration != new.summary:
        write_result(result.model_copy(update={"calibration": new.summary}), best)
