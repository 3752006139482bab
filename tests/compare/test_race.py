"""Over how many folds methods race."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tartan.compare.decision import Predictions
from tartan.compare.plan import Plan, request_of
from tartan.compare.race import Race
from tartan.data.labelled import read_trained_columns
from tartan.evaluation.metrics import NAMED


class Instant(Race):
    """A race whose runs take no time: each method is right on a given share of the examples."""

    def __init__(self, options, seconds, right):
        super().__init__(request_of(options))
        self.seconds, self.right, self.trained = seconds, right, []

    def _planned(self):
        steps = {method: {} for method in self._request.methods}
        times = {"seconds": self.seconds, "start": 1.0, "run_seconds": 5.0}
        return Plan(asked={}, costs={}, steps=steps, **times)

    def _fold(self, fold, methods):
        self.trained.append((fold, *methods))
        labels = np.arange(40) % 2
        predicted = {m: np.where(np.arange(40) < 40 * self.right[m], labels, 1 - labels)
                     for m in methods}  # fmt: skip
        one_hot = {method: np.eye(2, dtype=np.float32)[one] for method, one in predicted.items()}
        return Predictions(labels, one_hot, NAMED["accuracy"](num_classes=2))

    def _train(self, methods, train, held_out, options):
        self.trained.append(("all", *methods))
        (self._request.folder / "best" / "classifier").mkdir(parents=True)


@pytest.fixture(autouse=True)
def run_takes_nine_seconds(monkeypatch):
    result = SimpleNamespace(seconds=9.0, baselines=[])
    monkeypatch.setattr("tartan.compare.race.read_result", lambda folder: result)


ALIKE = {"finetune": 0.8, "tapt": 0.8, "mt_tartan": 0.8}


@pytest.mark.parametrize(
    ("seconds", "right", "trained"),
    [
        (None, ALIKE, [(0, *ALIKE), (1, *ALIKE), (2, "finetune", "tapt"), (3, "finetune", "tapt")]),
        (70, ALIKE, [(0, *ALIKE), (1, *ALIKE)]),  # 3 + 3 + 1 runs, of 10 seconds and not of 5
        (69, ALIKE, [(0, *ALIKE)]),
        (None, ALIKE | {"finetune": 1.0}, [(0, *ALIKE)]),  # fine-tuning alone is left
    ],
)
def test_methods_race_while_time_and_a_question_are_left(tmp_path, seconds, right, trained):
    table = tmp_path / "train.csv"
    table.write_text("review,kind\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(40)))
    options = [f"task.train={table}", "task.text=review", "task.label=kind"]
    race = Instant([*options, "folds=4", f"folder={tmp_path}"], seconds, right)
    outcome = race.run()
    assert race.trained == [*trained, ("all", "finetune")]
    assert (outcome.chosen, len(outcome.parts)) == ("finetune", len(trained))
    assert read_trained_columns(tmp_path / "best" / "classifier").text == "review"
