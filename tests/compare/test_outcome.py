"""What a comparison writes beside its page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd

from tartan.compare.decision import Predictions
from tartan.compare.outcome import Outcome, write_outcome
from tartan.evaluation.metrics import NAMED

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
    task = SimpleNamespace(name="toy", metric="accuracy", labels=LABELS)
    return Outcome(
        task, rows, fold_of.tolist(), ["finetune"], parts, ["finetune"], "finetune", None
    )


def test_contradicted_labels_are_listed_the_least_probable_first(tmp_path):
    outcome = outcome_of([0, 0, 1, 1, 1, 1], [0.9, 0.45, 0.4, 0.7, 0.8, 0.5], [1, 0, 1, 0, 0, 2])
    write_outcome(outcome, tmp_path)
    found = pd.read_csv(tmp_path / "doubtful_labels.csv")
    assert found["text"].tolist() == ["text 4", "text 3", "text 1"]
    assert found["predicted"].tolist() == ["a", "a", "b"]
    assert np.allclose(found["probability_of_label"], [0.2, 0.3, 0.45])
    # the fold that was not raced is in neither table
    assert "text 5" not in pd.read_csv(tmp_path / "out_of_fold.csv")["text"].tolist()
