"""Builds random encoders: a tiny one in milliseconds, for tests, or one of a real one's size."""

import itertools
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import torch
from annotated_types import Ge, MultipleOf
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tartan.encoders.base import EncoderSource
from tartan.encoders.lora import Lora
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.settings import Below1, Checked, Count, Length, NonNegative

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclass(frozen=True)
class TinyEncoder(Checked):
    """A BERT with random weights, which are the same every time.

    Attributes:
        name: the encoder's name in results.
        hidden_size: width, a multiple of the number of heads [units].
        layers: depth [layers].
        heads: number of attention heads.
        max_positions: longest input [tokens].
        dropout: dropout probability throughout the body.
        attention_dropout: that of attention weights; None for `dropout`.
        vocabulary: number of embeddings; None for one for each token.
        tokenizer: an encoder whose tokenizer is used; None for one of pairs of letters.
        adapter: see `PretrainedEncoder`.
        lr: see `PretrainedEncoder`.
    """

    name: str = "tiny"
    hidden_size: Annotated[int, Ge(2), MultipleOf(2)] = 32
    layers: Count = 2
    heads: Count = 2
    max_positions: Length = 512
    dropout: Below1 = 0.1
    attention_dropout: Below1 | None = None
    vocabulary: Count | None = None
    tokenizer: EncoderSource | None = None
    adapter: Lora | None = None
    lr: Mapping[str, NonNegative] = field(default_factory=dict)

    def load(self) -> TextEncoder:
        tokenizer: PreTrainedTokenizerBase = letter_pair_tokenizer()
        if self.tokenizer is not None:
            what = f"encoder {self.name}"
            tokenizer = require_text_encoder(self.tokenizer.load(), what).tokenizer
        attention = self.dropout if self.attention_dropout is None else self.attention_dropout
        config = BertConfig(
            vocab_size=self.vocabulary or len(tokenizer),
            hidden_size=self.hidden_size,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.hidden_size,
            max_position_embeddings=self.max_positions,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=attention,
        )
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            body = BertModel(config, add_pooling_layer=False)
        if self.adapter is not None:
            self.adapter.add_to(body, self.name)
        return TextEncoder(self.name, body.train(), tokenizer, adapter=self.adapter)


def letter_pair_tokenizer() -> PreTrainedTokenizerFast:
    """Return a WordPiece tokenizer of printable characters and pairs of letters."""
    characters = string.ascii_lowercase + string.digits + string.punctuation
    pairs = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
    pieces = [*characters, *pairs]
    vocabulary = {p: i for i, p in enumerate([*_SPECIAL, *pieces, *(f"##{p}" for p in pieces)])}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],  # as BERT's
    )
