"""Trains and evaluates TF-IDF with logistic regression on a cell's task."""

from __future__ import annotations

import time
from collections.abc import Sequence

from src.evaluation.tf_idf import best_tf_idf
from src.study.baseline import entries_of, scores_of, texts_of
from src.study.part import TFIDF, Cell
from src.study.row import Row

STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
"""Values of `C` that are tried, each with words and with pairs too, with and
without class weights.
"""


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
