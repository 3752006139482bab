"""Defines the masked-LM head: dense, GELU, layer norm, and a decoder tied to the embeddings."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from tartan.errors import UserError

_ACTIVATIONS = ("classifier_activation", "activation", "hidden_act", "hidden_activation")
"""Entries of a configuration that name the head's activation; the first that is set counts."""

ROW_MULTIPLE = 16
"""On a CPU, the number of tokens is padded to a multiple of this, so that matrix products have few
different shapes: oneDNN prepares a kernel for each.
"""
BIASES = ("dense", "norm", "decoder")
"""Parts of the head that have a bias in BERT and RoBERTa."""


class MaskedLMHead(nn.Module):
    """RoBERTa's and BERT's head; the decoder's matrix is the body's word embeddings (tied).

    Args:
        hidden_size: width of the body.
        vocabulary_size: number of tokens in the vocabulary.
        embedding_size: width of the word embeddings.
        biases: which of `dense`, `norm` and `decoder` have a bias; in ModernBERT only `decoder`.
        eps: the layer norm's epsilon.

    Attributes:
        biases: as given.
        row_multiple: see `ROW_MULTIPLE`.
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        hidden_size: int,
        vocabulary_size: int,
        embedding_size: int,
        biases: Collection[str] = BIASES,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.biases, self.row_multiple = tuple(biases), ROW_MULTIPLE
        self.dense = nn.Linear(hidden_size, embedding_size, bias="dense" in biases)
        self.norm = nn.LayerNorm(embedding_size, eps=eps, bias="norm" in biases)
        decoder = nn.Parameter(torch.zeros(vocabulary_size)) if "decoder" in biases else None
        self.register_parameter("bias", decoder)

    def computed_rows(self, hidden: Tensor) -> int:
        """Return the number of rows that `forward` computes for `hidden` `(..., n, hidden_size)`.

        It is n, on a CPU rounded up to a multiple of `row_multiple`.
        """
        count = hidden.shape[-2]
        return count + -count % self.row_multiple if hidden.device.type == "cpu" else count

    def forward(self, hidden: Tensor, embeddings: Tensor) -> Tensor:
        """Return the vocabulary logits, `(..., n, vocabulary)`.

        Args:
            hidden: states of the body's last layer, `(..., n, hidden_size)`.
            embeddings: the body's word embeddings, `(vocabulary, embedding_size)`.
        """
        count = hidden.shape[-2]
        hidden = F.pad(hidden, (0, 0, 0, self.computed_rows(hidden) - count))
        logits = F.linear(self.norm(F.gelu(self.dense(hidden))), embeddings, self.bias)
        return logits[..., :count, :]


def split_masked_lm(
    model: PreTrainedModel, missing: set[str]
) -> tuple[PreTrainedModel, MaskedLMHead | None]:
    """Split a `...ForMaskedLM` model into its body and its head.

    Args:
        model: the model as loaded.
        missing: names of the parameters that the checkpoint did not hold.

    Returns:
        The body, and the head with the checkpoint's values; None instead of the head if the
        checkpoint lacks it.

    Raises:
        UserError: the head is not made of a dense layer, GELU, a layer norm and a tied decoder.
    """
    body = model.base_model
    embeddings: Tensor = body.get_input_embeddings().weight
    dense_layer, norm_layer, decoder = head_layers(model)
    lacking = {id(p) for name, p in model.named_parameters() if name in missing}
    if any(id(p) in lacking for p in (*dense_layer.parameters(), *norm_layer.parameters())):
        return body, None
    activation = next(
        (a for a in (getattr(model.config, key, None) for key in _ACTIVATIONS) if a), "gelu"
    )
    if not str(activation).startswith("gelu"):
        raise UserError(f"the masked-LM head of {type(model).__name__} uses {activation}, not GELU")
    if decoder.weight.data_ptr() != embeddings.data_ptr():
        raise UserError(f"{type(model).__name__}'s decoder is not tied to its word embeddings")
    layers = {"dense": dense_layer, "norm": norm_layer, "decoder": decoder}
    biases = [name for name, layer in layers.items() if layer.bias is not None]
    vocabulary, width = embeddings.shape
    head = MaskedLMHead(dense_layer.in_features, vocabulary, width, biases, norm_layer.eps)
    head.dense.load_state_dict(dense_layer.state_dict())
    head.norm.load_state_dict(norm_layer.state_dict())
    if head.bias is not None:
        with torch.no_grad():
            head.bias.copy_(decoder.bias)
    return body, head


def head_layers(model: PreTrainedModel) -> tuple[nn.Linear, nn.LayerNorm, nn.Linear]:
    """Return the dense layer, the layer norm and the decoder of a `...ForMaskedLM` model.

    Raises:
        UserError: its head is not made of these.
    """
    body = model.base_model
    if body is model:
        raise UserError(f"cannot tell the body of {type(model).__name__} from its head")
    inside = {id(module) for module in body.modules()}
    outside = {n: m for n, m in model.named_modules() if id(m) not in inside and m is not model}
    decoder = model.get_output_embeddings()
    dense = {n: m for n, m in outside.items() if isinstance(m, nn.Linear) and m is not decoder}
    norms = {n: m for n, m in outside.items() if isinstance(m, nn.LayerNorm)}
    embeddings = body.get_input_embeddings().weight
    # BERT's next-sentence classifier is Linear too, but has two outputs
    dense = {n: m for n, m in dense.items() if m.out_features == embeddings.shape[1]}
    if len(dense) != 1 or len(norms) != 1 or decoder is None:
        raise UserError(
            f"the masked-LM head of {type(model).__name__} has an unknown shape; "
            "use a BERT-, RoBERTa-, DistilBERT-, ELECTRA- or MPNet-like encoder"
        )
    ((dense_layer,), (norm_layer,)) = dense.values(), norms.values()
    return dense_layer, norm_layer, decoder
