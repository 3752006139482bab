"""The meta head `phi*`, trained anew in every step only for the meta-gradient (section 3.3)."""

import copy
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from annotated_types import Ge, Lt
from torch import Tensor, nn

from tartan.core.device import StepState, is_cpu, without_autocast
from tartan.core.task import Objective


@dataclass
class MetaHeadSettings:
    """Options of the meta head.

    Attributes:
        kind: `separate` (equation 7) or `shared`: the end task's own head (equation 6, the
            same-head ablation of figure 3).
        examples: end-task training examples it is fitted on (paper: 16 or 32) [examples].
        examples_from: `batch` draws them from the step's own end-task batch (Algorithm 1's line);
            `rest` from all other training examples (its comment, and section 4), which takes one
            more forward pass and keeps the meta-gradient independent of the batch.
        steps: gradient steps on the cached features (paper: 10) [steps].
        lr: learning rate of these steps.
        weight_decay: weight decay of these steps.
        fresh: start from a new random initialisation at every step (section 3.3); otherwise from
            where the last step left it.
        tolerance: stop as soon as a step has changed the loss by less than this share of it; None
            takes all `steps`.
    """

    # read by pydantic where a run's config is checked
    __pydantic_config__: ClassVar = {"strict": True, "extra": "forbid", "allow_inf_nan": False}
    kind: Literal["separate", "shared"] = "separate"
    examples: Annotated[int, Ge(1)] = 32
    examples_from: Literal["batch", "rest"] = "batch"
    steps: Annotated[int, Ge(0)] = 10
    lr: Annotated[float, Ge(0)] = 1e-3
    weight_decay: Annotated[float, Ge(0)] = 0.1
    fresh: bool = True
    tolerance: Annotated[float, Ge(0), Lt(1)] | None = None

    @property
    def extra_examples(self) -> int:
        """Number of examples that a step must bring besides its end-task batch."""
        apart = self.kind == "separate" and self.examples_from == "rest"
        return self.examples if apart else 0


class MetaHead(nn.Module):
    """A head of the class and sizes of `end_head` that is refitted on cached features."""

    def __init__(self, end_head: nn.Module, settings: MetaHeadSettings) -> None:
        super().__init__()
        self.settings = settings
        self.head = copy.deepcopy(end_head)
        if settings.kind == "separate":
            _reset(self.head)

    def fit(
        self, body: nn.Module, objective: Objective, features: Tensor, targets: Tensor
    ) -> Tensor:
        """Fit the head to `features` `(n, hidden)` and `targets` `(n,)`, the body held fixed.

        A random choice of `settings.examples` of the `n` is used (all, if there are fewer). Returns
        the loss before the last of the steps, a detached scalar (NaN if there were none).
        """
        settings, device = self.settings, features.device
        self.head.requires_grad_(True)  # also where the end task's is frozen, or all was
        if settings.fresh:
            _reset(self.head)
        parameters = list(self.head.parameters())
        chosen = torch.randperm(len(features), device=device)[: settings.examples]
        features, targets = features[chosen].to(parameters[0].dtype), targets[chosen]
        optimiser = torch.optim.AdamW(
            parameters,
            lr=settings.lr,
            betas=(0.9, 0.98),
            eps=1e-6,
            weight_decay=settings.weight_decay,
            fused=device.type in ("cpu", "cuda"),
        )
        converged = torch.zeros((), dtype=torch.bool, device=device)
        last = torch.full((), float("nan"), device=device)
        # autocast keeps 16-bit copies of weights: all steps but the first would use stale ones
        with without_autocast(device):
            for _ in range(settings.steps):
                optimiser.zero_grad(set_to_none=True)
                loss = objective.losses(body, self.head, features, targets).mean()
                if settings.tolerance is not None:
                    converged = converged | ((loss - last).abs() < settings.tolerance * last)
                    if is_cpu(device) and bool(converged):
                        break
                # a GPU is not waited for: there, steps after convergence are taken and undone
                before = StepState([], parameters if settings.tolerance is not None else [])
                loss.backward(inputs=parameters)  # type: ignore[no-untyped-call]
                optimiser.step()
                before.restore_unless(~converged)
                last = torch.where(converged, last, loss.detach())
        optimiser.zero_grad(set_to_none=True)  # which another optimiser might take
        return last


def _reset(head: nn.Module) -> None:
    """Initialise a head anew: its parts first, whose values its own method may replace."""
    for part in head.children():
        _reset(part)
    reset = getattr(head, "reset_parameters", None)
    if callable(reset):
        reset()
    elif next(head.parameters(recurse=False), None) is not None:
        raise ValueError(
            f"a meta head cannot start anew: its {type(head).__name__} has no reset_parameters()"
        )
