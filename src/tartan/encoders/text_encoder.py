"""Loads encoders of text, from the Hugging Face Hub or a folder."""

from __future__ import annotations

import copy
import json
import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from tartan.core.device import is_on_cpu, is_on_cuda
from tartan.encoders.base import require_encoder
from tartan.encoders.hub import local_or_cached
from tartan.encoders.masked_lm_head import MaskedLMHead, split_masked_lm
from tartan.encoders.pretrained import (
    check_they_fit,
    load_config,
    load_model,
    load_tokenizer,
    without_pooler,
)
from tartan.encoders.saved_tokenizer import as_given
from tartan.encoders.transformers_classifier import save_classifier, uses_token_types
from tartan.errors import UserError, first_line
from tartan.kernels.packing import can_pack
from tartan.kernels.varlen import kernel_for, usable_kernels
from tartan.settings import Below1, Checked, NonNegative

log = logging.getLogger(__name__)

POSITIONS_AFTER_PADDING = (
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "mpnet",
    "data2vec-text",
    "longformer",
    "xmod",
    "ibert",
    "luke",
    "esm",
)
"""Model types whose position ids begin behind the id of the padding token."""
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


@dataclass
class TextEncoder:
    """An encoder of text.

    Attributes:
        name: the encoder's name in results.
        body: Transformers' model without a head.
        tokenizer: the body's tokenizer.
        mlm_head: a trained masked-LM head; None where there is none, and masked-LM tasks start
            from a new one.
    """

    name: str
    body: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    mlm_head: MaskedLMHead | None = None
    _packs_on_gpu: dict[tuple[str, bool], bool] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def hidden_size(self) -> int:
        """Width of the body's states."""
        return int(self.body.config.hidden_size)

    def new_mlm_head(self) -> MaskedLMHead:
        """Return a head for a masked-LM task: a copy of the trained one, or a new one.

        Raises:
            UserError: the body does not say which its word embeddings are.
        """
        if self.mlm_head is not None:
            return copy.deepcopy(self.mlm_head)
        try:
            embedding: Tensor = self.body.get_input_embeddings().weight
        except (NotImplementedError, AttributeError) as error:
            raise UserError(
                f"encoder {self.name}: masked language modelling needs the word embeddings; give "
                f"{type(self.body).__name__} a method get_input_embeddings()"
            ) from error
        # with another epsilon, Transformers could not compute the same when it is saved
        eps = getattr(self.body.config, "layer_norm_eps", 1e-5)
        return MaskedLMHead(self.hidden_size, embedding.shape[0], embedding.shape[1], eps=eps)

    def keep_head(self, head: nn.Module) -> None:
        """Keep a trained masked-LM head, from which later tasks start; ignore other heads."""
        if isinstance(head, MaskedLMHead):
            self.mlm_head = head

    def recompute_activations(self) -> None:
        """Turn on gradient checkpointing.

        Raises:
            UserError: the body does not support it.
        """
        if not self.body.supports_gradient_checkpointing:
            raise UserError(
                f"encoder {self.name} has no gradient checkpointing; use a smaller "
                "micro_batch_size instead"
            )
        newer = getattr(self.body, "activation_checkpointing_enable", None)
        enable = newer or self.body.gradient_checkpointing_enable
        # reentrant checkpoints do not support `backward(inputs=...)`
        enable({"use_reentrant": False})
        # Transformers' hook for reentrant ones breaks forward-mode derivatives
        self.body.disable_input_require_grads()

    def save_classifier(
        self,
        head: nn.Module,
        labels: Sequence[str],
        folder: Path,
        max_length: int | None = None,
    ) -> str | None:
        """Write the classifier for Transformers, or body and head apart (see `Encoder`).

        Raises:
            UserError: the head is not a `ClassifierHead`.
        """
        if save_classifier(self.body, self.tokenizer, head, labels, folder, max_length):
            return None
        return (
            f"{folder.name}/ holds body and head apart: Transformers has no sequence classifier "
            f"of this form for {self.name}, and would start a new head; use python -m src.predict"
        )

    @property
    def uses_token_types(self) -> bool:
        """Whether the body's inputs say which of a pair's texts a token belongs to."""
        return uses_token_types(self.body, self.tokenizer)

    @property
    def ordinary_tokens(self) -> list[int]:
        """Ids of the tokens that are not special, of which texts can be made to try the body."""
        special = set(self.tokenizer.all_special_ids)
        return [token for token in range(len(self.tokenizer)) if token not in special]

    @property
    def max_positions(self) -> int | None:
        """Longest input; None where the architecture sets no limit [tokens]."""
        return max_positions_of(self.body.config)

    @cached_property
    def supports_packing(self) -> bool:
        """Whether the body can process packed rows (see `can_pack`); logs a warning if not."""
        ordinary = self.ordinary_tokens
        supported = bool(ordinary) and can_pack(self.body, ordinary, self.first_position)
        if not supported:
            log.warning(
                "encoder %s (%s) cannot read several texts as one row: micro-batches are padded",
                self.name,
                self.body.config.model_type,
            )
        return supported

    def packs_on_gpu(self, precision: str, *, trains: bool) -> bool:
        """Return whether texts are packed on this machine's GPU; log once why, if they are not.

        Args:
            precision: Lightning's name of the precision.
            trains: whether the body is in training, where attention has dropout.
        """
        key = (precision, trains)
        if key not in self._packs_on_gpu:
            dropout = attention_dropout_of(self.body.config) if trains else 0.0
            dtype = torch.bfloat16 if precision.startswith("bf16") else torch.float32
            # a body without attention has no heads, and `supports_packing` refuses it
            size = self.hidden_size // int(getattr(self.body.config, "num_attention_heads", 1))
            kernel = kernel_for(dtype, dropout, size, usable_kernels())
            self._packs_on_gpu[key] = kernel is not None and self.supports_packing
            if kernel is None:
                log.info(
                    "%s pads texts on the GPU: no kernel attends within packed rows in %s with "
                    "attention dropout %g (varlen_attn and flash-attn take 16 bits, only the "
                    "latter dropout; usable here: %s)",
                    "training" if trains else "evaluation",
                    precision,
                    dropout,
                    ", ".join(usable_kernels()) or "none",
                )
        return self._packs_on_gpu[key]

    @property
    def first_position(self) -> int:
        """Position id of a text's first token."""
        return _first_position(self.body.config)

    def description(self) -> dict[str, Any] | None:
        """Return configuration and tokenizer files; None for a body with code of its own."""
        kinds = MODEL_MAPPING.get(type(self.body.config), ())
        if type(self.body) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
            return None
        with tempfile.TemporaryDirectory() as folder:
            as_given(self.tokenizer).save_pretrained(folder)
            files = sorted(path for path in Path(folder).iterdir() if path.is_file())
            tokenizer = {path.name: path.read_text(encoding="utf-8") for path in files}
        head = self.mlm_head
        return {
            "config": json.loads(self.body.config.to_json_string(use_diff=False)),
            "pooler": getattr(self.body, "pooler", None) is not None,
            "tokenizer": tokenizer,
            "masked_lm_head": head and {"biases": list(head.biases), "eps": head.norm.eps},
        }

    @classmethod
    def from_description(cls, name: str, description: Mapping[str, Any]) -> TextEncoder:
        """Build the encoder that `description` holds, with random weights."""
        with tempfile.TemporaryDirectory() as folder:
            files = {"config.json": json.dumps(description["config"]), **description["tokenizer"]}
            for file, text in files.items():
                Path(folder, Path(file).name).write_text(text, encoding="utf-8")
            config, tokenizer = load_config(Path(folder)), load_tokenizer(Path(folder))
        build = partial(AutoModel.from_config, config, trust_remote_code=False, dtype=torch.float32)
        body = build() if description["pooler"] else without_pooler(build)
        head = description["masked_lm_head"]
        if head is not None:
            rows, width = body.get_input_embeddings().weight.shape
            size, biases = int(config.hidden_size), list(head["biases"])
            head = MaskedLMHead(size, rows, width, biases, float(head["eps"]))
        return TextEncoder(name, body, tokenizer, head)


