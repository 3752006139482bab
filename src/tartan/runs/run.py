"""Runs one experiment: settings, data, module, callbacks, trainer, fit, test, result."""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pandas as pd
import torch
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from torch import nn

from tartan.core.seeding import seed_for
from tartan.core.task_names import END_TASK
from tartan.data.prepared import Prepared
from tartan.data.task_data import BatchSizes, TaskData
from tartan.data.text_task import TextTask
from tartan.encoders.base import frozen
from tartan.encoders.layers import reinitialise_top
from tartan.errors import UserError, first_line
from tartan.evaluation.calibration import write_calibration
from tartan.figures import draw_task_weights, figure_text
from tartan.files import write_durably, write_text_durably
from tartan.kernels.allocator import keep_freed_memory
from tartan.launch import clean_processes, is_main_process
from tartan.methods.checkpoint import StageCheckpoints, newest_point
from tartan.methods.cost import CostMeter
from tartan.methods.module import TaskMixing
from tartan.methods.parts import METRICS, keep_heads
from tartan.methods.shards import load_whole_state, whole_state
from tartan.methods.stage import Stage
from tartan.methods.stage_outcome import (
    OUTCOME,
    StageOutcome,
    evaluate_on_test,
    keep_outcome,
    memory_advice,
    stage_callbacks,
    stored_outcome,
)
from tartan.methods.step_log import STEP_LOG, StepLog
from tartan.methods.trainer import build_trainer
from tartan.runs.card import write_card
from tartan.runs.folder import CONFIG, INPUTS, check_same_inputs, exclusive_run
from tartan.runs.identity import identified
from tartan.runs.outcome import (
    FINE_TUNING,
    at_equal_cost,
    calibrated,
    fine_tuned,
    requested_baseline,
    result_of,
    tf_idf_baseline,
)
from tartan.runs.prepare import (
    auxiliaries_of,
    enabled_stages,
    module_class,
    prepare,
    weighting_needs,
)
from tartan.runs.result import Result, stored_result, write_result

log = logging.getLogger(__name__)


def run_experiment(config: DictConfig, folder: str | Path) -> Result:
    """Run all stages of `config` and write everything into `folder`.

    Raises:
        UserError: an option or the data are invalid; raised before any training starts.
    """
    # settings
    folder = Path(folder)
    config.run.folder = str(folder)
    keep_freed_memory()
    stages, fine_tuning = enabled_stages(config), requested_baseline(config)

    # data
    prepared = prepare(config, stages)
    with exclusive_run(folder), clean_processes():
        known = stored_result(config, folder)  # of a process that held the folder until now
        if known is not None:
            return known
        check_same_inputs(prepared.fingerprints, folder)
        if is_main_process():
            _begin(config, folder, prepared)

        # module, callbacks, trainer, fit: stage by stage (StageChain.build, fit_stage)
        chain = StageChain(config, folder, prepared, stages)
        start = {} if fine_tuning is None else whole_state(prepared.encoder.body)
        outcomes = [chain.run(name, stage) for name, stage in stages.items()]

        # test: of the stage that did best on dev, after a baseline that is trained on another copy
        tested = bool(config.evaluate_test and prepared.has_test)
        baselines = []
        if fine_tuning is not None:
            load_whole_state(prepared.encoder.body, start)
            stage = at_equal_cost(fine_tuning, stages, outcomes)
            alone = StageChain(config, folder / FINE_TUNING, prepared, {FINE_TUNING: stage})
            outcome = alone.run(FINE_TUNING, stage)
            scores = evaluate_on_test(outcome.module, chain.data(), config) if tested else None
            baselines.append(fine_tuned(outcome, scores))
        chosen = chain.keep_best()
        test = evaluate_on_test(chosen.module, chain.data(), config) if tested else None

        # result
        result = identified(result_of(config, prepared, outcomes, chosen, test), config)
        exported = folder / ("classifier" if prepared.held_out is None else "encoder")
        chosen.module.save_pretrained(exported)  # all processes: they may have shards of it
        if is_main_process():
            calibration = calibrated(config, exported, prepared)
            if prepared.held_out is None and (simple := tf_idf_baseline(config, prepared.end_task)):
                baselines.append(simple)
            result = result.model_copy(update={"baselines": baselines})
            if calibration is not None:
                write_calibration(calibration, folder)
                result = result.model_copy(update={"calibration": calibration.summary})
            _draw(result, outcomes, folder)  # the card shows it
            write_card(result, config, exported, calibration)
            write_result(result, folder)  # last: it says that the run is finished
    return result


