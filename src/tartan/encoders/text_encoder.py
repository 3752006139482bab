"""Defines an encoder of text: a body of Transformers with its tokenizer."""

from __future__ import annotations

import copy
import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_MAPPING,
    AutoModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from tartan.core.device import is_on_cpu, is_on_cuda
from tartan.encoders.export import save_classifier, unused
from tartan.encoders.heads import (
    OTHER_HEADS,
    ClassifierHead,
    MaskedLMHead,
    OwnHead,
    Pooling,
    TextHead,
)
from tartan.encoders.lora import Lora
from tartan.encoders.safe_loading import load_config, load_tokenizer, without_pooler
from tartan.errors import UserError
from tartan.kernels.packed_row import kernel_for, usable_kernels
from tartan.kernels.packing import can_pack, evaluating

log = logging.getLogger(__name__)

_POSITIONS_AFTER_PADDING = (
    "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet",
    "data2vec-text", "longformer", "xmod", "ibert", "luke", "esm",
)  # fmt: skip
"""Model types whose position ids begin behind the id of the padding token."""


@dataclass
class TextEncoder:
    """An encoder of text: a body of Transformers without a head, and its tokenizer."""

    name: str  # in results
    body: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    mlm_head: MaskedLMHead | None = None  # a trained one; without, masked-LM tasks start anew
    adapter: Lora | None = None  # that of the body, if it has one

    @property
    def hidden_size(self) -> int:
        return int(self.body.config.hidden_size)

    def new_classifier_head(
        self,
        classes: int,
        dropout: float,
        pooling: Pooling = "first",
        problem_type: str = TextHead.problem_type,
    ) -> TextHead:
        """Return a new head: the paper's, or the architecture's where that is another one."""
        config = self.body.config
        head: TextHead
        pools = pooling == "first" or hasattr(config, "classifier_pooling")
        is_of_transformers = type(self.body).__module__.startswith("transformers.")
        if is_of_transformers and pools and config.model_type in OTHER_HEADS:
            head = OwnHead(config, classes, dropout, pooling)
            trained = self.mlm_head
            parts = trained.state_dict() if trained else {}
            if config.model_type == "modernbert" and trained and "dense.bias" not in parts:
                # whose classifier begins with the layers of its masked-LM head
                head.model.head.dense.load_state_dict(trained.dense.state_dict())
                head.model.head.norm.load_state_dict(trained.norm.state_dict())
        else:
            head = ClassifierHead(self.hidden_size, classes, dropout, pooling)
        head.problem_type = problem_type
        return head

    def new_mlm_head(self) -> MaskedLMHead:
        """Return a copy of the trained masked-LM head, or a new one."""
        if self.mlm_head is not None:
            return copy.deepcopy(self.mlm_head)
        embedding: Tensor = self.body.get_input_embeddings().weight
        # with another epsilon, Transformers could not compute the same when it is saved
        eps = getattr(self.body.config, "layer_norm_eps", 1e-5)
        return MaskedLMHead(self.hidden_size, embedding.shape[0], embedding.shape[1], eps=eps)

    def keep_head(self, head: nn.Module) -> None:
        if isinstance(head, MaskedLMHead):
            self.mlm_head = head

    def recompute_activations(self) -> None:
        if not self.body.supports_gradient_checkpointing:
            raise UserError(f"encoder {self.name} has no gradient checkpointing")
        # not reentrant, which does not support `backward(inputs=...)`; the public method's name
        # depends on the version
        again = partial(checkpoint, use_reentrant=False)
        self.body._set_gradient_checkpointing(gradient_checkpointing_func=again)

    save_classifier = save_classifier

    @property
    def uses_token_types(self) -> bool:
        """Whether the body's inputs say which of a pair's texts a token belongs to."""
        kinds = getattr(self.body.config, "type_vocab_size", 0)
        return "token_type_ids" in self.tokenizer.model_input_names and (kinds or 0) > 1

    @property
    def ordinary_tokens(self) -> list[int]:
        """Ids of the tokens that are not special, of which texts can be made to try the body."""
        special = set(self.tokenizer.all_special_ids)
        return [token for token in range(len(self.tokenizer)) if token not in special]

    @property
    def first_position(self) -> int:
        config = self.body.config
        after = config.model_type in _POSITIONS_AFTER_PADDING
        return int(config.pad_token_id) + 1 if after else 0

    @property
    def max_positions(self) -> int | None:
        """Longest input; None where the architecture sets no limit [tokens]."""
        limit = getattr(self.body.config, "max_position_embeddings", None)
        # XLNet says -1
        return None if limit is None or limit < 0 else int(limit) - self.first_position

    @cached_property
    def supports_packing(self) -> bool:
        """Whether the body can process packed rows (see `can_pack`); logs a warning if not."""
        ordinary = self.ordinary_tokens
        supported = bool(ordinary) and can_pack(self.body, ordinary, self.first_position)
        if not supported:
            line = "encoder %s cannot read several texts as one row: micro-batches are padded"
            log.warning(line, self.name)
        return supported

    def description(self) -> dict[str, Any] | None:
        """Return configuration and tokenizer files; None for a body with code of its own."""
        kinds = MODEL_MAPPING.get(type(self.body.config), ())
        if type(self.body) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
            return None
        with tempfile.TemporaryDirectory() as folder:
            unused(self.tokenizer).save_pretrained(folder)
            files = sorted(path for path in Path(folder).iterdir() if path.is_file())
            tokenizer = {path.name: path.read_text(encoding="utf-8") for path in files}
        head = self.mlm_head
        return {
            "config": json.loads(self.body.config.to_json_string(use_diff=False)),
            "pooler": getattr(self.body, "pooler", None) is not None,
            "tokenizer": tokenizer,
            "masked_lm_head": head and {"parts": list(head.state_dict()), "eps": head.eps},
            "adapter": self.adapter and asdict(self.adapter),
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
        adapter = description["adapter"] and Lora(**description["adapter"])
        if adapter is not None:
            adapter.add_to(body, name)
        head = description["masked_lm_head"]
        if head is not None:
            size, eps = int(config.hidden_size), float(head["eps"])
            vocabulary, width = body.get_input_embeddings().weight.shape
            head = MaskedLMHead(size, vocabulary, width, list(head["parts"]), eps)
        return TextEncoder(name, body, tokenizer, head, adapter)


def packs_texts(encoder: object, accelerator: str, precision: str, *, trains: bool) -> bool:
    """Return whether this machine has kernels for packed rows: a CPU for all, a GPU for some."""
    if is_on_cpu(accelerator):
        return True
    if not (is_on_cuda(accelerator) and isinstance(encoder, TextEncoder)):
        return False
    config, dropout = encoder.body.config, 0.0
    if trains:
        entries = ("attention_probs_dropout_prob", "attention_dropout")
        known = [getattr(config, entry) for entry in entries if hasattr(config, entry)]
        dropout = float(next(iter(known), 1.0))
    dtype = torch.bfloat16 if precision.startswith("bf16") else torch.float32
    # a body without attention has no heads, and `supports_packing` refuses it
    size = encoder.hidden_size // int(getattr(config, "num_attention_heads", 1))
    kernel = kernel_for(dtype, dropout, size, usable_kernels())
    return kernel is not None and encoder.supports_packing


def require_text_encoder(encoder: object, what: str) -> TextEncoder:
    """Return `encoder`, after checking that it reads texts, which `what` needs."""
    if not isinstance(encoder, TextEncoder):
        raise UserError(f"{what} needs an encoder of text, e.g. encoder=minilm")
    return encoder


def check_body(encoder: TextEncoder) -> None:
    """Refuse a body that would be trained on something else than whole texts, or wrongly."""
    body, config, what = encoder.body, encoder.body.config, f"encoder {encoder.name}"
    check_tokenizer_fits(encoder.tokenizer, body, what)
    kinds = {str(p.dtype) for p in body.parameters() if p.is_floating_point()} - {"torch.float32"}
    problem = ""
    if kinds:
        problem = f"has parameters of type {min(kinds)}, and training updates float32"
    elif config.model_type in _POSITIONS_AFTER_PADDING and (
        config.pad_token_id != encoder.tokenizer.pad_token_id
    ):
        problem = "counts positions from another pad_token_id than its tokenizer's"
    elif not encoder.tokenizer.is_fast:
        problem = "has a tokenizer that is none of the fast ones"
    elif config.model_type in ("convbert", "fnet"):
        problem = "reads padding, so that its states depend on the other texts of a batch"
    elif getattr(body, "decoder", None) and getattr(config, "is_encoder_decoder", False):
        problem = "has a decoder too"
    elif type(config) not in MODEL_FOR_MASKED_LM_MAPPING or getattr(config, "is_decoder", False):
        ordinary = encoder.ordinary_tokens[:4]
        device = next(body.parameters()).device
        ids = torch.tensor([ordinary[:3], [*ordinary[:2], ordinary[3]]], device=device)
        with evaluating(body), torch.no_grad():
            states = body(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        if states[0, 0].equal(states[1, 0]):
            problem = "reads left to right, so its first token sees nothing of the text"
    if problem:
        raise UserError(
            f"{what} ({config.model_type}) {problem}; use an encoder such as BERT or RoBERTa"
        )


def check_tokenizer_fits(
    tokenizer: PreTrainedTokenizerBase, body: PreTrainedModel, where: str
) -> None:
    """Check that the body has an embedding for each token, and the tokenizer a padding token."""
    try:
        embedded = len(body.get_input_embeddings().weight)  # type: ignore[arg-type]
    except NotImplementedError:
        return  # somebody's own body
    # a damaged tokenizer can have few tokens of large numbers
    tokens = max(tokenizer.get_vocab().values(), default=-1) + 1
    if tokens > embedded:
        raise UserError(
            f"{where}: its tokenizer has {tokens} tokens, but its model embeds only {embedded}"
        )
    if tokenizer.pad_token_id is None:
        raise UserError(f"{where}: its tokenizer has no padding token; set pad_token")
