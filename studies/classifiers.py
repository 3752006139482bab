"""Makes rows of what `src.run` does not train: TF-IDF, SetFit, and Transformers' Trainer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch
from datasets import Dataset
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
    set_seed,
)

from studies.part import RACE, SETFIT, TFIDF, TRAINER, Cell
from studies.row import Row, digest_of
from tartan.data.docstrings import DocstringsTask
from tartan.data.text_task import LabelledTexts, TextTask
from tartan.encoders.pretrained import PackagedEncoder
from tartan.encoders.saved_classifier import load_classifier
from tartan.errors import UserError
from tartan.evaluation.tf_idf import best_tf_idf
from tartan.files import write_text_durably
from tartan.runs.command_line import run_child
from tartan.runs.folder import RESULT, options_of
from tartan.runs.outcome import evaluated
from tartan.runs.predictor import Predictor
from tartan.runs.result import read_result
from tartan.settings import build, quoted

_CONF = Path(__file__).parents[1] / "conf"
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
"""Values of `C` that are tried, with words and with pairs too, with and without class weights."""
LogProbabilities = Callable[[Sequence[str]], Tensor]
"""A function that returns the log-probability of each label for texts, `(texts, labels)`."""


def tfidf_row(cell: Cell, options: Sequence[str], folder: Path, commit: str) -> Row:
    """Train TF-IDF on the labelled examples of the cell's task, and evaluate it."""
    config, task = texts_of(cell, options)

    def score(classifier: Any) -> float:
        return scores_of(config, task, task.dev, classifier.log_probabilities)[task.metric]

    start = time.monotonic()
    train = task.train
    best = best_tf_idf(train.texts, train.labels, score, STRENGTHS, ("balanced", None))
    return Row(
        **entries_of(cell, config, task, best.log_probabilities),
        encoder="none",
        seconds=round(time.monotonic() - start, 1),
        stages=best.settings,
        commit=commit,
    )


def setfit_row(cell: Cell, options: Sequence[str], folder: Path, commit: str) -> Row:
    """Train SetFit (Tunstall et al., 2022) with its library's defaults, and evaluate it.

    One epoch over its pairs of texts, in batches of 16 pairs; nothing is chosen on dev. Arguments
    are those of `tfidf_row`.
    """
    try:
        import setfit
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UserError("setting setfit needs its library: pip install -e '.[setfit]'") from error

    config, task = texts_of(cell, options)
    encoder = _packaged(config, cell)
    torch.manual_seed(cell.seed)
    body = SentenceTransformer(
        str(encoder.location()),
        device="cpu",
        local_files_only=True,
        model_kwargs={"attn_implementation": "eager"},  # half the time on a CPU
    )
    body.max_seq_length = int(config.task.max_length)
    model = setfit.SetFitModel(model_body=body, model_head=LogisticRegression())
    start = time.monotonic()
    with TemporaryDirectory() as scratch:
        arguments = setfit.TrainingArguments(
            output_dir=scratch,
            seed=cell.seed,
            report_to="none",
            eval_strategy="no",
            save_strategy="no",
            show_progress_bar=False,
        )
        examples = {"text": list(task.train.texts), "label": list(task.train.labels)}
        train = Dataset.from_dict(examples)
        trainer = setfit.Trainer(model, arguments, train_dataset=train)
        torch.set_float32_matmul_precision("medium")  # bf16 products, as in `tartan run`
        trainer.train()
        torch.set_float32_matmul_precision("highest")  # other rows of this process keep theirs

    def classify(texts: Sequence[str]) -> Tensor:
        shares = torch.as_tensor(model.predict_proba(list(texts)), dtype=torch.float32)
        return shares.clamp_min(1e-12).log()

    seconds = round(time.monotonic() - start, 1)
    return Row(
        **entries_of(cell, config, task, classify),
        encoder=encoder.name,
        seconds=seconds,
        stages=f"contrastive {trainer.st_trainer.state.global_step}",
        commit=commit,
    )


def trainer_row(cell: Cell, options: Sequence[str], folder: Path, commit: str) -> Row:
    """Fine-tune the encoder by Transformers' Trainer with its defaults, and evaluate the result.

    Arguments are those of `tfidf_row`. Three epochs in batches of 8 at 5e-5; nothing is chosen.
    """
    config, task = texts_of(cell, options)
    encoder = _packaged(config, cell)
    location, length = str(encoder.location()), int(config.task.max_length)
    tokenizer = AutoTokenizer.from_pretrained(location)

    def encoded(**columns: list[Any]) -> Dataset:
        return Dataset.from_dict(columns).map(
            lambda rows: tokenizer(rows["text"], truncation=True, max_length=length), batched=True
        )

    set_seed(cell.seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        location, num_labels=len(task.labels)
    )
    start = time.monotonic()
    with TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            scratch, seed=cell.seed, report_to="none", save_strategy="no", disable_tqdm=True
        )
        train = encoded(text=list(task.train.texts), labels=list(task.train.labels))
        trainer = Trainer(model, arguments, train_dataset=train, processing_class=tokenizer)
        trainer.train()

        def classify(texts: Sequence[str]) -> Tensor:
            logits = trainer.predict(encoded(text=list(texts))).predictions
            return torch.as_tensor(logits).float().log_softmax(1)

        seconds = round(time.monotonic() - start, 1)
        return Row(
            **entries_of(cell, config, task, classify),
            encoder=encoder.name,
            seconds=seconds,
            stages=f"trainer {trainer.state.global_step}",
            commit=commit,
        )