def _first_position(config: PretrainedConfig) -> int:
    return int(config.pad_token_id) + 1 if config.model_type in POSITIONS_AFTER_PADDING else 0


def attention_dropout_of(config: PretrainedConfig) -> float:
    """Return the probability of dropout of attention weights in training."""
    for entry in ("attention_probs_dropout_prob", "attention_dropout"):
        if hasattr(config, entry):
            return float(getattr(config, entry))
    return 1.0  # unknown, so assume that there is dropout


def max_positions_of(config: PretrainedConfig) -> int | None:
    """Return the length of the longest input [tokens]; None where there is no limit."""
    limit = getattr(config, "max_position_embeddings", None)
    return None if limit is None else int(limit) - _first_position(config)


@dataclass(frozen=True)
class PretrainedEncoder(Checked):
    """Any Hugging Face encoder, by Hub name or local folder.

    Attributes:
        name: e.g. `roberta-base`, `answerdotai/ModernBERT-base`, or a folder that
            `save_pretrained` wrote.
        revision: branch, tag or commit on the Hub; None for the default branch.
        trust_remote_code: whether to run Python code that the folder or repository holds (its
            `auto_map`); only for code that you have read.
        attention_dropout: dropout probability of attention weights; None keeps the checkpoint's.
        hidden_dropout: dropout probability elsewhere in the body; None keeps the checkpoint's.
        reported_as: the encoder's name in results; None for `name`.
        lr: learning rates that suit this encoder, by kind of stage; the stages refer to them.
    """

    name: str
    revision: str | None = None
    trust_remote_code: bool = False
    attention_dropout: Below1 | None = None
    hidden_dropout: Below1 | None = None
    reported_as: str | None = None
    lr: Mapping[str, NonNegative] = field(default_factory=dict)

    def load(self) -> TextEncoder:
        """Load body, tokenizer and, where the checkpoint has one, the masked-LM head, in float32.

        Raises:
            UserError: the folder does not exist or cannot be loaded, or the Hub cannot be reached;
                the message says what works offline.
        """
        if self.trust_remote_code:
            log.warning(
                "encoder %s: its own Python code is run (encoder.trust_remote_code=true)",
                self.name,
            )
        source = local_or_cached(self.name, self.revision, code=self.trust_remote_code)
        entries = dropout_entries(self.attention_dropout, self.hidden_dropout)
        encoder = load_folder(source, self.name, entries, self.trust_remote_code)
        if self.reported_as is not None:
            encoder.name = self.reported_as
        return encoder


