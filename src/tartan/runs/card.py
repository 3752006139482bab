"""Writes model cards: what was trained, from what, how good it is, and for what."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from tartan.encoders.base import Encoder
from tartan.encoders.export import HEAD
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.evaluation.statistics import RESAMPLES, bootstrap_interval, scores_by_class
from tartan.files import (
    code_block,
    escape_markdown,
    map_texts,
    parse_yaml,
    read_bytes,
    shell_command,
    without_home,
)
from tartan.runs.command_line import program
from tartan.runs.name import arguments_of, places_of
from tartan.runs.result import Result
from tartan.runs.summary import one_label_remark

UNKNOWN = "not stated by its source; check before publishing"
_HERE = Path(__file__).parent
_FIGURE = "task_weights.png"
_FEW = 20
"""Number of a class' test examples below which its scores are called uncertain."""


def write_card(result: Result, config: DictConfig, encoder: Encoder, folder: Path) -> None:
    """Write `README.md`, and the figure of the task weights, into the classifier's folder.

    Args:
        result: the run's result.
        config: the run's config.
        encoder: the trained encoder.
        folder: the run folder.
    """
    target = folder / "classifier"
    figure = folder / _FIGURE
    if figure.is_file():
        shutil.copyfile(figure, target / _FIGURE)
    text = isinstance(encoder, TextEncoder)
    options = ["seed", "max_steps", "task", "encoder", "classifier"]
    options += ["weighting"] if result.final_task_weights else []
    confusion = result.test.whole.confusion if result.is_tested else None
    scores = scores_by_class(confusion) if confusion else []
    card = ModelCard.from_template(
        _metadata(result, config, text),
        template_path=str(_HERE / "card.md"),
        **_shared(result, config, encoder, options),
        text=text,
        pairs=bool(result.data.get("columns", {}).get("text_pair")),
        joint=result.is_joint,
        in_parts=(target / HEAD).is_file(),
        results=_results(result),
        overlaps=_overlaps(result),
        one_label=one_label_remark(result),
        baselines=_baselines(result),
        resamples=RESAMPLES,
        classes=[{"label": n, **vars(one)} for n, one in zip(result.labels, scores, strict=False)],
        few=_FEW,
        figure=_FIGURE if figure.is_file() else None,
        fingerprints=result.fingerprints,
    )
    card.save(target / "README.md")


def write_encoder_card(
    result: Result, config: DictConfig, encoder: TextEncoder, folder: Path
) -> None:
    """Write `README.md` beside the weights of an encoder that was adapted to text, in `folder`."""
    card = ModelCard.from_template(
        ModelCardData(
            model_name=f"{without_home(result.encoder)} adapted",
            library_name="transformers",
            pipeline_tag="fill-mask",
            base_model=_base_model(config),
            tags=["fill-mask", "tartan", "continued-pretraining"],
        ),
        template_path=str(_HERE / "encoder_card.md"),
        **_shared(result, config, encoder, ["seed", "max_steps", "task", "encoder"]),
        scores=result.dev.whole,
    )
    card.save(folder / "README.md")


def _shared(
    result: Result, config: DictConfig, encoder: Encoder, options: Sequence[str]
) -> dict[str, Any]:
    """Return what both templates show; `options` and those of the stages are shown as YAML."""
    whole: Any = OmegaConf.to_container(config, resolve=True)
    settings = {name: whole[name] for name in options}
    stages = whole["method"]["stages"]
    settings["stages"] = {stage.name: stages[stage.name] for stage in result.stages}
    settings = map_texts(settings, without_home)
    command = None
    if HydraConfig.initialized():
        hydra = HydraConfig.get()
        command = shell_command([*program(), *arguments_of(hydra.overrides.task, places_of(hydra))])
    return {
        "md": lambda text: escape_markdown(without_home(text)),
        "block": code_block,
        "result": result.as_json(),
        "max_length": config.task.get("max_length"),
        "settings": str(OmegaConf.to_yaml(OmegaConf.create(settings))).rstrip(),
        "command": command,
        "encoder_licence": encoder_licence(encoder),
        "unknown": UNKNOWN,
    }


