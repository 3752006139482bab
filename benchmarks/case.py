"""Composes the run of a case, and builds the stage to measure, with its batches and its step."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hydra import compose
from lightning.fabric.utilities import move_data_to_device
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from tartan.core.task import MicroBatch, StepBatch
from tartan.data.prepared import Prepared
from tartan.data.task_data import TaskData
from tartan.kernels.attention import use_kernels
from tartan.methods.module import TaskMixing
from tartan.methods.optimisation import prepare_update
from tartan.methods.stage import Stage
from tartan.methods.trainer import resolve_precision
from tartan.runs.prepare import enabled_stages, prepare
from tartan.runs.run import StageChain

STAGE_OF = {"finetune": "finetune", "tapt": "tapt", "mt_tartan": "joint", "meta_tartan": "joint"}
"""The stage to measure, by method."""
_AUXILIARIES = ("dapt", "tapt", *(f"dapt{number}" for number in range(2, 17)))
"""Names of auxiliary tasks, of which a case has the first ones."""


@dataclass(frozen=True)
class Case:
    """A method with a number of auxiliary tasks: on domain text, the task's, then domain text."""

    method: str
    tasks: int
    batch_size: int  # examples of each task in a step
    options: Sequence[str]  # further overrides: data, encoder, precision
    corpus: str | None = None  # file of domain text; None for the task's own

    def __str__(self) -> str:
        encoder = next(o for o in self.options if o.startswith("encoder="))
        return f"{self.method}, {self.tasks} auxiliary, {encoder.removeprefix('encoder=')}"

    def config(self, steps: int, folder: Path, *more: str) -> DictConfig:
        """Compose a run of `steps` steps in a folder that is emptied, evaluated at its end."""
        stage = f"method.stages.{STAGE_OF[self.method]}"
        overrides = [
            "auxiliary.size=10", *self.options, f"method={self.method}", f"max_steps={steps}",
            f"{stage}.max_steps={steps}", f"{stage}.max_epochs=null",
            f"{stage}.batch_size={self.batch_size}", f"{stage}.meta_batch_size={self.batch_size}",
            "trainer.enable_progress_bar=false", *self._auxiliaries(), *more,
        ]  # fmt: skip
        if self.method != "tapt":
            overrides += [f"{stage}.evaluate_every={steps}", f"{stage}.patience=null"]
        config = compose("config", overrides=overrides)
        OmegaConf.set_struct(config, False)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        config.run.folder = str(folder)
        config.run.stage = STAGE_OF[self.method]
        return config

    def _auxiliaries(self) -> list[str]:
        if self.method in ("finetune", "tapt"):
            return [f"auxiliary={'tapt' if self.method == 'tapt' else 'none'}"]
        names = _AUXILIARIES[: self.tasks]
        kinds = {name: "mlm_task" if name == "tapt" else "mlm_domain" for name in names}
        chosen = [f"+auxiliary_task@auxiliary.{name}={kind}" for name, kind in kinds.items()]
        if self.corpus is not None:
            chosen += [f"auxiliary.{n}.path={self.corpus}" for n in names if n != "tapt"]
        return ["auxiliary=none", *chosen]


@dataclass
class BuiltCase:
    """A case whose stage has been built, with the module on a device."""

    config: DictConfig
    prepared: Prepared
    stage: Stage
    module: TaskMixing
    data: TaskData
    device: torch.device
    precision: str

    def batch(self, step: int, device: torch.device | None = None) -> StepBatch:
        """Return the batch of one step, on the case's device or another."""
        accelerator = str(self.config.trainer.accelerator)
        batches = self.data.steps(self.module.batch_needs, accelerator, self.precision)
        moved: StepBatch = move_data_to_device(batches[step], device or self.device)
        return moved

    def batches(self, device: torch.device | None = None) -> list[StepBatch]:
        """Return the batches of all steps."""
        count = self.data.epoch_steps(self.module.batch_needs)
        return [self.batch(step, device) for step in range(count)]

    def autocast(self) -> torch.autocast:
        """Return the context that computes in the case's precision."""
        is_mixed = self.precision.startswith("bf16")
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=is_mixed)

    def stepper(self) -> Callable[[StepBatch], None]:
        """Return a function that takes this program's step without Lightning's Trainer."""
        module = self.module
        optimiser = module.new_optimiser()

        def step(batch: StepBatch) -> None:
            with self.autocast():
                record = module.fill_gradients(batch)
            norm = module.gradient_norm(record)
            prepare_update(optimiser, norm, module.optimisation.clip_norm, norm.isfinite())
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        return step


def build_case(case: Case, steps: int, folder: Path, device: torch.device, *more: str) -> BuiltCase:
    """Build a case's module and batches."""
    config = case.config(steps, folder, *more)
    stages, name = enabled_stages(config), STAGE_OF[case.method]
    prepared = prepare(config, stages)
    module, data = StageChain(config, folder, prepared, stages).build(name, stages[name])
    use_kernels(module)  # as a run does when it begins to train
    precision = resolve_precision(config.trainer.precision, str(config.trainer.accelerator))
    return BuiltCase(config, prepared, stages[name], module.to(device), data, device, precision)


def loss_of(objective: Any, body: nn.Module, head: nn.Module, part: MicroBatch) -> Tensor:
    """Return the sum of the losses of a micro-batch, by plain calls of body and head."""
    states = objective.features(body, part.inputs)
    loss: Tensor = objective.losses(body, head, states, objective.targets(part.inputs)).sum()
    return loss
