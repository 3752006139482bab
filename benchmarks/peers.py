"""Compares this program's steps with other programs', on the same examples and precision."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
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
from benchmarks.published_step import PublishedStep
from tartan.core.task import StepBatch
from tartan.encoders.text_encoder import require_text_encoder
from tartan.kernels.attention import IMPLEMENTATION
from tartan.methods.cost import now


def compare_with_published(case: Case, rounds: int, folder: Path, device: torch.device) -> Row:
    """Compare META-TARTAN with a step like that of the authors' code."""
    built = build_case(case, rounds + 1, folder, device)
    peer = PublishedStep(built, int(built.config.micro_batch_size))
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
    """Return Transformers' own model around a copy of `body`.

    Args:
        body: the body.
        labels: number of labels of a sequence classifier; None for a masked language model.
    """
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
