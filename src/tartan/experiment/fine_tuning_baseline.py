"""Fine-tunes at the cost of a run, from the same start, as a baseline to compare the run with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from tartan.core.task_names import END_TASK
from tartan.errors import UserError
from tartan.experiment.prepare import has_no_end_task, module_class
from tartan.methods.flops import BACKWARD
from tartan.methods.outcome import StageOutcome
from tartan.methods.stage import Stage
from tartan.run_folder.name import as_given, option_of
from tartan.settings import typed

FINE_TUNING_OPTION = "fine_tuning_baseline"
FINE_TUNING = "fine_tuning"
"""Name of the baseline, of its stage, and of its folder below the run's."""

_OF_THE_RUN = tuple(
    f"{FINE_TUNING_OPTION}.{name}"
    for name in ("batch_size", "max_steps", "max_epochs", "evaluate_every", "patience")
)
"""Options that the baseline takes from the run (see `at_equal_cost`)."""


def requested_baseline(config: DictConfig) -> Stage | None:
    """Return the stage of fine-tuning that the config asks for; None if it asks for none.

    Raises:
        UserError: the stage is not fine-tuning, the run has no end task, or the command line gives
            what follows the run.
    """
    if config.fine_tuning_baseline is None:
        return None
    stage = typed(config.fine_tuning_baseline, Stage, FINE_TUNING_OPTION)
    if not stage.enabled:
        return None
    _check_not_given()
    module = module_class(stage)
    if has_no_end_task(config) or not module.trains_end_task or module.trains_auxiliaries:
        raise UserError(
            f"{FINE_TUNING_OPTION} trains the end task alone: use "
            f"+stage@{FINE_TUNING_OPTION}=finetune, and a task"
        )
    return stage


def _check_not_given() -> None:
    """Check that the command line gives no option that `at_equal_cost` sets.

    The chosen stage sets them too, so that their values do not tell.

    Raises:
        UserError: it gives one.
    """
    given = as_given(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []
    for option in map(option_of, given):
        if option in _OF_THE_RUN:
            raise UserError(f"{option} follows the run; omit it")


def at_equal_cost(
    stage: Stage, stages: Mapping[str, Stage], outcomes: Sequence[StageOutcome]
) -> Stage:
    """Return `stage` with the steps that take as many floating-point operations as the run.

    A step's cost, and the size of its batches, are those of the run's first stage with the end task
    that trains or freezes the body as `stage` does; where there is none, the first with the end
    task counts, its cost scaled by that of the backward pass. It is evaluated on dev as often as
    the run was.

    Args:
        stage: a stage of fine-tuning.
        stages: the run's stages by name.
        outcomes: the outcomes of the run's stages.
    """
    with_end_task = [outcome for outcome in outcomes if END_TASK in outcome.cost.flops]
    alike = [o for o in with_end_task if stages[o.name].freeze_body == stage.freeze_body]
    reference = (alike or with_end_task)[0]
    step = reference.cost.flops[END_TASK] / reference.steps
    step *= _passes(stage) / _passes(stages[reference.name])
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


def _passes(stage: Stage) -> int:
    """Return the cost of a step's passes through the body, in forward passes."""
    return 1 if stage.freeze_body else 1 + BACKWARD
