"""Checks that a training goes on from a checkpoint with the settings and data it began with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tartan.data.task_data import TaskData
from tartan.errors import UserError
from tartan.settings import differing

_OF_THE_MODULE = (
    "tasks", "weighting", "optimisation", "seed", "stage", "labels", "metric", "meta_head",
    "inner_products", "sampled", "max_length",
)  # fmt: skip
"""Arguments that change what is trained. The encoder is compared by the shapes of its weights."""
_ABSENT = object()


def data_settings(data: TaskData) -> dict[str, int]:
    """Return the settings of the data that change what is trained, for a checkpoint."""
    sizes = data.sizes
    return {
        "TartanData.seed": data.seed,
        "TartanData.batch_size": sizes.batch_size,
        "TartanData.sizes.meta_batch_size": sizes.meta_batch_size,
    }


def check_same_data(stored: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Check that the data of a training that is to go on are those with which it began.

    Args:
        stored: checksums in the checkpoint, by name.
        own: those of the data now.

    Raises:
        UserError: some differ; the message names them.
    """
    changed = differing(stored, own)
    if changed:
        raise UserError(
            f"data have changed since the checkpoint was written: {', '.join(changed)}; give the "
            "same files, sizes and split_seed, or start anew without ckpt_path (with "
            "ResumePoints, in another folder)"
        )


def check_same_settings(
    stored: Mapping[str, Any], own: Mapping[str, Any], names: tuple[str, ...] = _OF_THE_MODULE
) -> None:
    """Check that stored settings are those of the training that is to go on.

    Args:
        stored: the settings in the checkpoint.
        own: the settings now.
        names: which of them are compared, where the checkpoint has them.

    Raises:
        UserError: some differ; the message names them.
    """
    differences = [
        f"{where} was {before}, is {now}"
        for name in names
        if name in stored
        for where, before, now in _differences(name, stored[name], own.get(name))
    ]
    if differences:
        raise UserError(
            f"the checkpoint's training had other settings: {'; '.join(differences)}; give the "
            "same ones, or start anew without ckpt_path (with ResumePoints, in another folder)"
        )


def check_same_frozen(stored: Sequence[str], own: Sequence[str]) -> None:
    """Check that a training that is to go on trains the parameters with which it began.

    Args:
        stored: names of the parameters that the checkpoint's training did not train.
        own: names of those that are not trained now.

    Raises:
        UserError: they differ; the message names the first, and how many there are.
    """
    thawed = [name for name in stored if name not in set(own)]
    frozen = [name for name in own if name not in set(stored)]
    said = [f"had frozen {_first_of(thawed)}"] if thawed else []
    if frozen:
        verb = "is" if len(frozen) == 1 else "are"
        said.append(f"had trained {_first_of(frozen)}, which {verb} frozen now")
    if said:
        raise UserError(
            f"the checkpoint's training {', and '.join(said)}; before fit(ckpt_path=...) freeze "
            "exactly the parameters that it had frozen"
        )


def _first_of(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _differences(where: str, stored: Any, own: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the places at which plain values differ, and both values."""
    if isinstance(stored, Mapping) and isinstance(own, Mapping):
        if where == "tasks" and list(stored) != list(own):
            yield where, str(list(stored)), str(list(own))
            return
        for name in {**stored, **own}:
            both = (one.get(name, _ABSENT) for one in (stored, own))
            yield from _differences(f"{where}.{name}", *both)
    elif as_text(stored) != as_text(own):
        yield where, as_text(stored), as_text(own)


def as_text(value: Any) -> str:
    """Return a value as text that does not tell tuples from lists."""
    return "absent" if value is _ABSENT else json.dumps(value, default=str)
