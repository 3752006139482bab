"""Writes a classifier's model card from its run's result and config."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from tartan.encoders.base import Encoder
from tartan.encoders.export import HEAD
from tartan.encoders.text_encoder import TextEncoder
from tartan.evaluation.statistics import RESAMPLES, bootstrap_interval, scores_by_class
from tartan.files import code_block, escape_markdown, map_texts, shell_command, without_home
from tartan.model_card.licence import UNKNOWN, encoder_licence
from tartan.run_folder.name import PROGRAM, arguments_of, places_of
from tartan.run_folder.remarks import one_label_remark
from tartan.run_folder.result import Result, Scores

_TEMPLATE = Path(__file__).with_name("card.md")
_FIGURE = "task_weights.png"
_FEW = 20
"""Number of a class' test examples below which its scores are called uncertain."""
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


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
    card = ModelCard.from_template(
        _metadata(result, config, text),
        template_path=str(_TEMPLATE),
        md=shown,
        block=code_block,
        result=result.as_json(),
        text=text,
        pairs=bool(result.data.get("columns", {}).get("text_pair")),
        joint=result.is_joint,
        in_parts=(target / HEAD).is_file(),
        max_length=config.task.get("max_length"),
        results=_results(result),
        overlaps=_overlaps(result),
        one_label=one_label_remark(result),
        baselines=_baselines(result),
        resamples=RESAMPLES,
        classes=_classes(result),
        few=_FEW,
        figure=_FIGURE if figure.is_file() else None,
        fingerprints=result.fingerprints,
        settings=settings(result, config, options),
        encoder_licence=encoder_licence(encoder),
        unknown=UNKNOWN,
        command=command(),
    )
    card.save(target / "README.md")


def _metadata(result: Result, config: DictConfig, text: bool) -> ModelCardData:
    kind = "text-classification" if text else "image-classification"
    found = [
        EvalResult(
            task_type=kind,
            dataset_type=re.sub(r"[^a-z0-9_.-]+", "-", result.task.lower()),
            dataset_name=result.task,
            dataset_split=split,
            metric_type="f1" if name.endswith("f1") else name,
            metric_name=f"{split} {name}",
            metric_value=round(value, 4),
        )
        for split, scores in result.evaluated.items()
        for name, value in _metrics(scores.whole).items()
    ]
    return ModelCardData(
        model_name=f"{result.task} {result.method}",
        library_name="transformers" if text else None,
        pipeline_tag=kind,
        base_model=base_model(config),
        tags=[kind, "tartan", *(["end-task-aware-training"] if result.is_joint else [])],
        metrics=sorted({one.metric_type for one in found}),
        eval_results=found,
    )


def _metrics(part: Scores) -> dict[str, float]:
    return {name: value for name, value in (part.metrics or {}).items() if name != "loss"}


def _baselines(result: Result) -> list[str]:
    """Return a sentence with the scores of each baseline on the same data."""
    names = {
        "tf_idf": "TF-IDF with logistic regression",
        "fine_tuning": "Fine-tuning alone, at the cost of this run,",
    }
    sentences = []
    for one in result.baselines:
        scores = {
            split: (getattr(one, split) or {}).get(result.metric) for split in ("dev", "test")
        }
        told = [f"{score:.4f} on {split}" for split, score in scores.items() if score is not None]
        if one.name in names and told:
            metric = escape_markdown(result.metric)
            sentences.append(f"{names[one.name]} reaches {', '.join(told)} ({metric}).")
    return sentences


def _results(result: Result) -> list[dict[str, Any]]:
    """Return a row for each split and metric; the metric that chose the checkpoint comes first."""
    rows = []
    for split, found in result.evaluated.items():
        for scores, label in ((found.whole, split), (found.unseen, f"{split}, not in train")):
            if scores is found.unseen and scores.examples == found.whole.examples:
                continue  # the same once more
            metrics = _metrics(scores)
            for name in sorted(metrics, key=lambda name: name != result.metric):
                interval = None
                # dev's value is the best of many, which no resampling makes up for
                if split == "test" and scores.confusion is not None:
                    interval = bootstrap_interval(name, metrics[name], scores.confusion)
                rows.append(
                    {
                        "split": label,
                        "examples": scores.examples,
                        "metric": name,
                        "value": metrics[name],
                        "interval": interval,
                    }
                )
    return rows


def _overlaps(result: Result) -> list[str]:
    """Return a sentence for each split on how many of its examples are in train too."""
    told = []
    for split, found in result.evaluated.items():
        count = found.whole.examples
        known = count - found.unseen.examples
        if known == 0:
            told.append(f"No example of {split} has content that the training split has too.")
        elif known < count:
            told.append(
                f"Of the {count} examples of {split}, {known} have content that the training split "
                f'has too; "{split}, not in train" leaves these out.'
            )
        else:
            told.append(
                f"Every example of {split} has content that the training split has too: its values "
                "say nothing of examples that were not trained on."
            )
    return told


def _classes(result: Result) -> list[dict[str, Any]]:
    confusion = result.test.whole.confusion if result.is_tested else None
    if confusion is None:
        return []
    scores = scores_by_class(confusion)
    return [{"label": label, **vars(one)} for label, one in zip(result.labels, scores, strict=True)]


def base_model(config: DictConfig) -> str | None:
    """Return the encoder's name on the Hub; None if it has none."""
    base = str(config.encoder.get("name", ""))
    return base if _HUB_NAME.fullmatch(base) and not Path(base).exists() else None


def settings(result: Result, config: DictConfig, names: Sequence[str]) -> str:
    """Return the options `names`, and those of the stages that trained the model, as YAML."""
    stages = [stage.name for stage in result.stages]
    whole: Any = OmegaConf.to_container(config, resolve=True)
    content = {name: whole[name] for name in names}
    content["stages"] = {name: whole["method"]["stages"][name] for name in stages}
    content = map_texts(content, without_home)
    return str(OmegaConf.to_yaml(OmegaConf.create(content))).rstrip()


def shown(text: str) -> str:
    """Return text of a run as a card shows it: as text only, and without the home folder."""
    return escape_markdown(without_home(text))


def command() -> str | None:
    """Return the command that is running; None inside another program."""
    if not HydraConfig.initialized():
        return None
    hydra = HydraConfig.get()
    return shell_command([*PROGRAM, *arguments_of(hydra.overrides.task, places_of(hydra))])
