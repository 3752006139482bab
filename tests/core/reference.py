"""Algorithm 1 of the paper, slowly: float64, materialised gradients, one vector a task.

Written from the paper and independent of `tartan.core`: it shares only the objectives' losses.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

Loss = Callable[[nn.Module, nn.Module, object], Tensor]


def flat_gradient(loss: Tensor, parameters: list[Tensor]) -> Tensor:
    """One long vector; zeros where the loss does not reach a parameter."""
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    pieces = []
    for gradient, parameter in zip(gradients, parameters, strict=True):
        value = torch.zeros_like(parameter) if gradient is None else gradient
        pieces.append(value.reshape(-1))
    return torch.cat(pieces)


class Adam:
    """AdamW (Loshchilov and Hutter, 2019), written out for a flat vector."""

    def __init__(self, size: int, beta1: float, beta2: float, eps: float) -> None:
        self.m, self.v, self.t = torch.zeros(size), torch.zeros(size), 0
        self.beta1, self.beta2, self.eps = beta1, beta2, eps

    def step(self, theta: Tensor, gradient: Tensor, lr: float, decay: Tensor) -> Tensor:
        self.t += 1
        theta = theta - lr * decay * theta
        self.m = self.beta1 * self.m + (1 - self.beta1) * gradient
        self.v = self.beta2 * self.v + (1 - self.beta2) * gradient**2
        m_hat = self.m / (1 - self.beta1**self.t)
        v_hat = self.v / (1 - self.beta2**self.t)
        return theta - lr * m_hat / (v_hat.sqrt() + self.eps)


def flatten(parameters: list[Tensor]) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in parameters])


def unflatten_(parameters: list[Tensor], vector: Tensor) -> None:
    offset = 0
    with torch.no_grad():
        for parameter in parameters:
            piece = vector[offset : offset + parameter.numel()]
            parameter.copy_(piece.reshape(parameter.shape))
            offset += parameter.numel()


class Reference:
    """META-TARTAN or MT-TARTAN on whole batches.

    `tasks` are `(name, head, loss)`, the end task first; `loss(body, head, batch)` is a mean.
    `meta` is None for equal weights, else a dict with `eta`, `order`, `fit(body, batch, step)`
    (which returns a fitted meta head) and `loss`. The head is fitted on the batch named `apart`
    where there is one.
    """

    def __init__(self, body, tasks, meta, body_lr, head_lr, decay, beta1, beta2, eps, clip):
        self.body, self.tasks, self.meta = body, tasks, meta
        self.body_lr, self.head_lr, self.decay, self.clip = body_lr, head_lr, decay, clip
        self.theta = list(body.parameters())
        self.w = [1 / len(tasks)] * len(tasks)
        self.adams = [
            Adam(sum(p.numel() for p in parameters), beta1, beta2, eps)
            for parameters in [self.theta, *(list(head.parameters()) for _, head, _ in tasks)]
        ]

    def step(self, batches, meta_batch, step, scale):
        """One step; `scale` multiplies the learning rates (the schedule)."""
        body_gradients, head_gradients, losses = [], [], []
        for name, head, loss_of in self.tasks:
            loss = loss_of(self.body, head, batches[name])
            losses.append(float(loss))
            both = [*self.theta, *head.parameters()]
            gradient = flat_gradient(loss, both)
            size = sum(p.numel() for p in self.theta)
            body_gradients.append(gradient[:size])
            head_gradients.append(gradient[size:])

        cosines = None
        old = list(self.w)
        if self.meta is not None:
            own = batches[self.tasks[0][0]]
            meta_head = self.meta["fit"](self.body, batches.get("apart", own), step)
            meta_gradient = flat_gradient(
                self.meta["loss"](self.body, meta_head, meta_batch), self.theta
            )
            cosines = [float(meta_gradient @ g / meta_gradient.norm() / g.norm())
                       for g in body_gradients]  # fmt: skip
            self.w = [w + self.meta["eta"] * c for w, c in zip(self.w, cosines, strict=True)]
        used = self.w if self.meta is None or self.meta["order"] == "update_then_step" else old
        total = sum(math.exp(w) for w in used)
        alpha = [math.exp(w) / total for w in used]
        mixed = sum(a * g for a, g in zip(alpha, body_gradients, strict=True))

        gradients = [mixed, *head_gradients]
        norm = torch.cat(gradients).norm()
        factor = min(1.0, self.clip / (float(norm) + 1e-6))
        modules = [self.theta, *(list(head.parameters()) for _, head, _ in self.tasks)]
        for index, (parameters, gradient, adam) in enumerate(
            zip(modules, gradients, self.adams, strict=True)
        ):
            decay = torch.cat(
                [torch.full((p.numel(),), self.decay if p.ndim >= 2 else 0.0) for p in parameters]
            )
            lr = (self.head_lr if index == 1 else self.body_lr) * scale
            new = adam.step(flatten(parameters), gradient * factor, lr, decay)
            unflatten_(parameters, new)
        return {"losses": losses, "alpha": alpha, "cosines": cosines}


def fit_by_hand(head, loss_of_features, features, targets, steps, lr, decay):
    """Ten (or so) steps of AdamW on cached features, from the head as it is."""
    head = copy.deepcopy(head)
    parameters = list(head.parameters())
    adam = Adam(sum(p.numel() for p in parameters), 0.9, 0.98, 1e-6)
    for _ in range(steps):
        gradient = flat_gradient(loss_of_features(head, features, targets), parameters)
        everywhere = torch.full_like(gradient, decay)
        unflatten_(parameters, adam.step(flatten(parameters), gradient, lr, everywhere))
    return head
