"""Times Hugging Face's Trainer: fine-tuning, and masked language modelling."""

from __future__ import annotations

import copy
from collections.abc import Callable
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

from tartan.kernels.attention import IMPLEMENTATION
from tartan.methods.measuring import now


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


def trainer_times(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: datasets.Dataset,
    arguments: TrainingArguments,
    after_step: Callable[[int], None],
) -> list[float]:
    """Train with the Trainer, and return the time of each step, with fetching its batch [s].

    Args:
        model: a model of `transformers_model`.
        tokenizer: its tokenizer.
        examples: rows of `input_ids` and, for classification, `label`.
        arguments: the Trainer's arguments.
        after_step: called after each step with its number from 0; its time is not included.
    """
    columns = {"input_ids", "attention_mask", "label"}.intersection(examples.column_names)
    collator: Any = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    if "label" in columns:
        collator = DataCollatorWithPadding(tokenizer)
    times: list[float] = []

    class StepTimer(transformers.TrainerCallback):
        began = 0.0

        def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
            self.began = now(arguments.device)

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            times.append(now(arguments.device) - self.began)
            after_step(len(times) - 1)
            self.began = now(arguments.device)

    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=examples.select_columns(sorted(columns)).with_format(None),
        data_collator=collator,
        callbacks=[StepTimer()],
    )
    trainer.train()
    return times
