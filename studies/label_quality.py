"""Plants wrong labels and counts those found; labels suggested texts and random ones.

Usage: `python -m studies.label_quality data_dir=FOLDER > docs/results/label_quality.csv`.
"""

import sys
from typing import Any

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tartan.check.labels import embed
from tartan.encoders.pretrained import load_encoder
from tartan.evaluation.label_quality import doubtful_labels, out_of_fold, texts_to_label
from tartan.settings import CONF, build

TASKS, SEEDS = ("scierc", "acl_arc"), range(10)
WRONG, LABELLED, ADDED = 0.05, 100, 50


def found_first(x: Any, rows: pd.DataFrame, labels: list[str], seed: int) -> float:
    """Return the share of planted wrong labels that are in the first tenth of the list."""
    random, y = np.random.default_rng(seed), rows["y"].to_numpy().copy()
    wrong = random.choice(len(y), round(WRONG * len(y)), replace=False)
    y[wrong] = (y[wrong] + random.integers(1, len(labels), len(wrong))) % len(labels)
    examples = pd.DataFrame({"row": range(len(y)), "label": np.asarray(labels)[y]})
    listed = doubtful_labels(examples, out_of_fold(x, rows["text"].tolist(), y, seed), labels)
    return float(np.isin(wrong, listed["row"][: len(y) // 10]).mean())


def scores(x: Any, y: Any, test_x: Any, test_y: Any, seed: int) -> list[float]:
    """Return the test macro-F1 of some labels, and with random and with suggested texts added."""
    order = np.random.default_rng(seed).permutation(len(y))
    known, pool = order[:LABELLED], order[LABELLED:]

    def fitted(rows: Any) -> Any:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
        return model.fit(x[rows], y[rows])

    probabilities = fitted(known).predict_proba(x[pool])
    suggested = texts_to_label(probabilities, lambda rows: x[pool[rows]], ADDED, seed)
    added = (pool[:0], pool[:ADDED], pool[suggested])
    predicted = [fitted(np.append(known, more)).predict(test_x) for more in added]
    return [float(f1_score(test_y, labels, average="macro")) for labels in predicted]


if __name__ == "__main__":
    rows = []
    for name in TASKS:
        with initialize_config_dir(CONF, version_base="1.3"):
            config = compose("config", [f"task={name}", "encoder=minilm", *sys.argv[1:]])
        task = build(config.task, "task").load()
        encoder: Any = load_encoder(build(config.encoder, ""))
        train, test = (
            pd.DataFrame({"text": s.texts, "y": s.labels}) for s in (task.train, task.test)
        )
        x, test_x = (embed(encoder, split, task.max_length) for split in (train, test))
        for seed in SEEDS:
            own = scores(x, train["y"].to_numpy(), test_x, test["y"], seed)
            found = found_first(x, train, list(task.labels), seed)
            rows.append((name, seed, found, *own))
    frame = pd.DataFrame(rows, columns=["task", "seed", "found", "before", "random", "suggested"])
    frame.to_csv(sys.stdout, index=False, float_format="%.4f")
