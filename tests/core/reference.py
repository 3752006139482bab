"""Algorithm 1 of the paper, slowly: float64, materialised gradients, one vector a task.

Written from the paper and independent of `tartan.core`: it shares only the objectives' losses.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

BODY_LR, HEAD_LR, DECAY, CLIP = 1e-3, 1e-2, 0.1, 1.0


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


class Update:
    """Clipping and AdamW of a body and its heads, the end task's first, with rates of their own."""

    def __init__(self, body, heads):
        self.modules = [list(module.parameters()) for module in (body, *heads)]
        self.adams = [Adam(sum(p.numel() for p in own), 0.9, 0.98, 1e-6) for own in self.modules]

    def __call__(self, gradients, scale):
        """Take a step; a module without a gradient is left out."""
        norm = torch.cat([g for g in gradients if g is not None]).norm()
        factor = min(1.0, CLIP / (float(norm) + 1e-6))
        three = zip(self.modules, gradients, self.adams, strict=True)
        for index, (parameters, gradient, adam) in enumerate(three):
            if gradient is None:
                continue
            decay = torch.cat(
                [torch.full((p.numel(),), DECAY if p.ndim >= 2 else 0.0) for p in parameters]
            )
            lr = (HEAD_LR if index == 1 else BODY_LR) * scale
            unflatten_(parameters, adam.step(flatten(parameters), gradient * factor, lr, decay))


class Reference:
    """META-TARTAN or MT-TARTAN on whole batches.

    `tasks` are `(name, head, loss)`, the end task first; `loss(body, head, batch)` is a mean.
    `meta` is None for equal weights, else a dict with `eta`, `order`, `fit(body, batch, step)`
    (which returns a fitted meta head) and `loss`. The head is fitted on the batch named `apart`
    where there is one.
    """

    def __init__(self, body, tasks, meta):
        self.body, self.tasks, self.meta = body, tasks, meta
        self.theta = list(body.parameters())
        self.w = [1 / len(tasks)] * len(tasks)
        self.heads = [head for _, head, _ in tasks]
        self.update = Update(body, self.heads)

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

        self.update([mixed, *head_gradients], scale)
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
