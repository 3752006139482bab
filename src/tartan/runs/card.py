"""Writes model cards: what was trained, from what, how good it is, and for what."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard, ModelCardData
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from tartan.encoders.export import HEAD
from tartan.evaluation.statistics import scores_by_class
from tartan.files import code_block, escape_markdown
from tartan.runs.folder import command_of, places_of
from tartan.runs.result import Result

_FIGURE = "task_weights.png"
_FEW = 20
"""Number of a class' test examples below which its scores are called uncertain."""


def write_card(result: Result, config: DictConfig, folder: Path) -> None:
    """Write `README.md`, and the figure of the task weights, into the classifier's folder."""
    target, figure = folder / "classifier", folder / _FIGURE
    if figure.is_file():
        shutil.copyfile(figure, target / _FIGURE)
    text = result.is_text
    kind = "text-classification" if text else "image-classification"
    confusion = result.test.whole.confusion if result.is_tested else None
    scores = scores_by_class(confusion) if confusion else []
    options = ["classifier", *(["weighting"] if result.final_task_weights else [])]
    card = ModelCard.from_template(
        ModelCardData(
            library_name="transformers" if text else None,
            pipeline_tag=kind,
            base_model=_base_model(config),
            tags=[kind, "tartan", *(["end-task-aware-training"] if result.is_joint else [])],
        ),
        template_path=str(Path(__file__).with_name("card.md")),
        **_shared(result, config, *options),
        text=text,
        pairs=bool(result.data.get("columns", {}).get("text_pair")),
        joint=result.is_joint,
        in_parts=(target / HEAD).is_file(),
        results=_results(result),
        classes=[{"label": n, **one} for n, one in zip(result.labels, scores, strict=False)],
        few=_FEW,
        figure=_FIGURE if figure.is_file() else None,
    )
    card.save(target / "README.md")


def write_encoder_card(result: Result, config: DictConfig, folder: Path) -> None:
    """Write `README.md` beside the weights of an encoder that was adapted to text, in `folder`."""
    card = ModelCard.from_template(
        ModelCardData(
            library_name="transformers",
            pipeline_tag="fill-mask",
            base_model=_base_model(config),
            tags=["fill-mask", "tartan", "continued-pretraining"],
        ),
        template_path=str(Path(__file__).with_name("encoder_card.md")),
        **_shared(result, config),
        scores=result.dev.whole,
    )
    card.save(folder / "README.md")


def _shared(result: Result, config: DictConfig, *options: str) -> dict[str, Any]:
    """Return what both templates show; `options` and those of the stages are shown as YAML."""
    whole: Any = OmegaConf.to_container(config, resolve=True)
    settings = {name: whole[name] for name in ("seed", "max_steps", "task", "encoder", *options)}
    stages = whole["method"]["stages"]
    settings["stages"] = {stage.name: stages[stage.name] for stage in result.stages}
    content = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=10_000)
    command = None
    if HydraConfig.initialized():
        hydra = HydraConfig.get()
        command = _without_home(command_of(hydra.overrides.task, places_of(hydra)))
    return {
        "md": lambda text: escape_markdown(_without_home(text)),
        "block": code_block,
        "result": result.as_json(),
        "max_length": config.task.get("max_length"),
        "settings": _without_home(content.rstrip()),
        "command": command,
    }


def _without_home(text: str) -> str:
    """Return a text that can be published, with `~` in the place of the home folder."""
    home = str(Path.home())
    return text if home == "/" else text.replace(home, "~")


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
            parts = {split: evaluated.whole}
        for label, scores in parts.items():
            metrics = {n: value for n, value in (scores.metrics or {}).items() if n != "loss"}
            for name in sorted(metrics, key=lambda name: name != result.metric):
                row = {"split": label, "examples": scores.examples}
                rows.append({**row, "metric": name, "value": metrics[name]})
    return rows
