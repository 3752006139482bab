"""Writes the model card of an encoder that was trained by continued pre-training."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import ModelCard, ModelCardData
from omegaconf import DictConfig

from tartan.encoders.text_encoder import TextEncoder
from tartan.files import code_block, without_home
from tartan.model_card.card import base_model, command, settings, shown
from tartan.model_card.licence import UNKNOWN, encoder_licence
from tartan.run_folder.result import Result

_TEMPLATE = Path(__file__).with_name("encoder_card.md")


def write_encoder_card(
    result: Result, config: DictConfig, encoder: TextEncoder, folder: Path
) -> None:
    """Write `README.md` beside the weights.

    Args:
        result: the run's result.
        config: the run's config.
        encoder: the trained encoder.
        folder: the encoder's folder.
    """
    card = ModelCard.from_template(
        ModelCardData(
            model_name=f"{without_home(result.encoder)} adapted",
            library_name="transformers",
            pipeline_tag="fill-mask",
            base_model=base_model(config),
            tags=["fill-mask", "tartan", "continued-pretraining"],
        ),
        template_path=str(_TEMPLATE),
        md=shown,
        block=code_block,
        result=result.as_json(),
        scores=result.dev.whole,
        max_length=config.task.max_length,
        settings=settings(result, config, ["seed", "max_steps", "task", "encoder"]),
        encoder_licence=encoder_licence(encoder),
        unknown=UNKNOWN,
        command=command(),
    )
    card.save(folder / "README.md")
