"""Fine-tunes at the cost of a run, from the same start, as a baseline to compare the run with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from omegaconf import DictConfig

from src.configuration.build import typed
from src.core.task_names import END_TASK
from src.errors import UserError
from src.experiment.prepare import has_no_end_task, module_class
from src.methods.outcome import StageOutcome
from src.methods.stage import Stage

FINE_TUNING_OPTION = "fine_tuning_baseline"
FINE_TUNING = "fine_tuning"
"""Name of the baseline, of its stage, and of its folder below the run's."""


def requested_baseline(config: DictConfig) -> Stage | None:
    """Return the stage of fine-tuning that the config asks for; None if it asks for none.

    Raises:
        UserError: the stage is not fine-tuning, or the run has no end task.
    """
    if config.fine_tuning_baseline is None:
        return None
    stage = typed(config.fine_tuning_baseline, Stage, FINE_TUNING_OPTION)
    module = module_class(stage)
    if has_no_end_task(config) or not module.trains_end_task or module.trains_auxiliaries:
        raise UserError(
            f"{FINE_TUNING_OPTION} trains the end task alone: use "
            f"+stage@{FINE_TUNING_OPTION}=finetune, and a task"
        )
    return stage


def at_equal_cost(
    stage: Stage, stages: Mapping[str, Stage], outcomes: Sequence[StageOutcome]
) -> Stage:
    """Return `stage` with the steps that take as many floating-point operations as the run.

    Its batches are as large as those of the run's first stage with the end task, and it is
    evaluated on dev as often as the run was.

    Args:
        stage: a stage of fine-tuning.
        stages: the run's stages by name.
        outcomes: the outcomes of the run's stages.
    """
    reference = next(outcome for outcome in outcomes if END_TASK in outcome.cost.flops)
    step = reference.cost.flops[END_TASK] / reference.steps
    spent = sum(sum(outcome.cost.flops.values()) for outcome in outcomes)
    steps = max(1, round(spent / step))
    evaluations = sum(len(outcome.evaluations) for outcome in outcomes)
    return replace(
        stage,
        batch_size=stages[reference.name].batch_size,
        max_steps=steps,
        max_epochs=None,
        evaluate_every=math.ceil(steps / max(1, evaluations)),
        patience=None,
    )
