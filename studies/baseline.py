"""Makes rows of classifiers that `src.run` does not train, of which TF-IDF is trained here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from torch import Tensor

from studies.part import TFIDF, Cell
from studies.row import Row, digest_of
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.errors import UserError
from tartan.evaluation.tf_idf import best_tf_idf
from tartan.experiment.baseline import evaluated
from tartan.run_folder.stored import options_of
from tartan.settings import build

_CONF = Path(__file__).parents[1] / "conf"
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
"""Values of `C` that are tried, each with words and with pairs too, with and
without class weights.
"""
LogProbabilities = Callable[[Sequence[str]], Tensor]
"""A function that returns the log-probability of each label for texts, `(texts, labels)`."""


def texts_of(cell: Cell, options: Sequence[str]) -> tuple[DictConfig, TextTask]:
    """Compose a cell's config and load its task.

    Args:
        options: options of the command line, in addition to the cell's.

    Raises:
        UserError: the task cannot be read, or its examples are not single texts.
    """
    with initialize_config_dir(str(_CONF), version_base="1.3"):
        config = compose("config", overrides=[*cell.overrides, *options])
    end_task = build(config.task, "task").load()
    if not isinstance(end_task, TextTask) or end_task.train.pairs is not None:
        raise UserError(f"{cell.setting} reads single texts, but task {end_task.name} has none")
    return config, end_task


def scores_of(
    config: DictConfig, end_task: TextTask, split: LabelledTexts, classify: LogProbabilities
) -> dict[str, float]:
    """Return the task's metrics on a split by name, computed as in runs."""
    metrics = evaluated(config, end_task, split, classify)
    values = metrics.compute(any_unseen=any(split.unseen))
    return {name: round(float(value), 6) for name, value in values.items()}


def entries_of(
    cell: Cell, config: DictConfig, end_task: TextTask, classify: LogProbabilities
) -> dict[str, Any]:
    """Evaluate a classifier on dev and test; return the entries of its `Row` that result."""
    dev = scores_of(config, end_task, end_task.dev, classify)
    test = scores_of(config, end_task, end_task.test, classify)
    options = options_of(config)
    read = {name: options[name] for name in options if name.startswith("task.")}
    return {
        "budget": cell.budget,
        "setting": cell.setting,
        "seed": cell.seed,
        "task": end_task.name,
        "labelled": len(end_task.train),
        "metric": end_task.metric,
        "dev": dev[end_task.metric],
        "test": test[end_task.metric],
        "unseen": test.get(f"{end_task.metric}_unseen"),
        "config": digest_of({**read, "seed": cell.seed}, cell.draws_data),
    }


def tfidf_row(cell: Cell, options: Sequence[str], commit: str) -> Row:
    """Train TF-IDF on the labelled examples of the cell's task, and evaluate it.

    Args:
        options: options of the command line, in addition to the cell's.
        commit: the commit that trains it.

    Raises:
        UserError: the task cannot be read, or its examples are not single texts.
    """
    config, end_task = texts_of(cell, options)
    start = time.monotonic()
    best = best_tf_idf(
        end_task.train.texts,
        end_task.train.labels,
        lambda classifier: scores_of(config, end_task, end_task.dev, classifier.log_probabilities)[
            end_task.metric
        ],
        STRENGTHS,
        ("balanced", None),
    )
    return Row(
        **entries_of(cell, config, end_task, best.log_probabilities),
        encoder="none",
        method=TFIDF,
        seconds=round(time.monotonic() - start, 1),
        stages=best.settings,
        commit=commit,
    )
