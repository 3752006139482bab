"""Low-rank adaptation (Hu et al., 2022) of a body, by `peft`: its weights stay as they were."""

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from transformers import PreTrainedModel

from tartan.errors import UserError
from tartan.settings import Below1, Checked, Count, Positive, Text

log = logging.getLogger(__name__)

_NAME = "default"  # peft's name of a model's first adapter


@dataclass(frozen=True)
class Lora(Checked):
    """Trains matrices of low rank beside a body's linear layers, instead of the body.

    Attributes:
        rank: the matrices' rank.
        alpha: the update is scaled by `alpha / rank`.
        dropout: dropout probability of the matrices' inputs.
        target_modules: names of the layers; `all-linear` for all; None for those that peft's
            authors chose for the architecture, or all where they chose none.
        keep: also write the adapter by itself, `classifier/adapter/`, in peft's form.
    """

    rank: Count = 8
    alpha: Positive = 16
    dropout: Below1 = 0.0
    target_modules: Literal["all-linear"] | Sequence[Text] | None = None
    keep: bool = False

    def add_to(self, body: PreTrainedModel, name: str) -> None:
        """Add the adapter to the body of the encoder `name`, in place; only it is trained then.

        The first states are the same, because one matrix of each pair is 0. The other one's values
        are random, and the same every time.
        """
        try:
            import peft
        except ImportError:
            raise UserError(
                "encoder.adapter needs peft: pip install 'tartan-nlp[lora]' (in a checkout: pip "
                "install -e '.[lora]')"
            ) from None
        kind = body.config.model_type
        chosen = self.target_modules
        if chosen is None:
            known = peft.utils.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
            chosen = known.get(kind, "all-linear")
        config = peft.LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            target_modules=chosen if isinstance(chosen, str) else list(chosen),
            # whose output no task reads
            exclude_modules=r"pooler\..*" if getattr(body, "pooler", None) else None,
        )
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            try:
                peft.inject_adapter_in_model(config, body)
            except ValueError as error:
                raise UserError(f"encoder.adapter: encoder {name} ({kind}): {error}") from error
        adapted = adapted_layers(body)
        if not all(isinstance(layer.get_base_layer(), nn.Linear) for layer in adapted.values()):
            # masked-LM heads share the embeddings' weights
            raise UserError(f"encoder.adapter.target_modules={chosen}: not all are linear layers")
        trained, total = (
            sum(p.numel() for p in body.parameters() if p.requires_grad or is_total)
            for is_total in (False, True)
        )
        log.info(
            "encoder %s: LoRA of %d layers trains %s parameters; the body has %s",
            name, len(adapted), f"{trained:,}", f"{total - trained:,}",
        )  # fmt: skip


def adapted_layers(body: nn.Module) -> dict[str, Any]:
    """Return the layers with an adapter, by name."""
    return {name: m for name, m in body.named_modules() if hasattr(m, "lora_A")}


def merged(body: PreTrainedModel) -> PreTrainedModel:
    """Return a copy whose weights include the adapter's update; without adapter, the body."""
    if not adapted_layers(body):
        return body
    body = copy.deepcopy(body)
    for name, layer in adapted_layers(body).items():
        layer.merge()
        parent, _, child = name.rpartition(".")
        setattr(body.get_submodule(parent), child, layer.get_base_layer())
    del body.peft_config
    return body.requires_grad_(True)


def save_adapter(
    body: PreTrainedModel, classifier: PreTrainedModel, base: str, folder: Path
) -> None:
    """Write a body's adapter with all of the classifier that is not in the body, for peft.

    `classifier` is the merged one. `base` is the name of the encoder that the adapter belongs to.
    """
    import peft

    prefix = classifier.base_model_prefix
    layers = {f"{prefix}.{name}": layer for name, layer in adapted_layers(body).items()}
    # whole modules: peft adds `classifier`, which must not be beside its parts
    outside = {
        f"{prefix}.pooler" if name.startswith(f"{prefix}.") else name.partition(".")[0]
        for name, _ in classifier.named_parameters()
        if not name.startswith(f"{prefix}.") or name.startswith(f"{prefix}.pooler.")
    }
    config = copy.copy(body.peft_config[_NAME])
    config.target_modules, config.exclude_modules = set(layers), None
    config.task_type = peft.TaskType.SEQ_CLS
    config.modules_to_save, config.base_model_name_or_path = sorted(outside), base
    config.inference_mode = True
    model = peft.PeftModel(copy.deepcopy(classifier), config)
    for name, layer in layers.items():
        model.base_model.model.get_submodule(name).load_state_dict(
            {k: v for k, v in layer.state_dict().items() if k.startswith("lora_")}, strict=False
        )
    model.save_pretrained(folder, save_embedding_layers=False)
