"""The outcome of a stage, its callbacks, and the evaluation on the test split."""

import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import EarlyStopping
from omegaconf import DictConfig
from pydantic import Field

from tartan.data.task_data import TaskData
from tartan.errors import UserError
from tartan.evaluation.metrics import SplitScores
from tartan.evaluation.stage_result import Monitor, StageResult
from tartan.files import write_durably, write_text_durably
from tartan.launch import is_main_process
from tartan.methods.checkpoint import StageCheckpoints, load_checkpoint
from tartan.methods.cost import CostMeter
from tartan.methods.module import TaskMixing
from tartan.methods.shards import load_whole_state
from tartan.methods.trainer import build_trainer
from tartan.settings import build

log = logging.getLogger(__name__)

OUTCOME = "outcome.json"
"""File in the checkpoint folder of a finished stage."""
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class StageOutcome(StageResult):
    """A stage that was trained, and what the stages after it start from.

    Attributes:
        dev: metrics of the kept weights on dev, by name; None without an evaluation.
        module: the module with the kept weights.
    """

    dev: dict[str, float] | None
    module: Any = Field(exclude=True)

    @property
    def result(self) -> StageResult:
        return StageResult.model_validate(self.model_dump(exclude={"dev"}))


def keep_outcome(
    trainer: pl.Trainer,
    module: TaskMixing,
    name: str,
    meter: CostMeter,
    points: StageCheckpoints,
    folder: Path,
) -> StageOutcome:
    """Load the weights to keep into the module; store them in `folder` with the outcome."""
    monitor = module.monitor
    best_step, best = (trainer.global_step, None) if monitor is None else points.best()
    spent, measured = meter.cost()
    outcome = StageOutcome(
        name=name,
        steps=trainer.global_step,
        best_step=best_step,
        skipped=int(module.skipped),
        cost=spent,
        measured=measured,
        # of the last step, not of the kept one: what the weighting ended with
        final_task_weights=module.task_weights if len(module.tasks) > 1 else {},
        evaluations=[
            (step, scores[monitor.name]) for step, scores in points.evaluations if monitor
        ],
        dev=best,
        module=module,
    )
    if monitor is None:
        trainer.save_checkpoint(folder / "last.ckpt", weights_only=True)
    else:
        kept = points.file(best_step)
        load_whole_state(module, load_checkpoint(kept)["state_dict"])
        if trainer.is_global_zero:
            write_durably(folder / "best.ckpt", lambda path: shutil.copyfile(kept, path))
    trainer.strategy.barrier()  # files that others may still read are removed now
    if trainer.is_global_zero:
        write_text_durably(folder / OUTCOME, outcome.model_dump_json(indent=1) + "\n")
        for part in ("resume", "slurm"):
            shutil.rmtree(folder / part, ignore_errors=True)
        for path in folder.glob("best-*.ckpt"):  # best.ckpt is a copy of the best of them
            path.unlink()
    return outcome


def stored_outcome(module: TaskMixing, folder: Path) -> StageOutcome:
    """Return a finished stage's outcome, its weights in `module`."""
    try:
        entries = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
        outcome = StageOutcome(**entries, module=module)
        weights = folder / ("last.ckpt" if outcome.dev is None else "best.ckpt")
        state = load_checkpoint(weights)["state_dict"]
        if any(v.dtype == torch.float64 for n, v in state.items() if n.startswith("body.")):
            module.double()  # as it was when the stage ended; the next stage starts from it
        module.load_state_dict(state)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise UserError(
            f"{folder} holds no stage of this version ({type(error).__name__}); remove {folder}, "
            "and the same command trains it again"
        ) from error
    return outcome


def stage_callbacks(
    config: DictConfig, monitor: Monitor | None, patience: int | None, name: str
) -> list[pl.Callback]:
    """Return the user's callbacks, and early stopping unless there is one of these."""
    callbacks: list[pl.Callback] = []
    for key, node in config.callbacks.items():
        callback = build(node, f"callbacks.{key}")
        watched = str(getattr(callback, "monitor", None))
        if monitor is None and watched.startswith("dev"):
            log.warning("stage %s has no %s, and is trained without %s", name, watched, key)
        else:
            callbacks.append(callback)
    stops = any(isinstance(callback, EarlyStopping) for callback in callbacks)
    if monitor is not None and patience is not None and not stops:
        score = f"dev/{monitor.name}"
        callbacks.append(EarlyStopping(score, patience=patience, mode=monitor.mode))
    return callbacks


def evaluate_on_test(module: TaskMixing, data: TaskData, config: DictConfig) -> SplitScores:
    """Return the scores of `module` on the test split, which loggers get too."""
    config.run.stage = config.run.log = f"{module.stage}-test"
    if is_main_process():  # of a process that was killed here; Lightning would warn of it
        shutil.rmtree(Path(config.run.folder) / "logs" / config.run.log, ignore_errors=True)
    trainer = build_trainer(config, module, [], max_steps=1)
    with memory_advice("the evaluation on test"):
        trainer.test(module, datamodule=data, verbose=False)
    metrics = {
        name.removeprefix("test/"): float(value)
        for name, value in trainer.callback_metrics.items()
        if name.startswith("test/")
    }
    assert module.metrics is not None
    confusion = {part: counts.tolist() for part, counts in module.metrics.confusion.items()}
    return SplitScores(metrics, confusion)


@contextmanager
def memory_advice(where: str) -> Iterator[None]:
    """Turn running out of memory in `where` into a `UserError` that says what to lower."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
            raise UserError(
                f"out of memory in {where}; lower micro_batch_size, evaluation_batch_size or "
                "max_length, or use gradient_checkpointing=true"
            ) from error
        raise
