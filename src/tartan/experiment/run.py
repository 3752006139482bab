"""Runs one experiment, from its config to its run folder: stages, test evaluation, result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn

from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Needs
from tartan.data.prepared import Prepared
from tartan.data.task_data import BatchSizes, TaskData
from tartan.encoders.base import frozen
from tartan.encoders.text_encoder import require_text_encoder
from tartan.experiment.baseline import baseline_of
from tartan.experiment.fine_tuning_baseline import FINE_TUNING, at_equal_cost, requested_baseline
from tartan.experiment.known_options import check_top_level
from tartan.experiment.prepare import (
    auxiliaries_of,
    enabled_stages,
    mixes_with_end_task,
    module_class,
    prepare,
)
from tartan.experiment.result import result_of, whole_of
from tartan.figures.style import figure_text
from tartan.figures.weights import draw_factor_weights, draw_task_weights
from tartan.files import disk_advice, write_durably, write_text_durably
from tartan.kernels.allocator import keep_freed_memory
from tartan.methods.fit import FACTOR_LOG, STEP_LOG, evaluate_on_test, fit_stage
from tartan.methods.launch import clean_processes, is_main_process
from tartan.methods.module import TaskMixing
from tartan.methods.outcome import StageOutcome
from tartan.methods.parts import METRICS, keep_heads, weighting_of
from tartan.methods.shards import load_whole_state, unshard, whole_state
from tartan.methods.stage import Stage
from tartan.model_card.card import write_card, write_encoder_card
from tartan.run_folder.identity import identified
from tartan.run_folder.lock import exclusive_run
from tartan.run_folder.result import Baseline, Result, write_result
from tartan.run_folder.splits import write_splits
from tartan.run_folder.stored import INPUTS, check_same_inputs, stored_result


def run_experiment(config: DictConfig, folder: str | Path) -> Result:
    """Run all stages of `config` and write everything into `folder`.

    Returns:
        The content of `result.json`.

    Raises:
        UserError: an option or the data are invalid; raised before any training starts.
    """
    folder = Path(folder)
    config.run.folder = str(folder)
    keep_freed_memory()
    stages, baseline = enabled_stages(config), requested_baseline(config)
    check_top_level(config)
    prepared = prepare(config, stages)
    with exclusive_run(folder), disk_advice(folder), clean_processes():
        known = stored_result(config, folder)  # of a process that held the folder until now
        if known is not None:
            return known
        return _run_prepared(config, folder, stages, baseline, prepared)


def _run_prepared(
    config: DictConfig,
    folder: Path,
    stages: dict[str, Stage],
    fine_tuning: Stage | None,
    prepared: Prepared,
) -> Result:
    inputs = prepared.fingerprints
    check_same_inputs(inputs, config, folder)
    if is_main_process():
        write_text_durably(folder / INPUTS, json.dumps(inputs, indent=1))
        write_durably(
            folder / "config.yaml", lambda path: OmegaConf.save(config, path, resolve=True)
        )
        if prepared.labelled is not None:
            write_splits(prepared.end_task, folder)

    tested = bool(config.evaluate_test and prepared.has_test)
    start = {} if fine_tuning is None else whole_state(prepared.encoder.body)
    chain = StageChain(config, folder, prepared)
    outcomes = [chain.run(name, stage) for name, stage in stages.items()]
    baselines = []
    if fine_tuning is not None:
        load_whole_state(prepared.encoder.body, start)
        stage = at_equal_cost(fine_tuning, stages, outcomes)
        baselines.append(_fine_tuned(config, folder / FINE_TUNING, stage, prepared, tested))
    chosen = chain.keep_best()
    test = evaluate_on_test(chosen.module, chain.data(), config) if tested else None
    result = identified(result_of(config, prepared, outcomes, chosen, test), config)
    unshard(chosen.module.body)
    if not is_main_process():
        return result
    if prepared.held_out is not None:
        encoder = require_text_encoder(prepared.encoder, "continued pre-training")
        chosen.module.save_pretrained(folder / "encoder")
        write_encoder_card(result, config, encoder, folder / "encoder")
        write_result(result, folder)
        return result
    simple = baseline_of(config, prepared.end_task)
    baselines += [] if simple is None else [simple]
    result = result.model_copy(update={"baselines": baselines})
    chosen.module.save_pretrained(folder / "classifier")
    _draw(result, outcomes, folder)
    write_card(result, config, prepared.encoder, folder)
    write_result(result, folder)
    return result


def _fine_tuned(
    config: DictConfig, folder: Path, stage: Stage, prepared: Prepared, tested: bool
) -> Baseline:
    """Train the fine-tuning baseline from the body's present weights, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    chain = StageChain(config, folder, prepared)
    outcome = chain.run(FINE_TUNING, stage)
    test = evaluate_on_test(outcome.module, chain.data(), config) if tested else None
    assert outcome.dev is not None, "the stage trains the end task"
    return Baseline(
        name=FINE_TUNING,
        settings=f"{outcome.steps} steps, best after {outcome.best_step}",
        dev=whole_of(outcome.dev),
        test=None if test is None else whole_of(test.metrics),
        seconds=outcome.cost.seconds,
    )


