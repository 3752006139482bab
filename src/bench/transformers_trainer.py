"""Hugging Face's Trainer on the same examples: fine-tuning, and masked language modelling."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
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

from src.bench.as_in_transformers import as_in_transformers
from src.core.clock import now


def classifier_with(body: PreTrainedModel, labels: int) -> PreTrainedModel:
    """Transformers' own sequence classifier around a copy of `body`."""
    config = copy.deepcopy(body.config)
    config.num_labels = labels
    model = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
    return _around(model, body)


def masked_lm_with(body: PreTrainedModel) -> PreTrainedModel:
    """Transformers' own masked language model around a copy of `body`."""
    config = copy.deepcopy(body.config)
    return _around(AutoModelForMaskedLM.from_config(config, trust_remote_code=False), body)


def _around(model: PreTrainedModel, body: PreTrainedModel) -> PreTrainedModel:
    model.base_model.load_state_dict(body.state_dict(), strict=False)  # a pooler is its own
    as_in_transformers(model)
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
    """Seconds of each step of a training with the Trainer's defaults, fetching batches included.

    Args:
        examples: rows of `input_ids` and, for classification, `label`.
        after_step: called after each step with its number from 0; its time does not count.
    """
    import torch

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

    class Watch(transformers.TrainerCallback):
        began = 0.0

        def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
            self.began = now(device)

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            times.append(now(device) - self.began)
            after_step(len(times) - 1)
            self.began = now(device)

    keep = [c for c in examples.column_names if c in ("input_ids", "attention_mask", "label")]
    rows = examples.select_columns([c for c in keep if c != "label" or not masked_lm])
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows.with_format(None),
        data_collator=collator,
        callbacks=[Watch()],
    )
    trainer.train()
    return times
