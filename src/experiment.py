"""One run, from its config to its folder: stages, the one look at the test split, the result."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import lightning.pytorch as pl
import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn

from src.configuration import build
from src.core.task import Task
from src.core.weighting.uniform import Uniform
from src.cpu.allocator import keep_freed_memory
from src.data.batches import EvaluationBatches, StepBatches, TaskExamples, TaskSampling
from src.data.columns import write_trained
from src.data.held_out_text import HeldOutText
from src.data.pooled import PooledRows, pooled
from src.distributed.identity import is_main_process
from src.distributed.launch import own_processes
from src.distributed.shards import unshard
from src.distributed.states import load_whole_state, whole_state
from src.encoders.base import Encoder, freeze
from src.encoders.masked_lm_folder import save_masked_lm
from src.encoders.text_encoder import reads_text
from src.methods.data_module import StageData
from src.methods.fit import FACTOR_LOG, STEP_LOG, evaluate_on_test, fit_stage
from src.methods.module import TaskMixing
from src.methods.outcome import StageOutcome
from src.methods.part_overhead import resolve_part_overhead
from src.methods.precision import parameters_in, resolve_precision
from src.methods.stage import Stage
from src.model_card.card import write_card
from src.model_card.encoder_card import write_encoder_card
from src.objectives.masked_lm import MaskedLM
from src.prepare import (
    END_TASK,
    Prepared,
    auxiliaries_of,
    enabled_stages,
    metrics_of,
    mixes_with_end_task,
    module_class,
    prepare,
)
from src.run_folder.durable import disk_advice, write_durably
from src.run_folder.factor_figure import draw_factor_weights
from src.run_folder.lock import alone_in
from src.run_folder.result import result_of, write_result
from src.run_folder.splits import write_splits
from src.run_folder.stored import INPUTS, check_same_inputs, stored_result
from src.run_folder.weight_figure import draw_task_weights
from src.seeding import seed_for

log = logging.getLogger(__name__)

TEXT = "text"
"""The one task of a run without an end task: the texts of all its corpora."""
ENCODER = "encoder"
"""The folder in which such a run leaves its encoder."""


def run_experiment(config: DictConfig, folder: Path) -> dict[str, Any]:
    """Run all stages of `config` and leave everything in `folder`.

    Returns:
        What `result.json` holds.

    Raises:
        UserError: bad input, found before any training starts.
    """
    config.run.folder = str(folder)
    keep_freed_memory()
    stages = enabled_stages(config)
    prepared = prepare(config, stages)
    with alone_in(folder), disk_advice(folder), own_processes():
        known = stored_result(config, folder)  # of a process that held the folder until now
        if known is not None:
            return known
        return _run_prepared(config, folder, stages, prepared)


def _run_prepared(
    config: DictConfig, folder: Path, stages: dict[str, Stage], prepared: Prepared
) -> dict[str, Any]:
    inputs = fingerprints_of(prepared)
    check_same_inputs(inputs, folder)
    if is_main_process():
        write_durably(folder / INPUTS, lambda path: path.write_text(json.dumps(inputs, indent=1)))
        write_durably(
            folder / "config.yaml", lambda path: OmegaConf.save(config, path, resolve=True)
        )

    if prepared.labelled is not None:
        write_splits(prepared.end_task, folder)

    chain = StageChain(config, folder, prepared)
    outcomes = [chain.run(name, stage) for name, stage in stages.items()]
    chosen = chain.keep_best()
    test = None
    if config.evaluate_test and prepared.labelled is not None:
        test = evaluate_on_test(chosen.module, chain.evaluation("test"), config)
    result = result_of(config, prepared, outcomes, chosen, test)
    unshard(chosen.module.body)
    if not is_main_process():
        return result
    if prepared.held_out is not None:
        _keep_encoder(prepared.encoder, chosen.module, result, config, folder)
        return result
    remark = prepared.encoder.save_classifier(
        chosen.module.heads[END_TASK],
        prepared.end_task.labels,
        folder / "classifier",
        prepared.end_task.max_length,
    )
    if remark is not None:
        log.warning(remark)
    if (columns := prepared.end_task.notes.get("columns")) is not None:
        write_trained(columns, folder / "classifier")
    _draw(result, outcomes, folder)
    write_card(result, config, prepared.encoder, folder)
    write_result(result, folder)
    return result


def _keep_encoder(
    encoder: Encoder,
    module: TaskMixing,
    result: dict[str, Any],
    config: DictConfig,
    folder: Path,
) -> None:
    """Write what continued pre-training is for, and then the result: `encoder/` with its card."""
    text_encoder = reads_text(encoder, "continued pre-training")
    target = folder / ENCODER
    save_masked_lm(text_encoder.body, module.tasks[0].head, text_encoder.tokenizer, target)
    write_encoder_card(result, config, text_encoder, target)
    write_result(result, folder)


def fingerprints_of(prepared: Prepared) -> dict[str, str]:
    """What the data of a run are recognised by, by name."""
    own = {}
    if prepared.labelled is not None:
        own = {f"task {split}": digest for split, digest in prepared.end_task.fingerprints.items()}
    others = {
        f"auxiliary {name}": examples.fingerprint
        for name, (_, examples) in prepared.auxiliaries.items()
    }
    return own | others


class StageChain:
    """Runs stages one after the other, each starting from what the ones before it trained.

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
        """Run one stage; body and heads are left as it is to be followed.

        Args:
            observers: callbacks that look on, after all others.
        """
        config, body = self._config, self._prepared.encoder.body
        config.run.stage = name
        module, data, examples = self.build(name, stage)
        freeze(body, stage.freeze_body)
        outcome = fit_stage(
            module, data, stage, name=name, examples=examples, config=config,
            folder=self._folder, observers=observers,
        )  # fmt: skip
        freeze(body, False)
        self._heads |= {task.name: task.head for task in module.tasks}
        if not module.trains_end_task:
            self._prepared.encoder.adopt(module.tasks[0].head)
        if outcome.dev is not None:
            self._remember(outcome)
        return outcome

    def build(self, name: str, stage: Stage) -> tuple[TaskMixing, StageData, int]:
        """A stage's module and batches, and how many training examples make one of its epochs."""
        torch.manual_seed(seed_for(int(self._config.seed), name, "heads"))
        module_type = module_class(stage)
        tasks = self._tasks(stage, module_type)
        module = self._module(module_type, name, stage, tasks)
        return module, *self._data(module, name, stage)

    def keep_best(self) -> StageOutcome:
        """Put back the weights of the stage that did best on dev, and return its outcome."""
        assert self._best is not None, "enabled_stages asks for a stage that is evaluated"
        _, outcome, weights = self._best
        load_whole_state(outcome.module, weights)
        return outcome

    def evaluation(self, split: str) -> EvaluationBatches:
        """A split of the end task in evaluation batches."""
        examples = getattr(self._prepared.splits, split)
        size = int(self._config.evaluation_batch_size)
        collate = self._prepared.classification.collate(
            self._prepared.encoder, size, training=False
        )
        return EvaluationBatches(TaskExamples(examples, collate, size))

    def _held_out(self, held_out: HeldOutText) -> EvaluationBatches:
        """Held-out texts of all corpora in evaluation batches, their masks the same every time."""
        examples = [examples for _, examples in self._prepared.auxiliaries.values()]
        rows = datasets.concatenate_datasets(
            [own.held_out.select_columns(["input_ids"]) for own in examples if own.held_out]
        )
        size, objective = int(self._config.evaluation_batch_size), examples[0].objective
        assert isinstance(objective, MaskedLM), "TextAuxiliary has no other"
        encoder = reads_text(self._prepared.encoder, "continued pre-training")
        collate = objective.collate(encoder, size, training=False, own_masks=held_out.seed)
        return EvaluationBatches(TaskExamples(rows, collate, size))

    def _remember(self, outcome: StageOutcome) -> None:
        assert outcome.dev is not None
        monitor = self._prepared.metric
        score = monitor.merit(outcome.dev[monitor.name])
        if self._best is None or score > self._best[0]:
            # a copy: a later stage trains the same body on
            self._best = (score, outcome, whole_state(outcome.module))

    def _tasks(self, stage: Stage, module_type: type[TaskMixing]) -> list[Task]:
        prepared, tasks = self._prepared, []
        if module_type.trains_end_task:
            head = None if stage.fresh_end_head else self._heads.get(END_TASK)
            head = head or prepared.classification.new_head(prepared.encoder)
            tasks.append(Task(END_TASK, prepared.classification, head))
        if prepared.held_out is not None:
            objective = next(iter(prepared.auxiliaries.values()))[1].objective
            head = self._heads.get(TEXT) or objective.new_head(prepared.encoder)
            return [Task(TEXT, objective, head)]
        if module_type.trains_auxiliaries:
            settings = {name: auxiliary for name, (auxiliary, _) in prepared.auxiliaries.items()}
            shared: dict[str, nn.Module] = {}
            for name in auxiliaries_of(stage, settings):
                examples = prepared.auxiliaries[name][1]
                head = shared.get(examples.head or name) or self._heads.get(name)
                head = head or examples.objective.new_head(prepared.encoder)
                shared[examples.head or name] = head
                tasks.append(Task(name, examples.objective, head))
        return tasks

    def _module(
        self, module_type: type[TaskMixing], name: str, stage: Stage, tasks: list[Task]
    ) -> TaskMixing:
        end_task = module_type.trains_end_task
        names = [task.name for task in tasks]
        trainer = self._config.trainer
        precision = resolve_precision(str(trainer.precision), str(trainer.accelerator))
        with parameters_in(precision):  # the weights' start, 1/3 for instance
            weighting = (
                build(self._config.weighting, "weighting", task_names=names)
                if mixes_with_end_task(module_type)
                else Uniform(names)
            )
        extra: dict[str, Any] = {"meta_head": stage.meta_head} if module_type.has_meta_head else {}
        if self._prepared.held_out is not None:
            extra["held_out"] = True
        return module_type(
            self._prepared.encoder.body,
            tasks,
            weighting,
            stage.optimisation,
            seed=int(self._config.seed),
            stage=name,
            end_task=END_TASK if end_task else None,
            metrics=metrics_of(self._config, self._prepared.end_task) if end_task else None,
            inner_products=getattr(torch, stage.inner_products),
            **extra,
        )

    def _data(self, module: TaskMixing, name: str, stage: Stage) -> tuple[StageData, int]:
        """The stage's batches, and how many training examples make one of its epochs."""
        prepared, config = self._prepared, self._config
        rows: dict[str, datasets.Dataset | PooledRows] = {
            name: examples.rows for name, (_, examples) in prepared.auxiliaries.items()
        }
        if prepared.held_out is None:
            rows[END_TASK] = prepared.splits.train
        else:
            rows = {TEXT: pooled([examples.rows for _, examples in prepared.auxiliaries.values()])}
        draws = {name: examples.draws for name, (_, examples) in prepared.auxiliaries.items()}
        overhead = resolve_part_overhead(config.part_overhead, str(config.trainer.accelerator))
        sources = {
            task.name: TaskExamples(
                rows[task.name],
                task.objective.collate(  # type: ignore[attr-defined]
                    prepared.encoder, config.micro_batch_size, part_overhead=overhead
                ),
                stage.batch_size,
                draws.get(task.name),
            )
            for task in module.tasks
        }
        examples = stage.epoch_examples(
            None if module.end_task is None else len(rows[END_TASK]),
            [len(rows[name]) for name in sources if name != END_TASK],
        )
        meta = None
        if module.uses_meta_gradient:
            collate = prepared.classification.collate(
                prepared.encoder, config.micro_batch_size, training=False, part_overhead=overhead
            )
            meta = TaskExamples(prepared.splits.dev, collate, stage.meta_batch_size)
        apart = stage.meta_head.examples_apart if module.uses_meta_gradient else 0
        train = StepBatches(
            sources,
            meta,
            stage.steps(examples),
            int(config.seed),
            name,
            apart=(END_TASK, apart) if apart else None,
            second=module.weighting.needs.second_batches,
            sampling=self._sampling(module, name, stage),
        )
        dev = self.evaluation("dev") if module.end_task is not None else None
        if prepared.held_out is not None:
            dev = self._held_out(prepared.held_out)
        return StageData(train, dev, config.num_workers), examples

    def _sampling(self, module: TaskMixing, name: str, stage: Stage) -> TaskSampling | None:
        if stage.sampled is None or not module.trains_auxiliaries:
            return None
        tasks = tuple(task.name for task in module.tasks if task is not module.end_task)
        return TaskSampling(tasks, stage.sampled, stage.batch_size, int(self._config.seed), name)


def _draw(result: dict[str, Any], outcomes: list[StageOutcome], folder: Path) -> None:
    """Draw the weights of the stage that mixed the end task with others, if there was one."""
    for outcome in outcomes:
        if outcome.task_weights and outcome.dev is not None:
            title = f"{result['method']} on {result['task']} ({result['encoder']})"
            if (folder / FACTOR_LOG).exists():
                draw_factor_weights(
                    folder / FACTOR_LOG, outcome.name, title, folder / "factor_weights.png"
                )
            draw_task_weights(
                folder / STEP_LOG,
                outcome.name,
                outcome.evaluations,
                result["metric"],
                title,
                folder / "task_weights.png",
            )
