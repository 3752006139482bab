"""Composes the config of a case of the bench, and runs or builds the stage to measure."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from hydra import compose
from lightning.fabric.utilities import move_data_to_device
from omegaconf import DictConfig, OmegaConf

from tartan.core.device import autocast_of
from tartan.core.task import StepBatch
from tartan.data.batches import with_sampled_batches
from tartan.data.prepared import Prepared
from tartan.data.task_data import TaskData
from tartan.experiment.prepare import enabled_stages, prepare
from tartan.experiment.run import StageChain
from tartan.kernels.attention import use_kernels
from tartan.methods.module import TaskMixing
from tartan.methods.precision import resolve_precision

STAGE_OF = {
    "finetune": "finetune",
    "mt_tartan": "joint",
    "meta_tartan": "joint",
    "tapt": "tapt",
    "aang": "joint",
}
"""The stage to measure, by method."""
_LEFT_OUT = (
    "transforms.none", "transforms.replace", "transforms.mask", "representations.left_to_right",
    "representations.right_to_left", "representations.random_factorised", "outputs.end_label",
)  # fmt: skip
_SPACES = {
    1: ["auxiliary=aang_td", *(f"~auxiliary.aang.{part}" for part in _LEFT_OUT)],
    24: ["auxiliary=aang_td"],
    40: ["auxiliary=aang_td_ed"],
}
"""Options that compose a space of objectives, by their number; the single one is in all spaces."""
_AUXILIARIES = ("dapt", "tapt", *(f"dapt{number}" for number in range(2, 17)))
"""Names of auxiliary tasks, of which a case has the first ones."""


@dataclass(frozen=True)
class Case:
    """A case to measure: a method with a number of auxiliary tasks.

    Attributes:
        method: name of the method in `conf/method`.
        tasks: number of auxiliary tasks: on domain text, on the task's text, then on domain text
            again. For `aang`, the number of composed objectives, 1, 24 or 40, of which each step
            samples one.
        batch_size: number of examples of each task in a step.
        options: further overrides: data, encoder, precision.
        corpus: file of domain text; None for the task's own.
    """

    method: str
    tasks: int
    batch_size: int
    options: Sequence[str]
    corpus: str | None = None

    def config(self, steps: int, folder: Path, *more: str) -> DictConfig:
        """Compose the config of a run of `steps` steps, evaluated only at its end.

        Args:
            steps: number of steps.
            folder: the run folder, which is emptied.
            more: further overrides.
        """
        stage = f"method.stages.{STAGE_OF[self.method]}"
        overrides = [
            "auxiliary.size=10",
            *self.options,
            f"method={self.method}",
            f"max_steps={steps}",
            f"{stage}.max_steps={steps}",
            f"{stage}.max_epochs=null",
            f"{stage}.batch_size={self.batch_size}",
            f"{stage}.meta_batch_size={self.batch_size}",
            "trainer.enable_progress_bar=false",
            *self._auxiliaries(),
            *more,
        ]
        if self.method != "tapt":
            overrides += [f"{stage}.evaluate_every={steps}", f"{stage}.patience=null"]
        config = compose("config", overrides=overrides)
        OmegaConf.set_struct(config, False)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        config.run.folder = str(folder)
        return config

    def _auxiliaries(self) -> list[str]:
        if self.method == "finetune":
            return ["auxiliary=none"]
        if self.method == "tapt":
            return ["auxiliary=tapt"]
        if self.method == "aang":
            return [*_SPACES[self.tasks], "method.stages.joint.sampled=1"]
        names = _AUXILIARIES[: self.tasks]
        kinds = {name: "mlm_task" if name == "tapt" else "mlm_domain" for name in names}
        chosen = [f"+auxiliary_task@auxiliary.{name}={kind}" for name, kind in kinds.items()]
        if self.corpus is not None:
            chosen += [
                f"auxiliary.{n}.path={self.corpus}" for n, k in kinds.items() if k == "mlm_domain"
            ]
        return ["auxiliary=none", *chosen]


def build_case(case: Case, steps: int, folder: Path, *more: str) -> BuiltCase:
    """Build the case's module and batches, for steps without Lightning's Trainer.

    Args:
        case: the case.
        steps: number of steps that there are batches for.
        folder: the run folder, which is emptied.
        more: further overrides of the config.
    """
    config = case.config(steps, folder, *more)
    stages = enabled_stages(config)
    prepared = prepare(config, stages)
    name = STAGE_OF[case.method]
    module, data = StageChain(config, folder, prepared).build(name, stages[name])
    use_kernels(module)  # as a run does when it begins to train
    precision = resolve_precision(config.trainer.precision, str(config.trainer.accelerator))
    return BuiltCase(config, prepared, module, data, precision)


@dataclass
class BuiltCase:
    """A case whose stage has been built.

    Attributes:
        config: the case's config.
        prepared: data and encoder.
        module: the LightningModule, on the CPU.
        data: its batches.
        precision: Lightning's name of the precision.
    """

    config: DictConfig
    prepared: Prepared
    module: TaskMixing
    data: TaskData
    precision: str

    def batch(self, step: int, device: torch.device) -> StepBatch:
        """Return the batch of one step, on `device`."""
        accelerator = str(self.config.trainer.accelerator)
        whole = self.data.steps(self.module.batch_needs, accelerator, self.precision)[step]
        if whole.unsized:
            whole = with_sampled_batches(whole, self.module.weighting, self.data.sizes.batch_size)
        moved: StepBatch = move_data_to_device(whole, device)
        return moved

    def batches(self, device: torch.device) -> list[StepBatch]:
        """Return the batches of all steps, on `device`."""
        return [
            self.batch(step, device)
            for step in range(self.data.epoch_steps(self.module.batch_needs))
        ]

    def autocast(self, device: torch.device) -> torch.autocast:
        """Return the context that computes in the case's precision."""
        return autocast_of(self.precision, device)
