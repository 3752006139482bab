"""Checks what Lightning's callbacks monitor: that it will be logged, and its direction."""

from __future__ import annotations

from collections.abc import Iterator

import lightning.pytorch as pl
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint

from tartan.errors import UserError
from tartan.methods.training_step import TrainingStep


def check_monitored(trainer: pl.Trainer, module: TrainingStep) -> None:
    """Check, before training, the metrics that early stopping and checkpoints monitor.

    Lightning's callbacks take lower values by default. Callbacks and modules of others may log
    further metrics, and `LearningRateMonitor` does: beside them, names are not checked.

    Raises:
        UserError: a callback has the wrong mode, or there is no such metric.
    """
    modes, logged = _modes(module), set(_logged(module))
    parts = [module, *trainer.callbacks]
    others_log = any(
        type(part).__module__.partition(".")[0] not in ("tartan", "lightning")
        or isinstance(part, LearningRateMonitor)
        for part in parts
    )
    for callback in trainer.callbacks:
        if not isinstance(callback, EarlyStopping | ModelCheckpoint):
            continue
        kind, name = type(callback).__name__, callback.monitor
        mode = modes.get(name or "", callback.mode)
        if callback.mode != mode:
            better = "lower" if mode == "min" else "higher"
            raise UserError(f'{kind}(monitor={name!r}): {better} is better; give it mode="{mode}"')
        if others_log or name is None or not getattr(callback, "strict", True):
            continue
        counted = ("step", "epoch") if isinstance(callback, ModelCheckpoint) else ()
        if name not in logged and name not in counted:
            raise UserError(f"{kind}: there is no metric {name!r}: {', '.join(logged)}")


def _modes(module: TrainingStep) -> dict[str, str]:
    """Return the direction, `min` or `max`, of the metrics whose direction is known."""
    losses = {f"loss/{task.name}": "min" for task in module.tasks}
    if module.monitor is None:
        return losses
    own = {} if module.metrics is None else module.metrics.modes
    scores = {f"dev/{n}{part}": mode for n, mode in own.items() for part in ("", "_unseen")}
    name, mode = module.monitor.name, module.monitor.mode
    return losses | {"dev/loss": "min"} | scores | {f"dev/{name}": mode, f"dev_{name}": mode}


def _logged(module: TrainingStep) -> Iterator[str]:
    """Yield the names of what a training logs."""
    kinds = ("loss", "weight") if len(module.tasks) > 1 else ("loss",)  # see `step_metrics`
    tasks = [task.name for task in module.tasks if module.is_logged(task.name)]
    yield from (f"{kind}/{name}" for name in tasks for kind in kinds)
    evaluated = [] if module.metrics is None else module.metrics.names
    if module.monitor is not None:
        evaluated = [*evaluated, module.monitor.name]
        yield from ("dev/loss", f"dev_{module.monitor.name}")
    yield from (f"dev/{name}{part}" for name in evaluated for part in ("", "_unseen"))
