"""Several processes: Lightning's strategies for them, and their sums with `torch.distributed`."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.imports import _IS_INTERACTIVE
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor, distributed, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from tartan.core.body import SharedBody, Summed
from tartan.core.gradients import Gradient
from tartan.core.task import Batch
from tartan.errors import UserError
from tartan.launch import ABORTED, torchrun_processes

SMALL = 2**16  # to which tensors are sent together, because sending each costs more [numbers]
PRECISIONS = ("bf16-mixed", "32-true", "64-true")
"""Lightning's precisions that work here: `16-mixed` needs a scaler of gradients, and with weights
in 16 bits small updates would be lost.
"""
_UNBOUNDED = (-1, None, 1000)
"""Numbers of epochs that do not say how long a training is; 1000 are Lightning's default."""
T = TypeVar("T")


class _Aborts:
    """A strategy that waits for no other process once this one has failed."""

    def on_exception(self, exception: BaseException) -> None:
        """Abort sums under way: what ends the run would wait for them on a GPU."""
        if distributed.is_initialized() and distributed.get_backend() == "nccl":
            distributed.distributed_c10d._abort_process_group()
            exception.add_note(ABORTED)


class ReplicaStrategy(_Aborts, DDPStrategy):
    """Lightning's DDP strategy and options, without `DistributedDataParallel`.

    That wrapper sums gradients when `backward` of a whole loss ends, and does not see those of
    single tasks; `ReplicatedBody` sums each. In a notebook, processes are forked.
    """

    def __init__(self, **options: Any) -> None:
        if _IS_INTERACTIVE:
            options = {"start_method": "fork", **options}
        super().__init__(**options)

    def configure_ddp(self) -> None:
        """Start from the first process's parameters and buffers."""
        assert self.model is not None
        # not the state dict: a TorchJD weighting keeps bytes there on the CPU, out of NCCL's reach
        for tensor in (*self.model.parameters(), *self.model.buffers()):
            distributed.broadcast(tensor.detach(), 0)


class ShardStrategy(_Aborts, ModelParallelStrategy):
    """Lightning's FSDP2: each process holds a shard of the body; checkpoints are single files."""

    def __init__(self) -> None:
        super().__init__(save_distributed_checkpoint=False)

    def setup_environment(self) -> None:
        self._data_parallel_size = self.num_nodes * self.num_processes
        self._tensor_parallel_size = 1
        super().setup_environment()


def check_trainer(trainer: pl.Trainer, modes: Mapping[str, str]) -> None:
    """Check that a Trainer's options train what they ask for; `modes` are those of metrics."""
    is_training = trainer.state.fn == TrainerFn.FITTING
    if not isinstance(trainer.strategy, SingleDeviceStrategy | ReplicaStrategy | ShardStrategy):
        raise UserError(
            f"Trainer(strategy=...): {type(trainer.strategy).__name__} does not sum the gradients "
            "of single tasks; use devices=1, or strategy=ReplicaStrategy() or ShardStrategy() from "
            "tartan.methods.strategy"
        )
    # of torchrun's processes with devices=1, each would train alone, in the others' folder
    started = max(trainer.world_size, torchrun_processes() or 1)
    if started != trainer.num_devices * trainer.num_nodes:
        raise UserError(
            f"{started} process(es) were started, but devices={trainer.num_devices} "
            f"and num_nodes={trainer.num_nodes} ask for others; in a SLURM job srun starts them"
        )
    allowed = PRECISIONS if is_training else (*PRECISIONS, "16-mixed")
    if str(trainer.precision) not in allowed:
        raise UserError(f"Trainer(precision={trainer.precision!r}): use {', '.join(allowed)}")
    if is_training and trainer.max_steps == -1 and trainer.max_epochs in _UNBOUNDED:
        raise UserError(
            "give the Trainer max_steps or max_epochs, if only as an upper bound: the learning "
            "rate rises and falls over the whole training"
        )
    for callback in trainer.callbacks if is_training else ():
        if isinstance(callback, StochasticWeightAveraging):
            raise UserError("StochasticWeightAveraging follows epochs; use EMAWeightAveraging")
        if isinstance(callback, ModelCheckpoint) and callback._train_time_interval is not None:
            raise UserError("train_time_interval saves nothing here; use every_n_train_steps")
        if isinstance(callback, EarlyStopping | ModelCheckpoint):
            kind, watched = type(callback).__name__, callback.monitor
            mode = modes.get(watched or "", callback.mode)
            if callback.mode != mode:
                raise UserError(f"{kind}(monitor={watched!r}) needs mode={mode!r}")


