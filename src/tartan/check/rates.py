"""Measures time and memory of each task's passes on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from lightning.fabric.utilities import move_data_to_device
from omegaconf import DictConfig
from torch import nn

from tartan.check.inputs import Inputs
from tartan.core.clock import now
from tartan.core.device import is_on_cuda
from tartan.core.memory import parameter_bytes, peak_bytes
from tartan.core.mixed_precision import autocast_of
from tartan.core.passes import Passes, Purpose
from tartan.core.task import Batch, MicroBatch, Task
from tartan.core.task_names import END_TASK
from tartan.cpu.kernels import use_cpu_kernels
from tartan.cpu.row_gradients import RowGradientBody
from tartan.data.batches import BatchNeeds
from tartan.data.task_data import BatchSizes, TaskData
from tartan.methods.optimisation import Optimisation
from tartan.methods.precision import resolve_precision

ENOUGH_SECONDS = 1.0
"""Time after which a task's measurement ends; a started pass is finished [s]."""
_BATCHES = 2
"""Number of batches in which positions are counted."""


@dataclass(frozen=True)
class Rate:
    """Measurements of one task's passes through body and head.

    A *position* is a token or padding in a micro-batch; for images, an example.

    Attributes:
        seconds: time of a forward and backward pass, per position [s].
        forward_seconds: time of a forward pass alone, per position [s].
        measured: number of positions whose passes were timed.
        held: memory of the largest micro-batch's passes, without parameters and gradients [bytes].
        head: size of the task's head [bytes].
    """

    seconds: float
    forward_seconds: float
    measured: int
    held: int
    head: int


@dataclass(frozen=True)
class Machine:
    """Measurements of the machine.

    Attributes:
        device: torch's name of the device.
        precision: Lightning's name of the precision.
        update_seconds: time of an optimiser step over body and heads [s].
        body: size of the body's parameters [bytes].
    """

    device: str
    precision: str
    update_seconds: float
    body: int


class PassTimer:
    """Measures passes with the run's own encoder, micro-batches and precision.

    Nothing is trained: the gradients are thrown away, and the update's learning rates are zero.

    Args:
        config: the run's config.
        inputs: the run's data.
        batch_sizes: batch sizes of each task in the planned stages.
    """

    def __init__(
        self, config: DictConfig, inputs: Inputs, batch_sizes: Mapping[str, Iterable[int]]
    ) -> None:
        self._config, self._prepared = config, inputs.all_prepared
        accelerator = str(config.trainer.accelerator)
        self.device = torch.device("cuda" if is_on_cuda(accelerator) else "cpu")
        self.precision = resolve_precision(config.trainer.precision, accelerator)
        self._accelerator = accelerator
        self._body = self._as_trained(self._prepared.encoder.body)
        self._passes = Passes(RowGradientBody(self._body))
        self._tasks = {name: self._task(name) for name in batch_sizes}
        self.positions = {
            name: {size: self._positions(name, size) for size in sorted(set(sizes))}
            for name, sizes in batch_sizes.items()
        }
        self._largest = {name: max(sizes) for name, sizes in batch_sizes.items()}

    def rates(self) -> dict[str, Rate]:
        """Return the measurements of each task's passes."""
        return {name: self._rate(task) for name, task in self._tasks.items()}

    def machine(self) -> Machine:
        """Return the measurements of the machine; call `rates` first, which leaves gradients."""
        others = [task.head for name, task in self._tasks.items() if name != END_TASK]
        still = Optimisation(body_lr=0.0, end_head_lr=0.0, weight_decay=0.0)
        optimiser = still.optimiser(self._body, self._tasks[END_TASK].head, others)
        optimiser.step()  # makes its state
        began = now(self.device)
        optimiser.step()
        seconds = now(self.device) - began
        return Machine(str(self.device), self.precision, seconds, parameter_bytes(self._body))

    def _task(self, name: str) -> Task:
        objective = self._prepared.objective(name)
        return Task(name, objective, self._as_trained(objective.new_head(self._prepared.encoder)))

    def _as_trained(self, module: nn.Module) -> nn.Module:
        """Return a body or head as a run trains it: its device, type of numbers and kernels."""
        use_cpu_kernels(module)
        return module.to(self.device, torch.float64 if self.precision == "64-true" else None)

    def _batch(self, name: str, size: int, number: int) -> Batch:
        sizes = BatchSizes(
            batch_size=size,
            micro_batch_size=int(self._config.micro_batch_size),
            packed=bool(self._config.packed),
        )
        needs = BatchNeeds("check", (name,))
        steps = TaskData(self._prepared, sizes).steps(needs, self._accelerator, self.precision)
        return steps[number].tasks[name]

    def _positions(self, name: str, size: int) -> float:
        """Return the mean number of positions in a batch."""
        batches = [self._batch(name, size, number) for number in range(_BATCHES)]
        return sum(p.positions for b in batches for p in b.micro_batches) / _BATCHES

    def _rate(self, task: Task) -> Rate:
        batch = self._batch(task.name, self._largest[task.name], 0)
        by_size = sorted(batch.micro_batches, key=lambda part: part.positions)
        parts = move_data_to_device(_spread(by_size), self.device)
        largest = move_data_to_device(by_size[-1], self.device)
        with autocast_of(self.precision, self.device):
            self._pass(task, parts[0])  # what a first pass sets up does not count
            held = peak_bytes(lambda: self._pass(task, largest), self.device)
            seconds = forward = 0.0
            measured = 0
            for part in parts:
                began = now(self.device)
                self._pass(task, part)
                between = now(self.device)
                with torch.no_grad():
                    self._passes.losses(task, part)
                forward += now(self.device) - between
                seconds += between - began
                measured += part.positions
                if seconds > ENOUGH_SECONDS:
                    break
        return Rate(
            seconds=seconds / measured,
            forward_seconds=forward / measured,
            measured=measured,
            held=held,
            head=parameter_bytes(task.head),
        )

    def _pass(self, task: Task, part: MicroBatch) -> None:
        self._passes.backward(Purpose("task", task.name), task, Batch([part], part.examples))


def _spread(by_size: list[MicroBatch]) -> list[MicroBatch]:
    """Return all parts in an order of which the first few represent all, the middle first."""
    count = len(by_size)
    # numbers by their binary digits from the last to the first halve the largest gap in turn
    order = sorted(range(count), key=lambda i: f"{(i - count // 2) % count:020b}"[::-1])
    return [by_size[index] for index in order]
