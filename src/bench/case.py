"""A case of the bench: a config, as the command line would compose it, and its first stage."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lightning.pytorch as pl
import torch
from hydra import compose
from lightning.fabric.utilities import move_data_to_device
from omegaconf import DictConfig, OmegaConf

from src.core.task import StepBatch
from src.cpu.kernels import use_cpu_kernels
from src.data.prepared import Prepared
from src.data.sampled_batches import sized
from src.data.task_data import TaskData
from src.experiment.prepare import enabled_stages, prepare
from src.experiment.run import StageChain
from src.methods.module import TaskMixing
from src.methods.outcome import StageOutcome
from src.methods.precision import resolve_precision

STAGE_OF = {
    "finetune": "finetune",
    "mt_tartan": "joint",
    "meta_tartan": "joint",
    "tapt": "tapt",
    "aang": "joint",
}
"""The stage that a method's case measures."""
OBJECTIVE = "task-bert-bidirectional-denoise"
"""The one objective of the smallest space of composed ones; it is in the larger ones too."""
_SPACES = {
    1: ["auxiliary=aang_td"]
    + [f"~auxiliary.aang.transforms.{name}" for name in ("none", "replace", "mask")]
    + [
        f"~auxiliary.aang.representations.{name}"
        for name in ("left_to_right", "right_to_left", "random_factorised")
    ]
    + ["~auxiliary.aang.outputs.end_label"],
    24: ["auxiliary=aang_td"],
    40: ["auxiliary=aang_td_ed"],
}
"""Options that compose so many objectives."""
_FURTHER = ("dapt", "tapt", "dapt2", "dapt3", *(f"dapt{number}" for number in range(4, 17)))


@dataclass(frozen=True)
class Case:
    """A case to measure: a method with so many auxiliary tasks.

    Attributes:
        method: its name in `conf/method`.
        tasks: number of auxiliary tasks: domain text, the task's text, more domain text; of `aang`
            1, 24 or 40 composed objectives, of which a step samples one.
        batch_size: examples of each task in a step.
        options: further overrides: data, encoder, precision.
        corpus: domain text; None: the task's own.
    """

    method: str
    tasks: int
    batch_size: int
    options: Sequence[str]
    corpus: str | None = None

    def config(self, steps: int, folder: Path, *more: str) -> DictConfig:
        """The config of a run of `steps` steps in `folder`, without evaluations on the way."""
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
        names = _FURTHER[: self.tasks]
        kinds = {name: "mlm_task" if name == "tapt" else "mlm_domain" for name in names}
        chosen = [f"+auxiliary_task@auxiliary.{name}={kind}" for name, kind in kinds.items()]
        if self.corpus is not None:
            chosen += [
                f"auxiliary.{n}.path={self.corpus}" for n, k in kinds.items() if k == "mlm_domain"
            ]
        return ["auxiliary=none", *chosen]


def run_case(
    case: Case, steps: int, folder: Path, observers: Sequence[pl.Callback], *more: str
) -> StageOutcome:
    """Train the case's stage as a run does, with `observers` looking on."""
    config = case.config(steps, folder, *more)
    stages = enabled_stages(config)
    name = STAGE_OF[case.method]
    return StageChain(config, folder, prepare(config, stages)).run(name, stages[name], observers)


def built_case(case: Case, steps: int, folder: Path, *more: str) -> BuiltCase:
    """The case's module and batches, for steps that are taken by hand."""
    config = case.config(steps, folder, *more)
    stages = enabled_stages(config)
    prepared = prepare(config, stages)
    name = STAGE_OF[case.method]
    module, data = StageChain(config, folder, prepared).build(name, stages[name])
    use_cpu_kernels(module)  # as a run does when it begins to train
    precision = resolve_precision(config.trainer.precision, str(config.trainer.accelerator))
    return BuiltCase(config, prepared, module, data, precision)


@dataclass
class BuiltCase:
    """A stage's parts.

    Attributes:
        config: the case's config.
        prepared: data and encoder.
        module: the LightningModule, on the CPU.
        data: its batches.
        precision: Lightning's name of it.
    """

    config: DictConfig
    prepared: Prepared
    module: TaskMixing
    data: TaskData
    precision: str

    def batch(self, step: int, device: torch.device) -> StepBatch:
        """Of one step, where it is needed."""
        accelerator = str(self.config.trainer.accelerator)
        steps = self.data.steps(self.module.batch_needs, accelerator, self.precision)
        whole = steps[step]
        if steps.sampling is not None:
            whole = sized(whole, self.module.weighting, steps.sampling.batch_size)
        moved: StepBatch = move_data_to_device(whole, device)
        return moved

    def batches(self, device: torch.device) -> list[StepBatch]:
        """Of all its steps."""
        return [
            self.batch(step, device)
            for step in range(self.data.epoch_steps(self.module.batch_needs))
        ]

    def autocast(self, device: torch.device) -> torch.autocast:
        """The precision as a context."""
        return torch.autocast(
            device.type, dtype=torch.bfloat16, enabled=self.precision.startswith("bf16")
        )