def dropout_entries(attention: float | None, hidden: float | None) -> dict[str, float]:
    """Return the entries of a body's configuration that set the probabilities which are given."""
    entries = {"attention_probs_dropout_prob": attention, "hidden_dropout_prob": hidden}
    return {entry: rate for entry, rate in entries.items() if rate is not None}


def load_folder(
    folder: Path,
    name: str,
    config_changes: Mapping[str, float],
    trust_remote_code: bool = False,
) -> TextEncoder:
    """Load an encoder from a local folder in Hugging Face's layout (safetensors only).

    Args:
        folder: the folder.
        name: the encoder's name in results and messages.
        config_changes: entries of the configuration to overwrite.
        trust_remote_code: whether to run Python code that the folder holds.

    Raises:
        UserError: the folder's configuration lacks an entry of `config_changes`, a part is missing
            or damaged, or the parts do not belong together.
    """
    if not any(path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern)):
        # Transformers would return an empty tokenizer
        raise UserError(f"encoder folder {folder} has no tokenizer; save it there too")
    if not any(folder.glob("*.safetensors")):
        pickled = sorted(path.name for path in folder.glob("*.bin"))
        held = f"only {pickled[0]}, a pickle, which may run any code" if pickled else "no weights"
        raise UserError(
            f"encoder folder {folder} holds {held}; save the model there as safetensors "
            "(Transformers' save_pretrained does)"
        )
    try:
        encoder = _load(folder, name, config_changes, trust_remote_code)
    except UserError:
        raise
    except RuntimeError as error:  # Transformers' message refers to a report that it printed
        raise UserError(
            f"encoder folder {folder}: its weights have other shapes than its config.json says; "
            "save both there from the same model"
        ) from error
    except Exception as error:  # a damaged configuration leads to errors of any class
        reason = first_line(error)
        raise UserError(f"encoder {name} cannot be loaded from {folder}: {reason}") from error
    check_they_fit(encoder.tokenizer, encoder.body, f"encoder folder {folder}")
    return encoder


