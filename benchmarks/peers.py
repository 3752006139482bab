"""Compares this program's steps with other programs', on the same examples and precision."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from benchmarks.case import BuiltCase, Case, build_case
from benchmarks.measure import Row, ratio, time_interleaved
from tartan.core.task import Batch, StepBatch
from tartan.encoders.text_encoder import require_text_encoder
from tartan.kernels.attention import IMPLEMENTATION
from tartan.kernels.dropout import replace_dropout
from tartan.methods.cost import now
from tartan.objectives.layout import pad, spans

IGNORED = -100
"""Label of positions that are not predicted."""


class PublishedStep:
    """A META-TARTAN step like that of the authors' code, on copies of a case's body and heads.

    Examples are padded to the longest of a random micro-batch, without an attention mask. The
    masked-LM head computes logits at every position. Each step of fitting the meta head takes a
    forward pass of the body. All tasks' gradients are kept, and inner products are copied to the
    host tensor by tensor.
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


def compare_with_published(case: Case, rounds: int, folder: Path, device: torch.device) -> Row:
    """Compare META-TARTAN with a step like that of the authors' code."""
    built = build_case(case, rounds + 1, folder, device)
    peer = PublishedStep(built, built.data.micro_batch_size(str(built.config.trainer.accelerator)))
    # it makes its micro-batches on the CPU
    batches = built.batches(torch.device("cpu"))
    return _compare("published code's step", case, built, peer.step, batches, rounds)


def compare_with_torchjd(case: Case, rounds: int, folder: Path, device: torch.device) -> Row:
    """Compare a Gramian-based weighting with TorchJD's `mtl_backward`, on unsplit batches."""
    whole = [f"micro_batch_size={case.batch_size}", "weighting=upgrad"]
    built = build_case(case, rounds + 1, folder, device, *whole)
    step = torchjd_step(built)
    return _compare("TorchJD, UPGrad", case, built, step, built.batches(), rounds)


def _compare(
    name: str,
    case: Case,
    built: BuiltCase,
    peer: Callable[[StepBatch], None],
    batches: Sequence[StepBatch],
    rounds: int,
) -> Row:
    """Return the time of the peer's step, divided by that of the case's own, on equal batches."""
    own, left, others = built.stepper(), iter(built.batches()), iter(batches)
    parts = {"own": lambda: own(next(left)), "peer": lambda: peer(next(others))}
    times = time_interleaved(parts, rounds, built.device)
    return Row("peers", f"{name} / a step", str(case), ratio(times["peer"], times["own"]))


def torchjd_step(built: BuiltCase) -> Callable[[StepBatch], None]:
    """Return TorchJD's step on copies of the case's body and heads, for unsplit batches.

    The decoder of a masked-LM head is tied to the body. `mtl_backward` does not accept a parameter
    as both shared and a task's, so the decoder's part of the embeddings' gradient is omitted.
    """
    module = built.module
    autojac = importlib.import_module("torchjd.autojac")
    aggregator = importlib.import_module("torchjd.aggregation").UPGrad()
    body, heads = copy.deepcopy((module.body, list(module.heads.values())))
    optimiser = module.optimisation.optimiser(body, heads[0], heads[1:])
    trained = [p for group in optimiser.param_groups for p in group["params"]]

    def step(batch: StepBatch) -> None:
        losses, features = [], []
        with built.autocast():
            for task, head in zip(module.tasks, heads, strict=True):
                own = batch.tasks[task.name]
                (part,) = own.micro_batches
                states = task.objective.features(body, part.inputs)
                targets = task.objective.targets(part.inputs)
                losses.append(task.objective.losses(body, head, states, targets).sum() / own.units)
                features.append(states)
        autojac.mtl_backward(
            losses,
            features,
            tasks_params=[list(head.parameters()) for head in heads],
            shared_params=list(body.parameters()),
            parallel_chunk_size=1,
        )
        autojac.jac_to_grad(list(body.parameters()), aggregator)
        if module.optimisation.clip_norm is not None:
            nn.utils.clip_grad_norm_(trained, module.optimisation.clip_norm)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def transformers_model(body: PreTrainedModel, labels: int | None) -> PreTrainedModel:
    """Return Transformers' own model around a copy of `body`."""
    config = copy.deepcopy(body.config)
    if config._attn_implementation == IMPLEMENTATION:
        config._attn_implementation = "sdpa"
    kind: Any = AutoModelForMaskedLM
    if labels is not None:
        config.num_labels = labels
        kind = AutoModelForSequenceClassification
    model: PreTrainedModel = kind.from_config(config, trust_remote_code=False)
    model.base_model.load_state_dict(body.state_dict(), strict=False)  # the body may lack a pooler
    return model.train()


class StepTimer(TrainerCallback):
    """Times steps of Hugging Face's Trainer, and takes this program's step after each of them."""

    def __init__(self, built: BuiltCase) -> None:
        self._built, self._step = built, built.stepper()
        self.peer: list[float] = []
        self.own: list[float] = []

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._began = now(self._built.device)

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        """Record both times, each with fetching its batch."""
        ended = now(self._built.device)
        self._step(self._built.batch(len(self.own)))
        self.peer.append(ended - self._began)
        self._began = now(self._built.device)
        self.own.append(self._began - ended)


def compare_with_trainer(case: Case, rounds: int, folder: Path, device: torch.device) -> Row:
    """Compare fine-tuning or TAPT with Hugging Face's Trainer on the same texts.

    Both times include fetching batches, for which each program draws its own examples.
    """
    built = build_case(case, rounds + 2, folder, device)
    prepared, module, timer = built.prepared, built.module, StepTimer(built)
    tokenizer = require_text_encoder(prepared.encoder, "the bench").tokenizer
    body: Any = module.body
    if case.method == "tapt":
        ((_, examples),) = prepared.auxiliaries.values()
        rows, labels, columns = examples.rows, None, ["input_ids"]
        collator: Any = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    else:
        rows, labels = prepared.splits.train, len(prepared.end_task.labels)
        columns, collator = ["input_ids", "label"], DataCollatorWithPadding(tokenizer)
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=case.batch_size,
        max_steps=rounds + 2,
        learning_rate=module.optimisation.body_lr,
        bf16=built.precision.startswith("bf16"),
        use_cpu=device.type == "cpu",
        save_strategy="no",
        report_to=[],
        logging_strategy="no",
        disable_tqdm=True,
        seed=0,
    )
    Trainer(
        model=transformers_model(body, labels),
        args=arguments,
        train_dataset=rows.select_columns(columns).with_format(None),
        data_collator=collator,
        callbacks=[timer],
    ).train()
    # the first two steps allocate memory
    times = ratio(timer.peer[2:], timer.own[2:])
    return Row("peers", "Hugging Face Trainer / a step", str(case), times)
