"""Heads on top of a body: the paper's classifier, architectures' own, masked language modelling."""

from collections.abc import Collection
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModelForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from tartan.errors import UserError

Pooling = Literal["first", "mean"]
"""Which of the last layer's states stand for a text: its first token's, or the mean of all."""

ROW_MULTIPLE = 16
"""Multiple to which tokens are padded on a CPU, where oneDNN prepares a kernel for each shape."""
HEADS_LIKE_THE_PAPERS = {
    "albert", "bert", "camembert", "data2vec-text", "ernie", "megatron-bert", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Model types whose own head computes what `ClassifierHead` does on first tokens."""
OTHER_HEADS = {
    "deberta", "deberta-v2", "distilbert", "electra", "eurobert", "gte", "modernbert",
    "nomic_bert", "rembert", "roformer",
}  # fmt: skip
"""Model types whose own head is another one, which `OwnHead` runs."""
_DROPOUT = (
    "classifier_dropout", "classifier_dropout_prob", "cls_dropout", "pooler_dropout",
    "seq_classif_dropout",
)  # fmt: skip
"""Entries of a configuration that set the dropout of its classification head."""
MASKED_LMS = (
    "a BERT-, RoBERTa-, DistilBERT-, ELECTRA-, MPNet-, ModernBERT- or EuroBERT-like encoder"
)
"""Encoders with a masked-LM head of the form of `MaskedLMHead`."""
BERT_PARTS = ("dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias")
"""Parameters of a BERT's masked-LM head."""
_ACTIVATIONS = ("classifier_activation", "activation", "hidden_act", "hidden_activation")
"""Entries of a configuration that name the head's activation; the first that is set counts."""


class TextHead(nn.Module):
    """A head that classifies texts by their pooled states.

    `problem_type` is Transformers' name for what the logits mean.
    """

    problem_type = "single_label_classification"
    pooling: Pooling

    def exported(self) -> Self:
        """Return a head with the same logits that can be saved, as a program's own head may do."""
        return self

    def of_texts(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the logits of padded texts, of `states` `(n, tokens, hidden_size)`."""
        logits: Tensor = self(pooled(states, mask, self.pooling))
        return logits


class ClassifierHead(TextHead):
    """Dropout, dense, tanh, dropout, linear: the head of RoBERTa's and the paper's classifiers."""

    def __init__(
        self, hidden_size: int, classes: int, dropout: float, pooling: Pooling = "first"
    ) -> None:
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, classes)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits `(n, classes)` of `features` `(n, hidden_size)`."""
        hidden = torch.tanh(self.dense(self.dropout(features)))
        logits: Tensor = self.out(self.dropout(hidden))
        return logits


def pooled(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return the first or mean state of each padded text, `(n, hidden_size)`."""
    if pooling == "first":
        return states[:, 0]
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


class OwnHead(TextHead):
    """The classification head of a Transformers architecture, by its class's own forward pass.

    `dropout` is that of its dropout layers; EuroBERT's head has none.
    """

    def __init__(
        self, config: PretrainedConfig, classes: int, dropout: float, pooling: Pooling = "first"
    ) -> None:
        super().__init__()
        self.pooling = pooling
        config = type(config).from_dict(config.to_dict())
        config.num_labels = classes
        config.update({name: dropout for name in _DROPOUT if hasattr(config, name)})
        if config.model_type in ("deberta", "deberta-v2"):  # which have no default of it
            config.cls_dropout = dropout
        if hasattr(config, "classifier_pooling"):
            first = "bos" if config.model_type == "eurobert" else "cls"
            config.classifier_pooling = first if pooling == "first" else pooling
        with torch.device("meta"):
            model: PreTrainedModel = AutoModelForSequenceClassification.from_config(
                config, trust_remote_code=False
            )
        pooler = getattr(model.base_model, "pooler", None)
        setattr(model, model.base_model_prefix, _GivenStates(pooler))
        for module in model.modules():
            if isinstance(module, nn.Dropout):  # not all have an entry for it
                module.p = dropout
        self.model = model.to_empty(device="cpu")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, as the architecture's class does."""
        self.model.apply(self.model._init_weights)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits `(n, classes)` of pooled states `(n, hidden_size)`."""
        # each is a text of one token to the class, whose first state and mean are the same
        logits: Tensor = self.model(inputs_embeds=features.unsqueeze(1)).logits
        return logits


class _GivenStates(nn.Module):
    """In a body's place: returns given states, and what the body's pooler makes of them."""

    def __init__(self, pooler: nn.Module | None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> BaseModelOutputWithPooling:
        pooled = None if self.pooler is None else self.pooler(inputs_embeds)
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds, pooler_output=pooled)


class MaskedLMHead(nn.Module):
    """RoBERTa's and BERT's head: dense, GELU, layer norm, decoder tied to the word embeddings.

    `parts` are the names of its parameters. In ModernBERT only the decoder has a bias; EuroBERT has
    nothing but a decoder, mostly with a `weight` of its own.
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(
        self,
        hidden_size: int,
        vocabulary_size: int,
        embedding_size: int,
        parts: Collection[str] = BERT_PARTS,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.eps, self.row_multiple = eps, ROW_MULTIPLE
        self.dense: nn.Module = nn.Identity()
        self.norm: nn.Module = nn.Identity()
        if "dense.weight" in parts:
            self.dense = nn.Linear(hidden_size, embedding_size, bias="dense.bias" in parts)
            self.norm = nn.LayerNorm(embedding_size, eps=eps, bias="norm.bias" in parts)
        shapes = {"weight": (vocabulary_size, embedding_size), "bias": (vocabulary_size,)}
        for name, shape in shapes.items():
            value = nn.Parameter(torch.zeros(shape)) if name in parts else None
            self.register_parameter(name, value)

    def computed_rows(self, hidden: Tensor) -> int:
        """Return the number of rows that `forward` computes for `hidden`, `(..., n, size)`."""
        count = hidden.shape[-2]
        return count + -count % self.row_multiple if hidden.device.type == "cpu" else count

    def forward(self, hidden: Tensor, embeddings: Tensor) -> Tensor:
        """Return the vocabulary logits, `(..., n, vocabulary)`."""
        count = hidden.shape[-2]
        hidden = F.pad(hidden, (0, 0, 0, self.computed_rows(hidden) - count))
        if isinstance(self.dense, nn.Linear):
            hidden = self.norm(F.gelu(self.dense(hidden)))
        weight = embeddings if self.weight is None else self.weight
        logits = F.linear(hidden, weight, self.bias)
        return logits[..., :count, :]


def split_masked_lm(
    model: PreTrainedModel, missing: Collection[str] = ()
) -> tuple[PreTrainedModel, MaskedLMHead | None]:
    """Split a `...ForMaskedLM` model into its body and its head with the checkpoint's values."""
    body, kind = model.base_model, type(model).__name__
    embeddings: Tensor = body.get_input_embeddings().weight
    values, eps = head_parameters(model)
    lacking = {id(p) for name, p in model.named_parameters() if name in missing}
    if any(id(value) in lacking for name, value in values.items() if name != "bias"):
        return body, None
    activations = (getattr(model.config, entry, None) for entry in _ACTIVATIONS)
    activation = str(next(filter(None, activations), "gelu"))
    if "dense.weight" in values and not activation.startswith("gelu"):
        raise UserError(f"the masked-LM head of {kind} uses {activation}, not GELU")
    vocabulary, width = embeddings.shape
    head = MaskedLMHead(int(model.config.hidden_size), vocabulary, width, list(values), eps)
    head.load_state_dict(values)
    return body, head


def head_parameters(model: PreTrainedModel) -> tuple[dict[str, nn.Parameter], float]:
    """Return the parameters of the head of a `...ForMaskedLM` model and its norm's epsilon.

    They are by name in `MaskedLMHead`; a `weight` is there where it is not the embeddings'.
    """
    body, decoder = model.base_model, model.get_output_embeddings()
    inside = {id(module) for module in body.modules()}
    outside = [m for m in model.modules() if id(m) not in inside and m is not decoder]
    words = body.get_input_embeddings().weight
    # BERT's next-sentence classifier is Linear too, but has two outputs
    dense = [m for m in outside if isinstance(m, nn.Linear) and m.out_features == words.shape[1]]
    norms = [m for m in outside if isinstance(m, nn.LayerNorm)]
    if decoder is None or decoder.weight.shape != words.shape or not len(dense) == len(norms) <= 1:
        kind = type(model).__name__
        raise UserError(f"the masked-LM head of {kind} has an unknown shape; use {MASKED_LMS}")
    values = {f"dense.{name}": value for layer in dense for name, value in layer.named_parameters()}
    values |= {f"norm.{name}": value for layer in norms for name, value in layer.named_parameters()}
    tied = decoder.weight.data_ptr() == words.data_ptr()
    own = {
        name: value for name, value in decoder.named_parameters() if name != "weight" or not tied
    }
    return values | own, norms[0].eps if norms else 1e-5