class StageChain:
    """Runs stages one after the other; each continues with the weights of those before it."""

    def __init__(
        self, config: DictConfig, folder: Path, prepared: Prepared, stages: Mapping[str, Stage]
    ) -> None:
        self._config, self._folder, self._prepared = config, folder, prepared
        self._needs = weighting_needs(config, stages, prepared)
        self._heads: dict[str, nn.Module] = {}
        self._best: tuple[float, StageOutcome, dict[str, torch.Tensor]] | None = None

    def run(self, name: str, stage: Stage) -> StageOutcome:
        """Train one stage, whose weights the next stage then starts from."""
        config, body = self._config, self._prepared.encoder.body
        self._folder.mkdir(exist_ok=True)
        config.run.stage = name
        module, data = self.build(name, stage)
        with frozen(body) if stage.freeze_body else nullcontext():
            outcome = fit_stage(module, data, stage, name=name, config=config, folder=self._folder)
        self._heads |= {task.name: task.head for task in module.tasks}
        if not module.trains_end_task:  # also where the stage was finished earlier
            keep_heads(module.tasks, self._prepared.encoder)
        if outcome.dev is not None:
            monitor = self._prepared.metric
            score = monitor.merit(outcome.dev[monitor.name])
            if self._best is None or score > self._best[0]:
                # a copy: a later stage trains the same body on
                self._best = (score, outcome, whole_state(outcome.module))
        return outcome

    def build(self, name: str, stage: Stage) -> tuple[TaskMixing, TaskData]:
        config, module_type, prepared = self._config, module_class(stage), self._prepared
        data = self.data(batch_size=stage.batch_size, meta_batch_size=stage.meta_batch_size)
        auxiliaries = {task: auxiliary for task, (auxiliary, _) in prepared.auxiliaries.items()}
        trained = module_type.trains_auxiliaries
        weighted = trained and module_type.trains_end_task
        metrics: Any = OmegaConf.to_container(config.metrics, resolve=True)
        seed = seed_for(int(config.seed), name, "layers")
        reinitialise_top(prepared.encoder.body, stage.reinitialise, seed)
        module: TaskMixing = module_type.for_data(
            data,
            optimisation=stage.optimisation,
            weighting=OmegaConf.to_container(config.weighting, resolve=True) if weighted else None,
            tasks=auxiliaries_of(stage, auxiliaries) if trained else None,
            heads={
                task: head
                for task, head in self._heads.items()
                if not (stage.fresh_end_head and task == END_TASK)
            },
            meta_head=stage.meta_head if self._needs[name].meta_gradient else None,
            stage=name,
            metrics={**dict.fromkeys(METRICS), **metrics},
            inner_products=stage.inner_products,
            sampled=stage.sampled if trained else None,
        )
        # a stage is one epoch: its steps are in one progress bar, and no epoch's end interrupts it
        steps, _ = stage.length(*prepared.counts(module.batch_needs.tasks))
        data.sizes = replace(data.sizes, epoch_steps=steps)
        return module, data

    def keep_best(self) -> StageOutcome:
        """Restore the weights of the stage that did best on dev, and return its outcome."""
        assert self._best is not None, "enabled_stages asks for a stage that is evaluated"
        _, outcome, weights = self._best
        load_whole_state(outcome.module, weights)
        return outcome

    def data(self, **sizes: int) -> TaskData:
        config = self._config
        evaluation = int(config.evaluation_batch_size)
        return TaskData(
            self._prepared,
            BatchSizes(
                micro_batch_size=config.micro_batch_size,
                evaluation_batch_size=evaluation,
                packed=bool(config.packed),
                **sizes,
            ),
            seed=int(config.seed),
            num_workers=config.num_workers,
        )


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
    """Train a stage, or resume it; leave the best weights on dev, or the last ones, in `module`.

    A stage that is finished already is not trained again. `observers` are further callbacks.
    """
    checkpoints = folder / "checkpoints" / name
    if (checkpoints / OUTCOME).is_file():
        return stored_outcome(module, checkpoints)
    steps, interval = stage.length(*data.prepared.counts(module.batch_needs.tasks))
    resumed_from = newest_point(checkpoints / "resume")
    config.run.log = name
    if resumed_from is not None:
        step = int(resumed_from.stem)
        config.run.log = f"{name}-from-{step}"  # Lightning's CSV logger would empty its folder
        log.warning("stage %s continues after step %s of %s", name, step, steps)

    # callbacks
    monitor, meter = module.monitor, CostMeter()
    points = StageCheckpoints(checkpoints, config.checkpoint_minutes, interval, monitor)
    given = stage_callbacks(config, monitor, stage.patience, name)
    callbacks = [StepLog(folder, name), *given, meter, *observers, points]

    # trainer
    # Lightning writes a checkpoint when SLURM requeues a job, and would prefer it to later points
    slurm = checkpoints / "slurm"
    if is_main_process():
        shutil.rmtree(slurm, ignore_errors=True)
    trainer = build_trainer(
        config,
        module,
        callbacks,
        max_steps=steps,
        val_check_interval=interval,
        default_root_dir=str(slurm),
        limit_val_batches=0 if monitor is None else 1.0,
    )

    # fit
    module.non_finite_patience = int(config.non_finite_patience)
    with memory_advice(f"stage {name}"):
        try:
            trainer.fit(module, datamodule=data, ckpt_path=resumed_from)
        except MisconfigurationException as error:  # some options it checks only here
            reason = first_line(error)
            raise UserError(f"Lightning refuses callbacks or trainer: {reason}") from error
    outcome = keep_outcome(trainer, module, name, meter, points, checkpoints)
    points.leave_if_asked(trainer.global_step)
    return outcome


