"""Writes model cards: what was trained, from what, how good it is, and for what."""

import re
import shutil
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard, ModelCardData
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from tartan.encoders.export import HEAD
from tartan.evaluation.calibration import Calibration
from tartan.evaluation.statistics import scores_by_class
from tartan.files import code_block, escape_markdown
from tartan.runs.folder import command_of
from tartan.runs.result import Result

_FIGURE = "task_weights.png"
_FEW = 20
"""Number of a class' test examples below which its scores are called uncertain."""


def write_card(
    result: Result, config: DictConfig, model: Path, calibration: Calibration | None = None
) -> None:
    """Write `README.md` and the figure of the weights beside a run's classifier or encoder."""
    figure, base = model.parent / _FIGURE, str(config.encoder.get("name", ""))
    if figure.is_file():
        shutil.copyfile(figure, model / _FIGURE)
    if result.labels:
        kind = "text-classification" if result.is_text else "image-classification"
        tags = ["end-task-aware-training"] if result.is_joint else []
    else:
        kind, tags = "fill-mask", ["continued-pretraining"]
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", base) and not Path(base).exists()
    confusion = result.test.whole.confusion if result.is_tested else None
    scores = scores_by_class(confusion) if confusion else []
    command = None
    if HydraConfig.initialized():
        command = _without_home(command_of(HydraConfig.get()))
    card = ModelCard.from_template(
        ModelCardData(
            library_name="transformers" if result.is_text else None,
            pipeline_tag=kind,
            base_model=base if on_hub else None,
            tags=[kind, "tartan", *tags],
        ),
        template_path=str(
            Path(__file__).with_name("card.md" if result.labels else "encoder_card.md")
        ),
        md=lambda text: escape_markdown(_without_home(text)),
        block=code_block,
        result=result.as_json(),
        max_length=config.task.get("max_length"),
        settings=_settings(result, config),
        command=command,
        text=result.is_text,
        kind=result.data.get("kind", ""),
        pairs=bool(result.data.get("columns", {}).get("text_pair")),
        joint=result.is_joint,
        in_parts=(model / HEAD).is_file(),
        scores=result.dev.whole,
        results=_results(result),
        classes=[{"label": n, **one} for n, one in zip(result.labels, scores, strict=False)],
        few=_FEW,
        calibration="" if calibration is None else calibration.sentence,
        figure=_FIGURE if figure.is_file() else None,
    )
    card.save(model / "README.md")


def _settings(result: Result, config: DictConfig) -> str:
    names = ["seed", "max_steps", "task", "encoder", *(["classifier"] if result.labels else [])]
    names += ["weighting"] if result.final_task_weights else []
    whole: Any = OmegaConf.to_container(config, resolve=True)
    settings = {name: whole[name] for name in names}
    settings["stages"] = {one.name: whole["method"]["stages"][one.name] for one in result.stages}
    content = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=10_000)
    return _without_home(content.rstrip())


def _without_home(text: str) -> str:
    """Return a text that can be published, with `~` in the place of the home folder."""
    home = str(Path.home())
    return text if home == "/" else text.replace(home, "~")


def _results(result: Result) -> list[dict[str, Any]]:
    """Return a row for each split and metric; the metric that chose the checkpoint comes first."""
    rows = []
    for split, evaluated in result.evaluated.items():
        parts = {split: evaluated.whole}
        if evaluated.unseen.examples != evaluated.whole.examples:
            parts[f"{split}, not in train"] = evaluated.unseen
        for label, scores in parts.items():
            metrics = {n: value for n, value in (scores.metrics or {}).items() if n != "loss"}
            for name in sorted(metrics, key=lambda name: name != result.metric):
                row = {"split": label, "examples": scores.examples}
                rows.append({**row, "metric": name, "value": metrics[name]})
    return rows
