"""Trains one stage with Lightning's Trainer, and evaluates on the test split."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import (
    Checkpoint,
    EarlyStopping,
    ProgressBar,
    StochasticWeightAveraging,
)
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf

from tartan.data.task_data import TaskData
from tartan.errors import UserError, first_line
from tartan.evaluation.metrics import SplitScores
from tartan.files import write_durably
from tartan.methods.best_weights import BestWeights
from tartan.methods.checkpoint import DurableCheckpointIO, load_checkpoint
from tartan.methods.cost import CostMeter
from tartan.methods.launch import is_main_process
from tartan.methods.memory import memory_advice
from tartan.methods.module import TaskMixing
from tartan.methods.non_finite import StopAtNonFinite
from tartan.methods.outcome import StageOutcome, store_outcome, stored_outcome
from tartan.methods.precision import resolve_precision
from tartan.methods.progress_bar import StageProgressBar
from tartan.methods.resume_points import ResumePoints, newest_point
from tartan.methods.shards import load_whole_state
from tartan.methods.stage import Stage
from tartan.methods.step_log import FactorLog, StepLog
from tartan.methods.strategy import strategy_of
from tartan.settings import build

log = logging.getLogger(__name__)

STEP_LOG = "steps.csv"
"""Name of the step log in the run folder."""
FACTOR_LOG = "factors.csv"
"""Name of the log of factored weights in the run folder."""
FLUSH_EVERY = 50
"""Number of steps between two writings of the step log."""


def fit_stage(
    module: TaskMixing,
    data: TaskData,
    stage: Stage,
    *,
    name: str,
    config: DictConfig,
    folder: Path,
    observers: Sequence[pl.Callback] = (),
) -> StageOutcome:
    """Train a stage, and leave the weights to keep in `module`.

    These are those of the best evaluation on dev, or the last ones in a stage without an
    evaluation. A stage that is finished already is not trained again; an interrupted one is
    resumed.

    `observers` are further callbacks, which come after all others except those that write
    checkpoints.
    """
    checkpoints = folder / "checkpoints" / name
    finished = stored_outcome(module, checkpoints)
    if finished is not None:
        return finished
    steps, interval = stage.length(*data.prepared.counts(module.batch_needs.tasks))
    resumed_from = newest_point(checkpoints / "resume")
    config.run.log = name
    if resumed_from is not None:
        step = int(resumed_from.stem)
        config.run.log = f"{name}-from-{step}"  # Lightning's CSV logger would empty its folder
        log.warning("stage %s continues after step %s of %s", name, step, steps)
    meter, best = CostMeter(), None
    taken: tuple[Any, ...] = ()
    if module.monitor is not None:
        best = BestWeights(checkpoints, module.monitor)
        taken = (interval, best.point_taken)
    points = ResumePoints(checkpoints / "resume", float(config.checkpoint_minutes), *taken)
    kept = [points] if best is None else [best, points]
    users = _stage_callbacks(user_callbacks(config), module, stage, name)
    trainer = build_trainer(
        config,
        [*_logs(config, folder, name), *users, meter, *observers, *kept],
        max_steps=steps,
        val_check_interval=interval,
        default_root_dir=_emptied(checkpoints / "slurm"),
        limit_val_batches=1.0 if best else 0,
    )
    module.logged_options = logged_options(config)
    with memory_advice(config, "micro_batch_size", f"stage {name}"):
        try:
            trainer.fit(module, datamodule=data, ckpt_path=resumed_from)
        except MisconfigurationException as error:  # some options it checks only here
            reason = first_line(error)
            raise UserError(f"Lightning refuses callbacks or trainer: {reason}") from error
    outcome = _outcome(trainer, module, name, meter, best)
    _keep_weights(trainer, outcome, best, checkpoints)
    points.leave_if_asked(trainer.global_step)
    return outcome


def _logs(config: DictConfig, folder: Path, name: str) -> list[pl.Callback]:
    """Return the callbacks that follow every step of a stage."""
    return [
        StepLog(folder / STEP_LOG, name, FLUSH_EVERY),
        FactorLog(folder / FACTOR_LOG, name),
        StopAtNonFinite(int(config.non_finite_patience), FLUSH_EVERY),
    ]


def _outcome(
    trainer: pl.Trainer, module: TaskMixing, name: str, meter: CostMeter, best: BestWeights | None
) -> StageOutcome:
    """Return what a stage's training came to, before the best weights are loaded."""
    best_step, dev = (trainer.global_step, None) if best is None else best.best()
    return StageOutcome(
        name=name,
        steps=trainer.global_step,
        best_step=best_step,
        skipped=int(module.skipped),
        cost=meter.cost(),
        # of the last step, not of the kept one: what the weighting ended with
        task_weights=module.task_weights if len(module.tasks) > 1 else {},
        evaluations=[] if best is None else best.series(),
        dev=dev,
        module=module,
    )