def _begin(config: DictConfig, folder: Path, prepared: Prepared) -> None:
    """Write what a run was started with, by which the same command finds and continues it."""
    write_text_durably(folder / INPUTS, json.dumps(prepared.fingerprints, indent=1))
    write_durably(folder / CONFIG, lambda path: OmegaConf.save(config, path, resolve=True))
    end_task = prepared.end_task
    if not isinstance(end_task, TextTask) or not end_task.rows:
        return
    # which rows became dev or test, which were taken from train's file
    shown = end_task.kind.shown
    rows = [(split, e.number, shown(e.label), e.text[:80]) for split, e in end_task.rows]
    names = ["split", end_task.unit, "label", "text"]
    table = pd.DataFrame(rows, columns=names, dtype=object)
    # with a byte order mark, by which spreadsheet programs know UTF-8
    form = {"index": False, "encoding": "utf-8-sig", "lineterminator": "\r\n"}
    write_durably(folder / "splits.csv", lambda path: table.to_csv(path, **form))


def _draw(result: Result, outcomes: list[StageOutcome], folder: Path) -> None:
    """Draw the task weights of joint training, if a stage trained the end task with others."""
    title = figure_text(f"{result.method} on {result.task} ({result.encoder})", longest=90)
    for outcome in outcomes:
        if not outcome.final_task_weights or outcome.dev is None or not result.labels:
            continue
        draw_task_weights(
            folder / STEP_LOG, outcome.name, outcome.evaluations, result.metric, title,
            folder / "task_weights.png",
        )  # fmt: skip