def race_row(cell: Cell, options: Sequence[str], folder: Path, commit: str) -> Row:
    """Race over the cell's labelled texts by `tartan compare`, and evaluate the classifier.

    The other training texts are given without their labels, and `docstrings` has domain text. A
    race that was stopped goes on in its `folder`. Other arguments are those of `tfidf_row`.
    """
    config, task = texts_of(cell, options)
    encoder, length = _packaged(config, cell), int(config.task.max_length)
    labels = [task.labels[code] for code in task.train.labels]
    texts = [*task.train.texts, *(task.unlabelled.texts if task.unlabelled else ())]
    labels += [""] * (len(texts) - len(labels))
    table = pd.DataFrame({"text": texts, "label": labels}).to_csv(index=False)
    write_text_durably(folder / "labels.csv", table)
    asked = [
        f"task.train={quoted(folder / 'labels.csv')}", "task.empty_label=unlabelled",
        f"task.name={task.name}", f"task.metric={task.metric}", f"task.max_length={length}",
        "encoder=minilm", f"folder={folder / 'race'}",  # which compare reads literally
    ]  # fmt: skip
    if isinstance(task.source, DocstringsTask):
        asked.append(f"auxiliary.dapt.path={quoted(task.source.domain_file(None))}")
    if code := run_child([sys.executable, "-m", "tartan", "compare", *asked]):
        raise SystemExit(code)
    best = folder / "race" / "best"
    predictor = Predictor(load_classifier(best / "classifier"), torch.device("cpu"), length)
    runs = [read_result(path.parent) for path in (folder / "race").glob(f"runs/*/*/{RESULT}")]
    runs.append(chosen := read_result(best))
    return Row(
        **entries_of(cell, config, task, lambda texts: predictor.logits(texts).log_softmax(1)),
        encoder=encoder.name,
        seconds=round(sum(run.seconds for run in runs), 1),
        stages=f"{chosen.method}, {len(runs)} runs",
        commit=commit,
    )


def _packaged(config: DictConfig, cell: Cell) -> PackagedEncoder:
    encoder = build(config.encoder, "encoder")
    if not isinstance(encoder, PackagedEncoder):
        raise UserError(f"{cell.setting} reads encoder=minilm only, whose files are packaged")
    return encoder


def texts_of(cell: Cell, options: Sequence[str]) -> tuple[DictConfig, TextTask]:
    """Compose a cell's config and load its task, whose examples have to be single texts."""
    with initialize_config_dir(str(_CONF), version_base="1.3"):
        config = compose("config", overrides=[*cell.overrides, *options])
    task = build(config.task, "task").load()
    if not isinstance(task, TextTask) or task.train.pairs is not None:
        raise UserError(f"{cell.setting} reads single texts, but task {task.name} has none")
    return config, task


def scores_of(
    config: DictConfig, task: TextTask, split: LabelledTexts, classify: LogProbabilities
) -> dict[str, float]:
    """Return the task's metrics on a split by name, computed as in runs."""
    values = evaluated(config, task, split, classify)
    return {name: round(value, 6) for name, value in values.items()}


def entries_of(
    cell: Cell, config: DictConfig, task: TextTask, classify: LogProbabilities
) -> dict[str, Any]:
    """Evaluate a classifier on dev and test; return the entries of its `Row` that result."""
    test = scores_of(config, task, task.test, classify)
    read = {n: value for n, value in options_of(config).items() if n.startswith("task.")}
    return {
        "budget": cell.budget,
        "setting": cell.setting,
        "seed": cell.seed,
        "method": cell.method,
        "task": task.name,
        "labelled": len(task.train),
        "metric": task.metric,
        "dev": scores_of(config, task, task.dev, classify)[task.metric],
        "test": test[task.metric],
        "unseen": test.get(f"{task.metric}_unseen"),
        "config": digest_of({**read, "seed": cell.seed}, cell.draws_data),
    }


ROWS = {TFIDF: tfidf_row, SETFIT: setfit_row, TRAINER: trainer_row, RACE: race_row}
"""What makes the row of each setting beside the runs."""
