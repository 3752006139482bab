"""Trains SetFit (Tunstall et al., 2022): contrastive pairs, then logistic regression."""

from __future__ import annotations

import time
from collections.abc import Sequence
from tempfile import TemporaryDirectory

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from studies.baseline import entries_of, texts_of
from studies.part import SETFIT, Cell
from studies.row import Row
from tartan.encoders.pretrained import PackagedEncoder
from tartan.errors import UserError
from tartan.settings import build


def setfit_row(cell: Cell, options: Sequence[str], commit: str) -> Row:
    """Train SetFit for the cell's steps with its library's settings, and evaluate it.

    Nothing is chosen on dev. A step reads `cell.batch_size` texts, as one of fine-tuning does:
    half as many pairs.

    Args:
        options: options of the command line, in addition to the cell's.
        commit: the commit that trains it.

    Raises:
        UserError: the library is not installed, the task is not one of single texts, or the
            encoder is not the packaged one.
    """
    try:
        from datasets import Dataset
        from sentence_transformers import SentenceTransformer
        from setfit import SetFitModel, Trainer, TrainingArguments
    except ImportError as error:
        raise UserError("setting setfit needs its library: pip install -e '.[setfit]'") from error

    config, end_task = texts_of(cell, options)
    encoder = build(config.encoder, "encoder")
    if not isinstance(encoder, PackagedEncoder):
        raise UserError("setting setfit reads encoder=minilm only, whose files are packaged")
    torch.manual_seed(cell.seed)
    body = SentenceTransformer(str(encoder.location()), device="cpu", local_files_only=True)
    body.max_seq_length = int(config.task.max_length)
    model = SetFitModel(model_body=body, model_head=LogisticRegression())
    start = time.monotonic()
    with TemporaryDirectory() as folder, FlopCounterMode(display=False) as flops:
        arguments = TrainingArguments(
            output_dir=folder,
            batch_size=max(1, cell.batch_size // 2),
            max_steps=cell.steps,
            seed=cell.seed,
            report_to="none",
            eval_strategy="no",
            save_strategy="no",
            show_progress_bar=False,
        )
        examples = {"text": list(end_task.train.texts), "label": list(end_task.train.labels)}
        trainer = Trainer(model, arguments, train_dataset=Dataset.from_dict(examples))
        trainer.train()

    def classify(texts: Sequence[str]) -> Tensor:
        shares = torch.as_tensor(model.predict_proba(list(texts)), dtype=torch.float32)
        return shares.clamp_min(1e-12).log()

    seconds = round(time.monotonic() - start, 1)
    return Row(
        **entries_of(cell, config, end_task, classify),
        encoder=encoder.name,
        method=SETFIT,
        tflop=round(flops.get_total_flops() / 1e12, 3),
        seconds=seconds,
        stages=f"contrastive {cell.steps}",
        commit=commit,
    )
