"""Sums over processes that each hold a whole replica of the model, with `torch.distributed`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, distributed, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from tartan.core.body import SharedBody, Summed
from tartan.core.gradients import Gradient
from tartan.core.task import Batch

SMALL = 2**16
"""Maximum size of tensors that are sent together, because sending each costs more [numbers]."""


class ReplicatedBody(SharedBody):
    """A body of which each process of torch's default group has a replica (see `SharedBody`).

    Large tensors of a gradient are summed in place one by one, small ones joined. Facts that depend
    on the model alone, such as which parameters a task reaches, are exchanged once; a process
    without any of a batch learns them in this way.

    Attributes:
        summed_bytes: size of what was summed or gathered. In a ring, each process sends twice that,
            less its own share.
    """

    overlaps = True

    def __init__(self, module: nn.Module, product_dtype: torch.dtype = torch.float32) -> None:
        super().__init__(module, product_dtype)
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()
        self.summed_bytes = 0
        self._reached: dict[Hashable, list[bool]] = {}
        self._forms: dict[Hashable, tuple[tuple[int, ...], torch.dtype]] = {}

    def begin_sum(
        self, key: Hashable, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        """See `SharedBody.begin_sum`."""
        total: Gradient = []
        for parameter, value, reached in zip(
            parameters, gradient, self._reached_by(key, gradient), strict=True
        ):
            if not reached:
                total.append(None)
            elif value is None:
                total.append(torch.zeros_like(parameter))
            else:
                total.append(value.contiguous())
        del gradient
        handles: list[distributed.Work] = []
        small: dict[torch.dtype, dict[int, Tensor]] = defaultdict(dict)
        for index, value in enumerate(total):
            if value is not None and value.numel() <= SMALL:
                small[value.dtype][index] = value
            elif value is not None:
                handles.append(self._begin(value))
        last = loss.detach().reshape(1).double()
        handles.append(self._begin(last))
        joined: list[Tensor] = [
            _flatten_dense_tensors(list(values.values()))  # type: ignore[no-untyped-call]
            for values in small.values()
        ]
        handles += [self._begin(flat) for flat in joined]

        def wait() -> Summed:
            for handle in handles:
                handle.wait()
            for flat, values in zip(joined, small.values(), strict=True):
                own = list(values.values())
                parts = _unflatten_dense_tensors(flat, own)  # type: ignore[no-untyped-call]
                for index, part in zip(values, parts, strict=True):
                    total[index] = part
            return Summed(total, last[0].to(loss.dtype))

        return wait

    def gather(
        self, key: Hashable, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        """See `SharedBody.gather`."""
        shape, dtype = self._form_of(key, parts)
        device = parts[0].device if parts else self._device()
        joined = torch.zeros((sum(sizes), *shape), dtype=dtype, device=device)
        by_number = torch.split(joined, list(sizes))
        numbers = [number for number, _ in batch.numbered]
        for number, part in zip(numbers, parts, strict=True):
            by_number[number].copy_(part)
        handle = self._begin(joined)
        handle.wait()
        return joined

    @contextmanager
    def adding_changes(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """See `SharedBody.adding_changes`."""
        before = [tensor.clone() for tensor in tensors]
        yield
        for tensor, old in zip(tensors, before, strict=True):
            tensor.sub_(old)
            self._begin(tensor).wait()
            tensor.add_(old)

    def _begin(self, tensor: Tensor) -> distributed.Work:
        self.summed_bytes += tensor.numel() * tensor.element_size()
        work: distributed.Work | None = distributed.all_reduce(tensor, async_op=True)
        assert work is not None
        return work

    def _reached_by(self, key: Hashable, gradient: Gradient) -> list[bool]:
        """Return for each parameter whether a task reaches it on any process."""
        here = [value is not None for value in gradient]
        if key not in self._reached:
            found: list[list[bool]] = [[]] * self.count
            distributed.all_gather_object(found, here)
            self._reached[key] = [any(column) for column in zip(*found, strict=True)]
        known = self._reached[key]
        if any(now and not before for now, before in zip(here, known, strict=True)):
            raise RuntimeError(
                f"task {key} reaches parameters that it did not reach in the first step; several "
                "processes cannot train a body that skips layers at random"
            )
        return known

    def _form_of(
        self, key: Hashable, parts: Sequence[Tensor]
    ) -> tuple[tuple[int, ...], torch.dtype]:
        """Return the shape without its first dimension, and the type, of what is gathered."""
        if key not in self._forms:
            here = (tuple(parts[0].shape[1:]), parts[0].dtype) if parts else None
            found: list[tuple[tuple[int, ...], torch.dtype] | None] = [None] * self.count
            distributed.all_gather_object(found, here)
            self._forms[key] = next(form for form in found if form is not None)
        return self._forms[key]

    def _device(self) -> torch.device:
        if distributed.get_backend() == "nccl":
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("cpu")