def _metadata(result: Result, config: DictConfig, text: bool) -> ModelCardData:
    kind = "text-classification" if text else "image-classification"
    scores = [
        EvalResult(
            task_type=kind,
            dataset_type=re.sub(r"[^a-z0-9_.-]+", "-", result.task.lower()),
            dataset_name=result.task,
            dataset_split=split,
            metric_type="f1" if name.endswith("f1") else name,
            metric_name=f"{split} {name}",
            metric_value=round(value, 4),
        )
        for split, evaluated in result.evaluated.items()
        for name, value in (evaluated.whole.metrics or {}).items()
        if name != "loss"
    ]
    return ModelCardData(
        model_name=f"{result.task} {result.method}",
        library_name="transformers" if text else None,
        pipeline_tag=kind,
        base_model=_base_model(config),
        tags=[kind, "tartan", *(["end-task-aware-training"] if result.is_joint else [])],
        metrics=sorted({one.metric_type for one in scores}),
        eval_results=scores,
    )


def _base_model(config: DictConfig) -> str | None:
    """Return the encoder's name on the Hub; None if it has none."""
    base = str(config.encoder.get("name", ""))
    return base if re.fullmatch(r"[\w.-]+/[\w.-]+", base) and not Path(base).exists() else None


def _results(result: Result) -> list[dict[str, Any]]:
    """Return a row for each split and metric; the metric that chose the checkpoint comes first."""
    rows = []
    for split, evaluated in result.evaluated.items():
        parts = {split: evaluated.whole, f"{split}, not in train": evaluated.unseen}
        if evaluated.unseen.examples == evaluated.whole.examples:
            del parts[f"{split}, not in train"]  # the same once more
        for label, scores in parts.items():
            metrics = {n: value for n, value in (scores.metrics or {}).items() if n != "loss"}
            for name in sorted(metrics, key=lambda name: name != result.metric):
                row: dict[str, Any] = {"split": label, "examples": scores.examples}
                row |= {"metric": name, "value": metrics[name], "interval": None}
                # dev's value is the best of many, which no resampling makes up for
                if split == "test" and scores.confusion is not None:
                    row["interval"] = bootstrap_interval(name, metrics[name], scores.confusion)
                rows.append(row)
    return rows


def _baselines(result: Result) -> list[str]:
    """Return a sentence with the scores of each baseline on the same data."""
    names = {
        "tf_idf": "TF-IDF with logistic regression",
        "fine_tuning": "Fine-tuning alone, at the cost of this run,",
    }
    sentences = []
    for one in result.baselines:
        values = {"dev": one.dev.get(result.metric), "test": (one.test or {}).get(result.metric)}
        scores = [f"{value:.4f} on {split}" for split, value in values.items() if value is not None]
        if one.name in names and scores:
            metric = escape_markdown(result.metric)
            sentences.append(f"{names[one.name]} reaches {', '.join(scores)} ({metric}).")
    return sentences


def _overlaps(result: Result) -> list[str]:
    """Return a sentence for each split on how many of its examples are in train too."""
    sentences = []
    for split, scores in result.evaluated.items():
        count = scores.whole.examples
        known = count - scores.unseen.examples
        content = "content that the training split has too"
        if known == 0:
            sentences.append(f"No example of {split} has {content}.")
        elif known == count:
            values = "its values say nothing of examples that were not trained on"
            sentences.append(f"Every example of {split} has {content}: {values}.")
        else:
            sentences.append(
                f"Of the {count} examples of {split}, {known} have {content}; "
                f'"{split}, not in train" leaves these out.'
            )
    return sentences


def encoder_licence(encoder: Encoder) -> str:
    """Return the licence that the README beside the encoder's weights names, or `UNKNOWN`."""
    if not isinstance(encoder, TextEncoder):
        return UNKNOWN
    config = encoder.body.config
    named = [getattr(config, "license", None)]
    try:
        folder = Path(str(config._name_or_path or ""))  # empty: made here, from no folder
        content = read_bytes(folder / "README.md").decode("utf-8", errors="replace")
        metadata = re.match(r"\s*---\r?\n(.*?)\r?\n---\s", content, re.DOTALL)
        data = parse_yaml(metadata[1]) if metadata and folder.parts else None
    except (UserError, ValueError, RecursionError, yaml.YAMLError):  # none of the Hub's form
        data = None
    named += (
        [data.get(key) for key in ("license_name", "license")] if isinstance(data, dict) else []
    )
    return next((name for name in named if name and isinstance(name, str)), UNKNOWN)