class Agreement:
    """Collective operations on small values of the host, which all processes call in one order.

    If a process has died, the others' next call fails at once: it goes over sockets, also where
    gradients go over NCCL, which would wait for the process.
    """

    def __init__(self) -> None:
        self._group: distributed.ProcessGroup | None = None

    @property
    def is_main(self) -> bool:
        return not distributed.is_initialized() or distributed.get_rank() == 0

    def wait(self) -> None:
        self.highest(0)

    def highest(self, number: int) -> int:
        if not distributed.is_initialized():
            return number
        highest = torch.tensor([number])
        distributed.all_reduce(highest, distributed.ReduceOp.MAX, group=self._sockets())
        return int(highest)

    def values_of_all(self, value: T) -> list[T]:
        """Return the value of each process, in their order."""
        if not distributed.is_initialized():
            return [value]
        values: list[T] = [value] * distributed.get_world_size()
        distributed.all_gather_object(values, value, group=self._sockets())
        return values

    def _sockets(self) -> distributed.ProcessGroup:
        if self._group is None:  # in the first call, which all processes make
            self._group = distributed.new_group(backend="gloo")
        return self._group


class ReplicatedBody(SharedBody):
    """A body of which each process of torch's default group has a replica (see `SharedBody`).

    Which parameters a task reaches is exchanged once, also for processes without any of a batch.
    """

    overlaps = True

    def __init__(self, module: nn.Module, product_dtype: torch.dtype = torch.float32) -> None:
        super().__init__(module, product_dtype)
        self._agreement = Agreement()
        self._reached: dict[Hashable, list[bool]] = {}
        self._forms: dict[Hashable, tuple[tuple[int, ...], torch.dtype]] = {}

    def begin_sum(
        self, key: Hashable, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        total: Gradient = []
        for parameter, value, reached in zip(
            parameters, gradient, self._reached_by(key, gradient), strict=True
        ):
            if reached:
                value = torch.zeros_like(parameter) if value is None else value.contiguous()
            total.append(value)
        del gradient
        small: dict[torch.dtype, dict[int, Tensor]] = defaultdict(dict)
        handles = []
        for index, value in enumerate(total):
            if value is not None and value.numel() <= SMALL:
                small[value.dtype][index] = value
            elif value is not None:
                handles.append(_begin(value))
        last = loss.detach().reshape(1).double()
        joined: list[Tensor] = [
            _flatten_dense_tensors(list(values.values()))  # type: ignore[no-untyped-call]
            for values in small.values()
        ]
        handles += [_begin(tensor) for tensor in (last, *joined)]

        def wait() -> Summed:
            for handle in handles:
                handle.wait()
            for flat, values in zip(joined, small.values(), strict=True):
                parts = _unflatten_dense_tensors(flat, list(values.values()))  # type: ignore[no-untyped-call]
                for index, part in zip(values, parts, strict=True):
                    total[index] = part
            return Summed(total, last[0].to(loss.dtype))

        return wait

    def gather(
        self, key: Hashable, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        if key not in self._forms:
            here = (tuple(parts[0].shape[1:]), parts[0].dtype) if parts else None
            every = self._agreement.values_of_all(here)
            self._forms[key] = next(form for form in every if form is not None)
        shape, dtype = self._forms[key]
        joined = torch.zeros((sum(sizes), *shape), dtype=dtype, device=self.device)
        by_number = torch.split(joined, list(sizes))
        for (number, _), part in zip(batch.numbered, parts, strict=True):
            by_number[number].copy_(part)
        _begin(joined).wait()
        return joined

    @contextmanager
    def adding_changes(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        before = [tensor.clone() for tensor in tensors]
        yield
        for tensor, old in zip(tensors, before, strict=True):
            tensor.sub_(old)
            _begin(tensor).wait()
            tensor.add_(old)

    def _reached_by(self, key: Hashable, gradient: Gradient) -> list[bool]:
        """Return for each parameter whether a task reaches it on any process."""
        here = [value is not None for value in gradient]
        if key not in self._reached:
            every = self._agreement.values_of_all(here)
            self._reached[key] = [any(column) for column in zip(*every, strict=True)]
        known = self._reached[key]
        if any(now and not before for now, before in zip(here, known, strict=True)):
            raise RuntimeError(
                f"task {key} reaches parameters that it did not reach in the first step; several "
                "processes cannot train a body that skips layers at random"
            )
        return known


def _begin(tensor: Tensor) -> distributed.Work:
    work: distributed.Work | None = distributed.all_reduce(tensor, async_op=True)
    assert work is not None
    return work
