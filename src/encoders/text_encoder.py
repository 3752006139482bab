"""A pre-trained body with its tokenizer and masked-LM head, from the Hub or a folder."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from src.configuration.options import Below1, Checked, NonNegative
from src.core.device import is_on_cpu
from src.cuda.kernels import kernel_for, usable_kernels
from src.encoders.base import of_kind
from src.encoders.hub import local_or_cached
from src.encoders.masked_lm_head import MaskedLMHead, head_of_checkpoint
from src.encoders.packing import can_pack
from src.encoders.pretrained import LoadingInfo, load_config, load_model, load_tokenizer
from src.encoders.transformers_classifier import save_classifier, takes_token_types
from src.errors import UserError, first_line

log = logging.getLogger(__name__)

_POSITIONS_AFTER_PADDING = (
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "mpnet",
    "data2vec-text",
    "longformer",
)
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


@dataclass
class TextEncoder:
    """An encoder of text: body, masked-LM head, tokenizer.

    `mlm_head` is None where no trained one is at hand; a masked-LM task then starts a fresh one.
    """

    name: str
    body: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    mlm_head: MaskedLMHead | None = None
    _on_gpu: dict[tuple[str, bool], bool] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def hidden_size(self) -> int:
        return int(self.body.config.hidden_size)

    def new_mlm_head(self) -> MaskedLMHead:
        """A head for one more masked-LM task: a copy of the trained one, or a fresh one."""
        if self.mlm_head is not None:
            return copy.deepcopy(self.mlm_head)
        embedding: Tensor = self.body.get_input_embeddings().weight
        eps = getattr(self.body.config, "layer_norm_eps", 1e-5)  # or it could not be saved
        return MaskedLMHead(self.hidden_size, embedding.shape[0], embedding.shape[1], eps=eps)

    def adopt(self, head: nn.Module) -> None:
        """Keep a trained masked-LM head: continued pre-training yields body and head."""
        if isinstance(head, MaskedLMHead):
            self.mlm_head = head

    def recompute_activations(self) -> None:
        if not self.body.supports_gradient_checkpointing:
            raise UserError(
                f"encoder {self.name} has no gradient checkpointing; use a smaller "
                "micro_batch_size instead"
            )
        newer = getattr(self.body, "activation_checkpointing_enable", None)
        enable = newer or self.body.gradient_checkpointing_enable
        # reentrant checkpoints know nothing of `backward(inputs=...)`
        enable({"use_reentrant": False})
        # their hook, which forward-mode derivatives cannot pass, is for reentrant ones
        self.body.disable_input_require_grads()

    def save_classifier(
        self,
        head: nn.Module,
        labels: Sequence[str],
        folder: Path,
        max_length: int | None = None,
    ) -> str | None:
        """Write the classifier for Transformers, or body and head apart where it has no such form.

        Raises:
            UserError: the head is not that of text classification.
        """
        if save_classifier(self.body, self.tokenizer, head, labels, folder, max_length):
            return None
        return (
            "classifier/ holds body and head apart: Transformers has no sequence classifier "
            f"of this form for {self.name}"
        )

    @property
    def token_types(self) -> bool:
        """Whether the body is told which of a pair's texts a token belongs to."""
        return takes_token_types(self.body, self.tokenizer)

    @property
    def max_positions(self) -> int | None:
        """The longest input in tokens, None where the architecture sets no limit."""
        return max_positions_of(self.body.config)

    @cached_property
    def packs(self) -> bool:
        """Whether several texts can go through the body as one row (see `can_pack`)."""
        special = set(self.tokenizer.all_special_ids)
        ordinary = [token for token in range(len(self.tokenizer)) if token not in special]
        fits = bool(ordinary) and can_pack(self.body, ordinary, self.first_position)
        if not fits:
            log.warning(
                "encoder %s (%s) cannot read several texts as one row: micro-batches are padded",
                self.name,
                self.body.config.model_type,
            )
        return fits

    def packs_on_gpu(self, precision: str, *, trains: bool) -> bool:
        """Whether texts go through the body as one row on this machine's GPU.

        Decided once for a run, from what does not change in it; where they do not, the log says so.

        Args:
            precision: Lightning's name of it.
            trains: whether the body trains, and so drops attention's weights.
        """
        key = (precision, trains)
        if key not in self._on_gpu:
            dropout = attention_dropout_of(self.body.config) if trains else 0.0
            dtype = torch.bfloat16 if precision.startswith("bf16") else torch.float32
            size = self.hidden_size // int(self.body.config.num_attention_heads)
            kernel = kernel_for(dtype, dropout, size, usable_kernels())
            self._on_gpu[key] = kernel is not None and self.packs
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
        return self._on_gpu[key]

    @property
    def first_position(self) -> int:
        """The number that the architecture gives to a text's first position."""
        config = self.body.config
        return int(config.pad_token_id) + 1 if _after_padding(config) else 0


def _after_padding(config: PretrainedConfig) -> bool:
    return config.model_type in _POSITIONS_AFTER_PADDING


def attention_dropout_of(config: PretrainedConfig) -> float:
    """Return the probability with which a body in training drops attention's weights."""
    for entry in ("attention_probs_dropout_prob", "attention_dropout"):
        if hasattr(config, entry):
            return float(getattr(config, entry))
    return 1.0  # not known: taken for one that is needed


def max_positions_of(config: PretrainedConfig) -> int | None:
    """The longest input in tokens, None where the architecture sets no limit."""
    limit = getattr(config, "max_position_embeddings", None)
    if limit is None:
        return None
    if _after_padding(config):
        # These number positions from padding_idx + 1.
        limit -= int(config.pad_token_id) + 1
    return int(limit)


