"""Builds a module's weighting and meta head settings from arguments or a checkpoint's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tartan.core.meta_head import MetaHeadSettings
from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.errors import UserError
from tartan.methods.plain import Node, rebuilt, settings_of, subclass_of
from tartan.methods.precision import parameters_in
from tartan.settings import TARGET

GivenWeighting = type[Weighting] | partial[Any] | Node
"""A weighting's class, with arguments in a `functools.partial`, or a node of a config."""


def weighting_of(node: Node, names: Sequence[str], precision: str = "32-true") -> Weighting:
    """Return a new weighting of the tasks `names`.

    Args:
        node: its class and arguments.
        names: names of the tasks.
        precision: Lightning's name of the precision of its parameters.

    Raises:
        UserError: `node` does not name a weighting, its `__init__` takes no `task_names`, or the
            weighting has parameters.
    """
    try:
        with parameters_in(precision):
            weighting: Weighting = rebuilt(
                node, subclass_of(Weighting), "weighting", task_names=list(names)
            )
    except TypeError as error:
        if "'task_names'" not in str(error):
            raise
        raise UserError(
            f"weighting {node[TARGET]}: its __init__ has to take task_names, a list of names, "
            "and to pass it on: super().__init__(task_names)"
        ) from error
    check_weighting(weighting)
    return weighting


def check_weighting(weighting: object) -> None:
    """Check that an object is a weighting whose state its own steps change.

    Raises:
        UserError: it is not.
    """
    kind = type(weighting).__name__
    if not isinstance(weighting, Weighting):
        raise UserError(
            f"{kind} is not a subclass of Weighting (src/tartan/core/weighting/base.py)"
        )
    for name, _ in weighting.named_parameters():
        raise UserError(
            f"weighting {kind} has a parameter {name!r}, which no optimiser trains; make it a "
            "buffer (register_buffer), and change it in mix(step)"
        )


def check_sampling(
    weighting: Weighting, auxiliaries: int, sampled: int | None, option: str = "sampled"
) -> None:
    """Check that steps can sample as many auxiliary tasks, and that the weighting allows it.

    Args:
        weighting: the weighting of the tasks.
        auxiliaries: number of auxiliary tasks.
        sampled: number of them that a step samples; None for all.
        option: the name of `sampled` in messages.

    Raises:
        UserError: they cannot, or it does not.
    """
    kind = type(weighting).__name__
    if sampled is not None and sampled > auxiliaries:
        raise UserError(
            f"{option}={sampled} is more than the stage's auxiliary tasks, of which "
            f"there are {auxiliaries}"
        )
    if weighting.needs.one_batch and sampled is None:
        raise UserError(
            f"weighting {kind} needs steps that sample auxiliary tasks: set {option}, or use "
            "method=aang or aang_static"
        )
    if sampled is not None:
        _check_per_task(weighting)
    if weighting.needs.every_task and sampled is not None:
        raise UserError(
            f"weighting {kind} follows every task from step to step, but {option}="
            f"{sampled} takes others in each; use another weighting, or {option}=null"
        )


def _check_per_task(weighting: Weighting) -> None:
    """Check that a weighting says which of its buffers have an entry for each task."""
    kind, buffers = type(weighting).__name__, [name for name, _ in weighting.named_buffers()]
    if weighting.per_task is None and buffers and not weighting.needs.every_task:
        raise UserError(
            f"steps that sample tasks need to know which of the buffers of weighting {kind} "
            f"({', '.join(buffers)}) have an entry for each task; name them in the class, "
            f"per_task = ({buffers[0]!r},), or set per_task = () if none has"
        )
    unknown = sorted(set(weighting.per_task or ()) - set(buffers))
    if unknown:
        raise UserError(f"weighting {kind}: per_task names {unknown[0]!r}, which is no buffer")


def meta_settings_of(
    given: MetaHeadSettings | Mapping[str, Any] | None,
    weighting: Weighting,
    tasks: Sequence[str],
    method: str,
    has_meta_head: bool,
) -> MetaHeadSettings | None:
    """Return the settings of the meta head; None where the weighting needs none.

    Args:
        given: the settings, the usual ones if None; or what a checkpoint has of them.
        weighting: the weighting of the tasks.
        tasks: names of the tasks.
        method: name of the module's class, for messages.
        has_meta_head: whether that class may have a meta head.

    Raises:
        UserError: the weighting needs a meta-gradient, and there is no meta head or end task; or it
            needs none, and settings are given.
    """
    kind = type(weighting).__name__
    if not weighting.needs.meta_gradient:
        if isinstance(given, MetaHeadSettings):
            raise UserError(f"weighting {kind} needs no meta-gradient: omit meta_head")
        return None  # earlier versions wrote unused settings into their checkpoints
    learns = f"weighting {kind} learns weights by the meta-gradient of the end task"
    # `on_load_checkpoint` names the class that a checkpoint of another one is of
    if not has_meta_head and not isinstance(given, Mapping):
        raise UserError(f"{learns}, which {method} does not have; use MetaTartan")
    if tasks[0] != END_TASK:
        raise UserError(f"{learns}, which is not among the tasks {', '.join(tasks)}")
    return settings_of(MetaHeadSettings, given)