class StageChain:
    """Runs stages one after the other; each continues with the weights of those before it.

    Args:
        config: the run's config.
        folder: the run folder.
        prepared: data and encoder; the encoder's body is trained in place.
    """

    def __init__(self, config: DictConfig, folder: Path, prepared: Prepared) -> None:
        self._config, self._folder, self._prepared = config, folder, prepared
        self._heads: dict[str, nn.Module] = {}
        self._best: tuple[float, StageOutcome, dict[str, torch.Tensor]] | None = None

    def run(self, name: str, stage: Stage, observers: Sequence[pl.Callback] = ()) -> StageOutcome:
        """Train one stage, whose weights the next stage then starts from.

        Args:
            name: the stage's name.
            stage: its settings.
            observers: further callbacks, which come after all others.
        """
        config, body = self._config, self._prepared.encoder.body
        config.run.stage = name
        module, data = self.build(name, stage)
        with frozen(body) if stage.freeze_body else nullcontext():
            outcome = fit_stage(
                module, data, stage, name=name, config=config, folder=self._folder,
                observers=observers,
            )  # fmt: skip
        self._heads |= {task.name: task.head for task in module.tasks}
        if not module.trains_end_task:  # also where the stage was finished earlier
            keep_heads(module.tasks, self._prepared.encoder)
        if outcome.dev is not None:
            self._remember(outcome)
        return outcome

    def build(self, name: str, stage: Stage) -> tuple[TaskMixing, TaskData]:
        """Return a stage's module and data."""
        config, module_type = self._config, module_class(stage)
        mixes = mixes_with_end_task(module_type)
        data = self.data(batch_size=stage.batch_size, meta_batch_size=stage.meta_batch_size)
        settings = {n: auxiliary for n, (auxiliary, _) in self._prepared.auxiliaries.items()}
        tasks = auxiliaries_of(stage, settings) if module_type.trains_auxiliaries else None
        weighting, needs = None, Needs()
        if mixes:
            weighting = _plain(config.weighting)
            needs = weighting_of(weighting, [END_TASK, *(tasks or ())]).needs
        heads = dict(self._heads)
        if stage.fresh_end_head:
            heads.pop(END_TASK, None)
        module: TaskMixing = module_type.for_data(
            data,
            optimisation=stage.optimisation,
            weighting=weighting,
            tasks=tasks,
            heads=heads,
            meta_head=stage.meta_head if needs.meta_gradient else None,
            stage=name,
            metrics={**dict.fromkeys(METRICS), **_plain(config.metrics)},
            inner_products=stage.inner_products,
            sampled=stage.sampled if module_type.trains_auxiliaries else None,
        )
        # a stage is one epoch: its steps are in one progress bar, and no epoch's end interrupts it
        steps, _ = stage.length(*self._prepared.counts(module.batch_needs.tasks))
        data.sizes = replace(data.sizes, epoch_steps=steps)
        return module, data

    def keep_best(self) -> StageOutcome:
        """Restore the weights of the stage that did best on dev, and return its outcome."""
        assert self._best is not None, "enabled_stages asks for a stage that is evaluated"
        _, outcome, weights = self._best
        load_whole_state(outcome.module, weights)
        return outcome

    def data(self, **sizes: int) -> TaskData:
        """Return the run's data in batches of these sizes (see `BatchSizes`)."""
        config = self._config
        return TaskData(
            self._prepared,
            BatchSizes(
                micro_batch_size=int(config.micro_batch_size),
                evaluation_batch_size=int(config.evaluation_batch_size),
                packed=bool(config.packed),
                **sizes,
            ),
            seed=int(config.seed),
            num_workers=config.num_workers,
        )

    def _remember(self, outcome: StageOutcome) -> None:
        assert outcome.dev is not None
        monitor = self._prepared.metric
        score = monitor.merit(outcome.dev[monitor.name])
        if self._best is None or score > self._best[0]:
            # a copy: a later stage trains the same body on
            self._best = (score, outcome, whole_state(outcome.module))


def _plain(node: DictConfig) -> dict[str, Any]:
    found = OmegaConf.to_container(node, resolve=True)
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


def _draw(result: Result, outcomes: list[StageOutcome], folder: Path) -> None:
    """Draw the task weights of joint training, if a stage trained the end task with others."""
    for outcome in outcomes:
        if outcome.task_weights and outcome.dev is not None:
            title = figure_text(f"{result.method} on {result.task} ({result.encoder})", longest=90)
            if (folder / FACTOR_LOG).exists():
                draw_factor_weights(
                    folder / FACTOR_LOG, outcome.name, title, folder / "factor_weights.png"
                )
            draw_task_weights(
                folder / STEP_LOG,
                outcome.name,
                outcome.evaluations,
                result.metric,
                title,
                folder / "task_weights.png",
            )