@dataclass(frozen=True)
class PretrainedEncoder(Checked):
    """Any Hugging Face encoder, by Hub name or local folder.

    Attributes:
        name: e.g. `roberta-base`, `answerdotai/ModernBERT-base`, or a folder that
            `save_pretrained` wrote.
        revision: branch, tag or commit on the Hub.
        trust_remote_code: run Python code that the folder or repository brings (its `auto_map`);
            only for code that you have read.
        attention_dropout: dropout inside the attention; None keeps the checkpoint's.
        hidden_dropout: dropout elsewhere in the body; None keeps the checkpoint's.
        reported_as: the name the result is reported under; None for `name`.
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
            UserError: the folder does not exist or the Hub cannot be reached (says what works
                offline).
        """
        if self.trust_remote_code:
            log.warning(
                "encoder %s: Python code that it brings is run (encoder.trust_remote_code=true)",
                self.name,
            )
        source = local_or_cached(self.name, self.revision, code=self.trust_remote_code)
        changes = dropout_changes(self.attention_dropout, self.hidden_dropout)
        encoder = load_folder(source, self.name, changes, self.trust_remote_code)
        if self.reported_as is not None:
            encoder.name = self.reported_as
        return encoder


def dropout_changes(attention: float | None, hidden: float | None) -> dict[str, float]:
    """The configuration entries that set a body's dropout, for those that are not None."""
    changes = {"attention_probs_dropout_prob": attention, "hidden_dropout_prob": hidden}
    return {entry: rate for entry, rate in changes.items() if rate is not None}


def load_folder(
    folder: Path,
    name: str,
    config_changes: Mapping[str, float],
    trust_remote_code: bool = False,
) -> TextEncoder:
    """An encoder from a local folder in Hugging Face's layout (safetensors only).

    Raises:
        UserError: the folder's configuration lacks an entry that `config_changes` sets, a part is
            missing or damaged, or the parts do not belong together.
    """
    if not any(path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern)):
        # Transformers would make up an empty tokenizer.
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
    except RuntimeError as error:  # Transformers: "see the above report"
        raise UserError(
            f"encoder folder {folder}: its weights have other shapes than its config.json says; "
            "save both there from the same model"
        ) from error
    except Exception as error:  # what a damaged configuration leads to is no narrower
        reason = first_line(error)
        raise UserError(f"encoder {name} cannot be loaded from {folder}: {reason}") from error
    _check_tokenizer(encoder, folder)
    return encoder


def _check_tokenizer(encoder: TextEncoder, folder: Path) -> None:
    """Whether the body has an embedding for all that the tokenizer makes of texts.

    Raises:
        UserError: it lacks some, or there is nothing to pad with.
    """
    pieces, rows = len(encoder.tokenizer), len(encoder.body.get_input_embeddings().weight)
    if pieces > rows:
        raise UserError(
            f"encoder folder {folder}: its tokenizer has {pieces} pieces, but its model embeds "
            f"only {rows}; save the tokenizer that belongs to the model there"
        )
    if encoder.tokenizer.pad_token_id is None:
        raise UserError(
            f"encoder folder {folder}: its tokenizer has no padding token; set pad_token and save "
            "the tokenizer there again"
        )


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
        body, head = head_of_checkpoint(model, set(loading["missing_keys"]))
    else:
        model, loading = _body_only(folder, config, trust_remote_code)
        body, head = model, None
    _check_whole(model, body, set(loading["missing_keys"]), folder)
    body.train()
    return TextEncoder(name=name, body=body, tokenizer=tokenizer, mlm_head=head)


def _has_mlm_weights(architectures: list[str] | None) -> bool:
    return any(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in architectures or [])


def _body_only(
    folder: Path, config: PretrainedConfig, trust_remote_code: bool
) -> tuple[PreTrainedModel, LoadingInfo]:
    try:
        return load_model(
            AutoModel, folder, trust_remote_code, config=config, add_pooling_layer=False
        )
    except TypeError:  # architectures without a pooler do not know the argument
        return load_model(AutoModel, folder, trust_remote_code, config=config)


def _tokenizer(folder: Path, trust_remote_code: bool) -> PreTrainedTokenizerBase:
    try:
        return load_tokenizer(folder, trust_remote_code)
    except UserError:
        raise
    except Exception as error:  # what the tokenizers library raises is no narrower
        raise UserError(
            f"encoder folder {folder}: its tokenizer cannot be read "
            f"({type(error).__name__}: {first_line(error)}); save it there again"
        ) from error


def _check_whole(
    model: PreTrainedModel, body: PreTrainedModel, missing: set[str], folder: Path
) -> None:
    """Whether the checkpoint held the body: Transformers draws at random what it lacks.

    Raises:
        UserError: it did not.
    """
    own = {id(parameter) for parameter in body.parameters()}
    lacking = [n for n, p in model.named_parameters() if id(p) in own and n in missing]
    if lacking:
        raise UserError(
            f"encoder folder {folder}: its weights lack {len(lacking)} of the body's "
            f"{len(own)} parameters (the first is {lacking[0]}); save the whole model there"
        )


def packs_texts(encoder: object, accelerator: str, precision: str, *, trains: bool) -> bool:
    """Whether this machine has kernels for packed rows: a CPU for any, a GPU for some.

    Args:
        accelerator: Lightning's name of it.
        precision: see `TextEncoder.packs_on_gpu`, as is `trains`.
    """
    if is_on_cpu(accelerator):
        return True
    on_cuda = accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()
    if not (on_cuda and isinstance(encoder, TextEncoder)):
        return False
    return encoder.packs_on_gpu(precision, trains=trains)


def reads_text(encoder: object, what: str) -> TextEncoder:
    """`encoder`, checked to be one of text for `what` (see `of_kind`)."""
    return of_kind(encoder, TextEncoder, what, "text", "e.g. encoder=roberta_base")
