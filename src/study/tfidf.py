"""TF-IDF with logistic regression: what a classifier reaches without any encoder."""

from __future__ import annotations

import time
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from src.configuration.build import build
from src.data.text_task import LabelledTexts, TextTask
from src.errors import UserError
from src.evaluation.tf_idf import TfIdfClassifier, best_tf_idf
from src.experiment.baseline import evaluated
from src.run_folder.stored import options_of
from src.study.part import TFIDF, Cell
from src.study.row import Row, digest_of

STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
"""Values of `C`, each of words and of pairs too, with labels weighted alike and as they come."""
_CONF = Path(__file__).parents[2] / "conf"


def tfidf_row(cell: Cell, options: list[str], commit: str) -> Row:
    """Train it on the labelled examples of the cell's task, and evaluate it.

    Args:
        options: of the command line, beside the cell's.
        commit: that trains it.

    Raises:
        UserError: the task cannot be read, or is not one of single texts.
    """
    with initialize_config_dir(str(_CONF), version_base="1.3"):
        config = compose("config", overrides=[*cell.overrides, *options])
    end_task = build(config.task, "task").load()
    if not isinstance(end_task, TextTask) or end_task.train.pairs is not None:
        raise UserError(f"TF-IDF reads single texts, which task {end_task.name} has not got")
    start = time.monotonic()
    best = best_tf_idf(
        end_task.train.texts,
        end_task.train.labels,
        lambda classifier: _scores(config, end_task, end_task.dev, classifier)[end_task.metric],
        STRENGTHS,
        ("balanced", None),
    )
    dev = _scores(config, end_task, end_task.dev, best)[end_task.metric]
    test = _scores(config, end_task, end_task.test, best)
    all_options = options_of(config)
    read = {name: all_options[name] for name in all_options if name.startswith("task.")}
    return Row(
        budget=cell.budget,
        setting=cell.setting,
        seed=cell.seed,
        task=end_task.name,
        labelled=len(end_task.train),
        encoder="none",
        method=TFIDF,
        metric=end_task.metric,
        dev=dev,
        test=test[end_task.metric],
        unseen=test.get(f"{end_task.metric}_unseen"),
        seconds=round(time.monotonic() - start, 1),
        stages=best.settings,
        config=digest_of({**read, "seed": cell.seed}),
        commit=commit,
    )


def _scores(
    config: DictConfig, end_task: TextTask, split: LabelledTexts, classifier: TfIdfClassifier
) -> dict[str, float]:
    """Return the task's metrics on a split, by name, as runs compute them."""
    metrics = evaluated(config, end_task, split, classifier)
    values = metrics.compute(any_unseen=any(split.unseen))
    return {name: round(float(value), 6) for name, value in values.items()}
