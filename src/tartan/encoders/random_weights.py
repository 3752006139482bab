"""Builds an encoder of any size with random weights, to measure speed and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from transformers import AutoConfig, AutoModel

from tartan.encoders.base import EncoderSource
from tartan.encoders.pretrained import without_pooler
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError, first_line
from tartan.settings import Checked, NonNegative


@dataclass(frozen=True)
class RandomWeights(Checked):
    """An architecture of Transformers with random weights, which are the same every time.

    Attributes:
        name: the encoder's name in results.
        architecture: a `model_type` of Transformers, such as `roberta`.
        sizes: entries of its configuration; the padding token is the tokenizer's.
        tokenizer: an encoder whose tokenizer is used, so that texts have realistic lengths.
        lr: see `PretrainedEncoder`.
    """

    name: str
    architecture: str
    sizes: Mapping[str, Any]
    tokenizer: EncoderSource
    lr: Mapping[str, NonNegative] = field(default_factory=dict)

    def load(self) -> TextEncoder:
        """Build the body, and leave the caller's random state as it was.

        Raises:
            UserError: the architecture does not exist, does not take these sizes, or embeds fewer
                tokens than the tokenizer has.
        """
        tokenizer = require_text_encoder(self.tokenizer.load(), f"encoder {self.name}").tokenizer
        sizes = {str(key): value for key, value in self.sizes.items()}
        try:
            config = AutoConfig.for_model(
                self.architecture, pad_token_id=tokenizer.pad_token_id, **sizes
            )
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(0)
                body = without_pooler(
                    partial(AutoModel.from_config, config, trust_remote_code=False)
                )
        except (ValueError, TypeError) as error:
            reason = first_line(error)
            raise UserError(f"encoder.architecture={self.architecture}: {reason}") from error
        if len(tokenizer) > config.vocab_size:
            raise UserError(
                f"encoder.sizes.vocab_size={config.vocab_size} is less than the tokenizer's "
                f"{len(tokenizer)} tokens"
            )
        return TextEncoder(name=self.name, body=body.train(), tokenizer=tokenizer)