def _load(
    folder: Path, name: str, config_changes: Mapping[str, float], trust_remote_code: bool
) -> TextEncoder:
    config = load_config(folder, trust_remote_code)
    for key, value in config_changes.items():
        if not hasattr(config, key):
            raise UserError(
                f"encoder {name} ({config.model_type}) has no configuration entry {key!r}; "
                "leave encoder.attention_dropout and encoder.hidden_dropout at null"
            )
        setattr(config, key, value)
    if config.is_encoder_decoder:
        raise UserError(
            f"encoder {name} ({config.model_type}) has a decoder too; use an encoder, such as "
            "BERT or RoBERTa"
        )
    tokenizer = _tokenizer(folder, trust_remote_code)
    if _has_mlm_weights(config.architectures):
        model, loading = load_model(AutoModelForMaskedLM, folder, trust_remote_code, config=config)
        body, head = split_masked_lm(model, set(loading["missing_keys"]))
    else:
        load = partial(load_model, AutoModel, folder, trust_remote_code, config=config)
        model, loading = without_pooler(load)
        body, head = model, None
    _check_complete(model, body, set(loading["missing_keys"]), folder)
    body.train()
    return TextEncoder(name=name, body=body, tokenizer=tokenizer, mlm_head=head)


def _has_mlm_weights(architectures: list[str] | None) -> bool:
    return any(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in architectures or [])


def _tokenizer(folder: Path, trust_remote_code: bool) -> PreTrainedTokenizerBase:
    try:
        return load_tokenizer(folder, trust_remote_code)
    except UserError:
        raise
    except Exception as error:  # the tokenizers library raises this class itself
        raise UserError(
            f"encoder folder {folder}: its tokenizer cannot be read "
            f"({type(error).__name__}: {first_line(error)}); save it there again"
        ) from error


def _check_complete(
    model: PreTrainedModel, body: PreTrainedModel, missing: set[str], folder: Path
) -> None:
    """Check that the checkpoint holds the whole body: Transformers draws the rest at random.

    Raises:
        UserError: weights of the body are missing.
    """
    own = {id(parameter) for parameter in body.parameters()}
    lacking = [n for n, p in model.named_parameters() if id(p) in own and n in missing]
    if lacking:
        raise UserError(
            f"encoder folder {folder}: its weights lack {len(lacking)} of the body's "
            f"{len(own)} parameters (the first is {lacking[0]}); save the whole model there"
        )


def packs_texts(encoder: object, accelerator: str, precision: str, *, trains: bool) -> bool:
    """Return whether this machine has kernels for packed rows: a CPU for all, a GPU for some.

    Args:
        encoder: the encoder.
        accelerator: Lightning's name of the accelerator.
        precision: Lightning's name of the precision.
        trains: whether the body is in training, where attention has dropout.
    """
    if is_on_cpu(accelerator):
        return True
    if not (is_on_cuda(accelerator) and isinstance(encoder, TextEncoder)):
        return False
    return encoder.packs_on_gpu(precision, trains=trains)


def require_text_encoder(encoder: object, what: str) -> TextEncoder:
    """Return `encoder`, after checking that it reads texts (see `require_encoder`).

    Raises:
        UserError: it does not; the message says that `what` needs it.
    """
    return require_encoder(encoder, TextEncoder, what, "text", "e.g. encoder=minilm")