def _keep_weights(
    trainer: pl.Trainer, outcome: StageOutcome, best: BestWeights | None, checkpoints: Path
) -> None:
    """Load the weights to keep into the module, and store them with the outcome."""
    if best is None:
        trainer.save_checkpoint(checkpoints / "last.ckpt", weights_only=True)
    else:
        kept = best.file(outcome.best_step)
        load_whole_state(outcome.module, load_checkpoint(kept)["state_dict"])
        if trainer.is_global_zero:
            write_durably(checkpoints / "best.ckpt", lambda path: shutil.copyfile(kept, path))
    trainer.strategy.barrier()  # files that others may still read are removed now
    if trainer.is_global_zero:
        store_outcome(outcome, checkpoints)


def _stage_callbacks(
    callbacks: Sequence[pl.Callback], module: TaskMixing, stage: Stage, name: str
) -> list[pl.Callback]:
    """Return the user's callbacks for a stage, with early stopping by its patience.

    Without evaluations, none of a score on dev; with an `EarlyStopping` of the user's, no other.
    """
    taken: list[pl.Callback] = []
    monitor = module.monitor
    for callback in callbacks:
        watched = getattr(callback, "monitor", None)
        if monitor is None and str(watched).startswith("dev"):
            log.warning(
                "stage %s is not evaluated on dev: it is trained without %s(monitor=%r)",
                name, type(callback).__name__, watched,
            )  # fmt: skip
        else:
            taken.append(callback)
    if monitor is None or stage.patience is None:
        return taken
    if any(isinstance(callback, EarlyStopping) for callback in taken):
        log.info("stage %s ends by the callbacks' EarlyStopping, not by its patience", name)
        return taken
    stop = EarlyStopping(f"dev/{monitor.name}", patience=stage.patience, mode=monitor.mode)
    return [stop, *taken]


def evaluate_on_test(module: TaskMixing, data: TaskData, config: DictConfig) -> SplitScores:
    """Return the scores of `module` on the test split, which loggers get too."""
    config.run.stage = config.run.log = f"{module.stage}-test"
    if is_main_process():  # of a process that was killed here; Lightning would warn of it
        shutil.rmtree(Path(config.run.folder) / "logs" / config.run.log, ignore_errors=True)
    module.logged_options = logged_options(config)
    trainer = build_trainer(config, [], max_steps=1)
    with memory_advice(config, "evaluation_batch_size", "the evaluation on test"):
        trainer.test(module, datamodule=data, verbose=False)
    metrics = {
        name.removeprefix("test/"): float(value)
        for name, value in trainer.callback_metrics.items()
        if name.startswith("test/")
    }
    assert module.metrics is not None
    confusion = {part: counts.tolist() for part, counts in module.metrics.confusion.items()}
    return SplitScores(metrics, confusion)


def logged_options(config: DictConfig) -> dict[str, Any]:
    """Return the run's options, for its loggers; without those that the program itself sets."""
    options: Any = OmegaConf.to_container(config, resolve=True)
    del options["run"]
    return dict(options)


def user_callbacks(config: DictConfig) -> list[pl.Callback]:
    """Return new instances of the callbacks in the `callbacks` group."""
    callbacks = [build(node, f"callbacks.{name}") for name, node in config.callbacks.items()]
    if any(isinstance(callback, StochasticWeightAveraging) for callback in callbacks):
        raise UserError(
            "StochasticWeightAveraging averages the weights at which epochs begin, and a stage is "
            "one epoch; use EMAWeightAveraging"
        )
    return callbacks


def build_trainer(
    config: DictConfig,
    callbacks: list[pl.Callback],
    **arguments: Any,
) -> pl.Trainer:
    """Return Lightning's Trainer as configured in `conf/trainer/`, with the precision resolved."""
    settings = config.trainer
    bars = any(isinstance(callback, ProgressBar) for callback in callbacks)
    if settings.get("enable_progress_bar", True) and not bars:
        callbacks = [*callbacks, StageProgressBar(config.run.stage)]
    arguments.setdefault("default_root_dir", str(config.run.folder))
    if "logger" not in arguments:
        arguments["logger"] = [
            build(node, f"logger.{name}") for name, node in config.logger.items()
        ]
    trainer: pl.Trainer = build(
        settings,
        "trainer",
        callbacks=callbacks,
        plugins=[DurableCheckpointIO()],
        precision=resolve_precision(settings.precision, str(settings.accelerator)),
        strategy=strategy_of(settings),
        use_distributed_sampler=False,  # each split is shared out without doubling examples
        max_epochs=-1,
        num_sanity_val_steps=settings.get("num_sanity_val_steps", 0),
        enable_model_summary=settings.get("enable_model_summary", False),
        enable_checkpointing=any(isinstance(c, Checkpoint) for c in callbacks),
        check_val_every_n_epoch=None,
        **arguments,
    )
    return trainer


def _emptied(folder: Path) -> str:
    """Return an empty folder for the checkpoint that Lightning writes when SLURM requeues a job.

    A resume point is written at the same moment; Lightning would prefer its own checkpoint even if
    the resume point is newer by then.
    """
    if is_main_process():
        shutil.rmtree(folder, ignore_errors=True)
    return str(folder)
