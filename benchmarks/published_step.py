"""A META-TARTAN step like that of the authors' code, reimplemented from its description.

Examples are padded to the longest of a random micro-batch, without an attention mask. The masked-LM
head computes logits at every position. Each step of fitting the meta head takes a forward pass of
the body. All tasks' gradients are kept, and inner products are copied to the host tensor by tensor.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.case import BuiltCase
from tartan.core.task import Batch, StepBatch
from tartan.encoders.text_encoder import require_text_encoder
from tartan.kernels.attention import IMPLEMENTATION
from tartan.kernels.dropout import replace_dropout
from tartan.objectives.layout import pad, spans

IGNORED = -100
"""Label of positions that are not predicted."""


class PublishedStep:
    """Takes optimiser steps on the examples of a case's batches, on copies of its body and heads.

    Args:
        case: the case.
        micro_batch_size: number of examples that go through the body at once.
    """

    def __init__(self, case: BuiltCase, micro_batch_size: int) -> None:
        module = case.module
        assert module.meta_head is not None
        self._case, self._device = case, case.device
        self._settings = module.meta_head.settings
        self._names = [task.name for task in module.tasks]
        copies = copy.deepcopy((module.body, list(module.heads.values()), module.meta_head.head))
        self._body, self._heads, self._meta_head = copies
        for copied in (self._body, *self._heads, self._meta_head):
            replace_dropout(copied, nn.Dropout)
        body: Any = self._body
        if body.config._attn_implementation == IMPLEMENTATION:
            body.set_attn_implementation("sdpa")
        self._eta, self._weights = 0.1, [1 / len(self._names)] * len(self._names)
        self._trained = [p for m in (self._body, *self._heads) for p in m.parameters()]
        self._clip = module.optimisation.clip_norm
        self._optimiser = torch.optim.AdamW(self._trained, lr=module.optimisation.body_lr)
        encoder = require_text_encoder(case.prepared.encoder, "the bench")
        self._pad_id, self._size = encoder.tokenizer.pad_token_id, micro_batch_size
        self._rng = np.random.default_rng(0)

    def step(self, batch: StepBatch) -> None:
        """Take one optimiser step on a batch that is on the CPU."""
        assert batch.meta_batch is not None
        with self._case.autocast():
            gradients = [
                self._gradient(head, self._micro_batches(batch.tasks[name]))
                for name, head in zip(self._names, self._heads, strict=True)
            ]
            self._fit_meta_head(self._micro_batches(batch.tasks[self._names[0]]))
            meta = self._gradient(self._meta_head, self._micro_batches(batch.meta_batch))
        for index, gradient in enumerate(gradients):
            self._weights[index] += self._eta * _cosine(meta, gradient)
        total = sum(math.exp(weight) for weight in self._weights)
        for parameter in self._body.parameters():
            parameter.grad = torch.zeros_like(parameter)
        for weight, gradient in zip(self._weights, gradients, strict=True):
            for parameter, part in zip(self._body.parameters(), gradient, strict=True):
                if part is not None and parameter.grad is not None:
                    parameter.grad += math.exp(weight) / total * part
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self._trained, self._clip)
        self._optimiser.step()
        self._optimiser.zero_grad()

    def _micro_batches(self, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Return random micro-batches of the batch's examples, as `(token ids, labels)`."""
        examples = []
        for part in batch.micro_batches:
            starts, lengths = spans(part.inputs)
            ids = part.inputs["input_ids"].flatten()
            labels = torch.full_like(ids, IGNORED)
            if "positions" in part.inputs:
                labels[part.inputs["positions"]] = part.inputs["targets"]
            else:
                labels[starts] = part.inputs["labels"]
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
                own = slice(start, start + length)
                examples.append((ids[own].numpy(), labels[own].numpy()))
        order = self._rng.permutation(len(examples))
        parts = []
        for start in range(0, len(order), self._size):
            chosen = [examples[index] for index in order[start : start + self._size]]
            ids = pad([ids for ids, _ in chosen], self._pad_id)["input_ids"]
            labels = pad([labels for _, labels in chosen], IGNORED)["input_ids"]
            parts.append((ids.to(self._device), labels.to(self._device)))
        return parts

    def _gradient(self, head: nn.Module, parts: list[tuple[Tensor, Tensor]]) -> list[Tensor | None]:
        for parameter in self._body.parameters():
            parameter.grad = None
        for ids, labels in parts:
            loss = self._loss(head, self._body(input_ids=ids).last_hidden_state, labels)
            _backward(loss / len(parts))
            loss.item()
        return [None if p.grad is None else p.grad.clone() for p in self._body.parameters()]

    def _loss(self, head: nn.Module, hidden: Tensor, labels: Tensor) -> Tensor:
        if any(head is own for own in (self._heads[0], self._meta_head)):
            return F.cross_entropy(head(hidden[:, 0]), labels[:, 0])
        body: Any = self._body
        logits = head(hidden, body.get_input_embeddings().weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)

    def _fit_meta_head(self, parts: list[tuple[Tensor, Tensor]]) -> None:
        optimiser = torch.optim.AdamW(self._meta_head.parameters(), lr=self._settings.lr)
        chosen = parts[: math.ceil(self._settings.examples / self._size)]
        for _ in range(self._settings.steps):
            optimiser.zero_grad()
            for ids, labels in chosen:
                with torch.no_grad():
                    hidden = self._body(input_ids=ids).last_hidden_state
                _backward(self._loss(self._meta_head, hidden, labels))
            optimiser.step()


def _backward(loss: Tensor) -> None:
    with torch.autocast(loss.device.type, enabled=False):
        loss.backward()  # type: ignore[no-untyped-call]


def _cosine(left: list[Tensor | None], right: list[Tensor | None]) -> float:
    product = squared_left = squared_right = 0.0
    for a, b in zip(left, right, strict=True):
        if a is not None and b is not None:
            product += float((a * b).sum())
            squared_left += float((a * a).sum())
            squared_right += float((b * b).sum())
    return product / max(math.sqrt(squared_left * squared_right), 1e-12)
