"""Times Hugging Face's Trainer: fine-tuning, and masked language modelling."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
)

from src.bench.torch_kernels import use_torch_kernels
from src.core.clock import now


def classifier_around(body: PreTrainedModel, labels: int) -> PreTrainedModel:
    """Return Transformers' sequence classifier around a copy of `body`."""
    config = copy.deepcopy(body.config)
    config.num_labels = labels
    model = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
    return _around(model, body)


def masked_lm_around(body: PreTrainedModel) -> PreTrainedModel:
    """Return Transformers' masked language model around a copy of `body`."""
    config = copy.deepcopy(body.config)
    return _around(AutoModelForMaskedLM.from_config(config, trust_remote_code=False), body)


def _around(model: PreTrainedModel, body: PreTrainedModel) -> PreTrainedModel:
    model.base_model.load_state_dict(body.state_dict(), strict=False)  # the body may lack a pooler
    use_torch_kernels(model)
    return model.train()


def trainer_times(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: datasets.Dataset,
    *,
    masked_lm: bool,
    batch_size: int,
    steps: int,
    lr: float,
    bf16: bool,
    folder: Path,
    after_step: Callable[[int], None],
) -> list[float]:
    """Train with the Trainer's defaults, and return the time of each step [s].

    The times include fetching batches.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        examples: rows of `input_ids` and, for classification, `label`.
        masked_lm: whether to train masked language modelling instead of classification.
        batch_size: number of examples in a batch.
        steps: number of steps.
        lr: learning rate.
        bf16: whether to train in bf16.
        folder: the Trainer's output folder.
        after_step: called after each step with its number from 0; its time is not included.
    """
    collator: Any = DataCollatorWithPadding(tokenizer)
    if masked_lm:
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    on_cpu = not torch.cuda.is_available()
    device = torch.device("cpu" if on_cpu else "cuda")
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=batch_size,
        max_steps=steps,
        learning_rate=lr,
        bf16=bf16,
        use_cpu=on_cpu,
        save_strategy="no",
        report_to=[],
        logging_strategy="no",
        disable_tqdm=True,
        seed=0,
    )
    times: list[float] = []

    class StepTimer(transformers.TrainerCallback):
        began = 0.0

        def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
            self.began = now(device)

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            times.append(now(device) - self.began)
            after_step(len(times) - 1)
            self.began = now(device)

    columns = {"input_ids", "attention_mask"}
    if not masked_lm:
        columns.add("label")
    rows = examples.select_columns([c for c in examples.column_names if c in columns])
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows.with_format(None),
        data_collator=collator,
        callbacks=[StepTimer()],
    )
    trainer.train()
    return times
