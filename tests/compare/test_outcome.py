"""What a comparison writes beside its page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd

from tartan.compare.decision import Predictions
from tartan.compare.outcome import Outcome, write_outcome
from tartan.data.task_kind import TaskKind
from tartan.evaluation.calibration import Calibration, calibrate, write_calibration
from tartan.evaluation.metrics import NAMED
from tartan.files import read_json
from tartan.runs.result import read_result, write_result
from tests.runs.small_result import small_result

LABELS = ("a", "b")
METRIC = NAMED["accuracy"](num_classes=2)


def outcome_of(labels, probabilities, fold_of):
    """A race of fine-tuning alone: these probabilities of `a` for the examples."""
    rows = [{"text": f"text {i}", "label": LABELS[label]} for i, label in enumerate(labels)]
    labels, fold_of, first = (np.array(one) for one in (labels, fold_of, probabilities))
    both = np.stack([first, 1 - first], axis=1).astype(np.float32)
    parts = [
        Predictions(labels[fold_of == fold], {"finetune": both[fold_of == fold]}, METRIC)
        for fold in (0, 1)
    ]
    task = SimpleNamespace(name="toy", metric="accuracy", labels=LABELS, kind=TaskKind())
    return Outcome(
        task,
        rows,
        fold_of.tolist(),
        ["finetune"],
        parts,
        ["finetune"],
        "finetune",
        None,
        [0.5, 0.6],
    )


def test_contradicted_labels_are_listed_the_least_probable_first(tmp_path):
    outcome = outcome_of([0, 0, 1, 1, 1, 1], [0.9, 0.45, 0.4, 0.7, 0.8, 0.5], [1, 0, 1, 0, 0, 2])
    write_outcome(outcome, tmp_path)
    assert "TF-IDF" in (tmp_path / "comparison.md").read_text()
    assert "55.0" in (tmp_path / "comparison.md").read_text()
    found = pd.read_csv(tmp_path / "doubtful_labels.csv")
    assert found["text"].tolist() == ["text 4", "text 3", "text 1"]
    assert found["predicted"].tolist() == ["a", "a", "b"]
    assert np.allclose(found["probability_of_label"], [0.2, 0.3, 0.45])
    # the fold that was not raced is in neither table
    assert "text 5" not in pd.read_csv(tmp_path / "out_of_fold.csv")["text"].tolist()


def test_the_classifier_gets_the_temperature_of_texts_that_were_held_out(tmp_path):
    generator, best = np.random.default_rng(0), tmp_path / "best"
    labels = generator.integers(2, size=100)
    certain = np.where(generator.random(100) < 0.7, labels, 1 - labels)  # and right at 70 %
    outcome = outcome_of(labels, np.where(certain == 0, 0.99, 0.01), [*[0, 1] * 50])
    trained = calibrate(np.array([[5.0, 0.0], [0.0, 1.0], [0.1, 0.0]]), np.array([0, 1, 1]))
    (best / "classifier").mkdir(parents=True)
    write_calibration(trained, best)
    write_result(small_result(calibration=trained.summary), best)
    (best / "classifier" / "README.md").write_text(f"- {trained.sentence}\n")
    for _ in range(2):  # also by the same command again
        write_outcome(outcome, tmp_path)
    logit = np.log(0.99 / 0.01)
    expected = logit / np.log((certain == labels).mean() / (certain != labels).mean())
    for folder in (best, best / "classifier"):
        found = read_json(folder / "calibration.json", Calibration)
        assert np.isclose(found.temperature, expected, rtol=1e-4)
    assert read_result(best).calibration == found.summary
    card = (best / "classifier" / "README.md").read_text()
    assert found.sentence in card
    assert trained.sentence not in card
